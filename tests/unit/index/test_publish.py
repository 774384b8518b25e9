"""A rebuilt index in the place of the old one (reliability table, S and R rows)."""

import errno
import os
import pathlib
import shutil
import subprocess
import sys

import apsw
import pytest

from memoryd import db, points
from memoryd.errors import Busy, Cancelled, ConfigError, Conflict, IndexBusy, IOFailed
from memoryd.index import (
    Counts,
    Index,
    NoGate,
    Rebuild,
    building,
    catch_up,
    opening,
    rebuild,
    schema,
    swap,
)
from memoryd.sources import discover
from tests.support.indexing import dumped, publish
from tests.support.logs import append, claude_user, dated, write

SECRET = '[index]\nmax_class = "secret"\n'


def owner(*words):
    return dated(*(claude_user(word) for word in words))


class Gate:
    """A gate that remembers what happened at it."""

    def __init__(self, readers=()):
        self.readers, self.story = list(readers), []

    def shut(self):
        self.story.append("shut")
        for reader in self.readers:
            reader.close()

    def open(self):
        self.story.append("open")


@pytest.fixture
def log(world):
    return write(world.logs / "a.jsonl", *owner("one", "two"))


@pytest.fixture(autouse=True)
def nobody_observes():
    yield
    points.observe(None)


def built(world, toml=None):
    settings = world.settings(toml)
    return building.build(opening.new_temp(settings.path), settings)


def names(world):
    return sorted(path.name for path in (world.state / "index").iterdir())


def test_a_rebuild_in_its_own_process_gives_what_catching_up_gives(world, log):
    told = []
    with world.index() as index:
        catch_up(index)
        before = index.generation
        done = Rebuild(index.settings).run(told.append)
        gate = Gate()
        index.publish(done, gate)
        assert gate.story == ["shut", "open"]
        assert done.counts == Counts(2, 2)
        assert index.generation != before
        assert dumped(index) == world.fresh()
        assert told
        assert told[-1].all_logs == 1
        assert index._following.connection.pragma("journal_mode") == "wal"
    assert names(world) == ["memory.sqlite3"]


def test_after_a_publication_the_index_goes_on_with_the_same_connection(world, log):
    with world.index() as index:
        catch_up(index)
        index.publish(built(world), NoGate())
        connection = index._following.connection
        append(log, *owner("three"))
        catch_up(index)
        assert index._following.connection is connection
        assert len(dumped(index)) == 3


def test_a_new_index_that_cannot_be_opened_is_opened_again(world, log, monkeypatch):
    from memoryd.index import live

    real, calls = live.Following, []

    def broken(settings, connection):
        calls.append(connection)
        if len(calls) == 2:  # the first is that of the rounds before the swap
            raise IOFailed("no")
        return real(settings, connection)

    with world.index() as index:
        catch_up(index)
        before, done = index.generation, built(world)
        monkeypatch.setattr(live, "Following", broken)
        gate = Gate()
        with pytest.raises(IOFailed):
            index.publish(done, gate)
        assert gate.story == ["shut", "open"]
        assert index.generation != before  # the rename had happened
        assert dumped(index) == world.fresh()


def test_rebuild_alone_does_it_all_for_a_process_without_readers(world, log):
    settings = world.settings()
    done = rebuild(settings)
    assert done.counts.indexed == 2
    assert world.caught_up() == world.fresh()


def test_a_rebuild_that_fails_leaves_nothing_and_says_why_r02(world, log, monkeypatch):
    settings = world.settings()
    Index(settings).close()
    said = '{"type":"failed","code":"disk_full","message":"full"}'
    script = f"import sys; sys.stdin.buffer.read(); print({said!r})"
    from memoryd.errors import DiskFull

    with pytest.raises(DiskFull):
        Rebuild(settings, (sys.executable, "-c", script)).run()
    assert names(world) == ["memory.sqlite3"]


def test_a_rebuild_process_that_dies_leaves_nothing_r01(world, log):
    from memoryd.errors import Internal

    settings = world.settings()
    Index(settings).close()
    with pytest.raises(Internal, match="ended by itself"):
        Rebuild(settings, (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")).run()
    assert names(world) == ["memory.sqlite3"]


def test_a_cancelled_rebuild_ends_and_leaves_nothing_r13(world, log):
    settings = world.settings()
    said = '{"type":"progress","logs":1,"all_logs":2,"bytes":1,"all_bytes":2}'
    script = (
        f"import signal, sys; print({said!r}, flush=True); sys.stdin.buffer.read(); signal.pause()"
    )
    Index(settings).close()
    work = Rebuild(settings, (sys.executable, "-c", script))
    with pytest.raises(Cancelled):
        work.run(lambda progress: work.cancel())
    assert names(world) == ["memory.sqlite3"]


def test_a_rebuild_that_nobody_listens_to_ends_and_removes_its_file(world, log):
    import msgspec

    from memoryd.index.process import COMMAND, Ticket

    settings = world.settings()
    settings.path.parent.mkdir(mode=0o700)
    temp = opening.new_temp(settings.path)
    ticket = Ticket(settings.config, str(settings.home), settings.key, settings.env, str(temp))
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.close()
        process.stdin.write(msgspec.msgpack.encode(ticket))
        process.stdin.close()
    assert process.returncode == 1
    assert names(world) == []


def test_logs_that_grew_while_it_was_built_are_in_it_r08(world, log):
    with world.index() as index:
        catch_up(index)
        done = built(world)
        append(log, *owner("three"))
        new = write(world.logs / "b.jsonl", *owner("four"))
        index.publish(done, NoGate())
        assert len(dumped(index)) == 4
        append(new, *owner("five"))
        catch_up(index)
        assert dumped(index) == world.fresh()


def test_records_written_during_the_swap_are_read_before_readers_are_let_in_r08(world, log):
    with world.index() as index:
        catch_up(index)
        done = built(world)
        points.observe(lambda point: point == "swap: renamed" and append(log, *owner("late")))
        seen = []

        class Looking(Gate):
            def open(self):
                seen.extend(dumped(index))

        index.publish(done, Looking())
        assert len(seen) == 3


def test_a_floor_written_while_it_was_built_holds_in_the_new_index(world, log):
    from tests.support.logs import claude_call, claude_result

    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    write(log, *web, *owner("tainted"))
    with world.index() as index:
        catch_up(index)
        settings = world.settings()
        temp = opening.new_temp(settings.path)
        write(log, *owner("laundered"))
        done = building.build(temp, settings)  # has read the new file and knows of no floor
        catch_up(index)
        index.publish(done, NoGate())
        assert dumped(index) == world.fresh()
        assert b'"untrusted":true' in dumped(index)[0]


def test_a_log_rewritten_while_the_old_index_cannot_write_keeps_its_label(world, log, monkeypatch):
    """Found by chaos: the new index never saw the log as it was, and the old one had not read it again."""
    from tests.support.logs import claude_call, claude_result

    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    write(log, *web, *owner("tainted"))
    with world.index() as index:
        catch_up(index)
        write(log, *owner("laundered"))
        publish(index, world.settings())
        catch_up(index)
        assert dumped(index) == world.fresh()
        assert b'"untrusted":true' in dumped(index)[0]


@pytest.mark.parametrize("number", range(2))
def test_a_failed_fsync_of_the_new_file_keeps_the_old_one_r03(world, log, monkeypatch, number):
    def fsync(handle):
        raise OSError(errno.EIO, "no")

    with world.index() as index:
        catch_up(index)
        before, done = index.generation, built(world)
        monkeypatch.setattr(swap.os, "fsync", fsync)
        gate = Gate()
        with pytest.raises(OSError, match="no"):
            index.publish(done, gate)
        monkeypatch.undo()
        assert index.generation == before
        assert gate.story[-1] == "open"
        assert names(world)[0] == "memory.sqlite3"
        assert not [name for name in names(world) if "rebuild" in name]
        append(log, *owner("three"))
        catch_up(index)
        assert dumped(index) == world.fresh()


def test_a_failed_fsync_of_the_folder_does_not_undo_the_rename_r04(world, log, monkeypatch):
    real, calls = os.fsync, []

    def fsync(handle):
        if pathlib.Path(f"/proc/self/fd/{handle}").is_dir():
            calls.append(handle)
            raise OSError(errno.EIO, "no")
        real(handle)

    with world.index() as index:
        catch_up(index)
        before, done = index.generation, built(world)
        monkeypatch.setattr(swap.os, "fsync", fsync)
        index.publish(done, NoGate())
        assert index.generation != before
        assert len(calls) == 2  # tried once more
        assert dumped(index) == world.fresh()


HOLD = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN").execute("SELECT count(*) FROM log").fetchall()
print("holding", flush=True)
sys.stdin.read()
"""


def test_an_index_that_another_process_holds_is_not_replaced_r05(world, log, monkeypatch):
    monkeypatch.setattr(db, "BUSY_MS", 20)
    with world.index() as index:
        catch_up(index)
        before, done = index.generation, built(world)
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, str(index.settings.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as holder:
            assert holder.stdout.readline() == b"holding\n"
            gate = Gate()
            with pytest.raises(IndexBusy, match="another process has the index open") as caught:
                index.publish(done, gate)
            assert caught.value.code == "index_busy"
            assert gate.story == ["shut", "open"]
            assert index.generation == before
            append(log, *owner("three"))
            catch_up(index)
            assert len(dumped(index)) == 3
            holder.stdin.close()
        index.publish(built(world), NoGate())
        assert index.generation != before
        assert dumped(index) == world.fresh()
    assert names(world) == ["memory.sqlite3"]


def test_the_old_index_has_left_wal_mode_when_it_is_replaced_r05(world, log):
    versions = []
    with world.index() as index:
        catch_up(index)
        path = index.settings.path

        def observe(point):
            if point == "swap: old closed":
                versions.append(path.read_bytes()[18:20])

        points.observe(observe)
        index.publish(built(world), NoGate())
    assert versions == [b"\x01\x01"]  # the file format's words for a rollback journal


def test_a_reader_left_open_in_this_process_stops_the_swap_r05(world, log, monkeypatch):
    monkeypatch.setattr(db, "BUSY_MS", 20)
    with world.index() as index:
        catch_up(index)
        reader = db.reader(index.settings.path)
        reader.execute("SELECT count(*) FROM log").fetchall()
        with pytest.raises(IndexBusy):
            index.publish(built(world), Gate())
        gate = Gate([reader])
        index.publish(built(world), gate)
        assert dumped(index) == world.fresh()


def test_a_gate_that_cannot_be_shut_keeps_the_old_index(world, log):
    class Stuck(Gate):
        def shut(self):
            raise Busy("a question does not end")

    with world.index() as index:
        catch_up(index)
        before = index.generation
        with pytest.raises(Busy):
            index.publish(built(world), Stuck())
        assert index.generation == before
        append(log, *owner("three"))
        catch_up(index)
        assert dumped(index) == world.fresh()


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_sidecar_beside_the_old_index_stops_the_swap_r06(world, log, suffix):
    with world.index() as index:
        catch_up(index)
        _before, done = index.generation, built(world)
        path = index.settings.path
        sidecar = path.with_name(path.name + suffix)
        points.observe(lambda point: point == "swap: alone" and sidecar.write_bytes(b"somebody"))
        with pytest.raises(IndexBusy, match=suffix):
            index.publish(done, NoGate())
        points.observe(None)
        assert not [name for name in names(world) if "rebuild" in name]


def test_what_killed_rebuilds_left_is_swept_with_its_sidecars_r07(world, log):
    world.caught_up()
    for suffix in ("", *db.SIDECARS):
        (world.state / "index" / f"memory.sqlite3.rebuild-00ff{suffix}").touch()
    world.caught_up()
    assert names(world) == ["memory.sqlite3"]


def test_a_log_that_cannot_be_read_stops_the_swap_r14(world, log, monkeypatch):
    write(world.logs / "b.jsonl", *owner("three"))
    real = discover.open_below

    def open_below(root, name):
        if name == "b.jsonl":
            raise PermissionError(errno.EACCES, "no")
        return real(root, name)

    with world.index() as index:
        catch_up(index)
        before = index.generation
        monkeypatch.setattr(discover, "open_below", open_below)
        with pytest.raises(Conflict, match="lacks 1 logs") as caught:
            index.publish(built(world), NoGate())
        assert "--force" in caught.value.remedy
        assert index.generation == before
        assert len(dumped(index)) == 3
        index.publish(built(world), NoGate(), force=True)
        assert len(dumped(index)) == 2
        monkeypatch.undo()
        catch_up(index)
        assert dumped(index) == world.fresh()


def test_an_index_with_half_the_rows_of_the_same_logs_is_refused_r15(world, log):
    write(log, *owner(*"abcdefgh"))
    with world.index() as index:
        catch_up(index)
        done = built(world)
        connection = db.builder(db_path := __import__("pathlib").Path(done.temp))
        connection.execute("UPDATE log SET indexed = 3")
        connection.close()
        with pytest.raises(Conflict, match="3 rows of the same logs, the old one 8"):
            index.publish(done, NoGate())
        assert not db_path.exists()
        assert len(dumped(index)) == 8
    assert names(world) == ["memory.sqlite3", "memory.sqlite3.rejected"]


def test_the_missing_mount_of_a_folder_stops_the_swap_r15(world):
    toml = '[[source]]\npath = "{logs}/mount"\n'
    write(world.logs / "mount" / "a.jsonl", *owner("x"))
    with world.index(toml) as index:
        catch_up(index)
        (world.logs / "mount").rename(world.logs / "away")
        with pytest.raises(Conflict):
            index.publish(built(world, toml), NoGate())
        assert len(dumped(index)) == 1


@pytest.mark.parametrize("size", [100, 5000])
def test_a_cut_index_is_set_aside_with_its_sidecars_and_rebuilt_s05(world, log, size):
    world.caught_up()
    path = world.state / "index" / "memory.sqlite3"
    os.truncate(path, size)
    with world.index() as index:
        assert (index.ready, index.why) == (False, "damaged")
        assert index.catch_up() == (Counts(), False)
        assert index.status().why == "damaged"
        assert names(world) == ["memory.sqlite3.corrupt-1"]
        gate = Gate()
        index.publish(built(world), gate)
        assert gate.story == ["shut", "open"]
        assert index.ready
        assert dumped(index) == world.fresh()
    os.truncate(path, size)
    with world.index() as index:
        assert index.why == "damaged"
    assert [name for name in names(world) if "corrupt" in name] == ["memory.sqlite3.corrupt-2"]


def test_a_database_is_set_aside_together_with_its_sidecars_s05(tmp_path):
    live = tmp_path / "memory.sqlite3"
    assert swap.set_aside(live) is None
    for number in (1, 2):
        for part in swap.beside(live):
            part.write_bytes(b"%d" % number)
        assert swap.set_aside(live) == tmp_path / f"memory.sqlite3.corrupt-{number}"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        f"memory.sqlite3.corrupt-2{suffix}": b"2" for suffix in ("", *db.SIDECARS)
    }


def test_a_sidecar_without_its_database_is_not_replayed_into_a_new_one_s05(world, log):
    folder = world.state / "index"
    folder.mkdir(mode=0o700)
    (folder / "memory.sqlite3-wal").write_bytes(b"left over")
    assert len(world.caught_up()) == 2
    assert names(world) == ["memory.sqlite3", "memory.sqlite3.corrupt-1-wal"]


def test_garbage_in_the_index_s_place_is_set_aside_s05(world, log):
    path = world.state / "index" / "memory.sqlite3"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"these are no pages of a database. " * 200)
    with world.index() as index:
        assert index.why == "damaged"


def test_damage_met_while_catching_up_is_set_aside_s05(world, log):
    with world.index() as index:
        catch_up(index)
        index._following.connection.pragma("wal_checkpoint(TRUNCATE)")
        size = index.settings.path.stat().st_size
    with (world.state / "index" / "memory.sqlite3").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with world.index() as index:
        if index.ready:
            append(log, *owner("three"))
            catch_up(index)
        assert (index.ready, index.why) == (False, "damaged")
        index.publish(built(world), NoGate())
        assert dumped(index) == world.fresh()


def test_an_empty_file_is_no_index_s06(world, log):
    path = world.state / "index" / "memory.sqlite3"
    path.parent.mkdir(mode=0o700)
    path.touch()
    assert len(world.caught_up()) == 2


def test_a_folder_in_the_index_s_place_is_refused_s07(world):
    (world.state / "index" / "memory.sqlite3").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"memory\.sqlite3"):
        Index(world.settings())


def test_broken_words_are_found_by_the_daily_check_s08(world, log):
    world.caught_up()
    path = world.state / "index" / "memory.sqlite3"
    connection = apsw.Connection(str(path))
    connection.execute(
        "UPDATE ft_0_data SET block = cast(replace(hex(block), hex('one'), hex('eno')) AS BLOB) "
        "WHERE id > 10"
    )
    connection.execute("UPDATE ft_0_content SET c0 = 'altered' WHERE c0 = 'one'")
    connection.close()
    reader = db.reader(path)
    schema.check_health(reader, 4, words=False)
    reader.close()
    with world.index() as index:
        reader = db.reader(path)
        assert schema.healthy(reader, 4, db.Deadline(60), words=False)
        assert not schema.healthy(reader, 4, db.Deadline(60), words=True)
        reader.close()
        index.distrust()
        assert (index.ready, index.why) == (False, "damaged")
        index.publish(built(world), NoGate())
        reader = db.reader(path)
        assert schema.healthy(reader, 4, db.Deadline(60), words=True)
        reader.close()
        assert dumped(index) == world.fresh()


def test_a_missing_row_is_found_by_the_quick_check(world, log):
    world.caught_up()
    connection = apsw.Connection(str(world.state / "index" / "memory.sqlite3"))
    connection.execute("DELETE FROM row_0 WHERE n = 1")
    with pytest.raises(db.Damaged, match="class 0"):
        schema.check_health(connection, 4, words=False)
    connection.close()


def test_another_writer_makes_the_batch_wait_s04(world, log, monkeypatch):
    monkeypatch.setattr(db, "BUSY_MS", 10)
    with world.index() as index:
        other = db.writer(index.settings.path)
        other.execute("BEGIN IMMEDIATE")
        assert catch_up(index) == Counts()
        assert index.status().fault == "busy"
        other.execute("ROLLBACK")
        other.close()
        index._retry_at = 0.0
        assert catch_up(index) == Counts(2, 2)


@pytest.mark.parametrize("emptied", [True, False], ids=["wal-emptied", "wal-full"])
def test_an_index_renamed_over_by_others_is_made_again_s13(world, log, emptied):
    with world.index() as index:
        catch_up(index)
        before = index.generation
        if emptied:
            index._following.connection.pragma("wal_checkpoint(TRUNCATE)")
        pathlib.Path(built(world).temp).rename(index.settings.path)
        append(log, *owner("three"))
        index.changed([log])
        assert index.catch_up() == (Counts(), False)
        assert (index.ready, index.why) == (False, "damaged")
        aside = {name for name in names(world) if "corrupt" in name}
        assert "memory.sqlite3.corrupt-1" in aside
        index.publish(built(world), NoGate())
        assert index.generation != before
        assert len(dumped(index)) == 3
        assert dumped(index) == world.fresh()


def test_an_index_copied_over_in_place_is_made_again_s14(world, log):
    with world.index() as index:
        catch_up(index)
        index._following.connection.pragma("wal_checkpoint(TRUNCATE)")
        shutil.copyfile(built(world).temp, index.settings.path)
        append(log, *owner("three"))
        catch_up(index)
        assert (index.ready, index.why) == (False, "damaged")
        index.publish(built(world), NoGate())
        assert len(dumped(index)) == 3
        assert dumped(index) == world.fresh()


def test_max_class_changed_either_way_ends_in_the_dump_of_a_fresh_rebuild_s22(world, log):
    from tests.support.logs import claude_assistant, claude_call, claude_result

    append(
        log,
        *dated(
            claude_call("Read", {"file_path": "~/.ssh/id_rsa"}, "t"),
            claude_result("t", "key"),
            claude_assistant("quince rests above"),
        ),
    )
    seen = []
    for level in ("secret", "private", "secret", "public"):
        toml = f'[index]\nmax_class = "{level}"\n' + world.toml
        with world.index(toml) as index:
            if not index.ready:
                publish(index, index.settings)
            catch_up(index)
            assert dumped(index) == world.fresh(toml)
            seen.append(len(dumped(index)))
        stored = b"".join(path.read_bytes() for path in (world.state / "index").iterdir())
        assert (b"quince" in stored) == (level == "secret")
    assert seen == [4, 3, 4, 3]


def test_an_empty_index_is_made_whole_before_it_has_its_name(world):
    found = []
    points.observe(lambda point: found.append((point, names(world))))
    Index(world.settings()).close()
    assert next(point for point, _ in found) == "rebuild: temp created"
    assert all("memory.sqlite3" not in there for _, there in found)


def test_the_index_refuses_an_old_engine_s20(world, monkeypatch):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(ConfigError, match=r"3\.51\.2"):
        Index(world.settings())


def test_no_module_opens_a_live_database_by_other_means_s15(world, log):
    """Whatever is opened by path while the index lives, the database and its sidecars are not."""
    script = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.support.indexing import World
from memoryd.index import catch_up
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
world = World(Path({user!r}))
with world.index() as index:
    catch_up(index)
    opened.clear()
    (world.logs / "a.jsonl").unlink()
    catch_up(index)
    index.status()
bad = [path for path in opened if "memory.sqlite3" in path and "rebuild" not in path]
sys.exit(repr(bad) if bad else 0)
"""
    root = str(__import__("pathlib").Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", script.format(root=root, user=str(world.user))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_read_only_folder_is_an_io_error_not_damage_s09(world, log, monkeypatch):
    world.caught_up()

    def fail(*args, **kwargs):
        raise apsw.CantOpenError("no")

    monkeypatch.setattr(apsw, "Connection", fail)
    with pytest.raises(IOFailed):
        Index(world.settings())
