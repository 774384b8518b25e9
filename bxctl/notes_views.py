"""What notes look like to a person: listings, pages, differences in colour, what waits and what would follow.

In: decoded answers (docs/protocol.md). Out: parts of `bxctl.layout`. Every stored text passes `bxctl.safe`
here, so that nothing that an agent proposed can style the question whether to accept it.
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from bxctl import safe, times, views
from bxctl.layout import BLANK, Cell, Grid, Para, Part, Span, cell, joined

Answer = dict[str, Any]
_KINDS = {"external": "changed outside", "reject": "rejected", "redact": "redacted",
          "ask": "asked for", "approve": "approved", "use": "did as approved"}  # fmt: skip
_MOST_CHANGED = 400
"""Lines of a difference that are shown; ``--json`` has all."""


def listing(notes: Sequence[Answer], classes: Sequence[str]) -> Iterator[Part]:
    """Yield a note's class, size and path; below that what is odd about it and what it says of itself."""
    rows = [
        (
            views.label(note["label"], classes),
            cell(views.sized(note["size"]) if "size" in note else "", "dim"),
            _named(note),
        )
        for note in notes
    ]
    yield Grid(("", "", ""), rows, right=frozenset({1}), give=frozenset({2}))


def _named(note: Answer) -> Cell:
    path = cell(safe.line(note["path"]), "id")
    more = joined((_marks(note), _about(note)), "  ")
    return (*path, *cell("\n"), *more) if more else path


def _about(note: Answer) -> Cell:
    return cell(safe.line(note.get("description") or note.get("title") or note.get("odd") or ""))


def _marks(note: Answer) -> Cell:
    marks = ["changed outside"] if note.get("external") else []
    marks += ["an edit waits"] if note.get("pending") else []
    marks += [f"flagged: {kind}" for kind in note.get("flags", ())]
    if note.get("expires"):
        marks.append(f"until {note['expires']}")
    return cell(", ".join(marks), "bad")


def viewed(answer: Answer, classes: Sequence[str]) -> Iterator[Part]:
    """Yield a note's lines with their numbers, or a folder's entries."""
    if answer["kind"] == "folder":
        yield from listing(answer["entries"], classes)
        if answer["more"]:
            yield Para(cell("(more; look into a folder of it)", "dim"))
        return
    yield Para(cell(safe.text(answer["text"]).rstrip("\n")))
    if answer["external"]:
        yield Para(cell("(changed outside memoryd, and untrusted until you accept it)", "bad"))
    if answer.get("pending"):
        yield Para(cell("(an edit of this note waits: `bxctl memory notes pending`)", "dim"))


def done(told: Answer) -> Iterator[Part]:
    """Yield what an edit came to, with the lines around it."""
    status, path = told["status"], safe.line(told.get("path") or "")
    yield Para(
        joined((cell(status, "good"), cell(path, "id"), cell(told.get("txn") or "", "dim")), " ")
    )
    if told.get("snippet"):
        yield Para(cell(safe.text(told["snippet"]), "dim"))


def difference(before: str, after: str, path: str) -> Iterator[Part]:
    """Yield a unified difference of two texts, cut at LF alone."""
    old, new = (text.split("\n") for text in (before, after))
    made = difflib.unified_diff(old, new, f"a{path}", f"b{path}", lineterm="")
    yield from coloured("\n".join(made))


def coloured(diff: str) -> Iterator[Part]:
    """Yield a unified difference, what goes in red and what comes in green."""
    lines = diff.rstrip("\n").split("\n") if diff else []
    for line in lines[:_MOST_CHANGED]:
        yield Para(cell(safe.text(line), _style(line)))
    if len(lines) > _MOST_CHANGED:
        yield Para(cell(f"({len(lines) - _MOST_CHANGED} more lines; --json has them)", "dim"))


def _style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "head"
    return {"+": "good", "-": "bad", "@": "class1", "\\": "dim"}.get(line[:1], "")


def changes(entries: Sequence[Answer], now: int) -> Iterator[Part]:
    """Yield one line an entry of the journal: when, what, which note, who, why, its transaction."""
    rows = [
        (
            cell(times.said(views.moment(entry.get("ts")), now), "dim"),
            cell(_what(entry)),
            cell(safe.line(_where(entry)), "id"),
            cell(safe.line(_who(entry)), "dim"),
            cell(safe.line(entry.get("reason") or "")),
            cell(entry.get("txn") or "", "dim"),
        )
        for entry in entries
    ]
    yield Grid(("",) * 6, rows, give=frozenset({2, 4}))


def _what(entry: Answer) -> str:
    what = str(entry.get("op") or "")
    match entry["kind"]:
        case "intent":
            undone = "undo: " if entry.get("undo_of") else ""
            ended = "" if entry.get("ended") == "commit" else " (not done)"
            return f"{undone}{what}{ended}"
        case "accept":
            return "accepted from outside"
        case "pending":
            return f"proposed {what}"
        case "ask" | "approve" | "use":
            return f"{_KINDS[entry['kind']]} {what}"
        case other:
            return _KINDS.get(other, str(other))


def _where(entry: Answer) -> str:
    path, to = entry.get("path") or "", entry.get("to")
    return f"{path} → {to}" if to else path


def _who(entry: Answer) -> str:
    actor = entry.get("actor") or {}
    who = "you" if actor.get("owner") else actor.get("client", "")
    session = entry.get("session")
    return f"{who}, {session['log']}" if session else who


def verified(answer: Answer) -> Iterator[Part]:
    """Yield every fault, or that there is none."""
    faults = answer["faults"]
    if not faults:
        yield Para(
            (Span("all is well", "good"), Span(f": {answer['lines']:,} lines of the journal"))
        )
    for fault in faults:
        where = fault["where"]
        name = f"line {where}" if where.isdigit() else where
        yield Para((Span(safe.line(name), "head"), Span(f" {safe.line(fault['what'])}", "bad")))


def waiting(found: Sequence[Answer], classes: Sequence[str], now: int) -> Iterator[Part]:
    """Yield what waits for an answer, each with who asks for it and the difference it makes."""
    for number, one in enumerate(found):
        if number:
            yield BLANK
        yield Para(_heading(one, now))
        for part in _asked_by(one, classes):
            yield Para(part, 2)
        yield from coloured(one.get("diff") or "")


def _heading(one: Answer, now: int) -> Cell:
    if one["kind"] == "external":
        what = {"create": "made outside", "delete": "removed outside"}.get(
            one["op"], "changed outside"
        )
    elif one["kind"] == "call":
        what = f"{'approved' if one['approved'] else 'wants to call'} {one['op']}"
    else:
        what = f"proposed {one['op']}"
    moved = f" → {one['to']}" if one.get("to") else ""
    when = times.said(views.moment(one["created"]), now) if one.get("created") else ""
    return joined(
        (
            cell(what, "head"),
            cell(safe.line(one["path"] + moved), "id"),
            cell(when, "dim"),
            cell(one["txn"] or "", "dim"),
        ),
        "  ",
    )


def _asked_by(one: Answer, classes: Sequence[str]) -> Iterator[Cell]:
    if one.get("broken"):
        yield cell(safe.line(one["broken"]), "bad")
    if one.get("session_label"):
        session = one.get("session") or {"log": "an unnamed session"}
        yield joined(
            (
                cell(safe.line(f"by {one['client']}, {session['log']}")),
                views.label(one["session_label"], classes),
                cell(safe.line(one.get("reason") or ""), "dim"),
            )
        )
    if one.get("rule"):
        yield cell(safe.line(f"waits by the rule: {one['rule']}"), "dim")
    for name, value in sorted((one.get("args") or {}).items()):
        yield cell(safe.line(f"{name} = {value!r}"))
    for flag in one.get("flags", ()):
        yield cell(f"flagged: {safe.line(flag['kind'])} at line {flag['line']}", "bad")


def consequence(one: Answer) -> str:
    """Return in one sentence what accepting would do."""
    path = one["path"]
    if one["kind"] == "external":
        if one["op"] == "delete":
            return f"accepting lets {path} be gone"
        return (
            f"accepting makes {path}, as it is shown here, a trusted note that agents may be shown"
        )
    if one["kind"] == "call":
        return _answer_to_call(one)
    match one["op"]:
        case "delete":
            return f"accepting deletes {path} as your own edit; undo brings it back"
        case "rename":
            return f"accepting moves {path} to {one['to']} as your own edit"
        case "create":
            return f"accepting makes {path} a trusted note that agents may be shown"
        case _:
            return f"accepting changes {path} as shown here, as your own edit; it stays trusted"


def _answer_to_call(one: Answer) -> str:
    method = safe.line(one["op"])
    if one["repeat"]:
        return f"accepting lets this session call {method} once with just these arguments"
    return f"accepting does {method} once with just these arguments"
