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
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial

import apsw
import msgspec

from memoryd.clock import monotonic
from memoryd.errors import MemorydError
from memoryd.fold import Row as Folded
from memoryd.fold import State
from memoryd.index import (
    floors,
    identity,
    kinfolk,
    overrides,
    purging,
    relabels,
    table,
    tombs,
    vanished,
)
from memoryd.index.files import (
    excluded,
    key_of,
    label_at_end,
    opened,
    place_of,
    same_so_far,
    start_label,
    start_of,
)
from memoryd.index.heard import Told
from memoryd.index.identity import Seen
from memoryd.index.kinship import Kinship
from memoryd.index.lineage import NOTHING
from memoryd.index.listening import Listener
from memoryd.index.retelling import Times, copied, folded, heard
from memoryd.index.rows import Counts, Row, Rows
from memoryd.index.settings import Settings
from memoryd.index.table import Folding, Log
from memoryd.index.trail import FORGOTTEN, take
from memoryd.index.turn import Budget, Turn, TurnFailed, Waiting
from memoryd.points import reached
from memoryd.records import Kind, Record, Said, call_text
from memoryd.redact import arguments
from memoryd.sources import LogFile, lines

__all__ = [
    "FORGOTTEN",
    "Budget",
    "Turn",
    "TurnFailed",
    "Waiting",
    "Writer",
    "excluded",
    "index_log",
    "index_records",
    "key_of",
    "label_at_end",
    "opened",
    "place_of",
    "progress",
    "same_so_far",
    "set_progress",
    "start_of",
]

_TOLD_BY = 64
"""Records by which a log has told its session."""

_MOST_KEPT = 64
"""Logs whose fold stays in memory between turns: those that are being written."""


class Writer:
    """What the functions here share. One a database and a thread.

    `patience(behind)` says whether a log that starts from these (None: from one that is not known) shall wait.
    """

    def __init__(
        self, connection: apsw.Connection, settings: Settings, next_id: int, *, hold: int = 0
    ) -> None:
        """Write into `connection`; the first row gets the id `next_id`; `hold`: as `Rows` has it.

        Raises: ConfigError, OSError.
        """
        self.connection = connection
        self.settings = settings
        self.max_level = settings.max_level
        self.ids = settings.ids
        self.rows = Rows(connection, len(settings.classes), next_id, hold=hold)
        entries = overrides.read(settings.home)
        self.floors = floors.gathered(entries, self.ids, settings.classes)
        self.relabels = relabels.gathered(entries, self.ids, settings.classes)
        self.tombs = tombs.gathered(entries, self.ids)
        self._kin = Kinship(connection, settings.rules.unknown, partial(start_label, settings))
        self.known: Mapping[int, table.Known] = {}
        """What the catalogue keeps of each log, if there is one: not to be kept twice."""
        self.related = False
        """Whether `kin` is read, and not rolled back since."""
        self.touched: set[int] = set()
        self.patience: Callable[[list[int] | None], bool] = lambda behind: False
        self.listened = False
        """Whether somebody wants to be told what is read."""
        self.retold: list[Told] = []
        self._kept: OrderedDict[int, tuple[int, Folding]] = OrderedDict()

    def key_of(self, file: LogFile) -> int:
        """Return the keyed name of a log."""
        return key_of(self.ids, file)

    @property
    def kin(self) -> Kinship:
        """What logs say to each other; read when it is first asked for, and again after a rollback.

        Not in the rollback itself: on a disk that fails, that would fail as well. Raises: apsw.Error.
        """
        self.relate()
        return self._kin

    def relate(self) -> None:
        """Read what logs say to each other, before anything is changed that it is read from. Raises: apsw.Error."""
        if not self.related:
            self._kin.load(self.known)
            self.related = True

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
        """Forget what was rolled back: rows from id `mark` on, every fold kept, and new relations."""
        self.rows.forget(mark)
        self._kept.clear()
        self.touched.clear()
        self.retold.clear()
        self.related = False

    def release(self, log: Log) -> None:
        """Forget the fold of a log whose rows were made or deleted outside of its turns."""
        self._kept.pop(log.id, None)


def progress(writer: Writer, file: LogFile, number: int | None) -> Log:
    """Return how far a log is read: its row `number`, or a new one at the start. Raises: apsw.Error."""
    found = None if number is None else table.load(writer.connection, number)
    if found is not None:
        return found
    number = table.next_number(writer.connection)
    home, key = writer.settings.home, writer.key_of(file)
    if vanished.holds(home, key):
        with suppress(vanished.Unusable):
            head = vanished.head(vanished.path_of(home, key))
            return vanished.log_of(head, writer.settings, number)
    return _new_log(writer, file, number)


def set_progress(writer: Writer, turn: Turn, seen: Seen, handle: int) -> None:
    """Store how far a log is read now, with its label and its fold, beside the rows. Raises: apsw.Error."""
    log, counts, folding = turn.log, turn.counts, turn.folding
    log.kin.steps = folding.state.steps
    log.kin.first = log.kin.first or kinfolk.first_of(turn.names.own)
    if isinstance(turn.ear, Listener):
        turn.ear.finish()
    log.label = folding.state.label
    log.peak = log.peak.join(log.label)
    log.seen = seen if turn.whole else identity.remembered(seen, unfinished=turn.more)
    offset = log.position.offset
    log.marks = identity.marks(handle, offset, whole=True) if turn.whole else turn.ends.marks()
    log.indexed += counts.indexed
    log.left_out += counts.left_out
    log.unreadable += counts.unreadable
    table.store_folding(writer.connection, log, turn.first_n, folding)
    table.store(writer.connection, log)
    table.store_names(writer.connection, log.id, turn.names)
    writer.kin.put(log)
    writer.touched.add(log.key)
    writer.kin.names(log.key, turn.names.own, turn.names.first_n)
    folding.stored = folding.stored | folding.state.answered
    folding.events.clear()
    writer.keep(log, folding)
    reached("catch-up: progress set")


def index_records(writer: Writer, turn: Turn, records: list[Record]) -> None:
    """Fold the next records of a log and add their rows, each with the label of what came before it.

    Raises: apsw.Error.
    """
    tale = folded(turn, records, writer.settings.rules, writer.ids)
    skip = copied(turn, records)
    times = {record.n: record.ts for record in records}  # each is worked out when it is asked for
    if turn.heard is not None:
        turn.heard += heard(turn, records, times, (tale, skip), writer.settings)
    turn.log.met(times.values())
    turn.counts.records += len(records)
    rows = _kept(writer, turn, tale.rows, times, skip)
    turn.counts.indexed += len(rows)
    writer.rows.extend(turn.log.id, rows)
    take(turn, records, tale.before, writer.settings)


def _kept(
    writer: Writer, turn: Turn, rows: list[Folded], times: Times, skip: Collection[int]
) -> list[Row]:
    """Return what is added of a fold's rows, and note of which tools its calls are.

    Left out are those of records in `skip`, what is forgotten and, counted, what is above `max_class`.
    """
    kept: list[Row] = []
    tools, most, tomb = turn.folding.tools, writer.max_level, turn.tomb
    for record, item, label in rows:
        n, block = record.n, item.block
        ts = times[n]
        gone = n in skip or (tomb is not None and tomb.covers(n, block, ts))
        told = label.level <= most and not gone
        if isinstance(item, Said):
            if told:
                kept.append((label, item.text, (n, block, item.kind, ts, None)))
        else:
            if told:
                text = call_text(item.tool, arguments(item.args))
                kept.append((label, text, (n, block, Kind.TOOL_CALL, ts, item.tool)))
            if item.call is not None:
                tools[n, block] = item.tool if told else ""
        if not (told or gone):
            turn.counts.left_out += 1
    return kept


def index_log(
    writer: Writer, file: LogFile, number: int | None, budget: Budget | None
) -> tuple[Turn, bool]:
    """Give a log its turn and say whether more of it can be read at once.

    `number` is its row id where it has one. Without `budget` it is read to its end, and its last rows wait in
    `Writer.rows` for those of the next logs.
    Raises: OSError when the file cannot be opened, and Waiting, with nothing written; TurnFailed; apsw.Error.
    """
    with opened(file) as (handle, seen):
        try:
            turn = _begin(writer, file, number, handle, seen)
            # What was rewritten is replaced in one step, however long that takes.
            limit = None if file.whole is not None else budget
            turn.more = _read(writer, file, turn, handle, limit, new=number is None)
            if budget is not None:
                writer.rows.flush()
            reached("catch-up: rows added")
            set_progress(writer, turn, seen, handle)
        except (apsw.Error, MemorydError, Waiting):
            raise
        except Exception as error:  # a log that trips us up must not stop the others
            raise TurnFailed(file, error) from error
    return turn, turn.more


def _read(
    writer: Writer, file: LogFile, turn: Turn, handle: int, budget: Budget | None, *, new: bool
) -> bool:
    """Read records until the file or the budget ends; say whether there may be more."""
    log = turn.log
    start, began = log.position.offset, monotonic()
    most = None if budget is None else budget.bytes
    batches = lines.read(handle, log.position, file.adapter, log=file.log, budget_bytes=most)
    for batch in batches:
        if log.position.records == 0 and batch.records:
            _meet(writer, file, turn, batch.records, new=new)
        if file.adapter.named and batch.records:
            turn.name(batch.records)
        if batch.records:
            index_records(writer, turn, batch.records)
        log.position = batch.position
        turn.ends.add(batch.first, batch.last)
        if excluded(file.root.exclude, log.project):
            _exclude(writer, turn)
            return False
        used_up = most is not None and log.position.offset - start >= most
        if used_up or (budget is not None and monotonic() - began > budget.seconds):
            return log.position.offset < os.fstat(handle).st_size
    return False


def _meet(writer: Writer, file: LogFile, turn: Turn, records: list[Record], *, new: bool) -> None:
    """Look where a log comes from before its first record is folded. Raises: Waiting."""
    log = turn.log
    told = kinfolk.peek(records)
    if file.adapter.named:
        told.first = kinfolk.first_of(kinfolk.anchors(records))
    met = msgspec.structs.replace(log, kin=told)
    for record in records[:_TOLD_BY]:
        if record.about is not None:
            met.tell(record.about)
    if new and told.links:
        if writer.kin.unlooked(met) and writer.patience(None):
            raise Waiting([])  # one look for the records that all who wait have named
        behind = writer.kin.unread(met)
        if behind != [] and writer.patience(behind):
            raise Waiting(behind or [])
    turn.ear = Listener(writer.kin, met, file.adapter, writer.max_level)
    turn.ear.listen_for(log, frozenset(n for n, link in told.links if link.whole))


def _exclude(writer: Writer, turn: Turn) -> None:
    """Take back everything of a log whose project turned out to be excluded."""
    log = turn.log
    writer.rows.flush()
    table.delete(writer.connection, log.id, len(writer.settings.classes), row=False)
    purging.want(writer.connection)
    log.state = table.EXCLUDED
    log.indexed = log.left_out = log.unreadable = 0
    turn.folding = Folding(State(turn.folding.state.label))
    log.kin, log.heard, turn.names = kinfolk.Told(), NOTHING, kinfolk.Names()
    turn.counts = Counts()
    if turn.heard is not None:
        turn.heard = []


def _as_ruled(writer: Writer, log: Log) -> bool:
    """Say whether a log was read under the overrides that it has now."""
    if log.state != table.LIVE or log.floor != writer.floors.of(log.key):
        return False
    return log.forgot == writer.tombs.mark(log.key)


def _start_over(writer: Writer, file: LogFile, log: Log, handle: int, *, same: bool) -> Log:
    """Delete what the index has of a log and return its row as it is before the first record.

    `same`: the file starts with what was read of it.

    Raises: OSError, also where a floor cannot be written: then nothing of this turn may be committed.
    """
    writer.touched |= writer.kin.around(log.key)
    writer.kin.drop(log.key)
    table.delete(writer.connection, log.id, len(writer.settings.classes))
    fresh = _new_log(writer, file, log.id)
    if log.position.offset and same:
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


def _new_log(writer: Writer, file: LogFile, number: int) -> Log:
    place, key = place_of(file), writer.key_of(file)
    floor = writer.floors.of(key)
    label = start_of(writer.settings, file, floor)
    session, mark = table.session_of(place.log), writer.tombs.mark(key)
    decided = writer.relabels.digest(key)
    return Log(number, key, place, session, label=label, peak=label, floor=floor, forgot=mark,
               decided=decided)  # fmt: skip


def _begin(writer: Writer, file: LogFile, number: int | None, handle: int, seen: Seen) -> Turn:
    """Return the turn of a log as it goes on, or as it starts over."""
    log, anew = progress(writer, file, number), False
    ends = identity.Ends.of(handle, log.position.offset)
    same = log.position.offset == 0 or same_so_far(file, log, handle, seen, ends)
    if not (same and _as_ruled(writer, log)):
        anew, ends = not same, identity.Ends()
        log = _start_over(writer, file, log, handle, same=same)
    ear = Listener(writer.kin, log, file.adapter, writer.max_level)
    turn = Turn(log, writer.folding(log), file.root.trusted, log.position.records, ear, anew=anew)
    turn.ends = ends
    turn.heard, turn.whole = [] if writer.listened else None, file.whole is not None
    turn.rulings, turn.tomb = writer.relabels.of(log.key), writer.tombs.of(log.key)
    return turn
