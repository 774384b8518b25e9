"""What memoryd and the service manager that started it tell each other: systemd's ways, in their public form.

In: the environment, whether the daemon is well. Out: datagrams on ``$NOTIFY_SOCKET`` (sd_notify(3)), and the
sockets that were opened for us (sd_listen_fds(3)). Without a manager nothing here does anything.
"""

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Self

import structlog
import trio

from memoryd import clock
from memoryd.errors import ConfigError

FIRST_FD = 3
"""Where the sockets start that are handed over (SD_LISTEN_FDS_START)."""
EXTEND_S, MOST_EXTENDED_S = 5.0, 1_800.0
"""How often a long start or change is told of, and for how long it may go on in all."""
STATE_S = 10.0
_LISTEN = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")

log = structlog.get_logger()


def tell(what: str) -> None:
    """Tell the manager; never waits, and nobody there is no fault."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith("@"):
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setblocking(False)
        manager.sendto(what.encode(), address)


class Patience:
    """Asks for more time while nothing is served yet, as in a migration, or not for the moment.

    A manager that wants to be told that all is well hears it meanwhile, though nobody can be asked:
    what is waited for is a write that goes on, and `MOST_EXTENDED_S` is the end of it.
    """

    def __init__(self) -> None:
        self._served = threading.Event()
        self._served.set()

    def begin(self, state: str) -> None:
        """Ask from now on, saying what goes on, until `end`."""
        self._served = threading.Event()
        threading.Thread(target=_ask, args=(self._served, state), name=state, daemon=True).start()

    def end(self) -> None:
        """Ask no more: questions are answered, or it is over."""
        self._served.set()

    def __enter__(self) -> Self:
        """Begin with the start of the daemon."""
        self.begin("starting")
        return self

    def __exit__(self, *_: object) -> None:
        """Ask no more."""
        self.end()


def _ask(served: threading.Event, state: str) -> None:
    alive = "WATCHDOG=1\n" if _watched() else ""
    every = min(EXTEND_S, _watched() or EXTEND_S)
    for _ in range(int(MOST_EXTENDED_S / every)):
        if served.wait(every):
            return
        tell(f"{alive}EXTEND_TIMEOUT_USEC={int(every * 4e6)}\nSTATUS={state}")


def handed_over(env: MutableMapping[str, str]) -> list[socket.socket]:
    """Return the listening sockets that the manager opened for this process, and take them out of `env`.

    Raises: ConfigError for anything but listening Unix stream sockets, reached by a path.
    """
    told = {name: env.pop(name, "") for name in _LISTEN}
    if told["LISTEN_PID"] != str(os.getpid()):
        return []
    count = told["LISTEN_FDS"]
    if not count.isdecimal():
        raise _wrong(f"LISTEN_FDS is {count!r}")
    return [_taken(number) for number in range(FIRST_FD, FIRST_FD + int(count))]


async def watchdog(alive: Callable[[], Awaitable[None]]) -> None:
    """Tell the manager that all is well as often as it wants to hear it, each time once `alive` has returned.

    `alive` may take until the next time; when it does not return or raises, nothing is told, and the manager
    ends what only seems to run.
    """
    every = _watched()
    while every:
        began = trio.current_time()
        try:
            with trio.fail_after(every):
                await alive()
        except Exception as error:  # noqa: BLE001 - whatever it is, this is not well
            log.warning("the daemon does not answer itself", fault=type(error).__name__)
        else:
            tell("WATCHDOG=1")
        await trio.sleep_until(began + every)


async def report(state: Callable[[], str]) -> None:
    """Keep the one line that the manager shows beside the service true."""
    told = ""
    while "NOTIFY_SOCKET" in os.environ:
        now = state()
        if now != told:
            tell(f"STATUS={now}")
            told = now
        await trio.sleep(STATE_S)


def reloading() -> None:
    """Tell that a new configuration is taken over; `READY=1` ends it."""
    tell(f"RELOADING=1\nMONOTONIC_USEC={int(clock.monotonic() * 1e6)}")


def _watched() -> float:
    """Return how often the manager wants to hear that all is well, in seconds; 0: it does not."""
    wanted, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not wanted.isdecimal() or pid not in ("", str(os.getpid())):
        return 0.0
    return int(wanted) / 2e6


def _taken(number: int) -> socket.socket:
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            raise _wrong(f"descriptor {number} is no socket")
    except OSError as error:
        raise _wrong(f"descriptor {number}: {error.strerror}") from None
    sock = socket.socket(fileno=os.dup(number))  # of its copy no program that is started gets one
    os.close(number)
    sock.setblocking(False)
    listens = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM or not listens:
        raise _wrong(f"descriptor {number} is no listening Unix stream socket")
    if not isinstance(sock.getsockname(), str) or not sock.getsockname():
        raise _wrong(f"descriptor {number} listens at no path")
    return sock


def _wrong(what: str) -> ConfigError:
    return ConfigError(
        f"the sockets handed over by the service manager cannot be used: {what}",
        remedy="see the .socket unit: ListenStream= takes paths of configured sockets alone",
    )
