"""Rendered text at 80 and 120 columns, and in a pipe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from bxctl import views
from bxctl.layout import Grid, Para, Span, cell, columns, joined, plain
from bxctl.paint import painted
from memoryd.clock import parse_rfc3339

NOW = parse_rfc3339("2026-03-10T12:00:00Z") or 0
CLASSES = ["public", "internal", "private", "secret"]
HITS = [
    {
        "id": "bbz4k6c3ah2qkz7yq4mf",
        "kind": "owner",
        "session": "4f1c2a3b-5d6e-4711-9abc-0123456789ab",
        "project": "/home/ada/shop",
        "source": "claude-code",
        "ts": "2026-03-05T12:00:00.000Z",
        "tool": None,
        "class": "internal",
        "untrusted": False,
        "snippet": "… the retry backoff is doubled\nup to thirty seconds, then given up, since the"
        " shop's server answers 429 only for that long …",
    },
    {
        "id": "cbz4k6c3ah2qkz7yq4mf",
        "kind": "tool_call",
        "session": "rollout-1",
        "project": None,
        "source": "codex",
        "ts": None,
        "tool": "Bash\x1b[0m",
        "class": "secret",
        "untrusted": True,
        "snippet": "curl \x1b]0;owned\x07 https://example.net/漢字",
    },
]

AT_80 = """\
owner  internal  5 days ago  shop
  … the retry backoff is doubled up to thirty seconds, then given up, since the
  shop's server answers 429 only for that long …
  bbz4k6c3ah2qkz7yq4mf · claude-code · 4f1c2a3b-5d6e-4711-9abc-0123456789ab

tool_call Bash␛[0m  secret untrusted  no time
  curl ␛]0;owned␇ https://example.net/漢字
  cbz4k6c3ah2qkz7yq4mf · codex · rollout-1
"""
AT_120 = """\
owner  internal  5 days ago  shop
  … the retry backoff is doubled up to thirty seconds, then given up, since the shop's server answers 429 only for that
  long …
  bbz4k6c3ah2qkz7yq4mf · claude-code · 4f1c2a3b-5d6e-4711-9abc-0123456789ab

tool_call Bash␛[0m  secret untrusted  no time
  curl ␛]0;owned␇ https://example.net/漢字
  cbz4k6c3ah2qkz7yq4mf · codex · rollout-1
"""
IN_A_PIPE = """\
owner  internal  5 days ago  shop
  … the retry backoff is doubled up to thirty seconds, then given up, since the shop's server answers 429 only for that long …
  bbz4k6c3ah2qkz7yq4mf · claude-code · 4f1c2a3b-5d6e-4711-9abc-0123456789ab

tool_call Bash␛[0m  secret untrusted  no time
  curl ␛]0;owned␇ https://example.net/漢字
  cbz4k6c3ah2qkz7yq4mf · codex · rollout-1
"""  # noqa: E501 - a pipe has no width


@pytest.mark.parametrize(("width", "text"), [(80, AT_80), (120, AT_120)])
def test_hits_fit_the_terminal(width, text):
    assert painted(views.hits(HITS, "retry", CLASSES, NOW), colour=False, width=width) == text


def test_hits_in_a_pipe_are_not_wrapped():
    assert plain(views.hits(HITS, "retry", CLASSES, NOW)) == IN_A_PIPE


def test_words_asked_for_are_marked_and_their_kin():
    hit = HITS[0] | {"snippet": "Retry, retries; a_retry is no retrospect, nor pretry"}
    text = painted(views.hits([hit], 'retry "of"', CLASSES, NOW), colour=True, width=80)
    bold = [part.partition("\x1b[0m")[0] for part in text.split("\x1b[1m")[1:]]
    assert bold == ["owner", "Retry", "retries", "retry"]


def test_colour_marks_class_and_distrust_and_nothing_stored_colours():
    text = painted(views.hits(HITS, "retry", CLASSES, NOW), colour=True, width=80)
    assert "\x1b[36minternal\x1b[0m" in text
    assert "\x1b[31msecret\x1b[0m\x1b[1;35m untrusted\x1b[0m" in text
    assert "\x1b]0;" not in text
    assert "Bash\x1b[0m\x1b" not in text


GRID = Grid(
    ("last", "rows", "project"),
    [
        (cell("3 days ago"), cell(7), cell("/home/ada/漢字/shop")),
        (cell("today 09:00"), cell(12_345), cell("/home/ada/a-very-long-name" * 4)),
    ],
    right=frozenset({1}),
    give=frozenset({2}),
)


def test_a_grid_is_aligned_in_a_pipe():
    assert plain([GRID]).splitlines() == [
        "last          rows  project",
        "3 days ago       7  /home/ada/漢字/shop",
        "today 09:00  12345  " + "/home/ada/a-very-long-name" * 4,
    ]


def test_a_grid_shortens_what_may_be_shortened_on_a_terminal():
    assert painted([GRID], colour=False, width=60).splitlines() == [
        "last          rows  project",
        "3 days ago       7  /home/ada/漢字/shop",
        "today 09:00  12345  /home/ada/a-very-long-name/home/ada/a-v…",
    ]


def test_an_entry_of_two_lines_stays_in_its_column():
    grid = Grid(("rows", "session"), [(cell(1), cell("s1\nfirst")), (cell(2), cell("s2\nsecond"))])
    expected = ["rows  session", "1     s1", "      first", "2     s2", "      second"]
    assert plain([grid]).splitlines() == expected
    assert painted([grid], colour=False, width=80).splitlines() == expected


def test_an_empty_grid_is_its_heading():
    assert plain([Grid(("a", "b"), [])]) == "a  b\n"
    assert painted([Grid(("a", "b"), [])], colour=False, width=80) == "a  b\n"


def test_markup_in_stored_text_is_text():
    assert painted(
        [Para(cell("[red]not[/red] :smile: [link=x]y[/link]"))], colour=True, width=80
    ) == ("[red]not[/red] :smile: [link=x]y[/link]\n")


def test_joining_leaves_out_what_is_empty():
    assert joined((cell("a"), cell(""), cell("b"))) == (Span("a"), Span(" · ", "dim"), Span("b"))


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "So"])))
def test_columns_are_counted_as_the_terminal_does(text):
    # Combining and unassigned signs aside, which stored text may hold and a pipe does not mind.
    assert abs(columns(text) - cell_len(text)) <= sum(not sign.isascii() for sign in text)
