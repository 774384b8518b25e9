"""A finished index put in the place of the old one, so that every reader sees one or the other.

In: a closed, synced file beside the live one; the live one's last connection; a gate that keeps readers
away. Out: the live path, now holding the new file, open in WAL mode.

Renaming over a database that somebody still has open loses the new content in silence: an old ``-wal`` is
replayed into the new file, and the check of integrity still says "ok". Two facts keep that away. While
anybody else holds the old file open, it cannot leave WAL mode: ``journal_mode=DELETE`` is the question
"am I alone?". And no sidecar may be left at the moment of the rename. Whatever fails before the rename
leaves the old index as it was.
"""

import os
from pathlib import Path
from typing import Protocol

import apsw

from memoryd import db
from memoryd.errors import Busy, IndexBusy, Internal
from memoryd.index import schema
from memoryd.points import reached


class Gate(Protocol):
    """Keeps readers away while the file changes."""

    def shut(self) -> None:
        """Hold back new queries, end the running ones, close every reader. Raises: Busy."""

    def open(self) -> None:
        """Let queries go on, on new connections."""


class NoGate:
    """The gate of a process that has no readers."""

    def shut(self) -> None:
        """Have nothing to do."""

    def open(self) -> None:
        """Have nothing to do."""


def publish(temp: Path, live: Path, old: apsw.Connection | None, gate: Gate) -> apsw.Connection:
    """Put `temp` in the place of `live` and return the new writer.

    `old` is the last connection on `live` in this process; it is closed. None: nobody here has it open.

    Raises: IndexBusy when another process has the old index open; then, as after any other failure
    before the rename, the old file is where it was.
    """
    sync_file(temp)
    gate.shut()
    reached("swap: drained")
    _end_old(live, old)
    reached("swap: old closed")
    temp.rename(live)
    reached("swap: renamed")
    sync_folder(live.parent)
    reached("swap: folder synced")
    connection = _reopen(live)
    reached("swap: reopened")
    return connection


def sync_file(path: Path) -> None:
    """Have the whole file on the disk. No connection may be on it. Raises: OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    reached("rebuild: synced")


def sync_folder(folder: Path) -> bool:
    """Have the folder's names on the disk, with one more try; say whether it succeeded.

    The rename has happened by then, and either file is whole: a failure is told, not acted upon.
    """
    for _ in range(2):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        except OSError:
            continue
        else:
            return True
        finally:
            os.close(handle)
    return False


def _end_old(live: Path, old: apsw.Connection | None) -> None:
    """Bring the old index to one file that nobody has open. Raises: IndexBusy."""
    if old is None and not live.exists():
        set_aside(live)  # a sidecar without its database would be replayed into the new file
        return
    try:
        connection = old if old is not None else db.writer(live)
        leave_wal(connection)
    except db.Damaged:
        if old is not None:
            db.close(old)
        set_aside(live)
        return
    _refuse_sidecars(live)


def leave_wal(connection: apsw.Connection) -> None:
    """Take a database out of WAL mode, which succeeds only for its last user, and close it.

    Raises: IndexBusy, db.Damaged; the connection then stays open, in WAL mode.
    """
    try:
        with db.translated():
            db.waits_for_locks(connection)
            mode = connection.pragma("journal_mode", "delete")
    except Busy as error:
        raise _busy() from error
    if mode != "delete":
        raise _busy()
    reached("swap: alone")
    with db.translated():
        connection.close()


def _busy() -> IndexBusy:
    return IndexBusy(
        "another process has the index open",
        remedy="close it there (only memoryd may open the index), then run `bxctl reindex` again",
    )


def _refuse_sidecars(live: Path) -> None:
    if left := [path.name for path in beside(live)[1:] if path.exists()]:
        raise IndexBusy(
            f"{', '.join(left)} stands beside the index, so somebody may still write it",
            remedy="stop whatever has the index open, then start memoryd again",
        )


def _reopen(live: Path) -> apsw.Connection:
    if why := schema.check_file(live):
        raise Internal(f"the index that was just renamed is {why}")
    return db.writer(live)


def beside(path: Path) -> tuple[Path, ...]:
    """Return a database's file and the names that its sidecars would have."""
    return path, *(path.with_name(path.name + suffix) for suffix in db.SIDECARS)


def wal_bytes(path: Path) -> int:
    """Return how long a database's write-ahead log is; it is asked for by name and not opened."""
    try:
        return beside(path)[1].stat().st_size
    except OSError:
        return 0


def remove(path: Path) -> None:
    """Remove a database that nobody has open, with its sidecars."""
    for part in beside(path):
        part.unlink(missing_ok=True)


def reject(temp: Path, live: Path) -> None:
    """Keep a new index that was refused as ``NAME.rejected``, in the place of an earlier one."""
    temp.rename(live.with_name(f"{live.name}.rejected"))


def set_aside(live: Path) -> Path | None:
    """Move a database and its sidecars, together, to ``NAME.corrupt-N``; the one set aside before goes.

    Returns the new path; None when there was nothing.
    """
    if not any(part.exists() for part in beside(live)):
        return None
    earlier = sorted(live.parent.glob(f"{live.name}.corrupt-*"))
    numbers = [int(n) for path in earlier if (n := path.name.rpartition("corrupt-")[2]).isdigit()]
    aside = live.with_name(f"{live.name}.corrupt-{max(numbers, default=0) + 1}")
    for part, target in zip(beside(live), beside(aside), strict=True):
        if part.exists():
            part.rename(target)
    sync_folder(live.parent)
    for path in earlier:
        path.unlink(missing_ok=True)
    return aside


def remove_copies(live: Path) -> None:
    """Remove indexes that were set aside or refused: they hold what the owner wants forgotten."""
    for pattern in (f"{live.name}.corrupt-*", f"{live.name}.rejected*"):
        for path in live.parent.glob(pattern):
            path.unlink(missing_ok=True)


def sweep(live: Path) -> int:
    """Remove what killed rebuilds left beside `live`; return how many files. Not while one runs."""
    left = list(live.parent.glob(f"{live.name}.rebuild-*"))
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)
