"""The six steps of that other system, then ours; a copy before, and nothing twice."""

from pathlib import Path

import apsw
import pytest

from memoryd import db, migrations
from memoryd.errors import BadRequest, ConfigError
from memoryd.lessons import store

SQL = {step.number: step for step in migrations.steps("lessons")}


def kevin(path: Path, version: int) -> apsw.Connection:
    """A database as that system leaves it at `version`: its versions are text."""
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE schema_version(version TEXT PRIMARY KEY, applied_at TEXT)")
    for number in range(1, version + 1):
        connection.execute(SQL[number].sql)
        connection.execute("INSERT INTO schema_version VALUES (?, 'now')", (f"{number:03}",))
    return connection


def remember(
    connection: apsw.Connection, id: str, type: str = "error", content: str = "bash fails"
) -> None:
    connection.execute(
        "INSERT INTO memories(id, type, content) VALUES (?, ?, ?)", (id, type, content)
    )


def inject(connection: apsw.Connection, outcome: str, count: int) -> None:
    for number in range(count):
        connection.execute(
            "INSERT INTO kevin_injections(id, memory_id, fingerprint, session_id, hook, tokens, outcome) "
            "VALUES (?, 'm', 'f', 's', 'pre_prompt', 1, ?)", (f"{outcome}{number}", outcome))  # fmt: skip


def metrics(connection: apsw.Connection) -> dict[str, int]:
    return dict(
        connection.execute("SELECT key, value FROM kevin_metrics WHERE key LIKE 'injections_%'")
    )


def test_a_new_database_has_every_step_and_a_second_run_applies_none(tmp_path: Path):
    path = tmp_path / store.NAME
    first = store.opened(path)
    assert first.pragma("user_version") == migrations.latest("lessons") == 8
    assert [n for (n,) in first.execute("SELECT number FROM schema_version")] == list(range(1, 9))
    first.close()
    assert (path.stat().st_mode & 0o777) == 0o600
    second = store.opened(path)
    assert store.bring_up(second) == 0
    assert sorted(p.name for p in tmp_path.iterdir() if "before" in p.name) == []


def test_a_copy_is_kept_before_the_first_pending_step(tmp_path: Path):
    path = tmp_path / store.NAME
    old = apsw.Connection(str(path))
    old.execute(
        "CREATE TABLE schema_version(number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"
    )
    for number in range(1, 4):
        old.execute(SQL[number].sql)
        old.execute("INSERT INTO schema_version VALUES (?, ?)", (number, SQL[number].name))
    old.execute("PRAGMA user_version = 3")
    remember(old, "one")
    old.close()
    store.opened(path).close()
    copy = apsw.Connection(str(tmp_path / f"{store.NAME}.before-004"))
    assert copy.pragma("user_version") == 3
    assert list(copy.execute("SELECT id FROM memories")) == [("one",)]


def test_a_newer_database_is_refused_untouched(tmp_path: Path):
    path = tmp_path / store.NAME
    store.opened(path).close()
    newer = apsw.Connection(str(path))
    newer.execute("PRAGMA user_version = 9")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="version 9"):
        store.opened(path)
    assert path.read_bytes() == before


def test_006_remaps_effective_and_derives_its_counters_anew_and_again(tmp_path: Path):
    connection = kevin(tmp_path / "k.db", 5)
    inject(connection, "effective", 5)
    inject(connection, "ineffective", 2)
    connection.execute("UPDATE kevin_metrics SET value = 99 WHERE key = 'injections_effective'")
    connection.execute(SQL[6].sql)
    expected = {
        "injections_total": 7,
        "injections_effective": 0,
        "injections_ineffective": 2,
        "injections_inconclusive": 5,
    }
    assert {key: metrics(connection)[key] for key in expected} == expected
    connection.execute("INSERT OR REPLACE" + SQL[6].sql.split("INSERT OR REPLACE")[1])
    assert {key: metrics(connection)[key] for key in expected} == expected
    with pytest.raises(apsw.ConstraintError):
        inject(connection, "bogus", 1)


def test_006_keeps_every_row_and_the_other_outcomes(tmp_path: Path):
    connection = kevin(tmp_path / "k.db", 5)
    for outcome in ("effective", "ineffective", "unmeasured"):
        inject(connection, outcome, 1)
    connection.execute(SQL[6].sql)
    found = sorted(o for (o,) in connection.execute("SELECT outcome FROM kevin_injections"))
    assert found == ["inconclusive", "ineffective", "unmeasured"]


def test_004_keeps_rowids_words_and_indexes(tmp_path: Path):
    connection = kevin(tmp_path / "k.db", 3)
    for name in ("a", "b", "c"):
        remember(connection, name, content=f"word{name} fails")
    connection.execute("DELETE FROM memories WHERE id = 'a'")
    before = list(connection.execute("SELECT rowid, id FROM memories"))
    connection.execute(SQL[4].sql)
    assert list(connection.execute("SELECT rowid, id FROM memories")) == before
    found = connection.execute(
        "SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'wordc'"
    ).get
    assert found == 3
    names = {
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")
    }
    assert {"idx_memories_expires", "uq_memories_error_fp"} <= names


@pytest.mark.parametrize("version", range(1, 7))
def test_a_database_of_any_version_comes_over_on_a_copy(tmp_path: Path, version: int):
    path = tmp_path / "kevin.db"
    old = kevin(path, version)
    remember(old, "one", content="bash fails with TS2304")
    old.close()
    before = path.read_bytes()
    made = store.adopt(path, tmp_path / "copy.sqlite3")
    rows = list(made.execute("SELECT id, type, content, level, untrusted, words > 0 FROM lesson"))
    assert rows == [("one", "error", "bash fails with TS2304", 7, 1, 1)]
    assert made.pragma("user_version") == 8
    assert path.read_bytes() == before


def test_what_is_no_such_database_is_refused(tmp_path: Path):
    path = tmp_path / "x.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE t(a)")
    other.close()
    with pytest.raises(BadRequest):
        store.adopt(path, tmp_path / "copy.sqlite3")


def test_a_step_that_fails_leaves_nothing_of_itself(tmp_path: Path):
    connection = kevin(tmp_path / "k.db", 5)
    connection.execute("DROP TABLE kevin_settings")
    connection.close()
    with pytest.raises((apsw.Error, Exception)):
        store.adopt(tmp_path / "k.db", tmp_path / "copy.sqlite3")
    copy = apsw.Connection(str(tmp_path / "copy.sqlite3"))
    assert copy.pragma("user_version") == 5
    assert db.look(tmp_path / "k.db") is not None
