"""A session from its first record to its last: every row that a reader may see, in the order of its logs.

In: a `Reader` in a snapshot, a `Scope`, a session's name. Out: ``{records, label, cursor}``, a page at a time. A
session may lie in several logs, as after a resume; they follow each other by the time of their first row.
"""

from operator import itemgetter
from typing import NamedTuple

from memoryd.index.hits import MOST_BYTES, Key, Row, fetch, fitting, join, wire, with_text
from memoryd.index.pages import Place, bound, seal, unseal
from memoryd.index.scope import Scope
from memoryd.index.search import Reader, levels, visible
from memoryd.index.where import Values

_NEVER = 1 << 62


class Named(NamedTuple):
    """A log as it is told: its number here, and its path below its source's root."""

    id: int
    log: str


def records(
    reader: Reader,
    scope: Scope,
    session: str,
    source: str | None,
    *,
    limit: int,
    cursor: str | None,
) -> dict[str, object]:
    """Return a page of the session's rows with their texts, and of each its `block`, and the path of its `log`.

    A session of which nothing may be seen is one without records. Raises: Conflict for a cursor that does
    not fit.
    """
    here = bound(reader.generation, scope, ("records", session, source))
    told = unseal(reader.ids, cursor, here).told
    logs = _logs(reader, session, source)
    places = _places(reader, scope, logs)
    wanted = [key for _, key in places[told : told + limit]]
    rows = fitting(fetch(reader.connection, wanted), MOST_BYTES)
    names = {log.id: log.log for log in logs}
    after = told + len(rows)
    more = after < len(places) and bool(rows)
    return {
        "records": [
            _told(reader, scope, row, names[log])
            for row, (log, _) in zip(rows, places[told:], strict=False)
        ],
        "label": join(reader.classes, (row.label for row in rows)),
        "cursor": seal(reader.ids, Place(after), here) if more else None,
    }


def _told(reader: Reader, scope: Scope, row: Row, log: str) -> dict[str, object]:
    return with_text(wire(reader.ids, reader.classes, scope, row), row) | {
        "log": log,
        "block": row.block,
    }


def _logs(reader: Reader, session: str, source: str | None) -> list[Named]:
    sql = (
        "SELECT id, log FROM log WHERE session = :session AND source <> 'notes'"
        " AND (:source IS NULL OR source = :source) ORDER BY source, root, log"
    )
    values = {"session": session, "source": source}
    return [Named(*found) for found in reader.connection.execute(sql, values)]


def _places(reader: Reader, scope: Scope, logs: list[Named]) -> list[tuple[int, Key]]:
    """Return the log and the key of every visible row, log after log, each in its file's order."""
    seen = visible(reader, scope)
    whole: list[tuple[int, list[tuple[int, Key]]]] = []
    for log in logs:
        found: list[tuple[int, int, int | None, Key]] = []
        for level in levels(reader, scope):
            sql = f"SELECT r.n, r.block, r.ts, r.id FROM row_{level} r WHERE r.log = :log{seen.sql}"
            values: Values = {"log": log.id, **seen.values}
            for n, block, ts, id_ in reader.connection.execute(sql, values):
                found.append((n, block, ts, Key(level, id_)))
        found.sort(key=itemgetter(0, 1))
        first = min((ts for _, _, ts, _ in found if ts is not None), default=_NEVER)
        whole.append((first, [(log.id, key) for *_, key in found]))
    whole.sort(key=itemgetter(0))
    return [place for _, places in whole for place in places]
