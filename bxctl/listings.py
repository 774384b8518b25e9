"""`bxctl memory sessions`, `projects` and `stats`: what is there to be asked about.

In: filters. Out: tables for a person, one JSON object a line for a program (docs/json-output.md). All
count visible rows only.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bxctl import output, safe, times, views
from bxctl.context import Context, Memory
from bxctl.filters import FILTERS, KINDS, wire
from bxctl.grammar import Command, Count, Option
from bxctl.layout import BLANK, Cell, Grid, Para, Part, Span, cell, joined
from memoryd import clock

SESSION_VERSION = 1
PROJECT_VERSION = 1
STATS_VERSION = 1
PAGE = 1_000
"""Entries asked for at once."""
LISTED = 50
"""Entries listed for a person who names no `--limit`; a program gets all."""


def sessions(context: Context, *, limit: int | None, **options: Any) -> int:
    """Print the sessions that hold anything visible, the latest first; 1 when there are none."""
    with context.anybody() as memory:
        found = _entries(memory, "sessions", wire(options))
        if context.out.json:
            return _lines(context, "session", SESSION_VERSION, found, limit)
        heads = ("last", "class", "rows", "session, project, first words")
        rows, more = _first(found, limit)
        table: list[tuple[Cell, ...]] = [
            (*_common(row, memory), cell(f"{row['rows']:,}"), _session(row)) for row in rows
        ]
    return _table(context, Grid(heads, table, frozenset({2}), give=frozenset({3})), more)


def _session(row: dict[str, Any]) -> Cell:
    about = joined(
        (cell(safe.line(row["project"] or "")), cell(safe.line(row["title"] or ""), "dim"))
    )
    return (*cell(safe.line(row["session"]), "id"), *cell("\n"), *about)


def projects(context: Context, *, limit: int | None, **options: Any) -> int:
    """Print the projects that hold anything visible, the latest first; 1 when there are none."""
    with context.anybody() as memory:
        found = _entries(memory, "projects", wire(options))
        if context.out.json:
            return _lines(context, "project", PROJECT_VERSION, found, limit)
        heads = ("last", "class", "rows", "sessions", "project")
        rows, more = _first(found, limit)
        table: list[tuple[Cell, ...]] = [
            (
                *_common(row, memory),
                cell(f"{row['rows']:,}"),
                cell(f"{row['sessions']:,}"),
                cell(safe.line(row["project"] or "(none named)"), "id"),
            )
            for row in rows
        ]
    return _table(context, Grid(heads, table, frozenset({2, 3}), give=frozenset({4})), more)


def _common(row: dict[str, Any], memory: Memory) -> tuple[Cell, Cell]:
    last = times.said(views.moment(row["last_ts"]), clock.now_ms())
    return cell(last), views.label(row, memory.server["classes"])


def _entries(memory: Memory, method: str, args: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for page in memory.pages(method, **args, limit=PAGE):
        yield from page[method]


def _first(found: Iterator[dict[str, Any]], limit: int | None) -> tuple[list[dict[str, Any]], bool]:
    """Return as many entries as are to be shown, and whether there are more."""
    rows = [row for _, row in zip(range(limit or LISTED), found, strict=False)]
    return rows, next(found, None) is not None


def _lines(
    context: Context, form: str, version: int, found: Iterable[dict[str, Any]], limit: int | None
) -> int:
    """Print entries as JSON, one a line."""
    many = 0
    for many, row in enumerate(found, 1):
        context.out.value(form, version, row)
        if many == limit:
            break
    return 0 if many else 1


def _table(context: Context, grid: Grid, more: bool) -> int:
    if not grid.rows:
        output.say("nothing found; try fewer filters, or look at `bxctl status`")
        return 1
    context.out.show([grid])
    if more:
        output.say(f"the latest {len(grid.rows)}; more with --limit")
    return 0


def stats(context: Context, **options: Any) -> int:
    """Print how much there is, of what kind and class, from where; 1 when there is nothing."""
    with context.anybody() as memory:
        told = counted(memory, wire(options))
    if context.out.json:
        context.out.value("stats", STATS_VERSION, told)
    elif told["rows"]:
        context.out.show(_stats_parts(told, memory.server["classes"], clock.now_ms()))
    else:
        output.say("nothing found; try fewer filters, or look at `bxctl status`")
    return 0 if told["rows"] else 1


def counted(memory: Memory, args: dict[str, Any]) -> dict[str, Any]:
    """Return counts of visible rows that the filters let through, by source, class, kind and trust."""
    sources: dict[str, dict[str, Any]] = {}
    first: list[int] = []
    last: list[int] = []
    for row in _entries(memory, "sessions", args):
        source = sources.setdefault(
            row["source"], {"source": row["source"], "sessions": 0, "rows": 0}
        )
        source["sessions"] += 1
        source["rows"] += row["rows"]
        first += filter(None, [views.moment(row["first_ts"])])
        last += filter(None, [views.moment(row["last_ts"])])
    rows = sum(source["rows"] for source in sources.values())
    return {
        "rows": rows,
        "sessions": sum(source["sessions"] for source in sources.values()),
        "projects": sum(1 for _ in _entries(memory, "projects", args)),
        "first_ts": clock.rfc3339(min(first)) if first else None,
        "last_ts": clock.rfc3339(max(last)) if last else None,
        "untrusted": rows - _rows(memory, {**args, "untrusted": "exclude"}),
        "classes": _by_class(memory, args),
        "kinds": [
            {"kind": kind, "rows": many}
            for kind in args.get("kinds", KINDS)
            if (many := _rows(memory, {**args, "kinds": [kind]}))
        ],
        "sources": sorted(sources.values(), key=lambda source: -source["rows"]),
    }


def _by_class(memory: Memory, args: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of each class: what is seen up to it, less what is seen up to the one below."""
    found: list[dict[str, Any]] = []
    below = 0
    for name in memory.server["classes"]:
        upto = _rows(memory, {**args, "max_class": name})
        found.append({"class": name, "rows": upto - below})
        below = upto
        if name == args.get("max_class"):
            break
    return found


def _rows(memory: Memory, args: dict[str, Any]) -> int:
    return sum(project["rows"] for project in _entries(memory, "projects", args))


def _stats_parts(told: dict[str, Any], classes: Sequence[str], now: int) -> Iterator[Part]:
    """Yield the counts, the whole first."""
    first, last = (times.said(views.moment(told[name]), now) for name in ("first_ts", "last_ts"))
    whole = (
        f"{told['rows']:,} rows of {told['sessions']:,} sessions in {told['projects']:,} projects"
    )
    yield Para((Span(whole, "head"), Span(f", {first} to {last}", "dim")))
    yield BLANK
    rows: list[tuple[Cell, ...]] = []
    for what, entries in (("class", "classes"), ("kind", "kinds"), ("source", "sources")):
        for number, entry in enumerate(told[entries]):
            style = f"class{classes.index(entry[what])}" if what == "class" else ""
            sessions = f"{entry['sessions']:,} sessions" if "sessions" in entry else ""
            name = cell(safe.line(entry[what]), style)
            many = cell(f"{entry['rows']:,}")
            rows.append((cell("" if number else what, "dim"), name, many, cell(sessions, "dim")))
    distrust = cell(f"{told['untrusted']:,}")
    rows.append((cell("trust", "dim"), cell("untrusted", "untrusted"), distrust, ()))
    yield Grid(("", "", "", ""), rows, right=frozenset({2}), indent=2)


LIMIT = Option(
    "limit", f"At most so many; {LISTED} without, or all with --json.", "N", Count(1, 1_000_000)
)

COMMANDS = (
    Command(
        "sessions",
        sessions,
        """List the sessions that hold anything you may see, the latest first.

Rows, times, title and label count only what you may see and what the filters let through.""",
        (
            ("bxctl memory sessions", "the latest fifty"),
            ("bxctl memory sessions --project shop --since 7d", "this week's in one project"),
            ("bxctl memory sessions --json | jq -r .session", "every session's name"),
        ),
        (*FILTERS, LIMIT),
    ),
    Command(
        "projects",
        projects,
        """List the projects that hold anything you may see, the latest first.""",
        (
            ("bxctl memory projects", "where there has been work"),
            ("bxctl memory projects --tool Bash --since 30d", "where a shell was used this month"),
        ),
        (*FILTERS, LIMIT),
    ),
    Command(
        "stats",
        stats,
        """Count what you may see: by class, kind, source and trust.""",
        (
            ("bxctl memory stats", "how much is remembered"),
            ("bxctl memory stats --project shop --since 30d", "of one project's last month"),
        ),
        FILTERS,
    ),
)
