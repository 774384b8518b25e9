"""Nothing grows for ever: a call, and a row of the ledger, is kept for a year.

In: the time, at some session's idle. Out: once a day, what is older is deleted, and what was charged for it; lessons,
patterns, fixes and opinions stay, and so do the lifetime counters. A year is longer than any rule looks back: a
fix is looked for within a day, and rates and habits are those of the rows that are kept. Each row goes by its
own age, so that nothing above a reader decides how long it sees what it may.
"""

import apsw

KEPT_DAYS = 365
_DAY = 86_400_000
_LAST = "expired_at"


def expire(connection: apsw.Connection, now: int) -> int:
    """Delete what is a year old, at most once a day; return how many calls and rows of the ledger went."""
    found = connection.execute("SELECT value FROM metric WHERE key = ?", (_LAST,)).get
    if found is not None and now - int(found) < _DAY:
        return 0
    connection.execute("INSERT OR REPLACE INTO metric VALUES (?, ?)", (_LAST, now))
    before = connection.total_changes()
    oldest = now - KEPT_DAYS * _DAY
    connection.execute(
        "DELETE FROM call WHERE session IN (SELECT id FROM session) AND at < ?", (oldest,)
    )
    connection.execute("DELETE FROM injection WHERE at < ?", (oldest,))
    gone = connection.total_changes() - before
    if gone:
        connection.execute(
            "DELETE FROM charge WHERE NOT EXISTS (SELECT 1 FROM call c WHERE c.log = charge.log "
            "AND c.n = charge.n AND c.block = charge.block)"
        )
    connection.execute("DELETE FROM waiting WHERE at < ?", (oldest,))
    connection.execute(
        "DELETE FROM session WHERE last_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM call WHERE session = session.id)",
        (oldest,),
    )
    return gone
