"""Learning from what the index reads: once, in order, whatever comes between."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from memoryd import db
from memoryd.errors import DiskFull
from memoryd.index.choosing import Gone
from memoryd.index.forgetting import Erased
from memoryd.index.heard import Told
from memoryd.index.retelling import again
from memoryd.index.tombs import Tomb
from memoryd.labels import Label
from memoryd.lessons import forget, ledger, retention
from memoryd.lessons.plan import Ask
from memoryd.lessons.reader import Reader
from memoryd.serve import learning, together
from tests.support.classroom import START, Classroom, Script

DAY = 86_400_000


def loop(session: str = "s1") -> Script:
    """A failure, an edit, the fix; hours later the same again, and the end."""
    script = Script(session).owner("the build fails").fail().edit().good().owner("thanks")
    script.later(3 * 3_600_000).owner("again").fail().edit("src/b.ts").good()
    return script.end()


@pytest.fixture
def room(user_home: Path):
    with Classroom(user_home) as made:
        yield made


def test_a_failure_becomes_a_lesson_and_its_fix_a_pattern(room: Classroom):
    room.write("a.jsonl", loop())
    room.learn()
    assert room.rows("SELECT type, origin, evidence, recurrence FROM lesson ORDER BY row") == [
        ("error", "reflector", 2, 0),
        ("pattern", "causal", 2, 0),
    ]
    assert room.rows("SELECT ended FROM session") == [(1,)]


@pytest.mark.parametrize("step", [1, 3])
def test_backlog_and_live_give_the_same_rows(tmp_path: Path, step: int):
    scripts = {"a.jsonl": loop(), "b.jsonl": loop("s2")}
    told = []
    for live in (False, True):
        home = tmp_path / "home"  # one path: the names of logs and lessons come of it
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        with Classroom(home) as room:
            for name, script in scripts.items():
                size = len(script.lines)
                for upto in range(step, size + step, step) if live else (size,):
                    room.write(name, script, upto=0) if upto == step else None
                    room.append(name, script, upto - step if live else 0, min(upto, size))
                    room.learn()
            room.learn(START + DAY)
            told.append(room.told())
    for name, rows in told[0].items():
        assert told[1][name] == rows, name


def test_nothing_is_learned_twice_when_a_kill_comes_between_index_and_lessons(tmp_path: Path):
    script, told = loop(), []
    size = len(script.lines)
    for killed in (False, True):
        home = tmp_path / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        with Classroom(home) as room:
            room.write("a.jsonl", script, upto=0 if killed else size)
            for upto in range(1, size + 1) if killed else ():
                room.append("a.jsonl", script, upto - 1, upto)
                room.read()
                if upto % 2:
                    room.study()  # else: committed by the index, and lost on the way
                room.again()
            room.learn(START + DAY)
            told.append(room.told())
    assert told[1] == told[0]


def test_a_new_database_learns_from_an_index_that_is_there(room: Classroom):
    room.write("a.jsonl", loop())
    room.learn(START + DAY)
    before = room.told()
    room.close()
    room.path.unlink()
    room.open()
    assert room.rows("SELECT count(*) FROM call") == [(0,)]
    room.learn(START + DAY)
    assert room.told() == before


def test_what_is_read_again_has_the_labels_that_the_index_gave(room: Classroom):
    script = (
        Script("s1").fail(cls="private").fail("make x", text="x.c:1: error: no", untrusted=True)
    )
    room.write("a.jsonl", script)
    room.read()
    heard = [one for told in room.index.take_told() for one in told.heard]
    told = [one for one in room.learner._queue if isinstance(one, Told)]
    heard = [one for each in told for one in each.heard]
    ((key, known),) = room.index.known().items()
    twice = [one for each in again(room.learner.settings, key, known) for one in each.heard]
    assert twice == heard
    assert twice[-1].answers[-1][4] == known.label
    assert known.label.level == 2


def test_a_lesson_has_the_label_that_includes_the_result_that_taught_it(room: Classroom):
    room.write("a.jsonl", Script("s1").fail(cls="private", untrusted=True))
    room.learn()
    assert room.rows("SELECT level, untrusted FROM lesson") == [(2, 1)]


def test_a_log_that_moves_is_not_learned_from_again(room: Classroom):
    script = loop()
    room.write("a.jsonl", script)
    room.learn()
    before = room.told()
    (room.world.sessions / "deep").mkdir()
    (room.world.sessions / "a.jsonl").rename(room.world.sessions / "deep" / "b.jsonl")
    room.learn()
    after = room.told()
    assert len(after["call"]) == len(before["call"])
    assert len(after["lesson"]) == len(before["lesson"])
    (name,) = {row[0] for row in after["call"]}
    assert name == f"{next(iter(room.index.known())):012x}"
    assert all(row[10].startswith(name) for row in after["lesson"] if row[1] == "error")
    assert [row[0] for row in after["progress"]] == [name]


def test_a_copy_of_a_log_that_is_still_there_takes_nothing_over(room: Classroom):
    room.write("a.jsonl", loop())
    room.write("b.jsonl", loop())
    room.learn()
    assert len({row[0] for row in room.told()["call"]}) == 2


def test_a_rewritten_log_teaches_what_is_new_in_it(room: Classroom):
    script = Script("s1").fail().edit()
    room.write("a.jsonl", script)
    room.learn()
    other = Script("s1").fail().fail("cargo build", text="error[E0433]: failed to resolve")
    path = room.world.sessions / "a.jsonl"
    path.unlink()
    room.write("a.jsonl", other)
    os.utime(path, ns=(1, 1))
    room.learn()
    assert room.rows("SELECT code FROM lesson ORDER BY row") == [("TS2304",), ("E0433",)]
    assert [name[12:] for (name,) in room.rows("SELECT DISTINCT log FROM call ORDER BY log")] == [
        "",
        ".1",
    ]
    assert len(room.rows("SELECT * FROM call WHERE ok = 0")) == 2


def test_a_log_rewritten_while_nobody_looked_is_known_by_its_last_call(room: Classroom):
    room.write("a.jsonl", Script("s1").fail())
    room.learn()
    room.close()
    (room.world.state / "index" / "memory.sqlite3").unlink()
    fresh = (
        Script("s1").fail("cargo build", text="error[E0433]: failed to resolve").edit().good("ls")
    )
    room.write("a.jsonl", fresh)
    room.open()
    room.learn()
    assert [code for (code,) in room.rows("SELECT code FROM lesson ORDER BY row")] == [
        "TS2304",
        "E0433",
    ]


def test_what_is_dropped_for_want_of_room_is_learned_once_the_rest_is(room: Classroom, monkeypatch):
    monkeypatch.setattr(learning, "MOST_HELD", 0)
    room.write("a.jsonl", loop())
    room.read()
    assert room.learner.step()
    assert room.rows("SELECT count(*) FROM call") == [(0,)]
    room.study()
    assert room.rows("SELECT count(*) FROM call") == [(6,)]
    assert not room.learner.busy


def test_a_full_disk_takes_a_batch_back_and_the_next_look_finds_it(room: Classroom, monkeypatch):
    room.write("a.jsonl", loop())
    room.read()

    def full(*_: object) -> None:
        raise DiskFull("no room left on the device")

    with monkeypatch.context() as patched:
        patched.setattr(together, "save", full)
        with pytest.raises(DiskFull):
            room.study()
    assert room.rows("SELECT count(*) FROM call") == [(0,)]
    room.learn()
    assert room.rows("SELECT count(*) FROM call") == [(6,)]


def test_a_log_that_trips_us_up_keeps_no_other_from_being_learned(room: Classroom, monkeypatch):
    room.write("a.jsonl", Script("bad").fail())
    room.write("b.jsonl", Script("good").fail())
    write = together.write

    def stumble(connection, seens, found, **how):
        if any(seen.session == "bad" for seen in seens):
            raise KeyError("ours")
        return write(connection, seens, found, **how)

    monkeypatch.setattr(together, "write", stumble)
    room.learn()
    assert room.rows("SELECT session FROM call") == [("good",)]


def test_batches_that_were_taken_back_with_a_bad_one_are_learned_from_alone(room, monkeypatch):
    for name in ("a", "bad", "c"):
        room.write(f"{name}.jsonl", Script(name).fail())
    write = together.write

    def stumble(connection, seens, found, **how):
        if any(seen.session == "bad" for seen in seens):
            raise KeyError("ours")
        return write(connection, seens, found, **how)

    monkeypatch.setattr(together, "write", stumble)
    room.read()
    room.study()
    assert room.rows("SELECT session FROM call ORDER BY session") == [("a",), ("c",)]
    assert room.learner.held == 0


def test_batches_that_wait_are_learned_from_in_one_transaction(room: Classroom):
    for name in ("a", "b", "c"):
        room.write(f"{name}.jsonl", Script(name).fail())
    room.read()
    assert not room.learner.step()
    assert room.rows("SELECT session FROM call ORDER BY session") == [("a",), ("b",), ("c",)]


def test_a_tool_that_only_looks_keeps_no_summary_of_what_went_well(room: Classroom):
    script = (
        Script("s1").good("src/a.ts", tool="read").fail("src/b.ts", "no such file", tool="read")
    )
    room.write("a.jsonl", script.good("src/b.ts", tool="read").edit().fail("npm test").end())
    room.learn()
    assert room.rows("SELECT tool, ok, summary FROM call ORDER BY n") == [
        ("read", 1, ""),
        ("read", 0, "src/b.ts"),
        ("read", 1, ""),
        ("edit", 1, "src/main.ts"),
        ("bash", 0, "npm test"),
    ]
    assert room.rows("SELECT args FROM fix") == [("trying again: read `src/b.ts` went well",)]


def test_a_session_rests_when_it_has_been_quiet_and_only_then(room: Classroom):
    room.write("a.jsonl", Script("s1").fail().edit().good())
    path = room.world.sessions / "a.jsonl"
    written = START + 7 * DAY
    os.utime(path, ns=(written * 1_000_000, written * 1_000_000))
    room.learn()
    wait = room.learner.due(written + 100_000)
    assert wait == pytest.approx(800)
    assert room.rows("SELECT idle_at FROM session") == [(None,)]
    assert room.learner.due(written + 900_000) is None
    last, idle = room.rows("SELECT last_at, idle_at FROM session")[0]
    assert idle - last == 900_000
    assert room.rows("SELECT count(*) FROM lesson WHERE type = 'pattern'") == [(1,)]


def test_an_excluded_project_is_forgotten(user_home: Path):
    with Classroom(user_home) as room:
        script = Script("s1", project="/w/private").fail()
        room.write("a.jsonl", script)
        room.learn()
        assert room.rows("SELECT count(*) FROM lesson") == [(1,)]
        (key,) = room.index.known()
        told = Told(key, 0, 0, [], START, excluded=True)
        room.learner.hear([told])
        room.study()
        assert room.rows("SELECT count(*) FROM lesson") == [(0,)]
        assert room.rows("SELECT count(*) FROM call") == [(0,)]


def test_forget_takes_a_lesson_with_all_that_stands_on_it(room: Classroom):
    room.write("a.jsonl", loop())
    room.write("b.jsonl", Script("s2", at=START + DAY).fail("make", text="make: *** no rule"))
    room.learn(START + 3 * DAY)
    lesson = room.rows("SELECT id FROM lesson ORDER BY row")[0][0]
    asked = Ask(query="build fails", session="s9", project="/w/app", now=START + 4 * DAY)
    told = ledger.block(room.learner.connection, Reader(3, owner=True), asked)
    assert told.shown
    key = next(k for k, known in room.index.known().items() if known.place.log == "a.jsonl")
    page = room.world.state / "retrospectives" / "s1.md"
    page.parent.mkdir(mode=0o700)
    page.write_text("npm run build")
    counts = forget.forget(room.learner.connection, f"{key:012x}", home=room.learner.settings.home)
    assert counts["calls"] == 6
    assert counts["lessons"] == 2
    assert room.rows("SELECT session FROM call") == [("s2",)]
    assert not page.exists()
    left = {
        table: room.rows(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("injection", "fix", "charge", "waiting")
    }
    assert left == dict.fromkeys(left, 0)
    assert room.rows("SELECT count(*) FROM lesson WHERE content LIKE '%make%'") == [(1,)]
    room.learn()
    assert (lesson,) not in room.rows("SELECT id FROM lesson")


def test_forget_of_some_records_leaves_the_others(room: Classroom):
    script = Script("s1").fail().fail("make", text="make: *** no rule to make target x")
    room.write("a.jsonl", script)
    room.learn()
    ((key, _),) = room.index.known().items()
    n = room.rows("SELECT min(n) FROM call")[0][0]
    covers = lambda at, block, ts: at == n  # noqa: E731 - one line says it
    assert forget.forget(room.learner.connection, f"{key:012x}", covers)["lessons"] == 1
    assert room.rows("SELECT tool, summary FROM call") == [("bash", "make")]


def test_forget_of_what_is_above_changes_nothing_below(room: Classroom):
    room.write("a.jsonl", loop())
    room.learn()
    seen = "SELECT id, type, content, fix_args, evidence FROM lesson WHERE level = 0 ORDER BY id"
    before = room.rows(seen)
    assert [each[4] for each in before] == [2, 2]
    above = Script("s2", at=START + 4 * 3_600_000).owner("hm").edit("/w/app/key", cls="private")
    above.fail(cls="private").edit("src/hidden.ts", cls="private").good(cls="private")
    room.write("b.jsonl", above.end())
    room.learn()
    assert room.rows("SELECT level, evidence FROM lesson WHERE level > 0") == [(2, 3)]
    key = next(k for k, known in room.index.known().items() if known.place.log == "b.jsonl")
    told = forget.forget(room.learner.connection, f"{key:012x}")
    assert (told["lessons"], told["fixes"]) == (1, 1)
    assert room.rows(seen) == before


def test_forget_of_one_fix_leaves_the_other(room: Classroom):
    room.write("a.jsonl", Script("s1").fail().edit("src/one.ts").good().end())
    room.write("b.jsonl", Script("s2", at=START + DAY).fail().edit("src/two.ts").good().end())
    room.learn()
    key = next(k for k, known in room.index.known().items() if known.place.log == "b.jsonl")
    forget.forget(room.learner.connection, f"{key:012x}")
    assert room.rows("SELECT type, evidence, fix_args FROM lesson") == [
        ("error", 1, "edit `src/one.ts`; bash `npm run build` went well")
    ]


@pytest.mark.parametrize("part", [True, False])
def test_forget_finds_what_calls_taught_that_are_too_old_to_be_kept(room: Classroom, part: bool):
    room.write("a.jsonl", loop())
    room.learn()
    connection = room.learner.connection
    key = next(k for k, known in room.index.known().items() if known.place.log == "a.jsonl")
    page = room.world.state / "retrospectives" / "s1.md"
    page.parent.mkdir(mode=0o700)
    page.write_text("npm run build")
    connection.execute("DELETE FROM metric WHERE key = 'expired_at'")
    assert retention.expire(connection, START + 400 * DAY)
    assert room.rows("SELECT count(*) FROM call") == [(0,)]
    assert room.rows("SELECT count(*) FROM lesson") == [(2,)]
    covers = (lambda n, block, at: at < START + DAY) if part else None
    forget.forget(
        connection, f"{key:012x}", covers, home=room.world.state, session=None if part else "s1"
    )
    assert room.rows("SELECT count(*) FROM lesson") == [(0,)]
    assert room.rows("SELECT count(*) FROM fix") == [(0,)]
    assert not page.exists()


def test_forget_finds_the_fixes_of_a_session_of_which_nothing_else_is_kept(room: Classroom):
    room.write("a.jsonl", Script("s1").fail())
    room.write("b.jsonl", Script("s2", at=START + 3_600_000).fail().edit().good())
    room.learn()
    connection = room.learner.connection
    key = next(k for k, known in room.index.known().items() if known.place.log == "b.jsonl")
    assert room.rows("SELECT session FROM fix") == [("s2",)]
    connection.execute("DELETE FROM call")
    gone = Gone(room.index.known()[key].place, "s2", None, Tomb(()), whole=True)
    room.learner.forget(Erased((gone,), frozenset()), dry=False)
    assert room.rows("SELECT count(*) FROM fix") == [(0,)]
    assert room.rows("SELECT session FROM lesson") == [("s1",)]


def test_a_busy_database_stops_nothing_for_good(room: Classroom):
    room.write("a.jsonl", loop())
    room.read()
    other = db.writer(room.path)
    room.learner.connection.set_busy_timeout(0)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Exception, match="another process"):
        room.study()
    other.execute("ROLLBACK")
    other.close()
    room.learn()
    assert room.rows("SELECT count(*) FROM call") == [(6,)]


def test_what_lies_above_max_class_is_not_learned(user_home: Path):
    script = Script("s1").fail().fail("make x", text="make: *** no rule", cls="secret")
    with Classroom(user_home) as room:
        room.write("a.jsonl", script.fail("make y", text="make: *** other"))
        room.learn()
        assert room.rows("SELECT summary FROM call") == [("npm run build",)]
        assert room.rows("SELECT level FROM lesson") == [(0,)]


def test_a_log_whose_label_rises_later_takes_what_it_taught_with_it(user_home: Path):
    with Classroom(user_home) as room:
        room.write("a.jsonl", Script("s1").fail().edit().good().end())
        room.learn(START + DAY)
        assert room.rows("SELECT DISTINCT level, untrusted FROM lesson") == [(0, 0)]
        (key,) = room.index.known()
        (told,) = again(room.learner.settings, key, room.index.known()[key])
        heard = [
            one._replace(answers=[(*a[:4], a[4].join(Label(2, True)), *a[5:]) for a in one.answers])
            for one in told.heard
        ]
        room.learner.hear([msgspec.structs.replace(told, heard=heard)])
        room.study()
        for table in ("call", "lesson", "fix"):
            assert room.rows(f"SELECT DISTINCT level, untrusted FROM {table}") == [(2, 1)], table
        assert room.rows("SELECT count(*) FROM call") == [(3,)]
        assert room.rows("SELECT count(*) FROM lesson") == [(2,)]


def test_what_rises_above_max_class_is_forgotten(user_home: Path):
    with Classroom(user_home) as room:
        room.write("a.jsonl", Script("s1").fail().edit().good().end())
        room.learn(START + DAY)
        (key,) = room.index.known()
        (told,) = again(room.learner.settings, key, room.index.known()[key])
        heard = [one._replace(above=3) for one in told.heard]
        room.learner.hear([msgspec.structs.replace(told, heard=heard)])
        room.study()
        assert room.rows("SELECT n FROM call WHERE n > 2") == []


def test_a_log_without_times_is_learned_from_in_the_order_of_its_records(user_home: Path):
    script = Script("s1")
    for name, edit in (("TypeError", "a.py"), ("ValueError", "b.py")):
        script.fail("python x.py", text=f"{name}: odd").edit(edit).good("python x.py")
    for line in script.lines:
        del line["ts"]
    with Classroom(user_home) as room:
        room.write("a.jsonl", script)
        room.learn()
        found = room.rows("SELECT code, fix_args FROM lesson WHERE type = 'error' ORDER BY code")
    assert found == [
        ("TypeError", "edit `a.py`; bash `python x.py` went well"),
        ("ValueError", "edit `b.py`; bash `python x.py` went well"),
    ]


def test_calls_grow_old_by_the_clock_and_not_by_what_logs_say(room: Classroom):
    room.write("a.jsonl", Script("s1").fail())
    room.write("b.jsonl", Script("s2", at=START + 4_000 * DAY).fail().later(2_000_000).good())
    room.learn(START + DAY)
    assert room.rows("SELECT session, n FROM call WHERE ok = 0 ORDER BY n, session") == [
        ("s1", 1),
        ("s2", 1),
    ]
    room.learn(START + 400 * DAY)
    assert room.rows("SELECT DISTINCT session FROM call") == [("s2",)]
    assert room.rows("SELECT DISTINCT id FROM session") == [("s2",)]


def test_a_session_too_old_to_be_kept_comes_to_rest_before_it_goes(room: Classroom):
    room.write("a.jsonl", Script("s1").fail().edit().good())
    room.learn(START + 400 * DAY)
    assert room.rows("SELECT count(*) FROM call") == [(0,)]
    assert room.rows("SELECT count(*) FROM session") == [(0,)]
    assert room.rows("SELECT count(*) FROM lesson WHERE type = 'pattern'") == [(1,)]


def test_a_clock_that_was_set_back_does_not_keep_calls_for_ever(room: Classroom):
    room.write("a.jsonl", Script("s1").fail())
    room.learn(START + DAY)
    room.learner.connection.execute(
        "UPDATE metric SET value = ? WHERE key = 'expired_at'", (START + 9_000 * DAY,)
    )
    room.learn(START + 400 * DAY)
    assert room.rows("SELECT count(*) FROM call") == [(0,)]


def test_logs_learned_from_in_one_step_rest_where_their_own_records_say(room: Classroom):
    for name in "abc":
        script = Script(f"s{name}", f"/w/{name}").fail("make").edit().good("make").end()
        room.write(f"{name}.jsonl", script.good("ls").later(1_000_000).good("pwd"))
    room.read()
    assert room.learner.step() is False
    rested = START + 10_000 + 900_000
    assert room.rows("SELECT id, ended, idle_at FROM session ORDER BY id") == [
        (f"s{name}", 1, rested) for name in "abc"
    ]
    pattern = "SELECT project FROM lesson WHERE type = 'pattern' ORDER BY project"
    assert room.rows(pattern) == [(f"/w/{name}",) for name in "abc"]


def test_of_a_log_that_moved_before_its_first_answer_one_open_call_is_kept(room: Classroom):
    script = Script("s1").good("make")
    room.write("a.jsonl", script, upto=2)
    room.learn()
    assert [(call, said) for _, call, _, _, _, said, *_ in room.rows("SELECT * FROM waiting")] == [
        ("c1", "make")
    ]
    room.learner.look({})  # an index that is just being made knows nothing yet
    room.study()
    assert room.rows("SELECT count(*) FROM waiting") == [(1,)]
    (room.world.sessions / "a.jsonl").rename(room.world.sessions / "b.jsonl")
    room.learn()
    room.learn()
    (key,) = room.index.known()
    assert room.rows("SELECT log FROM waiting") == [(f"{key:012x}",)]
    room.append("b.jsonl", script, 2, 3)
    room.learn()
    assert room.rows("SELECT log, summary FROM call") == [(f"{key:012x}", "make")]
    assert room.rows("SELECT * FROM waiting") == []


def test_a_log_that_moves_while_it_waits_to_be_learned_from_leaves_nothing_behind(room: Classroom):
    room.write("a.jsonl", Script("s1").good("make").call("ls", ok=True), upto=4)
    room.read()
    (room.world.sessions / "a.jsonl").rename(room.world.sessions / "b.jsonl")
    room.read()
    room.learner.look(room.index.known())
    room.study()
    (key,) = room.index.known()
    for table in ("progress", "waiting", "call"):
        assert room.rows(f"SELECT DISTINCT log FROM {table}") == [(f"{key:012x}",)], table


def test_words_alone_are_not_handed_on_but_a_long_silence_before_them_is(room: Classroom):
    script = Script("s1").fail().owner("one").owner("two").later(1_000_000).owner("three").end()
    room.write("a.jsonl", script)
    room.read()
    told = [one for one in room.learner._queue if isinstance(one, Told)]
    (heard,) = told[0].heard
    assert [(*(call[0] for call in heard.made), *(one[1] for one in heard.answers))] == [(1, 2)]
    assert [(mark.n, mark.rest) for mark in heard.marks] == [(5, "quiet"), (6, "end")]
    assert [(each.first, each.end) for each in told] == [(0, 7)]
