import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.index.grams import column, grams, phrase, spans, unspaced, without

LETTERS = "日本語アル가나กขิ่犬猫"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", None),
        ("naïve — “café”", None),
        ("привет", None),
        ("日本語", "日本 本語 語"),
        ("犬", "犬"),
        ("日本, 語学", "日本 本 語学 学"),
        ("テストrun v2日本", "テス スト ト run v2 日本 本"),
        ("ﾛｸﾞ", "ログ グ"),
        ("ที่นี่", "ทน น"),
        ("ア・ル", "アル ル"),
        ("฿", ""),
    ],
)
def test_runs_become_pairs_and_their_last_letter(text, expected):
    assert column(text) == expected


def test_a_phrase_ends_with_a_pair_and_a_lone_letter_may_go_on():
    assert phrase("latin") is None
    assert (phrase("日本語").words, phrase("日本語").begun) == (("日本", "本語"), False)
    assert (phrase("犬").words, phrase("犬").begun) == (("犬",), True)
    assert (phrase("日本 犬").words, phrase("日本 犬").begun) == (("日本", "本", "犬"), True)
    assert (phrase("日本run").words, phrase("日本run").begun) == (("日本", "本", "run"), False)


@given(st.text(LETTERS, min_size=2, max_size=12), st.data())
def test_every_part_of_a_run_is_found_in_it(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    sought = phrase(text[start:end])
    if sought is None:
        return
    held = column(text).split()
    size = len(sought.words)
    runs = [tuple(held[at : at + size]) for at in range(len(held) - size + 1)]
    if sought.begun:
        assert any(
            run[:-1] == sought.words[:-1] and run[-1].startswith(sought.words[-1]) for run in runs
        )
    else:
        assert sought.words in runs


@given(st.text(st.sampled_from([*LETTERS, *"ab1 ./é—"]), max_size=40))
def test_spans_point_at_bytes_and_the_rest_keeps_its_place(text):
    raw = text.encode()
    found = list(spans(text))
    assert [word for *_, word in found] == [gram.text for gram in grams(text)]
    assert all(0 <= start < end <= len(raw) for start, end, _ in found)
    assert all(raw[start:end].decode() for start, end, _ in found)
    if unspaced(text):
        rest = without(text).encode()
        assert len(rest) == len(raw)
        assert not unspaced(rest.decode())
