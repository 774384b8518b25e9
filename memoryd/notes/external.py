"""Edits made outside memoryd: found by holding the notes' bytes against what the journal knows.

In: a store and the journal's state. Out: paths whose bytes are not those of their last edit. An editor of the
owner and a shell of an agent look alike here (same user), so such a note counts as untrusted until the
owner has seen the difference and accepted it.
"""

from collections.abc import Iterator

from memoryd.clock import rfc3339
from memoryd.errors import MemorydError
from memoryd.notes import names
from memoryd.notes.blobs import name_of
from memoryd.notes.handles import Version
from memoryd.notes.journal import Journal
from memoryd.notes.names import Place
from memoryd.notes.replay import State
from memoryd.notes.store import Found, Store

_MOST_KEPT = 20_000


def known(state: State, path: str, content: bytes | None) -> bool:
    """Say whether the bytes at a stored path (None: no file) are those of its last edit."""
    held = state.live.get(path)
    return (None if held is None else held.hash) == (None if content is None else name_of(content))


Hashes = dict[Place, tuple[Version, str]]
"""Hashes of contents by place, each with the state of the file that it was made of."""


def changes(
    store: Store, state: State, hashes: Hashes | None = None
) -> Iterator[tuple[str, Place, str | None]]:
    """Yield stored path, place and hash of each note changed outside; None: removed.

    With `hashes` a file is read once for as long as it stays the same.
    """
    kept: Hashes = {} if hashes is None else hashes
    seen = set()
    for found in store.notes():
        path = names.stored(store.classes, found.place)
        seen.add(path)
        now = _hash(store, found, kept)
        held = state.live.get(path)
        if now is not None and (held is None or held.hash != now):
            yield path, found.place, now
    for path in sorted(set(state.live) - seen):
        place = names.from_stored(path, store.classes)
        if place is not None:
            yield path, place, None


def _hash(store: Store, found: Found, kept: Hashes) -> str | None:
    """Return the hash of what is no odd file; None for anything else, and for what is just being swapped."""
    if found.seen is None or found.odd:
        return None
    known = kept.get(found.place)
    if known is None or known[0] != found.seen:
        try:
            read = store.read(found.place)
        except MemorydError:
            return None
        if read is None:
            return None
        known = kept[found.place] = (read[1], name_of(read[0]))
    return known[1]


def notice(store: Store, journal: Journal, hashes: Hashes, now_ms: int) -> int:
    """Journal each outside edit once, without its content; return how many there are. Raises: IOFailed."""
    found = list(changes(store, journal.state, hashes))
    new = [one for one in found if journal.state.noticed.get(one[0], "") != one[2]]
    for path, _, after in new:
        held = journal.state.live.get(path)
        journal.append(
            {
                "kind": "external",
                "ts": rfc3339(now_ms),
                "path": path,
                "before": None if held is None else held.hash,
                "after": after,
            }
        )
    if new:
        journal.set_anchor()
    if len(hashes) > _MOST_KEPT:
        hashes.clear()
    return len(found)
