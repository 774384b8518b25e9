"""The index on real disks that are full, limited, read-only or odd, and under other programs' hands (S and R rows)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from memoryd import db
from memoryd.index import Rebuild, catch_up, opening, swap
from memoryd.serve import telling
from tests.support.faulty import without_shared_memory
from tests.support.indexing import dumped, publish
from tests.support.logs import append, claude_user, dated, native_owner, native_session, write
from tests.support.mounts import ROOT, inside, needs_mounts


def owner(*words):
    return dated(*(claude_user(word) for word in words))


@pytest.fixture
def log(world):
    return write(world.logs / "a.jsonl", *owner("one", "two"))


def job(name, world):
    return (sys.executable, "-m", "tests.support.disks", name, str(world.user))


def told(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_mounts
def test_a_disk_that_fills_keeps_what_it_has_serves_it_and_goes_on_s01_r02(world):
    folder = world.settings().path.parent
    folder.mkdir(mode=0o700)
    mount = f"mount -t tmpfs -o size=1m,mode=700 tmpfs {folder}"
    assert told(inside(mount, job("fill", world))) == {
        "fault": "disk_full",
        "ready": True,
        "kept": True,
        "served": True,
        "rebuild": "disk_full",
        "left": [],
        "after": "",
        "rows": 1_700,
        "as_rebuilt": True,
    }


def test_a_limit_on_the_size_of_files_is_an_io_error_and_not_damage_s02(world):
    done = subprocess.run(
        job("quota", world), cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    seen = told(done)
    assert (seen["fault"], seen["ready"], seen["kept"], seen["served"]) == (
        "io_error",
        True,
        True,
        True,
    )
    assert seen["left"] == []
    assert (seen["after"], seen["rows"], seen["as_rebuilt"]) == ("", 1_700, True)


@needs_mounts
def test_on_a_read_only_disk_the_daemon_says_so_and_bxctl_reads_what_is_there_s09(world):
    write(world.sessions / "a.jsonl", *dated(native_session("a"), native_owner("quince")))
    env = {**os.environ, "HOME": str(world.user), "MEMORYD_HOME": str(world.state)}
    with world.index("") as index:
        catch_up(index)
    mount = f"mount --bind {world.state} {world.state}\nmount -o remount,bind,ro {world.state}"
    bxctl = str(Path(sys.executable).with_name("bxctl"))
    refused = inside(mount, [sys.executable, "-m", "memoryd"], env)
    assert refused.returncode == 74
    assert "Read-only file system" in refused.stderr
    assert "Traceback" not in refused.stderr
    (world.state / "key").write_bytes(b"k" * 32)
    asked = inside(mount, [bxctl, "memory", "search", "quince"], env)
    assert (asked.returncode, "quince" in asked.stdout) == (0, True), asked.stderr


def test_where_a_wal_cannot_be_had_all_is_as_elsewhere_and_waits_for_the_disk_s21(world, log):
    with without_shared_memory(), world.index() as index:
        assert index._following.connection.pragma("journal_mode") == "delete"
        assert index._following.connection.pragma("synchronous") == 2
        catch_up(index)
        append(log, *owner("three"))
        catch_up(index)
        before = index.generation
        publish(index, index.settings)
        assert index.generation != before
        append(log, *owner("four"))
        catch_up(index)
        assert (index.status().fault, len(dumped(index))) == ("", 4)
        assert dumped(index) == world.fresh()
        assert index.status().wal_bytes == 0


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_sidecar_that_somebody_removes_has_the_index_made_again_s12(world, log, suffix):
    with world.index() as index:
        catch_up(index)
        path = index.settings.path
        assert index.status().wal_bytes > 0
        path.with_name(path.name + suffix).unlink()
        append(log, *owner("three"))
        catch_up(index)
        assert (index.ready, index.why, index.fault) == (False, "damaged", "unavailable")
        publish(index, index.settings)
        assert dumped(index) == world.fresh()
        assert len(dumped(index)) == 3


def test_an_index_that_somebody_removes_with_all_its_files_is_begun_anew(world, log):
    with world.index() as index:
        catch_up(index)
        for part in swap.beside(index.settings.path):
            part.unlink(missing_ok=True)
        append(log, *owner("three"))
        catch_up(index)
        catch_up(index)
        assert index.ready
        assert dumped(index) == world.fresh()
        assert len(dumped(index)) == 3


def test_a_reader_that_never_ends_is_told_of_and_leaves_a_bounded_wal_behind_s10(
    world, log, monkeypatch
):
    monkeypatch.setattr(db, "WAL_MOST", 200_000)
    with world.index() as index:
        catch_up(index)
        holder = apsw.Connection(str(index.settings.path))
        holder.execute("BEGIN").execute("SELECT count(*) FROM log").fetchall()
        for number in range(40):
            append(log, *owner(*(f"word{number} {each} " * 200 for each in range(20))))
            catch_up(index)
        status = index.status()
        assert status.wal_bytes > 2 * db.WAL_MOST
        (fault,) = telling.faults(status, reads_missing=0, unwatched="")
        assert "holds on to an old state" in fault.what
        holder.close()
        for number in range(2):
            append(log, *owner(f"after it {number}"))
            catch_up(index)
        assert index.status().wal_bytes <= db.WAL_MOST
        assert telling.faults(index.status(), reads_missing=0, unwatched="") == []
        assert dumped(index) == world.fresh()


DESCRIPTORS = """
import pathlib, sys
sys.stdin.buffer.read()
held = [str(each.resolve()) for each in pathlib.Path("/proc/self/fd").iterdir()]
pathlib.Path(sys.argv[1]).write_text(repr(held))
"""


def test_what_is_started_beside_an_open_index_gets_no_descriptor_of_it_s16(world, log):
    with world.index() as index:
        catch_up(index)
        held = [each.resolve() for each in Path("/proc/self/fd").iterdir()]
        assert index.settings.path.resolve() in held
        seen = world.user / "seen"
        command = (sys.executable, "-c", DESCRIPTORS, str(seen))
        with pytest.raises(Exception, match="ended by itself"):
            Rebuild(index.settings, command).run()
    assert "pipe:" in seen.read_text()
    assert "memory.sqlite3" not in seen.read_text()


def test_nothing_of_ours_forks_or_hands_descriptors_on_s16():
    for folder in ("memoryd", "bxctl"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            for word in ("os.fork", "multiprocessing", "pass_fds", "close_fds", "set_inheritable"):
                assert word not in text, f"{path}: {word}"


def test_an_old_index_that_cannot_be_read_at_the_swap_is_set_aside_first_r17(world, log):
    settings = world.settings()
    with world.index() as index:
        catch_up(index)
    before = settings.path.read_bytes()
    with settings.path.open("r+b") as file:
        file.write(b"\xff" * 4_000)
    temp = settings.path.with_name("memory.sqlite3.rebuild-0a")
    temp.write_bytes(before)
    temp.chmod(0o600)
    swap.publish(temp, settings.path, None, swap.NoGate()).close()
    aside = settings.path.with_name("memory.sqlite3.corrupt-1")
    assert aside.read_bytes()[:4_000] == b"\xff" * 4_000
    assert world.caught_up() == world.fresh()


def test_a_new_index_is_always_made_beside_the_old_one_r18(world, log, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/dev/shm")
    settings = world.settings()
    with world.index() as index:
        catch_up(index)
        built = Rebuild(settings).run()
        temp = opening.new_temp(settings.path)
        assert temp.parent == settings.path.parent
        assert Path(built.temp).stat().st_dev == settings.path.stat().st_dev
        index.publish(built, swap.NoGate())
        assert dumped(index) == world.fresh()
        temp.unlink()
