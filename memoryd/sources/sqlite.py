"""Read a harness's SQLite database without ever being in its way, and without leaving a trace beside it.

In: a root and the path of a database below it. Out: a connection on which only reading is possible, or
`NotNow`. Three cases, by what lies beside the database:

    no write-ahead log      opened as immutable: no lock is taken, no file made; a change meanwhile is noticed
    a log and its index     opened read-only, index included: a reader of a WAL holds up no writer
    a log without index     copied aside and opened there, since SQLite would have to make the index
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import apsw

from memoryd.sources.opening import open_below
from memoryd.sources.whole import Mark, NotNow

BUSY_MS = 200
_COPIED = 256 << 20
_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW


@contextmanager
def database(root: Path, log: str) -> Iterator[apsw.Connection]:
    """Open the database at `log` below `root` for one short look. Raises: OSError, NotNow."""
    before = mark(root, log)
    try:
        with _connected(root, log) as connection:
            connection.set_busy_timeout(BUSY_MS)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN")
            yield connection
    except apsw.Error as error:
        raise NotNow("a database that is busy, or none") from error
    if not _size(root, f"{log}-wal") and mark(root, log) != before:
        raise NotNow("changed while it was read")


def mark(root: Path, log: str) -> Mark:
    """Return what the database and its write-ahead log look like from outside. Raises: OSError."""
    handle = open_below(root, log)
    try:
        status = os.fstat(handle)
    finally:
        os.close(handle)
    size, changed = status.st_size, status.st_mtime_ns
    try:
        wal = (root / f"{log}-wal").lstat()
    except FileNotFoundError:
        pass
    else:
        size, changed = size + wal.st_size, max(changed, wal.st_mtime_ns)
    return Mark(status.st_dev, status.st_ino, size, changed)


def tables(root: Path, log: str) -> frozenset[str]:
    """Return the names of a database's tables. Raises: OSError, NotNow."""
    with database(root, log) as connection:
        found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return frozenset(str(name) for (name,) in found)


def main(log: str) -> str | None:
    """Return the database that a write-ahead log or its index belongs to."""
    return log[:-4] if log.endswith(("-wal", "-shm")) else None


@contextmanager
def _connected(root: Path, log: str) -> Iterator[apsw.Connection]:
    if not _size(root, f"{log}-wal"):
        yield from _closing(_uri(root, log, "immutable=1"))
    elif _size(root, f"{log}-shm"):
        yield from _closing(_uri(root, log, "readonly_shm=1"))
    else:
        with _copied(root, log) as aside:
            yield from _closing(_uri(aside, "copy", ""))


def _closing(uri: str) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(uri, flags=_FLAGS)
    try:
        yield connection
    finally:
        connection.close()


def _uri(root: Path, log: str, how: str) -> str:
    # Links down to the root are the owner's; below it SQLite follows none.
    path = root.resolve() / log
    return f"file:{quote(str(path))}?mode=ro&{how}"


def _size(root: Path, log: str) -> int:
    try:
        return (root / log).lstat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def _copied(root: Path, log: str) -> Iterator[Path]:
    """Yield a folder with a copy of a database and its write-ahead log, taken while neither changed."""
    before = mark(root, log)
    if before.size > _COPIED:
        raise NotNow("too large to be copied aside")
    with tempfile.TemporaryDirectory(prefix="memoryd-") as folder:
        aside = Path(folder)
        for end in ("", "-wal"):
            handle = open_below(root, log + end)
            with os.fdopen(handle, "rb") as source, (aside / f"copy{end}").open("wb") as target:
                shutil.copyfileobj(source, target)
        if mark(root, log) != before:
            raise NotNow("changed while it was read")
        yield aside
