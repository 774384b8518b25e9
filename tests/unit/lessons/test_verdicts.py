"""What the gate decides where two rules meet: each alone is held in `test_gate`."""

import msgspec

from memoryd.lessons.gate import Circumstances, judge, verdict
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson

APP = "/w/app"
ANYONE = Reader(7, "include", ("*",), owner=True)
HERE = Circumstances(ANYONE, APP, frozenset(), frozenset())
LESSON = Lesson(
    id="x",
    type="error",
    content="bash fails with TS2304: x",
    project=APP,
    fingerprint="f",
    origin="agent",
    level=0,
    untrusted=False,
    created_at=0,
    updated_at=0,
)


def like(**changes: object) -> Lesson:
    return msgspec.structs.replace(LESSON, **changes)


def test_a_pattern_is_told_again_though_its_error_came_back():
    here = msgspec.structs.replace(HERE, recurred=frozenset(("f",)))
    assert verdict(LESSON, here) == "recurrence"
    assert verdict(like(type="pattern"), here) is None


def test_one_that_is_refused_keeps_its_own_reason_beside_one_that_is_shown():
    judged = judge([LESSON, like(id="y", ignored=True), like(id="z")], HERE)
    assert [reason for _, reason in judged] == [None, "ignored", "duplicate"]


def test_one_that_is_refused_takes_no_place():
    judged = judge([like(id="y", ignored=True), LESSON], HERE)
    assert [reason for _, reason in judged] == ["ignored", None]


def test_a_reader_who_may_not_see_the_project_is_told_nothing_of_it():
    elsewhere = Reader(7, "include", ("/w/other",))
    assert verdict(LESSON, msgspec.structs.replace(HERE, reader=elsewhere)) == "other_project"


def test_what_is_of_no_project_is_told_unless_it_came_from_elsewhere():
    anywhere = like(project="")
    assert verdict(anywhere, HERE) is None
    assert verdict(like(project="", origin="imported"), HERE) == "other_project"
    crossing = msgspec.structs.replace(HERE, cross=True)
    assert verdict(like(project="", origin="imported"), crossing) is None
