"""From calls that were seen to rows: each once, whatever the order in which logs are read.

In: an open transaction and `Seen`. Out: a row of `call`; for a failure a lesson (`reflect`), for a success a
fix where there is proof (`causal`). Everything happens in the one call, so that no stamp can come too late.
"""

import apsw

from memoryd.labels import Label
from memoryd.lessons import causal, reflect, settings
from memoryd.lessons.failure import declined, describe, failed
from memoryd.lessons.fingerprint import of_error
from memoryd.lessons.pairing import Open, Pairing, Seen

_MINUTE = 60_000


def observe(connection: apsw.Connection, seen: Seen) -> bool:
    """Write down a call and what it teaches. Returns: False for one that is known."""
    failure, error = None, None
    if failed(seen.tool, seen.outcome, seen.text):
        failure = describe(seen.tool, seen.outcome, seen.text)
        error = of_error(list(failure.lines) or [seen.tool, seen.summary], seen.project)
    _touch(connection, seen)
    if failure is None and _repeated(connection, seen):
        settings.count(connection, "tool_calls_deduped")
    elif not _insert(connection, seen, error, failure.kind if failure else None):
        return False
    if failure is not None and error is not None:
        if failure.first_line and not declined(seen.text):
            reflect.reflect(connection, seen, failure, error)
        causal.link_later(connection, seen, error)
    else:
        causal.link(connection, causal.Success.of(seen))
    return True


def load(connection: apsw.Connection, pairing: Pairing) -> int:
    """Give `pairing` the calls that wait in its log; return the number of the next record to observe."""
    for call, *told in connection.execute(
        "SELECT call, n, block, tool, summary, fingerprint, at, level, untrusted FROM waiting "
        "WHERE log = ?",
        (pairing.log,),
    ):
        n, block, tool, summary, fingerprint, at, level, untrusted = told
        label = Label(level, bool(untrusted))
        pairing.waiting[call] = Open(n, block, tool, summary, fingerprint, at, label)
    found = connection.execute("SELECT n FROM progress WHERE log = ?", (pairing.log,)).get
    return 0 if found is None else int(found)


def save(connection: apsw.Connection, pairing: Pairing, n: int) -> None:
    """Store what waits, and that the records before `n` are done; in the transaction of their rows."""
    connection.execute("DELETE FROM waiting WHERE log = ?", (pairing.log,))
    connection.executemany(
        "INSERT INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (pairing.log, call, o.n, o.block, o.tool, o.summary, o.fingerprint, o.at, *o.label)
            for call, o in pairing.waiting.items()
        ],
    )
    connection.execute(
        "INSERT INTO progress VALUES (?, ?) ON CONFLICT DO UPDATE SET n = max(n, excluded.n)",
        (pairing.log, n),
    )


def _insert(connection: apsw.Connection, seen: Seen, error: str | None, kind: str | None) -> bool:
    before = connection.total_changes()
    connection.execute(
        "INSERT OR IGNORE INTO call(log, n, block, session, project, tool, summary, fingerprint, ok, at, "
        "error, error_type, level, untrusted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (seen.log, seen.n, seen.block, seen.session, seen.project, seen.tool, seen.summary,
         seen.fingerprint, error is None, seen.at, error, kind, *seen.label),
    )  # fmt: skip
    return connection.total_changes() > before


def _touch(connection: apsw.Connection, seen: Seen) -> None:
    connection.execute(
        "INSERT INTO session(id, project, last_at) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET last_at = max(last_at, excluded.last_at)",
        (seen.session, seen.project, seen.at),
    )


def _repeated(connection: apsw.Connection, seen: Seen) -> bool:
    """Say whether the setting leaves this success out: the same call within the same minute."""
    if not settings.on(connection, "tool_calls_dedup_enabled"):
        return False
    minute = seen.at - seen.at % _MINUTE
    found = connection.execute(
        "SELECT 1 FROM call WHERE fingerprint = ? AND project = ? AND ok = 1 AND session = ? "
        "AND at >= ? AND at < ? LIMIT 1",
        (seen.fingerprint, seen.project, seen.session, minute, minute + _MINUTE),
    ).get
    return found is not None
