"""Records' rows as the index gives them, and a whole log's once more for whoever missed them.

In: a turn and its next records; or a known log. Out: rows with their labels (what other logs say of it, what its
owner has decided, copies left out), and `Told`. Reading a log again here changes nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from memoryd.fold import Folded, Row, State, fold_all
from memoryd.ids import Ids
from memoryd.index import overrides, relabels, tombs
from memoryd.index.catalogue import Known
from memoryd.index.files import opened, start_of
from memoryd.index.heard import Told
from memoryd.index.listening import Retelling
from memoryd.index.settings import Settings
from memoryd.index.table import Folding, Log, session_of
from memoryd.index.turn import Turn
from memoryd.labels import LOWEST, Label
from memoryd.lessons.passage import Around, Mark, Passage, passage
from memoryd.records import Called, Record, Returned, Said
from memoryd.rules import Rules
from memoryd.sources import ADAPTERS, LogFile, lines
from memoryd.sources.lines import Position

Times = Mapping[int, int | None]
"""The time (ms) of each record, by its number, in order."""


def folded(turn: Turn, records: Sequence[Record], rules: Rules, ids: Ids) -> Folded:
    """Fold records and return what came of them, their rows with the labels that they have in the index."""
    tale = fold_all(turn.folding.state, records, rules, turn.trusted, turn.ear)
    if turn.ear.shared or turn.rulings:
        return tale._replace(rows=[_decided(turn, ids, *row) for row in tale.rows])
    return tale


def copied(turn: Turn, records: Sequence[Record]) -> set[int]:
    """Return which of the next records, by number, have rows that are another log's."""
    ear = turn.ear
    return {record.n for record in records if ear.copied(record)} if ear.copies else set()


def heard(
    turn: Turn,
    records: Sequence[Record],
    times: Times,
    told: tuple[Folded, Collection[int]],
    settings: Settings,
) -> list[Passage]:
    """Return what is handed on of records: one passage, or nothing where none of them tells anything.

    `times`: of each record (ms). `told`: what the fold made of them, and which of them have no rows of their own.
    Nothing above `max_class`, nor what the log's owner wants forgotten. The turn's log has not `met` them yet.
    """
    tale, skip = told
    log, most = turn.log, settings.max_level
    called = [row for row in tale.rows if type(row[1]) is Called]
    after = dict(zip(times, [*tale.before[1:], turn.folding.state.label], strict=True))
    rests = _rests(log.last_ts, records, times, settings.pause)
    above, rises = None, turn.folding.state.label.level > most
    if rises:
        high = (record for record in records if after[record.n].level > most)
        above = next((one.n for one in high if one.n in rests.at or _tells(one)), None)
    if not (called or tale.results or rests.marks or above is not None):
        return []
    results = tale.results
    if rises:
        called = [row for row in called if row[2].level <= most]
        results = [one for one in results if after[one[0]].level <= most]
    if skip or turn.tomb is not None:
        called = [
            row for row in called if row[0].n not in skip and not _forgotten(turn, row, times)
        ]
    around = Around(times, after, rests.before)
    return [passage((log.session, log.project), called, results, around, (rests.marks, above))]


def _forgotten(turn: Turn, row: Row, times: Times) -> bool:
    n = row[0].n
    return turn.forgotten(n, row[1].block, times[n])


def _tells(record: Record) -> bool:
    return any(isinstance(item, Called | Returned) for item in record.items)


class _Rests(NamedTuple):
    """Where a session rests; of records without a time, the newest (ms) before each."""

    marks: list[Mark]
    before: dict[int, int | None]

    @property
    def at(self) -> set[int]:
        """Return at which records."""
        return {mark.n for mark in self.marks}


def _rests(last: int | None, records: Sequence[Record], times: Times, pause: int) -> _Rests:
    """Return where a session rests whose newest time so far was `last`, and may be quiet for `pause` ms.

    Nobody knows for how long it was quiet before its first record with a call or a result.
    """
    rests = _Rests([], {})
    for record, ts in zip(records, times.values(), strict=True):
        before = last
        if ts is None:
            rests.before[record.n] = before
        elif before is None:
            last = ts
            if record.rest is not None or _tells(record):
                rests.marks.append(Mark(record.n, "quiet", ts))
        elif ts > before:
            last = ts
            if ts - before > pause:
                rests.marks.append(Mark(record.n, "quiet", ts))
        if record.rest is not None:
            rests.marks.append(Mark(record.n, record.rest, ts or before))
    return rests


def again(settings: Settings, key: int, known: Known) -> Iterator[Told]:
    """Yield the records of a log from its first to where the index is, under the labels that they have there.

    Raises: OSError when the file is not there or cannot be read.
    """
    root = next((one for one in settings.roots if str(one.path) == known.place.root), None)
    adapter = ADAPTERS.get(known.place.source)
    if root is None or adapter is None:
        raise FileNotFoundError(known.place.log)
    file = LogFile(root, adapter, known.place.log)
    entries = overrides.read(settings.home)
    log = Log(0, key, known.place, session_of(known.place.log), seen=known.seen)
    state = State(start_of(settings, file, known.floor))
    ear = Retelling(
        known.hears, log, settings.max_level
    )  # as the index, it keeps no name from above
    turn = Turn(log, Folding(state), root.trusted, 0, ear)
    turn.rulings = relabels.gathered(entries, settings.ids, settings.classes).of(key)
    turn.tomb = tombs.gathered(entries, settings.ids).of(key)
    with opened(file) as (handle, _):
        for batch in lines.read(handle, Position(), adapter, log=file.log):
            told = _told(settings, turn, batch.records, known.records)
            if told is not None:
                yield told
            if batch.position.records >= known.records:
                return


def _told(settings: Settings, turn: Turn, records: list[Record], end: int) -> Told | None:
    records = [one for one in records if one.n < end]
    if not records:
        return None
    tale = folded(turn, records, settings.rules, settings.ids)
    turn.folding.state.trail.clear()
    times = {record.n: record.ts for record in records}
    found = heard(turn, records, times, (tale, copied(turn, records)), settings)
    turn.log.met(times.values())
    written = turn.log.seen.mtime_ns // 1_000_000
    return Told(turn.log.key, records[0].n, records[-1].n + 1, found, written)


def _decided(turn: Turn, ids: Ids, record: Record, item: Said | Called, label: Label) -> Row:
    """Return a row joined with what its record's copies have, and as the owner has decided.

    That was said of a row's very words, and holds for no others.
    """
    n = record.n
    label = label.join(turn.ear.shared.get(n, LOWEST))
    rulings = [ruling for ruling in turn.rulings if ruling.first <= n <= ruling.last]
    if rulings:
        label = relabels.ruled(rulings, relabels.name_of(ids, n, item), label)
    return record, item, label
