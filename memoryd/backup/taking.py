"""A backup taken, of a state folder in use or not.

In: the state folder, the configuration's file, a new or empty folder. Out: copies that belong together. Files
are copied in rounds, each only of what has changed since, until a whole look finds nothing changed: then every
copy is what its file was when that look began. Logs and the read log, which only grow, are copied as far as
they are whole. Lessons are copied by SQLite. What is forgotten by then is taken out of the copies of lessons
and kept logs once more, since memoryd may be at it at that very moment.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from memoryd import clock, db, state
from memoryd.backup import manifest
from memoryd.backup.manifest import CONFIG, FILE, HOME, Manifest
from memoryd.errors import BadRequest, Busy, DiskFull, IOFailed, Unavailable
from memoryd.ids import Ids
from memoryd.index import overrides, tombs, vanished
from memoryd.lessons import forget, store
from memoryd.points import reached

FOLDERS = ("journal", "notes", "proposals", "retrospectives", vanished.FOLDER)
FILES = (overrides.FILE, state.KEY)
GROWING_FOLDER, GROWING_FILES = "sessions", "reads.jsonl*"
_LEFT_OUT = frozenset({"journal/lock"})
ROUNDS = 50
"""After so many looks at files that keep changing one gives up; each but the first copies next to nothing."""

Sign = tuple[int, ...]


class Source(NamedTuple):
    """What is copied: the state folder, the configuration's file if there is one, and who copies."""

    home: Path
    config: Path | None
    version: str


def take(source: Source, target: Path, between: Callable[[], None] = lambda: None) -> Manifest:
    """Copy the state to `target`, new or empty, and return what the copy holds.

    `between` is called after each round. Raises: BadRequest for a target that is in use, Unavailable where there
    is nothing to copy, Busy when the state does not hold still, DiskFull, IOFailed; then nothing is left of it.
    """
    _check(source.home, target)
    made = not target.exists()
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.chmod(0o700)
        found = _taken(source, target, between)
    except BaseException as error:
        _undo(target, made)
        if isinstance(error, OSError):
            raise failed(error) from error
        raise
    return found


def failed(error: OSError) -> IOFailed | DiskFull:
    """Return what an error of the disk is called here."""
    if error.errno in {28, 122}:  # ENOSPC, EDQUOT
        return DiskFull("no room left on the device", remedy="free some space, or name another")
    where = f"{error.filename}: " if error.filename else ""
    return IOFailed(f"{where}{error.strerror}", remedy="see to the disk and its owner")


def _check(home: Path, target: Path) -> None:
    if not (home / state.KEY).exists():
        raise Unavailable(f"there is nothing of memoryd in {home}", remedy="start `memoryd` once")
    state.key(home)  # refused while it is being changed: lessons name logs by the next one then
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise BadRequest(f"{target} is no folder", remedy="name a new one")
    if target.is_dir() and any(target.iterdir()):
        raise BadRequest(f"{target} is not empty", remedy="name a new folder for each backup")
    if target.resolve().is_relative_to(home.resolve()):
        raise BadRequest(f"{target} lies in what is backed up", remedy="name a folder elsewhere")


def _undo(target: Path, made: bool) -> None:
    """Leave nothing of a backup that failed."""
    for path in (target / HOME, target):
        if path is not target or made:
            shutil.rmtree(path, ignore_errors=True)
    for name in (FILE, CONFIG):
        (target / name).unlink(missing_ok=True)


def _taken(source: Source, target: Path, between: Callable[[], None]) -> Manifest:
    copy = target / HOME
    copy.mkdir(mode=0o700)
    _settle(source.home, copy, between)
    _copy_growing(source.home, copy)
    state.key(source.home)
    version = _without_forgotten(copy)
    if source.config is not None and source.config.exists():
        handle = os.open(source.config, os.O_RDONLY | os.O_CLOEXEC)
        try:
            manifest.put(target / CONFIG, manifest.pieces(handle))
        finally:
            os.close(handle)
    files = {name: manifest.hashed(target / name) for name in manifest.files_below(target)}
    found = Manifest(
        manifest.VERSION,
        clock.rfc3339(clock.now_ms()),
        source.version,
        str(source.home),
        version,
        files,
    )
    manifest.sync_folders(target)
    reached("backup: copied")
    manifest.put(target / FILE, iter([manifest.encoded(found)]))
    manifest.sync_folder(target)
    return found


def _settle(home: Path, copy: Path, between: Callable[[], None]) -> None:
    """Copy round by round until nothing changes; the lessons again whenever something was forgotten."""
    copied: dict[str, Sign | None] = {}
    for number in range(ROUNDS):
        seen = {name: _sign(home / name) for name in _durable(home)}
        seen = {name: sign for name, sign in seen.items() if sign is not None}
        if number and seen == copied:
            return
        for name in copied.keys() - seen.keys():
            (copy / name).unlink(missing_ok=True)
        changed = [name for name, sign in seen.items() if copied.get(name) != sign]
        if not number or not {overrides.FILE, state.KEY}.isdisjoint(changed):
            _copy_lessons(home, copy)
        fresh = {name: _copied(home, copy, name) for name in changed}
        copied = {name: fresh.get(name, copied.get(name)) for name in seen}
        reached("backup: round")
        between()
    raise Busy(
        "the state changes faster than it can be copied",
        remedy="stop memoryd for the backup, or try again",
    )


def _durable(home: Path) -> Iterator[str]:
    for folder in FOLDERS:
        for name in _below(home / folder):
            if f"{folder}/{name}" not in _LEFT_OUT:
                yield f"{folder}/{name}"
    yield from FILES


def sizes(home: Path) -> Iterator[int]:
    """Yield how many bytes each file has that lies in no log of a harness and cannot be made again."""
    lessons = (store.NAME, f"{store.NAME}{db.SIDECARS[0]}")
    for name in (*_durable(home), *lessons):
        if (sign := _sign(home / name)) is not None:
            yield sign[2]


def _below(folder: Path) -> Iterator[str]:
    """Yield the files of a folder of the state, if it is one and no link to another."""
    if folder.is_dir() and not folder.is_symlink():
        yield from manifest.files_below(folder)


def _sign(path: Path) -> Sign | None:
    try:
        return _of(os.lstat(path))
    except FileNotFoundError:
        return None


def _of(seen: os.stat_result) -> Sign:
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _copied(home: Path, copy: Path, name: str) -> Sign | None:
    """Copy a file and return what it was; None when it changed meanwhile. Raises: OSError."""
    target = copy / name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        handle = manifest.opened(home / name)
    except FileNotFoundError:
        return None
    try:
        before = _of(os.fstat(handle))
        manifest.put(target, manifest.pieces(handle), before[3])
        return before if _of(os.fstat(handle)) == before else None
    finally:
        os.close(handle)


def _copy_lessons(home: Path, copy: Path) -> None:
    """Copy the lessons as they are in one moment, write-ahead log and all."""
    if not (home / store.NAME).exists():
        return
    target = copy / store.NAME
    target.unlink(missing_ok=True)
    db.create(target)
    with db.translated():
        source = db.reader(home / store.NAME)
        made = apsw.Connection(str(target))
        try:
            with made.backup("main", source, "main") as backup:
                backup.step()
            made.pragma("journal_mode", "DELETE")
        finally:
            made.close()
            source.close()


def _copy_growing(home: Path, copy: Path) -> None:
    """Copy logs of memoryd's own format and the read log up to their last whole line. Raises: OSError."""
    names = [path.name for path in sorted(home.glob(GROWING_FILES))]
    names += [f"{GROWING_FOLDER}/{name}" for name in _below(home / GROWING_FOLDER)]
    for name in names:
        target = copy / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            handle = manifest.opened(home / name)
            try:
                seen = os.fstat(handle)
                manifest.put(target, manifest.pieces(handle, seen.st_size))
                _cut(target)
                os.utime(target, ns=(seen.st_mtime_ns, seen.st_mtime_ns))
            finally:
                os.close(handle)


def _cut(path: Path) -> None:
    """Cut off a last line that is not whole: it grows on, and would be glued to what is written next."""
    if path.suffix not in {".jsonl", ".1"}:
        return
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        whole = _after_last_line(file.fileno(), end)
        if whole < end:
            file.truncate(whole)
            os.fsync(file.fileno())


def _after_last_line(handle: int, end: int) -> int:
    at = end
    while at > 0:
        start = max(0, at - 65_536)
        found = os.pread(handle, at - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0


def _without_forgotten(copy: Path) -> int:
    """Take what is forgotten out of the copies, and return the version of the lessons; 0 for none."""
    graves = tombs.read(copy, Ids((copy / state.KEY).read_bytes()))
    for key, tomb in graves.by_log.items():
        kept = vanished.path_of(copy, key)
        if kept.exists():
            with suppress(vanished.Unusable):
                vanished.strip(kept, tomb)
    path = copy / store.NAME
    if not path.exists():
        return 0
    with db.translated():
        connection = apsw.Connection(str(path))
        try:
            db.overwrites_what_it_deletes(connection)
            version = int(str(connection.pragma("user_version")))
            if version == store.latest():
                for key, tomb in graves.by_log.items():
                    forget.forget(connection, f"{key:012x}", tomb.covers, home=copy)
            connection.execute("VACUUM")
        finally:
            connection.close()
    return version
