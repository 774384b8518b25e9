"""The small helpers that all adapters share."""

from datetime import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.clock import milliseconds, parse_rfc3339, rfc3339
from memoryd.records import Brought
from memoryd.sources import base


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_times_agree_with_the_clocks_own_reading(ms):
    decode = msgspec.json.Decoder(datetime).decode
    for text in (rfc3339(ms), rfc3339(ms).replace("Z", "+00:00"), rfc3339(ms).replace("Z", "")):
        assert milliseconds(decode(f'"{text}"')) == parse_rfc3339(text) == ms


def test_an_offset_counts():
    moment = msgspec.json.decode('"2026-01-02T03:04:05.006+02:00"', type=datetime)
    assert rfc3339(milliseconds(moment)) == "2026-01-02T01:04:05.006Z"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a-b_c.d:e/f", "x:a-b_c.d:e/f"),
        ("a b", "x:nameless"),
        ("é", "x:nameless"),
        (None, "x:nameless"),
    ],
)
def test_a_name_from_a_log_is_plain_or_none(name, told):
    assert base.named("x", name) == told


def test_what_is_not_known_raises_only_with_text_in_a_field_that_may_hold_some():
    keys = frozenset(("type", "id"))
    assert base.unknown("new", {"type": "new", "id": "x", "n": 1}, keys) == []
    assert base.unknown("new", {"type": "new", "words": [[{"a": "x"}]]}, keys) == [
        Brought(0, "record:new")
    ]
    assert base.unknown("new", {"words": " \n"}, keys) == []


@pytest.mark.parametrize(
    ("data", "depth"),
    [
        (b'["\\\\",[[1]]]', 3),
        (b'["\\\\\\"[[[[[[",[1]]', 2),
        (b'["[[[","]]]",{"{":"}"}]', 2),
        (b"[[],[],[[]]]", 3),
    ],
)
def test_depth_counts_brackets_outside_of_strings_alone(data, depth):
    assert base.too_deep(data, depth - 1)
    assert not base.too_deep(data, depth)


def test_a_missing_field_is_none_and_a_deep_one_is_refused():
    assert base.decoded(msgspec.Raw()) is None
    assert base.decoded(msgspec.Raw(b"[1]")) == [1]
    with pytest.raises(base.NotJson):
        base.decoded(msgspec.Raw(b"[" * 201 + b"]" * 201))
    mixed = b"[1," * 201 + b"1" + b",1]" * 201
    with pytest.raises(base.NotJson):
        base.decoded(msgspec.Raw(mixed))
    assert base.decoded(msgspec.Raw(b'"' + b"[" * 500 + b'"')) == "[" * 500
