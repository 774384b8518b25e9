"""A log's file: opened, named, and judged by itself.

In: `LogFile`s. Out: descriptors, keyed names, and the labels that a file starts with and would end with.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase

from memoryd.fold import State, begin, fold_all
from memoryd.ids import Ids
from memoryd.index import identity
from memoryd.index.identity import Ends, Seen
from memoryd.index.lineage import NOTHING
from memoryd.index.listening import Retelling
from memoryd.index.rows import storable
from memoryd.index.settings import Settings
from memoryd.index.table import Log, Place
from memoryd.labels import Label
from memoryd.sources import LogFile, discover, lines, whole
from memoryd.sources.lines import Position


@contextmanager
def opened(file: LogFile) -> Iterator[tuple[int, Seen]]:
    """Open a log and yield a descriptor of its lines, and what it looked like before they were read.

    Raises: OSError, also for what is no regular file.
    """
    if (how := file.whole) is not None:
        before = identity.look(file)
        with whole.opened(how, file.root.path, file.log) as made:
            yield made, before
        return
    handle = discover.open_log(file)
    try:
        yield handle, identity.seen(os.fstat(handle))
    finally:
        os.close(handle)


def same_so_far(file: LogFile, log: Log, handle: int, seen: Seen, ends: Ends | None = None) -> bool:
    """Say whether the open log starts with what was read of it; `ends` up to there, where they are known.

    Raises: OSError.
    """
    offset = log.position.offset
    if file.whole is not None:
        return identity.same_whole(handle, offset, log.marks)
    ends = Ends.of(handle, offset) if ends is None else ends
    return identity.same(seen, log.seen, offset, ends, log.marks)


def excluded(globs: Iterable[str], project: str | None) -> bool:
    """Say whether a log of `project` is one that the owner does not want read."""
    return project is not None and any(fnmatchcase(project, glob) for glob in globs)


def label_at_end(settings: Settings, file: LogFile, start: Label, handle: int) -> Label:
    """Return the label that the whole file will have by itself; its records are folded, not indexed.

    What other logs say may change later, and counts as nothing.
    Raises: OSError.
    """
    state, trusted, alone = State(start), file.root.trusted, Retelling(NOTHING)
    for batch in lines.read(handle, Position(), file.adapter, log=file.log):
        fold_all(state, batch.records, settings.rules, trusted, alone)
        state.trail.clear()
    return state.label


def start_label(settings: Settings, log: Log) -> Label:
    """Return the label before a known log's first record."""
    root = next((root for root in settings.roots if str(root.path) == log.place.root), None)
    return begin(settings.rules, None if root is None else root.start, log.floor).label


def start_of(settings: Settings, file: LogFile, floor: Label) -> Label:
    """Return the label before a log's first record."""
    return begin(settings.rules, file.root.start, floor).label


def place_of(file: LogFile) -> Place:
    """Return where a log is, as text that can be stored."""
    return Place(file.adapter.id, storable(str(file.root.path)), storable(file.log))


def key_of(ids: Ids, file: LogFile) -> int:
    """Return the keyed name of a log."""
    return ids.log_key(file.adapter.id, str(file.root.path), file.log)
