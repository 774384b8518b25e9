"""Logs that are truncated, rewritten, renamed or replaced while they are followed (T17 to T24, T35)."""

import json
import os
import pathlib

import pytest

from memoryd import points
from memoryd.index import Budget, Counts, catch_up, identity
from tests.support.indexing import bump, dumped, publish
from tests.support.logs import (
    append,
    claude_call,
    claude_result,
    claude_user,
    codex_meta,
    codex_user,
    dated,
    encoded,
    native_owner,
    native_session,
    write,
)


def told(lines, *keys):
    """Return the values of `keys` of every dumped line."""
    return [tuple(json.loads(line)[key] for key in keys) for line in lines]


def texts(lines):
    return [json.loads(line)["text"] for line in lines]


def owner(*words, start=0):
    """Return owner lines of Claude Code, one a word."""
    return dated(*(claude_user(word) for word in words), start=start)


@pytest.fixture
def log(world):
    return world.logs / "a.jsonl"


@pytest.fixture(autouse=True)
def nobody_observes():
    yield
    points.observe(None)


def test_a_truncated_log_is_read_again_from_its_start_t17(world, log):
    write(log, *owner("one", "two", "three"))
    with world.index() as index:
        catch_up(index)
        write(log, *owner("other"))
        catch_up(index)
        assert texts(dumped(index)) == ["other"]
        assert dumped(index) == world.fresh()


def test_a_log_truncated_to_nothing_loses_its_rows_at_once_t17(world, log):
    write(log, *owner("one", "two"))
    with world.index() as index:
        catch_up(index)
        log.write_bytes(b"")
        catch_up(index)
        assert dumped(index) == []
        append(log, *owner("three"))
        catch_up(index)
        assert dumped(index) == world.fresh()


def test_a_log_truncated_and_grown_beyond_its_old_end_is_noticed_t18(world, log):
    write(log, *owner("one", "two"))
    with world.index() as index:
        catch_up(index)
        log.write_bytes(encoded(*owner(*(f"new {i}" for i in range(9)))))
        catch_up(index)
        assert texts(dumped(index))[0] == "new 0"
        assert dumped(index) == world.fresh()


@pytest.mark.parametrize("changed", ["head", "tail"])
def test_a_log_rewritten_at_one_end_only_is_noticed_t18(world, log, changed):
    lines = owner("h" * 2000, "middle", "t" * 600)
    write(log, *lines)
    with world.index() as index:
        catch_up(index)
        other = owner("H" * 2000, "middle", "T" * 600)
        new = [other[0], *lines[1:]] if changed == "head" else [*lines[:2], other[2]]
        write(log, *new, *owner("appended"))
        catch_up(index)
        assert dumped(index) == world.fresh()
        assert len(dumped(index)) == 4


def test_a_log_rewritten_between_its_first_reading_and_its_marks_is_noticed_t18(world, log):
    write(log, *owner("one", "two"))
    other = log.read_bytes().replace(b"one", b"ONE").replace(b"two", b"TWO")

    def rewrite(point):
        if point == "catch-up: rows added":
            points.observe(None)
            log.write_bytes(other)

    with world.index() as index:
        points.observe(rewrite)
        catch_up(index)
        assert texts(dumped(index)) == ["one", "two"]
        bump(log)
        catch_up(index)
        assert texts(dumped(index)) == ["ONE", "TWO"]
        assert dumped(index) == world.fresh()


def test_a_log_rewritten_within_the_grain_of_the_file_systems_clock_is_noticed_t18(
    world, log, monkeypatch
):
    write(log, *owner("one", "two"))
    tick = log.stat().st_mtime_ns
    monkeypatch.setattr(identity, "now_ms", lambda: tick // 1_000_000 + 3)
    with world.index() as index:
        catch_up(index)
        log.write_bytes(log.read_bytes().replace(b"two", b"TWO"))
        os.utime(log, ns=(tick, tick))
        index.changed([log])
        catch_up(index)
        assert texts(dumped(index)) == ["one", "TWO"]
        monkeypatch.setattr(identity, "now_ms", lambda: tick // 1_000_000 + 1_000)
        catch_up(index)
        log.write_bytes(b"read no more than it must be\n" * 20)
        os.utime(log, ns=(tick, tick))
        os.truncate(log, known_size := index.logs()[0].seen.size)
        assert log.stat().st_size == known_size
        os.utime(log, ns=(tick, tick))
        assert catch_up(index) == Counts()  # size and time are what they were, a second later


def test_a_log_copied_and_truncated_goes_on_under_its_name_and_the_copy_is_a_log_t19(world, log):
    write(log, *owner("one", "two"))
    with world.index() as index:
        catch_up(index)
        (world.logs / "a.1.jsonl").write_bytes(log.read_bytes())
        log.write_bytes(b"")
        append(log, *owner("three"))
        catch_up(index)
        assert told(dumped(index), "log", "text") == [
            ("a.1.jsonl", "one"),
            ("a.1.jsonl", "two"),
            ("a.jsonl", "three"),
        ]
        assert dumped(index) == world.fresh()


def test_a_log_that_was_renamed_keeps_its_rows_and_its_place_is_free_t20(world, log):
    write(log, *owner("one", "two"))
    with world.index() as index:
        catch_up(index)
        log.rename(world.logs / "a.1.jsonl")
        write(log, *owner("three"))
        assert catch_up(index).records == 1  # only the new file's
        assert dumped(index) == world.fresh()
        assert [known.place.log for known in index.logs()] == ["a.1.jsonl", "a.jsonl"]
        assert not list((world.state / "vanished").glob("*"))


def test_a_renamed_log_without_a_told_session_is_called_by_its_new_name_t20(world):
    old = write(world.sessions / "old.jsonl", *dated(native_owner("hello")))
    with world.index() as index:
        catch_up(index)
        old.rename(world.sessions / "new.jsonl")
        catch_up(index)
        assert told(dumped(index), "log", "session") == [("new.jsonl", "new")]
        assert dumped(index) == world.fresh()


def test_a_log_moved_to_another_root_is_read_there_and_not_kept_twice_t20(world):
    toml = '[[source]]\npath = "{logs}/one"\n[[source]]\npath = "{logs}/two"\n'
    old = write(world.logs / "one" / "a.jsonl", *owner("x", "y"))
    (world.logs / "two").mkdir()
    with world.index(toml) as index:
        catch_up(index)
        old.rename(world.logs / "two" / "a.jsonl")
        catch_up(index)
        assert dumped(index) == world.fresh(toml)
        assert len(dumped(index)) == 2
        assert not list((world.state / "vanished").glob("*"))


def test_a_new_file_with_the_old_inode_is_another_log_t21(world, log):
    write(log, *owner("one", "two"))
    with world.index() as index:
        catch_up(index)
        before = log.stat().st_ino
        log.unlink()
        write(log, *owner("three", "four", "five"))
        os.utime(log)
        catch_up(index)
        assert texts(dumped(index)) == ["three", "four", "five"]
        if log.stat().st_ino != before:
            pytest.skip("this file system gave another inode")


def test_an_edit_near_the_end_that_keeps_the_size_is_noticed_t23(world, log):
    write(log, *owner("one", "two"))
    with world.index() as index:
        catch_up(index)
        content = log.read_bytes()
        log.write_bytes(content.replace(b"two", b"TWO"))
        bump(log)
        catch_up(index)
        assert texts(dumped(index)) == ["one", "TWO"]


def test_two_logs_with_the_same_head_are_two_logs_t24(world):
    lines = dated(codex_meta("c1"), codex_user("x" * 2000), codex_user("same"))
    write(world.logs / "a.jsonl", *lines)
    write(world.logs / "b.jsonl", *lines, codex_user("more"))
    with world.index() as index:
        assert catch_up(index).indexed == 5
        append(world.logs / "a.jsonl", codex_user("later"))
        catch_up(index)
        assert dumped(index) == world.fresh()


def test_a_log_rewritten_without_its_high_result_keeps_its_label_t35(world, log):
    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    write(log, *web, *owner("tainted"))
    with world.index() as index:
        catch_up(index)
        write(log, *owner("laundered", "words"))
        catch_up(index)
        assert told(dumped(index), "untrusted", "text") == [(True, "laundered"), (True, "words")]
        assert dumped(index) == world.fresh()
    floor = json.loads(world.overrides)
    assert floor.pop("ts").endswith("Z")
    assert floor == {
        "kind": "floor",
        "source": "claude-code",
        "root": str(world.logs),
        "log": "a.jsonl",
        "class": "public",
        "untrusted": True,
        "why": "the log was rewritten",
    }
    assert pathlib.Path(world.state / "overrides.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_log_rewritten_with_its_high_result_needs_no_floor_t35(world, log):
    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    write(log, *web, *owner("tainted"))
    with world.index() as index:
        catch_up(index)
        write(log, *owner("first"), *web, *owner("tainted"))
        catch_up(index)
        assert told(dumped(index), "untrusted", "text")[0] == (False, "first")
        assert dumped(index) == world.fresh()
    assert world.overrides == b""


def test_a_log_rewritten_twice_while_it_is_read_again_still_owes_its_label_t35(world, log):
    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    write(log, *web, *owner("tainted"))
    with world.index() as index:
        catch_up(index)
        write(log, *owner(*("w" * 100_000 for _ in range(30))), *web)
        index.sweep()
        index.catch_up(Budget(bytes=1 << 20, seconds=0.0))
        assert not json.loads(dumped(index)[0])["untrusted"]
        write(log, *owner("laundered"))
        catch_up(index)
        assert told(dumped(index), "untrusted", "text") == [(True, "laundered")]
        assert dumped(index) == world.fresh()


def test_a_log_with_a_floor_keeps_it_under_its_new_name_t35(world, log):
    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    write(log, *web)
    with world.index() as index:
        catch_up(index)
        write(log, *owner("laundered"))
        catch_up(index)
        log.rename(world.logs / "b.jsonl")
        catch_up(index)
        assert told(dumped(index), "log", "untrusted") == [("b.jsonl", True)]
        assert dumped(index) == world.fresh()


def test_a_log_rewritten_in_another_format_keeps_its_label_t35(world, log):
    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    write(log, *web)
    with world.index() as index:
        catch_up(index)
        log.unlink()
        write(log, *dated(native_session("n"), native_owner("laundered")))
        catch_up(index)
        assert told(dumped(index), "source", "untrusted") == [("native", True)]
        assert dumped(index) == world.fresh()


def test_an_edit_in_the_middle_that_keeps_size_and_both_ends_is_seen_by_a_rebuild_t23(world, log):
    write(log, *owner("h" * 2000, "middle", "t" * 600))
    with world.index() as index:
        catch_up(index)
        log.write_bytes(log.read_bytes().replace(b"middle", b"MIDDLE"))
        bump(log)
        catch_up(index)
        assert texts(dumped(index))[1] == "middle"  # neither end, nor the size, was touched
        publish(index, index.settings)
        assert texts(dumped(index))[1] == "MIDDLE"
        assert dumped(index) == world.fresh()
