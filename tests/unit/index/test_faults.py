"""Reads, writes and syncs that fail, one after the other, once and for ever (S01, S02, S03, R02).

A file system of our own lies between SQLite and the disk; its Nth call fails. Whatever fails, what was
committed stays, no row is without its progress, and when the disk is well again the index catches up.
"""

import errno
import sys

import apsw
import pytest

from memoryd import db
from memoryd.errors import MemorydError
from memoryd.index import Counts, Rebuild, Wanted, catch_up, live, schema
from tests.support.faulty import faulty
from tests.support.indexing import dumped, lines
from tests.support.logs import append, claude_call, claude_result, claude_user, dated, write

CALLS = (
    ("xWrite", "io"),
    ("xSync", "io"),
    ("xRead", "io"),
    ("xTruncate", "io"),
    ("xWrite", "full"),
    ("xRead", "short"),
)


LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sys.argv = ["memoryd.index"]
runpy.run_module("memoryd.index", run_name="__main__")
"""


@pytest.fixture
def faults():
    with faulty() as faults:
        yield faults


def owner(*words):
    return dated(*(claude_user(word) for word in words))


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "for-ever"])
@pytest.mark.parametrize(("call", "kind"), CALLS)
def test_whatever_call_fails_no_record_is_lost_and_none_is_there_twice_s01_s03(
    world, faults, monkeypatch, call, kind, sticky
):
    clock = [1000.0]
    monkeypatch.setattr(live, "monotonic", lambda: clock[0])
    log = write(world.logs / "a.jsonl", *owner("zero"))
    with world.index() as index:
        catch_up(index)
        for number in range(1, 12):
            before = dumped(index)
            append(log, *owner(*(f"word{number} " * 300 for _ in range(20))))
            faults.arm(call, number, sticky=sticky, kind=kind)
            catch_up(index)
            if faults.fired and call == "xWrite" and sticky:
                assert index.fault == ("disk_full" if kind == "full" else "io_error")
                reader = db.reader(index.settings.path)  # which is served meanwhile
                assert lines(reader) == before
                reader.close()
            faults.rest()
            if faults.fired:
                assert index.ready, index.why
                assert dumped(index)[: len(before)] == before
            clock[0] += 100.0
            catch_up(index)
            clock[0] += 100.0
            catch_up(index)
            assert index.status().fault == ""
            assert len(dumped(index)) == 1 + 20 * number
        schema.check_health(index._following.connection, 4, words=True)
        assert dumped(index) == world.fresh()


def test_a_disk_that_fails_in_the_rollback_as_well_is_an_io_error_s03(world, faults, monkeypatch):
    """Found by chaos: reading the logs' relations again after a rollback let SQLite's own error out."""
    clock = [1000.0]
    monkeypatch.setattr(live, "monotonic", lambda: clock[0])
    log = write(world.logs / "a.jsonl", *owner("zero"))
    with world.index() as index:
        catch_up(index)
        met = set()
        for number in range(1, 40):
            append(log, *owner(f"word{number}"))
            faults.arm("xRead", number, sticky=True)
            catch_up(index)
            faults.rest()
            met.add(index.status().fault)
            for _ in range(2):
                clock[0] += 100.0
                catch_up(index)
            assert index.status().fault == ""
            assert len(dumped(index)) == 1 + number
        assert "io_error" in met


@pytest.mark.parametrize("read_first", [False, True], ids=["swept", "hinted"])
def test_a_log_renamed_over_another_is_followed_and_no_label_is_lost_t20(world, read_first):
    """Found by chaos: two rows for one log; the look at all folders failed at each try, for good."""
    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    old = write(world.logs / "old.jsonl", *web, *owner("tainted"))
    new = write(world.logs / "new.jsonl", *owner("plain"))
    with world.index() as index:
        catch_up(index)
        new.rename(old)
        if read_first:
            index.changed([old])
            index.catch_up()
        catch_up(index)
        assert index.status().fault == ""
        assert dumped(index) == world.fresh()
        (line,) = dumped(index)
        assert b"plain" in line
        assert b'"untrusted":true' in line


def test_a_hint_of_a_renamed_log_brings_nothing_back_that_is_forgotten_t20(world):
    """Found by chaos: read under its new name before anybody looked where the old one was."""
    old = write(world.logs / "old.jsonl", *owner("one", "two"))
    with world.index() as index:
        catch_up(index)
        index.forget(Wanted(session="s1"), dry=False)
        new = old.rename(old.with_name("new.jsonl"))
        index.changed([new])
        while index.catch_up()[1]:
            pass
        assert dumped(index) == []
        assert [known.place.log for known in index.logs()] == ["new.jsonl"]


def test_what_a_failed_look_would_have_found_is_not_taken_for_read(world, monkeypatch):
    """Found by chaos: after a failed look `sync` answered that all was read."""
    from memoryd.index.following import Following

    clock = [1000.0]
    monkeypatch.setattr(live, "monotonic", lambda: clock[0])
    with world.index() as index:
        catch_up(index)
        write(world.logs / "a.jsonl", *owner("one"))
        sweep = Following.sweep

        def fails(following):
            raise db.wrong(apsw.ConstraintError("a fault of ours"))

        monkeypatch.setattr(Following, "sweep", fails)
        index.sweep()
        monkeypatch.setattr(Following, "sweep", sweep)
        assert index.catch_up() == (Counts(), False)
        assert index.status().fault == "internal"
        clock[0] += 100.0
        while index.catch_up()[1]:
            pass
        assert index.status().fault == ""
        assert len(dumped(index)) == 1


def test_a_reader_that_cannot_be_closed_is_no_fault(world, monkeypatch):
    """Found by chaos: the look at what was copied over the index let an error of `close` out."""
    write(world.logs / "a.jsonl", *owner("zero"))
    with world.index() as index:
        catch_up(index)
        reader = db.reader

        class Stuck:
            def __init__(self, connection):
                self.connection = connection

            def __getattr__(self, name):
                return getattr(self.connection, name)

            def close(self):
                self.connection.close()
                raise apsw.IOError("no")

        monkeypatch.setattr(db, "reader", lambda path: Stuck(reader(path)))
        index.sweep()
        assert index.status().fault == ""


def test_every_error_of_a_disk_says_what_to_do():
    for error in (apsw.IOError(), apsw.FullError(), apsw.CantOpenError(), apsw.CorruptError()):
        assert db.wrong(error).remedy


def test_a_quota_met_while_rebuilding_keeps_the_old_index_r02_s02(world):
    write(world.logs / "a.jsonl", *owner(*(f"word{n} " * 500 for n in range(200))))
    with world.index() as index:
        catch_up(index)
        before = index.generation
        limited = (sys.executable, "-c", LIMITED)
        with pytest.raises(MemorydError) as caught:
            Rebuild(index.settings, limited).run()
        assert caught.value.code in {"io_error", "disk_full"}
        assert index.generation == before
        assert [path.name for path in index.settings.path.parent.glob("*rebuild*")] == []


def test_a_floor_that_cannot_be_written_holds_its_log_back(world, monkeypatch):
    from memoryd.index import floors
    from tests.support.logs import claude_call, claude_result

    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    log = write(world.logs / "a.jsonl", *web, *owner("tainted"))
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        write(log, *owner("laundered"))
        real = floors.append

        def append_(*args):
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(floors, "append", append_)
        catch_up(index)
        assert dumped(index) == before
        assert index.status().faults == {"a.jsonl": "ENOSPC"}
        monkeypatch.setattr(floors, "append", real)
        index._following.pending.faults.clear()
        catch_up(index)
        assert dumped(index) == world.fresh()
        assert b'"untrusted":true' in dumped(index)[0]


def test_a_vanished_log_that_cannot_be_kept_keeps_its_rows(world, monkeypatch):
    from memoryd.index import vanished

    log = write(world.logs / "a.jsonl", *owner("one"))
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        log.unlink()

        def write_(*args):
            raise OSError(errno.ENOSPC, "full")

        real = vanished.write
        monkeypatch.setattr(vanished, "write", write_)
        catch_up(index)
        assert dumped(index) == before
        assert index.status().fault == "io_error"
        assert index.status().sums.gone == 0
        monkeypatch.setattr(vanished, "write", real)
        index._retry_at = 0.0
        catch_up(index)
        assert index.status().sums.gone == 1
        assert dumped(index) == before == world.fresh()


def test_a_log_that_trips_us_up_waits_is_named_and_delays_no_other(world, monkeypatch):
    from memoryd.index import writer

    write(world.logs / "a.jsonl", *owner("poison"))
    write(world.logs / "b.jsonl", *owner("two"))
    real = writer.index_records

    def index_records(writer_, turn, records):
        if turn.log.place.log == "a.jsonl":
            raise KeyError("a fault of ours")
        real(writer_, turn, records)

    monkeypatch.setattr(writer, "index_records", index_records)
    with world.index() as index:
        catch_up(index)
        assert b"two" in dumped(index)[0]
        assert index.status().faults == {"a.jsonl": "KeyError"}
        monkeypatch.undo()
        index._following.pending.faults.clear()
        catch_up(index)
        assert dumped(index) == world.fresh()


def test_what_is_excluded_or_too_old_leaves_no_byte_in_a_new_index(world):
    toml = '[index]\nkeep_days = 30\n[[source]]\npath = "{logs}"\nexclude = ["*/diary"]\n'
    hidden = [f"quince{n} " * 60 for n in range(50)]
    late = [claude_user(word, cwd="/home/ada/diary") for word in hidden]
    for line in late[:20]:
        del line["cwd"]  # the project is told only when much is written already
    write(world.logs / "a.jsonl", *dated(*late))
    write(world.logs / "old.jsonl", *owner(*(f"medlar{n} " * 60 for n in range(50))))
    settings = world.settings(toml)
    from memoryd.index import building, opening

    settings.path.parent.mkdir(mode=0o700)
    temp = opening.new_temp(settings.path)
    building.build(temp, settings)
    content = temp.read_bytes()
    assert b"quince" not in content
    assert b"medlar" not in content
