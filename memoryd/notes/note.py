"""A note as it lies on the disk: what it says of itself, read once for as long as its file stays the same.

In: what a listing found. Out: `Summary`, kept by the file's state, so that listing ten thousand notes again
reads none of them.
"""

from typing import Any

import msgspec

from memoryd.errors import MemorydError
from memoryd.notes import commands, front, names, text
from memoryd.notes.blobs import name_of
from memoryd.notes.handles import Version
from memoryd.notes.names import Place
from memoryd.notes.store import Found, Store

_MOST_KEPT = 20_000


class Summary(msgspec.Struct, frozen=True, gc=False):
    """What is known of a note without its text: `told` is what is said of it in a list, in part.

    `standing` keeps what a list says of it in whole, once it was asked for: changed outside or not, with an
    edit that waits for the owner or without.
    """

    place: Place
    stored: str
    path: str
    hash: str
    told: dict[str, Any]
    standing: dict[tuple[bool, bool], Any] = {}


Kept = dict[Place, tuple[Version, Summary | None]]
"""Summaries by place, each with the state of the file that it was made of; None: that is no note."""


def summary(store: Store, kept: Kept, found: Found) -> Summary | None:
    """Return the summary of the note that `found` names; None for what cannot be read as one."""
    if found.folder or found.odd or found.seen is None:
        return None
    known = kept.get(found.place)
    if known is not None and known[0] == found.seen:
        return known[1]
    made, seen = _made(store, found)
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[found.place] = (seen, made)
    return made


def _made(store: Store, found: Found) -> tuple[Summary | None, Version]:
    seen = found.seen or Version(0, 0, 0, 0, 0)
    try:
        read = store.read(found.place)
        if read is None:
            return None, seen
        content, seen = read
        whole = text.decoded(content)
    except MemorydError:
        return None, seen
    head, path = front.parse(whole)[0], names.shown(store.classes, found.place)
    told = {
        "path": path,
        "folder": False,
        "size": len(content),
        "lines": len(commands.lines_of(whole)),
        "hash": name_of(content),
        "title": head.title,
        "description": head.description,
        "tags": list(head.tags),
        "expires": None if head.expires is None else head.expires.isoformat(),
        "flags": [flag.kind for flag in text.suspicious(whole)],
    }
    stored = names.stored(store.classes, found.place)
    return Summary(found.place, stored, path, name_of(content), told), seen
