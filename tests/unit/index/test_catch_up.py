"""Reading logs as they grow, shrink, are rewritten, move, fail and come back (reliability table, T rows)."""

import errno
import json
import os
import socket

import pytest

from memoryd import points
from memoryd.index import Budget, Counts, catch_up, following, identity, sweeping, writer
from memoryd.sources import discover
from tests.support.indexing import World, dumped
from tests.support.logs import (
    append,
    claude_assistant,
    claude_call,
    claude_result,
    claude_user,
    dated,
    encoded,
    native_assistant,
    native_call,
    native_result,
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


def test_each_record_is_indexed_with_its_place_time_and_label(world, log):
    write(log, *dated(
        claude_user("please list"),
        claude_call("Bash", {"command": "ls -l", "timeout": 5}, "t1"),
        claude_result("t1", "a.py"),
        claude_assistant("there is a.py"),
    ))  # fmt: skip
    lines = world.caught_up()
    assert told(lines, "n", "block", "kind", "tool", "class", "untrusted", "text") == [
        (0, 0, "owner", None, "public", False, "please list"),
        (1, 0, "tool_call", "Bash", "public", False, "Bash\nls -l\n5"),
        (3, 0, "assistant", None, "internal", False, "there is a.py"),
    ]
    assert told(lines, "source", "log", "session", "ts")[0] == (
        "claude-code", "a.jsonl", "s1", "2026-01-02T03:04:05.000Z",
    )  # fmt: skip


def test_the_dump_is_sorted_canonical_json(world):
    write(world.logs / "b.jsonl", *owner("zwei"))
    write(world.logs / "a.jsonl", *owner("eins", "ünï"))
    lines = world.caught_up()
    assert texts(lines) == ["eins", "ünï", "zwei"]
    for line in lines:
        canonical = json.dumps(
            json.loads(line), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        assert line == canonical.encode() + b"\n"


def test_only_what_is_new_is_read(world, log):
    write(log, *owner("one", "two"))
    with world.index() as index:
        assert catch_up(index) == Counts(2, 2)
        assert catch_up(index) == Counts()
        append(log, *owner("three"))
        assert catch_up(index) == Counts(1, 1)
        assert dumped(index) == world.fresh()


def test_a_hint_is_enough_for_a_log_that_is_known_and_for_a_new_one(world, log):
    write(log, *owner("one"))
    with world.index() as index:
        catch_up(index)
        append(log, *owner("two"))
        new = write(world.logs / "deep" / "b.jsonl", *owner("three"))
        index.changed([log, new, world.logs / "nothing.jsonl", world.user / "elsewhere.jsonl"])
        assert index.wait() == 0.0
        assert index.catch_up() == (Counts(2, 2), False)
        assert texts(dumped(index)) == ["one", "two", "three"]


def test_a_line_without_its_newline_is_read_when_it_is_whole_t01(world, log):
    line = encoded(*owner("whole"))
    write(log, *owner("first"))
    with world.index() as index:
        catch_up(index)
        with log.open("ab") as file:
            file.write(line[:40])
        assert catch_up(index) == Counts()
        with log.open("ab") as file:
            file.write(line[40:])
        assert catch_up(index) == Counts(1, 1)
        assert dumped(index) == world.fresh()


def test_a_line_cut_by_a_restart_is_indexed_once_t02(world, log):
    line = encoded(*owner("whole"))
    log.write_bytes(encoded(*owner("first")) + line[:40])
    assert len(world.caught_up()) == 1
    with log.open("ab") as file:
        file.write(line[40:])
    assert texts(world.caught_up()) == ["first", "whole"]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b'{"a":"x{"type":"user"}', id="t03-glued-to-a-half"),
        pytest.param(b"\0" * 700, id="t04-nul-block"),
        pytest.param(b'{"type":"user","x":"\xff"}', id="t07-bad-utf8"),
        pytest.param(b"[1,2]", id="t12-no-object"),
        pytest.param(b'{"type":' + b"[" * 10_000, id="t11-deep"),
    ],
)
def test_a_bad_line_is_counted_and_taints_what_follows_t03_t04_t07_t11_t12(world, log, bad):
    write(log, *owner("before"), bad, *owner("after"))
    with world.index('[index]\nmax_class = "secret"\n' + world.toml) as index:
        counts = catch_up(index)
        assert counts.unreadable == 1
        assert told(dumped(index), "class", "untrusted", "text") == [
            ("public", False, "before"),
            ("secret", True, "after"),
        ]
        assert index.status().sums.unreadable == 1


def test_separators_of_other_alphabets_do_not_cut_a_line_t05(world, log):
    write(log, *owner("one\u2028two\u2029three\x85four"))
    assert texts(world.caught_up()) == ["one\u2028two\u2029three\x85four"]


def test_carriage_returns_and_empty_lines_count_for_nothing_t06(world, log):
    one, two = (encoded(line)[:-1] for line in owner("one", "two"))
    log.write_bytes(one + b"\r\n\r\n   \n" + two + b"\r\n")
    assert told(world.caught_up(), "n", "text") == [(0, "one"), (1, "two")]


def test_a_byte_order_mark_is_no_bad_line_t08(world, log):
    log.write_bytes(b"\xef\xbb\xbf" + encoded(*owner("one")))
    assert told(world.caught_up(), "class", "text") == [("public", "one")]


def test_half_a_surrogate_pair_stops_nothing_t09(world, log):
    line = encoded(*owner("xx"))[:-1].replace(b'"xx"', b'"a\\ud800b"')
    write(log, line, *owner("after"))
    assert texts(world.caught_up()) == ["a\ufffdb", "after"]


def test_half_a_surrogate_pair_inside_arguments_stops_nothing_t09(world, log):
    from memoryd.index.rows import storable

    assert storable("a\ud800b\U0001f600") == "a\ufffdb\U0001f600"


def test_a_line_that_is_too_long_is_passed_and_its_flag_survives_a_restart_t13_t14(
    world, log, monkeypatch
):
    monkeypatch.setattr("memoryd.sources.lines.LINE_LIMIT", 4096)
    log.write_bytes(encoded(*owner("before")) + b'{"x":"' + b"y" * 3_000_000)
    toml = '[index]\nmax_class = "secret"\n' + world.toml
    with world.index(toml) as index:
        counts = catch_up(index)
        assert counts.unreadable == 1
        following_ = index._following
        assert following_ is not None
        assert following_.connection.execute("SELECT discarding FROM log").get == 1
    with log.open("ab") as file:
        file.write(b'zz"}\n' + encoded(*owner("after")))
    assert told(world.caught_up(toml), "class", "text") == [
        ("public", "before"),
        ("secret", "after"),
    ]
    assert world.caught_up(toml) == world.fresh(toml)


def test_a_native_result_without_a_class_is_the_top_class_t15(world):
    result = native_result("c1", "x")
    del result["class"]
    write(
        world.sessions / "n.jsonl",
        *dated(
            native_session("n"), native_call("Look", {}, "c1"), result, native_assistant("said")
        ),
    )
    lines = world.caught_up('[index]\nmax_class = "secret"\n')
    assert told(lines, "class", "untrusted")[-1] == ("secret", False)


def test_a_native_result_of_an_unknown_class_is_the_top_class_t16(world):
    write(
        world.sessions / "n.jsonl",
        *dated(
            native_session("n"),
            native_call("Look", {}, "c1"),
            native_result("c1", "x", "no-such-class"),
            native_assistant("said"),
        ),
    )
    lines = world.caught_up('[index]\nmax_class = "secret"\n')
    assert told(lines, "class")[-1] == ("secret",)


def test_an_empty_log_is_nothing_until_something_is_in_it_t25(world, log):
    log.touch()
    with world.index() as index:
        assert catch_up(index) == Counts()
        append(log, *owner("one"))
        assert catch_up(index) == Counts(1, 1)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "socket"])
def test_what_only_looks_like_a_log_is_passed_t26(world, kind):
    path = world.logs / "x.jsonl"
    if kind == "link":
        path.symlink_to(write(world.user / "secret.jsonl", *owner("outside")))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    else:
        path.mkdir()
    with world.index() as index:
        index.changed([path])
        assert catch_up(index) == Counts()
        why = {"link": "a symbolic link", "folder": None}.get(kind, "not a regular file")
        assert index.status().skipped == ({str(path): why} if why else {})


def _failing(path, number):
    """Return an `open_log` that fails for one path until told otherwise."""
    real, state = discover.open_log, {"failing": True}

    def open_log(file):
        if state["failing"] and file.path == path:
            raise OSError(number, os.strerror(number), str(path))
        return real(file)

    return open_log, state


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO], ids=["t27-eacces", "t28-eio"])
def test_a_log_that_cannot_be_read_waits_is_named_and_delays_no_other_t27_t28(
    world, log, monkeypatch, number
):
    clock = [1000.0]
    monkeypatch.setattr(following, "monotonic", lambda: clock[0])
    open_log, state = _failing(log, number)
    monkeypatch.setattr(discover, "open_log", open_log)
    write(log, *owner("one"))
    write(world.logs / "b.jsonl", *owner("two"))
    with world.index() as index:
        catch_up(index)
        assert texts(dumped(index)) == ["two"]
        assert index.status().faults == {"a.jsonl": errno.errorcode[number]}
        assert index.wait() == 1.0
        clock[0] += 1.0
        assert index.catch_up() == (Counts(), False)
        assert index.wait() == 2.0  # doubled
        state["failing"] = False
        clock[0] += 2.0
        assert index.catch_up()[0] == Counts(1, 1)
        assert index.status().faults == {}
        assert dumped(index) == world.fresh()


def test_a_log_that_breaks_off_in_its_turn_takes_only_that_turn_back_t28(world, log, monkeypatch):
    write(log, *owner("one"))
    write(world.logs / "b.jsonl", *owner("two"))
    real = writer.set_progress
    broken = [True]

    def set_progress(writer_, turn, seen, handle):
        if broken[0] and turn.log.place.log == "b.jsonl":
            raise OSError(errno.EIO, "broken")
        real(writer_, turn, seen, handle)

    monkeypatch.setattr(writer, "set_progress", set_progress)
    with world.index() as index:
        catch_up(index)
        assert texts(dumped(index)) == ["one"]
        assert index.status().faults == {"b.jsonl": "EIO"}
        broken[0] = False
        index._following.pending.faults.clear()
        catch_up(index)
        assert dumped(index) == world.fresh()


def test_a_log_that_is_unreadable_after_a_restart_keeps_its_rows_t27(world, log, monkeypatch):
    write(log, *owner("one"))
    before = world.caught_up()
    real = discover.open_below

    def open_below(root, name):
        if name == "a.jsonl":
            raise PermissionError(errno.EACCES, "no")
        return real(root, name)

    monkeypatch.setattr(discover, "open_below", open_below)
    assert world.caught_up() == before


def test_a_fast_log_does_not_starve_the_others_t29(world, log):
    write(log, *owner(*("x" * 100_000 for _ in range(30))))
    write(world.logs / "b.jsonl", *owner("quick"))
    with world.index() as index:
        index.sweep()
        budget = Budget(bytes=1 << 20, seconds=0.0)  # one turn a call
        index.catch_up(budget)
        index.catch_up(budget)
        assert "quick" in texts(dumped(index))
        assert index.status().lag_logs == 1
        assert index.status().lag_bytes > 1_000_000
        while index.catch_up(budget)[1]:
            pass
        assert index.status().lag_bytes == 0
        assert dumped(index) == world.fresh()


@pytest.mark.parametrize("newline", [True, False])
def test_what_is_left_of_a_log_after_its_turn_is_read_by_the_next_start_p4(world, log, newline):
    """Nothing changes the file meanwhile, and it is an old one: only what is remembered of it can tell."""
    write(log, *owner(*("x" * 100_000 for _ in range(30)), "the last"))
    if not newline:
        log.write_bytes(log.read_bytes().removesuffix(b"\n"))
    an_hour_ago = log.stat().st_mtime - 3_600
    os.utime(log, (an_hour_ago, an_hour_ago))
    for _ in range(20):
        with world.index() as index:
            index.sweep()
            index.catch_up(Budget(bytes=1 << 20, seconds=0.0))  # one turn, then the process ends
    with world.index() as index:
        assert "the last" in texts(dumped(index))
        assert index.status().lag_logs == 0
        assert dumped(index) == world.fresh()


def test_times_in_the_future_order_nothing_t31(world, log):
    write(
        log, *dated(claude_user("late", timestamp="2999-01-01T00:00:00.000Z"), claude_user("soon"))
    )
    os.utime(log, (4_000_000_000, 4_000_000_000))
    assert texts(world.caught_up()) == ["late", "soon"]


def test_a_clock_that_goes_back_skips_nothing_t31(world, log, monkeypatch):
    write(log, *owner("one"))
    with world.index("[index]\nkeep_days = 3650\n" + world.toml) as index:
        catch_up(index)
        for module in (identity, sweeping):
            monkeypatch.setattr(module, "now_ms", lambda: 1_000)
        append(log, *owner("two"))
        os.utime(log, (1, 1))
        catch_up(index)
        assert texts(dumped(index)) == ["one", "two"]


@pytest.mark.parametrize("text", [True, False], ids=["with-text", "without"])
def test_a_type_that_nobody_knows_is_a_record_and_raises_if_it_brings_text_t12(world, log, text):
    unknown = {"type": "brand-new", "size": 7} | ({"payload": "words"} if text else {})
    write(log, *owner("before"), unknown, *owner("after"))
    toml = '[index]\nmax_class = "secret"\n' + world.toml
    assert told(world.caught_up(toml), "n", "class", "untrusted", "text") == [
        (0, "public", False, "before"),
        (2, "secret" if text else "public", text, "after"),
    ]


def test_the_label_is_one_of_the_log_not_of_the_session_t32(world):
    call = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    write(world.logs / "a.jsonl", *call, *owner("after"))
    write(world.logs / "b.jsonl", *owner("same session"))
    assert told(world.caught_up(), "log", "untrusted")[-2:] == [
        ("a.jsonl", True),
        ("b.jsonl", False),
    ]


def test_a_restart_between_a_result_and_what_follows_keeps_the_label_t34(world, log):
    write(log, *dated(
        claude_call("WebFetch", {"url": "http://x"}, "t1"), claude_call("Read", {"file_path": "/a"}, "t2")
    ))  # fmt: skip
    world.caught_up()
    append(log, *dated(claude_result("t1", "words")))
    world.caught_up()
    append(log, *dated(claude_assistant("after the first"), claude_result("t2", "x")))
    world.caught_up()
    append(log, *dated(claude_result("t1", "again"), claude_assistant("after a second answer")))
    lines = world.caught_up()
    assert told(lines, "class", "untrusted")[-2:] == [("public", True), ("internal", True)]
    assert lines == world.fresh()


def test_a_log_of_an_excluded_project_is_not_read(world, log):
    toml = '[[source]]\npath = "{logs}"\nexclude = ["*/private-*", "sub/*"]\n'
    write(log, *dated(claude_user("hidden", cwd="/home/ada/private-diary")))
    write(world.logs / "sub" / "b.jsonl", *owner("below an excluded path"))
    write(world.logs / "c.jsonl", *owner("shown"))
    with world.index(toml) as index:
        catch_up(index)
        assert texts(dumped(index)) == ["shown"]
        append(log, *dated(claude_user("hidden too", cwd="/home/ada/private-diary")))
        assert catch_up(index) == Counts()
        assert dumped(index) == world.fresh(toml)
    assert texts(world.caught_up()) == ["hidden", "hidden too", "shown", "below an excluded path"]
    assert texts(world.caught_up(toml)) == ["shown"]


def test_a_folder_that_is_no_source_any_more_takes_its_rows_along(world):
    both = '[[source]]\npath = "{logs}/one"\n[[source]]\npath = "{logs}/two"\n'
    one = '[[source]]\npath = "{logs}/one"\n'
    write(world.logs / "one" / "a.jsonl", *owner("x"))
    write(world.logs / "two" / "b.jsonl", *owner("y"))
    assert texts(world.caught_up(both)) == ["x", "y"]
    assert texts(world.caught_up(one)) == ["x"]
    assert texts(world.caught_up(both)) == ["x", "y"]


def test_a_missing_folder_is_told_and_loses_nothing_c09(world):
    toml = '[[source]]\npath = "{logs}/mount"\n'
    write(world.logs / "mount" / "a.jsonl", *owner("x"))
    with world.index(toml) as index:
        catch_up(index)
        (world.logs / "mount").rename(world.logs / "away")
        catch_up(index)
        assert texts(dumped(index)) == ["x"]
        assert index.status().missing == [str(world.logs / "mount")]
        (world.logs / "away").rename(world.logs / "mount")
        catch_up(index)
        assert index.status().missing == []
        assert len(dumped(index)) == 1


def test_a_folder_that_may_not_be_looked_at_is_told_and_loses_nothing_c09(world, log, monkeypatch):
    from pathlib import Path

    real = Path.stat

    def stat(self, **more):
        if self == world.logs:
            raise PermissionError(errno.EACCES, "no")
        return real(self, **more)

    write(log, *owner("x"))
    with world.index() as index:
        catch_up(index)
        monkeypatch.setattr(Path, "stat", stat)
        catch_up(index)
        assert len(dumped(index)) == 1


def test_status_says_how_many_rows_are_left_out_and_why(world, log):
    write(log, *dated(
        claude_user("seen"),
        claude_call("SomethingNew", {}, "t"),
        claude_result("t", "y"),
        claude_assistant("left out"),
        claude_assistant("left out too"),
    ))  # fmt: skip
    with world.index() as index:
        counts = catch_up(index)
        assert counts == Counts(records=5, indexed=2, left_out=2)
        sums = index.status().sums
        assert (sums.logs, sums.indexed, sums.left_out) == (1, 2, 2)
        assert dict(sums.why) == {"SomethingNew (no rule)": 2}


def test_the_label_of_a_caller_is_told_once_its_log_is_read_that_far(world, log):
    from memoryd.errors import Behind, NotFound

    web = dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "y"))
    write(log, *web)
    with world.index() as index:
        with pytest.raises(NotFound):
            index.label_of("a.jsonl", 0)
        catch_up(index)
        assert index.label_of("a.jsonl", 2) == (0, True)
        with pytest.raises(Behind):
            index.label_of("a.jsonl", 3)


def test_a_world_is_private_whatever_the_umask_v01(user_home):
    from tests.support.modes import too_wide

    before = os.umask(0)
    try:
        world = World(user_home)
        write(world.logs / "a.jsonl", *owner("x"))
        with world.index() as index:
            catch_up(index)
            (world.logs / "a.jsonl").write_bytes(b"")
            catch_up(index)
            (world.logs / "a.jsonl").unlink()
            catch_up(index)
            assert too_wide(world.state) == []
    finally:
        os.umask(before)
