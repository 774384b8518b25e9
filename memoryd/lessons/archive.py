"""Stale lessons leave retrieval for good once they have been stale long enough.

In: the time. Out: archived lessons. The age counts from when a lesson became stale; patterns never go.
"""

import apsw

from memoryd.lessons import settings

_DAY = 86_400_000


def archive(connection: apsw.Connection, now: int) -> int:
    """Archive what has been stale for `archive_after_days`; return how many, which a second run finds to be 0."""
    days = settings.archive_days(connection)
    if days is None:
        return 0
    before = connection.total_changes()
    connection.execute(
        "UPDATE lesson SET status = 'archived', archived_at = ?1, updated_at = ?1 "
        "WHERE status = 'stale' AND type <> 'pattern' AND archived_at IS NULL AND staled_at < ?2",
        (now, now - int(days * _DAY)),
    )
    done = connection.total_changes() - before
    settings.count(connection, "memories_archived", done)
    return done
