"""Connections: what they refuse, what they leave on the disk, when they give up."""

import os
import stat
import threading

import apsw
import pytest

from memoryd import db
from memoryd.errors import (
    Busy,
    Cancelled,
    ConfigError,
    DiskFull,
    Internal,
    IOFailed,
    TimedOut,
)

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.sqlite3"
    db.create(path)
    return path


@pytest.fixture
def connection(path):
    connection = db.writer(path)
    connection.execute("CREATE TABLE t(a TEXT)")
    yield connection
    connection.close()


@pytest.mark.parametrize("version", ["3.51.2", "3.50.4", "3.7.17"])
def test_an_old_sqlite_is_refused_with_the_version_found_s20(version):
    with pytest.raises(ConfigError, match=version.replace(".", r"\.")) as caught:
        db.check_engine(version)
    assert caught.value.exit_code == 78
    assert "apsw" in caught.value.remedy


def test_an_sqlite_without_fts5_is_refused_s20():
    with pytest.raises(ConfigError, match="FTS5"):
        db.check_engine("3.51.3", fts5=False)


def test_the_sqlite_that_is_here_is_accepted_s20():
    db.check_engine()
    db.check_engine("3.51.3")
    db.check_engine("4.0.0")


def test_files_are_private_whatever_the_umask_v01(tmp_path):
    before = os.umask(0)
    try:
        path = tmp_path / "x.sqlite3"
        db.create(path)
        connection = db.writer(path)
        connection.execute("CREATE TABLE t(a)")
        found = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
        connection.close()
    finally:
        os.umask(before)
    assert found == {"x.sqlite3": 0o600, "x.sqlite3-wal": 0o600, "x.sqlite3-shm": 0o600}


def test_a_writer_keeps_a_wal_and_overwrites_what_it_deletes(connection):
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 1
    assert connection.pragma("secure_delete") == 1


def test_a_reader_cannot_write_even_temporary_tables(path, connection):
    reader = db.reader(path)
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("INSERT INTO t VALUES ('x')")
    reader.close()


def test_a_string_in_double_quotes_is_a_column_that_does_not_exist(connection):
    with pytest.raises(apsw.SQLError, match="no such column"):
        connection.execute('SELECT "nocolumn" FROM t')


def test_a_deadline_ends_a_query_and_leaves_the_connection_usable_s18(path, connection):
    reader = db.reader(path)
    with pytest.raises(TimedOut), db.within(reader, db.Deadline(0.02)) as bounded:
        bounded.execute(ENDLESS).fetchall()
    with db.within(reader, db.Deadline(60)) as bounded:
        assert bounded.execute("SELECT count(*) FROM t").get == 0
    reader.close()


def test_cancelling_from_another_thread_ends_a_query(path, connection):
    reader = db.reader(path)
    deadline = db.Deadline()
    started = threading.Event()

    def cancel() -> None:
        started.wait()
        deadline.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    with pytest.raises(Cancelled), db.within(reader, deadline) as bounded:
        started.set()
        bounded.execute(ENDLESS).fetchall()
    other.join()
    reader.close()


def test_a_deadline_that_is_over_starts_nothing(connection):
    with pytest.raises(TimedOut), db.within(connection, db.Deadline(0)):
        pytest.fail("the query was started")


def test_a_transaction_that_fails_leaves_nothing(connection):
    with pytest.raises(ZeroDivisionError), db.transaction(connection) as c:
        c.execute("INSERT INTO t VALUES ('half')")
        _ = 1 // 0
    assert connection.execute("SELECT count(*) FROM t").get == 0
    assert not connection.in_transaction


def test_an_unsynced_transaction_waits_for_no_disk_and_the_next_one_does_again(connection):
    connection.execute("CREATE TABLE u(x)")
    connection.pragma("synchronous", "FULL")
    full, normal = 2, 1
    with db.unsynced(connection):
        assert connection.pragma("synchronous") == normal
        connection.execute("INSERT INTO u VALUES (1)")
    assert connection.pragma("synchronous") == full
    with pytest.raises(KeyError), db.unsynced(connection):
        connection.execute("INSERT INTO u VALUES (2)")
        raise KeyError
    assert connection.pragma("synchronous") == full
    assert list(connection.execute("SELECT x FROM u")) == [(1,)]


def test_without_a_wal_every_transaction_waits_for_the_disk_s21(connection):
    connection.pragma("journal_mode", "delete")
    connection.pragma("synchronous", "FULL")
    with db.unsynced(connection):
        assert connection.pragma("synchronous") == 2


def test_a_locked_database_is_busy_after_a_moment_s04(path, connection, monkeypatch):
    monkeypatch.setattr(db, "BUSY_MS", 10)
    other = db.writer(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy), db.transaction(db.writer(path)):
        pytest.fail("two writers at once")
    other.execute("ROLLBACK")
    other.close()


def test_a_disk_full_behind_a_failed_rollback_is_still_a_disk_full_s01():
    hidden = apsw.SQLError("cannot rollback - no transaction is active")
    hidden.__context__ = apsw.FullError("database or disk is full")
    assert isinstance(db.wrong(hidden), DiskFull)


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (apsw.IOError("x"), IOFailed),
        (apsw.CantOpenError("x"), IOFailed),
        (apsw.ReadOnlyError("x"), IOFailed),
        (apsw.NotADBError("x"), db.Damaged),
        (apsw.CorruptError("x"), db.Damaged),
        (apsw.BusyError("x"), Busy),
        (apsw.LockedError("x"), Busy),
        (apsw.ConstraintError("x"), Internal),
    ],
)
def test_every_error_of_sqlite_has_a_meaning_and_none_shows_stored_text(error, meant):
    made = db.wrong(error)
    assert isinstance(made, meant)
    assert "x" not in made.message.split()


def test_a_writer_meets_a_full_disk_and_keeps_what_was_committed_s01(connection):
    with db.transaction(connection) as c:
        c.execute("INSERT INTO t VALUES ('kept')")
    connection.pragma("max_page_count", 1)
    with pytest.raises(DiskFull), db.transaction(connection) as c:
        c.executemany("INSERT INTO t VALUES (?)", [("x" * 4000,)] * 50)
    assert connection.execute("SELECT a FROM t").fetchall() == [("kept",)]


def test_looking_at_nothing_finds_nothing_s06(tmp_path):
    assert db.look(tmp_path / "absent") is None
    (tmp_path / "empty").touch()
    assert db.look(tmp_path / "empty") is None


def test_looking_at_a_folder_is_refused_by_its_name_s07(tmp_path):
    with pytest.raises(ConfigError, match="memory") as caught:
        (tmp_path / "memory.sqlite3").mkdir()
        db.look(tmp_path / "memory.sqlite3")
    assert caught.value.exit_code == 78


@pytest.mark.parametrize("content", [b"no database at all, only words. " * 8, b"\x00" * 4096])
def test_looking_at_garbage_finds_it_damaged_s05(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(db.Damaged):
        db.look(path)


def test_looking_changes_no_byte_and_makes_no_sidecar_u02(path):
    connection = db.writer(path)
    connection.pragma("application_id", 7)
    connection.pragma("user_version", 9)
    connection.close()
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert db.look(path) == db.Look(7, 9)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_looking_does_not_mind_a_checkpoint_that_a_kill_cut_short_s11(path):
    connection = db.writer(path)
    connection.pragma("user_version", 9)
    connection.close()
    content = bytearray(path.read_bytes())
    content[28:32] = (1000).to_bytes(4)  # pages, by the header; the rest is still in the WAL
    path.write_bytes(content)
    assert db.look(path) == db.Look(0, 9)


def test_a_path_with_question_marks_and_spaces_is_a_path(tmp_path):
    path = tmp_path / "a b?c#d%20.sqlite3"
    db.create(path)
    db.writer(path).close()
    assert db.look(path) is not None


def test_a_statement_is_planned_once_whatever_is_bound_to_it(connection):
    assert connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 0
    db.plans_once(connection)
    assert connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
