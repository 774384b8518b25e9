"""The files beside an index: which are asked for, set aside, kept and swept, by name and number."""

import errno
import os
from pathlib import Path

import apsw
import pytest

from memoryd import db, points
from memoryd.errors import Busy, IndexBusy, Internal
from memoryd.index import swap


@pytest.fixture
def live(tmp_path):
    return tmp_path / "memory.sqlite3"


@pytest.fixture
def story():
    """The points that were reached, in their order."""
    told = []
    points.observe(told.append)
    yield told
    points.observe(None)


def names(live):
    return sorted(path.name for path in live.parent.iterdir())


def handles():
    """How many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def database(path):
    """A closed database in WAL mode, as memoryd leaves one."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE t(x)")
    connection.close()
    return path


def test_a_log_of_changes_is_as_long_as_its_file_and_nothing_where_there_is_none(live):
    assert swap.wal_bytes(live) == 0
    (live.parent / "memory.sqlite3-wal").write_bytes(b"12345")
    live.write_bytes(b"1")
    assert swap.wal_bytes(live) == 5


def test_a_removed_database_takes_its_sidecars_along_and_may_be_gone_already(live):
    swap.remove(live)
    for part in swap.beside(live):
        part.touch()
    (live.parent / "memory.sqlite3.corrupt-1").touch()
    swap.remove(live)
    assert names(live) == ["memory.sqlite3.corrupt-1"]


def test_a_rejected_index_takes_the_place_of_the_one_rejected_before(live):
    for content in (b"first", b"second"):
        temp = live.parent / "temp"
        temp.write_bytes(content)
        swap.reject(temp, live)
    assert names(live) == ["memory.sqlite3.rejected"]
    assert (live.parent / "memory.sqlite3.rejected").read_bytes() == b"second"


def test_the_number_of_what_is_set_aside_is_above_every_earlier_one(live):
    live.touch()
    for name in ("corrupt-9", "corrupt-10", "corrupt-x", "corrupt-10-wal"):
        (live.parent / f"memory.sqlite3.{name}").touch()
    assert swap.set_aside(live) == live.parent / "memory.sqlite3.corrupt-11"
    assert names(live) == ["memory.sqlite3.corrupt-11"]


def test_setting_aside_brings_the_new_name_to_the_disk(live, monkeypatch):
    live.touch()
    synced = []
    monkeypatch.setattr(swap, "sync_folder", synced.append)
    swap.set_aside(live)
    assert synced == [live.parent]


def test_copies_are_removed_and_nothing_else(live):
    kept = ["memory.sqlite3", "memory.sqlite3-wal", "memory.sqlite3.rebuild-1", "notes.sqlite3"]
    copies = ["memory.sqlite3.corrupt-1", "memory.sqlite3.corrupt-1-wal", "memory.sqlite3.rejected"]
    for name in (*kept, *copies, "memory.sqlite3.rejected-wal"):
        (live.parent / name).touch()
    swap.remove_copies(live)
    assert names(live) == kept


def test_sweeping_counts_what_killed_rebuilds_left_and_leaves_the_rest(live):
    for name in ("memory.sqlite3", "memory.sqlite3.rebuild-1", "memory.sqlite3.rebuild-1-wal"):
        (live.parent / name).touch()
    assert swap.sweep(live) == 2
    assert swap.sweep(live) == 0
    assert names(live) == ["memory.sqlite3"]


def test_a_folder_is_synced_once_or_tried_once_more(tmp_path, monkeypatch):
    asked = []

    def fsync(handle, failing):
        asked.append(os.fstat(handle).st_ino)
        if len(asked) <= failing:
            raise OSError(errno.EIO, "no")

    for failing, tried, said in ((0, 1, True), (1, 2, True), (9, 2, False)):
        asked.clear()
        monkeypatch.setattr(swap.os, "fsync", lambda handle, most=failing: fsync(handle, most))
        before = handles()
        assert swap.sync_folder(tmp_path) is said
        assert asked == [tmp_path.stat().st_ino] * tried
        assert handles() == before


def test_handles_of_a_sync_are_not_handed_to_children_and_are_closed(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.touch()
    inherited = []
    monkeypatch.setattr(
        swap.os, "fsync", lambda handle: inherited.append(os.get_inheritable(handle))
    )
    before = handles()
    swap.sync_file(path)
    swap.sync_folder(tmp_path)
    assert inherited == [False, False]
    assert handles() == before


def test_a_publication_goes_step_by_step_and_tells_each(live, story, monkeypatch):
    monkeypatch.setattr(swap.schema, "check_file", lambda path: "")
    monkeypatch.setattr(swap, "sync_folder", lambda folder: story.append(f"synced {folder.name}"))
    database(live)
    temp = database(live.parent / "temp")
    before = temp.stat().st_ino

    class Gate(swap.NoGate):
        def shut(self):
            story.append("shut")

    swap.publish(temp, live, None, Gate()).close()
    assert story == [
        "rebuild: synced", "shut", "swap: drained", "swap: alone", "swap: old closed",
        "swap: renamed", f"synced {live.parent.name}", "swap: folder synced", "swap: reopened",
    ]  # fmt: skip
    assert live.stat().st_ino == before


def test_a_new_index_that_is_none_is_refused_after_the_rename(live, monkeypatch):
    monkeypatch.setattr(swap.schema, "check_file", lambda path: "damaged")
    temp = database(live.parent / "temp")
    with pytest.raises(Internal, match="just renamed is damaged"):
        swap.publish(temp, live, None, swap.NoGate())


def test_sidecars_without_their_database_are_set_aside_before_a_first_index(live):
    (live.parent / "memory.sqlite3-wal").write_bytes(b"left over")
    swap._end_old(live, None)
    assert names(live) == ["memory.sqlite3.corrupt-1-wal"]


def test_a_database_that_somebody_has_open_stays_in_wal_mode_and_open(live, monkeypatch):
    monkeypatch.setattr(db, "BUSY_MS", 10)
    database(live)
    other = db.reader(live)
    assert other.execute("SELECT count(*) FROM t").get == 0
    connection = db.writer(live)
    with pytest.raises(IndexBusy, match="another process has the index open") as caught:
        swap.leave_wal(connection)
    assert isinstance(caught.value.__cause__, Busy | None)
    assert connection.pragma("journal_mode") == "wal"
    other.close()
    swap.leave_wal(connection)
    with pytest.raises(apsw.ConnectionClosedError):
        connection.execute("SELECT 1")
    assert names(live) == ["memory.sqlite3"]


def test_a_database_that_is_no_longer_in_wal_mode_after_all_is_asked_again(live):
    """Its mode was left by somebody before: the answer is the same, and the connection is closed."""
    connection = apsw.Connection(str(live))
    connection.execute("CREATE TABLE t(x)")
    swap.leave_wal(connection)
    with pytest.raises(apsw.ConnectionClosedError):
        connection.execute("SELECT 1")


def test_a_damaged_index_is_closed_and_set_aside(live):
    live.write_bytes(b"no pages of a database " * 300)
    old = apsw.Connection(str(live))
    swap._end_old(live, old)
    with pytest.raises(apsw.ConnectionClosedError):
        old.execute("SELECT 1")
    assert names(live) == ["memory.sqlite3.corrupt-1"]


def test_only_a_folder_is_synced_as_one(live):
    live.touch()
    with pytest.raises(NotADirectoryError):
        swap.sync_folder(live)


def test_a_database_that_answers_with_wal_is_busy_and_stays_open(monkeypatch):
    """An engine says so in words where a lock is in the way, instead of raising."""
    waited = []
    monkeypatch.setattr(db, "waits_for_locks", waited.append)

    class Connection:
        closed = False

        def pragma(self, name, value):
            assert (name, value) == ("journal_mode", "delete")
            return "wal"

        def close(self):
            self.closed = True

    connection = Connection()
    with pytest.raises(IndexBusy) as caught:
        swap.leave_wal(connection)
    assert str(caught.value) == (
        "another process has the index open; close it there (only memoryd may open the index), "
        "then run `bxctl reindex` again"
    )
    assert (waited, connection.closed) == ([connection], False)


@pytest.mark.parametrize("clean", [swap.set_aside, swap.remove_copies, swap.sweep])
def test_what_another_removed_meanwhile_is_no_fault(live, monkeypatch, clean):
    live.touch()
    kept = {"set_aside": ["memory.sqlite3.corrupt-2"]}.get(clean.__name__, ["memory.sqlite3"])
    for name in ("corrupt-1", "rejected", "rebuild-1"):
        (live.parent / f"memory.sqlite3.{name}").touch()
    real = Path.glob
    monkeypatch.setattr(
        Path, "glob", lambda folder, pattern: [folder / "gone", *real(folder, pattern)]
    )
    clean(live)
    monkeypatch.undo()
    gone = {"set_aside": "corrupt-1", "remove_copies": "rejected", "sweep": "rebuild-1"}
    assert set(kept) <= set(names(live))
    assert f"memory.sqlite3.{gone[clean.__name__]}" not in names(live)


@pytest.mark.parametrize("suffix", db.SIDECARS)
def test_any_sidecar_beside_the_old_index_is_refused_by_its_name(live, suffix):
    database(live)
    swap._refuse_sidecars(live)
    (live.parent / f"memory.sqlite3{suffix}").touch()
    (live.parent / "memory.sqlite3.corrupt-1").touch()
    with pytest.raises(IndexBusy) as caught:
        swap._refuse_sidecars(live)
    assert caught.value.message.startswith(f"memory.sqlite3{suffix} stands beside the index,")


def test_a_sidecar_that_comes_when_the_old_index_is_closed_stops_the_swap(live):
    database(live)
    points.observe(
        lambda point: (
            point == "swap: alone" and (live.parent / "memory.sqlite3-journal").write_bytes(b"x")
        )
    )
    try:
        with pytest.raises(IndexBusy, match="-journal"):
            swap._end_old(live, None)
    finally:
        points.observe(None)


def test_the_connection_that_is_handed_over_is_the_one_that_ends_the_old_index(live, monkeypatch):
    monkeypatch.setattr(db, "BUSY_MS", 10)
    database(live)
    old = db.writer(live)
    assert old.execute("SELECT count(*) FROM t").get == 0
    swap._end_old(live, old)
    with pytest.raises(apsw.ConnectionClosedError):
        old.execute("SELECT 1")
    assert names(live) == ["memory.sqlite3"]
    assert live.read_bytes()[18:20] == b"\x01\x01"  # a rollback journal: no longer WAL
