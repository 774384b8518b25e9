"""What the index hears while it reads, for whoever learns from the same records.

In: records as a turn folded them. Out: `Heard`, a record with its rows' labels and the label after it, and
`Told`, one log's turn, handed on once it is committed. Handing on copies nothing and reads nothing again:
decoding and folding a log a second time would cost a third of catching up. What is dropped on the way, or was
read before anybody listened, is read again by `again`, up to where the index is, and with the same labels.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from memoryd.fold import State, begin, fold
from memoryd.index.catalogue import Known
from memoryd.index.settings import Settings
from memoryd.index.table import Log, session_of
from memoryd.labels import Label
from memoryd.records import Called, Record, Said
from memoryd.sources import ADAPTERS, LogFile, discover, lines
from memoryd.sources.lines import Position


class Heard(NamedTuple):
    """A record, its rows with the label before each, the label after it, and whose log it stands in."""

    record: Record
    rows: list[tuple[Said | Called, Label]]
    after: Label
    session: str
    project: str | None


class Told(msgspec.Struct, frozen=True):
    """Records `first` to `end` (exclusive) of the log `key`.

    `anew`: the log is another one than it was, and these are its first. `excluded`: its owner does not want
    it read. `written`: when its file was changed last (ms).
    """

    key: int
    first: int
    end: int
    heard: list[Heard]
    written: int
    anew: bool = False
    excluded: bool = False


def again(settings: Settings, key: int, known: Known) -> Iterator[Told]:
    """Yield the records of a log from its first to where the index is, under the labels that they had.

    Raises: OSError when the file is not there or cannot be read.
    """
    root = next((one for one in settings.roots if str(one.path) == known.place.root), None)
    adapter = ADAPTERS.get(known.place.source)
    if root is None or adapter is None:
        raise FileNotFoundError(known.place.log)
    file = LogFile(root, adapter, Path(root.path, known.place.log), known.place.log)
    handle = discover.open_log(file)
    try:
        state = begin(settings.rules, root.start, known.floor)
        yield from _read(settings, key, known, file, (handle, state))
    finally:
        os.close(handle)


def _read(
    settings: Settings, key: int, known: Known, file: LogFile, at: tuple[int, State]
) -> Iterator[Told]:
    (handle, state), place = at, known.place
    log = Log(0, key, place, session_of(place.log))
    written = known.seen.mtime_ns // 1_000_000
    for batch in lines.read(handle, Position(), file.adapter, log=file.log):
        heard: list[Heard] = []
        for record in batch.records[: max(0, known.records - batch.records[0].n)]:
            if record.about is not None and state.label.level <= settings.max_level:
                log.tell(record.about)  # as the index, which keeps no name from above `max_class`
            rows = fold(state, record, settings.rules, file.root.trusted)
            heard.append(Heard(record, rows, state.label, log.session, log.project))
        state.trail.clear()
        if heard:
            yield Told(key, heard[0].record.n, heard[-1].record.n + 1, heard, written)
        if batch.position.records >= known.records:
            return
