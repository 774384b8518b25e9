"""Numbered SQL: applied once each, whole or not at all, and never backwards."""

import apsw
import pytest

from etc import whole
from memoryd import migrations
from memoryd.errors import ConfigError, Internal


@pytest.fixture
def connection():
    connection = apsw.Connection(":memory:")
    yield connection
    connection.close()


def tables(connection):
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def test_every_step_is_applied_once_and_leaves_its_row(connection):
    steps = migrations.steps("index")
    assert migrations.apply(connection, "index", classes=2) == len(steps)
    assert migrations.apply(connection, "index", classes=2) == 0
    assert connection.pragma("user_version") == len(steps) == migrations.latest("index")
    assert connection.execute("SELECT number, name FROM schema_version").fetchall() == [
        (step.number, step.name) for step in steps
    ]


def test_class_tables_are_made_once_a_class(connection):
    migrations.apply(connection, "index", classes=3)
    made = tables(connection)
    for c in range(3):
        assert {f"row_{c}", f"ft_{c}", f"vocab_{c}"} <= made
    assert "row_3" not in made


def test_a_step_that_fails_leaves_nothing_of_itself_u05(connection, monkeypatch):
    good = migrations.Step(1, "good", "CREATE TABLE a(x);")
    bad = migrations.Step(2, "bad", "CREATE TABLE b(x); CREATE TABLE b(x);")
    monkeypatch.setattr(migrations, "steps", lambda database: (good, bad))
    with pytest.raises(apsw.SQLError):
        migrations.apply(connection, "x")
    assert tables(connection) == {"schema_version", "a"}
    assert connection.pragma("user_version") == 1
    fixed = migrations.Step(2, "bad", "CREATE TABLE b(x);")
    monkeypatch.setattr(migrations, "steps", lambda database: (good, fixed))
    assert migrations.apply(connection, "x") == 1
    assert tables(connection) == {"schema_version", "a", "b"}


def test_a_newer_database_is_refused_and_left_as_it_is_u02(connection):
    connection.pragma("user_version", 99)
    with pytest.raises(ConfigError, match="version 99"):
        migrations.apply(connection, "index", classes=1)
    assert tables(connection) == set()


def test_numbers_with_a_gap_are_a_fault_of_ours(tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    for name in ("001_a.sql", "003_c.sql"):
        (tmp_path / "x" / name).touch()
    monkeypatch.setattr(migrations, "files", lambda package: tmp_path)
    with pytest.raises(Internal, match="gap"):
        migrations.steps("x")


def everything(connection):
    """What lies in a database, in the order in which it lies, but not on which page."""
    made = list(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))
    tables = [name for kind, name, _, _ in made if kind == "table"]
    rows = {name: list(connection.execute(f"SELECT * FROM {name}")) for name in tables}
    return made, rows, connection.pragma("user_version")


def test_a_new_database_of_lessons_is_made_from_what_the_steps_come_to(connection):
    assert whole.PATH.read_text("utf-8") == whole.text(), "remedy: python etc/whole.py"
    assert migrations.apply(connection, "lessons") == 10
    steps = apsw.Connection(":memory:")
    assert migrations.apply(steps, "lessons", at_once=False) == 10
    made, rows, version = everything(connection)
    assert (made, rows, version) == everything(steps)
    assert version == 10
    assert {name: len(found) for name, found in rows.items() if found} == {
        "schema_version": 10, "metric": 22, "setting": 9,
    }  # fmt: skip
    assert migrations.apply(connection, "lessons") == 0
    steps.close()


def test_a_step_that_is_newer_than_the_whole_follows_it(connection, monkeypatch):
    newer = migrations.Step(11, "newer", "ALTER TABLE lesson ADD COLUMN newer TEXT;")
    known = migrations.steps("lessons")
    monkeypatch.setattr(migrations, "steps", lambda database: (*known, newer))
    assert migrations.apply(connection, "lessons") == 11
    assert list(connection.execute("SELECT newer FROM lesson")) == []
    assert list(connection.execute("SELECT max(number), name FROM schema_version")) == [
        (11, "newer")
    ]


def test_a_whole_that_fails_leaves_nothing_of_itself(connection, monkeypatch):
    monkeypatch.setattr(migrations, "_whole", lambda database: "CREATE TABLE a(x); CREATE TABLE a;")
    with pytest.raises(apsw.SQLError):
        migrations.apply(connection, "lessons")
    assert tables(connection) == set()
    assert connection.pragma("user_version") == 0


@pytest.mark.parametrize("there", ["CREATE TABLE mine(x)", "PRAGMA user_version = 3"])
def test_only_an_empty_database_is_made_at_once(connection, monkeypatch, there):
    connection.execute(there)
    monkeypatch.setattr(migrations, "_whole", lambda database: pytest.fail("it is not empty"))
    monkeypatch.setattr(migrations, "_apply_one", lambda *_: None)
    migrations.apply(connection, "lessons")
