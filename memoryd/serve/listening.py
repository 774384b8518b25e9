"""Sockets on the file system: bound where nobody else can get in between, with the modes promised.

In: a configured ``[[socket]]`` and the environment, sockets that a service manager opened for us. Out: a
listening socket at its path, and its removal at the end if we made it and it is still ours. Only the holder of
the daemon's lock comes here, so a socket that already stands at the path belongs to a daemon that was killed.

The socket is bound to a name beside its path, gets its mode, listens, and only then is renamed onto the
path: at no moment can a client find it wider than it should be, or refused.
"""

import grp
import os
import socket
import stat
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path

import msgspec

from memoryd import paths
from memoryd.config import Socket
from memoryd.errors import ConfigError
from memoryd.labels import Classes
from memoryd.serve import supervisor
from memoryd.serve.peers import Capability, capability

BACKLOG = 128


class Listening(msgspec.Struct, frozen=True):
    """A socket that takes connections; `node` is its (device, inode), to know it again; None: not ours to remove."""

    capability: Capability
    path: Path
    sock: socket.socket
    node: tuple[int, int] | None


def listen(setting: Socket, capability: Capability, env: Mapping[str, str]) -> Listening:
    """Listen at the path of `setting`, replacing the socket that a killed daemon left there.

    Raises: ConfigError for a path that cannot be used, an unknown group, or anything but our own socket
    standing at the path.
    """
    path = path_of(setting, env)
    group = None if setting.group is None else _group_id(setting.group, setting.name)
    try:
        _folder(path.parent, group, ours=setting.path is None)
        _refuse_other(path)
        sock, node = _bind(path, group)
    except OSError as error:
        raise ConfigError(
            f"the socket {path} cannot be made: {error.strerror}",
            remedy="give [[socket]] a `path` in a folder that you own",
        ) from None
    return Listening(capability, path, sock, node)


class Sockets:
    """The sockets of the configuration that stands; one that stays the same outlives a change of it."""

    def __init__(self, env: MutableMapping[str, str]) -> None:
        """Take what a service manager opened for us. Raises: ConfigError."""
        self._env = env
        self._handed = {sock.getsockname(): sock for sock in supervisor.handed_over(env)}
        self._standing: dict[tuple[Path, str | None], Listening] = {}
        self._before: list[Listening] = []

    def stand(self, settings: Sequence[Socket], classes: Classes) -> list[Listening]:
        """Listen at every path of `settings`; those of before go on listening until `settle`.

        Raises: ConfigError, and all is as it was.
        """
        found: dict[tuple[Path, str | None], Listening] = {}
        made: list[Listening] = []
        try:
            for setting in settings:
                key = path_of(setting, self._env), setting.group
                allowed = capability(setting, classes)
                if key in self._standing:
                    found[key] = msgspec.structs.replace(self._standing[key], capability=allowed)
                else:
                    found[key] = self._listen(setting, allowed)
                    made.append(found[key])
            self._all_used(found)
        except ConfigError:
            for listening in made:
                close(listening)
            raise
        self._before += [old for key, old in self._standing.items() if key not in found]
        self._standing = found
        return list(found.values())

    def settle(self) -> None:
        """Close what is no longer configured, once nobody accepts on it any more."""
        while self._before:
            close(self._before.pop())

    def close(self) -> None:
        """Stop listening anywhere."""
        self._before += self._standing.values()
        self._standing = {}
        self.settle()

    def _listen(self, setting: Socket, allowed: Capability) -> Listening:
        path = path_of(setting, self._env)
        handed = self._handed.get(os.fspath(path))
        if handed is None:
            return listen(setting, allowed, self._env)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0
        if mode & (0o007 if setting.group is not None else 0o077):
            raise ConfigError(
                f"the socket {path} was handed over with mode {mode:04o}",
                remedy="say SocketMode=0600 in the .socket unit (0660 with a group)",
            )
        return Listening(allowed, path, handed.dup(), None)

    def _all_used(self, found: Iterable[tuple[Path, str | None]]) -> None:
        """See that no socket was opened for us that nobody would answer on. Raises: ConfigError."""
        for path in self._handed.keys() - {os.fspath(path) for path, _ in found}:
            raise ConfigError(
                f"the service manager listens at {path}, which is no configured socket",
                remedy="add a [[socket]] with this path, or take it out of the .socket unit",
            )


def close(listening: Listening) -> None:
    """Stop listening, and remove the socket unless somebody has put another in its place."""
    listening.sock.close()
    if listening.node is not None and _node(listening.path) == listening.node:
        listening.path.unlink(missing_ok=True)


def path_of(setting: Socket, env: Mapping[str, str]) -> Path:
    """Return where a configured socket lies. Raises: ConfigError."""
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


def _bind(path: Path, group: int | None) -> tuple[socket.socket, tuple[int, int]]:
    beside = _beside(path)
    _refuse_other(beside)
    beside.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        sock.bind(os.fspath(beside))
        if group is not None:
            os.chown(beside, -1, group)
        beside.chmod(0o600 if group is None else 0o660)
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
