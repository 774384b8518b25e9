"""Sessions and projects, counted over the rows that a reader may see; one without any does not exist.

In: a `Reader` in a snapshot, a `Scope`, filters, a page. Out: ``{sessions|projects, label, cursor}``,
latest first. A session's title is the first words of its owner that the reader may see.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from memoryd.clock import rfc3339
from memoryd.index.hits import Key, fetch, join
from memoryd.index.pages import Place, bound, seal, unseal
from memoryd.index.scope import Scope
from memoryd.index.search import Reader, levels, visible
from memoryd.index.where import Filters, Where
from memoryd.labels import LOWEST, Label
from memoryd.records import Kind

_TITLE = 120
"""Characters of a title."""


class Seen(NamedTuple):
    """What may be seen of one log in one class."""

    level: int
    log: int
    source: str
    session: str
    project: str | None
    agent: str | None
    rows: int
    first_ts: int | None
    last_ts: int | None
    untrusted: int

    @property
    def label(self) -> Label:
        """Return the join of these rows' labels."""
        return Label(self.level, bool(self.untrusted))

    @property
    def latest(self) -> int:
        """Return when it was touched last, for sorting; without a time, before everything."""
        return _NEVER if self.last_ts is None else self.last_ts


_NEVER = -(1 << 62)
Group = list[Seen]


def sessions(
    reader: Reader, scope: Scope, filters: Filters, *, limit: int = 50, cursor: str | None = None
) -> dict[str, object]:
    """Return ``{sessions, label, cursor}``.

    A session: ``{session, project, source, agent, rows, first_ts, last_ts, title, class, untrusted}``,
    project and agent as its latest log tells them. Raises: Conflict for a cursor that does not fit.
    """
    page = _Page(reader, scope, ("sessions", filters), cursor)
    told = page.shorten(_latest(reader, scope, filters, page.start, limit + 1), limit)
    listed: list[dict[str, object]] = []
    for group in told:
        latest = max(group, key=lambda log: log.latest)
        title, label = _title(reader, scope, group)
        page.labels += [label, *(log.label for log in group)]
        listed.append(
            {
                "session": latest.session,
                "project": latest.project,
                "source": latest.source,
                "agent": latest.agent,
                **_span(group),
                "title": title,
                **join(reader.classes, [label, *(log.label for log in group)]),
            }
        )
    return {"sessions": listed, **page.end()}


def projects(
    reader: Reader, scope: Scope, filters: Filters, *, limit: int = 50, cursor: str | None = None
) -> dict[str, object]:
    """Return ``{projects, label, cursor}``.

    A project: ``{project, sessions, rows, first_ts, last_ts, class, untrusted}``; null is the project of
    logs that name none. Raises: Conflict for a cursor that does not fit.
    """
    groups = _grouped(reader, scope, filters, lambda log: (log.project or "",))
    page = _Page(reader, scope, ("projects", filters), cursor)
    told = page.cut(groups, limit)
    listed: list[dict[str, object]] = []
    for group in told:
        page.labels += [log.label for log in group]
        listed.append(
            {
                "project": group[0].project,
                "sessions": len({(log.source, log.session) for log in group}),
                **_span(group),
                **join(reader.classes, (log.label for log in group)),
            }
        )
    return {"projects": listed, **page.end()}


def _grouped(
    reader: Reader, scope: Scope, filters: Filters, of: Callable[[Seen], tuple[str, ...]]
) -> list[Group]:
    """Return what may be seen of all logs by what `of` tells of them, touched last first."""
    groups: dict[tuple[str, ...], Group] = defaultdict(list)
    for log in _logs(reader, scope, visible(reader, scope, filters)):
        groups[of(log)].append(log)
    ordered = sorted(
        groups.items(), key=lambda item: (-max(log.latest for log in item[1]), item[0])
    )
    return [group for _, group in ordered]


def _latest(reader: Reader, scope: Scope, filters: Filters, start: int, most: int) -> list[Group]:
    """Return what may be seen of the logs of sessions `start` and on, touched last first.

    There may be a hundred thousand sessions: SQLite puts them in order, and only a page of them is made here.
    """
    seen = visible(reader, scope, filters)
    touched = " UNION ALL ".join(
        f"SELECT r.log, max(r.ts) AS ts FROM row_{level} r WHERE true{seen.sql} GROUP BY r.log"
        for level in levels(reader, scope)
    )
    sql = (
        f"SELECT json_group_array(DISTINCT l.id) FROM ({touched}) s JOIN log l ON l.id = s.log"
        " WHERE l.source <> 'notes' GROUP BY l.source, l.session"
        f" ORDER BY max(coalesce(s.ts, {_NEVER})) DESC, l.source, l.session LIMIT :most OFFSET :start"
    )
    values = {**seen.values, "most": most, "start": start}
    found = [str(logs) for (logs,) in reader.connection.execute(sql, values)]
    groups: dict[int, Group] = {}
    for logs in found:
        group: Group = []
        groups.update((int(log), group) for log in json.loads(logs))
    here = Where(
        f"{seen.sql} AND r.log IN (SELECT value FROM json_each(:logs))",
        {**seen.values, "logs": json.dumps(list(groups))},
    )
    for log in _logs(reader, scope, here):
        groups[log.log].append(log)
    return list({id(group): group for group in groups.values()}.values())


def _logs(reader: Reader, scope: Scope, seen: Where) -> Iterator[Seen]:
    for level in levels(reader, scope):
        sql = (
            f"SELECT {level}, l.id, l.source, l.session, l.project, l.agent,"
            " s.rows, s.first_ts, s.last_ts, s.untrusted"
            " FROM (SELECT r.log, count(*) AS rows, min(r.ts) AS first_ts, max(r.ts) AS last_ts,"
            f" max(r.untrusted) AS untrusted FROM row_{level} r WHERE true{seen.sql} GROUP BY r.log) s"
            " JOIN log l ON l.id = s.log WHERE l.source <> 'notes' ORDER BY l.source, l.root, l.log"
        )
        for columns in reader.connection.execute(sql, seen.values):
            yield Seen(*columns)


def _span(group: Sequence[Seen]) -> dict[str, object]:
    first = min((log.first_ts for log in group if log.first_ts is not None), default=None)
    last = max((log.last_ts for log in group if log.last_ts is not None), default=None)
    return {
        "rows": sum(log.rows for log in group),
        "first_ts": None if first is None else rfc3339(first),
        "last_ts": None if last is None else rfc3339(last),
    }


def _title(reader: Reader, scope: Scope, group: Iterable[Seen]) -> tuple[str | None, Label]:
    """Return the first owner's words of a session that may be seen, on one line, and their label."""
    seen = visible(reader, scope)
    firsts: list[tuple[int, int, int, Key]] = []
    for log in sorted({log.log for log in group}):
        for level in levels(reader, scope):
            sql = (
                f"SELECT r.ts, r.n, r.block, r.id FROM row_{level} r WHERE r.log = :log"
                f" AND r.kind = {Kind.OWNER:d}{seen.sql} ORDER BY r.n, r.block LIMIT 1"
            )
            values = {"log": log, **seen.values}
            firsts += [
                (_NEVER if ts is None else ts, n, block, Key(level, id_))
                for ts, n, block, id_ in reader.connection.execute(sql, values)
            ]
    for row in fetch(reader.connection, [key for *_, key in sorted(firsts)[:1]]):
        return " ".join(row.text[: 20 * _TITLE].split())[:_TITLE], row.label
    return None, LOWEST


class _Page:
    """One page of a listing: what of it is told, and how it goes on."""

    def __init__(self, reader: Reader, scope: Scope, question: object, cursor: str | None) -> None:
        self._reader = reader
        self._bound = bound(reader.generation, scope, question)
        self._told = unseal(reader.ids, cursor, self._bound).told
        self._more = False
        self.labels: list[Label] = []

    @property
    def start(self) -> int:
        """Return how many groups were told before this page."""
        return self._told

    def cut(self, groups: Sequence[Group], limit: int) -> Sequence[Group]:
        """Return the groups of this page, of all there are."""
        return self.shorten(groups[self._told :], limit)

    def shorten(self, groups: Sequence[Group], limit: int) -> Sequence[Group]:
        """Return the groups of this page, of those that were not told before."""
        self._told += limit
        self._more = limit < len(groups)
        return groups[:limit]

    def end(self) -> dict[str, object]:
        """Return the label of all that was told, and the cursor to what is left."""
        cursor = seal(self._reader.ids, Place(self._told), self._bound) if self._more else None
        return {"label": join(self._reader.classes, self.labels), "cursor": cursor}
