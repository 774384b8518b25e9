"""Whether the journal and the notes are what memoryd left: every fault, none repaired.

In: an open journal and store, read afresh from the disk. Out: `Fault`s, each with the sequence number of
the line or the path of the note. Nothing is written.
"""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.errors import IOFailed
from memoryd.notes import chain, external, names
from memoryd.notes.chain import Fault
from memoryd.notes.journal import HEAD, Journal, files
from memoryd.notes.replay import State
from memoryd.notes.store import Store


def verify(store: Store, journal: Journal) -> list[Fault]:
    """Return every fault: of the chain, its anchor, its contents, the modes, and the notes."""
    return [
        *chain_faults(journal),
        *content_faults(journal),
        *mode_faults(journal.folder),
        *note_faults(store, journal.state),
    ]


def chain_faults(journal: Journal) -> Iterator[Fault]:
    """Yield what is wrong with the lines and with HEAD, each by its sequence number."""
    seq, last = 0, chain.START
    previous: str | None = chain.START
    for path in files(journal.folder):
        for content in chain.lines_of(path.read_bytes()):
            seq += 1
            entry = chain.parse(content)
            if entry is None:
                yield Fault(str(seq), "is no entry")
                previous = None
                continue
            if wrong := journal.keys.check(entry, seq, previous):
                yield Fault(str(seq), wrong)
                # Go on from what the line says, so that one fault is reported once.
                seq = _number(entry.get("seq"), seq)
            previous = last = str(entry.get("mac"))
    yield from _anchor_faults(journal, seq, last)


def _anchor_faults(journal: Journal, seq: int, last: str) -> Iterator[Fault]:
    try:
        anchored, mac = chain.read_anchor(
            journal.keys.current, (journal.folder / HEAD).read_bytes()
        )
    except (IOFailed, OSError):
        yield Fault(HEAD, "is missing, was changed, or written without the key")
        return
    if anchored > seq:
        yield Fault(str(seq + 1), f"the tail is cut: HEAD says {anchored}")
    elif anchored == seq and mac != last:
        yield Fault(str(seq), "is not the line that HEAD names")


def content_faults(journal: Journal) -> Iterator[Fault]:
    """Yield contents that the lines name and that are neither there nor redacted."""
    found = _readable(journal)
    redacted = {entry.get("before") for entry in found if entry.get("kind") == "redact"}
    wanted: dict[str, Any] = {}
    for entry in found:
        if entry.get("kind") in {"intent", "pending", "accept"}:
            for name in (entry.get("before"), entry.get("after")):
                if isinstance(name, str) and name not in redacted:
                    wanted.setdefault(name, entry.get("seq"))
    for name, seq in wanted.items():
        try:
            if journal.blobs.get(name) is None:
                yield Fault(str(seq), "its stored content is missing")
        except IOFailed:
            yield Fault(str(seq), "its stored content is damaged")


def _readable(journal: Journal) -> list[dict[str, Any]]:
    return [
        entry
        for path in files(journal.folder)
        for content in chain.lines_of(path.read_bytes())
        if (entry := chain.parse(content)) is not None
    ]


def mode_faults(folder: Path) -> Iterator[Fault]:
    """Yield files of the journal that others could read."""
    for path in sorted([folder, *folder.rglob("*")]):
        if stat.S_IMODE(path.lstat().st_mode) & 0o077:
            yield Fault(str(path.relative_to(folder.parent)), "others can read or write it")


def note_faults(store: Store, state: State) -> Iterator[Fault]:
    """Yield notes that are not as the journal says, and what else lies among them."""
    for found in store.notes():
        if found.odd:
            yield Fault(names.stored(store.classes, found.place), found.odd)
    for path, _, now in external.changes(store, state):
        what = "removed" if now is None else "changed"
        yield Fault(path, f"was {what} outside memoryd")


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
