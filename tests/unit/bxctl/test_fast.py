"""The quick parser and click read the same words the same way, or the quick one leaves them to click."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bxctl import fast, shell
from bxctl.grammar import COMMON, TREE, Call
from memoryd.errors import BadRequest
from memoryd.records import KIND_WORDS


def leaves(tree: dict[str, object] = TREE, path: tuple[str, ...] = ()):
    for name, node in tree.items():
        if isinstance(node, dict):
            yield from leaves(node, (*path, name))
        else:
            yield (*path, name), fast.find(node, name)


LEAVES = dict(leaves())
NAMES = sorted(
    {f"--{option.name}" for command in LEAVES.values() for option in (*command.options, *COMMON)}
)
VALUES = ["retry", "3d", "2026-01-31", "5", "0", "101", "owner", "nonsense", "", " ", "-", "--", "-x",
          "--help", "smart", "session", "exclude", "never", "a b", "\udcff", "é"]  # fmt: skip
WORDS = st.sampled_from(VALUES + NAMES) | st.tuples(
    st.sampled_from(NAMES), st.sampled_from(VALUES)
).map("=".join)


def by_click(argv: list[str]) -> Call | str:
    try:
        parsed = shell.parse(argv)
    except BadRequest as error:
        return str(error)
    return parsed if isinstance(parsed, Call) else f"exit {parsed}"


@given(
    before=st.lists(WORDS, max_size=2),
    path=st.sampled_from(sorted(LEAVES)),
    after=st.lists(WORDS, max_size=6),
)
def test_what_the_quick_parser_takes_click_reads_alike(before, path, after):
    argv = [*before, *path, *after]
    quick = fast.parse(argv)
    if quick is not None:
        assert quick == by_click(argv)


@pytest.mark.parametrize(
    "argv",
    [
        ["memory", "search", "retry", "backoff"],
        ["memory", "search", "--json", "--limit", "5", "--kind", "owner", "--kind=assistant", "x"],
        [
            "--json",
            "--socket",
            "agent",
            "memory",
            "--color=never",
            "search",
            "x",
            "--socket=/a/b.sock",
        ],
        ["memory", "search", "x", "--text", "--", "--not-an-option"],
        ["memory", "show", "--before=1", "abc"],
        ["status"],
    ],
)
def test_plain_invocations_never_need_click(argv):
    quick = fast.parse(argv)
    assert quick is not None
    assert quick == by_click(argv)


@pytest.mark.parametrize(
    "argv",
    [[], ["--help"], ["memory"], ["memory", "search"], ["memory", "search", "--help"],
     ["memory", "search", "-n"],
     ["memory", "search", "x", "--limit"], ["memory", "search", "x", "--limit", "many"],
     ["memory", "search", "x", "--text=1"], ["memory", "serach", "x"], ["memory", "show", "a", "b"],
     ["memory", "show"], ["status", "x"], ["--version"], ["--", "status"]],
)  # fmt: skip
def test_everything_else_is_left_to_click(argv):
    assert fast.parse(argv) is None


def test_nearer_global_options_win():
    call = fast.parse(
        ["--socket", "far", "memory", "--socket", "near", "search", "x", "--socket", "nearest"]
    )
    assert call is not None
    assert call.common == {"socket": "nearest", "json": False, "color": None}


def test_kinds_are_those_of_the_records():
    from bxctl.filters import KINDS

    assert tuple(KIND_WORDS) == KINDS


def test_bytes_that_are_no_text_become_text():
    call = fast.parse(["memory", "search", "--project", "caf\udce9", "x"])
    assert call is not None
    assert call.values["project"] == "caf\ufffd"
