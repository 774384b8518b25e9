"""The owner's looks at lessons: what they list, in which order, under which label, and that they change nothing."""

from pathlib import Path

import pytest

from memoryd.config import Socket
from memoryd.labels import Label
from memoryd.lessons import looking
from memoryd.lessons.reader import Reader
from memoryd.lessons.store import memory
from tests.support.faculty import AGENT, faculty, learned
from tests.support.teaching import DAY, LOW, OWNER, World

UNTOLD = {"effective": 0, "ineffective": 0, "inconclusive": 0, "unmeasured": 0}


async def test_list_tells_each_lesson_whole_with_what_came_of_it(user_home: Path) -> None:
    async with faculty(user_home) as here:
        learned(here.world)
        told = await here.ask("lessons.list")
        [error] = [one for one in told["lessons"] if one["type"] == "error"]
    assert error["code"] == "TS2304"
    assert error["first_line"] == "src/main.ts(3,5): error TS2304: Cannot find name 'foo'."
    assert error["class"] == "public"
    assert error["untrusted"] is False
    assert "level" not in error
    [pattern] = [one for one in told["lessons"] if one["type"] == "pattern"]
    assert pattern["told"] == UNTOLD | {"inconclusive": 1}
    assert pattern["refused"] == {}
    assert error["told"] == UNTOLD
    assert error["refused"] == {"duplicate": 1}
    assert told["label"] == {"class": "public", "untrusted": False}
    assert here.noted[-1]["method"] == "lessons.list"


async def test_list_goes_on_behind_an_id_and_ends(user_home: Path) -> None:
    async with faculty(user_home) as here:
        for number in range(3):
            here.world.fail(f"s{number}", text=f"error TS{2000 + number}: word{number} is missing")
        first = (await here.ask("lessons.list", limit=2))["lessons"]
        rest = (await here.ask("lessons.list", limit=2, after=first[-1]["id"]))["lessons"]
        assert (await here.ask("lessons.list", after=rest[-1]["id"]))["lessons"] == []
    codes = [one["code"] for one in (*first, *rest)]
    assert codes == ["TS2002", "TS2001", "TS2000"]


async def test_list_narrows_by_words_and_by_status(user_home: Path) -> None:
    async with faculty(user_home) as here:
        learned(here.world)
        named = (await here.ask("lessons.list", query="ts2304 name"))["lessons"]
        assert named
        alone = (await here.ask("lessons.list", id=named[-1]["id"]))["lessons"]
        assert alone == named[-1:]
        assert (await here.ask("lessons.list", query="ts2304 nowhere"))["lessons"] == []
        assert (await here.ask("lessons.list", status="archived"))["lessons"] == []
        assert (await here.refused("lessons.list", status="gone")).startswith("bad_request: status")


async def test_the_ledger_has_a_row_a_telling_newest_first(user_home: Path) -> None:
    async with faculty(user_home) as here:
        learned(here.world)
        here.world.block("s3")
        everything = (await here.ask("lessons.ledger"))["tellings"]
        one = everything[0]["lesson"]
        of_it = (await here.ask("lessons.ledger", lesson=one))["tellings"]
        older = (await here.ask("lessons.ledger", before=everything[0]["number"]))["tellings"]
        assert (await here.ask("lessons.ledger", lesson="nothing"))["tellings"] == []
    assert everything[0]["session"] == "s3"
    assert everything[0]["outcome"] == "unmeasured"
    assert {each["lesson"] for each in of_it} == {one}
    assert older == everything[1:]
    assert everything[-1]["session"] == "s2"
    assert everything[-1]["outcome"] == "inconclusive"


async def test_looks_change_nothing(user_home: Path) -> None:
    async with faculty(user_home) as here:
        before = learned(here.world).dump()
        for method in ("lessons.list", "lessons.ledger", "lessons.days"):
            first = await here.ask(method)
            assert await here.ask(method) == first
        assert here.world.dump() == before


@pytest.mark.parametrize("method", ["lessons.list", "lessons.ledger", "lessons.days"])
@pytest.mark.parametrize("setting", [AGENT, Socket("reader", "private", ["*"])])
async def test_looks_are_the_owners(user_home: Path, method: str, setting: Socket) -> None:
    async with faculty(user_home, setting) as here:
        assert (await here.refused(method)).startswith("not_granted: ")


async def test_a_row_carries_its_own_class_and_the_answer_the_join(user_home: Path) -> None:
    async with faculty(user_home) as here:
        here.world.fail("s1")
        here.world.fail("s2", text="panic: index out of range", label=Label(2, True))
        told = await here.ask("lessons.list")
    assert [(one["class"], one["untrusted"]) for one in told["lessons"]] == [
        ("private", True),
        ("public", False),
    ]
    assert told["label"] == {"class": "private", "untrusted": True}


def test_a_day_without_a_measured_outcome_has_no_precision() -> None:
    world = learned(World(memory()))
    [day], label = looking.days(world.connection, OWNER)
    assert day["total"] == 1
    assert day["inconclusive"] == 1
    assert day["precision_rate"] is None
    assert day["coverage_rate"] == 0.0
    assert day["so_far"] == {"precision_rate": None, "coverage_rate": 0.0, "total": 1}
    assert label == LOW


def test_rates_so_far_run_over_all_days_before() -> None:
    world = World(memory())
    world.fail("s1")
    world.edit("s1")
    world.succeed("s1")
    world.idle("s1")
    world.fail("s2")
    world.block("s2")
    world.edit("s2")
    world.succeed("s2")
    world.idle("s2", ended=True)
    world.later(DAY)
    world.block("s3")
    world.fail("s3")
    world.idle("s3", ended=True)
    told, _ = looking.days(world.connection, OWNER)
    rates = world.rates()
    assert len(told) == 2
    assert told[0]["precision_rate"] == 1.0
    assert told[1]["precision_rate"] == 0.0
    assert told[-1]["so_far"]["precision_rate"] == rates.precision_rate
    assert told[-1]["so_far"]["coverage_rate"] == rates.coverage_rate
    assert told[-1]["so_far"]["total"] == rates.total
    last, _ = looking.days(world.connection, OWNER, most=1)
    assert last == told[1:]


def test_a_reader_below_finds_nothing_of_what_is_above() -> None:
    world = World(memory())
    world.fail("s1", label=Label(2, False))
    world.block("s2")
    low = Reader(1, "include", ("*",))
    assert looking.lessons(world.connection, low, looking.Page()) == ([], LOW)
    assert looking.tellings(world.connection, low)[0] == []
    assert looking.days(world.connection, low)[0] == []
