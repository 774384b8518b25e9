"""`bxctl memory forget`: take records out of the memory for good, once it was shown what goes.

In: which records. Out: a table of what goes of each log, a question, and then what went: the name under which
it can be taken back, and the logs whose files still hold the words.
"""

import sys
from collections.abc import Iterator
from typing import Any

from bxctl import output, safe
from bxctl.context import Context, Memory
from bxctl.grammar import Command, Option, since
from bxctl.layout import Cell, Grid, Para, Part, Span, cell, joined
from memoryd import clock
from memoryd.errors import BadRequest

VERSION = 1
WAIT_MS = 600_000
"""How long one waits for the last byte to be gone."""

KINDS = {"reads": "lines of the read log"}
"""What was derived from records, as a person calls it; other kinds are called what they are."""

Told = dict[str, Any]


def forget(context: Context, *, yes: bool, undo: str | None, dry_run: bool, **options: Any) -> int:
    """Show what goes, ask, forget; 1 when the answer is no. Raises: what the daemon refuses."""
    with context.daemon() as memory:
        wanted = _wanted(options)
        if undo is not None:
            if wanted or dry_run or options["delete_log"]:
                raise BadRequest(
                    "--undo takes the name of an act alone", remedy="leave the rest out"
                )
            return _undo(context, memory, undo)
        if not wanted:
            raise BadRequest(
                "nothing says what to forget", remedy="give --session, --project, --before or --id"
            )
        deletes = {"delete_log": True} if options["delete_log"] else {}
        if dry_run or not yes:
            plan = memory.call("forget", dry_run=True, deadline_ms=WAIT_MS, **wanted, **deletes)
            if not (context.out.json and not dry_run):
                _print(context, plan, preview=True)
            if dry_run:
                return 0
            if not _confirmed():
                output.say("nothing was forgotten")
                return 1
        done = memory.call("forget", deadline_ms=WAIT_MS, **wanted, **deletes)
    _print(context, done, preview=False)
    return 0


def _wanted(options: dict[str, Any]) -> Told:
    """Return what is meant, as the method takes it."""
    wanted = {name: options[name] for name in ("session", "project", "before") if options[name]}
    if "before" in wanted:
        wanted["before"] = clock.rfc3339(wanted["before"])
    return {**wanted, "ids": list(options["id"])} if options["id"] else wanted


def _undo(context: Context, memory: Memory, act: str) -> int:
    told = memory.call("forget", undo=act, deadline_ms=WAIT_MS)
    if context.out.json:
        context.out.value("remembered", VERSION, told)
        return 0
    output.say(f"logs read again: {told['logs']:,}; lessons that went do not come back")
    if told["gone"]:
        output.say(f"logs that are gone, with what they held: {told['gone']:,}")
    return 0


def _confirmed() -> bool:
    """Ask a person. Raises: BadRequest where none can answer."""
    if not sys.stdin.isatty():
        raise BadRequest("nobody can be asked here", remedy="--yes to forget without a question")
    print("Forget this? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _print(context: Context, told: Told, *, preview: bool) -> None:
    if context.out.json:
        context.out.value("forgotten", VERSION, told)
        return
    context.out.show(_parts(told, preview=preview))
    for line in _said(told, preview=preview):
        output.say(line)


def _parts(told: Told, *, preview: bool) -> Iterator[Part]:
    verb = "would go" if preview else "went"
    copies = f", {told['copies']:,} copies of vanished logs" if told["copies"] else ""
    more = "".join(
        f", {many:,} {KINDS.get(kind, kind)}" for kind, many in sorted(told["derived"].items())
    )
    yield Para(
        (
            Span(f"{told['rows']:,} rows", "head"),
            Span(f" of {_logs(len(told['logs']))} {verb}{copies}{more}"),
        )
    )
    rows: list[tuple[Cell, ...]] = [
        (
            cell(f"{one['rows']:,}"),
            cell("all" if one["whole"] else "part"),
            _log(one, preview=preview),
        )
        for one in told["logs"]
    ]
    yield Grid(
        ("rows", "of it", "session, project, log"), rows, right=frozenset({0}), give=frozenset({2})
    )


def _logs(many: int) -> str:
    return "1 log" if many == 1 else f"{many:,} logs"


def _log(one: Told, *, preview: bool) -> Cell:
    """Return a log's names, and what becomes of its file."""
    if one["deleted"]:
        fate = Span("its file would be deleted" if preview else "its file is deleted", "bad")
    elif one["held"]:
        fate = Span("its file stays, and holds the words", "class2")
    else:
        fate = Span("its file is gone", "dim")
    names = (cell(safe.line(one["session"]), "id"), cell(safe.line(one["project"] or ""), "dim"))
    return (*joined(names), *cell("\n"), *joined((cell(safe.line(one["path"])), (fate,))))


def _said(told: Told, *, preview: bool) -> Iterator[str]:
    held = sum(one["held"] for one in told["logs"])
    if preview:
        if held:
            yield f"{_files(held)} as it is; --delete-log deletes what is forgotten whole"
        return
    if not told["purged"]:
        yield "no search finds it; its words are still being taken out of the file (`bxctl status` tells)"
    if held:
        yield f"{_files(held)}, and holds the words; memoryd will not read them again"
    if held and told["act"]:  # "" where all of it was forgotten before, under other names
        yield f"to take it back: bxctl memory forget --undo {told['act']}"


def _files(many: int) -> str:
    return "1 log file stays" if many == 1 else f"each of {many:,} log files stays"


COMMANDS = (
    Command(
        "forget",
        forget,
        """Forget a session, a project, all before a time, or single records: for good, after showing them.

What is given together must fit together. Rows, kept copies of vanished logs and lessons that came of them
go; no rebuild brings them back, and no byte of their words stays in what memoryd writes. The logs are their
harness's: their files are named and stay, unless --delete-log deletes those that are forgotten whole. What
is written to a log afterwards is remembered again. Until a log is gone, --undo has it read again.""",
        (
            ("bxctl memory forget --session 4f1c2a3b --dry-run", "what that would come to"),
            ("bxctl memory forget --session 4f1c2a3b", "the same, then a question"),
            ("bxctl memory forget --project '*payroll*' --delete-log --yes", "the logs' files too"),
            ("bxctl memory forget --before 2026-01-01", "all that is older"),
            ("bxctl memory forget --id bbz4k6c3ah2qkz7yq4mf", "one record"),
            ("bxctl memory forget --undo forget-1a2b3c4d", "take it back"),
        ),
        (
            Option("session", "Of this session.", "ID"),
            Option("project", "Of projects that match; a path's last part is enough.", "GLOB"),
            Option("before", "Of before this time: 2026-01-31, 30d.", "TIME", since),
            Option("id", "This record; may be given again.", "ID", multiple=True),
            Option("delete-log", "Also delete the files of logs that are forgotten whole."),
            Option("dry-run", "Show what goes, and stop there."),
            Option("yes", "Do not ask."),
            Option("undo", "Take back what was forgotten under this name.", "NAME"),
        ),
    ),
)
