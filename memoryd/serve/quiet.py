"""Which sessions have news and may come to rest, and when: a line that is kept, not made anew each time.

In: when logs were written, which sessions had news, what the lessons' database says. Out: sessions whose time has
come, the earliest first, and when the next one's will. There may be a hundred thousand, and after each batch it is
asked: so a session costs one look-up when its turn comes, and the whole table is read only where others may have
written to it. One thread.
"""

import heapq
from typing import NamedTuple

import apsw

_NEWS = "id <> '' AND (idle_at IS NULL OR idle_at < last_at)"
_ALL = f"SELECT id, last_at FROM session WHERE {_NEWS}"
_ONE = f"SELECT last_at FROM session WHERE id = ? AND {_NEWS}"


class Rested(NamedTuple):
    """A session that has been quiet for long enough, and its last news (ms)."""

    session: str
    last: int


class Quiet:
    """Sessions with news, by when they come to rest: `idle_after` ms after the last that was heard of them."""

    def __init__(self, connection: apsw.Connection, idle_after: int) -> None:
        """Know nothing yet; the first question reads the table."""
        self._connection, self._idle_after = connection, idle_after
        self._line: list[tuple[int, str]] = []  # never later than it is true
        self._written: dict[str, int] = {}
        self._touched: set[str] = set()
        self._sure = False

    def written(self, session: str, at: int) -> None:
        """Remember when a session's log was written last."""
        if at > self._written.get(session, 0):
            self._written[session] = at

    def touched(self, sessions: set[str]) -> None:
        """Take over the sessions that had news; the set is emptied."""
        self._touched |= sessions
        sessions.clear()

    def unsure(self) -> None:
        """Take that others may have written to the table, or that what was written was taken back."""
        self._sure = False

    def ripe(self, now: int, most: int) -> list[Rested]:
        """Take the sessions whose time has come, `most` of them; the caller lets them rest. Raises: apsw.Error."""
        self._gather()
        found: dict[str, Rested] = {}
        while len(found) < most and (first := self._first()) is not None and first[0] <= now:
            heapq.heappop(self._line)
            found.setdefault(first[1].session, first[1])
        return list(found.values())

    def due(self) -> int | None:
        """Return when (ms) the next session's time comes; None: nobody has news. Raises: apsw.Error."""
        self._gather()
        first = self._first()
        return None if first is None else first[0]

    def _first(self) -> tuple[int, Rested] | None:
        """Return who stands first, and when its time comes."""
        while self._line:
            at, session = self._line[0]
            last = self._news(session)
            if last is None:
                heapq.heappop(self._line)
            elif (due := self._due(session, last)) > at:
                heapq.heapreplace(self._line, (due, session))
            else:
                return at, Rested(session, last)
        return None

    def _gather(self) -> None:
        if not self._sure:
            self._line = [(self._due(str(session), int(last)), str(session))
                          for session, last in self._connection.execute(_ALL)]  # fmt: skip
            heapq.heapify(self._line)
            self._touched.clear()
            self._sure = True
        while self._touched:
            session = self._touched.pop()
            if (last := self._news(session)) is not None:
                heapq.heappush(self._line, (self._due(session, last), session))

    def _news(self, session: str) -> int | None:
        """Return when a session had its last news, if it has not rested since."""
        found = self._connection.execute(_ONE, (session,)).get
        return None if found is None else int(found)

    def _due(self, session: str, last: int) -> int:
        return max(last, self._written.get(session, 0)) + self._idle_after
