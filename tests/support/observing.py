"""What the observer sees in a log of any harness: each answered call, paired and folded as the daemon does."""

from collections.abc import Iterator
from pathlib import Path

from memoryd.fold import begin, fold
from memoryd.index.files import opened
from memoryd.lessons.pairing import Pairing, Seen
from memoryd.records import Record
from memoryd.rules import Rules
from memoryd.sources import LogFile, Root, discover
from memoryd.sources.lines import Position, read


def logs_below(folder: Path) -> list[LogFile]:
    return discover.logs([Root("auto", folder)])


def records_of(log: LogFile) -> Iterator[Record]:
    with opened(log) as (handle, _):
        for batch in read(handle, Position(), log.adapter, log=log.log):
            yield from batch.records


def seen_in(log: LogFile, rules: Rules) -> Iterator[Seen]:
    state, pairing = begin(rules), Pairing(log.log, log.log)
    for record in records_of(log):
        rows = fold(state, record, rules, trusted=False)
        yield from pairing.feed(record, rows, state.label, record.ts or record.n)
