"""How many rows there are, how long they are, and how many hold a term: of what a reader may see only.

In: a read-only connection in a snapshot. Out: sizes and document frequencies a class, from which
`recall.plan` makes weights. Every figure is asked of one class's own tables, so that a sum over the
classes up to a clearance depends on no hidden row, and neither does a score, an order or a choice of
words. A reader that is limited to some projects shares its tables with others: for it the rows inside
are counted one by one.

Figures are kept while the index stands still (``PRAGMA data_version``), each under its class.
"""

import apsw
import msgspec

from memoryd.index.where import Where

MOST_COUNTED = 20_000
"""A phrase or prefix is counted no further: beyond this nothing is planned by its exact number."""
MOST_ROWS = 1_000
"""Rows of a log are counted no further."""
_MOST_KEPT = 20_000


class Term(msgspec.Struct, frozen=True):
    """One thing to look for: the FTS5 string that finds it, and the index's tokens that it becomes.

    `parts`: the words of an identifier, to look for beside it or in its stead. `column`: which one of the
    index it stands in, 0 the text, 1 the `grams`.
    """

    match: str
    tokens: tuple[str, ...]
    prefix: bool = False
    parts: tuple["Term", ...] = ()
    column: int = 0

    @property
    def word(self) -> bool:
        """Say whether the term is one whole word, whose rows the vocabulary counts."""
        return len(self.tokens) == 1 and not self.prefix


class Size(msgspec.Struct, frozen=True):
    """How many rows a class has, and how many tokens are in them."""

    rows: int
    tokens: int


class Figures:
    """The figures of one connection; call `settle` at the start of every snapshot."""

    def __init__(self, connection: apsw.Connection) -> None:
        """Know nothing yet."""
        self._connection = connection
        self._version = -1
        self._sizes: dict[tuple[object, ...], Size] = {}
        self._counts: dict[tuple[object, ...], int] = {}
        self._rows: dict[tuple[int, int], int] = {}
        self._projects: tuple[str, ...] | None = None

    def settle(self) -> None:
        """Forget everything if another connection has committed since the last snapshot."""
        version = int(str(self._connection.pragma("data_version")))
        if version != self._version or len(self._counts) + len(self._rows) > 2 * _MOST_KEPT:
            self._version = version
            self._sizes.clear()
            self._counts.clear()
            self._rows.clear()
            self._projects = None

    def size(self, level: int, inside: Where | None) -> Size:
        """Return the size of one class, or of its rows `inside`."""
        key = (level, *_key(inside))
        if key not in self._sizes:
            self._sizes[key] = self._counted(level, inside) if inside else self._averages(level)
        return self._sizes[key]

    def frequency(self, level: int, term: Term, inside: Where | None) -> int:
        """Return how many rows of one class, or of its rows `inside`, hold `term`.

        Exact, but for a phrase or prefix in more than `MOST_COUNTED` rows of a reader of everything:
        then an upper bound for a phrase (its rarest word), a lower one for a prefix.
        """
        key = (level, term.match, *_key(inside))
        if key not in self._counts:
            self._counts[key] = self._frequency(level, term, inside)
        return self._counts[key]

    def rows(self, level: int, log: int) -> int:
        """Return how many rows of one class a log has, `MOST_ROWS` at most."""
        key = (level, log)
        if key not in self._rows:
            sql = f"SELECT count(*) FROM (SELECT 1 FROM row_{level} WHERE log = :log LIMIT :most)"
            self._rows[key] = self._count(sql, {"log": log, "most": MOST_ROWS})
        return self._rows[key]

    def projects(self) -> tuple[str, ...]:
        """Return the projects that logs name, to try globs on; a log without one counts as ``""``."""
        if self._projects is None:
            sql = "SELECT DISTINCT coalesce(project, '') FROM log"
            self._projects = tuple(sorted(str(name) for (name,) in self._connection.execute(sql)))
        return self._projects

    def _averages(self, level: int) -> Size:
        # FTS5 keeps its row count and each column's total length in record 1, as varints.
        block = self._connection.execute(f"SELECT block FROM ft_{level}_data WHERE id = 1").get
        numbers = _varints(block) if isinstance(block, bytes) else []
        return Size(numbers[0], sum(numbers[1:])) if len(numbers) == 3 else Size(0, 0)

    def _counted(self, level: int, inside: Where) -> Size:
        sql = f"SELECT count(*), sum(r.dl) FROM row_{level} r WHERE true{inside.sql}"
        rows, tokens = next(iter(self._connection.execute(sql, inside.values)))
        return Size(int(rows), int(tokens or 0))

    def _frequency(self, level: int, term: Term, inside: Where | None) -> int:
        if inside is not None:
            return self._count(
                f"SELECT count(*) FROM ft_{level} f CROSS JOIN row_{level} r ON r.id = f.rowid"
                f" WHERE f.ft_{level} MATCH :match{inside.sql}",
                {"match": term.match, **inside.values},
            )
        if term.word:
            return self._word(level, term.tokens[0])
        found = self._count(
            f"SELECT count(*) FROM (SELECT 1 FROM ft_{level} WHERE ft_{level} MATCH :match LIMIT :most)",
            {"match": term.match, "most": MOST_COUNTED + 1},
        )
        if found > MOST_COUNTED and not term.prefix:
            return min(self._word(level, token) for token in term.tokens)
        return found

    def _word(self, level: int, token: str) -> int:
        return self._count(f"SELECT doc FROM vocab_{level} WHERE term = :term", {"term": token})

    def _count(self, sql: str, values: dict[str, str | int | float | None]) -> int:
        return int(self._connection.execute(sql, values).get or 0)


def _key(inside: Where | None) -> tuple[object, ...]:
    return () if inside is None else (inside.sql, *inside.values.items())


def _varints(block: bytes) -> list[int]:
    """Decode SQLite's variable-length integers (https://sqlite.org/fileformat2.html#varint)."""
    numbers, value, length = [], 0, 0
    for byte in block:
        length += 1
        last = length == 9 or byte < 0x80
        value = value << 8 | byte if length == 9 else value << 7 | byte & 0x7F
        if last:
            numbers.append(value)
            value = length = 0
    return numbers
