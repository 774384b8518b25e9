"""What waits for the owner: proposals and outside edits with the difference they make, calls with their words.

In: the open notes. Out: maps with a unified diff. Everything here may be written by an agent that was told
what to write; whoever shows it makes control characters visible.
"""

import difflib
from typing import Any

from memoryd.clock import rfc3339
from memoryd.errors import CheckFailed, MemorydError, NotFound
from memoryd.labels import Label
from memoryd.notes import external, names, text
from memoryd.notes.blobs import name_of
from memoryd.notes.desk import Notes
from memoryd.notes.edit import told_label
from memoryd.notes.names import Place
from memoryd.notes.pending import Call, Proposal


def diff(before: bytes | None, after: bytes | None, path: str) -> str:
    """Return a unified diff of two contents; of what is no text, one line that says so."""
    try:
        old, new = (text.as_text(content or b"") for content in (before, after))
    except CheckFailed:
        return "the contents are no UTF-8 text\n"
    made = difflib.unified_diff(_lines(old), _lines(new), f"a{path}", f"b{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ no line end\n" for line in made)


def _lines(whole: str) -> list[str]:
    """Cut at LF only: what any other separator hides, the owner must see."""
    parts = whole.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def pending(notes: Notes) -> list[dict[str, Any]]:
    """Return the waiting proposals and calls, oldest first, then the notes changed outside."""
    with notes.alone():
        told = [_told_proposal(notes, txn) for txn in sorted(notes.journal.state.proposals)]
        outside = list(external.changes(notes.store, notes.journal.state))
        return told + [_told_outside(notes, path, place) for path, place, _ in outside]


def _told_proposal(notes: Notes, txn: str) -> dict[str, Any]:
    try:
        waiting = notes.pending.get(txn)
    except (NotFound, CheckFailed) as error:
        return {"txn": txn, "kind": "proposal", "op": "unknown", "path": "", "broken": str(error)}
    asked = {
        "txn": txn,
        "created": rfc3339(waiting.created),
        "ends": rfc3339(notes.pending.ends(waiting)),
        "client": waiting.client,
        "session": None if waiting.session is None else {"log": waiting.session, "n": waiting.n},
        "session_label": told_label(notes.classes, Label(waiting.level, waiting.untrusted)),
        "rule": waiting.rule,
    }
    if isinstance(waiting, Call):
        return asked | _told_call(notes, waiting)
    return asked | _told_edit(notes, waiting)


def _told_call(notes: Notes, call: Call) -> dict[str, Any]:
    return {
        "kind": "call",
        "op": call.method,
        "path": "",
        "args": call.args,
        "repeat": call.repeat,
        "approved": notes.journal.state.calls[call.txn],
    }


def _told_edit(notes: Notes, proposal: Proposal) -> dict[str, Any]:
    edit = proposal.edit
    shown = ""
    if proposal.folder is not None:
        for path, name in sorted(proposal.folder.items()):
            shown += diff(_content(notes, name), None, f"{names.ROOT}/{path}")
    elif edit.command != "rename":
        before, after = (_content(notes, name) for name in (proposal.before, proposal.after))
        shown = diff(before, after, edit.path)
    return {
        "kind": "proposal",
        "op": edit.command,
        "path": edit.path,
        "to": edit.to,
        "flags": proposal.flags,
        "reason": edit.reason,
        "diff": shown,
    }


def change(notes: Notes, txn: str) -> dict[str, Any]:
    """Return what one line of the journal changed, or would have, as a difference. Raises: NotFound.

    `redacted`: one of the two contents was taken away for good, so that there is nothing to compare.
    """
    entry = next((one for one in notes.journal.entries() if _changes(one, txn)), None)
    if entry is None:
        raise NotFound("no such edit", remedy="see `bxctl memory notes log`")
    before, after = _content(notes, entry["before"]), _content(notes, entry["after"])
    gone = bool((entry["before"] and before is None) or (entry["after"] and after is None))
    path = f"{names.ROOT}/{entry['path']}"
    shown = "" if gone else diff(before, after, path)
    return {"txn": txn, "op": entry.get("op"), "path": path, "diff": shown, "redacted": gone}


def _changes(entry: dict[str, Any], txn: str) -> bool:
    return entry.get("txn") == txn and entry["kind"] in {"intent", "accept", "pending"}


def _content(notes: Notes, name: str | None) -> bytes | None:
    try:
        return None if name is None else notes.journal.blobs.get(name)
    except MemorydError:
        return None


def _told_outside(notes: Notes, path: str, place: Place) -> dict[str, Any]:
    read = notes.store.read(place)
    content = None if read is None else read[0]
    held = notes.journal.state.live.get(path)
    before = None if held is None else _content(notes, held.hash)
    op = "delete" if content is None else ("create" if held is None else "edit")
    shown = f"{names.ROOT}/{path}"
    return {
        "txn": None,
        "kind": "external",
        "op": op,
        "path": shown,
        "hash": None if content is None else name_of(content),
        "diff": diff(before, content, shown),
    }
