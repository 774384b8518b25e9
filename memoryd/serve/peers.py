"""Who asks, and what the socket they ask through allows.

In: a configured ``[[socket]]`` and the kernel's word about the peer. Out: `Capability` (frozen, one a
socket), `Peer` and `Asker` (one a connection). Nothing a peer sends can change its capability.
"""

import os
import socket
import struct
from collections.abc import Callable

import msgspec

from memoryd.config import Socket
from memoryd.index.scope import Policy
from memoryd.labels import Classes

_UCRED = struct.Struct("3i")
RECALL = frozenset({"recall", "get", "sessions", "projects", "sync"})
"""The methods that the grant ``recall`` gives."""
ALWAYS = frozenset({"hello", "status", "subscribe", "tool.list", "tool.call"})
"""The methods of every socket; a tool is listed and called where the socket grants its method."""
NOTES = {
    # Who is told a block, which may hold lessons, also says when its session rests: only then is it known
    # whether telling them helped.
    "memory_view": frozenset({"notes.view", "notes.list", "block", "lessons.idle"}),
    **{
        f"memory_{command}": frozenset({f"notes.{command}"})
        for command in ("create", "str_replace", "insert", "delete", "rename")
    },
}
"""The methods that each grant of notes gives."""
LESSONS = {
    f"lesson_{tool}": frozenset({f"lessons.{tool}", "lessons.idle"})
    for tool in (
        "save",
        "query",
        "get",
        "recall",
        "status",
        "why",
        "config",
        "feedback",
        "trace",
        "audit",
    )
}
"""The methods that each grant of lessons gives; setting a setting is the owner's all the same."""
_LESSONS_OWNER = frozenset(
    f"lessons.{act}"
    for act in ("import", "export", "retrospective", "propose", "list", "ledger", "days")
)
OWNER = (
    frozenset({"reindex", "dump", "forget", "explain", "relabel", "records"})
    | _LESSONS_OWNER
    | {
        f"notes.{act}"
        for act in ("log", "diff", "undo", "verify", "pending", "accept", "reject", "redact")
    }
)
"""Methods of the owner's socket alone."""
ALL = ALWAYS | RECALL | OWNER | frozenset().union(*NOTES.values(), *LESSONS.values())


class Peer(msgspec.Struct, frozen=True):
    """The process at the other end, as the kernel tells it (SO_PEERCRED, unix(7))."""

    pid: int
    uid: int


class Capability(msgspec.Struct, frozen=True):
    """What a socket allows: `level` is its clearance, `owner` whether it is the owner's own.

    The owner's socket grants everything (``*``) and hides nothing: top clearance, every project, what is
    untrusted too. A ``*`` with less than that grants all methods but the owner's.
    """

    name: str
    level: int
    owner: bool
    methods: frozenset[str]
    tools: tuple[str, ...]
    untrusted: Policy
    projects: tuple[str, ...]
    uids: frozenset[int]
    unnamed: int | None = None
    """The class of a session that names no log, as the owner says; None: the highest. It is untrusted all the same."""

    def grants(self, method: str) -> bool:
        """Say whether `method` may be called through this socket."""
        return method in self.methods


class Asker(msgspec.Struct):
    """One connection's side of a request: the peer, its socket, and how it wants errors."""

    peer: Peer
    capability: Capability
    as_map: bool = False
    post: Callable[[str, dict[str, object]], None] | None = None
    """Sends a notification, or drops it where the peer does not read; None once the connection has ended."""
    told: bool = False
    """Whether it is told of events, and so may be silent for as long as it likes."""


def capability(setting: Socket, classes: Classes) -> Capability:
    """Return what a configured socket allows. Raises: LabelError for an unknown clearance."""
    level = classes.level(setting.clearance)
    everything = "*" in setting.tools
    projects = tuple(setting.projects)
    unlimited = level == classes.top and "*" in projects and setting.untrusted == "include"
    owner = everything and unlimited
    methods = ALWAYS
    if everything or "recall" in setting.tools:
        methods |= RECALL
    for tool, given in (NOTES | LESSONS).items():
        if everything or tool in setting.tools:
            methods |= given
    if everything or "recall_open" in setting.tools:
        methods |= {"get"}
    if owner:
        methods |= OWNER
    return Capability(
        name=setting.name,
        level=level,
        owner=owner,
        methods=methods,
        tools=tuple(setting.tools),
        untrusted=setting.untrusted,
        projects=projects,
        uids=frozenset(setting.uids) | {os.geteuid()},
        unnamed=None if setting.unnamed is None else classes.level(setting.unnamed),
    )


def peer_of(sock: socket.socket) -> Peer:
    """Return the process that connected. Raises: OSError."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, _gid = _UCRED.unpack(raw)
    return Peer(pid, uid)
