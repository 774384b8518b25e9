"""`bxctl memory notes`, what only the owner does: history, undo, verify, and answers to what waits.

In: transactions, paths, hashes. Out: journal lines, differences, questions that say what an answer would do.
"""

import sys
from collections.abc import Iterator
from typing import Any

from bxctl import notes_views, output
from bxctl.context import Context, Memory
from bxctl.grammar import Argument, Command, Count, Option
from bxctl.notes import FORCE, REASON, VERSION, full, printed
from memoryd import clock
from memoryd.errors import BadRequest


def log(context: Context, *, path: str | None, limit: int | None) -> int:
    """Print what was done to notes, oldest first; 1 when that is nothing."""
    asked = {"path": full(path)} if path else {}
    with context.daemon() as memory:
        entries = memory.call("notes.log", limit=limit or 50, **asked)["entries"]
    if context.out.json:
        for entry in entries:
            context.out.value("change", VERSION, entry)
    elif entries:
        context.out.show(notes_views.changes(entries, clock.now_ms()))
    else:
        output.say("nothing was done yet")
    return 0 if entries else 1


def undo(context: Context, *, txn: str) -> int:
    """Bring back what a note was before an edit."""
    with context.daemon() as memory:
        return printed(context, memory.call("notes.undo", txn=txn))


def verify(context: Context) -> int:
    """Hold journal and notes against each other; 1 when something is wrong."""
    with context.daemon() as memory:
        answer = memory.call("notes.verify", deadline_ms=600_000)
    if context.out.json:
        context.out.value("verify", VERSION, answer)
    else:
        context.out.show(notes_views.verified(answer))
    return 1 if answer["faults"] else 0


def pending(context: Context, *, show: str | None) -> int:
    """Print what waits for an answer, each with its difference; 1 when nothing does."""
    with context.daemon() as memory:
        classes = memory.server["classes"]
        found = memory.call("notes.pending")["pending"]
    if show is not None:
        found = [one for one in found if show == one["txn"] or full(show) == one["path"]]
    if context.out.json:
        for one in found:
            context.out.value("pending", VERSION, one)
    elif found:
        context.out.show(notes_views.waiting(found, classes, clock.now_ms()))
        output.say("answer with `bxctl memory notes accept`, or `bxctl memory notes reject`")
    else:
        output.say("nothing waits for you")
    return 0 if found else 1


def accept(context: Context, *, what: str, yes: bool, force: bool) -> int:
    """Accept a proposal, or what was done to a note outside, once it was shown."""
    with context.daemon() as memory:
        classes = memory.server["classes"]
        one = _waiting(memory, what)
        if not context.out.json:
            context.out.show(notes_views.waiting([one], classes, clock.now_ms()))
        output.say(notes_views.consequence(one))
        if not _confirmed("accept it", yes=yes):
            output.say("nothing was accepted")
            return 1
        shown = {"txn": one["txn"]}
        if one["kind"] == "external":
            shown = {"path": one["path"], "expect": one["hash"] or ""}
        return printed(context, memory.call("notes.accept", **shown, force=force))


def reject(context: Context, *, txn: str, reason: str | None) -> int:
    """Turn a proposal down."""
    with context.daemon() as memory:
        return printed(context, memory.call("notes.reject", txn=txn, reason=reason or ""))


def redact(context: Context, *, hash: str, yes: bool, reason: str | None) -> int:
    """Take a content that a note once held away for good."""
    output.say("the content is overwritten and removed; undo cannot bring it back")
    if not _confirmed("redact it", yes=yes):
        output.say("nothing was redacted")
        return 1
    with context.daemon() as memory:
        return printed(context, memory.call("notes.redact", hash=hash, reason=reason or ""))


def _waiting(memory: Memory, what: str) -> dict[str, Any]:
    """Return what waits under a transaction or a path. Raises: BadRequest."""
    found: list[dict[str, Any]] = memory.call("notes.pending")["pending"]
    for one in found:
        if what == one["txn"] or (one["kind"] == "external" and full(what) == one["path"]):
            return one
    raise BadRequest("nothing waits under that name", remedy="see `bxctl memory notes pending`")


def _confirmed(what: str, *, yes: bool) -> bool:
    """Ask a person. Raises: BadRequest where none can answer and `yes` does not say so."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise BadRequest("nobody can be asked here", remedy=f"--yes to {what} without a question")
    print(f"{what[0].upper()}{what[1:]}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


_YES = Option("yes", "Do not ask.")


def _commands() -> Iterator[Command]:
    yield Command(
        "log", log, "List what was done to notes: who, when, why, and the transaction to undo.",
        (("bxctl memory notes log --path internal/build.md", "one note's history"),),
        (Option("path", "Of this note.", "PATH"), Option("limit", "The newest N.", "N", Count(1, 1_000))),
    )  # fmt: skip
    yield Command(
        "undo", undo, "Bring back what a note was before an edit; undone itself, it does the edit again.",
        (("bxctl memory notes undo 01890a5d-ac96-774b-bcce-b302099a8057", "by its transaction"),),
        (), Argument("TXN"),
    )  # fmt: skip
    yield Command(
        "verify", verify, "Hold the journal and the notes against each other; 1 when something is wrong.",
        (("bxctl memory notes verify", "nothing is changed by it"),),
    )  # fmt: skip
    yield Command(
        "pending", pending, "Show what waits for you: proposals of untrusted sessions, and outside edits.",
        (("bxctl memory notes pending", "each with its difference"),),
        (Option("show", "Only this transaction or path.", "TXN|PATH"),),
    )  # fmt: skip
    yield Command(
        "accept", accept, "Accept a proposal, or what was done to a note outside, after showing it.",
        (("bxctl memory notes accept 01890a5d-ac96-774b-bcce-b302099a8057", "a proposal"),
         ("bxctl memory notes accept internal/build.md", "what an editor did")),
        (_YES, FORCE), Argument("WHAT"),
    )  # fmt: skip
    yield Command(
        "reject", reject, "Turn a proposal down; its note stays as it is.",
        (("bxctl memory notes reject 01890a5d-ac96-774b-bcce-b302099a8057", "by its transaction"),),
        (REASON,), Argument("TXN"),
    )  # fmt: skip
    yield Command(
        "redact", redact, "Take a content that a note once held away for good, by its hash.",
        (("bxctl memory notes redact 4355a46b19d3",
          "the hashes stand in the log's JSON"),),
        (_YES, REASON), Argument("HASH"),
    )  # fmt: skip


COMMANDS = tuple(_commands())
