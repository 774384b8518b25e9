"""Rows on their way into the index, and what was counted while making them.

In: a row's place (`Source`), its label, its text. Out: in each class's tables, in batches. Ids are given
in the order of `add`, one counter over all classes. Text is masked here, once, for every row: nothing
else writes text into the index.
"""

from collections.abc import Iterable
from operator import concat, itemgetter
from typing import NamedTuple

import apsw
import msgspec

from memoryd.index.grams import column
from memoryd.labels import Label
from memoryd.records import Kind
from memoryd.redact import secrets_many

BATCH_CHARS = 4_000_000
_ROW_CHARS = 1_000
"""What a row counts for besides its text."""

_astuple = msgspec.structs.astuple


class Source(msgspec.Struct, frozen=True, gc=False):
    """Where a row came from: its log's row id, record number, block; what and when it is (ms)."""

    log: int
    n: int
    block: int
    kind: Kind
    ts: int | None
    tool: str | None = None


Row = tuple[Label, str, tuple[int, int, Kind, int | None, str | None]]
"""A row of a log: label, text, and its place: record number, block; what and when it is (ms), the tool."""


class Counts(msgspec.Struct):
    """What a piece of work did: records read, rows indexed, rows left out (above `max_class`), bad lines."""

    records: int = 0
    indexed: int = 0
    left_out: int = 0
    unreadable: int = 0

    def plus(self, other: "Counts") -> "Counts":
        """Return both together."""
        return Counts(
            self.records + other.records,
            self.indexed + other.indexed,
            self.left_out + other.left_out,
            self.unreadable + other.unreadable,
        )


class _Waiting(NamedTuple):
    """Rows of one class: ids, texts, and what stands in its `row_` table but the length."""

    ids: list[int]
    texts: list[str]
    rows: list[tuple[object, ...]]


class Rows:
    """Takes rows and writes them out class by class; `flush` before the transaction ends."""

    def __init__(
        self, connection: apsw.Connection, classes: int, next_id: int, *, hold: int = 0
    ) -> None:
        """Take rows for the tables of `classes` classes; the first one gets `next_id`.

        `hold`: the words of how many characters of text stay in memory over all classes, where FTS5's own
        bound (`hashsize`) lets them; 0: that bound alone counts.
        """
        self._connection = connection
        self._next = next_id
        self._hold, self._held = hold, [0] * classes
        self._waiting = [_Waiting([], [], []) for _ in range(classes)]
        self._room = BATCH_CHARS

    def add(self, source: Source, label: Label, text: str) -> None:
        """Take one row; writes out when enough are waiting. Raises: apsw.Error."""
        log, *place = _astuple(source)
        self.extend(log, [(label, text, tuple(place))])

    def extend(self, log: int, rows: Iterable[Row]) -> None:
        """Take rows of the log with the row id `log`; writes out when enough are waiting. Raises: apsw.Error."""
        waiting, number, room = self._waiting, self._next, self._room
        for (level, untrusted), text, place in rows:
            ids, texts, told = waiting[level]
            ids.append(number)
            texts.append(text)
            told.append((number, untrusted, log, *place))
            number += 1
            room -= len(text) + _ROW_CHARS
        self._next, self._room = number, room
        if room < 0:
            self.flush()

    def mark(self) -> int:
        """Return the id of the next row, to `forget` back to."""
        return self._next

    def forget(self, mark: int) -> None:
        """Drop the rows that wait, after the transaction they belong to was rolled back to `mark`."""
        self._clear()
        self._next = mark

    def flush(self) -> None:
        """Write out what waits. Raises: apsw.Error."""
        for level, waiting in enumerate(self._waiting):
            if waiting.ids:
                self._write(level, waiting)
        self._clear()

    def _clear(self) -> None:
        for waiting in self._waiting:
            for part in waiting:
                part.clear()
        self._room = BATCH_CHARS

    def _write(self, level: int, waiting: _Waiting) -> None:
        self._insert(level, waiting.ids, secrets_many(waiting.texts))
        sizes = self._connection.execute(
            f"SELECT sz FROM ft_{level}_docsize WHERE id >= ? ORDER BY id", (waiting.ids[0],)
        )
        lengths = map(_LENGTHS.__getitem__, map(itemgetter(0), sizes))
        self._connection.executemany(
            f"INSERT INTO row_{level}(id, untrusted, log, n, block, kind, ts, tool, dl) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            map(concat, waiting.rows, lengths),
        )
        if self._hold:
            self._relieve(level, sum(map(len, waiting.texts)))

    def _relieve(self, level: int, more: int) -> None:
        """Have the words of the class that holds most written out, once all of them hold too much."""
        held = self._held
        held[level] += more
        if sum(held) > self._hold:
            fullest = held.index(max(held))
            self._connection.execute(f"INSERT INTO ft_{fullest}(ft_{fullest}) VALUES ('flush')")
            held[fullest] = 0

    def _insert(self, level: int, ids: list[int], texts: list[str]) -> None:
        sql = f"INSERT INTO ft_{level}(rowid, text, grams) VALUES (?, ?, ?)"
        try:
            self._connection.executemany(sql, zip(ids, texts, map(column, texts), strict=True))
        except UnicodeEncodeError:
            # Half a surrogate pair, from arguments that were JSON in a string: no UTF-8 can hold it.
            self._connection.execute(f"DELETE FROM ft_{level} WHERE rowid >= ?", (ids[0],))
            clean = [storable(text) for text in texts]
            self._connection.executemany(sql, zip(ids, clean, map(column, clean), strict=True))


def storable(text: str) -> str:
    """Return `text` with every half of a surrogate pair replaced, so that it is UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def tokens(size: bytes) -> int:
    """Return the number of tokens that FTS5 noted for a row: a variable-length integer a column."""
    total = number = 0
    for byte in size:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            total, number = total + number, 0
    return total


class _Lengths(dict[bytes, tuple[int]]):
    """The number of tokens of every size that was met: few, and asked for with each row."""

    def __missing__(self, size: bytes) -> tuple[int]:
        if len(self) >= _MOST_LENGTHS:
            self.clear()
        length = self[size] = (tokens(size),)
        return length


_MOST_LENGTHS = 1 << 14
_LENGTHS = _Lengths()
