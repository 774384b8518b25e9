"""Connections to SQLite, opened so that the usual mistakes cannot happen.

In: paths. Out: apsw connections, one kind a use: `writer` (the only one that changes a live database),
`reader` (cannot write; every statement under a `Deadline`), `builder` (a new file nobody else knows yet).
`look` tells whose file something is before anything opens it for writing. Errors of SQLite leave here as
errors of memoryd (`wrong`).

Nothing in this process may open a live database file, its ``-wal`` or its ``-shm`` by other means: closing
such a descriptor drops the locks that SQLite holds (https://sqlite.org/howtocorrupt.html, 2.2).
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import apsw
import msgspec

from memoryd.clock import monotonic
from memoryd.errors import (
    Busy,
    Cancelled,
    ConfigError,
    DiskFull,
    Internal,
    IOFailed,
    MemorydError,
    TimedOut,
    Unavailable,
)

OLDEST = (3, 51, 3)
"""SQLite up to 3.51.2 can corrupt a database when a WAL is reset while another process reads."""
BUSY_MS = 2_000
SIDECARS = ("-wal", "-shm", "-journal")
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
"""https://sqlite.org/fileformat2.html#the_database_header"""
_WAL_PAGES = 4_096
"""32 MiB of the index. Its writer checkpoints in quiet moments: the disk must not make an append wait."""
WAL_MOST = 64 << 20
"""Bytes that a write-ahead log keeps on the disk once it is written from its start again.

A longer one means that somebody looks at an old state all the time, and what follows it cannot be folded in.
"""
_CHECK_EVERY = 1_000
"""Virtual machine steps between two looks at a deadline: some 50 microseconds."""


class Damaged(Unavailable):
    """The file is no database, or a broken one."""


class Deadline:
    """When a query must end, and whether its asker still wants it; may be set from another thread."""

    def __init__(self, seconds: float | None = None) -> None:
        """Start a deadline `seconds` from now; None: only `cancel` ends it."""
        self._at = None if seconds is None else monotonic() + seconds
        self.cancelled = False

    def cancel(self) -> None:
        """Take the query back: its next look at this deadline ends it."""
        self.cancelled = True

    def over(self) -> bool:
        """Say whether to stop now."""
        return self.cancelled or (self._at is not None and monotonic() >= self._at)

    def check(self) -> None:
        """Raise what `over` says. Raises: Cancelled, TimedOut."""
        if self.cancelled:
            raise Cancelled("the request was cancelled")
        if self.over():
            raise TimedOut("the deadline passed", remedy="ask for less, or allow more deadline_ms")


class Look(msgspec.Struct, frozen=True):
    """What the header of a database says without touching it."""

    application_id: int
    user_version: int


def check_engine(version: str | None = None, *, fts5: bool | None = None) -> None:
    """Refuse an SQLite that is too old, or has no FTS5.

    Raises: ConfigError naming the version found.
    """
    found = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in found.split(".")[:3]) < OLDEST:
        raise ConfigError(
            f"SQLite {found} can damage a database that is read while it is written",
            remedy="install apsw 3.51.3 or newer",
        )
    if not (has_fts5() if fts5 is None else fts5):
        raise ConfigError("this SQLite has no FTS5", remedy="install apsw from PyPI, which has it")


def has_fts5() -> bool:
    """Say whether full-text search is compiled in."""
    return "ENABLE_FTS5" in apsw.compile_options


def look(path: Path) -> Look | None:
    """Return what the file at `path` is, from the header of its first page; None: absent or empty.

    SQLite is not asked: it would make sidecars, and what it reads without them can be a page behind or ahead
    after a kill. For a database that this process has not open (closing the file would drop its locks).
    Raises: Damaged for what is no database, ConfigError for no regular file, IOFailed.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path} is no file", remedy="move it away")
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise IOFailed(
            f"{path} cannot be read: {error.strerror}", remedy="make it readable for you"
        ) from error
    if not header:
        return None
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise Damaged(f"{path} is no database", remedy="`bxctl reindex` makes a new one")
    return Look(int.from_bytes(header[68:72]), int.from_bytes(header[60:64]))


def create(path: Path) -> None:
    """Make an empty database file that only its owner can read; its sidecars take over its mode.

    Raises: FileExistsError.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.close(handle)


def writer(path: Path, *, synchronous: str = "NORMAL") -> apsw.Connection:
    """Open a database that exists for reading and writing, in WAL mode.

    `synchronous` NORMAL is enough for what can be derived again; FULL for what cannot.
    Raises: Damaged and what else `wrong` knows.
    """
    with translated():
        connection = _open(path, "mode=rw", apsw.SQLITE_OPEN_READWRITE)
        try:
            waits_for_locks(connection)
            overwrites_what_it_deletes(connection)
            strict_quotes(connection)
            appends_before_it_overwrites(connection, synchronous)
        except BaseException:
            close(connection)
            raise
        return connection


def reader(path: Path) -> apsw.Connection:
    """Open a database that exists for reading only; run its statements inside `within`.

    Raises: Damaged and what else `wrong` knows.
    """
    with translated():
        query = "mode=ro&immutable=1" if _unchangeable(path) else "mode=ro"
        connection = _open(path, query, apsw.SQLITE_OPEN_READONLY)
        try:
            waits_for_locks(connection)
            strict_quotes(connection)
            connection.pragma("query_only", True)
            connection.pragma("schema_version")  # opening alone reads nothing
        except BaseException:
            close(connection)
            raise
        return connection


def _unchangeable(path: Path) -> bool:
    """Say whether nobody can write to a database: its file system is read-only, and all is in the file itself.

    Of one in WAL mode SQLite must else make sidecars (https://sqlite.org/wal.html#read_only_databases).
    """
    try:
        read_only = os.statvfs(path).f_flag & os.ST_RDONLY
    except OSError:
        return False
    return bool(read_only) and not path.with_name(path.name + SIDECARS[0]).exists()


def builder(path: Path, *, journal: str = "OFF", cache_kib: int = 8_192) -> apsw.Connection:
    """Open a file that `create` made and nobody else knows, for one long write without a safety net.

    It never waits for the disk: after a kill the file is worth nothing. `journal` OFF: nor after an error;
    MEMORY: a transaction can be taken back.
    """
    with translated():
        connection = _open(path, "mode=rw", apsw.SQLITE_OPEN_READWRITE)
        strict_quotes(connection)
        overwrites_what_it_deletes(connection)
        connection.pragma("locking_mode", "EXCLUSIVE")
        connection.pragma("journal_mode", journal)
        connection.pragma("synchronous", "OFF")
        connection.pragma("cache_size", -cache_kib)
        return connection


def waits_for_locks(connection: apsw.Connection) -> None:
    """Wait a moment for somebody else's lock, instead of failing at once."""
    connection.set_busy_timeout(BUSY_MS)


def overwrites_what_it_deletes(connection: apsw.Connection) -> None:
    """Leave no deleted text in free pages (FTS5 has a setting of its own, in the migrations)."""
    connection.pragma("secure_delete", "ON")


class NoRoom(Exception):
    """A file cannot be written anew on its device now."""


def write_anew(connection: apsw.Connection) -> None:
    """Copy all that is in the file out and back, outside of a transaction: 2.3 s a million rows of the index.

    Where rows are deleted SQLite moves others from page to page, and of those a copy stays in what the page does
    not use, which ``secure_delete`` does not see. Raises: NoRoom, apsw.Error.
    """
    file = Path(connection.filename)
    device = os.statvfs(file.parent)
    if device.f_bavail * device.f_frsize < 2 * file.stat().st_size + _SPARE_BYTES:
        raise NoRoom
    # The copy holds texts: it is made where the file is, under no name, and not where others keep theirs.
    os.environ["SQLITE_TMPDIR"] = str(file.parent)
    try:
        connection.execute("VACUUM")
    except apsw.FullError as error:
        raise NoRoom from error


_SPARE_BYTES = 1 << 20


def strict_quotes(connection: apsw.Connection) -> None:
    """Let a misspelt column be an error, not a string (https://sqlite.org/quirks.html#dblquote)."""
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)


def plans_once(connection: apsw.Connection) -> None:
    """Plan a statement when it is first prepared, not again whenever other values are bound to it.

    A statement over a table with partial indexes is else planned at each use, which costs a small one twenty
    times what it does (https://sqlite.org/queryplanner-ng.html#qpstab). No plan of ours hangs on a bound value.
    """
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def appends_before_it_overwrites(connection: apsw.Connection, synchronous: str) -> None:
    """Turn WAL on, so that readers go on while one writes; where it cannot be had, wait for the disk.

    File systems without shared memory (NFS, 9p) stay in rollback mode; then only FULL is safe.
    """
    mode = connection.pragma("journal_mode", "wal")
    connection.wal_autocheckpoint(_WAL_PAGES)
    connection.pragma("journal_size_limit", WAL_MOST)
    connection.pragma("synchronous", synchronous if mode == "wal" else "FULL")


def close(connection: apsw.Connection) -> None:
    """Close a connection that has nothing left to write, or whose disk fails.

    What the disk does not take now, the next one to open the database finds in the write-ahead log.
    """
    with suppress(apsw.Error):
        connection.close()


@contextmanager
def within(connection: apsw.Connection, deadline: Deadline) -> Iterator[apsw.Connection]:
    """Run statements of `connection` until `deadline`; the connection stays usable after it.

    Raises: Cancelled, TimedOut, and what else `wrong` knows.
    """
    deadline.check()
    connection.set_progress_handler(deadline.over, _CHECK_EVERY)
    try:
        with translated():
            yield connection
    except (Cancelled, TimedOut):
        deadline.check()
        raise
    finally:
        connection.set_progress_handler(None)


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """Commit everything inside or nothing. Raises: what `wrong` knows, after the rollback."""
    with translated():
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back already after some errors (disk full); then there is none to end.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def unsynced(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """Do as `transaction`, but do not wait for the disk; for what can be derived again, or is no loss.

    A crash of the machine may take the last of these back, whole and in order; a crash of the process takes
    nothing. The next commit that waits makes these durable too. Only WAL allows it; elsewhere it waits.
    """
    before = connection.pragma("synchronous")
    if connection.pragma("journal_mode") == "wal":
        connection.pragma("synchronous", "NORMAL")
    try:
        with transaction(connection):
            yield connection
    finally:
        connection.pragma("synchronous", before)


@contextmanager
def translated() -> Iterator[None]:
    """Let errors of SQLite leave as errors of memoryd."""
    try:
        yield
    except apsw.Error as error:
        raise wrong(error) from error


def wrong(error: BaseException) -> MemorydError:
    """Return the error of memoryd that an error of SQLite means.

    A full disk can hide behind a failed rollback, so the chain of contexts is walked to the first cause.
    """
    known = [made for cause in _causes(error) if (made := _translate(cause)) is not None]
    return known[-1] if known else Internal(f"SQLite: {type(error).__name__}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__context__


def _translate(error: BaseException) -> MemorydError | None:
    match error:
        case apsw.FullError():
            return DiskFull("no room left on the device", remedy="free some space")
        case apsw.BusyError() | apsw.LockedError():
            return Busy("another process writes to the database", remedy="try again")
        case apsw.CorruptError() | apsw.NotADBError():
            return Damaged("the database is damaged", remedy="it is rebuilt by `bxctl reindex`")
        case apsw.InterruptError():
            return TimedOut("the query was stopped", remedy="ask for less")
        case apsw.IOError() | apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return IOFailed(
                f"the database cannot be read or written ({type(error).__name__})",
                remedy="see to the disk and the folder's mode; it is tried again",
            )
    return None


def _open(path: Path, query: str, flags: int) -> apsw.Connection:
    name = quote(os.fsencode(path))
    return apsw.Connection(f"file:{name}?{query}", flags=flags | apsw.SQLITE_OPEN_URI)
