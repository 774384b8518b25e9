"""Numbered SQL: what makes a database, one step a file, forward only.

In: an open connection and the name of a database (a folder here). Out: its tables, `user_version` at the
last step's number, and a row of `schema_version` a step. Each step and its row commit together, so a
kill between two steps leaves a database that the next run carries on; a second run applies nothing.

What the steps of a database come to may stand beside its folder, as one text that ``etc/whole.py`` makes (a test
compares): a new database is made from that, in one transaction, and steps that are newer than it follow. Made step
by step, each table that a later step changes is made, read and made again: ten times the work.

A file whose text holds ``{c}`` makes one table set a class: it is run once for each class from 0.
"""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import apsw
import msgspec

from memoryd.errors import ConfigError, Internal

_VERSIONS = (
    "CREATE TABLE IF NOT EXISTS schema_version("
    "number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"
)


class Step(msgspec.Struct, frozen=True):
    """One file: its number (from its name), its name without the number, its SQL."""

    number: int
    name: str
    sql: str


@cache
def steps(database: str) -> tuple[Step, ...]:
    """Return the steps of `database` in order. Raises: Internal when their numbers have a gap."""
    found = sorted(
        (file.name, file.read_text("utf-8"))
        for file in files(__name__).joinpath(database).iterdir()
        if file.name.endswith(".sql")
    )
    made = tuple(Step(int(name[:3]), name[4:-4], sql) for name, sql in found)
    if [step.number for step in made] != list(range(1, len(made) + 1)):
        raise Internal(f"the migrations of {database} are not numbered without a gap")
    return made


def latest(database: str) -> int:
    """Return the number of the last step: the version that this program writes."""
    return len(steps(database))


def apply(
    connection: apsw.Connection, database: str, *, classes: int = 0, at_once: bool = True
) -> int:
    """Apply every step that is not yet applied and return how many were.

    `at_once`: an empty database is made from what the steps come to, where that is kept.
    Raises: ConfigError for a database made by a newer program; it is left as it is.
    """
    all_steps = steps(database)
    version = _version(connection)
    if version > len(all_steps):
        raise newer(version, len(all_steps))
    if at_once and not version and _empty(connection) and (text := _whole(database)):
        _all_or_nothing(connection, [text])
    for step in all_steps[_version(connection) :]:
        _apply_one(connection, step, classes)
    return len(all_steps) - version


def newer(version: int, known: int) -> ConfigError:
    """Return the refusal of a database whose version this program does not know."""
    return ConfigError(
        f"the database has version {version}; this memoryd knows {known}",
        remedy="run the newer memoryd again, or set the file aside",
    )


def _version(connection: apsw.Connection) -> int:
    return int(str(connection.pragma("user_version")))


def _whole(database: str) -> str:
    """Return the SQL that does at once what the steps do, up to the one that it names; "" where there is none."""
    file = files(__name__).joinpath(f"{database}.sql")
    return file.read_text("utf-8") if file.is_file() else ""


def _empty(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get is None


def _apply_one(connection: apsw.Connection, step: Step, classes: int) -> None:
    each = range(classes) if "{c}" in step.sql else (0,)
    made = [step.sql.replace("{c}", str(number)) for number in each]
    named = f"INSERT INTO schema_version VALUES ({step.number}, {apsw.format_sql_value(step.name)})"
    _all_or_nothing(connection, [_VERSIONS, *made, named, f"PRAGMA user_version = {step.number}"])


def _all_or_nothing(connection: apsw.Connection, texts: Iterable[str]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for sql in texts:
            connection.execute(sql)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
