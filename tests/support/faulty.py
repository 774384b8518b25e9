"""A file system between SQLite and the disk whose calls fail on demand; and one without shared memory.

::

    with faulty() as faults:
        faults.arm("xWrite", 3, sticky=False)      # the third write from now on fails, once
        ...
        faults.rest()
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

KINDS = {
    "io": {
        "xWrite": apsw.SQLITE_IOERR_WRITE,
        "xRead": apsw.SQLITE_IOERR_READ,
        "xSync": apsw.SQLITE_IOERR_FSYNC,
        "xTruncate": apsw.SQLITE_IOERR_TRUNCATE,
    },
    "full": {"xWrite": apsw.SQLITE_FULL},
    "short": {"xRead": apsw.SQLITE_IOERR_SHORT_READ},
}


class Faults:
    """What fails: the call of this number, and with `sticky` every one after it."""

    def __init__(self) -> None:
        self.call, self.kind, self.left, self.sticky = "", "io", 0, False
        self.fired = False

    def arm(self, call: str, number: int, *, sticky: bool, kind: str = "io") -> None:
        """Let the call of that number fail, counted from now."""
        self.call, self.kind, self.left, self.sticky = call, kind, number, sticky
        self.fired = False

    def rest(self) -> None:
        """Let nothing fail."""
        self.call = ""

    def check(self, call: str) -> None:
        """Fail if it is this call's turn. Raises: apsw.Error."""
        if call != self.call:
            return
        self.left -= 1
        if self.left == 0 or (self.left < 0 and self.sticky):
            self.fired = True
            code = KINDS[self.kind][call]
            error = apsw.exception_for(code)
            raise error


@contextmanager
def faulty() -> Iterator[Faults]:
    """Have every database that is opened from now on meet the faults; the calls rest at the end."""
    faults, default = Faults(), apsw.vfs_names()[0]

    class File(apsw.VFSFile):
        def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's own name
            faults.check("xWrite")
            return super().xWrite(data, offset)

        def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's own name
            faults.check("xRead")
            return super().xRead(amount, offset)

        def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's own name
            faults.check("xSync")
            return super().xSync(flags)

        def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's own name
            faults.check("xTruncate")
            return super().xTruncate(size)

    class FileSystem(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("memoryd-faulty", base=default, makedefault=True)

        def xOpen(  # noqa: N802 - SQLite's own name
            self, name: str | apsw.URIFilename | None, flags: list[int]
        ) -> apsw.VFSFile:
            return File(default, name, flags)

    with _registered(FileSystem()):
        try:
            yield faults
        finally:
            faults.rest()


@contextmanager
def without_shared_memory() -> Iterator[None]:
    """Have every database that is opened from now on lie where a WAL cannot be had, as on NFS."""

    class FileSystem(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("memoryd-no-shm", base="unix-dotfile", makedefault=True)

    with _registered(FileSystem()):
        yield


@contextmanager
def _registered(system: apsw.VFS) -> Iterator[None]:
    try:
        yield
    finally:
        system.unregister()
