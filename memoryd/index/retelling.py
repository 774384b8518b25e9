"""Records' rows as the index gives them, and a whole log's once more for whoever missed them.

In: a turn and its next records; or a known log. Out: rows with their labels (what other logs say of it, what its
owner has decided, copies left out), and `Told`. Reading a log again here changes nothing.
"""

from collections.abc import Collection, Iterator, Sequence

from memoryd.fold import Folded, Row, State, fold_all
from memoryd.ids import Ids
from memoryd.index import overrides, relabels, tombs
from memoryd.index.catalogue import Known
from memoryd.index.files import opened, start_of
from memoryd.index.heard import Calls, Heard, Told, tells
from memoryd.index.listening import Retelling
from memoryd.index.settings import Settings
from memoryd.index.table import Folding, Log, session_of
from memoryd.index.turn import Turn
from memoryd.labels import LOWEST, Label
from memoryd.records import Called, Record, Said
from memoryd.rules import Rules
from memoryd.sources import ADAPTERS, LogFile, lines
from memoryd.sources.lines import Position

_NONE: Calls = []


def folded(turn: Turn, records: Sequence[Record], rules: Rules, ids: Ids) -> Folded:
    """Fold records and return what came of them, their rows with the labels that they have in the index."""
    tale = fold_all(turn.folding.state, records, rules, turn.trusted, turn.ear)
    if turn.ear.shared or turn.rulings:
        return Folded([_decided(turn, ids, *row) for row in tale.rows], tale.before)
    return tale


def copied(turn: Turn, records: Sequence[Record]) -> set[int]:
    """Return which of the next records, by number, have rows that are another log's."""
    ear = turn.ear
    return {record.n for record in records if ear.copied(record)} if ear.copies else set()


def heard(
    turn: Turn, records: Sequence[Record], tale: Folded, skip: Collection[int], settings: Settings
) -> list[Heard]:
    """Return what is handed on of records, in order; those in `skip` have no rows of their own.

    Nothing above `max_class`, nor what the log's owner wants forgotten. The turn's log has not `met` them yet.
    """
    log, last_ts, most, pause = turn.log, turn.log.last_ts, settings.max_level, settings.pause
    session, project = log.session, log.project
    calls = _calls(turn, tale, skip)
    found: list[Heard] = []
    after = [*tale.before[1:], turn.folding.state.label]
    for record, label in zip(records, after, strict=True):
        before, ts = last_ts, record.ts
        if ts is not None and (before is None or ts > before):
            last_ts = ts
        own = calls.get(record.n)
        if own is None:
            if not tells(record, before, pause):
                continue
            own = _NONE
        if label.level <= most:
            found.append(Heard(record, own, label, session, project, False, before))
            continue
        own = [one for one in own if one[1].level <= most]
        told = Record(record.n, ts, [], rest=record.rest)
        found.append(Heard(told, own, label, session, project, True, before))
    return found


def _calls(turn: Turn, tale: Folded, skip: Collection[int]) -> dict[int, Calls]:
    """Return the calls of each record, by its number, that may be handed on."""
    calls: dict[int, Calls] = {}
    for record, item, label in tale.rows:
        if type(item) is not Called:
            continue
        if (skip and record.n in skip) or (
            turn.tomb is not None and turn.forgotten(record.n, item.block, record.ts)
        ):
            continue
        if (own := calls.get(record.n)) is None:
            calls[record.n] = [(item, label)]
        else:
            own.append((item, label))
    return calls


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
    found = heard(turn, records, tale, copied(turn, records), settings)
    turn.log.met(records)
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
