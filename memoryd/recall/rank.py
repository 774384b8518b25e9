"""The order of an answer: classes merged, logs kept from crowding it, sessions shown once.

In: the best matches of all classes. Out: those of one page, in an order that is the same for equal indexes and
blind to hidden rows. Pure.

A log has at most `A_LOG` hits in an answer, so that one long or hostile log cannot fill it. Answers are
dealt in rounds: the first holds every log's best three, the next round their next three; a page never spans
two rounds, and going on by cursor reaches every match in the end.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise

import msgspec

from memoryd.index.pages import Place
from memoryd.index.search import Match

A_LOG = 3


class Merged(msgspec.Struct, frozen=True):
    """The best matches of all classes in order; `all`: there are no others."""

    matches: list[Match]
    all: bool


class Page(msgspec.Struct, frozen=True):
    """The matches of one page, and where the answer goes on, if it does."""

    matches: list[Match]
    next: Place | None


class Dealing(msgspec.Struct, frozen=True):
    """How matches are dealt: at most `most` a round of each group that `of` tells; None: no limit.

    `rounds`: what was left out of a round comes in the next one; else never.
    """

    of: Callable[[Match], Hashable]
    most: int | None = None
    rounds: bool = False


def merge(found: Sequence[Match], depth: int) -> Merged:
    """Return the matches in order, as far as it is certain.

    Where there are `depth` of them there may be more, none better than the last; what is not better than
    that one is left out, so that a deeper look never changes what a shallower one told.
    """
    matches = sorted(found)
    if len(matches) < depth:
        return Merged(matches, all=True)
    return Merged(matches[: bisect_left(matches, matches[-1][:2])], all=False)


def tied(matches: Sequence[Match]) -> set[int]:
    """Return the logs whose matches are in no order but that of the index's own numbers."""
    logs: set[int] = set()
    for one, other in pairwise(matches):
        if one[0] == other[0] and one[1] == other[1] and one.log != other.log:
            logs |= {one.log, other.log}
    return logs


def settled(matches: Sequence[Match], names: Mapping[int, tuple[str, ...]]) -> list[Match]:
    """Return matches with ties in the order of their logs' `names`, then of their places in them."""
    return sorted(
        matches,
        key=lambda match: (*match[:2], names.get(match.log, ()), match.n, match.block),
    )


def deal(merged: Merged, dealing: Dealing, place: Place, limit: int) -> Page | None:
    """Return the page of `limit` matches from `place` on; None: that cannot be told without more."""
    dealt: dict[Hashable, int] = {}
    mine: list[Match] = []
    later = False
    until = place.told + limit
    for match in merged.matches:
        group = dealing.of(match)
        before = dealt.get(group, 0)
        turn = before // dealing.most if dealing.most else 0
        dealt[group] = before + 1
        if turn == place.round:
            mine.append(match)
            if len(mine) > until:
                return Page(mine[place.told : until], Place(until, place.round))
        later |= turn > place.round
    if not merged.all:
        return None
    going_on = Place(0, place.round + 1) if later and dealing.rounds else None
    return Page(mine[place.told :], going_on)
