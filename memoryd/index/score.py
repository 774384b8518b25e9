"""The score of a row: Okapi BM25 with frequencies given from outside, computed by SQLite hit by hit.

In: weights of the query's terms and the average length, both over what the reader may see. Out: one number
a row, higher is better. FTS5's own ``bm25()`` takes its frequencies from the one table it runs on, which
ruins the order where a subject sits in one class, and leaks where classes share a table; ours is told them.
"""

from collections.abc import Sequence
from math import log

import apsw

K1 = 1.2
B = 0.75
_LEAST_WEIGHT = 1e-6
FUNCTION = "memoryd_score"
MOST_COUNTED = 255

Counts = dict[int, bytes]
"""How often each of a question's terms stands in a row (`MOST_COUNTED` at most), by the row's id."""


def weight(rows: float, frequency: float) -> float:
    """Return what a term's presence is worth: its idf times (k1 + 1), never below a hair.

    Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009, 3.5; the
    constants and the floor are those of FTS5's bm25().
    """
    ratio = (rows - frequency + 0.5) / (frequency + 0.5)
    return (log(ratio) if ratio > 1 else 0.0) * (K1 + 1) or _LEAST_WEIGHT * (K1 + 1)


def saturation(length: int, average: float) -> float:
    """Return what is added to a term's frequency below the line: k1 scaled by the length."""
    return K1 * (1 - B + B * length / average)


class Scorer:
    """The FTS5 auxiliary functions of one connection, loaded with one query's weights at a time.

    `weights`: a phrase's number, the column where it stands, what it is worth; `base` and `slope`: what
    `saturation` is of a length.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        """Register the functions on `connection`."""
        self.counts: Counts = {}
        self.weights: tuple[tuple[int, int, float], ...] = ()
        self.base = self.slope = 0.0
        self._weight = 0.0
        for name, function in (
            (FUNCTION, self._many),
            (f"{FUNCTION}_one", self._one),
            (f"{FUNCTION}_counting", self._counting),
        ):
            connection.register_fts5_function(name, function)  # type: ignore[arg-type]  # called with one number each; apsw types any

    def load(
        self,
        weights: Sequence[float],
        first: int,
        average: float,
        *,
        columns: Sequence[int] = (),
        counting: bool = False,
    ) -> str:
        """Return the function's name once it scores by `weights` of the phrases from number `first` on.

        `average`: the length of a row in tokens. `columns`: where each phrase stands, by default all in the
        first. `counting`: rows scored from now on are told in `counts`.
        """
        self.counts = {}
        self.weights = tuple(
            (phrase, columns[place] if columns else 0, weight)
            for place, (phrase, weight) in enumerate(enumerate(weights, first))
        )
        self._weight = weights[0]
        self.base = K1 * (1 - B)
        self.slope = K1 * B / average
        if counting:
            return f"{FUNCTION}_counting"
        return f"{FUNCTION}_one" if len(weights) == 1 and first == 0 else FUNCTION

    # These run for every hit: no call but the one that asks, and max() would be one.

    def _one(self, api: apsw.FTS5ExtensionApi, length: int) -> float:
        found = api.inst_count
        return self._weight * found / (found + self.base + self.slope * length)

    def _many(self, api: apsw.FTS5ExtensionApi, length: int) -> float:
        below = self.base + self.slope * length
        offsets = api.phrase_column_offsets
        total = 0.0
        for phrase, column, weight_ in self.weights:
            found = len(offsets(phrase, column))
            if found:
                total += weight_ * found / (found + below)
        return total

    def _counting(self, api: apsw.FTS5ExtensionApi, length: int) -> float:
        below = self.base + self.slope * length
        offsets = api.phrase_column_offsets
        total = 0.0
        counts = bytearray(len(self.weights))
        for place, (phrase, column, weight_) in enumerate(self.weights):
            found = len(offsets(phrase, column))
            if found:
                counts[place] = found if found < MOST_COUNTED else MOST_COUNTED  # noqa: FURB136 (min() is a call)
                total += weight_ * found / (found + below)
        self.counts[api.rowid] = bytes(counts)
        return total
