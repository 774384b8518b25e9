"""The six steps of that other system, then ours; a copy before, and nothing twice."""

import os
import signal
from pathlib import Path

import apsw
import pytest

from memoryd import db, migrations
from memoryd.errors import BadRequest, ConfigError, Internal
from memoryd.labels import Label
from memoryd.lessons import kevin as taking
from memoryd.lessons import store

ONE = [("one",)]
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
    assert first.pragma("user_version") == migrations.latest("lessons") == 10
    assert [n for (n,) in first.execute("SELECT number FROM schema_version")] == list(range(1, 11))
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


def test_a_newer_database_is_refused_untouched_u02(tmp_path: Path):
    path = tmp_path / store.NAME
    store.opened(path).close()
    newer = apsw.Connection(str(path))
    newer.execute("PRAGMA user_version = 11")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="version 11"):
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
    assert made.pragma("user_version") == 10
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


METRICS = {1: 0, 2: 0, 3: 6, 4: 9, 5: 13, 6: 22}
SETTINGS = {1: 0, 2: 0, 3: 2, 4: 4, 5: 6, 6: 9}
INDEXES = {
    "idx_memories_type", "idx_memories_scope", "idx_memories_relevance", "idx_memories_created",
    "idx_memories_expires", "idx_memories_fingerprint", "idx_memories_ignored", "idx_memories_archived",
    "uq_memories_error_fp", "idx_tool_calls_session", "idx_tool_calls_tool", "idx_tool_calls_ts",
    "idx_tool_calls_success", "idx_tool_calls_fix", "idx_tool_calls_error", "uq_retrospectives_session",
    "idx_injections_fingerprint", "idx_injections_session", "idx_injections_outcome", "idx_feedback_memory",
    "idx_feedback_created",
}  # fmt: skip


@pytest.mark.parametrize("version", range(3, 7))
def test_each_step_seeds_its_counters_and_settings(tmp_path: Path, version: int):
    connection = kevin(tmp_path / "k.db", version)
    assert connection.execute("SELECT count(*) FROM kevin_metrics").get == METRICS[version]
    assert connection.execute("SELECT count(*) FROM kevin_settings").get == SETTINGS[version]


def test_after_the_sixth_every_index_is_there(tmp_path: Path):
    connection = kevin(tmp_path / "k.db", 6)
    found = {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        )
    }
    assert found == INDEXES


def test_006_points_to_a_successor_without_a_foreign_key(tmp_path: Path):
    connection = kevin(tmp_path / "k.db", 6)
    remember(connection, "old")
    connection.execute("UPDATE memories SET status = 'superseded', superseded_by = 'nobody'")
    assert list(connection.execute("PRAGMA foreign_key_list(memories)")) == []


@pytest.mark.parametrize(
    ("version", "column", "value"),
    [
        (1, "type", "rule"), (1, "scope", "world"), (3, "origin", "causal"), (4, "type", "nonsense"),
        (4, "origin", "nonsense"), (4, "status", "gone"),
    ],
)  # fmt: skip
def test_what_a_step_does_not_know_is_refused(tmp_path: Path, version, column, value):
    connection = kevin(tmp_path / "k.db", version)
    remember(connection, "one")
    with pytest.raises(apsw.ConstraintError):
        connection.execute(f"UPDATE memories SET {column} = ?", (value,))


@pytest.mark.parametrize(("column", "value"), [("type", "rule"), ("type", "solution"), ("origin", "causal"),
                                               ("origin", "imported"), ("status", "archived")])  # fmt: skip
def test_004_admits_what_it_widened(tmp_path: Path, column, value):
    connection = kevin(tmp_path / "k.db", 4)
    remember(connection, "one")
    connection.execute(f"UPDATE memories SET {column} = ?", (value,))


def test_one_error_a_project_is_unique_only_where_it_was_observed(tmp_path: Path):
    connection = kevin(tmp_path / "k.db", 6)
    insert = "INSERT INTO memories(id, type, content, project_id, fingerprint, origin) VALUES (?, ?, 'x', 'p', 'f', ?)"
    connection.execute(insert, ("1", "error", "reflector"))
    for name, type_, origin in (("2", "error", "agent"), ("3", "pattern", "causal")):
        connection.execute(insert, (name, type_, origin))
    with pytest.raises(apsw.ConstraintError):
        connection.execute(insert, ("4", "error", "reflector"))


def test_words_follow_the_text_and_no_other_column(tmp_path: Path):
    connection = kevin(tmp_path / "k.db", 6)
    remember(connection, "one", content="alpha fails")
    connection.execute("UPDATE memories SET content = 'beta fails'")
    match = "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH ?"
    assert [connection.execute(match, (w,)).get for w in ("alpha", "beta")] == [0, 1]
    before = connection.total_changes()
    connection.execute("UPDATE memories SET relevance_score = 0.9")
    assert connection.total_changes() - before == 1
    connection.execute("DELETE FROM memories")
    assert connection.execute(match, ("beta",)).get == 0


def fill(connection: apsw.Connection, version: int) -> None:
    """What a user of that version may have."""
    remember(connection, "one", content="bash fails with TS2304")
    connection.execute(
        "INSERT INTO tool_calls(id, session_id, tool, args_summary, success) VALUES ('c', 's', 'bash', 'make', 0)"
    )
    if version >= 5:
        inject(connection, "effective", 1)
    if version >= 6:
        connection.execute(
            "INSERT INTO memory_feedback(id, memory_id, verdict) VALUES ('f', 'one', 'wrong')"
        )
        connection.execute("UPDATE memories SET feedback_negative = 1, superseded_by = 'x'")


@pytest.mark.parametrize("version", range(1, 7))
def test_importing_any_version_takes_what_is_new_at_the_owners_label_and_twice_nothing(
    tmp_path, version
):
    path = tmp_path / "kevin.db"
    old = kevin(path, version)
    fill(old, version)
    old.close()
    before = path.read_bytes()
    ours = store.memory()
    counts = taking.bring_over(ours, path, Label(1, False))
    assert counts == {
        "lessons": 1, "calls": 1, "fixes": 0, "injections": int(version >= 5), "feedback": int(version >= 6)
    }  # fmt: skip
    rows = list(ours.execute("SELECT id, level, untrusted, words > 0, against FROM lesson"))
    assert rows == [("one", 1, 0, 1, int(version >= 6))]
    if version >= 5:
        assert list(ours.execute("SELECT outcome, final, level FROM injection")) == [
            ("inconclusive" if version == 5 else "effective", 1, 1)
        ]
    assert set(taking.bring_over(ours, path, Label(1, False)).values()) == {0}
    assert path.read_bytes() == before


def test_a_database_of_step_seven_gets_its_words_again(tmp_path: Path):
    path = tmp_path / store.NAME
    old = apsw.Connection(str(path))
    old.execute(
        "CREATE TABLE schema_version(number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"
    )
    for number in range(1, 8):
        old.execute(SQL[number].sql)
        old.execute("INSERT INTO schema_version VALUES (?, ?)", (number, SQL[number].name))
    old.execute("PRAGMA user_version = 7")
    old.execute(
        "INSERT INTO lesson(id, type, content, fingerprint, origin, level, untrusted, created_at, updated_at, words) "
        "VALUES ('one', 'rule', 'alpha beta', 'f', 'agent', 0, 0, 1, 1, 2)"
    )
    old.close()
    made = store.opened(path)
    assert list(made.execute("SELECT term FROM posting ORDER BY term")) == [("alpha",), ("beta",)]
    assert list(made.execute("SELECT lessons, words FROM part")) == [(1, 2)]
    assert (tmp_path / f"{store.NAME}.before-008").exists()


def test_statements_of_the_lessons_are_planned_once(tmp_path):
    for connection in (store.opened(tmp_path / store.NAME), store.memory()):
        assert connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
        connection.close()


def opened_and_killed_at(path: Path, statement: int) -> int:
    """Open the database in a process that is killed before its nth statement; return how it ended."""
    pid = os.fork()
    if pid == 0:
        left = [statement]

        def count(*_: object) -> bool:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return True

        class Mortal(apsw.Connection):
            def __init__(self, *given: object, **more: object) -> None:
                super().__init__(*given, **more)
                self.exec_trace = count

        store.apsw.Connection = db.apsw.Connection = Mortal
        store.opened(path)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_kill_inside_a_step_leaves_a_database_that_the_next_start_brings_up_u04(tmp_path: Path):
    cut = set()
    for statement in (2, 9, 16, 20, 24, 31, 38, 47, 58, 70, 85, 100):
        path = tmp_path / str(statement) / store.NAME
        path.parent.mkdir()
        old = at_step(path, 3)
        remember(old, "one")
        old.close()
        assert opened_and_killed_at(path, statement) == -signal.SIGKILL
        look = apsw.Connection(str(path))
        version = look.pragma("user_version")
        applied = [n for (n,) in look.execute("SELECT number FROM schema_version")]
        assert applied == list(range(1, version + 1))
        assert (
            list(look.execute(f"SELECT id FROM {'memories' if version < 7 else 'lesson'}")) == ONE
        )
        look.close()
        cut.add(version)
        connection = store.opened(path)
        assert connection.pragma("user_version") == migrations.latest("lessons")
        assert list(connection.execute("SELECT id FROM lesson")) == ONE
        connection.close()
        copy = apsw.Connection(str(path.with_name(f"{store.NAME}.before-004")))
        assert copy.pragma("user_version") == 3
        assert list(copy.execute("SELECT id FROM memories")) == ONE
    assert len(cut) >= 4  # the kills fell into different steps


def test_a_kill_while_a_new_database_is_made_leaves_none_or_all_of_it_u04(tmp_path: Path):
    left = set()
    for statement in (1, 2, 6, 7, 8, 9, 20, 44, 46, 48, 50, 52, 120):
        path = tmp_path / str(statement) / store.NAME
        path.parent.mkdir()
        killed = opened_and_killed_at(path, statement) == -signal.SIGKILL
        look = apsw.Connection(str(path))
        tables = look.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").get
        left.add((killed, look.pragma("user_version"), tables))
        look.close()
        connection = store.opened(path)
        assert connection.pragma("user_version") == migrations.latest("lessons")
        assert connection.execute("SELECT count(*) FROM schema_version").get == 10
        assert connection.pragma("journal_mode") == "wal"
        connection.close()
        assert (path.stat().st_mode & 0o777) == 0o600
    assert left == {(True, 0, 0), (True, 10, 17), (False, 10, 17)}


def test_a_step_that_fails_on_what_it_finds_is_named_and_tried_once_u05(
    tmp_path: Path, monkeypatch
):
    path = tmp_path / store.NAME
    old = at_step(path, 3)
    remember(old, "one")
    old.execute("DROP TABLE kevin_settings")
    old.close()
    for _ in range(2):
        with pytest.raises(Internal, match=r"step \d of lessons\.sqlite3 fails") as told:
            store.opened(path)
        assert told.value.remedy
    look = apsw.Connection(str(path))
    assert list(look.execute("SELECT id FROM memories")) == ONE


def test_lessons_of_a_newer_memoryd_come_back_from_the_copy_u09(tmp_path: Path):
    path = tmp_path / store.NAME
    old = at_step(path, 6)
    remember(old, "one")
    old.close()
    store.opened(path).close()
    newer = apsw.Connection(str(path))
    newer.pragma("user_version", 99)
    newer.close()
    with pytest.raises(ConfigError, match="version 99"):
        store.opened(path)
    (tmp_path / f"{store.NAME}.before-007").rename(path)
    connection = store.opened(path)
    assert list(connection.execute("SELECT id FROM lesson")) == ONE


def at_step(path: Path, number: int) -> apsw.Connection:
    """Return a database as it was after a step."""
    old = apsw.Connection(str(path))
    old.execute(
        "CREATE TABLE schema_version(number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"
    )
    for one in range(1, number + 1):
        old.execute(SQL[one].sql)
        old.execute("INSERT INTO schema_version VALUES (?, ?)", (one, SQL[one].name))
    old.execute(f"PRAGMA user_version = {number}")
    return old
