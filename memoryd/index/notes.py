"""Notes as rows: one a note, labelled by where it lies, untrusted while nobody has accepted its bytes.

In: the folder of notes and its journal, through `notes.Shelf`. Out: rows in the caller's transaction, and a
row of table `log` for each note (source ``notes``, path below ``notes/``, record 0, block 0), so that search,
dump and filters need know nothing of notes. A file that did not change is not read again; its label is
looked at each time, since an accepted edit changes no byte.
"""

from pathlib import Path
from typing import NamedTuple

import apsw

from memoryd.clock import monotonic
from memoryd.index import table
from memoryd.index.identity import Marks, Seen
from memoryd.index.rows import Counts, Source
from memoryd.index.settings import Settings
from memoryd.index.table import Log, Place
from memoryd.index.writer import Writer
from memoryd.labels import Label
from memoryd.notes.handles import Version
from memoryd.notes.names import Place as NotePlace
from memoryd.notes.replay import Held
from memoryd.notes.shelf import SOURCE, Shelf, label_of
from memoryd.records import Kind

_MOST = (1 << 63) - 1


class Done(NamedTuple):
    """What a pass came to: rows of table `log` by path (None: gone), and whether the budget ended it."""

    logs: dict[str, Log | None]
    counts: Counts
    more: bool


class NoteRows:
    """What an index knows of the notes. `due`: something may have changed."""

    def __init__(self, settings: Settings, connection: apsw.Connection) -> None:
        """Read what the index holds. Raises: apsw.Error."""
        self.shelf = Shelf(settings.home, settings.classes)
        self.known = {log.place.log: log for log in table.notes(connection)}
        self.due = True

    def concerns(self, path: Path) -> bool:
        """Say whether a changed file is one of the notes."""
        return path.is_relative_to(self.shelf.root)

    def take(self, done: Done) -> None:
        """Remember what a committed pass wrote."""
        for path, log in done.logs.items():
            if log is None:
                self.known.pop(path, None)
            else:
                self.known[path] = log
        self.due = done.more


def index_notes(writer: Writer, notes: NoteRows, seconds: float | None) -> Done:
    """Bring the rows in line with the notes, as far as `seconds` go; the caller's transaction commits them.

    Notes above `max_class` get no row. Raises: apsw.Error.
    """
    done = Done({}, Counts(), more=False)
    if not notes.due:
        return done
    began, live = monotonic(), notes.shelf.live()
    there = set()
    for path, place, version in notes.shelf.notes():
        there.add(path)
        if place.level > writer.settings.max_level:
            continue
        if seconds is not None and monotonic() - began > seconds and done.logs:
            done = done._replace(more=True)
            break
        known = notes.known.get(path)
        if known is not None and _same(known, place, version, live):
            continue
        done.logs[path] = _indexed(writer, notes, place, path, known)
    if not done.more:
        for path in sorted(set(notes.known) - there):
            done.logs[path] = None
            table.delete(writer.connection, notes.known[path].id, len(writer.settings.classes))
    writer.rows.flush()
    done.counts.records = len(done.logs)
    done.counts.indexed = sum(log is not None for log in done.logs.values())
    return done


def _same(known: Log, place: NotePlace, version: Version, live: dict[str, Held]) -> bool:
    label = label_of(place, known.place.log, known.marks.head.hex(), live)
    return known.seen == _seen(version) and known.label == label


def _indexed(
    writer: Writer, notes: NoteRows, place: NotePlace, path: str, known: Log | None
) -> Log | None:
    """Write a note's row anew and return its log; None for what cannot be read as a note."""
    if known is not None:
        table.delete(writer.connection, known.id, len(writer.settings.classes))
    read = notes.shelf.text(place)
    if read is None:
        return None
    text, content, version = read
    label = label_of(place, path, content, notes.shelf.live())
    log = _log(writer, path, label, version, content)
    table.store(writer.connection, log)
    writer.rows.add(Source(log.id, 0, 0, Kind.NOTE, log.first_ts), label, text)
    return log


def _log(writer: Writer, path: str, label: Label, version: Version, content: str) -> Log:
    root = str(writer.settings.home / "notes")
    ts = version.mtime_ns // 1_000_000
    return Log(
        table.next_number(writer.connection),
        writer.ids.log_key(SOURCE, root, path),
        Place(SOURCE, root, path),
        path,
        label=label,
        peak=label,
        seen=_seen(version),
        marks=Marks(head=bytes.fromhex(content)),
        indexed=1,
        first_ts=ts,
        last_ts=ts,
    )


def _seen(version: Version) -> Seen:
    return Seen(version.dev & _MOST, version.ino & _MOST, version.size, version.mtime_ns & _MOST)
