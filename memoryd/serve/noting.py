"""The methods of notes: what each takes, who it acts for, and the line it leaves in the read log.

In: checked arguments and who asks. Out: maps. A session that names itself (`caller`) acts under the label that
the daemon folds from its log, joined with what it claims; one that does not acts as the highest class and
untrusted. The owner's socket can say that a person acts (`owner`), who then needs no label.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
import trio

from memoryd.db import Deadline
from memoryd.errors import BadRequest, NotGranted, Pending, Unavailable
from memoryd.index.scope import Scope
from memoryd.labels import LOWEST, Classes, Label, LabelError
from memoryd.notes import handles, history, names, reading, verify, waiting
from memoryd.notes import request as asked
from memoryd.notes.desk import Notes, owner_asks
from memoryd.notes.edit import told_label
from memoryd.notes.reading import View
from memoryd.notes.request import Edit
from memoryd.notes.rights import Command
from memoryd.serve import notices
from memoryd.serve.asking import Caller, scope_of, unnamed
from memoryd.serve.calls import Check, Common, Methods, Slow, fitting
from memoryd.serve.note_args import (
    AcceptArgs,
    Claimed,
    CreateArgs,
    DeleteArgs,
    Editing,
    InsertArgs,
    ListArgs,
    LogArgs,
    Looking,
    Nothing,
    RedactArgs,
    RejectArgs,
    RenameArgs,
    ReplaceArgs,
    UndoArgs,
    ViewArgs,
)
from memoryd.serve.peers import Asker
from memoryd.serve.reads import Reads
from memoryd.serve.topics import Topics

Answer = dict[str, Any]
Work = Callable[[Notes], Answer]


class Keeper(Protocol):
    """What notes need of whoever writes the index."""

    async def label_of(self, caller: Caller) -> Label:
        """Return the label of the asking session. Raises: Behind."""

    def changed(self, paths: list[Path]) -> None:
        """Take the hint that these files may have changed."""


class Desk(msgspec.Struct, frozen=True):
    """What the methods of notes act on; `fault` says why `notes` is missing."""

    notes: Notes | None
    fault: str
    classes: Classes
    keeper: Keeper
    reads: Reads
    topics: Topics

    def open(self) -> Notes:
        """Return the open notes. Raises: Unavailable."""
        if self.notes is None:
            raise Unavailable(
                f"notes are not served: {self.fault or 'they are not open'}",
                remedy="see `bxctl status`; restart memoryd once it is mended",
            )
        return self.notes

    def overview(self) -> dict[str, object]:
        """Return what the owner's `status` tells of the notes."""
        if self.notes is None:
            return {"notes": 0, "pending": 0, "external": 0, "fault": self.fault}
        state = self.notes.journal.state
        return {
            "notes": len(state.live),
            "pending": len(state.proposals) - sum(state.calls.values()),
            "external": self.notes.outside,
            "fault": self.notes.journal.broken,
        }


def table(desk: Desk) -> Methods:
    """Return every method of notes by name; which socket grants which is in `peers`."""
    return {
        "notes.view": _looks(desk, "notes.view", ViewArgs, _view),
        "notes.list": _looks(desk, "notes.list", ListArgs, _list),
        "notes.create": _edits(desk, "create", CreateArgs),
        "notes.str_replace": _edits(desk, "str_replace", ReplaceArgs),
        "notes.insert": _edits(desk, "insert", InsertArgs),
        "notes.delete": _edits(desk, "delete", DeleteArgs),
        "notes.rename": _edits(desk, "rename", RenameArgs),
        "notes.log": _owner(desk, LogArgs, _log),
        "notes.diff": _owner(desk, UndoArgs, _diff),
        "notes.undo": _owner(desk, UndoArgs, _undo),
        "notes.verify": _owner(desk, Nothing, _verify),
        "notes.pending": _owner(desk, Nothing, _pending),
        "notes.accept": _owner(desk, AcceptArgs, _accept),
        "notes.reject": _owner(desk, RejectArgs, _reject),
        "notes.redact": _owner(desk, RedactArgs, _redact),
    }


def mark(desk: Desk, scope: Scope, records: Iterable[dict[str, Any]]) -> None:
    """Say of each note among `records` whether an edit of it waits for the owner; runs in a worker thread."""
    found = [record for record in records if record.get("kind") == "note"]
    if not found or desk.notes is None:
        return
    awaited: set[str] = set()
    if scope.untrusted == "include":
        awaited = {names.stored(desk.classes, place) for place in reading.awaited(desk.notes)}
    for record in found:
        record["pending"] = record["session"] in awaited


def _form(form: type[Common]) -> Check:
    """Return the check of a method's arguments, whose refusals are those of check 1."""
    check = fitting(form)

    def checked(args: dict[str, Any]) -> Common:
        try:
            return check(args)
        except BadRequest as error:
            error.data["check"] = "args"
            raise

    return checked


def _looks(
    desk: Desk, name: str, form: type[Looking], look: Callable[[Any, View, Notes], Answer]
) -> Slow:
    async def run(asker: Asker, args: Looking, deadline: Deadline) -> Answer:
        label = None if args.caller is None else await desk.keeper.label_of(args.caller)
        scope = scope_of(asker.capability, desk.classes, args.max_class, label)
        if not scope.covers_project(None):  # a limited socket sees what belongs to its projects
            raise handles.absent()
        view = View(scope.level, scope.untrusted == "include", scope.owner)
        log = args.caller.log if args.caller else None
        answer = await _run(desk, partial(look, args, view))
        desk.reads.note(asker, name, _named(answer), answer["label"], caller=log)
        return answer

    return Slow(_form(form), run)


def _view(args: ViewArgs, view: View, notes: Notes) -> Answer:
    if args.raw:
        return reading.raw(notes, args.path, view)
    return reading.view(notes, args.path, view, view_range=args.view_range, depth=args.depth)


def _list(args: ListArgs, view: View, notes: Notes) -> Answer:
    return reading.listing(notes, view, path=args.path, after=args.after, limit=args.limit)


def _named(answer: Answer) -> list[str]:
    """Return the paths that an answer tells of."""
    entries = answer.get("entries", answer.get("notes"))
    return [answer["path"]] if entries is None else [entry["path"] for entry in entries]


def _edits(desk: Desk, command: Command, form: type[Editing]) -> Slow:
    async def run(asker: Asker, args: Editing, deadline: Deadline) -> Answer:
        who = await _asker(desk, asker, args)
        edit = edit_of(command, args)
        try:
            answer = await _run(desk, lambda notes: notes.edit(edit, who))
        except Pending as waits:
            notices.proposed(desk.topics, desk.classes, waits)
            raise
        notices.edited(desk.topics, desk.classes, answer, edit.path if edit.to else None)
        desk.keeper.changed([desk.open().store.root])
        if "snippet" in answer:
            method = f"notes.{command}"
            desk.reads.note(asker, method, _named(answer), answer["label"], caller=who.log)
            return answer
        # It tells nothing of what lies there; its own place would lift a session by a note that it wrote itself.
        return {**answer, "label": told_label(desk.classes, LOWEST)}

    return Slow(_form(form), run)


def edit_of(command: Command, args: Editing) -> Edit:
    """Return the edit that a request asks for."""
    path, to = str(getattr(args, "path", "")), None
    if isinstance(args, RenameArgs):
        path, to = args.old_path, args.new_path
    return Edit(
        command=command,
        path=path,
        to=to,
        arguments={name: getattr(args, name) for name in asked.ARGUMENTS[command]},
        recursive=isinstance(args, DeleteArgs) and args.recursive,
        expect=args.expect,
        reason=args.reason,
        force=args.force,
    )


async def _asker(desk: Desk, asker: Asker, args: Editing) -> asked.Asker:
    """Return whom an edit is made for. Raises: Behind, NotGranted, BadRequest."""
    allowed, peer, classes = asker.capability, asker.peer, desk.classes
    if args.owner:
        if not allowed.owner or args.caller is not None:
            raise NotGranted(
                "only a person at the owner's socket acts as the owner",
                remedy="leave `owner` out, or name no `caller`",
                check="grant",
            )
        return owner_asks(classes, client=allowed.name, uid=peer.uid, pid=peer.pid)
    if not scope_of(allowed, classes, None, None).covers_project(None):
        raise handles.absent()
    if args.caller is None:
        label = unnamed(allowed, classes)
    else:
        label = await desk.keeper.label_of(args.caller)
    return asked.Asker(
        client=allowed.name,
        clearance=allowed.level,
        session=label.join(claimed(classes, args.label)),
        tools=frozenset(allowed.tools),
        uid=peer.uid,
        pid=peer.pid,
        log=None if args.caller is None else args.caller.log,
        n=None if args.caller is None else args.caller.n,
    )


def claimed(classes: Classes, told: Claimed | None) -> Label:
    """Return the claimed label; a class that nobody knows is the highest."""
    if told is None:
        return Label(0, False)
    try:
        return Label(classes.level(told.cls), told.untrusted)
    except LabelError:
        return classes.highest


def _owner(
    desk: Desk, form: type[Common], act: Callable[[Any, asked.Asker, Notes], Answer]
) -> Slow:
    async def run(asker: Asker, args: Common, deadline: Deadline) -> Answer:
        peer = asker.peer
        who = owner_asks(desk.classes, client=asker.capability.name, uid=peer.uid, pid=peer.pid)
        answer = await _run(desk, partial(act, args, who))
        notices.edited(desk.topics, desk.classes, answer, None)
        desk.keeper.changed([desk.open().store.root])
        return answer

    return Slow(_form(form), run)


def _log(args: LogArgs, who: asked.Asker, notes: Notes) -> Answer:
    return {"entries": history.log(notes, path=args.path, limit=args.limit)}


def _diff(args: UndoArgs, who: asked.Asker, notes: Notes) -> Answer:
    return waiting.change(notes, args.txn)


def _undo(args: UndoArgs, who: asked.Asker, notes: Notes) -> Answer:
    return history.undo(notes, who, args.txn)


def _verify(args: Nothing, who: asked.Asker, notes: Notes) -> Answer:
    with notes.alone():
        faults = verify.verify(notes.store, notes.journal)
        lines = notes.journal.state.seq
    return {"faults": [{"where": each.where, "what": each.what} for each in faults], "lines": lines}


def _pending(args: Nothing, who: asked.Asker, notes: Notes) -> Answer:
    return {"pending": waiting.pending(notes)}


def _accept(args: AcceptArgs, who: asked.Asker, notes: Notes) -> Answer:
    return history.accept(
        notes, who, txn=args.txn, path=args.path, expect=args.expect, force=args.force
    )


def _reject(args: RejectArgs, who: asked.Asker, notes: Notes) -> Answer:
    return history.reject(notes, args.txn, reason=args.reason)


def _redact(args: RedactArgs, who: asked.Asker, notes: Notes) -> Answer:
    return history.redact(notes, who, args.hash, reason=args.reason)


async def _run(desk: Desk, work: Work) -> Answer:
    """Do `work` in a worker thread; an edit that has begun ends, whatever its deadline."""
    run: Callable[..., Awaitable[Answer]] = trio.to_thread.run_sync
    return await run(work, desk.open())
