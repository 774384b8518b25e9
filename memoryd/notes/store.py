"""The folder of notes, reached only through directory handles.

In: places (class and segments). Out: bytes, listings, atomic writes. No link is followed at any step, no
other file system entered, no file touched that is not a regular one of ours with a single name: whatever a
second process swaps in meanwhile, an edit ends inside the folder or is refused (check 7).
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from memoryd import points
from memoryd.errors import MemorydError, NotFound
from memoryd.labels import Classes
from memoryd.notes import handles
from memoryd.notes.handles import Version, failed, moved_on, taken, unsafe, version
from memoryd.notes.names import INBOX, MAX_DEPTH, SUFFIX, Place

MAX_READ = 1 << 20
_TOO_LARGE = "the file is larger than any note"


class Found(msgspec.Struct, frozen=True, gc=False):
    """A name in a folder of notes. `odd`: why it is none of ours ("" for notes and folders)."""

    place: Place
    folder: bool
    seen: Version | None = None
    odd: str = ""


class Draft(NamedTuple):
    """A file written beside the place it is for; `handle` is to be synced and closed by whoever takes it."""

    place: Place
    parent: int
    temp: str
    handle: int


class Store:
    """The notes of one state folder, `root` (``notes/``) with a folder a class."""

    def __init__(self, root: Path, classes: Classes, *, make: bool = True) -> None:
        """Open `root`; with `make`, class folders and inboxes are made where they are missing.

        Raises: NotFound without `make`, CheckFailed (``unsafe``) when one of them is no folder of ours.
        """
        self.root, self.classes = root, classes
        if make:
            root.mkdir(mode=0o700, exist_ok=True)
        try:
            self._handle = os.open(root, handles.FOLDER)
        except FileNotFoundError:
            raise handles.absent() from None
        except OSError:
            raise unsafe("the folder of notes is no folder") from None
        found = os.fstat(self._handle)
        self._dev = found.st_dev
        try:
            if make:
                self._made()
            elif wrong := handles.odd_folder(found, self._dev):
                raise unsafe(wrong)
        except BaseException:
            self.close()
            raise

    def _made(self) -> None:
        if os.fstat(self._handle).st_uid != os.geteuid():
            raise unsafe("the folder of notes is not ours")
        os.fchmod(self._handle, 0o700)
        for level in range(len(self.classes)):
            with self.folder(Place(level, (INBOX,)), make=True):
                pass

    def close(self) -> None:
        """Give the handle back."""
        os.close(self._handle)

    @contextmanager
    def folder(self, place: Place, *, make: bool = False) -> Iterator[int]:
        """Yield a handle on the folder at `place`; with `make`, missing ones are made 0700.

        Raises: NotFound, CheckFailed (``unsafe``), DiskFull, IOFailed.
        """
        handle = os.dup(self._handle)
        try:
            for name in (self.classes.name(place.level), *place.segments):
                step = handles.open_folder(handle, name, self._dev, make=make)
                os.close(handle)
                handle = step
            yield handle
        finally:
            os.close(handle)

    def read(self, place: Place) -> tuple[bytes, Version] | None:
        """Return a note's bytes and version, or None where no such file is.

        Raises: CheckFailed (``unsafe``), IOFailed.
        """
        try:
            with self.folder(place.parent) as parent:
                return self._read(parent, place.name)
        except NotFound:
            return None

    def _read(self, parent: int, name: str) -> tuple[bytes, Version] | None:
        try:
            handle = os.open(name, handles.FILE, dir_fd=parent)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:
                raise unsafe("that is no plain file") from None
            raise failed(error) from error
        try:
            found = os.fstat(handle)
            if odd := handles.odd_file(found, self._dev):
                raise unsafe(odd)
            if found.st_size > MAX_READ:
                raise unsafe(_TOO_LARGE)
            return _all_of(handle), version(found)
        except OSError as error:
            raise failed(error) from error
        finally:
            os.close(handle)

    @contextmanager
    def draft(self, place: Place, content: bytes) -> Iterator[Draft]:
        """Yield a new file beside `place` that holds `content`, not yet synced; see `put`.

        Raises: CheckFailed (``unsafe``), DiskFull, IOFailed.
        """
        with self.folder(place.parent, make=True) as parent:
            temp = f".{secrets.token_hex(8)}.tmp"
            try:
                draft = Draft(place, parent, temp, handles.new_file(parent, temp, content))
                points.reached("notes: temp written")
                yield draft
            except OSError as error:
                handles.forget(parent, temp)
                raise failed(error) from error
            except MemorydError:
                handles.forget(parent, temp)
                raise

    def put(self, draft: Draft, seen: Version | None) -> None:
        """Put a synced draft in its place in one step, if the file there is still the one that was `seen`.

        `seen` None: nothing may be there. Raises: Conflict, DiskFull, IOFailed.
        """
        parent, name = draft.parent, draft.place.name
        try:
            self._unchanged(parent, name, seen)
            if seen is None:
                handles.rename_new(parent, draft.temp, parent, name)
            else:
                os.rename(draft.temp, name, src_dir_fd=parent, dst_dir_fd=parent)
            points.reached("notes: renamed")
            os.fsync(parent)
        except FileExistsError:
            raise taken() from None
        except OSError as error:
            raise failed(error) from error
        points.reached("notes: folder synced")

    def _unchanged(self, parent: int, name: str, seen: Version | None) -> None:
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            if seen is not None:
                raise moved_on() from None
            return
        if seen is None:
            raise taken()
        if handles.odd_file(found, self._dev) or version(found) != seen:
            raise moved_on()

    def remove(self, place: Place, seen: Version) -> None:
        """Remove the note that was `seen`. Raises: as `put`."""
        with self.folder(place.parent) as parent:
            try:
                self._unchanged(parent, place.name, seen)
                os.unlink(place.name, dir_fd=parent)
                points.reached("notes: renamed")
                os.fsync(parent)
            except OSError as error:
                raise failed(error) from error
        points.reached("notes: folder synced")

    def remove_folder(self, place: Place) -> None:
        """Remove the folder at `place` with the empty ones in it; what is not empty stays."""
        for found in [*reversed([f for f in self.walk(place) if f.folder]), Found(place, True)]:
            with self.folder(found.place.parent) as parent:
                try:
                    os.rmdir(found.place.name, dir_fd=parent)
                    os.fsync(parent)
                except OSError as error:
                    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
                        raise failed(error) from error

    def move(self, old: Place, new: Place, seen: Version) -> None:
        """Give the note that was `seen` at `old` the place `new`, where nothing may be. Raises: as `put`."""
        with self.folder(old.parent) as source, self.folder(new.parent, make=True) as target:
            try:
                self._unchanged(source, old.name, seen)
                handles.rename_new(source, old.name, target, new.name)
                points.reached("notes: renamed")
                os.fsync(target)
                os.fsync(source)
            except FileExistsError:
                raise taken() from None
            except OSError as error:
                raise failed(error) from error
        points.reached("notes: folder synced")

    def finish_move(self, old: Place, new: Place) -> None:
        """Take the first name away where a kill left a note with both its old and its new one."""
        try:
            with self.folder(old.parent) as source, self.folder(new.parent) as target:
                one = os.stat(old.name, dir_fd=source, follow_symlinks=False)
                two = os.stat(new.name, dir_fd=target, follow_symlinks=False)
                if (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino):
                    os.unlink(old.name, dir_fd=source)
                    os.fsync(source)
        except (FileNotFoundError, MemorydError):
            return

    def names(self, place: Place) -> list[str]:
        """Return the names in the folder at `place`, half-written files aside; none where no folder is.

        Raises: CheckFailed (``unsafe``), IOFailed.
        """
        try:
            with self.folder(place) as handle:
                return [name for name in os.listdir(handle) if not handles.TEMP.fullmatch(name)]
        except NotFound:
            return []

    def listed(self, place: Place) -> list[Found]:
        """Return what lies in the folder at `place`, by code point. Raises: NotFound, CheckFailed."""
        with self.folder(place) as handle:
            return self._listed(handle, place)

    def _listed(self, handle: int, place: Place) -> list[Found]:
        try:
            with os.scandir(handle) as entries:
                found = [
                    self._found(entry, place)
                    for entry in entries
                    if entry.name[0] != "." or not handles.TEMP.fullmatch(entry.name)
                ]
        except OSError as error:
            raise failed(error) from error
        return sorted(found, key=lambda one: one.place.name)

    def _found(self, entry: os.DirEntry[str], parent: Place) -> Found:
        place = Place(parent.level, (*parent.segments, entry.name))
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return Found(place, False, odd="it has just gone")
        if stat.S_ISDIR(found.st_mode):
            deep = len(place.segments) >= MAX_DEPTH - 1
            odd = "the folder lies too deep" if deep else handles.odd_folder(found, self._dev)
            return Found(place, True, odd=odd)
        odd = handles.odd_file(found, self._dev)
        if not odd and found.st_size > MAX_READ:
            odd = _TOO_LARGE
        if not odd and (entry.name[:1] == "." or not entry.name.endswith(SUFFIX)):
            odd = "that is no note"
        return Found(place, False, version(found), odd)

    def walk(self, place: Place) -> Iterator[Found]:
        """Yield everything at and below the folder `place`, folders before what is in them.

        Raises: NotFound, CheckFailed for `place` itself; what cannot be entered below it is odd.
        """
        with self.folder(place) as handle:
            yield from self._walk(handle, place)

    def _walk(self, handle: int, place: Place) -> Iterator[Found]:
        for found in self._listed(handle, place):
            if not found.folder or found.odd:
                yield found
                continue
            try:
                below = handles.open_folder(handle, found.place.name, self._dev)
            except MemorydError as error:
                yield Found(found.place, True, odd=error.message)
                continue
            yield found
            try:
                yield from self._walk(below, found.place)
            finally:
                os.close(below)

    def notes(self) -> Iterator[Found]:
        """Yield every file of every class, and what is odd."""
        for level in range(len(self.classes)):
            try:
                yield from (
                    found for found in self.walk(Place(level, ())) if not found.folder or found.odd
                )
            except NotFound:
                continue
            except MemorydError as error:
                yield Found(Place(level, ()), True, odd=error.message)

    def sweep_temps(self) -> None:
        """Remove what a kill left in the middle of a write."""
        for level in range(len(self.classes)):
            root = Place(level, ())
            folders = [root, *(f.place for f in self.walk(root) if f.folder and not f.odd)]
            for place in folders:
                with self.folder(place) as handle:
                    for name in os.listdir(handle):
                        if handles.TEMP.fullmatch(name):
                            handles.forget(handle, name)


def _all_of(handle: int) -> bytes:
    parts = []
    while part := os.read(handle, MAX_READ):
        parts.append(part)
    return b"".join(parts)[: MAX_READ + 1]
