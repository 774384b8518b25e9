"""Logs whose files are gone: kept, read again, dropped, come back (reliability table, T22 and V rows)."""

import gzip
import json
import os

import pytest

from memoryd import points
from memoryd.index import NoGate, catch_up, floors, vanished
from memoryd.labels import Label
from tests.support.indexing import World, dumped, publish
from tests.support.logs import (
    append,
    claude_assistant,
    claude_attachment,
    claude_call,
    claude_result,
    claude_user,
    dated,
    native_assistant,
    native_call,
    native_owner,
    native_result,
    native_session,
    write,
)

SECRET = '[index]\nmax_class = "secret"\n'


@pytest.fixture(autouse=True)
def nobody_observes():
    yield
    points.observe(None)


@pytest.fixture
def log(world):
    return write(world.logs / "a.jsonl", *dated(
        claude_user("find the invoice"),
        claude_call("Bash", {"command": "curl http://x/\ncat a"}, "t1"),
        claude_result("t1", "resulttext"),
        claude_assistant("found it, AKIAIOSFODNN7EXAMPLE"),
        claude_attachment("file", "attachedtext"),
        claude_call("Read", {"file_path": "/srv/app/notes.md"}, "t2"),
        claude_result("t2", "resulttext"),
        claude_assistant("and the notes"),
    ))  # fmt: skip


def kept(world):
    return sorted((world.state / "vanished").glob("*"))


def labels(lines):
    return [(json.loads(line)["class"], json.loads(line)["untrusted"]) for line in lines]


def test_a_vanished_log_stays_and_a_rebuild_has_it_too_t22(world, log):
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        log.unlink()
        catch_up(index)
        assert dumped(index) == before == world.fresh()
        assert index.status().sums.gone == 1
        publish(index, index.settings)
        assert dumped(index) == before
    assert world.caught_up() == before


def test_what_is_kept_is_private_masked_and_holds_no_result(world, log):
    with world.index() as index:
        catch_up(index)
        log.unlink()
        catch_up(index)
    (path,) = kept(world)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    content = gzip.decompress(path.read_bytes())
    assert b"find the invoice" in content
    for absent in (b"resulttext", b"attachedtext", b"AKIAIOSFODNN7EXAMPLE"):
        assert absent not in content
    first, *others = [json.loads(line) for line in content.splitlines()]
    assert first["kind"] == "log"
    assert (first["source"], first["log"], first["records"]) == ("claude-code", "a.jsonl", 8)
    assert [line["kind"] for line in others] == [
        "owner", "tool_call", "raised", "assistant", "raised", "tool_call", "raised", "assistant",
    ]  # fmt: skip
    assert others[2]["of"] == [1, 0]
    assert others[4]["name"].startswith(":attachment")


def test_under_other_rules_what_is_kept_is_judged_again_and_only_raised(world, log):
    with world.index() as index:
        catch_up(index)
        before = labels(dumped(index))
        log.unlink()
        catch_up(index)
    stricter = '[[labels.path]]\nglob = "/srv/app/**"\nclass = "private"\n' + world.toml
    with world.index(stricter) as index:
        publish(index, index.settings)
        assert labels(dumped(index)) == [*before[:-1], ("private", True)]
        assert dumped(index) == world.fresh(stricter)
    laxer = '[[labels.tool]]\nmatch = "*"\nclass = "public"\nuntrusted = false\n' + world.toml
    with world.index(laxer) as index:
        publish(index, index.settings)
        assert labels(dumped(index)) == before


def test_a_rule_about_words_of_a_call_reaches_what_is_kept(world, log):
    world.caught_up()
    log.unlink()
    world.caught_up()
    rule = '[[labels.tool]]\nmatch = "Bash"\nargs = "curl"\nclass = "private"\n' + world.toml
    with world.index(rule) as index:
        publish(index, index.settings)
        assert [cls for cls, _ in labels(dumped(index))][2:] == ["private"] * 3


def test_a_rule_about_what_came_without_a_call_reaches_what_is_kept(world):
    log = write(world.logs / "a.jsonl", *dated(
        claude_user("before"), claude_attachment("file", "x"), claude_user("after"),
    ))  # fmt: skip
    world.caught_up()
    log.unlink()
    world.caught_up()
    rule = '[[labels.tool]]\nmatch = "attachment:*"\nclass = "private"\n' + world.toml
    with world.index(rule) as index:
        publish(index, index.settings)
        assert [cls for cls, _ in labels(dumped(index))] == ["public", "private"]


def test_a_path_rule_reaches_what_was_attached_to_a_log_that_is_gone(world):
    attached = claude_attachment("file", "x")
    attached["attachment"]["filename"] = "/srv/app/plan.md"
    log = write(world.logs / "a.jsonl", *dated(
        claude_user("before"), attached, claude_user("after"),
    ))  # fmt: skip
    world.caught_up()
    log.unlink()
    world.caught_up()
    rule = '[[labels.path]]\nglob = "/srv/app/**"\nclass = "private"\n' + world.toml
    with world.index(rule) as index:
        publish(index, index.settings)
        assert [cls for cls, _ in labels(dumped(index))] == ["public", "private"]
        assert dumped(index) == world.fresh(rule)


def test_a_kept_log_of_an_excluded_path_or_project_is_not_read(world, log):
    world.caught_up()
    log.unlink()
    before = world.caught_up()
    assert before
    for glob in ("a.jsonl", "*/shop"):
        toml = f'[[source]]\npath = "{{logs}}"\nexclude = ["{glob}"]\n'
        assert world.caught_up(toml) == [] == world.fresh(toml)
        assert len(kept(world)) == 1
    assert world.caught_up() == before


def test_what_is_private_is_masked_in_what_is_kept_too(world):
    log = write(world.logs / "a.jsonl", *dated(
        claude_user("see <private>quince</private> here"),
        claude_call("Bash", {"command": "echo <private>medlar"}, "t1"),
        claude_assistant("unclosed <PRIVATE>sorb and so on"),
    ))  # fmt: skip
    with world.index() as index:
        catch_up(index)
        log.unlink()
        catch_up(index)
        texts = [json.loads(line)["text"] for line in dumped(index)]
    assert texts == [
        "see <private: redacted 6 chars> here",
        "Bash\necho <private: redacted 6 chars>",
        "unclosed <private: redacted 14 chars>",
    ]
    (path,) = kept(world)
    content = (
        gzip.decompress(path.read_bytes()) + (world.state / "index/memory.sqlite3").read_bytes()
    )
    for word in (b"quince", b"medlar", b"sorb"):
        assert word not in content


def test_what_is_kept_is_compressed_and_the_same_each_time(world, log):
    world.caught_up()
    log.unlink()
    world.caught_up()
    (path,) = kept(world)
    assert path.name.endswith(".jsonl.gz")
    first = path.read_bytes()
    assert first.startswith(b"\x1f\x8b\x08\x00\x00\x00\x00\x00")  # neither a name nor a time
    assert len(first) < len(gzip.decompress(first))


def test_a_trusted_native_log_is_judged_by_path_rules_alone(world):
    native = write(world.sessions / "n.jsonl", *dated(
        native_session("n"),
        native_call("Look", {"path": "/srv/app/x"}, "c1"),
        native_result("c1", "text", "internal"),
        native_assistant("said"),
    ))  # fmt: skip
    world.caught_up()
    native.unlink()
    assert labels(world.caught_up())[-1] == ("internal", False)
    stricter = '[[labels.path]]\nglob = "/srv/app/**"\nclass = "private"\n' + world.toml
    with world.index(stricter) as index:
        publish(index, index.settings)
        assert labels(dumped(index))[-1] == ("private", False)


def test_a_class_that_is_no_longer_configured_counts_as_the_top_class(world, log):
    world.caught_up()
    log.unlink()
    world.caught_up()
    toml = '[labels]\nclasses = ["open", "shut"]\n[index]\nmax_class = "shut"\n' + world.toml
    with world.index(toml) as index:
        publish(index, index.settings)
        assert {cls for cls, _ in labels(dumped(index))} == {"shut"}
        assert dumped(index) == world.fresh(toml)


def test_rows_above_max_class_are_kept_out_of_the_index_again(world, log):
    append(
        log, *dated(claude_call("Odd", {}, "t9"), claude_result("t9", ""), claude_user("quince"))
    )
    toml = SECRET + world.toml
    world.caught_up(toml)
    log.unlink()
    assert len(world.caught_up(toml)) == 7
    with world.index() as index:
        publish(index, index.settings)
        assert len(dumped(index)) == 6
        assert index.status().sums.left_out == 1
        assert dumped(index) == world.fresh()
    stored = b"".join(path.read_bytes() for path in (world.state / "index").iterdir())
    assert b"quince" not in stored


def test_a_log_that_comes_back_is_read_again_and_no_longer_kept_t22(world, log):
    content = log.read_bytes()
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        log.unlink()
        catch_up(index)
        assert kept(world)
        log.write_bytes(content)
        append(log, *dated(claude_user("more")))
        catch_up(index)
        assert kept(world) == []
        assert len(dumped(index)) == len(before) + 1
        assert dumped(index) == world.fresh()
        assert world.overrides == b""


def test_a_log_that_comes_back_lower_keeps_its_label(world, log):
    with world.index() as index:
        catch_up(index)
        log.unlink()
        catch_up(index)
        write(log, *dated(claude_user("clean now")))
        catch_up(index)
        assert labels(dumped(index)) == [("internal", True)]
        assert dumped(index) == world.fresh()


def test_a_log_that_comes_back_lower_before_a_rebuild_keeps_its_label_too(world, log):
    with world.index() as index:
        catch_up(index)
        log.unlink()
        catch_up(index)
    write(log, *dated(claude_user("clean now")))
    (world.state / "index" / "memory.sqlite3").unlink()
    for path in (world.state / "index").glob("*"):
        path.unlink()
    with world.index() as index:
        publish(index, index.settings)
        assert labels(dumped(index)) == [("internal", True)]
        assert kept(world) == []


def test_dropping_removes_the_rows_and_keeps_nothing(world, log):
    toml = '[index]\nvanished = "drop"\n' + world.toml
    with world.index(toml) as index:
        catch_up(index)
        log.unlink()
        catch_up(index)
        assert dumped(index) == [] == world.fresh(toml)
        assert index.logs() == []
    assert kept(world) == []


def test_what_was_kept_is_not_indexed_under_drop_and_is_again_under_keep(world, log):
    world.caught_up()
    log.unlink()
    before = world.caught_up()
    toml = '[index]\nvanished = "drop"\n' + world.toml
    assert world.caught_up(toml) == [] == world.fresh(toml)
    assert world.caught_up() == before == world.fresh()


def test_a_log_that_was_never_read_leaves_nothing(world):
    path = write(world.logs / "a.jsonl")
    world.caught_up()
    path.unlink()
    assert world.caught_up() == []
    assert kept(world) == []


def test_a_log_that_vanished_while_nothing_ran_is_saved_from_an_index_of_other_settings(world, log):
    before = world.caught_up()
    log.unlink()
    toml = SECRET + world.toml
    with world.index(toml) as index:
        assert not index.ready
        publish(index, index.settings)
        assert [json.loads(x)["text"] for x in dumped(index)] == [
            json.loads(x)["text"] for x in before
        ]
        assert dumped(index) == world.fresh(toml)


def test_a_log_rewritten_while_nothing_ran_keeps_its_label_at_another_epoch(world, log):
    world.caught_up()
    write(log, *dated(claude_user("clean now")))
    toml = SECRET + world.toml
    with world.index(toml) as index:
        publish(index, index.settings)
        assert labels(dumped(index)) == [("internal", True)]
        assert dumped(index) == world.fresh(toml)


@pytest.mark.parametrize("point", ["vanished: written", "vanished: committed"])
def test_a_kill_while_it_is_kept_loses_nothing(world, log, point):
    class Kill(BaseException):
        pass

    def kill(reached):
        if reached == point:
            raise Kill

    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        log.unlink()
        points.observe(kill)
        with pytest.raises(Kill):
            catch_up(index)
        points.observe(None)
    assert world.caught_up() == before == world.fresh()
    assert len(kept(world)) == 1


def test_a_kept_file_that_is_not_whole_stops_no_other(world, log):
    write(world.logs / "b.jsonl", *dated(claude_user("other")))
    world.caught_up()
    log.unlink()
    world.caught_up()
    (path,) = kept(world)
    path.write_bytes(path.read_bytes()[:-20])
    for leftover in (world.state / "index").glob("*"):
        leftover.unlink()
    with world.index() as index:
        catch_up(index)
        assert len(dumped(index)) == 5  # the last line of it is lost
        assert index.status().sums.unreadable == 1
        assert dumped(index) == world.fresh()
    path.write_bytes(b"{cut")
    for leftover in (world.state / "index").glob("*"):
        leftover.unlink()
    with world.index() as index:
        catch_up(index)
        assert len(dumped(index)) == 1
        assert index.status().faults == {path.name: "not whole"}


def test_an_empty_vanished_log_holds_its_label(world, log):
    write(log, *dated(claude_call("WebFetch", {"url": "http://x"}, "t"), claude_result("t", "")))
    with world.index() as index:
        catch_up(index)
        log.unlink()
        catch_up(index)
        write(log, *dated(claude_user("clean now")))
        catch_up(index)
        assert labels(dumped(index)) == [("public", True)]


OLD, DAY = 1_000_000_000, 86_400


def aged(path, *, ago_days):
    import time

    seconds = time.time_ns() // 1_000_000_000 - ago_days * DAY
    os.utime(path, (seconds, seconds))
    return seconds


def test_keep_days_ends_live_and_vanished_logs_alike(world):
    toml = "[index]\nkeep_days = 30\n" + world.toml
    new = write(world.logs / "new.jsonl", claude_user("young", uuid="1"))
    old = write(world.logs / "old.jsonl", *dated(claude_user("of January 2026")))
    gone = write(world.logs / "gone.jsonl", *dated(claude_user("gone since")))
    world.caught_up()
    gone.unlink()
    assert len(world.caught_up()) == 3
    assert new.exists()
    assert old.exists()
    lines = world.caught_up(toml)
    assert [json.loads(line)["text"] for line in lines] == ["young"]
    assert lines == world.fresh(toml)
    assert kept(world) == []
    assert len(world.caught_up()) == 2  # the live one is read again when the limit is lifted


def test_a_file_older_than_keep_days_is_not_even_read(world):
    toml = "[index]\nkeep_days = 30\n" + world.toml
    old = write(world.logs / "old.jsonl", claude_user("undated", uuid="1"))
    aged(old, ago_days=40)
    with world.index(toml) as index:
        assert catch_up(index).records == 0
        append(old, claude_user("awake again", uuid="2"))
        catch_up(index)
        assert len(dumped(index)) == 2
        assert dumped(index) == world.fresh(toml)


def test_floors_survive_lines_that_nobody_can_read(world):
    settings = world.settings()
    place = ("claude-code", "/r", "a.jsonl")
    path = world.state / floors.FILE
    floors.append(world.state, place, Label(1, True), settings.classes, "x")
    with path.open("ab") as file:
        file.write(b'{"kind":"forget","source":"x","root":"/r","log":"b"}\n{"kind":"floor","cut')
    floors.append(world.state, place, Label(2, False), settings.classes, "x")
    read = floors.read(world.state, settings.ids, settings.classes)
    assert read.of(settings.ids.log_key(*place)) == Label(2, True)
    assert read.of(1) == Label(0, False)
    assert read.unreadable == 1


def test_a_floor_of_a_class_that_is_gone_is_the_top_class(world):
    settings = world.settings()
    place = ("claude-code", "/r", "a.jsonl")
    (world.state / floors.FILE).write_text(
        '{"kind":"floor","source":"claude-code","root":"/r","log":"a.jsonl","class":"gone","untrusted":false}\n'
    )
    read = floors.read(world.state, settings.ids, settings.classes)
    assert read.of(settings.ids.log_key(*place)) == Label(3, False)


def test_only_names_of_kept_logs_are_keys(tmp_path):
    folder = tmp_path / vanished.FOLDER
    folder.mkdir()
    for name in (
        "0123456789ab.jsonl.gz",
        "0123456789ab.tmp",
        "notes.jsonl.gz",
        "0123456789AB.jsonl.gz",
    ):
        (folder / name).touch()
    assert vanished.keys(tmp_path) == {0x0123456789AB}
    assert vanished.keys(tmp_path / "absent") == set()


def test_a_world_without_logs_is_an_empty_index(user_home):
    world = World(user_home)
    with world.index() as index:
        catch_up(index)
        publish(index, index.settings)
        assert dumped(index) == [] == world.fresh()
        index.publish  # noqa: B018 (looking is the act)
        assert isinstance(NoGate(), NoGate)


def test_native_words_without_a_session_line_are_found_under_the_file_s_name(world):
    write(world.sessions / "deep" / "n.jsonl", *dated(native_owner("hello")))
    lines = world.caught_up()
    assert json.loads(lines[0])["session"] == "n"
    assert json.loads(lines[0])["log"] == "deep/n.jsonl"
