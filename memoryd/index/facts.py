"""What ranking needs of each row, kept in memory: its length, and whether it is trusted.

In: read-only connections to one index, each in a snapshot. Out: length and trust by row id. An id names one row for
as long as its index exists (`schema.next_id`), and a row is never changed, only added and deleted. So what was read
once stays true in every later snapshot and for every reader of that index, and nothing here can be stale: a row that
is gone is found by no question, and one that is new has an id behind all that are known of its class.

Reading a million rows takes a third of a second, so it is done `A_TIME` rows a question, from the second on; an
answer is the same without. No class is read that was not asked about.
"""

import threading
from array import array
from collections.abc import Iterable
from typing import cast
from weakref import WeakValueDictionary

import apsw

from memoryd.records import Kind

A_TIME = 50_000
"""Rows that one question reads at most, some 20 ms."""
MOST_IDS = 4_000_000
"""Ids up to which rows are kept, five bytes each."""
TRUSTED, OWNERS, OTHERS = 1, 2, 3
"""A row's trust: trusted; the owner's own words in an untrusted session; any other untrusted row."""

_SQL = (
    f"SELECT id, dl, CASE WHEN untrusted = 0 THEN {TRUSTED} WHEN kind = {Kind.OWNER:d} THEN {OWNERS}"
    f" ELSE {OTHERS} END FROM row_{{level}} WHERE id > ? ORDER BY id LIMIT ?"
)


class Facts:
    """The rows of one index, as far as they are known; for all its readers, whatever threads they run in.

    The row `id` has its length at `lengths[id]`, its trust at `trust[id - 1]`, as SQL counts letters.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self.lengths = array("I", bytes(4))
        self.trust = bytearray()
        self._last: dict[int, int] = {}
        self._asked = False
        self._lock = threading.Lock()

    def ready(self, connection: apsw.Connection, levels: Iterable[int]) -> bool:
        """Say whether every row of `levels` is known, after reading some of those that are not.

        False also while another thread reads. Raises: apsw.Error.
        """
        if not self._asked:
            self._asked = True
            return False
        if not self._lock.acquire(blocking=False):
            return False
        try:
            room = A_TIME
            for level in levels:
                room -= self._read(connection, level, room)
                if room <= 0:
                    return False
            return len(self.trust) <= MOST_IDS
        finally:
            self._lock.release()

    def _read(self, connection: apsw.Connection, level: int, most: int) -> int:
        """Read up to `most` more rows of a class; return how many there were."""
        last = self._last.get(level, 0)
        if last > MOST_IDS:
            return 0
        found = connection.execute(_SQL.format(level=level), (last, most)).fetchall()
        if rows := cast("list[tuple[int, int, int]]", found):
            last = rows[-1][0]
            more = max(0, last - len(self.trust))
            self.lengths.frombytes(bytes(self.lengths.itemsize * more))
            self.trust.extend(bytes(more))
            for id_, length, trust in rows:
                self.lengths[id_] = length
                self.trust[id_ - 1] = trust
            self._last[level] = last
        return len(rows)


_known: "WeakValueDictionary[object, Facts]" = WeakValueDictionary()


def facts(index: object) -> Facts:
    """Return the facts of an index, the same to all who hold them; `index` names this one and no other."""
    return _known.setdefault(index, Facts())
