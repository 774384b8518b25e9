"""Devices of ranking that are not part of memoryd: built here to be measured, each a setting of `bench.recall`.

In: nothing. Out: settings: context managers inside which questions are answered with the device. All of them
change the order of what was found, none what is found; all are functions of rows that the reader may see.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from memoryd.index.hits import Key, fetch
from memoryd.index.search import Match
from memoryd.recall import question
from memoryd.recall.plan import Plan
from memoryd.recall.question import Asked
from memoryd.recall.rank import Merged
from memoryd.recall.support import POOL

_WORD = re.compile(r"\w+")

Change = Callable[[Asked, Merged], list[Match]]
"""From a question and what was found, best first, to the first `POOL` of that in another order."""


@contextmanager
def changing(change: Change) -> Iterator[None]:
    """Answer with the best matches in another order, made after the session's part is added."""
    exact = question._lifted  # noqa: SLF001 (where the order is made is no part of the library)

    def changed(asked: Asked, way: Plan, merged: Merged) -> Merged:
        found = exact(asked, way, merged)
        return Merged([*change(asked, found), *found.matches[POOL:]], found.all)

    with mock.patch.object(question, "_lifted", changed):
        yield


def folded(alike: float) -> Callable[[Asked, Merged], list[Match]]:
    """Return a change that puts rows which nearly repeat a better one of another log behind all others.

    Near: of the different runs of four words of both, a share of `alike` stands in both (Broder, 1997).
    """

    def once(asked: Asked, merged: Merged) -> list[Match]:
        pool = merged.matches[:POOL]
        rows = fetch(asked.reader.connection, [Key(match.level, match.id) for match in pool])
        kept: list[tuple[int, frozenset[tuple[str, ...]]]] = []
        first, behind = [], []
        for match, row in zip(pool, rows, strict=True):
            runs = _runs(row.text)
            again = any(log != match.log and _share(runs, other) >= alike for log, other in kept)
            (behind if again else first).append(match)
            kept += [] if again else [(match.log, runs)]
        return [*first, *behind]

    return once


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = _WORD.findall(text[:4_000].lower())
    return frozenset(tuple(words[at : at + 4]) for at in range(max(1, len(words) - 3)))


def _share(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    if min(len(one), len(other)) * 2 < max(len(one), len(other)):
        return 0.0
    return len(one & other) / len(one | other)
