"""What `bxctl status` puts on one screen: whether memoryd is well, what there is, what is wrong.

In: the daemon's own account of itself (docs/protocol.md). Out: parts to be laid out.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from bxctl import safe, times, views
from bxctl.context import Context
from bxctl.layout import BLANK, Cell, Grid, Para, Part, Span, cell

REASONS = 5
"""Reasons for leaving rows out that fit on one screen; JSON has all."""

NAMED = 5
"""Vanished logs, and files that are not read, named on one screen."""

Told = dict[str, Any]


def asked(context: Context) -> tuple[Told, Told]:
    """Return what the daemon says of itself, and of its versions. Raises: MemorydError."""
    with context.daemon() as memory:
        return memory.call("status"), memory.server


def screen(told: Told, server: Told, now: int, doing: Cell = ()) -> Iterator[Part]:
    """Yield the screen: whether it is well, what there is, where it comes from, what is wrong.

    `doing`: how far long work is, in one line, where somebody follows it.
    """
    yield Para(_well(told, server))
    if doing:
        yield Para(doing, 2)
    yield Grid(
        ("", ""),
        [(cell(name, "dim"), value) for name, value in _lines(told, server)],
        give=frozenset({1}),
        indent=2,
    )
    if sources := told.get("sources"):
        yield BLANK
        yield _sources(sources)
    if left_out := told.get("left_out"):
        yield BLANK
        yield _left_out(left_out)
    for fault in told.get("faults", ()):
        yield BLANK
        since = times.said(views.moment(fault["since"]), now)
        yield Para((Span(safe.line(fault["what"]), "bad"), Span(f", {since}", "dim")))
        yield Para(cell(safe.line(fault["remedy"])), 2)


def _well(told: Told, server: Told) -> Cell:
    name = f"memoryd {server['versions']['memoryd']}"
    up = f"up for {times.lasted(told['uptime'])}"
    if not told["ready"]:
        return (Span(name, "head"), Span(f" is {up}; there is no index to ask yet", "bad"))
    behind = told.get("behind")
    if not behind:
        return (Span(name, "head"), Span(f" is ready, {up}", "good"))
    if not behind["logs"]:
        return (Span(name, "head"), Span(f" is ready, {up}, and has read all there is", "good"))
    size = views.sized(behind["bytes"])
    held = f" ({behind['held']:,} wait for the logs they start from)" if behind.get("held") else ""
    late = f", and is behind in {behind['logs']:,} logs by {size}{held}{_pace(behind)}"
    return (Span(name, "head"), Span(f" is ready, {up}"), Span(late, "class2"))


def _pace(behind: Told) -> str:
    """Return how fast a history is read and how long that will take, where it is known."""
    if not behind.get("bytes_per_s"):
        return ""
    left = times.lasted(behind["remaining_s"])
    return f"; {views.sized(behind['bytes_per_s'])} a second, about {left} left"


def _lines(told: Told, server: Told) -> Iterator[tuple[str, Cell]]:
    rows = "none yet" if told["rows"] is None else f"{told['rows']:,}"
    yield "rows", cell(f"{rows}, up to {safe.line(server['clearance'])}")
    if told.get("unreadable"):
        yield (
            "bad lines",
            cell(f"{told['unreadable']:,}, each of which raised its log to the top", "class2"),
        )
    if (notes := told.get("notes")) and any(
        notes[name] for name in ("notes", "pending", "external")
    ):
        yield "notes", _notes(notes)
    if gone := told.get("vanished"):
        yield "vanished", cell(f"kept without their files: {_some(one['session'] for one in gone)}")
    if skipped := told.get("skipped"):
        named = _some(f"{one['path']} ({one['why']})" for one in skipped)
        yield "not read", cell(named, "class2")
    if told.get("purging"):
        yield "purging", cell("words of what was deleted are being taken out of the file", "class1")
    if rebuild := told.get("rebuild"):
        yield "rebuild", _rebuild(rebuild)
    if home := told.get("home"):
        yield "state", cell(safe.line(home))
    for socket in told.get("sockets", ()):
        yield "socket", cell(f"{safe.line(socket['path'])}, up to {safe.line(socket['clearance'])}")


def _some(names: Iterable[str]) -> str:
    """Return the first of some names, and how many more there are."""
    known = [safe.line(name) for name in names]
    more = f" and {len(known) - NAMED:,} more" if len(known) > NAMED else ""
    return f"{', '.join(known[:NAMED])}{more}"


def _notes(notes: Told) -> Cell:
    waits = [
        f"{notes[name]:,} {what}"
        for name, what in (("pending", "proposed"), ("external", "changed outside"))
        if notes[name]
    ]
    waiting = f"; {', '.join(waits)}: `bxctl memory notes pending`" if waits else ""
    return (Span(f"{notes['notes']:,}"), Span(waiting, "class2"))


def _rebuild(rebuild: Told) -> Cell:
    size = f"{views.sized(rebuild['bytes'])} of {views.sized(rebuild['all_bytes'])}"
    so_far = f"{rebuild['logs']:,} of {rebuild['all_logs']:,} logs, {size}"
    match rebuild["state"]:
        case "running":
            return cell(f"running: {so_far}", "class1")
        case "done":
            rows, seconds = rebuild["counts"]["indexed"], rebuild["seconds"]
            return cell(f"done in {times.lasted(seconds)}: {rows:,} rows", "dim")
        case other:
            return cell(f"{other}: {safe.line(rebuild['error'] or 'no reason told')}", "bad")


def _sources(sources: list[Told]) -> Grid:
    heads = ("source", "logs", "records", "rows", "left out", "bad lines", "folder")
    counts = ("logs", "records", "indexed", "left_out", "unreadable")
    rows = [
        (
            cell(safe.line(source["source"])),
            *(cell(f"{source[name]:,}") for name in counts),
            cell(safe.line(source["root"]), "dim"),
        )
        for source in sources
    ]
    return Grid(heads, rows, right=frozenset(range(1, 6)), give=frozenset({6}), indent=2)


def _left_out(reasons: list[Told]) -> Grid:
    """Return why rows are above `max_class`, the most frequent reason first."""
    ordered = sorted(reasons, key=lambda reason: -reason["rows"])
    rows = [
        (cell(f"{reason['rows']:,}"), cell(safe.line(reason["why"])))
        for reason in ordered[:REASONS]
    ]
    if rest := ordered[REASONS:]:
        rows.append(
            (cell(f"{sum(reason['rows'] for reason in rest):,}"), cell("for other reasons", "dim"))
        )
    return Grid(
        ("left out", "because of"), rows, right=frozenset({0}), give=frozenset({1}), indent=2
    )
