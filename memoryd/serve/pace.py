"""A long history is read for the first time: how fast it goes, and by whom others are let go first.

In: after each look at the folders, how much is not read; after each turn, whether there is more. Out: the
pace for the owner's `status`, and `politely`, which runs the writer's thread as batch work meanwhile.

The thread is not niced: it holds Python's lock while it decodes, and one that waits for a processor with that
lock in its hand lets every question wait for it (docs/decisions/0025-a-polite-catch-up.md).
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

LARGE = 32 << 20
"""Bytes that are not read: from so many on it is a history, not a day's work."""
_FIRST_S = 0.5
"""Seconds after which a rate means something."""


class Rate(msgspec.Struct, frozen=True):
    """What a catch-up has come to: bytes a second, and the seconds it will take; None: too early to say."""

    bytes_per_s: int | None = None
    remaining_s: int | None = None


class Pace:
    """Follows one catch-up after another. `large`: one is under way that reads a history."""

    def __init__(self) -> None:
        self._began: tuple[float, int] | None = None

    @property
    def large(self) -> bool:
        """Say whether a history is being read."""
        return self._began is not None

    def looked(self, behind: int, read: int, now: float) -> None:
        """Take what a look at the folders found: bytes not read, bytes read since the start."""
        if self._began is None and behind >= LARGE:
            self._began = (now, read)

    def took(self, *, more: bool) -> None:
        """Take that a turn is over; with nothing more to read the catch-up is."""
        if not more:
            self._began = None

    def rate(self, behind: int, read: int, now: float) -> Rate:
        """Return how fast it goes, from what is not read and what was read by now; from any thread."""
        began = self._began
        if began is None or now - began[0] < _FIRST_S or read <= began[1]:
            return Rate()
        speed = (read - began[1]) / (now - began[0])
        return Rate(round(speed), round(behind / speed))


@contextmanager
def politely(wanted: bool) -> Iterator[None]:
    """Run this thread as batch work where it is `wanted`: whoever wakes up is let go first (sched(7))."""
    if not wanted:
        yield
        return
    thread = threading.get_native_id()
    with suppress(OSError):
        os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
