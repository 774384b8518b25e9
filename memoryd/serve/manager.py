"""The manager that may have started this: systemd, or whoever speaks as it does (sd_notify(3)).

In: ``NOTIFY_SOCKET`` and ``WATCHDOG_USEC`` of the environment. Out: datagrams. It is never waited for, and that
nobody is there, or no longer, is no fault. The watchdog is fed only after a question through a socket of ours was
answered: a process that lives and does not serve is started again.
"""

import contextlib
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import msgpack
import structlog
import trio

from memoryd import clock
from memoryd.errors import TimedOut

_ASK: bytes = msgpack.packb([0, 0, "status", [{"deadline_ms": 5_000}]])
"""A question that goes through the loop, a connection, a reader and the index."""
_ANSWER_BYTES, _ERROR_BYTES = 4_096, 32
_ENOUGH = 4
"""Feedings a period: one may be late, and one may fail."""

log = structlog.get_logger()


def tell(what: str, env: Mapping[str, str] = os.environ) -> None:
    """Tell the manager, where there is one."""
    address = env.get("NOTIFY_SOCKET", "")
    if address.startswith("@"):
        address = "\0" + address[1:]
    with (
        contextlib.suppress(OSError, ValueError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
    ):
        manager.setblocking(False)
        manager.sendto(what.encode(), address)


def reloading() -> str:
    """Return what is told before another configuration is taken (sd_notify(3), RELOADING=1)."""
    return f"RELOADING=1\nMONOTONIC_USEC={int(clock.monotonic() * 1_000_000)}"


def period(env: Mapping[str, str], pid: int) -> float | None:
    """Return how many seconds the manager waits to be told that all is well; None: it does not.

    ``WATCHDOG_PID`` says for whom the variable is meant (sd_watchdog_enabled(3)).
    """
    told, meant = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not told.isdigit() or int(told) == 0 or (meant and meant != str(pid)):
        return None
    return int(told) / 1_000_000


async def feed(seconds: float, path: Path, say: Callable[[str], None] = tell) -> None:
    """Tell the manager again and again that we serve at `path`; not a word while we do not."""
    while True:
        due = trio.current_time() + seconds / _ENOUGH
        well = False
        with trio.move_on_at(due):
            well = await answers(path)
        if well:
            say("WATCHDOG=1")
        else:
            log.warning("a question through its own socket is not answered", path=str(path))
        await trio.sleep_until(due)


async def answers(path: Path) -> bool:
    """Say whether a question through the socket at `path` is answered before its deadline.

    Any other refusal is an answer: all places may be taken. The caller bounds the time.
    """
    try:
        async with await trio.open_unix_socket(str(path)) as stream:
            await stream.send_all(_ASK)
            said = await stream.receive_some(_ANSWER_BYTES)
    except (OSError, trio.BrokenResourceError):
        return False
    return bool(said) and TimedOut.code.encode() not in said[:_ERROR_BYTES]
