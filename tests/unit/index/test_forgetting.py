"""Forgetting: what is forgotten is in no row, no byte and no rebuild, and comes back only if it is taken back."""

import gzip
import json
from types import SimpleNamespace

import pytest

from memoryd import db, points
from memoryd.errors import BadRequest, Conflict, NotFound, Unavailable
from memoryd.index import Wanted, catch_up, overrides, tombs
from memoryd.index.overrides import Forget, Remember
from memoryd.index.tombs import Tomb
from tests.support.indexing import dumped, publish
from tests.support.logs import (
    START_MS,
    append,
    claude_assistant,
    claude_attachment,
    claude_call,
    claude_result,
    claude_user,
    dated,
    native_owner,
    native_session,
    write,
)

ALL = Wanted(session="s1")
MANY = 40
POINTS = (
    "forget: written down", "forget: copies gone", "forget: committed", "purge: merged",
    "purge: written anew", "purge: done",
)  # fmt: skip


@pytest.fixture(autouse=True)
def nobody_observes():
    yield
    points.observe(None)


def session(name, word, *, many=MANY, project="/home/ada/shop", start=0):
    """Return a session in which each record has a word of its own."""
    said = [
        claude_user(f"{word}{n}x and common words", sessionId=name, cwd=project)
        for n in range(many)
    ]
    more = [
        claude_call(f"mcp__{word}tool__get", {"path": f"/srv/{word}path"}, "t1", sessionId=name),
        claude_result("t1", "result", sessionId=name),
        claude_attachment("file", "attached", sessionId=name)
        | {"attachment": {"type": "file", "filename": f"/srv/{word}file", "content": "x"}},
        claude_assistant(f"{word}end", sessionId=name),
    ]
    return dated(*said, *more, start=start)


@pytest.fixture
def logs(world):
    """Three sessions; the first one's words stand in no other."""
    return [
        write(world.logs / "a.jsonl", *session("s1", "quince")),
        write(world.logs / "b.jsonl", *session("s2", "medlar", project="/home/ada/blog")),
        write(world.logs / "c.jsonl", *session("s3", "sorb", many=3, start=5_000)),
    ]


def texts(index):
    return [json.loads(line)["text"] for line in dumped(index)]


def purged(index):
    """Take turns until no word of a deleted row is left."""
    for _ in range(1_000):
        index.catch_up()
        if not index.purging:
            return
    raise AssertionError("it never ends")


def state(world):
    """Return every byte that memoryd has written, kept copies unpacked."""
    files = [
        path for path in world.state.rglob("*") if path.is_file() and "sessions" not in path.parts
    ]
    contents = [path.read_bytes() for path in files]
    return b"\0".join(gzip.decompress(x) if x.startswith(b"\x1f\x8b") else x for x in contents)


def forget(index, wanted=ALL, **more):
    done = index.forget(wanted, dry=False, **more)
    purged(index)
    return done


def test_a_preview_tells_what_goes_and_changes_nothing(world, logs):
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        told = index.forget(ALL, dry=True)
        assert (told.act, told.rows, told.copies) == ("", MANY + 2, 0)
        (one,) = told.logs
        assert (one.session, one.project, one.rows, one.whole, one.held, one.deleted) == (
            "s1", "/home/ada/shop", MANY + 2, True, True, False,
        )  # fmt: skip
        assert one.path == str(logs[0])
        assert dumped(index) == before
        assert world.overrides == b""


def test_v06_a_forgotten_session_is_in_no_row_no_byte_and_no_rebuild(world, logs):
    with world.index() as index:
        catch_up(index)
        assert b"quince7x" in state(world)
        done = forget(index)
        assert done.act.startswith("forget-")
        left = dumped(index)
        assert not any("quince" in text for text in texts(index))
        assert b"quince" not in state(world)
        assert b"medlar7x" in state(world)
        assert left == world.fresh()
        publish(index, index.settings)
        assert dumped(index) == left
        assert b"quince" not in state(world)
    assert world.caught_up() == left
    assert logs[0].exists()


def test_a_reader_finds_nothing_before_the_words_are_purged(world, logs):
    with world.index() as index:
        catch_up(index)
        index.forget(ALL, dry=False)
        assert index.purging
        assert not any("quince" in text for text in texts(index))
        connection = db.reader(index.settings.path)
        for c in range(4):
            assert (
                connection.execute(f"SELECT * FROM ft_{c} WHERE ft_{c} MATCH 'quince7x'").get
                is None
            )
            sql = f"SELECT count(*) FROM vocab_{c} WHERE term GLOB 'quinc*'"
            assert connection.execute(sql).get == 0
        connection.close()


def test_v07_while_a_reader_holds_an_older_state_words_are_not_said_to_be_gone(world, logs):
    with world.index() as index:
        catch_up(index)
        connection = db.reader(index.settings.path)
        connection.execute("BEGIN")
        assert connection.execute("SELECT count(*) FROM row_0").get
        index.forget(ALL, dry=False)
        index._following.connection.set_busy_timeout(0)
        for _ in range(50):
            index.catch_up()
        assert index.purging
        assert index.status().purging
        assert index.fault == ""
        connection.close()
        index._following._purge_at = 0.0
        purged(index)
        assert b"quince" not in state(world)


def test_v08_indexes_that_were_set_aside_go_too(world, logs):
    with world.index() as index:
        catch_up(index)
        for name in ("corrupt-1", "corrupt-1-wal", "rejected"):
            (world.state / "index" / f"memory.sqlite3.{name}").write_bytes(b"quince7x")
        forget(index)
        assert b"quince" not in state(world)
        assert not list((world.state / "index").glob("*.corrupt*"))


def test_what_is_written_later_is_read_and_the_old_stays_forgotten(world, logs):
    with world.index() as index:
        catch_up(index)
        forget(index)
        append(logs[0], *dated(claude_user("written later", sessionId="s1"), start=900))
        catch_up(index)
        assert [text for text in texts(index) if "later" in text] == ["written later"]
        assert dumped(index) == world.fresh()
        line = next(
            line for line in map(json.loads, dumped(index)) if line["text"] == "written later"
        )
        assert line["n"] == MANY + 4
        assert (line["class"], line["untrusted"]) == ("internal", True)  # what it saw still counts


def test_a_forgotten_log_that_is_written_anew_stays_forgotten(world, logs):
    with world.index() as index:
        catch_up(index)
        forget(index)
        content = logs[0].read_bytes()
        logs[0].unlink()
        catch_up(index)
        logs[0].write_bytes(content)
        catch_up(index)
        assert not any("quince" in text for text in texts(index))
        assert dumped(index) == world.fresh()


def test_a_forgotten_log_that_is_moved_stays_forgotten(world, logs):
    with world.index() as index:
        catch_up(index)
        forget(index)
        logs[0].rename(world.logs / "moved.jsonl")
        catch_up(index)
        assert not any("quince" in text for text in texts(index))
        assert dumped(index) == world.fresh()


def test_a_forgotten_log_that_vanishes_is_not_kept(world, logs):
    with world.index() as index:
        catch_up(index)
        forget(index)
        logs[0].unlink()
        catch_up(index)
        assert list((world.state / "vanished").glob("*")) == []
        assert dumped(index) == world.fresh()


def test_a_vanished_copy_goes_with_its_session(world, logs):
    with world.index() as index:
        catch_up(index)
        logs[0].unlink()
        catch_up(index)
        assert b"quince7x" in state(world)
        told = index.forget(ALL, dry=True)
        assert (told.copies, told.logs[0].held) == (1, False)
        done = forget(index)
        assert done.copies == 1
        assert list((world.state / "vanished").glob("*")) == []
        assert b"quince" not in state(world)
        assert dumped(index) == world.fresh()
        with pytest.raises(Conflict, match="gone"):
            index.remember(done.act)


def test_part_of_a_vanished_copy_goes_and_the_rest_stays(world, logs):
    with world.index() as index:
        catch_up(index)
        logs[0].unlink()
        catch_up(index)
        forget(index, Wanted(session="s1", before=START_MS + 20_000))
        kept = [text for text in texts(index) if "quince" in text]
        assert kept[0].startswith("quince20x")
        assert len(kept) == 22
        assert b"quince19x" not in state(world)
        assert b"quince20x" in state(world)
        assert dumped(index) == world.fresh()


def test_a_kept_copy_that_is_in_no_index_goes_too(world, logs):
    world.caught_up()
    logs[0].unlink()
    world.caught_up()
    toml = '[index]\nvanished = "drop"\n' + world.toml
    with world.index(toml) as index:
        catch_up(index)
        assert b"quince7x" in state(world)
        told = forget(index)
        assert (told.copies, told.rows) == (1, MANY + 2)
        assert b"quince" not in state(world)


@pytest.mark.parametrize(
    ("wanted", "gone", "left"),
    [
        (Wanted(project="/home/ada/blog"), ["medlar"], ["quince", "sorb"]),
        (Wanted(project="bl*"), ["medlar"], ["quince", "sorb"]),
        (Wanted(project="*"), ["medlar", "quince", "sorb"], []),
        (Wanted(before=START_MS + 4_000_000), ["medlar", "quince"], ["sorb"]),
        (Wanted(project="blog", session="s2"), ["medlar"], ["quince", "sorb"]),
    ],
)
def test_a_project_or_a_time_names_many(world, logs, wanted, gone, left):
    with world.index() as index:
        catch_up(index)
        forget(index, wanted)
        content = state(world)
        assert [word for word in ("medlar", "quince", "sorb") if word.encode() in content] == left
        assert dumped(index) == world.fresh()
        assert gone


def test_a_time_in_the_middle_of_a_session_parts_it(world, logs):
    with world.index() as index:
        catch_up(index)
        told = index.forget(Wanted(before=START_MS + 10_000), dry=True)
        assert [(one.session, one.rows, one.whole) for one in told.logs] == [
            ("s1", 10, False), ("s2", 10, False),
        ]  # fmt: skip
        forget(index, Wanted(before=START_MS + 10_000))
        assert b"quince9x" not in state(world)
        assert b"quince10x" in state(world)
        assert dumped(index) == world.fresh()
        publish(index, index.settings)
        assert b"quince9x" not in state(world)


def test_one_record_goes_by_its_id_and_its_neighbours_stay(world, logs):
    with world.index() as index:
        catch_up(index)
        key = index.settings.ids.log_key("claude-code", str(world.logs), "a.jsonl")
        id_ = index.settings.ids.encode(key, 7, 0)
        told = forget(index, Wanted(ids=(id_, "a" * 20)))
        assert (told.rows, told.logs[0].whole) == (1, False)
        content = state(world)
        assert b"quince7x" not in content
        assert b"quince6x" in content
        assert dumped(index) == world.fresh()


@pytest.mark.parametrize("many", [3, MANY])
def test_few_rows_and_many_leave_no_byte_alike(world, many):
    write(world.logs / "a.jsonl", *session("s1", "quince", many=many))
    write(world.logs / "b.jsonl", *session("s2", "medlar"))
    with world.index() as index:
        catch_up(index)
        forget(index)
        assert b"quince" not in state(world)


def test_words_of_an_earlier_version_of_the_log_go_too(world, logs):
    with world.index() as index:
        catch_up(index)
        write(logs[0], *session("s1", "pawpaw"))
        catch_up(index)
        forget(index)
        content = state(world)
        assert b"quince" not in content
        assert b"pawpaw" not in content


def test_it_is_taken_back_while_the_log_is_there(world, logs):
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        done = forget(index)
        assert index.remember(done.act) == (1, 0)
        catch_up(index)
        assert dumped(index) == before == world.fresh()
        with pytest.raises(NotFound):
            index.remember(done.act)


def test_taking_back_one_act_leaves_the_other(world, logs):
    with world.index() as index:
        catch_up(index)
        one = forget(index, Wanted(session="s1", before=START_MS + 10_000))
        two = forget(index, Wanted(session="s1", before=START_MS + 5_000))
        index.remember(one.act)
        catch_up(index)
        kept = [text for text in texts(index) if "quince" in text]
        assert kept[0].startswith("quince5x")
        assert dumped(index) == world.fresh()
        index.remember(two.act)
        catch_up(index)
        assert any(text.startswith("quince0x") for text in texts(index))


def test_forgetting_twice_writes_one_entry_and_asks_the_hooks_again(world, logs):
    asked = []

    def hook(erased, dry):
        asked.append((sorted(erased.names), [gone.session for gone in erased.logs], dry))
        return {"lessons": 2} if len(asked) < 3 else {}

    with world.index() as index:
        catch_up(index)
        assert index.forget(ALL, dry=True, hooks=[hook]).derived == {"lessons": 2}
        forget(index, hooks=[hook])
        written = world.overrides
        again = forget(index, hooks=[hook])
        assert (again.rows, again.act) == (0, "")
        assert world.overrides == written
    assert asked == [(["s1"], ["s1"], True), *[(["s1"], ["s1"], False)] * 4]


@pytest.mark.parametrize("point", POINTS)
def test_what_was_derived_is_gone_before_a_kill_can_leave_it_behind(world, logs, point):
    class Kill(BaseException):
        pass

    derived = ["a lesson"]

    def hook(erased, dry):
        derived.clear()
        return {}

    def kill(reached):
        if reached == point:
            raise Kill

    with world.index() as index:
        catch_up(index)
        points.observe(kill)
        with pytest.raises(Kill):
            forget(index, hooks=[hook])
    assert derived == []


def test_names_that_another_log_has_are_not_told_as_gone(world, logs):
    seen = []

    def hook(erased, dry):
        seen.append(erased.names)
        return {}

    with world.index() as index:
        catch_up(index)
        index.forget(Wanted(session="s2"), dry=True, hooks=[hook])
        index.forget(Wanted(project="*"), dry=True, hooks=[hook])
    assert seen == [
        {"s2", "/home/ada/blog"},
        {"s1", "s2", "s3", "/home/ada/blog", "/home/ada/shop"},
    ]


def test_log_files_are_deleted_only_when_asked_and_only_whole_ones(world, logs):
    with world.index() as index:
        catch_up(index)
        wanted = Wanted(before=START_MS + 10_000)
        assert not any(one.deleted for one in index.forget(wanted, dry=True, delete_logs=True).logs)
        assert index.forget(ALL, dry=True, delete_logs=True).logs[0].deleted
        assert logs[0].exists()
        done = forget(index, delete_logs=True)
        assert (done.logs[0].deleted, done.logs[0].held) == (True, False)
        assert not logs[0].exists()
        assert logs[1].exists()
        catch_up(index)
        assert list((world.state / "vanished").glob("*")) == []


def test_a_file_that_is_another_one_by_now_is_not_deleted(world, logs):
    with world.index() as index:
        catch_up(index)
        content = logs[0].read_bytes()
        logs[0].rename(world.logs / "elsewhere.txt")
        logs[0].write_bytes(content)
        done = index.forget(ALL, dry=False, delete_logs=True)
        assert (done.logs[0].deleted, done.logs[0].held) == (False, True)
        assert logs[0].exists()


def test_bad_wishes_are_refused(world, logs):
    with world.index() as index:
        catch_up(index)
        with pytest.raises(BadRequest, match="nothing says"):
            index.forget(Wanted(), dry=False)
        with pytest.raises(NotFound, match="nothing fits"):
            index.forget(Wanted(session="s9"), dry=False)
        with pytest.raises(NotFound, match="nothing fits"):
            index.forget(Wanted(ids=("nonsense",)), dry=True)
        with pytest.raises(NotFound, match="nothing was forgotten"):
            index.remember("forget-none")
    toml = '[index]\nmax_class = "secret"\n' + world.toml
    with world.index(toml) as index, pytest.raises(Unavailable):
        index.forget(ALL, dry=True)


@pytest.mark.parametrize(
    ("point", "there"),
    [
        *((point, there) for point in POINTS for there in (True, False)),
        ("vanished: stripped", False),
    ],
)
def test_a_kill_at_any_point_leaves_it_forgotten_after_the_next_start(world, logs, point, there):
    class Kill(BaseException):
        pass

    def kill(reached):
        if reached == point:
            raise Kill

    with world.index() as index:
        catch_up(index)
        if not there:
            logs[0].unlink()
            catch_up(index)
        points.observe(kill)
        with pytest.raises(Kill):
            forget(index)
        points.observe(None)
    with world.index() as index:
        if there:  # nobody is served before: an opened index may be asked at once
            assert not any("quince" in text for text in texts(index))
        catch_up(index)
        index.purge()
        purged(index)
        assert not any("quince" in text for text in texts(index))
        assert dumped(index) == world.fresh()
        assert b"quince" not in state(world)


def test_rows_above_max_class_stay_forgotten_when_it_is_raised(world):
    toml = '[index]\nmax_class = "internal"\n' + world.toml
    write(world.logs / "a.jsonl", *dated(
        claude_user("quince1"), claude_call("Odd", {}, "t"), claude_result("t", ""),
        claude_user("quince2"),
    ))  # fmt: skip
    with world.index(toml) as index:
        catch_up(index)
        forget(index, Wanted(session="s1"))
    with world.index('[index]\nmax_class = "secret"\n' + world.toml) as index:
        publish(index, index.settings)
        assert dumped(index) == []


def test_what_a_forgotten_native_log_held_is_in_no_byte(world):
    path = write(world.sessions / "n.jsonl", *dated(
        native_session("nat", "/home/ada/x"), *[native_owner(f"quince{n}y") for n in range(30)]
    ))  # fmt: skip
    with world.index() as index:
        catch_up(index)
        forget(index, Wanted(session="nat"))
        assert b"quince" not in state(world)
        assert b"quince3y" in path.read_bytes()


def test_copies_that_a_resumed_session_holds_go_with_it_and_do_not_come_back(world):
    first = session("s1", "quince", many=20)
    rest = dated(claude_user("medlar1 goes on", sessionId="s2"), start=100)
    for at, record in enumerate(rest):
        record |= {
            "uuid": f"00000000-0000-4000-8000-00000000f{at:03}",
            "parentUuid": first[-1]["uuid"],
        }
    path = write(world.logs / "a.jsonl", *first)
    write(world.logs / "b.jsonl", *[{**record, "sessionId": "s2"} for record in first], *rest)
    with world.index() as index:
        catch_up(index)
        assert sum("quince3x" in text for text in texts(index)) == 1
        told = index.forget(ALL, dry=True)
        assert [(one.session, one.rows, one.whole) for one in told.logs] == [
            ("s1", 22, True), ("s2", 0, False),
        ]  # fmt: skip
        forget(index, delete_logs=True)
        assert not path.exists()
        catch_up(index)
        assert [text for text in texts(index) if "quince" in text] == []
        assert any("medlar1" in text for text in texts(index))
        assert b"quince" not in state(world)
        assert dumped(index) == world.fresh()


def test_tools_of_open_calls_and_of_what_raised_the_log_leave_no_name(world):
    path = write(world.logs / "a.jsonl", *dated(
        claude_user("hello", sessionId="s1"),
        claude_call("quinceopen", {}, "t1", sessionId="s1"),
        claude_call("quincetool", {}, "t2", sessionId="s1"),
        claude_result("t2", "", sessionId="s1"),
        claude_user("above", sessionId="s1"),
    ))  # fmt: skip
    with world.index() as index:
        catch_up(index)
        assert index.status().sums.why == {"quincetool (no rule)": 1}
        forget(index)
        append(path, *dated(claude_user("later", sessionId="s1"), start=50))
        catch_up(index)
        assert index.status().sums.why == {"its first record": 1}
        purged(index)
        assert b"quince" not in state(world)
        assert dumped(index) == world.fresh()


def test_part_of_a_log_that_was_raised_is_told_without_its_tool(world):
    write(world.logs / "a.jsonl", *dated(
        claude_user("hello", sessionId="s1"),
        claude_call("quincetool", {}, "t2", sessionId="s1"),
        claude_result("t2", "", sessionId="s1"),
        claude_user("above", sessionId="s1"),
    ))  # fmt: skip
    with world.index() as index:
        catch_up(index)
        forget(index, Wanted(session="s1", before=START_MS + 1_500))
        assert index.status().sums.why == {"a forgotten record": 1}
        publish(index, index.settings)
        assert b"quince" not in state(world)


def test_a_kept_copy_that_is_put_back_brings_nothing_back(world, logs):
    with world.index() as index:
        catch_up(index)
        logs[0].unlink()
        catch_up(index)
        (kept,) = (world.state / "vanished").glob("*")
        content = kept.read_bytes()
        forget(index, Wanted(session="s1", before=START_MS + 20_000))
        left = dumped(index)
    kept.write_bytes(content)
    assert world.fresh() == left
    for path in (world.state / "index").glob("*"):
        path.unlink()
    assert world.caught_up() == left


def test_what_is_forgotten_while_the_index_is_rebuilt_is_in_no_byte_of_the_new_one(world, logs):
    from memoryd.index import NoGate, building, opening

    with world.index() as index:
        catch_up(index)
        built = building.build(opening.new_temp(index.settings.path), index.settings)
        forget(index)
        left = dumped(index)
        index.publish(built, NoGate())
        assert dumped(index) == left
        assert b"quince" not in state(world)


def test_a_tomb_covers_by_record_block_and_time():
    place = ("native", "/r", "a")
    tomb = Tomb((Forget(*place, 2, 4), Forget(*place, 7, 7, 1), Forget(*place, 0, 9, until=50)))
    assert [n for n in range(10) if tomb.covers(n, 0, None)] == [2, 3, 4]
    assert tomb.covers(7, 1, None)
    assert not tomb.covers(7, 0, None)
    assert tomb.covers(9, 0, 49)
    assert not tomb.covers(9, 0, 50)
    assert not tomb.whole(5)
    assert Tomb((Forget(*place, 0, 4),)).whole(5)
    assert not Tomb((Forget(*place, 0, 3),)).whole(5)
    assert not Tomb((Forget(*place, 0, 9, until=50),)).whole(5)
    assert Tomb((Forget(*place),)).whole(99)


def test_entries_of_an_act_that_was_taken_back_are_not_in_force(tmp_path):
    place = ("native", "/r", "a")
    overrides.append(tmp_path, Forget(*place, 0, 4, act="one"), Forget(*place, 5, 9, act="two"))
    overrides.append(tmp_path, Remember("one"))
    assert [entry.act for entry in tombs.in_force(overrides.read(tmp_path))] == ["two"]
    overrides.append(tmp_path, Forget(*place, 0, 4, act="one"))
    assert [entry.act for entry in tombs.in_force(overrides.read(tmp_path))] == ["two", "one"]


def test_where_there_is_no_room_to_write_the_file_anew_it_is_tried_again_and_told(
    world, logs, monkeypatch
):
    rooms = iter([0, 0, 1 << 40])

    def device(folder):
        assert folder == world.settings().path.parent
        return SimpleNamespace(f_frsize=1, f_bavail=next(rooms))

    with world.index() as index:
        catch_up(index)
        with monkeypatch.context() as small:
            small.setattr("memoryd.db.os.statvfs", device)
            small.setattr("memoryd.index.room.lacking", lambda folder: None)
            index.forget(ALL, dry=False)
            for _ in range(2):
                for _ in range(20):
                    index.catch_up()
                assert index.purging
                assert index.status().purging
                index._following._purge_at = 0.0
            purged(index)
        assert next(rooms, None) is None
        assert b"quince" not in state(world)
