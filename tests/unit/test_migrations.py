"""Numbered SQL: applied once each, whole or not at all, and never backwards."""

import apsw
import pytest

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
