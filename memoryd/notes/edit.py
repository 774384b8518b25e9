"""Edits made real: intent, write, commit; and at the start, what a kill left between them.

In: checked `Work`. Out: the file on the disk, the journal's lines, the answer. The order is
contents, intent and a draft beside the note, durable together → the note in one step, durable → commit →
HEAD. Whatever point a kill or a power cut hits, the note's hash tells on which side of the edit it is, and
`recover` ends the intent accordingly.
"""

from typing import Any

from memoryd import points
from memoryd.clock import rfc3339
from memoryd.errors import IOFailed, MemorydError
from memoryd.labels import Classes, Label
from memoryd.notes import commands, names
from memoryd.notes.blobs import name_of
from memoryd.notes.journal import Journal
from memoryd.notes.names import Place
from memoryd.notes.replay import Entry
from memoryd.notes.request import Work
from memoryd.notes.store import Store
from memoryd.notes.together import Together

_DONE = {"create": "created", "str_replace": "edited", "insert": "edited",
         "delete": "deleted", "rename": "renamed", "restore": "restored"}  # fmt: skip


def told_label(classes: Classes, label: Label) -> dict[str, object]:
    """Return a label as it is journaled and travels."""
    return {"class": classes.name(label.level), "untrusted": label.untrusted}


def told_flags(work: Work) -> list[dict[str, object]]:
    """Return the suspicious shapes of what was written, as they are journaled and travel."""
    return [{"kind": flag.kind, "line": flag.line} for flag in work.flags]


def place_label(place: Place) -> Label:
    """Return the label of what lies at `place`: its class, untrusted in the inbox."""
    return Label(place.level, place.inbox)


def described(work: Work, kind: str, txn: str, **more: object) -> Entry:
    """Return the journal's entry for `work`: who, what, from which bytes to which."""
    asker, edit, classes = work.asker, work.edit, work.scene.store.classes
    entry: Entry = {
        "kind": kind,
        "ts": rfc3339(work.scene.now_ms),
        "txn": txn,
        "op": edit.command,
        "path": names.stored(classes, work.place),
        "to": None if work.target is None else names.stored(classes, work.target),
        "before": None if work.before is None else name_of(work.before),
        "after": None if work.after is None else name_of(work.after),
        "size": None if work.after is None else len(work.after),
        "actor": {"client": asker.client, "uid": asker.uid, "pid": asker.pid, "owner": asker.owner},
        "session": None if asker.log is None else {"log": asker.log, "n": asker.n},
        "label": told_label(classes, asker.session),
        "flags": told_flags(work),
        "reason": edit.reason,
    }
    return {**entry, **more}


def perform(store: Store, journal: Journal, work: Work, txn: str, **more: object) -> None:
    """Carry out checked `work`; `more` goes into its entry.

    Raises: Conflict when the file changed since the check; DiskFull, IOFailed. A write that was refused is
    ended in the journal; after one that failed no edit is taken before the next start.
    """
    journal.check_writable()
    with Together() as together:
        for content in (work.before, work.after):
            if content is not None:
                journal.blobs.put(content, together)
        points.reached("notes: blobs stored")
        intent = journal.write(described(work, "intent", txn, **more), together)
        points.reached("notes: intent written")
        try:
            _write(store, journal, work, together)
        except IOFailed as error:
            journal.stop(error)
            raise
        except MemorydError:
            _end(store, journal, work, intent)
            raise
        try:
            # Durable with the next line: until then the intent and the note tell that it is done.
            journal.write(_ended("commit", intent, rfc3339(work.scene.now_ms)), together)
        except MemorydError as error:
            journal.stop(error)
            raise
        points.reached("notes: commit written")
    journal.set_anchor()


def _write(store: Store, journal: Journal, work: Work, together: Together) -> None:
    """Change the file once everything before it is durable. Raises: as `perform`."""
    if work.after is not None and work.target is None:
        with store.draft(work.place, work.after) as draft:
            together.add(draft.handle)
            journal.sync(together)
            points.reached("notes: all synced")
            store.put(draft, work.seen)
        return
    journal.sync(together)
    points.reached("notes: all synced")
    if work.seen is not None and work.target is not None:
        store.move(work.place, work.target, work.seen)
    elif work.seen is not None:
        store.remove(work.place, work.seen)


def _end(store: Store, journal: Journal, work: Work, intent: Entry) -> None:
    """End an intent whose write was refused, by what is on the disk: one that fills may do so late."""
    journal.append(_ended(_outcome(store, intent), intent, rfc3339(work.scene.now_ms)))
    journal.set_anchor()


def _ended(kind: str, intent: Entry, ts: str, reason: str = "") -> Entry:
    return {"kind": kind, "txn": intent["txn"], "ts": ts, "reason": reason}


def answer(work: Work, txn: str | None) -> dict[str, Any]:
    """Return what the asker is told: status, a short text for a model, hash, label, snippet."""
    classes = work.scene.store.classes
    place = work.target or work.place
    shown = names.shown(classes, place)
    status = _DONE[work.edit.command] if work.changed else "unchanged"
    told: dict[str, Any] = {
        "status": status,
        "path": shown,
        "changed": work.changed,
        "txn": txn,
        "label": told_label(classes, place_label(place)),
        "flags": told_flags(work),
        "text": f"{status} {shown}",
        "hash": None if work.after is None else name_of(work.after),
        "bytes": None if work.after is None else len(work.after),
    }
    if work.edited is not None:
        told["snippet"] = commands.snippet(work.edited)
        told["text"] += "\n" + told["snippet"]
    return told


def recover(store: Store, journal: Journal, ts: str) -> None:
    """End every intent that a kill left open, by the bytes on the disk; finish every redaction.

    After it, replaying the journal gives the disk; a note that is neither as before nor as after the edit
    counts as changed outside. May itself be killed anywhere, and run again. Raises: DiskFull, IOFailed.
    """
    store.sweep_temps()
    open_ones = sorted(journal.state.intents.items(), key=lambda item: int(item[1]["seq"]))
    for _, intent in open_ones:
        journal.append(_ended(_outcome(store, intent), intent, ts, "recovery"))
        points.reached("notes: recovered one")
    for content in journal.state.redacted:
        journal.blobs.drop(content)
    if open_ones:
        journal.set_anchor()


def _outcome(store: Store, intent: Entry) -> str:
    """Return how an open intent ends: ``commit`` when its result is on the disk, else ``abort``."""
    old = names.from_stored(str(intent["path"]), store.classes)
    if old is None:
        return "abort"  # its class is no longer configured, so nobody sees the note
    if intent["to"] is None:
        return "commit" if _hash(store, old) == intent["after"] else "abort"
    new = names.from_stored(str(intent["to"]), store.classes)
    if new is None:
        return "abort"
    store.finish_move(old, new)
    moved = _hash(store, old) is None and _hash(store, new) == intent["before"]
    return "commit" if moved else "abort"


def _hash(store: Store, place: Place) -> str | None:
    try:
        found = store.read(place)
    except MemorydError:
        return "unreadable"
    return None if found is None else name_of(found[0])
