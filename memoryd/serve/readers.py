"""A few read-only connections to the index, shared by all requests; each request is one thread hop.

In: a function of a `Reader` and a `Deadline`. Out: what it returns, from a worker thread. While the index
file is replaced a gate is shut: new questions wait a moment and are then told `busy`, running ones end
or are ended, and every reader is closed, so that nobody holds the old file. `shut` and `open` are called
by the thread that replaces the file.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

import trio

from memoryd.db import Damaged, Deadline, close
from memoryd.errors import Busy, Cancelled, Unavailable
from memoryd.index.search import Reader

Answer = TypeVar("Answer")

READERS = 3
GATE_S = 0.25
"""How long a question waits for a gate that is shut."""
RUN_OUT_S = 2.0
"""How long questions that are running may go on once the gate is shut, and again once they are ended."""
_RETRY_MS = 250


class Readers:
    """The pool, and the gate of `index.swap`. It starts shut: `open` it once there is an index."""

    def __init__(self, make: Callable[[], Reader], count: int = READERS) -> None:
        """`make` opens one connection; it runs in the thread that needs it first."""
        self.damaged: Callable[[], None] = lambda: None
        """Called when a question finds that the index is broken."""
        self._make = make
        self._limiter = trio.CapacityLimiter(count)
        self._changed = threading.Condition()
        self._shut = True
        self._served = False
        self._idle: list[Reader] = []
        self._running: set[Deadline] = set()
        self._ended: set[Deadline] = set()

    async def read(self, work: Callable[[Reader], Answer], deadline: Deadline) -> Answer:
        """Run `work` in a worker thread with a reader of its own, until `deadline`.

        Raises: Unavailable before there is an index, Busy while it is replaced, and what `work` raises.
        """
        try:
            return await trio.to_thread.run_sync(self._run, work, deadline, limiter=self._limiter)
        except Damaged:
            self.damaged()
            raise

    def shut(self) -> None:
        """Hold back new questions, end the running ones, close every reader.

        Raises: Busy, with the gate open again, when a question does not end.
        """
        with self._changed:
            self._shut = True
            if not self._all_done(RUN_OUT_S):
                for deadline in self._running:
                    self._ended.add(deadline)
                    deadline.cancel()
                if not self._all_done(RUN_OUT_S):
                    self._shut = False
                    self._changed.notify_all()
                    raise Busy("a question to the index does not end", remedy="try again")
            while self._idle:
                close(self._idle.pop().connection)

    def withdraw(self) -> None:
        """Shut the gate until there is another index: what is there cannot be served. Raises: Busy."""
        self.shut()
        self._served = False

    def open(self) -> None:
        """Let questions go on, on new connections."""
        with self._changed:
            self._shut, self._served = False, True
            self._changed.notify_all()

    @property
    def served(self) -> bool:
        """Say whether there has been an index to ask."""
        return self._served

    def _all_done(self, seconds: float) -> bool:
        return self._changed.wait_for(lambda: not self._running, seconds)

    def _run(self, work: Callable[[Reader], Answer], deadline: Deadline) -> Answer:
        reader = self._take(deadline)
        try:
            return work(reader)
        except Cancelled:
            if deadline in self._ended:
                raise _replaced() from None
            raise
        finally:
            self._give(reader, deadline)

    def _take(self, deadline: Deadline) -> Reader:
        """Return a reader once the gate is open. Raises: Unavailable, Busy, and what `make` raises."""
        with self._changed:
            if not self._served:
                raise Unavailable(
                    "the index is being built", remedy="`bxctl status` shows how far it is"
                )
            if not self._changed.wait_for(lambda: not self._shut, GATE_S):
                raise _replaced()
            deadline.check()
            self._running.add(deadline)
            if self._idle:
                return self._idle.pop()
        try:
            return self._make()
        except BaseException:
            self._give(None, deadline)
            raise

    def _give(self, reader: Reader | None, deadline: Deadline) -> None:
        with self._changed:
            self._running.discard(deadline)
            self._ended.discard(deadline)
            if reader is not None:
                if self._shut:
                    close(reader.connection)
                else:
                    self._idle.append(reader)
            self._changed.notify_all()


def _replaced() -> Busy:
    return Busy("the index is being replaced", remedy="ask again", retry_after_ms=_RETRY_MS)
