"""After a turn: whoever's rows no longer say what the fixpoint over linked logs says is folded once more.

In: the logs that were touched, inside the transaction that touched them. Out: rows, so that what is
committed never contradicts what is known. A log is folded again from its file up to where it is read, which
changes nothing but its rows, its label and its counts: what it tells of others is the same as before.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from memoryd.fold import State
from memoryd.index import purging, table
from memoryd.index.catalogue import Catalogue
from memoryd.index.lineage import Heard
from memoryd.index.listening import Retelling
from memoryd.index.settings import Settings
from memoryd.index.table import Folding, Log, Place
from memoryd.index.writer import Turn, Writer, index_records, opened, same_so_far, start_of
from memoryd.points import reached
from memoryd.sources import LogFile, discover, lines
from memoryd.sources.lines import Position

Find = Callable[[Place], LogFile | None]


def finder(settings: Settings, memory: discover.Memory | None = None) -> Find:
    """Return a function that opens the way from a log's place to its file, if it is there."""
    return lambda place: discover.log_at(Path(place.root) / place.log, settings.roots, memory)


def settle(writer: Writer, find: Find) -> list[Log]:
    """Fold again whoever has heard something else than is true now; return their rows as they are then.

    A file that cannot be opened, or is another by now, is left for its own turn. Raises: apsw.Error.
    """
    if not writer.touched:
        return []
    touched, writer.touched = writer.touched, set()
    wanted: list[_Refold] = []
    for key, heard in writer.kin.unsettled(touched).items():
        log = table.load(writer.connection, writer.kin.members[key].id)
        file = None if log is None else find(log.place)
        if log is None or file is None:
            writer.touched.add(key)
        else:
            wanted.append(_Refold(file, log, heard))
    changed = refold(writer, wanted)
    writer.touched |= {one.log.key for one in wanted} - {log.key for log in changed}
    return changed


class _Refold(NamedTuple):
    file: LogFile
    log: Log
    heard: Heard


def refold(writer: Writer, wanted: Iterable[tuple[LogFile, Log, Heard]]) -> list[Log]:
    """Make logs' rows again, as they were read so far, under what they should have heard.

    Returns those whose files could be opened and are still the ones that were read. Raises: apsw.Error, OSError
    for one that breaks off: then nothing of this may be committed.
    """
    able = [one for one in wanted if _is_there(one[0], one[1])]
    if able:
        writer.relate()
    writer.rows.flush()
    numbers = [log.id for _, log, _ in able]
    table.delete_rows_of(writer.connection, numbers, len(writer.settings.classes))
    for file, log, heard in able:
        with opened(file) as (handle, _):
            _again(writer, file, log, heard, handle)
        reached("lineage: folded again")
    writer.rows.flush()
    return [log for _, log, _ in able]


def _is_there(file: LogFile, log: Log) -> bool:
    try:
        with opened(file) as (handle, seen):
            return not log.position.offset or same_so_far(file, log, handle, seen)
    except OSError:
        return False


def _again(writer: Writer, file: LogFile, log: Log, heard: Heard, handle: int) -> None:
    settings, whole = writer.settings, log.position.records
    log.floor = writer.floors.of(log.key)
    before, log.label = log.label, start_of(settings, file, log.floor)
    log.why = None
    scratch = msgspec.structs.replace(log, first_ts=None, last_ts=None)
    turn = Turn(scratch, Folding(State(log.label)), file.root.trusted, 0,
                Retelling(heard, scratch, settings.max_level),
                writer.relabels.of(log.key), tomb=writer.tombs.of(log.key))  # fmt: skip
    turn.heard = [] if writer.listened else None
    for batch in lines.read(handle, Position(), file.adapter, log=file.log):
        if records := [record for record in batch.records if record.n < whole]:
            index_records(writer, turn, records)
        turn.folding.events.clear()
        if batch.position.records >= whole:
            break
    if (told := turn.told()) is not None:
        writer.retold.append(told)
    log.label, log.why, log.heard = turn.folding.state.label, scratch.why, heard
    log.peak = log.label if log.peak == before else log.peak.join(log.label)
    log.decided = writer.relabels.digest(log.key)
    _forget(writer, log)
    log.indexed, log.left_out = turn.counts.indexed, turn.counts.left_out
    table.store(writer.connection, log)
    writer.release(log)
    writer.kin.put(log)


def _forget(writer: Writer, log: Log) -> None:
    """Leave no word beside the rows of what is forgotten since the log was read."""
    tomb, mark = writer.tombs.of(log.key), writer.tombs.mark(log.key)
    if tomb is not None and mark != log.forgot:
        last = log.position.records
        table.strip(writer.connection, log.id, lambda n, block: tomb.touches(n, block, last))
        purging.want(writer.connection)
    log.forgot = mark


def undecided(writer: Writer, catalogue: Catalogue) -> list[Log]:
    """Return the logs whose rows rest on other overrides than those in force. Raises: apsw.Error."""
    found = (
        table.load(writer.connection, known.id)
        for key, known in catalogue.live()
        if (known.decided, known.floor, known.forgot)
        != (writer.relabels.digest(key), writer.floors.of(key), writer.tombs.mark(key))
    )
    return [log for log in found if log is not None]
