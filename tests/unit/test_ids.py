"""Ids and cursors: reversible for the key's owner, meaningless and unforgeable for anyone else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.ids import MAX_BLOCK, MAX_N, Ids

IDS = Ids(b"k" * 32)
OTHER = Ids(b"o" * 32)
places = st.tuples(st.integers(0, (1 << 48) - 1), st.integers(0, MAX_N), st.integers(0, MAX_BLOCK))


@given(places)
def test_an_id_names_its_place_and_only_under_its_key(place: tuple[int, int, int]) -> None:
    text = IDS.encode(*place)
    assert len(text) == 20
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyz234567")
    assert IDS.decode(text) == place
    assert OTHER.decode(text) != place


@given(places)
def test_neighbouring_records_share_no_more_letters_than_chance(
    place: tuple[int, int, int],
) -> None:
    log, n, block = place
    one, two = IDS.encode(log, n, block), IDS.encode(log, n ^ 1, block)
    assert sum(a == b for a, b in zip(one, two, strict=True)) < 10


@given(st.text(max_size=40))
def test_text_that_is_no_id_is_refused_without_an_error(text: str) -> None:
    found = IDS.decode(text)
    assert found is None or IDS.encode(*found) == text


@pytest.mark.parametrize(
    "place", [(1 << 48, 0, 0), (0, MAX_N + 1, 0), (0, 0, MAX_BLOCK + 1), (-1, 0, 0)]
)
def test_a_place_beyond_the_bits_is_refused(place: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="no id"):
        IDS.encode(*place)


def test_log_keys_frame_their_parts() -> None:
    assert IDS.log_key("a", "b/c", "d") != IDS.log_key("a", "b", "c/d")
    assert IDS.log_key("a", "b", "c") != OTHER.log_key("a", "b", "c")
    assert 0 <= IDS.log_key("x", "\udc80", "é") < 1 << 48


@given(st.binary(max_size=64), st.binary(max_size=16))
def test_a_sealed_text_opens_only_whole_and_with_what_it_was_bound_to(
    content: bytes, bound: bytes
) -> None:
    text = IDS.seal(content, bound)
    assert IDS.open(text, bound) == content
    assert IDS.open(text, bound + b"x") is None
    assert OTHER.open(text, bound) is None
    flipped = ("B" if text[0] != "B" else "C") + text[1:]
    assert IDS.open(flipped, bound) is None


@given(st.text(max_size=60))
def test_any_other_text_opens_to_nothing(text: str) -> None:
    assert IDS.open(text, b"") is None


def test_a_log_has_one_key_whatever_logs_were_named_before():
    many = Ids(b"k" * 32)
    for number in range(100):
        many.log_key("native", f"/root{number}", "a.jsonl")
    for root in ("/root1", "/root99"):
        assert many.log_key("native", root, "b.jsonl") == Ids(b"k" * 32).log_key(
            "native", root, "b.jsonl"
        )
    assert many.log_key("native", "/a", "b/c") != many.log_key("native", "/a/b", "c")
