"""What a reader sees of the notes: folders, pages of lines, and each note's standing.

In: a path as tools know it, a `View`. Out: maps. Classes above the clearance are absent, not hidden, and so
are untrusted notes where the reader is shown none; a note that was changed outside says so.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from memoryd.errors import BadRequest, MemorydError
from memoryd.labels import LOWEST, Label
from memoryd.notes import commands, handles, names, text
from memoryd.notes.blobs import name_of
from memoryd.notes.desk import Notes
from memoryd.notes.edit import place_label, told_label
from memoryd.notes.names import Place
from memoryd.notes.note import Summary, summary
from memoryd.notes.store import Found

MOST_ENTRIES = 500
MAX_DEPTH = 3


class View(msgspec.Struct, frozen=True):
    """Who looks: up to which class, whether untrusted notes are shown, whether it is the owner."""

    level: int
    untrusted: bool = True
    owner: bool = False


def view(
    notes: Notes,
    path: str,
    reader: View,
    *,
    view_range: tuple[int, int] | None = None,
    depth: int = 2,
) -> dict[str, Any]:
    """Return a note's numbered lines, or the entries of a folder down to `depth` (1 to 3).

    Raises: CheckFailed (``path``, ``unsafe``, ``range``), NotFound, BadRequest (``args``).
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise BadRequest("depth is out of range", remedy=f"1 to {MAX_DEPTH}", check="args")
    place = names.parse(path, notes.classes, reader.level)
    with notes.alone():
        if place is None or not place.name.endswith(names.SUFFIX):
            if view_range is not None:
                raise BadRequest("a folder has no lines", remedy="leave it out", check="args")
            return _folder(notes, place, reader, depth)
        return _note(notes, place, reader, view_range)


def raw(notes: Notes, path: str, reader: View) -> dict[str, Any]:
    """Return a note's whole text, without numbers. Raises: as `view`."""
    place = names.parse(path, notes.classes, reader.level)
    if place is None:
        raise BadRequest("a folder has no text", remedy="name a note", check="args")
    with notes.alone():
        content, told = _read(notes, place, reader)
    return {**told, "text": text.as_text(content)}


def _note(
    notes: Notes, place: Place, reader: View, view_range: tuple[int, int] | None
) -> dict[str, Any]:
    content, told = _read(notes, place, reader)
    shown = commands.page(text.as_text(content), view_range)
    return {
        **told,
        "text": shown.text,
        "first": shown.first,
        "last": shown.last,
        "lines": shown.lines,
        "next": shown.next,
    }


def _read(notes: Notes, place: Place, reader: View) -> tuple[bytes, dict[str, Any]]:
    """Return a note's bytes, and what is told of it beside them. Raises: NotFound, CheckFailed."""
    names.check_note(place)
    read = notes.store.read(place)
    if read is None:
        raise handles.absent()
    content = read[0]
    external = notes.external(place, content)
    label = place_label(place).join(Label(0, external))
    if label.untrusted and not reader.untrusted:
        raise handles.absent()
    return content, {
        "path": names.shown(notes.classes, place),
        "kind": "note",
        "hash": name_of(content),
        "external": external,
        "pending": reader.untrusted and place in _awaited(notes),
        "label": told_label(notes.classes, label),
    }


def _folder(notes: Notes, place: Place | None, reader: View, depth: int) -> dict[str, Any]:
    if place is None:
        classes = [Place(level, ()) for level in range(reader.level + 1)]
        found = [
            one
            for each in classes
            for one in (Found(each, True), *_below(notes, each, depth - 1, reader))
        ]
    else:
        found = _below(notes, place, depth, reader)
    told = list(islice(_entries(notes, found, reader), MOST_ENTRIES + 1))
    entries = [entry.told for entry in told[:MOST_ENTRIES]]
    label = _join(told[:MOST_ENTRIES], LOWEST if place is None else place_label(place))
    shown = names.ROOT if place is None else names.shown(notes.classes, place)
    return {
        "path": shown,
        "kind": "folder",
        "entries": entries,
        "more": len(told) > MOST_ENTRIES,
        "text": "\n".join(map(_line, entries)) or f"{shown} is empty",
        "label": told_label(notes.classes, label),
    }


def _below(notes: Notes, place: Place, depth: int, reader: View) -> list[Found]:
    if depth < 1 or (place.inbox and not reader.untrusted):
        return []
    here = sorted(notes.store.listed(place), key=lambda found: (not found.folder, found.place.name))
    below: list[Found] = []
    for found in here:
        below.append(found)
        if found.folder and not found.odd:
            below += _below(notes, found.place, depth - 1, reader)
    return below


class _Entry(NamedTuple):
    """What is told of a name, by its path, and the label of that."""

    path: str
    label: Label
    told: dict[str, Any]


def _join(entries: Iterable[_Entry], label: Label) -> Label:
    for entry in entries:
        label = label.join(entry.label)
    return label


def _entries(notes: Notes, found: Iterable[Found], reader: View) -> Iterator[_Entry]:
    """Yield what the reader may see of each name."""
    live = notes.journal.state.live
    # That an edit waits is a word of the session that asked for it, and nearly all of those are untrusted.
    awaited = _awaited(notes) if reader.untrusted else frozenset()
    for each in found:
        note = summary(notes.store, notes.summaries, each)
        if note is None:
            entry = _no_note(notes, each, reader)
            if entry is not None:
                yield entry
            continue
        held = live.get(note.stored)
        external = held is None or held.hash != note.hash
        standing = external, each.place in awaited
        entry = note.standing.get(standing)
        if entry is None:
            entry = note.standing[standing] = _standing(notes, note, *standing)
        if reader.untrusted or not entry.label.untrusted:
            yield entry


def _standing(notes: Notes, note: Summary, external: bool, pending: bool) -> _Entry:
    """Return what is told of a note while it stands so."""
    label = Label(note.place.level, external or note.place.inbox)
    standing = {"external": external, "pending": pending}
    told = {**note.told, **standing, "label": told_label(notes.classes, label)}
    return _Entry(note.path, label, told)


def awaited(notes: Notes) -> frozenset[Place]:
    """Return where the notes lie that an edit waits for; nothing is told of what the edit would do."""
    with notes.alone():
        return _awaited(notes)


def _awaited(notes: Notes) -> frozenset[Place]:
    places = set()
    for path in notes.pending.paths():
        with suppress(MemorydError):
            places.add(names.parse(path, notes.classes, notes.classes.top))
    return frozenset(place for place in places if place is not None)


def _no_note(notes: Notes, found: Found, reader: View) -> _Entry | None:
    """Return what is told of a folder, and to the owner of anything else that is no note."""
    path = names.shown(notes.classes, found.place)
    if found.folder and not found.odd:
        label = Label(found.place.level, False)  # a folder's name is no note's text
        told: dict[str, Any] = {"path": f"{path}/", "folder": True}
        if found.place.inbox and not reader.untrusted:
            return None
    elif reader.owner:
        label = Label(found.place.level, True)
        odd = found.odd or "that is no readable note"
        told = {"path": path, "folder": False, "odd": odd}
    else:
        return None
    return _Entry(path, label, {**told, "label": told_label(notes.classes, label)})


def listing(
    notes: Notes,
    reader: View,
    *,
    path: str = names.ROOT,
    after: str = "",
    limit: int = MOST_ENTRIES,
) -> dict[str, Any]:
    """Return the notes at and below `path`, by path, from behind `after` on, `limit` at most.

    Raises: CheckFailed (``path``), NotFound.
    """
    place = names.parse(path, notes.classes, reader.level)
    with notes.alone():
        classes = [Place(level, ()) for level in range(reader.level + 1)]
        places = classes if place is None else [place]
        files = (
            one for each in places for one in notes.store.walk(each) if not one.folder or one.odd
        )
        told = sorted(_entries(notes, files, reader), key=itemgetter(0))
    rest = told if not after else [entry for entry in told if entry.path > after]
    page = rest[:limit]
    return {
        "notes": [entry.told for entry in page],
        "next": page[-1].path if len(rest) > limit else None,
        "label": told_label(notes.classes, _join(page, LOWEST)),
    }


def _line(entry: dict[str, Any]) -> str:
    about = entry.get("description") or entry.get("title") or entry.get("odd") or ""
    mark = " [untrusted]" if entry["label"]["untrusted"] else ""
    return f"{entry['path']}{mark}{'  ' + about if about else ''}"
