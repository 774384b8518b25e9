"""The index file found, or made, and opened for writing.

In: the settings. Out: an open connection with what the index says of itself, or the reason why the one that
is there cannot be served and must be rebuilt: ``damaged``, ``another version``, ``other settings``.
"""

import secrets
from pathlib import Path

import apsw

from memoryd import db
from memoryd.index import schema, swap
from memoryd.index.salvage import salvage
from memoryd.index.settings import Settings
from memoryd.points import reached

_NONE = (0, 0)
DAMAGED, OTHER_SETTINGS = "damaged", "other settings"


def find(settings: Settings) -> tuple[apsw.Connection | None, str]:
    """Open the index of `settings.home`, making an empty one where there is none.

    Returns the connection and "", or None and why there is nothing to serve. A damaged file is set aside.
    The caller holds the lock of the state folder.

    Raises: ConfigError for a foreign or newer database (left as it is), and what `db.wrong` knows.
    """
    db.check_engine()
    path = settings.path
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    why = schema.check_file(path)
    try:
        if why == "absent":
            _make_empty(settings)
            why = ""
        if not why:
            connection = db.writer(path)
            if _epoch(connection) == settings.epoch:
                return connection, ""
            try:
                salvage(connection, settings)
            finally:
                db.close(connection)
            why = OTHER_SETTINGS
    except db.Damaged:
        why = DAMAGED
    if why == DAMAGED:
        swap.set_aside(path)
    return None, why


def files(path: Path) -> tuple[tuple[int, int], ...]:
    """Return which files are at the places of a database and its sidecars; (0, 0) for none."""
    return tuple(_file(part) for part in swap.beside(path)[:3])


def still_there(path: Path, before: tuple[tuple[int, int], ...]) -> bool:
    """Say whether the database that is open is still at its path.

    Raises: db.Damaged where it or a sidecar was replaced or removed alone: a ``-wal`` belongs to the file it was
    written for, is replayed into any other one without a word, and holds what is not in its own file yet.
    """
    now = files(path)
    if now[0] == _NONE:
        return False
    if now != before:
        raise replaced()
    return True


def replaced() -> db.Damaged:
    """Return the error of an index whose file is not the one that was opened."""
    return db.Damaged("somebody replaced the index or a file of it", remedy="it is rebuilt")


def _file(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return _NONE
    return status.st_dev, status.st_ino


def new_temp(path: Path) -> Path:
    """Make an empty file beside the index for a new one, and return its path."""
    temp = path.with_name(f"{path.name}.rebuild-{secrets.token_hex(8)}")
    db.create(temp)
    reached("rebuild: temp created")
    return temp


def _make_empty(settings: Settings) -> None:
    """Put an empty index at its place, whole before it has its name."""
    settings.path.unlink(missing_ok=True)  # of no bytes, or absent
    swap.set_aside(settings.path)
    temp = new_temp(settings.path)
    connection = db.builder(temp)
    schema.make(connection, settings)
    with db.translated():
        connection.close()
    swap.sync_file(temp)
    temp.rename(settings.path)
    swap.sync_folder(settings.path.parent)


def _epoch(connection: apsw.Connection) -> str:
    try:
        return schema.read_meta(connection).epoch
    except BaseException:
        db.close(connection)
        raise
