"""The truth about which logs there are: what the folders hold, held against the table of logs.

In: the settings' folders, an index's writer and catalogue. Out: logs that must be read (`Found.changed`),
and, in the caller's transaction, rows of logs that moved, vanished, expired or are no longer wanted. What a
watcher tells is only a hint; everything it misses is found here.

A file is gone only when its folder of logs is there and the file is not: a missing folder (a home that is
not mounted) changes nothing and is told as `Found.missing`.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import msgspec

from memoryd.clock import now_ms
from memoryd.index import floors, identity, overrides, purging, table, tombs, vanished
from memoryd.index.catalogue import Catalogue, Known
from memoryd.index.identity import Seen
from memoryd.index.kept_logs import index_kept, unwanted
from memoryd.index.resting import Resting
from memoryd.index.settings import DAY_MS, Settings
from memoryd.index.table import Log, Place
from memoryd.index.writer import Writer, excluded, opened, place_of, same_so_far
from memoryd.labels import Label
from memoryd.sources import ADAPTERS, LogFile, discover
from memoryd.sources.opening import open_below


class Found(msgspec.Struct):
    """What a sweep saw. `sizes`: bytes of each log's file; `changed`: logs that must be read."""

    changed: dict[int, LogFile] = {}
    missing: list[str] = []
    files: dict[int, LogFile] = {}
    sizes: dict[int, Seen] = {}


class Settled(msgspec.Struct):
    """What a sweep changed, to be taken over once its transaction is committed.

    `logs` are new contents of rows, `dropped` are keys; `unlink` are kept files that are no longer wanted,
    `unusable` the names of those that do not say which log they were.
    """

    logs: list[Log] = []
    dropped: list[int] = []
    unlink: list[Path] = []
    unusable: list[str] = []


def look(
    settings: Settings,
    there: discover.Found,
    writer: Writer,
    catalogue: Catalogue,
    resting: Resting | None = None,
) -> Found:
    """Return what the folders hold and which logs must be read, from what `discover` found `there`."""
    resting = Resting() if resting is None else resting
    resting.next_round()
    found = Found(missing=[str(root.path) for root in settings.roots if not is_folder(root.path)])
    for file in (*there.logs, *_emptied(settings, there, catalogue)):
        key = writer.key_of(file)
        known = catalogue.known.get(key)
        try:
            rests = known is not None and resting.rests(key, file, known)
            seen = known.seen if known is not None and rests else identity.look(file)
        except OSError:
            continue  # gone since it was listed: the next sweep tells
        found.files[key], found.sizes[key] = file, seen
        if must_be_read(settings, known, file, seen) or _overridden(writer, key, known):
            found.changed[key] = file
    return found


def is_folder(path: Path) -> bool:
    """Say whether a folder is there and can be looked at."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def _emptied(settings: Settings, there: discover.Found, catalogue: Catalogue) -> Iterator[LogFile]:
    """Yield logs whose files hold too little now to tell their format: it is the one they had."""
    undecided = set(map(str, there.undecided))
    if not undecided:
        return
    roots = {str(root.path): root for root in settings.roots}
    for known in catalogue.known.values():
        source, root, log = known.place
        if root in roots and f"{root}/{log}" in undecided:
            yield LogFile(roots[root], ADAPTERS[source], log)


def settle(settings: Settings, writer: Writer, catalogue: Catalogue, found: Found) -> Settled:
    """Bring the rows of logs that moved, vanished, expired or are unwanted into line with the folders.

    Runs inside the caller's transaction. Raises: OSError when a log cannot be kept, apsw.Error.
    """
    settled = Settled()
    sweep = _Sweep(settings, writer, found, settled)
    sweep.known = catalogue.known
    for key, known in list(catalogue.known.items()):
        if key not in found.files:
            sweep.without_file(key, known)
        elif key not in found.changed or not identity.differs(found.sizes[key], known.seen):
            sweep.with_file(key, known)
        elif known.state == table.LIVE and another_file(found.sizes[key], known):
            sweep.moved(key, known)
    if settings.vanished == "keep":
        for key in sorted(vanished.keys(settings.home) - set(catalogue.known) - set(found.files)):
            sweep.take_in(vanished.path_of(settings.home, key))
    return settled


class _Sweep:
    """One sweep's work on the rows."""

    def __init__(self, settings: Settings, writer: Writer, found: Found, settled: Settled) -> None:
        self.settings = settings
        self.writer = writer
        self.found = found
        self.settled = settled
        self.known: Mapping[int, Known] = {}
        self.oldest = _oldest(settings)
        self.roots = {str(root.path): root for root in settings.roots}

    @cached_property
    def by_path(self) -> dict[tuple[str, ...], int]:
        """The keys of the logs that are there, by root and path."""
        return {place_of(file)[1:]: key for key, file in self.found.files.items()}

    @cached_property
    def by_inode(self) -> dict[tuple[int, int], int]:
        """The keys of the logs that are there, by device and inode."""
        return {(seen.dev, seen.ino): key for key, seen in self.found.sizes.items()}

    def with_file(self, key: int, known: Known) -> None:
        """End the rows of a log that is too old, or whose project is not wanted any more."""
        if known.state == table.LIVE and _age(known) < self.oldest:
            self.empty(known, table.EXPIRED)
        elif known.state == table.LIVE and excluded(
            self.found.files[key].root.exclude, known.project
        ):
            self.empty(known, table.EXCLUDED)

    def without_file(self, key: int, known: Known) -> None:
        """Decide about a log that the folders do not hold."""
        place = known.place
        if place.root not in self.roots:
            self.drop(key, known)
        elif known.state == table.GONE:
            self.gone(key, known)
        elif place.root in self.found.missing:
            return
        elif known.state != table.LIVE:
            self.drop(key, known)
        else:
            self.without_log(key, known)

    def gone(self, key: int, known: Known) -> None:
        """End the rows of a vanished log that is not wanted any more, or leave it with what it may have."""
        path, place = vanished.path_of(self.settings.home, key), known.place
        tomb = self.writer.tombs.of(key)
        if _age(known) < self.oldest:
            self.drop(key, known)
            self.settled.unlink.append(path)
        elif self.settings.vanished == "drop" or unwanted(
            self.settings, place.root, place.log, known.project
        ):
            self.drop(key, known)
        elif known.forgot != self.writer.tombs.mark(key) and (tomb is not None or path.exists()):
            if tomb is not None:
                with suppress(FileNotFoundError, vanished.Unusable):
                    vanished.strip(path, tomb)
            self.drop(key, known)
            if path.exists():
                self.take_in(path)

    def without_log(self, key: int, known: Known) -> None:
        """Decide about a log at whose path `discover` found none."""
        match what_is_there(known.place):
            case "nothing":
                if not self.moved(key, known):
                    self.vanish(key, known)
            case "another format":
                self.hand_on(known.label, self.by_path.get(known.place[1:]), known.place)
                self.drop(key, known)
            # What cannot be looked at stays as it is: it may be back in a moment.

    def moved(self, key: int, known: Known) -> bool:
        """Follow a log that has another path now; say whether it has."""
        new = self.by_inode.get((known.seen.dev, known.seen.ino))
        read_there = new in self.known
        if new is None or not known.offset or not (read_there or new in self.found.changed):
            return False
        file = self.found.files[new]
        log = table.load(self.writer.connection, known.id)
        if log is None or not _same_bytes(file, log):
            return False
        self.hand_on(log.floor, new, log.place)
        self.forget_there_too(key, place_of(file))
        if (
            read_there
        ):  # by a hint, or it took the place of another log: that one is read from its file
            self.drop(key, known)
            return True
        self.settled.dropped.append(key)
        if not _may_follow(file, log):
            self.forget(key)
            table.delete(self.writer.connection, log.id, len(self.settings.classes))
            return True
        self.writer.touched |= {new, *self.writer.kin.around(key)}
        self.writer.kin.drop(key)
        log.key, log.place = new, place_of(file)
        log.floor, log.forgot = self.writer.floors.of(new), self.writer.tombs.mark(new)
        if not log.told:
            log.session = table.session_of(log.place.log)
        table.store(self.writer.connection, log)
        self.writer.kin.put(log)
        self.settled.logs.append(log)
        return True

    def forget_there_too(self, key: int, place: Place) -> None:
        """Let what is forgotten of a log stay so where it lies now."""
        tomb = self.writer.tombs.of(key)
        if tomb is not None:
            entries = [
                msgspec.structs.replace(entry, source=place.source, root=place.root, log=place.log)
                for entry in tomb.entries
            ]
            overrides.append(self.settings.home, *entries)
            self.writer.tombs = tombs.read(self.settings.home, self.writer.ids)

    def hand_on(self, label: Label, key: int | None, place: Place) -> None:
        """Hold the log that is there now (`key`), or will be at `place`, to the label that one had."""
        if key is None:
            key = self.writer.ids.log_key(*place)
        else:
            place = place_of(self.found.files[key])
        if not self.writer.floors.of(key).covers(label):
            why = "the log was moved or rewritten"
            floors.append(self.settings.home, place, label, self.settings.classes, why)
            self.writer.floors.by_log[key] = self.writer.floors.of(key).join(label)

    def vanish(self, key: int, known: Known) -> None:
        """Keep a log whose file is gone, or drop its rows, as the owner wants it."""
        log = table.load(self.writer.connection, known.id)
        if log is None or self.settings.vanished == "drop" or not log.position.records:
            self.drop(key, known)
            return
        tomb = self.writer.tombs.of(key)
        if tomb is not None and tomb.whole(log.position.records):
            self.drop(key, known)
            return
        under = vanished.Under(self.settings.classes.names, self.settings.rules.fingerprint)
        vanished.write(self.settings.home, self.writer.connection, log, under, tomb)
        log.state = table.GONE
        self.writer.touched |= self.writer.kin.around(key)
        table.store(self.writer.connection, log)
        self.writer.kin.put(log)
        self.settled.logs.append(log)

    def empty(self, known: Known, state: str) -> None:
        """Delete a log's rows and remember why there are none."""
        log = table.load(self.writer.connection, known.id)
        if log is not None:
            self.forget(log.key)
            self.delete(log.id)
            self.found.changed.pop(log.key, None)
            log.state, log.indexed, log.left_out = state, 0, 0
            table.store(self.writer.connection, log)
            self.settled.logs.append(log)

    def forget(self, key: int) -> None:
        """Let other logs hear nothing of one any more."""
        self.writer.touched |= self.writer.kin.around(key)
        self.writer.kin.drop(key)

    def drop(self, key: int, known: Known) -> None:
        """Delete a log's rows and know it no more."""
        self.forget(key)
        self.delete(known.id)
        self.settled.dropped.append(key)

    def delete(self, number: int) -> None:
        """Delete all of a log, and have its words taken out of the file."""
        table.delete(self.writer.connection, number, len(self.settings.classes))
        purging.want(self.writer.connection)

    def take_in(self, path: Path) -> None:
        """Index a log that was kept before this index was made."""
        self.writer.relate()
        try:
            log = index_kept(self.writer, path)
        except vanished.Unusable:
            self.settled.unusable.append(path.name)
        else:
            if log is not None:
                self.writer.touched.add(log.key)
                self.settled.logs.append(log)


def must_be_read(settings: Settings, known: Known | None, file: LogFile, seen: Seen) -> bool:
    """Say whether a log whose file is `seen` so has changed since it was read."""
    if known is None:
        return young(settings, seen)
    oldest = _oldest(settings)
    match known.state:
        case table.LIVE:
            return seen != known.seen
        case table.GONE:
            return True
        case table.EXPIRED:
            return identity.differs(seen, known.seen) or _age(known) >= oldest
    other = another_file(seen, known) or (file.whole is None and seen.size < known.offset)
    return other or not excluded(file.root.exclude, known.project)


def young(settings: Settings, seen: Seen) -> bool:
    """Say whether a file was changed within `keep_days`: if not, no record in it can be younger."""
    return seen.mtime_ns // 1_000_000 >= _oldest(settings)


def _overridden(writer: Writer, key: int, known: Known | None) -> bool:
    """Say whether a log was read under other floors, or with other records forgotten."""
    return (
        known is not None
        and known.state == table.LIVE
        and (known.floor, known.forgot) != (writer.floors.of(key), writer.tombs.mark(key))
    )


def another_file(seen: Seen, known: Known) -> bool:
    """Say whether the file at a log's path is not the one that was read."""
    return (seen.dev, seen.ino) != (known.seen.dev, known.seen.ino)


def what_is_there(place: Place) -> str:
    """Say what is at a log's path: ``nothing`` of it, ``another format``, or ``unknown``."""
    adapter = ADAPTERS.get(place.source)
    how = None if adapter is None else adapter.whole_of(place.log)
    if how is not None and how.names is not None:
        return _what_is_inside(place, how.names)
    try:
        handle = open_below(Path(place.root), place.log)
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except OSError as error:
        return "nothing" if not error.errno else "unknown"
    os.close(handle)
    return "another format"


def _what_is_inside(place: Place, names: Callable[[Path, str], Mapping[str, object]]) -> str:
    """Say what a database has of a log inside it; what cannot be asked may still be there."""
    inside, _, name = place.log.rpartition("/")
    try:
        return "unknown" if name in names(Path(place.root), inside) else "nothing"
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except OSError:
        return "unknown"


def _same_bytes(file: LogFile, log: Log) -> bool:
    try:
        with opened(file) as (handle, seen):
            return same_so_far(file, log, handle, seen)
    except OSError:
        return False


def _may_follow(file: LogFile, log: Log) -> bool:
    """Say whether a log at its new path means what it meant at the old one."""
    new = place_of(file)
    origin = file.adapter.origin
    return (
        log.state == table.LIVE
        and (new.source, new.root) == (log.place.source, log.place.root)
        and origin(file.log) == origin(log.place.log)
    )


def _oldest(settings: Settings) -> int:
    """Return the time (ms) before which a log's newest record ends its rows; 0: never."""
    return now_ms() - settings.keep_days * DAY_MS if settings.keep_days else 0


def _age(known: Known) -> int:
    """Return the time (ms) of a log's newest record, or of its file where no record tells one."""
    return known.last_ts if known.last_ts is not None else known.seen.mtime_ns // 1_000_000
