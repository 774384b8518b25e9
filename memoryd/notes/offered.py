"""What the notes offer to a prompt: the index note of each class, and a line about every other note.

In: open notes, the highest class that may be told. Out: `Offer`s in the order of their paths, each with what
speaks against telling it. Which of them fit, and how they are written, is decided by `recall.block`.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from memoryd.errors import MemorydError
from memoryd.labels import Label
from memoryd.notes import names, text
from memoryd.notes.blobs import name_of
from memoryd.notes.desk import Notes
from memoryd.notes.note import Summary, summary


class Offer(msgspec.Struct, frozen=True):
    """A note: `text` of an index note, None of any other; `refused` says why it may not be told, or ""."""

    path: str
    label: Label
    about: str
    text: str | None
    changed: int
    refused: str = ""


def offers(notes: Notes, level: int) -> list[Offer]:
    """Return every note up to class `level`, by path."""
    today = datetime.fromtimestamp(notes.clock() / 1_000, UTC).date().isoformat()
    found = []
    with notes.alone():
        for each in notes.store.notes():
            if each.place.level > level:
                break  # by class, low to high: nothing above is even looked at
            note = summary(notes.store, notes.summaries, each)
            if note is not None and each.seen is not None:
                found.append(_offer(notes, note, today, each.seen.mtime_ns))
    return sorted(found, key=lambda offer: offer.path)


def _offer(notes: Notes, note: Summary, today: str, changed: int) -> Offer:
    held = notes.journal.state.live.get(note.stored)
    external = held is None or held.hash != note.hash
    endorsed = held is not None and held.owner
    refused = _refused(note, external=external, endorsed=endorsed, today=today)
    index_note = note.place.segments == (names.INDEX_NOTE,)
    return Offer(
        path=note.path,
        label=Label(note.place.level, external or note.place.inbox),
        about=note.told["description"] or note.told["title"],
        text=_text(notes, note) if index_note and not refused else "" if index_note else None,
        changed=changed,
        refused=refused,
    )


def _refused(note: Summary, *, external: bool, endorsed: bool, today: str) -> str:
    """Say why a note is not told; what looks suspicious is, once the owner wrote or accepted it."""
    told: dict[str, Any] = note.told
    if note.place.inbox:
        return "untrusted"
    if external:
        return "external"
    if told["expires"] is not None and told["expires"] <= today:
        return "expired"
    return "flagged" if told["flags"] and not endorsed else ""


def _text(notes: Notes, note: Summary) -> str:
    """Return an index note's text; "" where it has just changed, or cannot be read."""
    try:
        read = notes.store.read(note.place)
        whole = "" if read is None else text.decoded(read[0])
    except MemorydError:
        return ""
    return whole if read is not None and name_of(read[0]) == note.hash else ""
