import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.index.hits import Row
from memoryd.recall.budget import cut, estimate, within


def row(snippet: str, text: str = "") -> Row:
    return Row(0, 1, 0, 0, 0, 0, None, None, 1, "native", "s", None, text, 0.0, snippet)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("a" * 7, 2), ("a" * 8, 3), ("é", 1)],
)
def test_a_token_is_three_and_a_half_bytes_rounded_up(text, tokens):
    assert estimate(text) == tokens


@given(st.text(max_size=80), st.integers(0, 30))
def test_what_is_cut_fits_and_is_the_start(text, tokens):
    kept = cut(text, tokens)
    assert estimate(kept) <= tokens
    assert text.startswith(kept)
    if estimate(text) <= tokens:
        assert kept == text


def test_rows_are_told_while_they_fit():
    rows = [row("a" * 35), row("b" * 35), row("c" * 35)]
    assert [len(within(rows, tokens)) for tokens in (30, 29, 20, 19)] == [3, 2, 2, 1]


def test_texts_cost_like_snippets():
    assert len(within([row("a" * 35), row("b" * 35, "b" * 35)], 29)) == 1


def test_a_first_row_that_does_not_fit_is_cut_and_says_so():
    (kept,) = within([row("s" * 14, "t" * 700)], 10)
    assert (kept.snippet, kept.text, kept.cut) == ("s" * 14, "t" * 21, True)


def test_nothing_is_within_any_budget():
    assert within([], 50) == []
