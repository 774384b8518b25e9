"""A record's rows as the index gives them, and a whole log's once more for whoever missed them.

In: a turn and its next record; or a known log. Out: rows with their labels (what other logs say of it, what its
owner has decided, copies left out), and `Told`. Reading a log again here changes nothing.
"""

from collections.abc import Iterator
from pathlib import Path

from memoryd.fold import State, fold
from memoryd.ids import Ids
from memoryd.index import overrides, relabels, tombs
from memoryd.index.catalogue import Known
from memoryd.index.files import opened, start_of
from memoryd.index.heard import Heard, Told, tells
from memoryd.index.listening import Retelling
from memoryd.index.settings import Settings
from memoryd.index.table import Folding, Log, session_of
from memoryd.index.turn import Turn
from memoryd.labels import LOWEST, Label
from memoryd.records import Called, Record, Said
from memoryd.rules import Rules
from memoryd.sources import ADAPTERS, LogFile, lines
from memoryd.sources.lines import Position

Rows = list[tuple[Said | Called, Label]]


def folded(turn: Turn, record: Record, rules: Rules, ids: Ids) -> Rows:
    """Fold a record and return its rows with the labels that they have in the index."""
    rows = fold(turn.folding.state, record, rules, turn.trusted, turn.ear)
    return (
        _decided(turn, ids, record.n, rows) if rows and (turn.ear.shared or turn.rulings) else rows
    )


def heard(turn: Turn, record: Record, rows: Rows, max_level: int, before: int | None) -> Heard:
    """Return what is handed on of a record: nothing above `max_level`, nor what its owner wants forgotten.

    `before`: as in `Heard`.
    """
    if turn.tomb is not None:
        rows = [one for one in rows if not turn.forgotten(record.n, one[0].block, record.ts)]
    log, after = turn.log, turn.folding.state.label
    above = after.level > max_level
    if above:
        rows = [one for one in rows if one[1].level <= max_level]
        record = Record(record.n, record.ts, [], rest=record.rest)
    return Heard(record, rows, after, log.session, log.project, above, before)


def again(settings: Settings, key: int, known: Known) -> Iterator[Told]:
    """Yield the records of a log from its first to where the index is, under the labels that they have there.

    Raises: OSError when the file is not there or cannot be read.
    """
    root = next((one for one in settings.roots if str(one.path) == known.place.root), None)
    adapter = ADAPTERS.get(known.place.source)
    if root is None or adapter is None:
        raise FileNotFoundError(known.place.log)
    file = LogFile(root, adapter, Path(root.path, known.place.log), known.place.log)
    entries = overrides.read(settings.home)
    log = Log(0, key, known.place, session_of(known.place.log), seen=known.seen)
    state = State(start_of(settings, file, known.floor))
    turn = Turn(log, Folding(state), root.trusted, 0, Retelling(known.hears))
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
    found: list[Heard] = []
    state, log, pause = turn.folding.state, turn.log, settings.pause
    told = [one for one in records if one.n < end]
    for record in told:
        before = log.last_ts
        if record.ts is not None:
            log.met(record.ts)
        if record.about is not None and state.label.level <= settings.max_level:
            log.tell(record.about)  # as the index, which keeps no name from above `max_class`
        rows = folded(turn, record, settings.rules, settings.ids)
        copy = turn.ear.copies and turn.ear.copied(record)
        if tells(record, before, pause):
            kept = [] if copy else rows
            found.append(heard(turn, record, kept, settings.max_level, before))
    state.trail.clear()
    if not told:
        return None
    written = log.seen.mtime_ns // 1_000_000
    return Told(log.key, told[0].n, told[-1].n + 1, found, written)


def _decided(turn: Turn, ids: Ids, n: int, rows: Rows) -> Rows:
    """Return the rows of record `n` joined with what its copies have, and as the owner has decided.

    That was said of a row's very words, and holds for no others.
    """
    more = turn.ear.shared.get(n, LOWEST)
    joined = [(item, label.join(more)) for item, label in rows]
    rulings = [ruling for ruling in turn.rulings if ruling.first <= n <= ruling.last]
    return [
        (item, relabels.ruled(rulings, relabels.name_of(ids, n, item), label))
        if rulings
        else (item, label)
        for item, label in joined
    ]
