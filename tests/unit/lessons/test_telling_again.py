"""A fix whose failure is read after it tells its steps anew, since that failure; none above its own readers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.classroom import START, Classroom, Script


@pytest.fixture
def room(user_home: Path) -> Iterator[Classroom]:
    with Classroom(user_home) as made:
        yield made


def first() -> Script:
    return Script("s1").fail()


def between(**label: object) -> Script:
    return Script("s3", at=START + 40_000).fail(**label)


def mended(**label: object) -> Script:
    script = Script("s2", at=START + 10_000).edit("a.ts").later(60_000)
    return script.edit("b.ts", **label).good()


def learned(room: Classroom, *scripts: Script) -> list[tuple[object, ...]]:
    """What is told of the fixes once each log was read after the one before."""
    for number, script in enumerate(scripts):
        room.write(f"{number}.jsonl", script)
        room.learn()
    return room.rows("SELECT args, level FROM fix")


WHOLE = "edit `a.ts`; edit `b.ts`; bash `npm run build` went well"
SINCE = "edit `b.ts`; bash `npm run build` went well"


def test_a_failure_that_is_read_later_shortens_the_steps(room: Classroom):
    assert learned(room, first(), mended()) == [(WHOLE, 0)]
    assert room.rows("SELECT fix_args FROM lesson") == [(WHOLE,)]
    assert learned(room, first(), mended(), between()) == [(SINCE, 0)]
    assert room.rows("SELECT fix_args, evidence FROM lesson") == [(SINCE, 1)]


def test_in_whatever_order_they_are_read_the_same_is_told(room: Classroom):
    assert learned(room, first(), between(), mended()) == [(SINCE, 0)]


def test_a_failure_above_the_readers_of_a_fix_changes_nothing_in_it(room: Classroom):
    told = learned(room, first(), mended(), between(cls="private"))
    assert told[0] == (WHOLE, 0)
    assert room.rows("SELECT fix_args FROM lesson WHERE level = 0") == [(WHOLE,)]


def test_a_fix_above_a_failure_tells_all_that_its_own_readers_may_see(room: Classroom):
    assert learned(room, first(), mended(cls="private")) == [(WHOLE, 2)]
    assert learned(room, first(), mended(cls="private"), between()) == [(SINCE, 2)]
    assert room.rows("SELECT fix_args, level FROM lesson") == [(None, 0)]


def test_a_later_success_changes_nothing_in_the_fix_of_an_earlier_one(room: Classroom):
    script = Script("s2", at=START + 10_000).edit("a.ts").good().later(5_000).edit("b.ts").good()
    told = learned(room, first(), script)
    assert told == [("edit `a.ts`; bash `npm run build` went well", 0)]


def test_a_success_in_another_log_mends_a_failure_read_later_within_a_day(room: Classroom):
    day = 86_400_000
    late = Script("s2", at=START + day - 10_000).good()
    assert len(learned(room, late, first())) == 1
    room.write("9.jsonl", Script("s9", "/w/other").fail())
    room.write("8.jsonl", Script("s8", "/w/other", at=START + day + 60_000).good())
    room.learn()
    assert room.rows("SELECT project FROM fix") == [("/w/app",)]
    room.write("7.jsonl", Script("s7", "/w/last", at=START + day + 60_000).good())
    room.learn()
    room.write("6.jsonl", Script("s6", "/w/last").fail())
    room.learn()
    assert room.rows("SELECT project FROM fix") == [("/w/app",)]
