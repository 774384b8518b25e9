"""What common words add to the best rows, counted in the rows' own texts.

In: the matches of an answer in order, scored by the words whose lists were walked, and the plan with the others: so
common that walking their lists would cost more than all the rest, and that they hardly tell rows apart. Out: the
matches with the best `POOL` of them scored by all words, and sorted. A row behind keeps its score and place.
A function of rows that the reader may see, as the scores before it.
"""

import json
from collections.abc import Iterator, Sequence

import msgspec

from memoryd.index.score import saturation
from memoryd.index.search import Match, Reader
from memoryd.recall.plan import Plan

POOL = 128
"""Matches whose texts are looked at: some 10 microseconds each."""
_READ = 16_384
"""Letters of a text in which words are counted; more of them would add next to nothing."""


class Told(msgspec.Struct, frozen=True):
    """How long a row is, and its text, as far as it is read."""

    length: int
    text: str


def raised(reader: Reader, matches: Sequence[Match], way: Plan, average: float) -> list[Match]:
    """Return the matches with those of the pool scored by the late words too. Raises: apsw.Error."""
    late = list(zip(way.terms, way.weights, strict=True))[len(way.terms) - way.late :]
    told = dict(_texts(reader, matches[:POOL]))
    pool = []
    for match in matches[:POOL]:
        row = told[match.id]
        words = [word for _, _, word in reader.words(row.text.encode())]
        held = [words.count(term.tokens[0]) for term, _ in late]
        below = saturation(row.length, average)
        more = sum(
            weight * found / (found + below)
            for (_, weight), found in zip(late, held, strict=True)
            if found
        )
        pool.append(match._replace(first=match.first - more))
    return [*sorted(pool), *matches[POOL:]]


def _texts(reader: Reader, matches: Sequence[Match]) -> Iterator[tuple[int, Told]]:
    for level in sorted({match.level for match in matches}):
        sql = (
            f"SELECT r.id, r.dl, substr(f.text, 1, {_READ}) FROM json_each(:ids) j"
            f" CROSS JOIN row_{level} r ON r.id = j.value CROSS JOIN ft_{level} f ON f.rowid = r.id"
        )
        ids = json.dumps([match.id for match in matches if match.level == level])
        for id_, length, text in reader.connection.execute(sql, {"ids": ids}):
            yield id_, Told(length, text)
