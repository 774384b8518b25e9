"""`memoryd web`: serve the page on loopback or on a Unix socket, until a signal ends it.

In: the path of the daemon's socket, a port or a path. Out: the link, told to whoever started it, its token
behind ``#``, where no server, log or referrer gets to see it; faults in the log.
"""

import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import hypercorn.trio
import structlog
import trio
from hypercorn.config import Config

from memoryd import log as logging
from memoryd import paths
from memoryd.client_trio import connect
from memoryd.errors import IOFailed
from memoryd.web.app import Door, application
from memoryd.web.guard import Keys

PORT = 7707
LOOPBACK = "127.0.0.1"
BACKLOG = 64
KEEP_ALIVE_S = 75
GRACE_S = 1
LONGEST_HEAD = 32 * 1024
"""A query of 4 KiB, with each byte as three."""

log = structlog.get_logger()


def run(
    asked: Path, *, port: int = PORT, unix: Path | None = None, say: Callable[[str], None] = print
) -> int:
    """Serve until SIGINT or SIGTERM and return the exit code.

    Raises: IOFailed where the port or the path cannot be had; Unavailable, TimedOut where the daemon is down.
    """
    logging.configure()
    listening = on_loopback(port) if unix is None else on_path(unix)
    try:
        with listening:
            trio.run(serve, asked, listening, unix, say)
    finally:
        if unix is not None:
            unix.unlink(missing_ok=True)
    return 0


def on_loopback(port: int) -> socket.socket:
    """Return a socket that listens on this machine's loopback alone; 0 is any free port. Raises: IOFailed."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((LOOPBACK, port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise IOFailed(
            f"port {port} of {LOOPBACK} cannot be had: {error.strerror}",
            remedy="--port N takes another, --port 0 any free one",
        ) from None
    return made


def on_path(path: Path) -> socket.socket:
    """Return a Unix socket for its owner alone (0600). Raises: IOFailed, also where somebody listens there."""
    paths.checked_socket(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        _clear(path)
        made.bind(str(path))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise IOFailed(
            f"the socket {path} cannot be had: {error.strerror}",
            remedy="name a path in a folder of yours that nothing has yet",
        ) from None
    finally:
        os.umask(before)
    return made


def _clear(path: Path) -> None:
    """Remove a socket that nobody listens on any more; anything else makes `bind` fail."""
    if not path.is_socket():
        return
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with caller, suppress(ConnectionRefusedError):
        caller.connect(str(path))
        return
    path.unlink()


async def serve(
    asked: Path, listening: socket.socket, unix: Path | None, say: Callable[[str], None]
) -> None:
    """Connect to the daemon, tell the link, and answer until a signal comes. Raises: as `connect`."""
    port = None if unix is not None else int(listening.getsockname()[1])
    door = Door(Keys.new(), port)
    async with connect(asked) as memory:
        app = application(memory, door)
        # Signals are heard before the link is told: whoever has read it may end this at once.
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            say(told(door, unix))
            await hypercorn.trio.serve(
                app,  # type: ignore[arg-type]  # hypercorn has TypedDicts of its own for what ASGI leaves open
                configured(listening),
                shutdown_trigger=partial(anext, signals),
                mode="asgi",
            )


def configured(listening: socket.socket) -> Config:
    """Return hypercorn's settings: our socket, nothing logged by it, no word of what serves."""
    config = Config()
    config.bind = f"fd://{listening.detach()}"
    config.backlog = BACKLOG
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.keep_alive_timeout = KEEP_ALIVE_S
    config.graceful_timeout = GRACE_S
    config.h11_max_incomplete_size = LONGEST_HEAD
    return config


def told(door: Door, unix: Path | None) -> str:
    """Return what a person needs to open the page."""
    if unix is None:
        return f"http://{LOOPBACK}:{door.port}/#token={door.keys.token}"
    return (
        f"{unix}\nforward it, then open the link:  ssh -N -L {PORT}:{unix} HOST\n"
        f"http://localhost:{PORT}/#token={door.keys.token}"
    )
