"""The pool of readers: one hop a question, and a gate that leaves nobody on the old file."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from memoryd import db
from memoryd.db import Deadline
from memoryd.errors import Busy, Cancelled, TimedOut, Unavailable
from memoryd.index.search import Reader, snapshot
from memoryd.serve import readers
from memoryd.serve.readers import Readers
from tests.support.shelf import CLASSES, IDS, Line, fill

SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


@pytest.fixture
def made() -> list[Reader]:
    """Every reader that the pool opened."""
    return []


@pytest.fixture
def pool(user_home: Path, made: list[Reader]) -> Iterator[Readers]:
    path = user_home / "memory.sqlite3"
    fill(path, [Line("hello")])

    def make() -> Reader:
        made.append(Reader(db.reader(path), IDS, CLASSES))
        return made[-1]

    pool = Readers(make, 2)
    yield pool
    pool.shut()


def rows(reader: Reader) -> int:
    return int(reader.connection.execute("SELECT count(*) FROM row_0").get)


async def test_before_there_is_an_index_it_is_unavailable(pool: Readers) -> None:
    assert not pool.served
    with pytest.raises(Unavailable) as raised:
        await pool.read(rows, Deadline(1))
    assert raised.value.remedy


async def test_connections_are_opened_as_needed_and_kept(pool: Readers, made: list[Reader]) -> None:
    pool.open()
    for _ in range(5):
        assert await pool.read(rows, Deadline(1)) == 1
    assert len(made) == 1


async def test_at_most_so_many_questions_run_at_a_time_l16(
    pool: Readers, made: list[Reader]
) -> None:
    pool.open()
    busy, most = set[int](), 0
    lock = threading.Lock()

    def work(reader: Reader) -> None:
        nonlocal most
        with lock:
            assert id(reader) not in busy
            busy.add(id(reader))
            most = max(most, len(busy))
        rows(reader)
        with lock:
            busy.discard(id(reader))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(pool.read, work, Deadline(5))
    assert most <= 2
    assert len(made) <= 2


async def test_a_deadline_and_a_cancel_reach_a_running_question_l15(pool: Readers) -> None:
    pool.open()

    def slow(deadline: Deadline) -> object:
        def work(reader: Reader) -> object:
            with snapshot(reader, deadline):
                return reader.connection.execute(SLOW).get

        return work

    deadline = Deadline(0.05)
    with trio.fail_after(5), pytest.raises(TimedOut):
        await pool.read(slow(deadline), deadline)
    deadline = Deadline(60)
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(Cancelled):
                    await pool.read(slow(deadline), deadline)

            nursery.start_soon(ask)
            await trio.lowlevel.checkpoint()
            deadline.cancel()
    assert await pool.read(rows, Deadline(1)) == 1


async def test_shutting_the_gate_closes_every_reader_and_opening_makes_new_ones(
    pool: Readers, made: list[Reader]
) -> None:
    pool.open()
    await pool.read(rows, Deadline(1))
    await trio.to_thread.run_sync(pool.shut)
    with pytest.raises(Exception, match="closed"):
        rows(made[0])
    pool.open()
    assert await pool.read(rows, Deadline(1)) == 1
    assert len(made) == 2


async def test_a_question_waits_for_the_gate_a_moment_and_is_then_told_busy_r10(
    pool: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.open()
    pool.shut()
    monkeypatch.setattr(readers, "GATE_S", 0.05)
    with pytest.raises(Busy) as raised:
        await pool.read(rows, Deadline(5))
    assert raised.value.data["retry_after_ms"] == 250
    monkeypatch.setattr(readers, "GATE_S", 5.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.read, rows, Deadline(5))
        await trio.sleep(0.01)
        pool.open()


async def test_the_gate_ends_a_question_that_takes_too_long_and_it_may_ask_again_r10(
    pool: Readers, made: list[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "RUN_OUT_S", 0.05)
    pool.open()
    deadline = Deadline(60)
    began = threading.Event()

    def work(reader: Reader) -> object:
        began.set()
        with snapshot(reader, deadline):
            return reader.connection.execute(SLOW).get

    async def ask() -> None:
        with pytest.raises(Busy):
            await pool.read(work, deadline)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.to_thread.run_sync(began.wait)
            await trio.to_thread.run_sync(pool.shut)
    with pytest.raises(Exception, match="closed"):
        rows(made[0])
    pool.open()
    assert await pool.read(rows, Deadline(1)) == 1
    assert len(made) == 2


async def test_a_question_that_never_ends_keeps_the_gate_open(
    pool: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "RUN_OUT_S", 0.05)
    pool.open()
    began, over = threading.Event(), threading.Event()

    def work(reader: Reader) -> object:
        began.set()
        over.wait()
        return rows(reader)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.read, work, Deadline(60))
            await trio.to_thread.run_sync(began.wait)
            with pytest.raises(Busy):
                await trio.to_thread.run_sync(pool.shut)
            over.set()
    assert await pool.read(rows, Deadline(1)) == 1


async def test_a_connection_that_cannot_be_opened_blocks_nobody(
    pool: Readers, user_home: Path
) -> None:
    pool.open()
    path = user_home / "memory.sqlite3"
    path.rename(user_home / "away")
    with pytest.raises(db.MemorydError):
        await pool.read(rows, Deadline(1))
    (user_home / "away").rename(path)
    assert await pool.read(rows, Deadline(1)) == 1


async def test_a_damaged_index_is_told_of(user_home: Path) -> None:
    told: list[bool] = []

    def broken(reader: Reader) -> object:
        raise db.Damaged("broken")

    path = user_home / "memory.sqlite3"
    fill(path, [Line("hello")])
    pool = Readers(lambda: Reader(db.reader(path), IDS, CLASSES))
    pool.damaged = lambda: told.append(True)
    pool.open()
    with pytest.raises(db.Damaged):
        await pool.read(broken, Deadline(1))
    assert told == [True]
    pool.shut()


async def test_a_withdrawn_index_is_unavailable_until_there_is_another(pool: Readers) -> None:
    pool.open()
    assert await pool.read(rows, Deadline(1)) == 1
    pool.withdraw()
    with pytest.raises(Unavailable):
        await pool.read(rows, Deadline(1))
    pool.open()
    assert await pool.read(rows, Deadline(1)) == 1
