"""Sockets that a manager opened before it started this (sd_listen_fds(3)): they listen while we come and go.

In: ``LISTEN_PID``, ``LISTEN_FDS`` and ``LISTEN_FDNAMES`` of the environment, and descriptors from 3 on. Out: listening
sockets by the path they are bound to. Each must be one that the configuration names: a socket that nobody
decided the clearance of is a mistake that must not be guessed away.
"""

import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from memoryd.errors import ConfigError

FIRST = 3
_MOST = 64
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def handed(env: Mapping[str, str], pid: int) -> dict[Path, int]:
    """Return the descriptors that were handed to the process `pid`, by the paths of their sockets.

    They are no business of programs that it starts. Raises: ConfigError for anything but listening Unix stream
    sockets with a path.
    """
    count = env.get("LISTEN_FDS", "")
    if env.get("LISTEN_PID") != str(pid) or not count:
        return {}
    if not count.isdigit() or not 1 <= int(count) <= _MOST:
        raise _wrong(f"LISTEN_FDS={count[:20]!r} is no number of sockets from 1 to {_MOST}")
    found: dict[Path, int] = {}
    for handle in range(FIRST, FIRST + int(count)):
        path = _bound(handle)
        if path in found:
            raise _wrong(f"two sockets are bound to {path}")
        os.set_inheritable(handle, False)
        found[path] = handle
    return found


def without(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that speak of handed sockets."""
    return {name: value for name, value in env.items() if name not in _VARIABLES}


def check_named(found: Iterable[Path], configured: Iterable[Path]) -> None:
    """Refuse a socket that no ``[[socket]]`` names. Raises: ConfigError."""
    named = set(configured)
    for path in found:
        if path not in named:
            places = ", ".join(sorted(map(str, named)))
            raise _wrong(f"{path} is no configured socket; these are: {places}")


def _bound(handle: int) -> Path:
    try:
        with socket.socket(fileno=os.dup(handle)) as sock:
            listens = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM or not listens:
                raise _wrong(f"descriptor {handle} is no listening Unix stream socket")
            name = sock.getsockname()
    except OSError as error:
        raise _wrong(f"descriptor {handle} is no socket ({error.strerror})") from None
    if not isinstance(name, str) or not name:
        raise _wrong(f"the socket of descriptor {handle} has no path")
    return Path(name)


def _wrong(problem: str) -> ConfigError:
    return ConfigError(
        f"the sockets handed over cannot be used: {problem}",
        remedy="let ListenStream= of memoryd.socket name the path of a configured socket",
    )
