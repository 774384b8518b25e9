"""Logs that start from other logs, and hear from them: what each row's label is, and when nothing is told."""

import json

import pytest

from memoryd.index import Budget, catch_up
from tests.support import families
from tests.support.families import FAMILIES, after, agent, of, put, secret, task, web
from tests.support.indexing import World, dumped
from tests.support.logs import (
    append,
    claude_assistant,
    claude_call,
    claude_result,
    claude_user,
    codex_meta,
    codex_user,
    dated,
    encoded,
    native_owner,
    native_result,
    native_session,
    write,
)

TOML = '[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n'


@pytest.fixture
def world(user_home):
    return World(user_home, TOML)


def laid(world, family):
    """Write a family's files, all of them."""
    for name, content in family.items():
        put(world.logs, world.sessions, name, content)


def labels(lines, log):
    """Return class and flag of each row of a log, by its text's first line."""
    rows = [json.loads(line) for line in lines]
    return {
        row["text"].split("\n")[0]: (row["class"], row["untrusted"])
        for row in rows
        if row["log"].endswith(log)
    }


def grown(world):
    """Return the dump of an index that caught up, after a look that a rebuild says the same."""
    lines = world.caught_up()
    assert lines == world.fresh()
    return lines


SECRET, TAINTED = ("secret", False), ("secret", True)
LOW, PUBLIC = ("public", False), ("public", True)


def test_case_19_a_child_read_before_its_parent_waits_and_has_the_same_labels(world):
    family = FAMILIES["native"]()
    put(world.logs, world.sessions, "native/c.jsonl", family["native/c.jsonl"])
    put(world.logs, world.sessions, "native/b.jsonl", family["native/b.jsonl"])
    put(world.logs, world.sessions, "native/a.jsonl", family["native/a.jsonl"])
    lines = grown(world)
    assert labels(lines, "b.jsonl")["after the private one"] == ("private", False)
    assert labels(lines, "c.jsonl")["after both"] == ("private", True)


def test_case_19_a_child_is_held_while_its_parent_is_not_read_that_far(world):
    family = FAMILIES["native"]()
    child = put(world.logs, world.sessions, "native/b.jsonl", family["native/b.jsonl"])
    parent = put(world.logs, world.sessions, "native/a.jsonl", family["native/a.jsonl"])
    with world.index() as index:
        index.changed([child, parent])
        index.catch_up(Budget(bytes=1, seconds=0.0))
        assert (dumped(index), index.status().held) == ([], 1)
        catch_up(index)
        assert index.status().held == 0
        assert labels(dumped(index), "b.jsonl")["after the private one"] == ("private", False)


def test_case_20_a_missing_parent_is_the_top_until_it_turns_up(world):
    write(world.sessions / "e.jsonl", *dated(
        native_session("e", parent={"log": "late-one-x.jsonl", "n": 1}), native_owner("child")))  # fmt: skip
    with world.index() as index:
        catch_up(index)
        assert labels(dumped(index), "e.jsonl") == {"child": TAINTED}
        write(
            world.sessions / "late-one-x.jsonl", *dated(native_session("late"), native_owner("low"))
        )
        catch_up(index)
        assert labels(dumped(index), "e.jsonl") == {"child": LOW}
        assert dumped(index) == world.fresh()


def test_case_20_above_max_class_a_child_of_nobody_leaves_no_row(user_home):
    world = World(user_home, TOML.replace("secret", "private"))
    write(world.sessions / "e.jsonl", *dated(
        native_session("e", parent={"log": "late-one-x.jsonl", "n": 1}), native_owner("child")))  # fmt: skip
    assert grown(world) == []


def test_case_21_what_follows_a_sub_agents_answer_has_the_label_it_ended_with(world):
    laid(world, FAMILIES["sub_agents"]())
    lines = grown(world)
    main = labels(lines, "s1.jsonl")
    assert (main["made: start"], main["after the key"]) == (LOW, TAINTED)
    assert labels(lines, "agent-aa.jsonl") == {
        "made prompt for aa": LOW,
        "Read": LOW,
        "key": SECRET,
    }
    assert labels(lines, "agent-bb.jsonl")["made prompt for bb"] == TAINTED


def test_case_21_a_sub_agent_that_goes_on_after_its_answer_raises_its_parent(world):
    main = of("s1", claude_user("start"), *task("k1", "aa"), claude_assistant("launched"))
    write(world.logs / "s1.jsonl", *main)
    path = write(world.logs / "s1/subagents/agent-aa.jsonl", *agent("s1", "aa"))
    with world.index() as index:
        catch_up(index)
        assert labels(dumped(index), "s1.jsonl")["launched"] == ("internal", True)
        append(path, *of("s1", *secret("q"), start=30, isSidechain=True))
        catch_up(index)
        assert labels(dumped(index), "s1.jsonl")["launched"] == TAINTED
        assert dumped(index) == world.fresh()


def test_case_21_an_answer_is_never_read_before_the_sub_agent_that_gave_it(world):
    main = write(
        world.logs / "s1.jsonl",
        *of("s1", claude_user("start"), *task("k1", "aa"), claude_user("on")),
    )
    with world.index() as index:
        write(world.logs / "s1/subagents/agent-aa.jsonl", *agent("s1", "aa", *secret("q")))
        index.changed([main])  # and nobody said a word of the other
        index.catch_up(Budget())
        assert labels(dumped(index), "s1.jsonl")["on"] == TAINTED


def test_case_21_an_answer_that_names_nobody_may_be_any_sub_agents(world):
    answer = [claude_call("Task", {"prompt": "x"}, "k1"), claude_result("k1", "made")]
    write(world.logs / "s1.jsonl", *of("s1", claude_user("start"), *answer, claude_user("on")))
    write(world.logs / "s1/subagents/agent-aa.jsonl", *agent("s1", "aa", *secret("q")))
    assert labels(grown(world), "s1.jsonl")["on"] == TAINTED


def test_case_21_what_is_said_to_a_running_sub_agent_reaches_it(world):
    said = [claude_call("SendMessage", {"to": "aa", "message": "the key is made"}, "k9")]
    main = of("s1", claude_user("start"), *task("k1", "aa"), *secret("k2"), *said)
    write(world.logs / "s1.jsonl", *main)
    write(
        world.logs / "s1/subagents/agent-aa.jsonl",
        *agent("s1", "aa", claude_user("the key is made")),
    )
    assert labels(grown(world), "agent-aa.jsonl")["the key is made"] == TAINTED


def test_case_22_logs_that_start_from_each_other_are_both_the_top(world):
    laid(world, FAMILIES["native"]())
    lines = grown(world)
    assert labels(lines, "f.jsonl") == {"forged one": TAINTED}
    assert labels(lines, "g.jsonl") == {"forged two": TAINTED}
    assert labels(lines, "d.jsonl") == {"beyond": TAINTED}


def test_case_23_a_copied_history_is_one_row_a_record(world):
    laid(world, FAMILIES["resumed"]())
    rows = [json.loads(line) for line in grown(world)]
    texts = [row["text"].split("\n")[0] for row in rows]
    assert sorted(texts) == sorted({*texts})
    assert {row["log"] for row in rows if row["text"] == "made: one"} == {"-p/s1.jsonl"}


def test_case_23_a_row_has_the_join_of_its_copies_whatever_was_read_first(world):
    first = of("s1", claude_user("one"), claude_user("two"))
    tail = after(first[-1], *secret("k"), claude_assistant("three"), session="s1")
    odd = [*secret("k0"), *families.copied(first, "s2")]  # a copy that a key was read before
    write(world.logs / "a.jsonl", *first, *tail)
    write(world.logs / "b.jsonl", *families.copied(first[:1], "s2"), *of("s2", *odd[:2]), *odd[3:])
    lines = grown(world)
    assert labels(lines, "a.jsonl") == {"one": LOW, "two": SECRET, "Read": LOW, "three": SECRET}
    assert labels(lines, "b.jsonl") == {"Read": LOW}


def test_case_16_a_session_resumed_from_its_compaction_starts_with_what_was_compacted(world):
    laid(world, FAMILIES["compacted"]())
    lines = grown(world)
    assert labels(lines, "s1.jsonl")["made: the summary"] == SECRET
    assert labels(lines, "s2.jsonl") == {"elsewhere": SECRET}


def test_a_fork_that_holds_its_history_whole_needs_no_parent(world):
    made = FAMILIES["resumed"]()
    put(world.logs, world.sessions, "-p/s3.jsonl", made["-p/s3.jsonl"])
    write(world.logs / "c.jsonl", *dated(
        codex_meta("c1", forked_from_id="c0"), codex_meta("c0"), codex_user("forked")))  # fmt: skip
    lines = grown(world)
    assert labels(lines, "s3.jsonl")["six"] == PUBLIC
    assert labels(lines, "c.jsonl") == {"forked": LOW}


def test_a_record_copied_late_is_no_row_of_its_own_however_the_log_grew(world):
    first = of("s1", claude_user("one"), claude_assistant("two"))
    own = after(first[0], claude_user("three"), session="s2")
    copy = families.forked(first[1:], "s2", rename=True)
    write(world.logs / "s1.jsonl", *first)
    write(world.logs / "s2.jsonl", *own)
    with world.index() as index:
        catch_up(index)
        append(world.logs / "s2.jsonl", *copy)
        catch_up(index)
        assert dumped(index) == world.fresh()
        assert labels(dumped(index), "s2.jsonl") == {"three": LOW}


def test_a_fork_without_its_history_starts_where_its_parent_ended(world):
    laid(world, FAMILIES["codex"]())
    lines = grown(world)
    assert labels(lines, "c2.jsonl") == {"fork without": TAINTED}
    assert labels(lines, "c3.jsonl")["prompt"] == LOW
    assert labels(lines, "c4.jsonl")["waited"] == TAINTED
    assert labels(lines, "c6.jsonl") == {"orphan": TAINTED}


def test_a_log_rewritten_lower_does_not_take_those_that_start_from_it_down(world):
    family = FAMILIES["native"]()
    laid(world, {name: family[name] for name in ("native/a.jsonl", "native/b.jsonl")})
    with world.index() as index:
        catch_up(index)
        write(world.sessions / "a.jsonl", *dated(native_session("a"), *[native_owner("clean")] * 6))
        catch_up(index)
        assert labels(dumped(index), "b.jsonl")["after the private one"] == ("private", True)
        assert dumped(index) == world.fresh()


def test_a_vanished_parent_still_says_what_it_was(world):
    first = of("s1", claude_user("one"), *secret("k"), claude_assistant("two"))
    parent = write(world.logs / "s1.jsonl", *first)
    write(
        world.logs / "s2.jsonl",
        *families.copied(first, "s2"),
        *after(first[-1], claude_user("three"), session="s2"),
    )
    write(world.logs / "s3.jsonl", *after(first[0], claude_user("four"), session="s3"))
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        parent.unlink()
        catch_up(index)
        assert dumped(index) == before
        assert dumped(index) == world.fresh()
        assert labels(before, "s2.jsonl") == {"three": SECRET}
        assert labels(before, "s3.jsonl") == {"four": LOW}


def test_a_parent_that_is_dropped_takes_its_children_to_the_top(user_home):
    world = World(user_home, TOML.replace("[index]", '[index]\nvanished = "drop"'))
    first = of("s1", claude_user("one"))
    parent = write(world.logs / "s1.jsonl", *first)
    write(world.logs / "s3.jsonl", *after(first[0], claude_user("four"), session="s3"))
    with world.index() as index:
        catch_up(index)
        assert labels(dumped(index), "s3.jsonl") == {"four": LOW}
        parent.unlink()
        catch_up(index)
        assert labels(dumped(index), "s3.jsonl") == {"four": TAINTED}
        assert dumped(index) == world.fresh()


def test_the_source_of_a_parent_matters_and_nothing_it_does_not_name(world):
    write(world.logs / "s1.jsonl", *of("s1", *web("k")))
    write(
        world.sessions / "n.jsonl",
        *dated(native_session("s1"), native_result("x", "y"), native_owner("n")),
    )
    write(world.logs / "agent-zz.jsonl", *agent("s9", "zz", claude_user("of another session")))
    assert labels(grown(world), "agent-zz.jsonl")["of another session"] == TAINTED


def test_a_log_without_relations_stores_nothing_of_others(world):
    write(world.logs / "c.jsonl", *dated(codex_meta("c1"), codex_user("one")))
    with world.index() as index:
        catch_up(index)
        connection = index._following.connection
        assert connection.execute("SELECT count(*) FROM anchor").get == 0
        assert connection.execute("SELECT heard, decided FROM log").fetchall() == [(b"", b"")]


def test_a_familys_bytes_are_whole_lines():
    for make in FAMILIES.values():
        for content in make().values():
            assert content.endswith(b"\n")
            assert encoded(*map(json.loads, content.splitlines())) == content
