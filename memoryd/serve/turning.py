"""One turn of the thread that writes the index, and who is told what it read.

In: an open index. Out: `Turn`: what was read, and how the index is after it.
"""

from typing import NamedTuple, Protocol

import trio

from memoryd.clock import monotonic
from memoryd.index import Counts, Index
from memoryd.index.fresh import Fresh
from memoryd.index.heard import Told as Heard
from memoryd.serve.pace import politely


class Listener(Protocol):
    """Who learns from the records that the index reads."""

    turn: trio.Lock
    """Held by whoever of both works: two threads that hand the interpreter to and fro cost more than their work."""

    def hear(self, told: list[Heard], *, more: bool) -> None:
        """Take over what was read and committed. `more`: there is more to read at once."""

    def look(self, *, all_read: bool = False) -> None:
        """See that nothing was missed; `all_read`: everything on the disk is read."""


class Turn(NamedTuple):
    """What one call of the writer's thread came to, and how the index is after it."""

    counts: Counts
    more: bool
    wait: float | None
    ready: bool
    why: str
    generation: str
    fault: str
    fresh: list[Fresh]
    told: list[Heard]
    behind: tuple[int, int] | None
    """After a look at all folders: bytes that are not read, bytes that were read."""
    looked: float = 0.0
    """Seconds that a look at all folders took."""


def take(open_index: Index, sweep: bool, followed: bool, large: bool = False) -> Turn:
    """Look at all folders if it is time, read what has changed, tell how things are.

    `followed`: somebody wants to know what came in. `large`: a history is being read.
    """
    behind, looked = None, 0.0
    if sweep:
        began = monotonic()
        open_index.sweep()
        looked = monotonic() - began
        status = open_index.status()
        behind = status.lag_bytes, status.read_bytes
    mark = open_index.mark() if followed else 0
    with politely(large):
        counts, more = open_index.catch_up()
    return Turn(
        counts,
        more,
        open_index.wait(),
        open_index.ready,
        open_index.why,
        open_index.generation,
        open_index.fault,
        open_index.fresh(mark) if followed and counts.indexed else [],
        open_index.take_told(),
        behind,
        looked,
    )
