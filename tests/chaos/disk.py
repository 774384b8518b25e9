"""A disk that fails: a file system of our own between SQLite and the real one.

In: what shall fail, and when. Out: errors as a bad disk gives them (I/O error, disk full, a short read, a sync
that fails), once or for good; and, for a process that is to end there, a power cut: of what was written
since the last sync each page is kept or lost, one by one.

It covers what SQLite writes. `memoryd.index.swap` syncs a new index by its descriptor, so a power cut takes a
file as synced once the point ``rebuild: synced`` is reached.
"""

import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

NAME = "memoryd-chaos"
FAULTS = {
    "write": ("xWrite", apsw.SQLITE_IOERR_WRITE),
    "full": ("xWrite", apsw.SQLITE_FULL),
    "read": ("xRead", apsw.SQLITE_IOERR_READ),
    "short read": ("xRead", apsw.SQLITE_IOERR_SHORT_READ),
    "sync": ("xSync", apsw.SQLITE_IOERR_FSYNC),
    "truncate": ("xTruncate", apsw.SQLITE_IOERR_TRUNCATE),
    "size": ("xFileSize", apsw.SQLITE_IOERR_FSTAT),
    "lock": ("xLock", apsw.SQLITE_IOERR_LOCK),
    "open": ("xOpen", apsw.SQLITE_CANTOPEN),
    "delete": ("xDelete", apsw.SQLITE_IOERR_DELETE),
}
"""What can fail, by name: the call of the file system and SQLite's code for it."""


class Faults:
    """What fails next. `fired` says whether it did; `written` what a power cut may take back."""

    def __init__(self) -> None:
        self.call, self.code, self.left, self.sticky, self.fired = "", 0, 0, False, False
        self.cut: random.Random | None = None
        self.written: dict[str, dict[int, list[bytes]]] = {}
        self.sizes: dict[str, int] = {}

    def arm(self, fault: str, number: int, *, sticky: bool) -> None:
        """Let the `number`th call of this kind fail, and with `sticky` every one after it."""
        self.call, self.code = FAULTS[fault]
        self.left, self.sticky, self.fired = number, sticky, False

    def rest(self) -> None:
        """Let nothing fail any more."""
        self.call = ""

    def check(self, call: str) -> None:
        """Fail if it is time. Raises: apsw.Error."""
        if call != self.call:
            return
        self.left -= 1
        if self.left == 0 or (self.left < 0 and self.sticky):
            self.fired = True
            if self.cut is not None:
                self.power_cut(self.cut)
            error = apsw.exception_for(self.code)
            error.extendedresult = self.code
            raise error

    def write(self, name: str, old: bytes, data: bytes, offset: int, size: int) -> None:
        """Remember what a write replaced, until a sync."""
        if self.cut is not None:
            self.sizes.setdefault(name, size)
            versions = self.written.setdefault(name, {}).setdefault(offset, [old.ljust(len(data))])
            versions.append(data)

    def synced(self, name: str) -> None:
        """Take all that was written to a file as safe."""
        self.written.pop(name, None)
        self.sizes.pop(name, None)

    def power_cut(self, rng: random.Random) -> None:
        """Lose what was never synced, page by page or not, and end the process at once."""
        for name, pages in self.written.items():
            with suppress(FileNotFoundError):
                handle = os.open(name, os.O_WRONLY)
                for offset, versions in pages.items():
                    os.pwrite(handle, rng.choice(versions), offset)
                if rng.random() < 0.5:
                    os.truncate(handle, rng.randint(self.sizes[name], os.fstat(handle).st_size))
                os.close(handle)
        os.kill(os.getpid(), signal.SIGKILL)


class File(apsw.VFSFile):
    """A file whose calls are counted."""

    def __init__(
        self, faults: Faults, below: str, name: apsw.URIFilename | str | None, flags: list[int]
    ) -> None:
        super().__init__(below, name, flags)
        self.faults = faults
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's own name
        self.faults.check("xWrite")
        if self.faults.cut is not None:
            size = super().xFileSize()
            held = max(0, min(len(data), size - offset))
            old = super().xRead(held, offset) if held else b""
            self.faults.write(self.name, old, bytes(data), offset, size)
        super().xWrite(data, offset)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's own name
        self.faults.check("xRead")
        return super().xRead(amount, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's own name
        self.faults.check("xSync")
        super().xSync(flags)
        self.faults.synced(self.name)

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's own name
        self.faults.check("xTruncate")
        super().xTruncate(size)

    def xFileSize(self) -> int:  # noqa: N802 - SQLite's own name
        self.faults.check("xFileSize")
        return super().xFileSize()

    def xLock(self, level: int) -> None:  # noqa: N802 - SQLite's own name
        self.faults.check("xLock")
        super().xLock(level)


class Disk(apsw.VFS):
    """The file system that opens such files."""

    def __init__(self, faults: Faults) -> None:
        self.faults, self.below = faults, apsw.vfs_names()[0]
        super().__init__(NAME, base=self.below, makedefault=True)

    def xOpen(  # noqa: N802 - SQLite's own name
        self, name: apsw.URIFilename | str | None, flags: list[int]
    ) -> apsw.VFSFile:
        self.faults.check("xOpen")
        return File(self.faults, self.below, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802 - SQLite's own name
        self.faults.check("xDelete")
        super().xDelete(name, sync)
        self.faults.synced(name)


@contextmanager
def failing() -> Iterator[Faults]:
    """Put the failing disk under every connection that is opened from now on."""
    faults = Faults()
    disk, hook = Disk(faults), sys.unraisablehook
    # A second error while SQLite handles the first cannot be raised by apsw, only shown.
    sys.unraisablehook = lambda shown: None if _ours(shown.exc_value) else hook(shown)
    try:
        yield faults
    finally:
        faults.rest()
        disk.unregister()
        sys.unraisablehook = hook


def _ours(error: BaseException | None) -> bool:
    return isinstance(error, apsw.Error)


def forget_synced(faults: Faults, folder: Path) -> None:
    """Take the new indexes in `folder` as safe: they were synced by their descriptors."""
    for name in [*faults.written]:
        if Path(name).parent == folder and ".rebuild-" in name:
            faults.synced(name)
