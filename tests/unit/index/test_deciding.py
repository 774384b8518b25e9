"""The owner's own labels: for a range, for those words, for good; and why rows have the labels they have."""

import json

import pytest

from memoryd import points
from memoryd.errors import BadRequest, Conflict, NotFound
from memoryd.index import Index, catch_up
from memoryd.index.deciding import Wish
from tests.support.families import FAMILIES, put
from tests.support.indexing import World, dumped
from tests.support.logs import (
    append,
    claude_assistant,
    claude_call,
    claude_result,
    claude_user,
    dated,
    write,
)

TOML = '[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n'
LOG = dated(
    claude_user("start"),
    claude_call("Read", {"file_path": "/home/ada/.ssh/id_rsa"}, "t1"),
    claude_result("t1", "made"),
    claude_assistant("the key is short"),
    claude_call("WebFetch", {"url": "http://made.example"}, "t2"),
    claude_result("t2", "made"),
    claude_user("thanks"),
)


@pytest.fixture
def world(user_home):
    world = World(user_home, TOML)
    write(world.logs / "-p" / "s1.jsonl", *LOG)
    return world


def labels(index):
    rows = [json.loads(line) for line in dumped(index)]
    return {row["text"].split("\n")[0]: (row["class"], row["untrusted"]) for row in rows}


LOWERED = Wish(3, 4, "internal", trusted=False, reason="a test key")


def test_case_27_the_owners_word_lowers_one_range_and_every_rebuild_keeps_it(world):
    with world.index() as index:
        catch_up(index)
        done = index.relabel("-p/s1.jsonl", LOWERED)
        assert (done.first, done.last, done.rows) == (3, 4, 2)
        assert labels(index) == {
            "start": ("public", False),
            "Read": ("public", False),
            "the key is short": ("internal", False),
            "WebFetch": ("internal", False),
            "thanks": ("secret", True),
        }
        assert dumped(index) == world.fresh()
        append(world.logs / "-p" / "s1.jsonl", *dated(claude_user("later"), start=9))
        catch_up(index)
        assert labels(index)["later"] == ("secret", True)
        assert dumped(index) == world.fresh()
    with world.index() as index:
        assert labels(index)["the key is short"] == ("internal", False)


def test_case_27_trust_takes_the_flag_away_and_leaves_the_class(world):
    with world.index() as index:
        catch_up(index)
        index.relabel("s1", Wish(trusted=True, reason="I read that page"))
        assert labels(index)["thanks"] == ("secret", False)
        index.relabel("s1", Wish(6, 6, "public", reason="nothing in it"))
        assert labels(index)["thanks"] == ("public", False)
        assert dumped(index) == world.fresh()


def test_case_27_other_words_at_the_same_place_keep_their_label(world):
    with world.index() as index:
        catch_up(index)
        index.relabel("s1", LOWERED)
        other = [*LOG[:3], *dated(claude_assistant("another secret"), start=3), *LOG[4:]]
        write(world.logs / "-p" / "s1.jsonl", *other)
        catch_up(index)
        assert labels(index)["another secret"][0] == "secret"
        assert labels(index)["WebFetch"][0] == "internal"
        assert dumped(index) == world.fresh()


def test_case_27_above_max_class_a_row_comes_in_once_it_is_lowered(user_home):
    world = World(user_home, TOML.replace("secret", "private"))
    write(world.logs / "s1.jsonl", *LOG)
    with world.index() as index:
        catch_up(index)
        assert "the key is short" not in labels(index)
        index.relabel("s1.jsonl", LOWERED)
        assert labels(index)["the key is short"] == ("internal", False)
        assert dumped(index) == world.fresh()


class Killed(BaseException):
    """What a kill is to the code it meets."""


@pytest.mark.parametrize("point", ["relabel: written", "lineage: folded again"])
def test_case_27_after_a_kill_nothing_is_served_under_the_old_label(world, point):
    def kill(reached):
        if reached == point:
            raise Killed

    index = Index(world.settings())
    catch_up(index)
    points.observe(kill)
    try:
        with pytest.raises(Killed):
            index.relabel("s1", LOWERED)
    finally:
        points.observe(None)
        index.close()
    with world.index() as again:  # not caught up: what is there may be served at once
        assert labels(again)["the key is short"] == ("internal", False)
        assert dumped(again) == world.fresh()


def test_case_26_an_override_written_by_hand_holds_from_the_next_start(world):
    with world.index() as index:
        catch_up(index)
        index.relabel("s1", LOWERED)
    path = world.state / "overrides.jsonl"
    entry = json.loads(path.read_text())
    path.write_text("")
    with world.index() as index:
        assert labels(index)["the key is short"] == ("secret", False)
    path.write_text(json.dumps(entry | {"class": "gone"}) + "\n")
    with world.index() as index:
        assert labels(index)["the key is short"] == ("secret", False)
    path.write_text(json.dumps(entry | {"class": "private"}) + "\n")
    with world.index() as index:
        assert labels(index)["the key is short"] == ("private", False)


@pytest.mark.parametrize(
    ("name", "wish", "error"),
    [
        ("nobody", LOWERED, NotFound),
        ("s1", Wish(reason="x"), BadRequest),
        ("s1", Wish(cls="nope", reason="x"), BadRequest),
        ("s1", Wish(trusted=True, reason=" "), BadRequest),
        ("s1", Wish(4, 3, trusted=True, reason="x"), BadRequest),
        ("s1", Wish(2, 2, trusted=True, reason="x"), BadRequest),
        ("s1", Wish(99, trusted=True, reason="x"), BadRequest),
    ],
)
def test_what_cannot_be_relabelled_is_refused_and_nothing_is_written(world, name, wish, error):
    with world.index() as index:
        catch_up(index)
        with pytest.raises(error):
            index.relabel(name, wish)
    assert world.overrides == b""


def test_logs_of_one_name_and_logs_that_are_gone_are_refused(world):
    write(world.logs / "-q" / "s1.jsonl", *dated(claude_user("other"), start=70))
    gone = write(
        world.logs / "-q" / "s9.jsonl", *dated(claude_user("gone", sessionId="s9"), start=80)
    )
    with world.index() as index:
        catch_up(index)
        with pytest.raises(BadRequest, match="2 logs"):
            index.relabel("s1", LOWERED)
        gone.unlink()
        catch_up(index)
        with pytest.raises(Conflict):
            index.relabel("s9", Wish(trusted=True, reason="x"))


def test_every_step_is_told_with_the_rule_behind_it(world):
    with world.index() as index:
        catch_up(index)
        index.relabel("s1", LOWERED)
        told = index.explain("s1")
    assert (told.records, told.cls, told.untrusted) == (7, "secret", True)
    assert [(s.n, s.what, s.cls, s.untrusted) for s in told.steps] == [
        (-1, "the start", "public", False),
        (2, "result of Read", "secret", False),
        (5, "result of WebFetch", "secret", True),
    ]
    assert [(b.rule, b.cls) for b in told.steps[1].because] == [
        ("coding: local files", "internal"),
        ("path rule '*/.ssh/*'", "secret"),
        ("path rule '*/id_rsa*'", "secret"),
    ]
    assert [(o.first, o.last, o.cls, o.rows) for o in told.overrides] == [(3, 4, "internal", 2)]


def test_what_other_logs_say_is_told_with_their_names(user_home):
    world = World(user_home, TOML)
    for name, content in {**FAMILIES["native"](), **FAMILIES["sub_agents"]()}.items():
        put(world.logs, world.sessions, name, content)
    with world.index() as index:
        catch_up(index)
        child, forged, main = (
            index.explain(name) for name in ("b.jsonl", "f.jsonl", "-p/s1.jsonl")
        )
    assert [(s.what, s.because[0].rule) for s in child.steps[1:2]] == [
        ("where it starts from", "a.jsonl after record 3")
    ]
    assert forged.steps[1].because[0].rule == "g.jsonl after record 1"
    assert [s.because[0].rule for s in main.steps if s.what == "a sub-agent's own log"] == [
        "-p/s1/subagents/agent-aa.jsonl"
    ]


def test_every_step_of_any_family_has_a_reason_that_explains_it(user_home):
    world = World(user_home, TOML)
    for make in FAMILIES.values():
        for name, content in make().items():
            put(world.logs, world.sessions, name, content)
    classes = ("public", "internal", "private", "secret")
    with world.index() as index:
        catch_up(index)
        for known in index.logs():
            told = index.explain(f"{known.place.root}/{known.place.log}")
            level, flag = 0, False
            for step in told.steps:
                level = max([level, *(classes.index(b.cls) for b in step.because)])
                flag = flag or any(b.untrusted for b in step.because)
                assert (step.cls, step.untrusted) == (classes[level], flag), (known.place, step)
            assert (told.cls, told.untrusted) == (classes[known.label.level], known.label.untrusted)
