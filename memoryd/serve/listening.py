"""Sockets on the file system: bound where nobody else can get in between, with the modes promised.

In: a configured ``[[socket]]`` and the environment. Out: a listening socket at its path, and its removal
at the end if it is still ours. Only the holder of the daemon's lock comes here, so a socket that already
stands at the path belongs to a daemon that was killed.

The socket is bound to a name beside its path, gets its mode, listens, and only then is renamed onto the
path: at no moment can a client find it wider than it should be, or refused.
"""

import grp
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memoryd import paths
from memoryd.config import Socket
from memoryd.errors import ConfigError
from memoryd.serve.peers import Capability

BACKLOG = 128


class Listening(msgspec.Struct, frozen=True):
    """A socket that takes connections; `node` is its (device, inode), to know it again."""

    capability: Capability
    path: Path
    sock: socket.socket
    node: tuple[int, int] | None
    """None: a manager opened it and keeps it."""


def listen(
    setting: Socket, capability: Capability, env: Mapping[str, str], handle: int | None = None
) -> Listening:
    """Listen at the path of `setting`, replacing the socket that a killed daemon left there.

    `handle`: the socket that a manager listens on there already. It gets the modes that ours have, and stays.
    Raises: ConfigError for a path that cannot be used, an unknown group, or anything but our own socket
    standing at the path.
    """
    path = path_of(setting, env)
    group = None if setting.group is None else _group_id(setting.group, setting.name)
    try:
        _folder(path.parent, group, ours=setting.path is None)
        _refuse_other(path)
        if handle is not None:
            return Listening(capability, path, _taken_over(handle, path, group), None)
        sock, node = _bind(path, group)
    except OSError as error:
        raise ConfigError(
            f"the socket {path} cannot be made: {error.strerror}",
            remedy="give [[socket]] a `path` in a folder that you own",
        ) from None
    return Listening(capability, path, sock, node)


def close(listening: Listening) -> None:
    """Stop listening; remove the socket if it is ours and nobody has put another in its place."""
    listening.sock.close()
    if listening.node is not None and _node(listening.path) == listening.node:
        listening.path.unlink(missing_ok=True)


def path_of(setting: Socket, env: Mapping[str, str]) -> Path:
    """Return where a configured socket lies. Raises: ConfigError for a path that no socket can have."""
    if setting.path is not None:
        return paths.checked_socket(Path(setting.path))
    return paths.socket_path(env, setting.name)


def _group_id(group: str, name: str) -> int:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise ConfigError(
            f"the socket {name!r} names the group {group!r}, which does not exist",
            remedy="create the group, or name another",
        ) from None


def _folder(folder: Path, group: int | None, *, ours: bool) -> None:
    """Make the folder with its mode; one that the owner made and named keeps the mode it has."""
    made = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        if ours:
            raise ConfigError(
                f"{folder} belongs to another user", remedy="remove it, or set MEMORYD_HOME"
            )
        return
    if group is not None and (made or ours):
        os.chown(folder, -1, group)
        folder.chmod(0o710)
    elif made or (ours and stat.S_IMODE(folder.stat().st_mode) & 0o067):
        folder.chmod(0o700)


def _refuse_other(path: Path) -> None:
    """Refuse to replace anything but a socket of ours. Raises: ConfigError."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise ConfigError(
            f"something else is at {path}", remedy="move it away, or give the socket another path"
        )


def _taken_over(handle: int, path: Path, group: int | None) -> socket.socket:
    _restrict(path, group)
    sock = socket.socket(
        fileno=os.dup(handle)
    )  # the descriptor itself is for the next configuration
    sock.setblocking(False)
    return sock


def _restrict(path: Path, group: int | None) -> None:
    if group is not None:
        os.chown(path, -1, group)
    path.chmod(0o600 if group is None else 0o660)


def _bind(path: Path, group: int | None) -> tuple[socket.socket, tuple[int, int]]:
    beside = _beside(path)
    _refuse_other(beside)
    beside.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        sock.bind(os.fspath(beside))
        _restrict(beside, group)
        sock.listen(BACKLOG)
        found = beside.lstat()
        beside.rename(path)
    except BaseException:
        sock.close()
        beside.unlink(missing_ok=True)
        raise
    return sock, (found.st_dev, found.st_ino)


def _beside(path: Path) -> Path:
    """Return a name of the same length in the same folder, so that it fits where `path` fits."""
    last = "~" if not path.name.endswith("~") else "_"
    return path.with_name(path.name[:-1] + last)


def _node(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
