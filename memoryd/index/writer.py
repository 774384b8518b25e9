"""From a log's file to rows: the job of the index, in the order in which it is done.

In: a `Writer` (a connection inside a transaction, the settings, what is kept between turns), a `LogFile`.
Out: rows and progress in that transaction. Nothing is committed here: the caller commits the turns of many
logs at once, and after a rollback calls `Writer.forget`.

A log gets one turn at a time: from where it was read to, as far as its budget goes. What a turn may find:
the file goes on where it was left; or it is another one (truncated, rewritten, replaced), and then the old
rows go in the same transaction and reading starts at 0. If the new file's label would be lower than the
label that the log has had, a floor is written first (`floors`), so that rewriting a log launders nothing.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

import apsw
import msgspec

from memoryd.clock import monotonic
from memoryd.errors import MemorydError
from memoryd.fold import State, begin, call_hash, fold
from memoryd.ids import Ids
from memoryd.index import floors, identity, table, vanished
from memoryd.index.identity import Seen
from memoryd.index.rows import Counts, Rows, Source, storable
from memoryd.index.settings import Settings
from memoryd.index.table import Event, Folding, Log, Open, Place
from memoryd.labels import Label
from memoryd.points import reached
from memoryd.records import Called, Kind, Record, Said, Unreadable, call_text
from memoryd.redact import arguments
from memoryd.rules import Rules
from memoryd.sources import LogFile, discover, lines, whole
from memoryd.sources.lines import Position

_MOST_KEPT = 64
"""Logs whose fold stays in memory between turns: those that are being written."""


class Budget(msgspec.Struct, frozen=True):
    """What one log may use in one turn before the others get theirs."""

    bytes: int = 4 << 20
    seconds: float = 0.05


class TurnFailed(Exception):
    """A log failed in the middle of its turn: what is written of the turn must be taken back."""

    def __init__(self, file: LogFile, error: Exception) -> None:
        """Keep whose turn it was, and what went wrong: mostly an OSError, else a fault of ours."""
        super().__init__(type(error).__name__)
        self.file, self.error = file, error


class Writer:
    """What the functions here share. One a database and a thread."""

    def __init__(self, connection: apsw.Connection, settings: Settings, next_id: int) -> None:
        """Write into `connection`; the first row gets the id `next_id`."""
        self.connection = connection
        self.settings = settings
        self.max_level = settings.max_level
        self.ids = settings.ids
        self.rows = Rows(connection, len(settings.classes), next_id)
        self.floors = floors.read(settings.home, self.ids, settings.classes)
        self._keys: dict[tuple[str, Path, str], int] = {}
        self._kept: OrderedDict[int, tuple[int, Folding]] = OrderedDict()

    def key_of(self, file: LogFile) -> int:
        """Return the keyed name of a log."""
        name = (file.adapter.id, file.root.path, file.log)
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = key_of(self.ids, file)
        return key

    def folding(self, log: Log) -> Folding:
        """Take the fold of a log out of memory, or load it; `keep` puts it back."""
        offset, folding = self._kept.pop(log.id, (-1, None))
        if folding is None or offset != log.position.offset:
            return table.load_folding(self.connection, log)
        return folding

    def keep(self, log: Log, folding: Folding) -> None:
        """Keep the fold of a log whose turn is over."""
        self._kept[log.id] = (log.position.offset, folding)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    def forget(self, mark: int) -> None:
        """Forget what was rolled back: rows from id `mark` on, and every fold kept."""
        self.rows.forget(mark)
        self._kept.clear()


class Turn(msgspec.Struct):
    """One log's turn: its row, its fold, and what was counted in this turn."""

    log: Log
    folding: Folding
    trusted: bool
    whole: bool
    first_n: int
    counts: Counts = msgspec.field(default_factory=Counts)


def progress(writer: Writer, file: LogFile, number: int | None) -> Log:
    """Return how far a log is read: its row `number`, or a new one at the start. Raises: apsw.Error."""
    found = None if number is None else table.load(writer.connection, number)
    if found is not None:
        return found
    number = table.next_number(writer.connection)
    kept = vanished.path_of(writer.settings.home, writer.key_of(file))
    if kept.exists():
        with suppress(vanished.Unusable):
            return vanished.log_of(vanished.head(kept), writer.settings, number)
    return _new_log(writer, file, number)


def add(writer: Writer, turn: Turn, source: Source, label: Label, item: Said | Called) -> None:
    """Add one row, or count it where it lies above `max_class`; then its text is never made."""
    if label.level > writer.max_level:
        turn.counts.left_out += 1
        return
    turn.counts.indexed += 1
    writer.rows.add(source, label, _text(item))


def _text(item: Said | Called) -> str:
    return call_text(item.tool, arguments(item.args)) if isinstance(item, Called) else item.text


def set_progress(writer: Writer, turn: Turn, seen: Seen, handle: int) -> None:
    """Store how far a log is read now, with its label and its fold, beside the rows. Raises: apsw.Error."""
    log, counts, folding = turn.log, turn.counts, turn.folding
    log.label = folding.state.label
    log.peak = log.peak.join(log.label)
    log.seen = seen
    log.marks = identity.marks(handle, log.position.offset, whole=turn.whole)
    log.indexed += counts.indexed
    log.left_out += counts.left_out
    log.unreadable += counts.unreadable
    table.store_folding(writer.connection, log, turn.first_n, folding)
    table.store(writer.connection, log)
    folding.stored = folding.stored | folding.state.answered
    folding.events.clear()
    writer.keep(log, folding)
    reached("catch-up: progress set")


def index_record(writer: Writer, turn: Turn, record: Record) -> None:
    """Fold one record and add its rows, each with the label of what came before it. Raises: apsw.Error."""
    log, folding, n, ts = turn.log, turn.folding, record.n, record.ts
    state = folding.state
    below = state.label.level <= writer.max_level
    if record.about is not None and below:
        log.tell(record.about)
    if ts is not None:
        log.met(ts)
    for item, label in fold(state, record, writer.settings.rules, turn.trusted):
        if isinstance(item, Called):
            source = Source(log.id, n, item.block, Kind.TOOL_CALL, ts, item.tool)
            if item.call is not None:
                tool = item.tool if label.level <= writer.max_level else ""
                folding.places[item.call] = Open(n, item.block, tool)
        else:
            source = Source(log.id, n, item.block, item.kind, ts)
        add(writer, turn, source, label, item)
    turn.counts.records += 1
    if state.trail:
        _take_trail(writer, turn, record, below=below)


def index_log(
    writer: Writer, file: LogFile, number: int | None, budget: Budget | None
) -> tuple[Turn, bool]:
    """Give a log its turn and say whether more of it can be read at once.

    `number` is its row id where it has one. Without `budget` it is read to its end, and its last rows wait in
    `Writer.rows` for those of the next logs.
    Raises: OSError when the file cannot be opened, with nothing written; TurnFailed; apsw.Error.
    """
    with opened(file) as (handle, seen):
        try:
            turn = _begin(writer, file, number, handle, seen)
            # What was rewritten is replaced in one step, however long that takes.
            more = _read(writer, file, turn, handle, None if turn.whole else budget)
            if budget is not None:
                writer.rows.flush()
            reached("catch-up: rows added")
            set_progress(writer, turn, seen, handle)
        except (apsw.Error, MemorydError):
            raise
        except Exception as error:  # a log that trips us up must not stop the others
            raise TurnFailed(file, error) from error
    return turn, more


@contextmanager
def opened(file: LogFile) -> Iterator[tuple[int, Seen]]:
    """Open a log and yield a descriptor of its lines, and what it looked like before they were read.

    Raises: OSError, also for what is no regular file.
    """
    if (how := file.whole) is not None:
        before = identity.look(file)
        with whole.opened(how, file.root.path, file.log) as lines_of_it:
            yield lines_of_it, before
        return
    handle = discover.open_log(file)
    try:
        yield handle, identity.seen(os.fstat(handle))
    finally:
        os.close(handle)


def excluded(globs: Iterable[str], project: str | None) -> bool:
    """Say whether a log of `project` is one that the owner does not want read."""
    return project is not None and any(fnmatchcase(project, glob) for glob in globs)


def _read(writer: Writer, file: LogFile, turn: Turn, handle: int, budget: Budget | None) -> bool:
    """Read records until the file or the budget ends; say whether there may be more."""
    log = turn.log
    start, began = log.position.offset, monotonic()
    most = None if budget is None else budget.bytes
    batches = lines.read(handle, log.position, file.adapter, log=file.log, budget_bytes=most)
    for batch in batches:
        for record in batch.records:
            index_record(writer, turn, record)
        log.position = batch.position
        if excluded(file.root.exclude, log.project):
            _exclude(writer, turn)
            return False
        used_up = most is not None and log.position.offset - start >= most
        if used_up or (budget is not None and monotonic() - began > budget.seconds):
            return log.position.offset < os.fstat(handle).st_size
    return False


def _exclude(writer: Writer, turn: Turn) -> None:
    """Take back everything of a log whose project turned out to be excluded."""
    log = turn.log
    writer.rows.flush()
    table.delete(writer.connection, log.id, len(writer.settings.classes), row=False)
    log.state = table.EXCLUDED
    log.indexed = log.left_out = log.unreadable = 0
    turn.folding = Folding(State(turn.folding.state.label))
    turn.counts = Counts()


def _goes_on(writer: Writer, file: LogFile, log: Log, handle: int, seen: Seen) -> bool:
    """Say whether the file is the one that was read so far, under the floor that it has now."""
    if log.state != table.LIVE or log.floor != writer.floors.of(log.key):
        return False
    return log.position.offset == 0 or same_so_far(file, log, handle, seen)


def same_so_far(file: LogFile, log: Log, handle: int, seen: Seen) -> bool:
    """Say whether the open log starts with what was read of it. Raises: OSError."""
    at, is_whole = log.position.offset, file.whole is not None
    return identity.same(handle, seen, log.seen, at, log.marks, whole=is_whole)


def _start_over(writer: Writer, file: LogFile, log: Log, handle: int, seen: Seen) -> Log:
    """Delete what the index has of a log and return its row as it is before the first record.

    Raises: OSError, also where a floor cannot be written: then nothing of this turn may be committed.
    """
    table.delete(writer.connection, log.id, len(writer.settings.classes))
    fresh = _new_log(writer, file, log.id)
    if log.position.offset and same_so_far(file, log, handle, seen):
        return fresh
    settings = writer.settings
    if not label_at_end(settings, file, fresh.label, handle).covers(log.peak):
        floors.append(settings.home, log.place, log.peak, settings.classes, "the log was rewritten")
        writer.floors.by_log[log.key] = writer.floors.of(log.key).join(log.peak)
        reached("catch-up: floor written")
        fresh = _new_log(writer, file, log.id)
    # Reading may take many turns: until it has come as far, the log owes the label that it had.
    fresh.peak = fresh.peak.join(log.peak)
    return fresh


def label_at_end(settings: Settings, file: LogFile, start: Label, handle: int) -> Label:
    """Return the label that the whole file will have; its records are folded, not indexed.

    Raises: OSError.
    """
    state, trusted = State(start), file.root.trusted
    for batch in lines.read(handle, Position(), file.adapter, log=file.log):
        for record in batch.records:
            fold(state, record, settings.rules, trusted)
        state.trail.clear()
    return state.label


def start_of(settings: Settings, file: LogFile, floor: Label) -> Label:
    """Return the label before a log's first record."""
    return begin(settings.rules, file.root.start, floor).label


def _new_log(writer: Writer, file: LogFile, number: int) -> Log:
    place, key = place_of(file), writer.key_of(file)
    floor = writer.floors.of(key)
    label = start_of(writer.settings, file, floor)
    session = table.session_of(place.log)
    return Log(number, key, place, session, label=label, peak=label, floor=floor)


def place_of(file: LogFile) -> Place:
    """Return where a log is, as text that can be stored."""
    return Place(file.adapter.id, storable(str(file.root.path)), storable(file.log))


def key_of(ids: Ids, file: LogFile) -> int:
    """Return the keyed name of a log."""
    return ids.log_key(file.adapter.id, str(file.root.path), file.log)


def _begin(writer: Writer, file: LogFile, number: int | None, handle: int, seen: Seen) -> Turn:
    """Return the turn of a log as it goes on, or as it starts over."""
    log = progress(writer, file, number)
    if not _goes_on(writer, file, log, handle, seen):
        log = _start_over(writer, file, log, handle, seen)
    is_whole = file.whole is not None
    return Turn(log, writer.folding(log), file.root.trusted, is_whole, log.position.records)


def _take_trail(writer: Writer, turn: Turn, record: Record, *, below: bool) -> None:
    """Take the events of one record out of the fold's state, calls by their places.

    `below`: the record itself is not above `max_class`; of one that is, no name is kept either.
    """
    folding, rules = turn.folding, writer.settings.rules
    nameless = False
    for n, block, name, ok, level, untrusted in folding.state.trail:
        nameless = nameless or name is None
        call = None if name is None else _place(folding, name)
        of = None if call is None else (call.n, call.block)
        without_call = name if below and name is not None and name.startswith(":") else None
        folding.events.append(Event(n, block, of, without_call, ok, level, untrusted))
        if level > writer.settings.max_level and turn.log.why is None:
            turn.log.why = _why(rules, call, without_call)
    folding.state.trail.clear()
    if nameless:  # as what an unreadable line brings in is
        turn.counts.unreadable += sum(isinstance(item, Unreadable) for item in record.items)


def _place(folding: Folding, call: str) -> Open | None:
    return folding.places.get(call) or folding.places.get(call_hash(call))


def _why(rules: Rules, call: Open | None, brought: str | None) -> str:
    """Say in a few words what raised a log above `max_class`."""
    if call is not None:
        if not call.tool:
            return "a call above max_class"
        return call.tool if rules.known(call.tool) else f"{call.tool} (no rule)"
    if brought is not None:
        name = brought.removeprefix(":")
        return name if rules.known(name, brought=True) else f"{name} (no rule)"
    return "a line or a result that nobody can place"
