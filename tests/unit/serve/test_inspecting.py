"""The looks through the index: at the start, each day, and what follows from a damaged one."""

from pathlib import Path

import pytest
import structlog
import trio
import trio.testing

from memoryd import db
from memoryd.index.search import Reader
from memoryd.serve import inspecting
from memoryd.serve.readers import Readers
from tests.support.shelf import CLASSES, IDS, Line, fill


class Kept:
    """A keeper that notes what it is asked to do."""

    def __init__(self, generation: str = "g1") -> None:
        self.generation = generation
        self.asked: list[str] = []
        self.known = trio.Event()
        self.well_again = trio.Event()

    async def served(self) -> None:
        while not self.generation:
            await self.known.wait()

    async def mended(self) -> None:
        await self.well_again.wait()
        self.well_again = trio.Event()

    async def distrust(self) -> None:
        self.asked.append("distrust")

    async def purge(self) -> None:
        self.asked.append("purge")


def readers(path: Path) -> Readers:
    made = Readers(lambda: Reader(db.reader(path), IDS, CLASSES))
    made.open()
    return made


@pytest.fixture
def path(user_home: Path) -> Path:
    path = user_home / "memory.sqlite3"
    fill(path, [Line(f"word{n}") for n in range(20)])
    return path


def break_words(path: Path) -> None:
    connection = db.writer(path)
    connection.execute("UPDATE ft_0_content SET c0 = 'altered' WHERE c0 = 'word3'")
    connection.close()


async def test_a_healthy_index_is_left_alone_and_its_deleted_words_go_each_day(path: Path) -> None:
    keeper, pool = Kept(), readers(path)
    await inspecting.look(keeper, pool, len(CLASSES), words=False)
    assert keeper.asked == []
    await inspecting.look(keeper, pool, len(CLASSES), words=True)
    assert keeper.asked == ["purge"]
    pool.shut()


async def test_a_damaged_one_is_set_aside_s08(path: Path) -> None:
    break_words(path)
    keeper, pool = Kept(), readers(path)
    await inspecting.look(keeper, pool, len(CLASSES), words=False)
    assert keeper.asked == []
    with structlog.testing.capture_logs() as logged:
        await inspecting.look(keeper, pool, len(CLASSES), words=True)
    assert keeper.asked == ["distrust"]
    assert "damaged" in logged[0]["event"]
    pool.shut()


async def test_missing_rows_are_found_at_the_start(path: Path) -> None:
    connection = db.writer(path)
    connection.execute("DELETE FROM row_0 WHERE id = 3")
    connection.close()
    keeper, pool = Kept(), readers(path)
    await inspecting.look(keeper, pool, len(CLASSES), words=False)
    assert keeper.asked == ["distrust"]
    pool.shut()


async def test_a_new_index_does_not_answer_for_the_old_one(path: Path, monkeypatch) -> None:
    break_words(path)
    keeper, pool = Kept(), readers(path)

    def replaced(*_args: object, **_more: object) -> bool:
        keeper.generation = "g2"
        return False

    monkeypatch.setattr(inspecting.schema, "healthy", replaced)
    await inspecting.look(keeper, pool, len(CLASSES), words=True)
    assert keeper.asked == []
    pool.shut()


async def test_where_nothing_can_be_read_it_is_said_and_nothing_done(path: Path) -> None:
    keeper, pool = Kept(), Readers(lambda: pytest.fail("nothing is read"))
    with structlog.testing.capture_logs() as logged:
        await inspecting.look(keeper, pool, len(CLASSES), words=True)
    assert logged[0]["code"] == "unavailable"
    assert keeper.asked == []


async def test_it_looks_once_there_is_an_index_soon_after_and_then_daily_s08(
    path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, pool, seen = Kept(""), readers(path), []

    async def look(*_args: object, words: bool) -> None:
        seen.append((round(trio.current_time() / inspecting.DAY_S, 3), words))

    monkeypatch.setattr(inspecting, "look", look)
    began = trio.current_time()
    with trio.move_on_after(2.5 * inspecting.DAY_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(inspecting.look_after, keeper, pool, len(CLASSES))
            await trio.sleep(5)
            assert seen == []
            keeper.generation = "g1"
            keeper.known.set()
    days = [round(day - began / inspecting.DAY_S, 2) for day, _ in seen]
    assert days == [0.0, 0.01, 1.01, 2.01]
    assert [words for _, words in seen] == [False, True, True, True]
    pool.shut()


async def test_what_a_failing_disk_left_is_looked_at_within_a_quarter_of_an_hour(
    path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by chaos: after failed reads and a full disk a list of words once lacked what its rows hold."""
    keeper, pool, seen = Kept(), readers(path), []

    async def look(*_args: object, words: bool) -> None:
        seen.append((round((trio.current_time() - began) / 60), words))

    monkeypatch.setattr(inspecting, "look", look)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(inspecting.look_after, keeper, pool, len(CLASSES))
        await trio.sleep(3_600)
        for _ in range(3):  # it comes and goes
            keeper.well_again.set()
            await trio.sleep(60)
        await trio.sleep(1_800)
        nursery.cancel_scope.cancel()
    assert seen == [(0, False), (15, True), (60, True), (75, True)]
    pool.shut()
