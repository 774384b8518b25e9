"""Nothing grows for ever: a call, and a row of the ledger, is kept for a year.

In: the time, by the clock of whoever runs this: a daemon's, or a transcript's where one is replayed; never the times
that stand in logs, of which one from the future would empty the tables. Out: once a day, what is older is deleted,
and what was charged for it; lessons, patterns, fixes and opinions stay, and so do the lifetime counters. A year is
longer than any rule looks back: a fix is looked for within a day, and rates and habits are those of the rows that
are kept. Each row goes by its own age, so that nothing above a reader decides how long it sees what it may.
"""

import apsw

from memoryd.lessons import calls

KEPT_DAYS = 365
_DAY = 86_400_000
_LAST = "expired_at"


def due(connection: apsw.Connection, now: int) -> bool:
    """Say whether a day has passed since `expire` looked last; a clock that was set back has it look again."""
    found = connection.execute("SELECT value FROM metric WHERE key = ?", (_LAST,)).get
    return found is None or not 0 <= now - int(found) < _DAY


def expire(connection: apsw.Connection, now: int) -> int:
    """Delete what is a year old, at most once a day; return how many calls and rows of the ledger went."""
    if not due(connection, now):
        return 0
    connection.execute("INSERT OR REPLACE INTO metric VALUES (?, ?)", (_LAST, now))
    oldest = now - KEPT_DAYS * _DAY
    gone = calls.trim(connection, oldest)
    connection.execute("DELETE FROM injection WHERE at < ?", (oldest,))
    gone += connection.changes()
    if gone:
        connection.execute(
            "DELETE FROM charge WHERE NOT EXISTS (SELECT 1 FROM failed c WHERE c.log = charge.log "
            "AND c.n = charge.n AND c.block = charge.block)"
        )
    connection.execute("DELETE FROM waiting WHERE at < ?", (oldest,))
    connection.execute(
        "DELETE FROM session WHERE last_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM failed WHERE session = session.id) "
        "AND NOT EXISTS (SELECT 1 FROM well WHERE session = session.id)",
        (oldest,),
    )
    return gone
