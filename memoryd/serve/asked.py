"""What signals ask for, in their order, whether or not an event loop runs at the moment.

In: SIGTERM, SIGINT, SIGHUP. Out: one after another from `next`. From `kept` on no signal ends the process by
itself, also not between the loop of one configuration and the loop of the next.
"""

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator

import trio

HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Asked:
    """Signals that came and are not answered yet."""

    def __init__(self) -> None:
        self._numbers: deque[int] = deque()
        self._loop: trio.lowlevel.TrioToken | None = None
        self._wake = trio.Event()
        self._patience: threading.Timer | None = None

    async def next(self) -> int:
        """Return the next signal; of SIGHUPs that came together the last stands for all."""
        self._loop = trio.lowlevel.current_trio_token()
        try:
            while True:
                self._wake = trio.Event()
                if self._numbers:
                    number = self._numbers.popleft()
                    if number != signal.SIGHUP or not self._numbers:
                        return number
                else:
                    await self._wake.wait()
        finally:
            self._loop = None

    def stopping(self) -> None:
        """End the process at the next signal that asks for an end: every file is written whole or not at all."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: os._exit(1))
        if any(number != signal.SIGHUP for number in self._numbers):
            os._exit(1)

    @contextlib.contextmanager
    def within(self, seconds: float, *, ending: bool) -> Iterator[None]:
        """End the process as it is where what is done here takes `seconds` from when an end was asked for.

        `ending`: it is asked for already. A change of the configuration alone may take as long as the request
        that it waits for: a daemon that is told to read its configuration must not be gone instead.
        """
        patience = self._patience = threading.Timer(seconds, os._exit, (1,))
        patience.daemon = True
        if ending or any(number != signal.SIGHUP for number in self._numbers):
            self._hurry()
        try:
            yield
        finally:
            self._patience = None
            patience.cancel()

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Note signals instead of ending by them; in the main thread."""
        before = {number: signal.signal(number, self._hear) for number in HEARD}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, _: object) -> None:
        self._numbers.append(number)
        if number != signal.SIGHUP:
            self._hurry()
        if self._loop is not None:
            with contextlib.suppress(trio.RunFinishedError):
                self._loop.run_sync_soon(self._wake.set)

    def _hurry(self) -> None:
        """Let the time run, if it does not already: a signal may come between any two steps of `within`."""
        if self._patience is not None:
            with contextlib.suppress(RuntimeError):
                self._patience.start()
