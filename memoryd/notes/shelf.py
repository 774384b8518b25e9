"""The notes for whoever only reads them: the index, in the daemon and in a process that rebuilds it.

In: the state folder. Out: what lies in the class folders, with each note's label: its place, and untrusted
when it is in the inbox or its bytes are not those of its last edit. The journal is followed from where it was
read to; where it is damaged nothing counts as known, so that every note is untrusted.
"""

from collections.abc import Iterator
from pathlib import Path

from memoryd.errors import IOFailed, MemorydError
from memoryd.labels import Classes, Label
from memoryd.notes import chain, keys, names, text
from memoryd.notes.blobs import name_of
from memoryd.notes.edit import place_label
from memoryd.notes.handles import Version
from memoryd.notes.journal import HEAD, files
from memoryd.notes.keys import Keys
from memoryd.notes.names import Place
from memoryd.notes.replay import Held, State, damaged
from memoryd.notes.store import Store

SOURCE = "notes"
"""What the index calls the source of notes."""


class Shelf:
    """A reader's view of the notes below `home`; keeps no file open between calls."""

    def __init__(self, home: Path, classes: Classes) -> None:
        self.root = home / "notes"
        self._classes = classes
        self._folder = home / "journal"
        self._forget()

    def _forget(self) -> None:
        self._state = State()
        self._read: list[int] = []

    def notes(self) -> Iterator[tuple[str, Place, Version]]:
        """Yield stored path, place and state of every file that may be a note, by class and path."""
        try:
            store = Store(self.root, self._classes, make=False)
        except MemorydError:
            return
        try:
            for found in store.notes():
                if found.seen is not None and not found.odd:
                    yield names.stored(self._classes, found.place), found.place, found.seen
        finally:
            store.close()

    def text(self, place: Place) -> tuple[str, str, Version] | None:
        """Return a note's text, hash and state; None for what cannot be read as a note."""
        try:
            store = Store(self.root, self._classes, make=False)
        except MemorydError:
            return None
        try:
            read = store.read(place)
            return None if read is None else (text.decoded(read[0]), name_of(read[0]), read[1])
        except MemorydError:
            return None
        finally:
            store.close()

    def live(self) -> dict[str, Held]:
        """Return what the journal knows of every note now; nothing where it is damaged."""
        try:
            self._follow()
        except (IOFailed, OSError):
            self._forget()
        return self._state.live

    def _follow(self) -> None:
        """Take the lines that are new. Raises: IOFailed where the chain breaks, OSError."""
        found = keys.read(self._folder)
        if found is None:
            self._forget()
            return
        anchored = self._anchored(
            found.current
        )  # read first: the lines may be ahead of it, never behind
        for number, path in enumerate(files(self._folder)):
            if number == len(self._read):
                self._read.append(0)
            self._take(path, number, found)
        if self._state.seq < max(anchored, found.since + 1):
            raise damaged(self._state.seq + 1, "is missing")

    def _anchored(self, key: bytes) -> int:
        try:
            return chain.read_anchor(key, (self._folder / HEAD).read_bytes())[0]
        except FileNotFoundError:
            return 1 << 62  # a journal without its anchor counts as cut

    def _take(self, path: Path, number: int, found: Keys) -> None:
        with path.open("rb") as file:
            file.seek(self._read[number])
            content = file.read()
        whole = content.rfind(b"\n") + 1
        for line in chain.lines_of(content[:whole]):
            entry = chain.parse(line)
            if entry is None:
                raise damaged(self._state.seq + 1, "is no entry")
            self._state.follow(found, entry)
        self._read[number] += whole


def label_of(place: Place, path: str, content: str, live: dict[str, Held]) -> Label:
    """Return the label of the note whose bytes hash to `content`."""
    held = live.get(path)
    known = held is not None and held.hash == content
    return place_label(place).join(Label(0, not known))
