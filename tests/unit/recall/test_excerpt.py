import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.index.figures import Term
from memoryd.recall.excerpt import _MOST_READ, _READ, Sought, excerpt, sought, tidy


def tokens(text: bytes) -> list[tuple[int, int, str]]:
    return [
        (*found.span(), found[0].decode().lower()) for found in re.finditer(rb"[a-zA-Z\d]+", text)
    ]


def shown(text: str, width: int = 8, **words: float) -> str:
    return excerpt(text, Sought(words, {}), width, tokens)


def test_a_short_text_is_shown_whole():
    assert shown("say: needle, here!", needle=1) == "say: needle, here!"


def test_a_long_one_around_its_words_with_marks_where_it_was_cut():
    text = "a " * 50 + "the needle is here " + "b " * 50
    assert shown(text, needle=1) == "…a the needle is here b b b…"


def test_a_text_is_marked_only_where_it_goes_on():
    assert shown("needle " + "b " * 50, 4, needle=1) == "needle b b b…"
    assert shown("b " * 50 + "needle", 4, needle=1) == "…b b b needle"


def test_the_stretch_with_most_of_the_words_is_shown():
    text = "red " * 9 + "x " * 30 + "red and blue " + "x " * 30 + "blue " * 9
    assert "red and blue" in shown(text, 6, red=1, blue=1)


def test_rarer_words_are_worth_more_than_many_common_ones():
    text = "to be or not " + "x " * 30 + "merger" + " y" * 30
    assert "merger" in shown(text, 6, to=0.1, be=0.1, merger=3)


def test_a_word_far_into_a_text_is_found_and_one_too_far_not_looked_for():
    text = "x " * _READ + "needle" + " y" * 20
    assert "needle" in shown(text, needle=1)
    text = "begin " + "x " * _MOST_READ + "needle"
    assert shown(text, 4, needle=1) == "begin x x x…"


def test_a_text_without_any_of_the_words_shows_its_start():
    assert shown("one two three four", 2, absent=1) == "one two…"
    assert shown("--- !!", 4, absent=1) == ""


def test_prefixes_count():
    text = "x " * 30 + "deployment " + "y " * 30
    assert "deployment" in excerpt(text, Sought({}, {"deploy": 1.0}), 6, tokens)


def test_a_phrase_shares_its_weight_out_and_a_prefix_is_its_last_word():
    found = sought(
        [Term('"a b"', ("a", "b")), Term('"a c" *', ("a", "c"), prefix=True), Term('"b"', ("b",))],
        [4.0, 1.0, 3.0],
    )
    assert found == Sought({"a": 2.0, "b": 3.0}, {"c": 0.5})


def test_runs_that_no_eye_can_follow_are_shortened():
    assert tidy("see " + "A" * 500 + " there") == "see " + "A" * 64 + "… there"
    assert tidy("a" + " " * 500 + "b\n  c") == "a b\n  c"
    assert len(tidy("many words " * 1_000)) == 1_500


def test_control_characters_stay_text():
    assert shown("\x1b[31mneedle\x07", needle=1) == "\x1b[31mneedle\x07"


@given(
    st.lists(st.sampled_from(("needle", "hay", "é", "\n.", "--")), max_size=60).map(" ".join),
    st.integers(1, 12),
)
def test_what_is_shown_is_of_the_text_and_no_wider(text, width):
    found = shown(text, width, needle=1).removeprefix("…").removesuffix("…")
    assert found in tidy(text)
    assert len(tokens(found.encode())) <= width
    if "needle" in text:
        assert "needle" in found


@pytest.mark.parametrize("length", range(_READ - 3, _READ + 4))
def test_pieces_of_letters_with_many_bytes_are_cut_between_letters(length):
    assert "\ufffd" not in shown("é" * length + " needle " + "é" * 50, needle=1)
