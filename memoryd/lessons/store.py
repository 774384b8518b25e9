"""`lessons.sqlite3`: opened, brought up to date, and never without a copy of what it was.

In: a path. Out: a connection whose tables are those of the newest step and whose every lesson has its
postings. A database of a newer memoryd is refused untouched. A database of opencode-kevin keeps its version
as text; `adopt` turns a copy of one into the same steps' database, wherever among the six it stands.
"""

from functools import cache
from pathlib import Path

import apsw

from memoryd import db, migrations
from memoryd.errors import BadRequest, ConfigError, Internal
from memoryd.lessons import words

NAME = "lessons.sqlite3"
_DATABASE = "lessons"
_KEVIN_STEPS = 6


def latest() -> int:
    """Return the version of a database that this program writes."""
    return migrations.latest(_DATABASE)


def memory() -> apsw.Connection:
    """Return an empty database that lives as long as its connection: for replays and trials."""
    connection = apsw.Connection(":memory:")
    db.plans_once(connection)
    connection.deserialize("main", _empty())
    return connection


@cache
def _empty() -> bytes:
    connection = apsw.Connection(":memory:")
    migrations.apply(connection, _DATABASE)
    return connection.serialize("main")


def opened(path: Path) -> apsw.Connection:
    """Open the database at `path` for writing, made or brought up to date first.

    Before the first pending step of one that holds something, a copy is kept beside it
    (``lessons.sqlite3.before-007``). Raises: ConfigError for a newer one, Internal naming a step that fails, and
    what `db.wrong` knows.
    """
    seen = db.look(path)
    if seen is None and not path.exists():
        db.create(path)
    elif seen is not None:
        _check(seen.user_version)
        if 0 < seen.user_version < migrations.latest(_DATABASE):
            keep_copy(path, seen.user_version + 1)
    connection = db.writer(path, synchronous="FULL")
    try:
        with db.translated():
            db.plans_once(connection)
            _bring_up_or_tell(connection)
    except BaseException:
        db.close(connection)
        raise
    return connection


def _bring_up_or_tell(connection: apsw.Connection) -> None:
    """Apply every pending step. Raises: Internal naming the step that fails on what it finds, DiskFull, IOFailed."""
    try:
        with db.translated():
            bring_up(connection)
    except Internal as error:
        step = int(str(connection.pragma("user_version"))) + 1
        raise Internal(
            f"step {step} of {NAME} fails; the database is as it was before that step",
            remedy=f"restore {NAME} from a backup, or the copy {NAME}.before-{step:03}",
        ) from error


def bring_up(connection: apsw.Connection) -> int:
    """Apply every pending step, write missing postings; return how many steps there were."""
    done = migrations.apply(connection, _DATABASE)
    with db.transaction(connection):
        words.write_missing(connection)
    return done


def keep_copy(path: Path, step: int) -> Path:
    """Copy the database, WAL and all, to a new file beside it and return its path; an older copy stays.

    The copy has its name only once it is whole: else a kill would leave half of one, and the next start rely on it.
    """
    copy = path.with_name(f"{path.name}.before-{step:03}")
    if copy.exists():
        return copy
    begun = copy.with_name(f"{copy.name}.new")
    for name in ("", *db.SIDECARS):
        begun.with_name(begun.name + name).unlink(missing_ok=True)
    db.create(begun)
    with db.translated():
        source = db.writer(path)
        target = apsw.Connection(str(begun))
        try:
            with target.backup("main", source, "main") as backup:
                backup.step()
        finally:
            target.close()
            source.close()
    begun.rename(copy)
    return copy


def adopt(path: Path, copy: Path) -> apsw.Connection:
    """Copy a database of opencode-kevin to `copy`, run the remaining steps on it and return it, open.

    The file at `path` is only read. Raises: BadRequest for what is no such database.
    """
    db.create(copy)
    with db.translated():
        target = apsw.Connection(str(copy))
        source = db.reader(path)
        try:
            with target.backup("main", source, "main") as backup:
                backup.step()
        finally:
            source.close()
    try:
        _renumber(target)
        bring_up(target)
    except BaseException:
        target.close()
        raise
    return target


def _check(version: int) -> None:
    if version > (known := migrations.latest(_DATABASE)):
        raise migrations.newer(version, known)


def _renumber(connection: apsw.Connection) -> None:
    """Put the steps' numbers where our runner keeps them."""
    try:
        rows = list(connection.execute("SELECT max(version) FROM schema_version"))
    except apsw.SQLError as error:
        raise BadRequest(
            "the file is no database of opencode-kevin", remedy="name its kevin.db"
        ) from error
    version = int(str(rows[0][0] or "0"))
    if not 1 <= version <= _KEVIN_STEPS:
        raise ConfigError(
            f"opencode-kevin's schema {version} is not known",
            remedy="versions 001 to 006 (releases up to 0.5) can be imported",
        )
    names = {step.number: step.name for step in migrations.steps(_DATABASE)}
    with db.transaction(connection):
        connection.execute("DROP TABLE schema_version")
        connection.execute(
            "CREATE TABLE schema_version(number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"
        )
        for number in range(1, version + 1):
            connection.execute("INSERT INTO schema_version VALUES (?, ?)", (number, names[number]))
        connection.execute(f"PRAGMA user_version = {version}")
