"""Every log from its first byte into one new file.

In: an empty file, the settings. Out: the whole index in it, closed and checked, and `Built`. One thread, one
transaction, no journal; FTS5 gathers words in memory much longer than it would while serving.
Nothing here looks at the index that is served.

The new file's pages, indexes and row counts are checked before it is handed on; its words are not held
against its texts once more, which costs half of a whole build: that is the daemon's daily look.
"""

import gc
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import apsw

from memoryd import db
from memoryd.clock import monotonic
from memoryd.errors import IOFailed
from memoryd.index import identity, purging, room, schema, sweeping, table
from memoryd.index.catalogue import Catalogue
from memoryd.index.following import reason_of
from memoryd.index.notes import NoteRows, index_notes
from memoryd.index.pending import Pending
from memoryd.index.process import Built, Progress
from memoryd.index.relating import finder, settle
from memoryd.index.rows import Counts
from memoryd.index.settings import Settings
from memoryd.index.writer import TurnFailed, Waiting, Writer, index_log
from memoryd.points import reached
from memoryd.sources import LogFile, discover

Tell = Callable[[Progress], None]

HASH_BYTES = 128 << 20
"""Per class: FTS5 writes no segment by itself; `Rows` says when, for all classes together."""
HOLD_CHARS = 32 << 20
"""Of text, whose words stay in memory: up to that there is one segment a class, and no page is left free by
joining several (a tenth of the file at 26 MB of text). A word takes about as much there as in its text."""
_DEFAULT_HASH_BYTES, _DEFAULT_MERGE = 1 << 20, 4
_TELL_EVERY_S = 0.2


def build(temp: Path, settings: Settings, tell: Tell | None = None) -> Built:
    """Index every log of `settings` into the empty file `temp`.

    Raises: what `db.wrong` knows, DiskFull already on a nearly full device; IOFailed when a log breaks off while
    it is read.
    """
    began = monotonic()
    connection = db.builder(temp)
    collecting = gc.isenabled()
    gc.disable()  # records come and go by the hundred thousand, and none of them is part of a cycle
    try:
        schema.make(connection, settings)
        with db.translated():
            _gather(connection, settings, HASH_BYTES, merge=0)
            connection.execute("BEGIN")
            counts, unreadable = _fill(Writer(connection, settings, 1, hold=HOLD_CHARS), tell)
            connection.execute("COMMIT")
            if purging.bits(connection, purging.RESIDUE):
                purging.finish(connection)
            _gather(connection, settings, _DEFAULT_HASH_BYTES, merge=_DEFAULT_MERGE)
            _join_segments(connection, settings)
        schema.check_health(connection, len(settings.classes), words=False)
        number = int(str(connection.execute("SELECT count(*) FROM log").get))
    finally:
        with db.translated():
            connection.close()
        if collecting:
            gc.enable()
    reached("rebuild: closed")
    used = getrusage(RUSAGE_SELF)
    return Built(
        temp=str(temp),
        counts=counts,
        logs=number,
        seconds=monotonic() - began,
        cpu_seconds=used.ru_utime + used.ru_stime,
        peak_kib=used.ru_maxrss,
        unreadable=unreadable,
    )


def _gather(connection: apsw.Connection, settings: Settings, size: int, *, merge: int) -> None:
    """Let FTS5 gather `size` bytes of words, and join segments as soon as there are `merge` of them (0: never)."""
    for c in range(len(settings.classes)):
        for option, value in (("hashsize", size), ("automerge", merge)):
            connection.execute(f"INSERT INTO ft_{c}(ft_{c}, rank) VALUES (?, ?)", (option, value))


def _join_segments(connection: apsw.Connection, settings: Settings) -> None:
    """Make one segment of each class: every question opens all of them, twice for every word.

    3 to 4 % of a build; a rare word among a million rows is found in half the time, its frequency in a third.
    """
    for c in range(len(settings.classes)):
        connection.execute(f"INSERT INTO ft_{c}(ft_{c}) VALUES ('optimize')")


def _fill(writer: Writer, tell: Tell | None) -> tuple[Counts, dict[str, str]]:
    """Index every log, oldest first, then what is kept of vanished ones."""
    settings, counts = writer.settings, Counts()
    memory: discover.Memory = {}
    there = discover.discover(settings.roots, memory)
    line = _oldest_first(there.logs, settings)
    telling = _Telling(tell, len(line), sum(size for size, _ in line))
    unreadable: dict[str, str] = {}
    pending, folder = Pending(), settings.path.parent
    for _, file in line:
        pending.put(writer.key_of(file), file)
    sizes = {writer.key_of(file): size for size, file in line}
    # Who starts from a log that is read later waits, so that nearly every log is read once.
    writer.patience = lambda behind: behind is None and pending.patient
    while (next_one := pending.take(0.0)) is not None:
        key, file = next_one
        room.check(folder)
        try:
            turn, _ = index_log(writer, file, None, None)
        except Waiting:
            pending.hold(key, file)
            continue
        except TurnFailed as failed:
            reason = reason_of(failed.error)
            raise IOFailed(
                f"a log broke off while it was read ({reason})", remedy="rebuild again"
            ) from failed.error
        except OSError as error:
            unreadable[f"{key:012x}"] = reason_of(error)
        else:
            counts = counts.plus(turn.counts)
        pending.succeeded(key)
        telling.done(sizes[key])
    writer.rows.flush()
    catalogue = Catalogue(table.known(writer.connection))
    found = sweeping.look(settings, there, writer, catalogue)
    for log in sweeping.settle(settings, writer, catalogue, found).logs:
        counts.indexed += log.indexed
    settle(writer, finder(settings, memory))
    counts = counts.plus(index_notes(writer, NoteRows(settings, writer.connection), None).counts)
    return counts, unreadable


def _oldest_first(files: list[LogFile], settings: Settings) -> list[tuple[int, LogFile]]:
    """Return the logs with their sizes, by their last change, so that ids rise about as time does."""
    line: list[tuple[int, str, int, LogFile]] = []
    for file in files:
        try:
            seen = identity.look(file)
        except OSError:
            continue
        if sweeping.young(settings, seen):
            line.append((seen.mtime_ns, file.where, seen.size, file))
    line.sort(key=lambda one: one[:2])
    return [(size, file) for _, _, size, file in line]


class _Telling:
    """Tells how far the work is, some times a second."""

    def __init__(self, tell: Tell | None, all_logs: int, all_bytes: int) -> None:
        self._tell = tell
        self._all_logs, self._all_bytes = all_logs, all_bytes
        self._logs = self._bytes = 0
        self._next = 0.0

    def done(self, size: int) -> None:
        self._logs += 1
        self._bytes += size
        if self._logs == self._all_logs // 2:
            reached("rebuild: half built")
        if self._tell is not None and (now := monotonic()) >= self._next:
            self._next = now + _TELL_EVERY_S
            self._tell(Progress(self._logs, self._all_logs, self._bytes, self._all_bytes))
