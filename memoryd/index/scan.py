"""The best of many rows, ranked from memory: without a look into the table of rows at each hit.

In: a read-only connection, the `Facts` of its index, an FTS5 expression, a loaded `Scorer`, what may be told of
untrusted rows. Out: scores, ids and classes of the best. FTS5 brings up each hit; its trust is a letter of a string
that the statement is given; its score is noted where it is among the best so far. Whoever asks joins those few with
their rows, under the condition on rows that every search has: nothing is told because of what is in memory.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from heapq import heapreplace
from typing import NamedTuple

import apsw

from memoryd.index.facts import OTHERS, TRUSTED, Facts
from memoryd.index.scope import Policy
from memoryd.index.score import Scorer

FUNCTION = "memoryd_note"

Noted = tuple[float, int, int]
"""A row's score, its class, its id."""

_TOLD: dict[Policy, str] = {
    "include": "",
    "owner-only": f"substr(:trust, f.rowid, 1) < x'{OTHERS:02x}'",
    "exclude": f"substr(:trust, f.rowid, 1) = x'{TRUSTED:02x}'",
}


class Find(NamedTuple):
    """What to look for: rows of `levels` that match, of which `policy` tells; the `depth` best.

    `newest`: by class, above 0, only so many of the rows read last are looked at.
    """

    levels: Sequence[int]
    match: str
    policy: Policy
    depth: int
    newest: Sequence[int]


class Scan:
    """The FTS5 function of one connection that notes the best rows."""

    def __init__(self, connection: apsw.Connection, facts: Facts, scorer: Scorer) -> None:
        """Register the function on `connection`; `scorer` is loaded before each `best`."""
        self._connection = connection
        self._facts = facts
        self._scorer = scorer
        self._start, note = _noter(facts)
        connection.register_fts5_function(FUNCTION, note)  # type: ignore[arg-type]  # called with one number; apsw types any

    def best(self, find: Find) -> list[Noted]:
        """Return the best rows, best first, with all that equal the last. Raises: apsw.Error."""
        found: list[Noted] = []
        floor = self._start(self._scorer, find.depth, found)
        newest = [find.newest[level] for level in find.levels]
        sql = _statement(tuple(find.levels), find.policy, tuple(map(bool, newest)))
        values: dict[str, object] = {"match": find.match}
        values |= {f"newest_{level}": many for level, many in zip(find.levels, newest, strict=True)}
        if _TOLD[find.policy]:
            values["trust"] = self._facts.trust
        self._connection.execute(sql, values).fetchall()
        least = floor()
        return sorted((row for row in found if row[0] >= least), reverse=True)


@lru_cache(maxsize=256)
def _statement(levels: tuple[int, ...], policy: Policy, newest: tuple[bool, ...]) -> str:
    """Return one statement for all classes, as `search.matches` has, so that it is bound once."""
    pairs = zip(levels, newest, strict=True)
    return " UNION ALL ".join(_of_class(level, policy, newest=few) for level, few in pairs)


def _of_class(level: int, policy: Policy, *, newest: bool) -> str:
    told, note = _TOLD[policy], f"{FUNCTION}(ft_{level}, {level})"
    sql = f"FROM ft_{level} f WHERE f.ft_{level} MATCH :match"
    if newest:
        told = f" AND {told}" if told else ""
        last = f"ORDER BY f.rowid DESC LIMIT :newest_{level}"
        return f"SELECT * FROM (SELECT {note} {sql}{told} {last})"
    # Only CASE says in which order conditions are tried. What notes is never true: there are no rows.
    chosen = f"CASE WHEN {told} THEN {note} END" if told else note
    return f"SELECT 1 {sql} AND {chosen}"


def _noter(
    facts: Facts,
) -> tuple[
    Callable[[Scorer, int, list[Noted]], Callable[[], float]],
    Callable[[apsw.FTS5ExtensionApi, int], None],
]:
    """Return what starts a scan, which returns what tells the least score of the best, and the function.

    It runs for every hit: names of a closure are read in half the time of attributes.
    """
    lengths = facts.lengths
    weights: list[tuple[int, int, float, float]] = []
    base = slope = floor = 0.0
    best: list[float] = []
    nowhere: list[Noted] = []
    keep = nowhere.append

    def start(scorer: Scorer, depth: int, found: list[Noted]) -> Callable[[], float]:
        nonlocal weights, base, slope, floor, best, keep
        base, slope, floor, best, keep = scorer.base, scorer.slope, 0.0, [0.0] * depth, found.append
        rest, weights = 0.0, []
        for phrase, column, weight in reversed(scorer.weights):
            weights.insert(0, (phrase, column, weight, rest))
            rest += weight
        return lambda: floor

    def note(api: apsw.FTS5ExtensionApi, level: int) -> None:
        nonlocal floor
        id_ = api.rowid
        below = base + slope * lengths[id_]
        offsets = api.phrase_column_offsets
        total = 0.0
        for phrase, column, weight, rest in weights:
            found = len(offsets(phrase, column))
            if found:
                total += weight * found / (found + below)
            if total + rest < floor:  # `rest` is more than all other phrases can add
                return
        if total > floor:
            heapreplace(best, total)
            floor = best[0]
        keep((total, level, id_))

    return start, note
