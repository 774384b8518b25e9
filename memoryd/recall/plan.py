"""Which words find the rows and which only rank them: what keeps common words from costing a second.

In: the query's terms, how many visible rows hold each, how many rows there are and how long. Out: an FTS5
expression, the weights of its phrases, and whether all that match can be ranked. Pure.

The rarest words drive: only rows that hold one of them are looked at, and all words score on those rows.
Measured on 1M rows this keeps nDCG@10 at 0.97 to 1.0 at a fortieth of the cost of scoring every hit;
looking at the newest hits instead loses the answer. Frequencies are sums over the classes the reader may
see and over no more, so the plan and every score are functions of visible rows.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from memoryd.index.figures import Term
from memoryd.index.score import weight
from memoryd.recall.query import MOST_TERMS, Mode

LEAST_DRIVEN, MOST_DRIVEN = 2_000, 10_000
"""Bounds of how many rows the driving words may bring together, by their summed frequencies."""
LEAST_WIDE, MOST_WIDE = 9_000, 20_000
"""The same where many of the rows will not be told, as of a reader who wants no untrusted ones: of 69k rows 9,000
keep overlap@10 at 0.92 to 0.98 for five and twelve words where a quarter is left, 2,000 at 0.66 to 0.74."""
_DRIVEN_SHARE = 35
"""In between it is this part of all rows. For twelve words in 69k rows it keeps nDCG@10 at 0.998 and takes
a quarter of the time of 10,000, which a million rows need for the same."""
LONG = 12
"""Terms from which on `MOST_DRIVEN` grows with them: the more there are, the less the rarest ones tell of the answer.
Of a million rows of real text 10,000 cost questions of 24 words an MRR of 0.02 to 0.04, 20,000 half of that."""
WALKED = 100_000
"""Rows that the lists of words which only rank may have together; the commonest come late, which costs as much."""
NEWEST = 2_000
"""Rows that are ranked where nothing drives: those read last."""
_JOINED = 3


class Weighed(msgspec.Struct, frozen=True):
    """A term and how many visible rows of each class hold it."""

    term: Term
    held: tuple[int, ...]

    @property
    def frequency(self) -> int:
        """Return how many visible rows hold it."""
        return sum(self.held)


class Plan(msgspec.Struct, frozen=True):
    """How to look: `match` finds rows of `levels`, its phrases from number `first` on score by `weights`.

    `terms` are what the weights are of, in their order; `frequencies`: how many visible rows hold each. The
    last `late` of them stand in no expression: they are counted in the best rows' texts (`recall.late`).
    `most`: no more rows than so many match. `newest`: only so many rows can be ranked (0: all). `wider`: the
    plan to try where this one finds too few.
    """

    match: str
    levels: tuple[int, ...]
    terms: tuple[Term, ...]
    weights: tuple[float, ...]
    first: int
    frequencies: tuple[int, ...]
    most: int
    newest: int = 0
    partial: bool = False
    wider: "Plan | None" = None
    late: int = 0

    @property
    def listed(self) -> int:
        """Return how many of the terms score by their lists."""
        return len(self.terms) - self.late

    @property
    def columns(self) -> tuple[int, ...]:
        """Return in which column of the index each term stands."""
        return tuple(term.column for term in self.terms)


def plan(
    weighed: Sequence[Weighed],
    mode: Mode,
    rows: int,
    *,
    walk_all: bool = False,
    wide: bool = False,
) -> Plan | None:
    """Return how to look for the terms among `rows` visible rows; None: nothing can be found.

    `walk_all`: no word comes late. `wide`: many of the rows that are driven will not be told.
    """
    most = driven(rows, wide=wide)
    if mode == "all":
        return _every(weighed, rows, most) if all(one.frequency for one in weighed) else None
    held = sorted((one for one in weighed if one.frequency), key=lambda one: one.frequency)
    return _some(held[:MOST_TERMS], rows, most, walk_all=walk_all) if held else None


def _every(weighed: Sequence[Weighed], rows: int, most: int) -> Plan:
    """Plan for rows that hold every term."""
    matches = [one.term.match for one in weighed]
    found = min(one.frequency for one in weighed)
    return Plan(
        match=" AND ".join(matches),
        levels=_levels(weighed, all),
        terms=tuple(one.term for one in weighed),
        weights=_weights(weighed, rows),
        first=0,
        frequencies=tuple(one.frequency for one in weighed),
        most=found,
        newest=0 if found <= 2 * most else NEWEST,
    )


def _some(held: Sequence[Weighed], rows: int, most: int, *, walk_all: bool) -> Plan:
    """Plan for rows that hold any of the terms, given rarest first."""
    matches = [one.term.match for one in held]
    everything = " OR ".join(matches)
    terms = tuple(one.term for one in held)
    frequencies = tuple(one.frequency for one in held)
    whole = Plan(
        everything,
        _levels(held, any),
        terms,
        _weights(held, rows),
        0,
        frequencies,
        sum(frequencies),
    )
    driving = _driving(held, stretched(most, rows, len(held)))
    if driving == len(held):
        return whole
    if driving:
        return _driven(held, driving, rows, walk_all=walk_all)
    wider = replace(whole, newest=NEWEST)
    if len(held) == 1:
        return wider
    joined = held[:_JOINED]
    return replace(
        wider,
        match=f"({' AND '.join(matches[: len(joined)])}) AND ({everything})",
        levels=_levels(joined, all),
        first=len(joined),
        partial=True,
        wider=wider,
    )


def _driven(held: Sequence[Weighed], driving: int, rows: int, *, walk_all: bool) -> Plan:
    """Plan for rows that hold one of the first `driving` terms, given rarest first."""
    most = sum(one.frequency for one in held) if walk_all else WALKED
    near, late = _walked(held[driving:], most)
    ordered = [*held[:driving], *near, *late]
    matches = [one.term.match for one in ordered[: driving + len(near)]]
    found = " OR ".join(matches[:driving])
    return Plan(
        match=f"({found}) AND ({' OR '.join(matches)})" if near else found,
        levels=_levels(held[:driving], any),
        terms=tuple(one.term for one in ordered),
        weights=_weights(ordered, rows),
        first=driving if near else 0,
        frequencies=tuple(one.frequency for one in ordered),
        most=sum(one.frequency for one in held[:driving]),
        late=len(late),
    )


def _walked(rest: Sequence[Weighed], most: int) -> tuple[list[Weighed], list[Weighed]]:
    """Return the terms whose lists are walked, `most` rows together, and the words that come late."""
    near: list[Weighed] = []
    late: list[Weighed] = []
    walked = 0
    for one in rest:
        walked += one.frequency
        # A phrase, a prefix or a pair of letters is not one word of the text.
        plain = one.term.word and not one.term.column
        (late if plain and walked > most else near).append(one)
    return near, late


def _levels(terms: Sequence[Weighed], needed: Callable[[Iterable[int]], bool]) -> tuple[int, ...]:
    """Return the classes where a row can match `any` or `all` of the terms."""
    by_class = zip(*(one.held for one in terms), strict=True)
    return tuple(level for level, held in enumerate(by_class) if needed(held))


def driven(rows: int, *, wide: bool) -> int:
    """Return how many rows the driving words may bring together; the rarest one alone, twice as many."""
    least, most = (LEAST_WIDE, MOST_WIDE) if wide else (LEAST_DRIVEN, MOST_DRIVEN)
    return max(least, min(most, rows // _DRIVEN_SHARE))


def stretched(most: int, rows: int, terms: int) -> int:
    """Return how many rows may be driven by so many terms where for few ones it is `most`."""
    return max(most, min(most * max(terms, LONG) // LONG, rows // _DRIVEN_SHARE))


def _driving(held: Sequence[Weighed], most: int) -> int:
    """Return how many of the terms, rarest first, drive."""
    if held[0].frequency > 2 * most:
        return 0
    count, brought = 1, held[0].frequency
    for one in held[1:]:
        brought += one.frequency
        if brought > most:
            break
        count += 1
    return count


def _weights(weighed: Sequence[Weighed], rows: int) -> tuple[float, ...]:
    return tuple(weight(rows, one.frequency) for one in weighed)


def shares(sizes: Sequence[int], total: int) -> list[int]:
    """Share `total` rows out among classes by their sizes, at least one to each; 0 is all to all."""
    everything = sum(sizes) or 1
    return [max(1, total * size // everything) if total else 0 for size in sizes]
