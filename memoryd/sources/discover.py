"""Find session logs, and tell each one's format by what it holds.

In: roots (the configured sources, or where the harnesses keep their logs). Out: `Found`: logs with their
adapters, files that cannot be decided yet, and what is not read, each with its reason; nothing is guessed.
Links are not followed, neither to files nor to folders, and a log is opened component by component, so that
what an agent puts into a log folder cannot lead out of it.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import msgspec

from memoryd.config import Source
from memoryd.sources import ADAPTERS, sqlite
from memoryd.sources.base import Adapter, LogFile, Root
from memoryd.sources.opening import open_below
from memoryd.sources.telling import tell, tell_whole
from memoryd.sources.whole import Mark, NotNow, Whole

_COMPRESSED = (".jsonl.zst", ".jsonl.gz")


class Skipped(msgspec.Struct, frozen=True):
    """A file or folder that is not read, and why in a few words."""

    path: Path
    reason: str


class Found(msgspec.Struct):
    """What the roots hold: `undecided` files have too little in them yet and are looked at again."""

    logs: list[LogFile] = []
    undecided: list[Path] = []
    skipped: list[Skipped] = []


class LogPlace(NamedTuple):
    """A file that may be a log. `owners`: only the running user can write to the folders down to it."""

    root: Root
    path: str
    log: str
    owners: bool


class Seen(msgspec.Struct, frozen=True, gc=False):
    """A file as it was when its format was told: `told` is the adapter, a reason against it, or None.

    `names`: the logs inside a database.
    """

    dev: int
    ino: int
    size: int
    mtime_ns: int
    told: Adapter | str | None
    names: dict[str, Mark] | None = None


Memory = dict[str, Seen]
"""What earlier looks told, by path, kept by the caller, so that a sweep opens only files that are new to it."""


def roots(
    sources: Sequence[Source] | None, *, state: Path, home: Path, env: Mapping[str, str]
) -> list[Root]:
    """Return the folders to read: the state folder's sessions, then the sources, or what is found.

    `state` is memoryd's own folder, `home` what `~` stands for. A source that names the sessions there says
    with what class they start and which of them are not wanted; they are read in any case.
    """
    own = Root("native", state / "sessions", trusted=True)
    if sources is None:
        found = [Root(a.id, path) for a in ADAPTERS.values() for path in a.find(state, env)]
    else:
        found = [
            Root(source.kind, _expanded(source.path, home), source.start, tuple(source.exclude))
            for source in sources
        ]
    same = [root for root in found if root.path == own.path]
    start = next((root.start for root in same if root.start is not None), None)
    exclude = tuple(glob for root in same for glob in root.exclude)
    own = msgspec.structs.replace(own, start=start, exclude=exclude)
    return [own, *(root for root in found if root.path != own.path)]


def _expanded(path: str, home: Path) -> Path:
    return home / path[2:] if path == "~" or path.startswith("~/") else Path(path)


def logs(roots: Sequence[Root], memory: Memory | None = None) -> list[LogFile]:
    """Return the logs of `discover` alone."""
    return discover(roots, memory).logs


def discover(roots: Sequence[Root], memory: Memory | None = None) -> Found:
    """Look through the roots. A file that lies in two of them belongs to the first.

    `memory` is used and brought up to date. What goes wrong with one file or folder is told in `skipped`.
    """
    memory = {} if memory is None else memory
    found, taken = Found(), set[str]()
    for root in roots:
        for path, log, status, owners in _files(root, _states(root, roots), found.skipped):
            if path not in taken:
                taken.add(path)
                _sort(LogPlace(root, path, log, owners), status, found, memory)
    for name in memory.keys() - taken:
        del memory[name]
    return found


def log_at(path: Path, roots: Sequence[Root], memory: Memory | None = None) -> LogFile | None:
    """Return the log at `path` as `discover` would, or None if there is none that can be read now.

    The path of a log inside a database goes on with its name there.
    """
    inside = _is_database(path.parent.name)
    found = logs_at(path.parent if inside else path, roots, memory)
    return next((log for log in found if not inside or log.root.path / log.log == path), None)


def logs_at(path: Path, roots: Sequence[Root], memory: Memory | None = None) -> list[LogFile]:
    """Return the logs that the file at `path` is, is a part of, or holds, as `discover` would."""
    found = Found()
    for root in roots:
        if not path.is_relative_to(root.path) or path == root.path:
            continue
        if any(path.is_relative_to(state) for state in _states(root, roots)):
            continue
        path = _main(root, path)
        status = _status(os.fspath(path), found.skipped) if _may_be_log(root, path.name) else None
        if status is not None:
            between = [at for at in path.parents if at.is_relative_to(root.path)]
            owners = root.trusted and all(map(_owners, map(_lstat, between)))
            place = LogPlace(root, os.fspath(path), path.relative_to(root.path).as_posix(), owners)
            _sort(place, status, found, {} if memory is None else memory)
        break
    return found.logs


def _main(root: Root, path: Path) -> Path:
    """Return the file by whose name the log is known that `path` is a part of."""
    log = path.relative_to(root.path).as_posix()
    mains = (how.main(root.path, log) for how in _looked_for(root))
    main = next(filter(None, mains), None)
    return path if main is None else root.path / main


def _looked_for(root: Root) -> Iterator[Whole]:
    """Yield the ways of reading whole logs that a root asks for."""
    for adapter in ADAPTERS.values():
        if root.kind in ("auto", adapter.id):
            yield from adapter.whole


def _states(root: Root, roots: Sequence[Root]) -> set[Path]:
    """Return folders of memoryd's own state that a root may contain and that hold no logs of others."""
    return set() if root.trusted else {other.path.parent for other in roots if other.trusted}


def _files(
    root: Root, avoided: set[Path], skipped: list[Skipped]
) -> Iterator[tuple[str, str, os.stat_result, bool]]:
    """Yield what may be logs below a root, in the order of their paths.

    With each: its path below the root, its status, and whether only the running user can have put files
    into all folders down to it.
    """
    folders = [(os.fspath(root.path), "", root.trusted)]
    states = {os.fspath(path) for path in avoided}
    while folders:
        folder, below, owners = folders.pop()
        try:
            owners = owners and _owners(Path(folder).stat())
            with os.scandir(folder) as entries:
                ordered = sorted(
                    (entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries
                )
                parts = _parts(root, ordered)
        except FileNotFoundError:
            continue
        except OSError as error:
            skipped.append(Skipped(Path(folder), _words(error)))
            continue
        deeper = []
        for name, is_folder in ordered:
            if name in parts or not (is_folder or _may_be_log(root, name)):
                continue
            path = f"{folder}/{name}"
            if is_folder:
                if path not in states:
                    deeper.append((path, f"{below}{name}/", owners))
            elif (status := _status(path, skipped)) is not None:
                yield path, below + name, status, owners
        folders += reversed(deeper)


def _may_be_log(root: Root, name: str) -> bool:
    """Say whether a name can be a log's; a document only where its format is looked for."""
    if name.endswith(_COMPRESSED):
        return True
    for adapter in ADAPTERS.values():  # a sweep asks for every file: no generator
        if adapter.wants(name) or (root.kind in ("auto", adapter.id) and adapter.may_be_log(name)):
            return True
    return False


def _parts(root: Root, entries: list[tuple[str, bool]]) -> frozenset[str]:
    """Return the folders among `entries` that hold parts of logs that have their names elsewhere."""
    names = frozenset(name for name, _ in entries)
    return frozenset().union(*(how.leaves_out(names) for how in _looked_for(root)))


def _status(path: str, skipped: list[Skipped]) -> os.stat_result | None:
    """Return the status of a file that may be a log; what only looks like one is told."""
    if path.endswith(_COMPRESSED):
        skipped.append(Skipped(Path(path), "compressed logs are not read"))
        return None
    try:
        path.encode()
        status = os.lstat(path)
    except UnicodeEncodeError:
        skipped.append(Skipped(Path(path), "its name is not UTF-8"))
        return None
    except OSError as error:
        skipped.append(Skipped(Path(path), _words(error)))
        return None
    if not stat.S_ISREG(status.st_mode):
        link = stat.S_ISLNK(status.st_mode)
        skipped.append(Skipped(Path(path), "a symbolic link" if link else "not a regular file"))
        return None
    return status


def _owners(status: os.stat_result | None) -> bool:
    """Say whether only the running user can write there."""
    return status is not None and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _sort(place: LogPlace, status: os.stat_result, found: Found, memory: Memory) -> None:
    """Put one file where it belongs in `found`; others' files in a trusted root are not trusted."""
    root, path, log, owners = place
    if root.exclude and excluded(root, log):
        return
    told = _told(place, status, memory)
    if told is None:
        found.undecided.append(Path(path))
    elif isinstance(told, str):
        found.skipped.append(Skipped(Path(path), told))
    elif root.kind not in ("auto", told.id):
        reason = f"holds {told.id} records, but its source is said to hold {root.kind}"
        found.skipped.append(Skipped(Path(path), reason))
    elif told.may_be_log(log):
        if root.trusted and not (owners and _owners(status)):
            root = msgspec.structs.replace(root, trusted=False)
        names = memory[path].names
        if names is None:
            found.logs.append(LogFile(root, told, log))
            return
        inside = ((f"{log}/{name}", mark) for name, mark in names.items())
        found.logs += [LogFile(root, told, name, mark) for name, mark in inside
                       if not excluded(root, name)]  # fmt: skip


def excluded(root: Root, log: str) -> bool:
    """Say whether a glob of the root's `exclude` matches a log's path below the root or its whole path.

    A glob that starts with ``*/`` also matches at the start of the path below the root.
    """
    if not root.exclude:
        return False
    names = (log, f"/{log}", str(root.path / log))
    return any(fnmatchcase(name, glob) for glob in root.exclude for name in names)


def _told(place: LogPlace, status: os.stat_result, memory: Memory) -> Adapter | str | None:
    """Return the adapter of a file, from memory if the file only grew; else why it has none, or None."""
    root, path, log, _ = place
    seen = memory.get(path)
    try:
        if _is_database(log):
            return _told_database(place, seen, memory)
        if seen is not None and (seen.dev, seen.ino) == (status.st_dev, status.st_ino):
            same = (seen.size, seen.mtime_ns) == (status.st_size, status.st_mtime_ns)
            if same or (isinstance(seen.told, Adapter) and seen.size <= status.st_size):
                return seen.told
        told = _tell(root.path, log)
    except OSError as error:
        return _words(error)
    memory[path] = Seen(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, told)
    return told


def _tell(root: Path, log: str) -> Adapter | str | None:
    if not any(adapter.wants(log) for adapter in ADAPTERS.values()):
        return tell_whole(root, log)
    descriptor = open_below(root, log)
    try:
        return tell(descriptor)
    finally:
        os.close(descriptor)


def _is_database(log: str) -> bool:
    return log.endswith(".db") and any(
        (how := adapter.whole_of(log)) is not None and how.form == "sqlite"
        for adapter in ADAPTERS.values()
    )


def _told_database(place: LogPlace, seen: Seen | None, memory: Memory) -> Adapter | str | None:
    """Return the adapter of a database, and keep in memory what logs it holds. Raises: OSError."""
    root, path, log, _ = place
    now = sqlite.mark(root.path, log)
    if seen is not None and (seen.dev, seen.ino, seen.size, seen.mtime_ns) == now:
        return seen.told
    try:
        told = tell_whole(root.path, log)
        names = None
        how = told.whole_of(log) if isinstance(told, Adapter) else None
        if how is not None and how.names is not None:
            names = how.names(root.path, log)
    except NotNow:
        if seen is None:
            raise
        return seen.told  # as it was, until it can be asked again
    memory[path] = Seen(*now, told, names)
    return told


def open_log(log: LogFile) -> int:
    """Return a descriptor of a log, to be closed by the caller.

    Raises: OSError, also for what is no regular file and where a link stands in the way.
    """
    return open_below(log.root.path, log.log)


def _words(error: OSError) -> str:
    return (error.strerror or str(error) or "cannot be read").lower()
