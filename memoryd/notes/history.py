"""The owner's acts on notes: answer proposals, accept outside edits, undo, redact, read the log.

In: paths and transactions. Out: maps, changed notes, journal lines. Nothing here is reachable except through
the owner's socket; each act goes through the same check as an agent's edit, with the owner as the one who
asks.
"""

from typing import Any

from memoryd import points
from memoryd.clock import rfc3339
from memoryd.errors import BadRequest, CheckFailed, Conflict, NotFound
from memoryd.notes import approvals, names
from memoryd.notes.blobs import name_of
from memoryd.notes.check import check, check_outside
from memoryd.notes.desk import Notes
from memoryd.notes.edit import place_label, told_label
from memoryd.notes.ids import new_txn
from memoryd.notes.pending import Call, Proposal
from memoryd.notes.replay import Entry
from memoryd.notes.request import Asker, Edit
from memoryd.notes.together import Together

_SHOWN = ("seq", "ts", "kind", "txn", "op", "path", "to", "before", "after", "size", "actor",
          "session", "label", "flags", "reason", "of", "undo_of", "proposed_by")  # fmt: skip
_ENDS = frozenset({"commit", "abort"})
_QUIET = _ENDS | {"open", "rotate", "rekey"}


def log(notes: Notes, *, path: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
    """Return the journal's newest `limit` entries, oldest first, of one note's path if given.

    An edit says how it `ended`: ``commit``, ``abort``, or null while it is under way.
    """
    wanted = None if path is None else path.removeprefix(names.ROOT + "/")
    found: list[Entry] = []
    ends: dict[str, str] = {}
    for entry in notes.journal.entries():
        if entry["kind"] in _ENDS:
            ends[entry["txn"]] = entry["kind"]
        elif entry["kind"] not in _QUIET and (
            wanted is None or wanted in {entry.get("path"), entry.get("to")}
        ):
            found.append(entry)
    return [
        {name: entry[name] for name in _SHOWN if name in entry}
        | ({"ended": ends.get(entry["txn"])} if entry["kind"] == "intent" else {})
        for entry in found[-limit:]
    ]


def accept(
    notes: Notes,
    asker: Asker,
    *,
    txn: str | None = None,
    path: str | None = None,
    expect: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Accept what waits as `txn` (an edit is made, a call approved), or an outside edit at `path`.

    `expect`: the hash that the owner was shown of the outside edit. Raises: NotFound; Conflict (``stale``)
    when the note changed since; what the check raises.
    """
    if (txn is None) == (path is None):
        raise BadRequest(
            "a transaction or a path is needed, not both",
            remedy="list them: `bxctl memory notes pending`",
            check="args",
        )
    with notes.alone():
        if txn is not None:
            waiting = notes.pending.get(txn)
            if isinstance(waiting, Call):
                return approvals.approve(notes, asker, waiting)
            return _accept_proposal(notes, asker, waiting, force=force)
        return _accept_outside(notes, asker, str(path), expect, force=force)


def _accept_proposal(
    notes: Notes, asker: Asker, proposal: Proposal, *, force: bool
) -> dict[str, Any]:
    edit = proposal.edit
    again = Edit(
        command=edit.command,
        path=edit.path,
        to=edit.to,
        arguments=edit.arguments,
        recursive=edit.recursive,
        expect=proposal.before,
        reason=edit.reason,
        force=force,
    )
    if proposal.folder is not None:
        told = notes.accepted_folder(proposal, again, asker)
        notes.end_proposal(proposal.txn, "every note in it is deleted", "use")
        return told
    work = check(again, asker, notes.scene())
    session = None if proposal.session is None else {"log": proposal.session, "n": proposal.n}
    told = notes.carry_out(work, of=proposal.txn, proposed_by=proposal.client, session=session)
    if told["changed"]:
        notes.pending.drop(proposal.txn)
    else:
        notes.end_proposal(proposal.txn, "there was nothing left to change")
    return told


def _accept_outside(
    notes: Notes, asker: Asker, path: str, expect: str | None, *, force: bool
) -> dict[str, Any]:
    place, content = check_outside(path, asker, notes.scene(), expect=expect, force=force)
    if not notes.external(place, content):
        raise Conflict(
            "that note was not changed outside", remedy="there is nothing to accept", check="stale"
        )
    notes.journal.check_writable()
    after = None if content is None else name_of(content)
    txn = new_txn(notes.clock())
    stored, shown = names.stored(notes.classes, place), names.shown(notes.classes, place)
    held = notes.journal.state.live.get(stored)
    entry = _note(notes, "accept", asker) | {
        "txn": txn,
        "op": "external",
        "path": stored,
        "to": None,
        "before": None if held is None else held.hash,
        "after": after,
        "size": None if content is None else len(content),
    }
    with Together() as together:
        if content is not None:
            notes.journal.blobs.put(content, together)
        points.reached("notes: blobs stored")
        notes.journal.write(entry, together)
        notes.journal.sync(together)
    points.reached("notes: commit written")
    notes.journal.set_anchor()
    return {
        "status": "accepted",
        "path": shown,
        "changed": True,
        "txn": txn,
        "hash": after,
        "label": told_label(notes.classes, place_label(place)),
        "text": f"accepted {shown}",
    }


def reject(notes: Notes, txn: str, *, reason: str = "") -> dict[str, Any]:
    """Turn a proposal down; its note stays as it is. Raises: NotFound."""
    with notes.alone():
        if txn not in notes.journal.state.proposals:
            raise NotFound("no such proposal", remedy="list them: `bxctl memory notes pending`")
        notes.end_proposal(txn, reason)
    return {"status": "rejected", "txn": txn, "text": f"rejected {txn}"}


def undo(notes: Notes, asker: Asker, txn: str) -> dict[str, Any]:
    """Bring back what a note was before `txn`, as a new edit; undone itself, it does the edit again.

    Raises: NotFound; Conflict (``stale``) when the note changed since; CheckFailed (``redacted``).
    """
    with notes.alone():
        inverse = _inverse(notes, _done(notes, txn))
        work = check(inverse, asker, notes.scene())
        return notes.carry_out(work, undo_of=txn)


def _done(notes: Notes, txn: str) -> Entry:
    edit: Entry | None = None
    committed = False
    for entry in notes.journal.entries():
        if entry.get("txn") == txn:
            if entry["kind"] in {"intent", "accept"}:
                edit = entry
            committed = committed or entry["kind"] in {"commit", "accept"}
    if edit is None or not committed:
        raise NotFound("no such edit", remedy="see `bxctl memory notes log`")
    return edit


def _inverse(notes: Notes, edit: Entry) -> Edit:
    """Return the edit that undoes `edit`. It writes what was there before, so it may be forced."""
    reason = f"undo of {edit['txn']}"
    path = f"{names.ROOT}/{edit['path']}"
    if edit["to"]:
        moved = f"{names.ROOT}/{edit['to']}"
        return Edit(
            command="rename", path=moved, to=path, expect=edit["before"], reason=reason, force=True
        )
    if edit["before"] is None:
        return Edit(command="delete", path=path, expect=edit["after"], reason=reason)
    content = notes.journal.blobs.get(str(edit["before"]))
    if content is None:
        raise CheckFailed(
            "what the note was has been redacted", remedy="write it anew", check="redacted"
        )
    return Edit(
        command="create" if edit["after"] is None else "restore",
        path=path,
        arguments={"file_text": content.decode()},
        expect=edit["after"],
        reason=reason,
        force=edit["after"] is not None,
    )


def redact(notes: Notes, asker: Asker, content: str, *, reason: str = "") -> dict[str, Any]:
    """Take a stored content away for good, by its hash; the chain stays whole.

    Raises: Conflict when a note or a proposal holds it now; NotFound.
    """
    with notes.alone():
        if any(held.hash == content for held in notes.journal.state.live.values()):
            raise Conflict(
                "a note holds that content now", remedy="edit or delete the note first",
                check="stale",
            )  # fmt: skip
        if waiting := notes.pending.naming(content):
            raise Conflict(
                "a proposal holds that content",
                remedy=f"answer it first: `bxctl memory notes reject {waiting[0]}`",
                check="stale",
            )
        if not notes.journal.blobs.has(content):
            raise NotFound("no such content", remedy="the hashes stand in `bxctl memory notes log`")
        entry = _note(notes, "redact", asker)
        notes.journal.append(entry | {"before": content, "after": None, "reason": reason})
        points.reached("notes: redact written")
        notes.journal.blobs.drop(content)
        notes.journal.set_anchor()
    return {"status": "redacted", "hash": content, "text": "redacted; no copy is left in memoryd"}


def _note(notes: Notes, kind: str, asker: Asker) -> Entry:
    actor = {"client": asker.client, "uid": asker.uid, "pid": asker.pid, "owner": asker.owner}
    return {"kind": kind, "ts": rfc3339(notes.clock()), "actor": actor}
