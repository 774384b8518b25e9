"""Cases of labels that need an index: what is left out, glued lines, torn lines, memoryd's own answers."""

import json

import pytest

from memoryd.index import Counts, catch_up
from tests.support.indexing import World, dumped
from tests.support.logs import (
    claude_assistant,
    claude_call,
    claude_result,
    claude_user,
    codex_call,
    codex_meta,
    codex_result,
    codex_user,
    dated,
    encoded,
    write,
)

TOML = '[index]\nmax_class = "{most}"\n[[source]]\npath = "{{logs}}"\n'
SECRET = dated(
    claude_user("start"),
    claude_call("Read", {"file_path": "/home/ada/.ssh/id_rsa"}, "t1"),
    claude_result("t1", "made"),
    claude_assistant("the key is short"),
    claude_call("Bash", {"command": "ls"}, "t2"),
)


def labels(lines):
    rows = [json.loads(line) for line in lines]
    return {row["text"].split("\n")[0]: (row["class"], row["untrusted"]) for row in rows}


def world_of(user_home, most="secret", more=""):
    return World(user_home, TOML.format(most=most) + more)


def test_case_1_2_a_secret_result_is_nowhere_and_what_follows_is_left_out_but_counted(user_home):
    world = world_of(user_home)
    write(world.logs / "a.jsonl", *SECRET)
    assert labels(world.caught_up()) == {
        "start": ("public", False),
        "Read": ("public", False),
        "the key is short": ("secret", False),
        "Bash": ("secret", False),
    }
    capped = '[index]\nmax_class = "private"\n[[source]]\npath = "{logs}"\n'
    again = World(user_home / "again", capped) if (user_home / "again").mkdir() is None else None
    write(again.logs / "a.jsonl", *SECRET)
    with again.index() as index:
        assert catch_up(index) == Counts(records=5, indexed=2, left_out=2)
        assert sorted(labels(dumped(index))) == ["Read", "start"]
        assert b"short" not in b"".join(dumped(index))


def test_case_9_two_objects_on_one_line_are_both_read(user_home):
    world = world_of(user_home)
    one, two, three = (
        encoded(line).rstrip(b"\n") for line in dated(*map(claude_user, ("a", "b", "c")))
    )
    (world.logs / "a.jsonl").write_bytes(one + two + b"\n" + three + b"\n")
    with world.index() as index:
        assert catch_up(index) == Counts(records=3, indexed=3)
        assert labels(dumped(index)) == dict.fromkeys("abc", ("public", False))


@pytest.mark.parametrize("cut", [1, 40, -2, -1])
def test_case_11_a_torn_last_line_that_is_completed_later_is_read_once(user_home, cut):
    world = world_of(user_home)
    whole = encoded(*SECRET)
    last = encoded(SECRET[-1])
    with world.index() as index:
        (world.logs / "a.jsonl").write_bytes(whole[: -len(last)] + last[:cut])
        catch_up(index)
        (world.logs / "a.jsonl").write_bytes(whole)
        catch_up(index)
        assert dumped(index) == world.fresh()
        assert labels(dumped(index))["Bash"] == ("secret", False)


SOCKET = '[[socket]]\nname = "agent"\nclearance = "internal"\ntools = ["recall"]\n'


@pytest.mark.parametrize(
    ("tool", "args", "label"),
    [
        ("mcp__memoryd-agent__recall", {"query": "x"}, ("internal", True)),
        ("mcp__memoryd-nobody__recall", {"query": "x"}, ("private", True)),
        ("Bash", {"command": "bxctl memory search x"}, ("private", True)),
        ("Bash", {"command": "python -m memoryd --help"}, ("private", True)),
        ("Bash", {"command": "cat $MEMORYD_HOME/index/memory.sqlite3"}, ("private", True)),
        ("Bash", {"command": "ls"}, ("internal", False)),
    ],
)
def test_what_memoryd_itself_may_have_told_a_foreign_session_raises_it(
    user_home, tool, args, label
):
    world = world_of(user_home, "private", SOCKET)
    write(world.logs / "a.jsonl", *dated(claude_call(tool, args, "t1"), claude_result("t1", "made"),
                                         claude_user("after")))  # fmt: skip
    assert labels(world.caught_up())["after"] == label


def test_what_memoryd_may_have_told_a_codex_session_raises_it(user_home):
    world = world_of(user_home, "private", SOCKET)
    call = codex_call("shell", {"command": ["bash", "-lc", "bxctl memory search x"]}, "k1")
    write(
        world.logs / "c.jsonl",
        *dated(codex_meta("c1"), call, codex_result("k1", "made"), codex_user("after")),
    )
    assert labels(world.caught_up())["after"] == ("private", True)


@pytest.mark.parametrize(
    "path", ["/srv/App/.ENV", "/srv/x/../app/.env", "/srv//app/./.env", "app\\.env"]
)
def test_path_rules_see_through_case_and_dots(user_home, path):
    world = world_of(user_home)
    write(world.logs / "a.jsonl", *dated(claude_call("Read", {"file_path": path}, "t1"),
                                         claude_result("t1", "made"), claude_user("after")))  # fmt: skip
    assert labels(world.caught_up())["after"] == ("secret", False)


def test_in_strict_every_file_and_every_shell_is_untrusted(user_home):
    world = world_of(user_home, "secret", '[labels]\nprofile = "strict"\n')
    for name, tool, args in (
        ("a", "Read", {"file_path": "/srv/a"}),
        ("b", "Bash", {"command": "ls"}),
    ):
        write(world.logs / f"{name}.jsonl", *dated(claude_call(tool, args, "t1", sessionId=name),
              claude_result("t1", "made", sessionId=name), claude_user(name, sessionId=name)))  # fmt: skip
    found = labels(world.caught_up())
    assert found["a"] == found["b"] == ("internal", True)
