"""Check 10: what each command means for a text (cases 50 and 51)."""

import pytest

from memoryd.errors import BadRequest, CheckFailed
from memoryd.notes import commands

ODD = "one\ftwo\u2028three\r\nfour\x85\nfive"


@pytest.mark.parametrize(
    ("text", "old", "check", "lines"),
    [
        ("a\nb\n", "", "args", None),
        ("", "", "args", None),
        ("a\nb\n", "c", "no_match", None),
        ("x\ny\nx\n", "x", "multiple", [1, 3]),
        ("aaa", "aa", "multiple", [1, 1]),
        ("a\n" * 30, "a", "multiple", list(range(1, 21))),
    ],
)
def test_case_50_str_replace_wants_exactly_one_place_n03(text, old, check, lines):
    with pytest.raises((BadRequest, CheckFailed)) as refused:
        commands.str_replace(text, old, "new")
    assert refused.value.data["check"] == check
    assert refused.value.data.get("lines") == lines


def test_str_replace_changes_that_place_alone():
    edited = commands.str_replace("a\nb.*\nc\n", "b.*", r"\g<0>\1")
    assert edited.text == "a\n\\g<0>\\1\nc\n"
    assert commands.snippet(edited) == "     1\ta\n     2\t\\g<0>\\1\n     3\tc"


@pytest.mark.parametrize("at", range(4))
def test_case_51_insert_counts_lf_only_and_changes_no_other_byte(at):
    edited = commands.insert(ODD + "\n", at, "NEW")
    parts = (ODD + "\n").split("\n")[:-1]
    parts.insert(at, "NEW")
    assert edited.text == "".join(part + "\n" for part in parts)


@pytest.mark.parametrize("at", [-1, 4, 10**9])
def test_insert_outside_names_the_valid_range(at):
    with pytest.raises(CheckFailed) as refused:
        commands.insert("a\nb\nc", at, "x")
    assert refused.value.data == {"check": "range", "valid": "0 to 3"}


def test_insert_after_a_line_without_its_end_ends_it():
    assert commands.insert("a", 1, "b").text == "a\nb\n"


def test_insert_of_nothing_changes_nothing():
    assert commands.insert("a", 1, "").text == "a"


@pytest.mark.parametrize("asked", [(0, 1), (2, 1), (1, 4), (-1, 2), (4, -1), (1, -2)])
def test_a_range_that_is_none_is_refused_not_answered_with_nothing(asked):
    with pytest.raises(CheckFailed) as refused:
        commands.page("a\nb\nc\n", asked)
    assert refused.value.data["check"] == "range"


def test_a_page_is_numbered_and_tells_where_to_go_on():
    page = commands.page("a\nb\nc\n", (2, -1))
    assert (page.text, page.first, page.last, page.lines, page.next) == (
        "     2\tb\n     3\tc",
        2,
        3,
        3,
        None,
    )
    long = commands.page("x\n" * 1_000)
    assert (long.last, long.next) == (400, 401)
    wide = commands.page(("y" * 3_000 + "\n") * 10)
    assert (wide.last, wide.next) == (5, 6)


def test_an_empty_note_has_an_empty_page():
    page = commands.page("")
    assert (page.text, page.lines, page.next) == ("", 0, None)
