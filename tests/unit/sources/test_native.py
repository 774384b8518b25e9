"""The native log: label fields as they stand, a parent however it is named, label keys given twice refused."""

import json

import msgspec
import pytest

from memoryd.records import Brought, Called, Link, Own, Record, Returned
from memoryd.sources import native
from memoryd.sources.base import NotJson
from memoryd.sources.objects import record as read_record
from tests.support import logs

LONG = "words " * 40


def raw(content: bytes) -> Record:
    return read_record(content, native.ADAPTER, 0, False)


def record(line: logs.Line) -> Record:
    return raw(msgspec.json.encode(line))


@pytest.mark.parametrize("cls", ["secret", "Public", "", 3, None, ["x"], {}])
@pytest.mark.parametrize("untrusted", [True, False, "false", 0, None])
def test_label_fields_are_handed_on_unchecked(cls, untrusted):
    [result] = record(logs.native_result("c", "x", cls, untrusted)).items
    assert result.own == Own(cls, untrusted)
    [block] = record(logs.native_block(cls, untrusted)).items
    assert block == Brought(0, "memory_block", Own(cls, untrusted))


def test_label_fields_that_are_missing_are_told_from_null():
    assert record({"kind": "tool_result", "call": "c"}).items == [Returned(0, "c", own=Own())]
    assert record({"kind": "memory_block"}).items == [Brought(0, "memory_block", Own())]


@pytest.mark.parametrize(
    ("parent", "link"),
    [
        (None, None),
        ({"log": "a.jsonl", "n": 4}, Link("parent", log="a.jsonl", n=4)),
        ({"log": "a.jsonl"}, Link("parent", log="a.jsonl")),
        ({"log": "a.jsonl", "n": True}, Link("parent", log="a.jsonl")),
        ({"log": "a.jsonl", "n": -1}, Link("parent", log="a.jsonl")),
        ({"log": 5, "n": "0"}, Link("parent")),
        ("a.jsonl", Link("parent")),
        (False, Link("parent")),
        ({}, Link("parent")),
    ],
)
def test_a_parent_however_it_is_named_is_a_link(parent, link):
    assert record(logs.native_session("s", parent=parent)).about.link == link


def test_fields_of_another_type_are_as_if_they_were_not_there():
    line = {"kind": "tool_call", "call": 5, "tool": ["x"], "args": {"a": 1}, "ts": 7}
    assert record(line).items == [Called(0, None, "", {"a": 1})]
    assert record({"kind": "tool_result", "call": {}, "ok": "yes"}).items == [
        Returned(0, None, own=Own())
    ]


@pytest.mark.parametrize(
    "fields",
    [
        '"class":"public","class":"secret"',
        '"class":"public","class":5',
        '"untrusted":true,"text":"x","untrusted":null',
        '"class":"secret","text":"x","class":"public"',
        '"untrusted":true,"untrusted":false',
        '"class":"secret","cl\\u0061ss":"public"',
        '"\\u0063lass":"secret","class":"public"',
        '"untrusted":true,"\\u0075ntrusted":false',
        '"class" : "secret" , "class" : "public"',
        f'"class":"secret","text":"{LONG}","class":"public"',
        f'"class":"secret","text":"{LONG}","class":"public","more":"{LONG}"',
        f'"more":"{LONG}","class":"secret","class":"public","text":"{LONG}"',
    ],
)
@pytest.mark.parametrize("kind", ["tool_result", "memory_block", "owner"])
def test_a_label_key_given_twice_is_not_believed_t10(fields, kind):
    with pytest.raises(NotJson, match="twice"):
        raw(f'{{"kind":"{kind}","call":"c",{fields}}}'.encode())


@pytest.mark.parametrize(
    "fields",
    [
        '"class":"public","untrusted":false',
        '"class":"class","untrusted":"untrusted"',
        '"class":"public","text":"the \\"class\\" and the \\"class\\""',
        '"class":"public","text":"\\u0063\\u007f","tool":"\\u0063lass"',
        '"class":"public","more":{"class":"a","untrusted":1}',
        '"class":"public","more":[{"class":"a"},{"class":"b"}]',
        f'"class":"public","text":"{LONG}\\"class\\":\\"class\\""',
        '"class":"public","call":"a","call":"b"',
        '"class":"public","n":' + "9" * 5000,
    ],
)
def test_words_that_look_like_label_keys_do_no_harm(fields):
    [item] = raw(f'{{"kind":"tool_result",{fields}}}'.encode()).items
    assert item.own.cls in ("public", "class")


FULL = '"ts":"2026-01-02T03:04:05","ok":true'


@pytest.mark.parametrize(
    "fields",
    [
        '"class":0,"class":"a","untrusted":true,"text":""',
        '"class":"","class":"public","untrusted":true,"text":"x"',
        '"untrusted":0,"class":"a","untrusted":true,"text":"x"',
        f'"class":0,"class":"a","untrusted":true,"text":"{LONG}"',
    ],
)
def test_the_shortest_second_label_field_has_no_room_in_a_full_result(fields):
    line = f'{{"kind":"tool_result","call":"c",{FULL},{fields}}}'.encode()
    assert not native._is_full(line, native.ADAPTER.decoder.decode(line))
    with pytest.raises(NotJson, match="twice"):
        raw(line)


@pytest.mark.parametrize("stamp", ["2026-01-02T03:04:05", "2026-01-02T03:04:05.678Z"])
@pytest.mark.parametrize("text", ["", "x", 'a \\"class\\" of', "\\u00e9"])
def test_a_full_result_as_it_is_written_is_told_at_once(stamp, text):
    line = (
        f'{{"ts":"{stamp}","kind":"tool_result","call":"c1","ok":false,"class":"public",'
        f'"untrusted":false,"text":"{text}"}}\n'
    ).encode()
    assert native._is_full(line, native.ADAPTER.decoder.decode(line))


def test_a_text_that_also_stands_elsewhere_hides_no_key():
    text = ":[" + ",".join(["1"] * 60) + "],"
    line = f'{{"kind":"tool_result","x"{text}"class":"secret","class":"public","text":{json.dumps(text)}}}'
    with pytest.raises(NotJson, match="twice"):
        raw(line.encode())


def test_the_end_of_a_session_says_nothing():
    assert record({"kind": "end", "note": "words"}).items == []
