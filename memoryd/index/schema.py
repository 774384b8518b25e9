"""What the index file is, and whether the one that is there can be served.

In: a path, a connection, the settings. Out: a made or checked file. The index is derived: one of another
version or other settings is rebuilt, never altered; one of a newer program or a foreign file is refused
and left as it is.
"""

import secrets
from pathlib import Path

import apsw
import msgspec

from memoryd import db, migrations
from memoryd.clock import now_ms
from memoryd.errors import ConfigError
from memoryd.index.settings import Settings

APPLICATION_ID = 0x6D656D64  # "memd"
DATABASE = "index"
PAGE_BYTES = 8192
"""Rows average half a kilobyte: 8 KiB instead of 4 makes the file 3 % smaller and a build 10 % quicker."""


class Meta(msgspec.Struct, frozen=True):
    """What an index says of itself."""

    generation: str
    epoch: str
    classes: tuple[str, ...]
    max_level: int
    rules: str
    created: int


def version() -> int:
    """Return the version of the schema that this program writes."""
    return migrations.latest(DATABASE)


def make(connection: apsw.Connection, settings: Settings) -> Meta:
    """Make the tables of an empty index and give it a generation of its own.

    Raises: what `db.wrong` knows.
    """
    meta = Meta(
        secrets.token_hex(16),
        settings.epoch,
        settings.classes.names,
        settings.max_level,
        settings.rules.fingerprint,
        now_ms(),
    )
    with db.translated():
        connection.pragma("page_size", PAGE_BYTES)  # counts only before the first write
        connection.pragma("application_id", APPLICATION_ID)
        migrations.apply(connection, DATABASE, classes=len(settings.classes))
        connection.executemany(
            "INSERT INTO meta(key, value) VALUES (?, ?)",
            [
                ("generation", meta.generation),
                ("epoch", meta.epoch),
                ("classes", msgspec.json.encode(meta.classes).decode()),
                ("max_level", meta.max_level),
                ("rules", meta.rules),
                ("created", meta.created),
            ],
        )
    return meta


def read_meta(connection: apsw.Connection) -> Meta:
    """Return what the open index says of itself. Raises: db.Damaged when it does not say it all."""
    with db.translated():
        rows = dict(connection.execute("SELECT key, value FROM meta"))
    try:
        classes = msgspec.json.decode(str(rows["classes"]), type=tuple[str, ...])
        return msgspec.convert({**rows, "classes": classes}, Meta)
    except (KeyError, msgspec.MsgspecError) as error:
        raise db.Damaged("the index does not say what it is", remedy="rebuild it") from error


def check_file(path: Path) -> str:
    """Return why the file at `path` cannot be opened as an index; "" when it can.

    The reasons: ``absent``, ``damaged``, ``another version``. Reads the header only and changes nothing.
    Raises: ConfigError for a foreign database, or one of a newer memoryd.
    """
    try:
        seen = db.look(path)
    except db.Damaged:
        return "damaged"
    if seen is None:
        return "absent"
    if seen.application_id != APPLICATION_ID:
        raise ConfigError(f"{path} is a database of another program", remedy="move it away")
    if seen.user_version > version():
        raise migrations.newer(seen.user_version, version())
    return "" if seen.user_version == version() else "another version"


def class_of(names: tuple[str, ...], level: int) -> str:
    """Return the class name at `level` of an index that had these classes; its top for any other level."""
    return names[level] if 0 <= level < len(names) else names[-1]


def next_id(connection: apsw.Connection, classes: int) -> int:
    """Return the id of the next row: one counter over all classes, which gives none again that was deleted."""
    tables = " UNION ALL ".join(f"SELECT max(id) AS id FROM row_{c}" for c in range(classes))
    spent = "SELECT value FROM meta WHERE key = 'spent'"  # `purging.SPENT`
    found = connection.execute(f"SELECT max(id) FROM ({tables} UNION ALL {spent})").get
    return int(found or 0) + 1


def check_health(connection: apsw.Connection, classes: int, *, words: bool) -> None:
    """Check that tables, indexes and rows agree; with `words` also every word against its text.

    Words cost half of what a rebuild costs, so a rebuild leaves them to the daily look of the daemon.
    Raises: db.Damaged naming the table.
    """
    with db.translated():
        for table in _tables(connection, words=words):
            said = [row[0] for row in connection.execute(f"PRAGMA quick_check('{table}')")]
            if said != ["ok"]:
                raise db.Damaged(f"the index is damaged in {table}", remedy="rebuild it")
        for c in range(classes):
            counts = {
                connection.execute(f"SELECT count(*) FROM {table}").get
                for table in (f"row_{c}", f"ft_{c}_content", f"ft_{c}_docsize")
            }
            if len(counts) != 1:
                raise db.Damaged(f"rows are missing of class {c}", remedy="rebuild it")


def _tables(connection: apsw.Connection, *, words: bool) -> list[str]:
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND (rootpage > 0 OR ?) "
        "AND name NOT LIKE 'vocab\\_%' ESCAPE '\\' ORDER BY name",
        (words,),
    )
    return [str(name) for (name,) in found]


def healthy(
    connection: apsw.Connection, classes: int, deadline: db.Deadline, *, words: bool
) -> bool:
    """Say whether `check_health` finds nothing, with words: half of what a rebuild costs.

    Raises: TimedOut, Cancelled, and what else hinders looking.
    """
    try:
        with db.within(connection, deadline):
            check_health(connection, classes, words=words)
    except db.Damaged:
        return False
    return True
