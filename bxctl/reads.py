"""`bxctl memory reads`: who was told what.

In: the read log in memoryd's home (docs/architecture.md), which its owner can read without the daemon.
Out: one line an answer, the oldest first; never what was asked, nor the text that was told.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bxctl import output, safe, times, views
from bxctl.context import Context
from bxctl.grammar import Command, Count, Option, since
from bxctl.layout import Cell, Grid, Part, Span, cell, joined
from memoryd import clock

if TYPE_CHECKING:
    from memoryd.serve.reads import Told

VERSION = 1
LIMIT = 50
"""Answers shown to who names no `--limit`: the newest."""
MOST = 1_000_000
NAMED = 3
"""Sessions named of one answer; JSON has all."""


def reads(context: Context, *, session: str | None, since: int | None, limit: int | None) -> int:
    """Print who was told what; 1 when that is nothing. Raises: IOFailed by way of OSError."""
    from memoryd import config, paths
    from memoryd.serve.reads import FILE, told

    unreadable = 0
    found: deque[Told] = deque(maxlen=limit or LIMIT)
    for one in told(paths.home(context.env) / FILE):
        if one is None:
            unreadable += 1
        elif _asked_for(one, context.socket, session, since):
            found.append(one)
    if context.out.json:
        for one in found:
            context.out.value("read", VERSION, _value(one))
    elif found:
        classes = config.load(context.env).config.labels.classes
        context.out.show(_table(found, classes, clock.now_ms()))
    else:
        output.say("nobody was told anything that fits")
    if unreadable:
        output.say(f"{unreadable:,} lines of {FILE} cannot be read")
    return 0 if found else 1


def _asked_for(one: "Told", socket: str | None, session: str | None, since: int | None) -> bool:
    if socket is not None and one.socket != socket:
        return False
    if session is not None and not one.concerns(session):
        return False
    return since is None or (views.moment(one.time) or 0) >= since


def _value(one: "Told") -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}


def _table(found: "deque[Told]", classes: list[str], now: int) -> Iterator[Part]:
    rows: list[tuple[Cell, ...]] = [
        (
            cell(times.said(views.moment(one.time), now)),
            joined((cell(safe.line(one.socket), "id"), cell(f"uid {one.uid}", "dim"))),
            cell(safe.line(one.method)),
            views.label(one.label, classes),
            _what(one),
        )
        for one in found
    ]
    heads = ("when", "socket", "method", "label", "what")
    yield Grid(heads, rows, give=frozenset({4}))


def _what(one: "Told") -> Cell:
    """Return how much was told, of which sessions, and to which session."""
    many = len(one.ids)
    told = cell("a page of everything" if one.method == "dump" else f"{many:,} told")
    named = [safe.line(name) for name in one.sessions[:NAMED]]
    more = f" and {len(one.sessions) - NAMED:,} more" if len(one.sessions) > NAMED else ""
    of = cell(f"of {', '.join(named)}{more}", "dim") if named else ()
    to = (Span(f"to {safe.line(one.caller)}", "class1"),) if one.caller else ()
    return joined((told, of, to))


COMMANDS = (
    Command(
        "reads",
        reads,
        """List who was told what: when, through which socket, by which method, under which label.

Read from memoryd's own record, so it needs no running memoryd. It holds ids, sessions and labels, and
never what was asked. --socket NAME lists the answers of that socket alone.""",
        (
            ("bxctl memory reads", "the latest answers"),
            (
                "bxctl --socket agent memory reads --since 1d",
                "what went to the sandbox since yesterday",
            ),
            (
                "bxctl memory reads --session 4f1c2a3b",
                "what that session was told, and who was told of it",
            ),
            ("bxctl memory reads --json --limit 1000 | jq .label", "for a program"),
        ),
        (
            Option("session", "Only answers to this session, or with records of it.", "ID"),
            Option("since", "Only from this time on: 2026-01-31, 3d, '2h ago'.", "TIME", since),
            Option("limit", f"The newest N; {LIMIT} without.", "N", Count(1, MOST)),
        ),
    ),
)
