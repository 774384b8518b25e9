"""What a reader may see, and what it asks for, as conditions on rows.

In: a `Scope`, a request's `Filters` and the names of the projects inside both. Out: SQL over the alias
``r`` (a ``row_C`` table) with its bound values. No value of a client ever becomes SQL text.
"""

import json

import msgspec

from memoryd.index.scope import Scope
from memoryd.records import Kind

Values = dict[str, str | int | float | None]


class Filters(msgspec.Struct, frozen=True):
    """What a request narrows a search to; times in ms since 1970 UTC, `since` inside, `until` outside.

    `project` and `tool` are globs; `project` is also tried on a path's last part. A bound on time
    leaves out rows that have none.
    """

    kinds: tuple[Kind, ...] = ()
    session: str | None = None
    project: str | None = None
    source: str | None = None
    tool: str | None = None
    since: int | None = None
    until: int | None = None


class Where(msgspec.Struct, frozen=True):
    """A condition on the rows of any class: SQL that follows another condition, and its values."""

    sql: str
    values: Values


NOTHING_ASKED = Filters()


def where(scope: Scope, filters: Filters, projects: tuple[str, ...] | None) -> Where:
    """Return the condition for rows inside both; `projects` are the names to keep, None: every one."""
    parts = [_trust(scope), *_rows(filters), *_logs(filters, projects)]
    values: Values = {
        name: value
        for name in ("session", "source", "tool", "since", "until")
        if (value := getattr(filters, name)) is not None
    }
    if projects is not None:
        values["projects"] = json.dumps(projects)
    return Where("".join(f" AND {part}" for part in parts if part), values)


def _trust(scope: Scope) -> str:
    match scope.untrusted:
        case "include":
            return ""
        case "owner-only":
            return f"(r.untrusted = 0 OR r.kind = {Kind.OWNER:d})"
        case "exclude":
            return "r.untrusted = 0"


def _rows(filters: Filters) -> list[str]:
    parts = []
    if filters.kinds:
        parts.append(f"r.kind IN ({', '.join(f'{kind:d}' for kind in filters.kinds)})")
    if filters.tool is not None:
        parts.append("r.tool GLOB :tool")
    if filters.since is not None:
        parts.append("r.ts >= :since")
    if filters.until is not None:
        parts.append("r.ts < :until")
    return parts


def _logs(filters: Filters, projects: tuple[str, ...] | None) -> list[str]:
    parts = [
        f"{name} = :{name}" for name in ("session", "source") if getattr(filters, name) is not None
    ]
    if projects is not None:
        parts.append("coalesce(project, '') IN (SELECT value FROM json_each(:projects))")
    return [f"r.log IN (SELECT id FROM log WHERE {' AND '.join(parts)})"] if parts else []
