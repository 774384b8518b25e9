"""The keeper of the index: when it looks, what it waits for, how a rebuild takes its place."""

import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
import trio
import trio.testing

from memoryd import index
from memoryd.errors import Behind, Conflict, NotFound, Unavailable
from memoryd.index import Counts, Progress, Status
from memoryd.labels import Label
from memoryd.serve import keeper, turning
from memoryd.serve.asking import Caller
from memoryd.serve.keeper import Keeper


class Root(msgspec.Struct):
    """A folder of logs."""

    path: Path


class Settings(msgspec.Struct):
    """As much of the settings as the keeper looks at."""

    roots: tuple[Root, ...] = (Root(Path("/logs")),)


class Gate:
    """Readers that only note what happens to them."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def open(self) -> None:
        self.events.append("open")

    def shut(self) -> None:
        self.events.append("shut")

    def withdraw(self) -> None:
        self.events.append("withdraw")


class Fake:
    """An index in memory: `records` are in the file, `read` of them are indexed, one a turn."""

    def __init__(self, *, ready: bool = True) -> None:
        self.ready, self.why = ready, "" if ready else "other settings"
        self.generation = "g1" if ready else ""
        self.fault = ""
        self.records = self.read = 0
        self.sweeps = 0
        self.hints: list[Path] = []
        self.closed = False
        self.refuses: Exception | None = None
        self.due: float | None = None

    def sweep(self) -> None:
        self.sweeps += 1

    def changed(self, paths: Iterable[Path]) -> None:
        self.hints += paths

    def catch_up(self) -> tuple[Counts, bool]:
        if self.fault or self.read == self.records:
            return Counts(), False
        self.read += 1
        return Counts(records=1, indexed=1), self.read < self.records

    def wait(self) -> float | None:
        return self.due

    def take_told(self) -> list[Any]:
        return []

    def label_of(self, log: str, n: int) -> Label:
        if log != "a.jsonl":
            raise NotFound("no such log")
        if self.read < n:
            raise Behind("not yet")
        return Label(1, False)

    def status(self) -> Status:
        return Status(self.ready, self.why, self.generation)

    def logs(self) -> list[Any]:
        return []

    def publish(self, _built: Any, gate: Gate) -> None:
        if self.refuses is not None:
            raise self.refuses
        gate.shut()
        self.generation, self.ready = "g2", True
        gate.open()

    def close(self) -> None:
        self.closed = True


class Work:
    """A rebuild that ends at once, or not at all."""

    result: Any = index.Built("temp", Counts(records=7), 1, 0.5, 0.4, 1)
    cancelled = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def run(self, tell: Any) -> Any:
        tell(Progress(1, 2, 3, 4))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def cancel(self) -> None:
        type(self).cancelled = True


class Kept(msgspec.Struct):
    """A keeper at work, its index and its gate."""

    keeper: Keeper
    index: Fake
    gate: Gate


@asynccontextmanager
async def keeping(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> AsyncIterator[Kept]:
    monkeypatch.setattr(index, "open", lambda settings: fake)
    monkeypatch.setattr(keeper, "Rebuild", Work)
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    gate = Gate()
    kept = Kept(Keeper(Settings(), gate), fake, gate)  # type: ignore[arg-type]  # stand-ins
    async with trio.open_nursery() as nursery:
        await nursery.start(kept.keeper.run)
        yield kept
        nursery.cancel_scope.cancel()


async def at_once(work: Any, *args: Any, **_: object) -> Any:
    """Stand in for a thread, of which a virtual clock knows nothing."""
    await trio.lowlevel.checkpoint()
    return work(*args)


async def test_it_sweeps_at_the_start_and_then_now_and_again(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with keeping(monkeypatch, Fake()) as kept:
        await trio.sleep(1)
        assert kept.index.sweeps == 1
        await trio.sleep(44.5)
        assert kept.index.sweeps == 2
        await trio.sleep(90)
        assert kept.index.sweeps == 4
    assert kept.index.closed
    assert kept.gate.events == ["open", "withdraw"]


async def test_all_that_is_there_is_read_turn_by_turn(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    fake = Fake()
    fake.records = 20
    async with keeping(monkeypatch, fake) as kept:
        await kept.keeper.synced(None)
        assert fake.read == 20
        assert trio.current_time() == 0.0


async def test_a_hint_is_acted_on_at_once(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with keeping(monkeypatch, Fake()) as kept:
        await trio.sleep(1)
        kept.index.records = 1
        kept.keeper.changed([Path("/logs/a.jsonl")])
        await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == 1.0
        assert kept.index.read == 1
        assert kept.index.hints == [Path("/logs/a.jsonl")]
        assert kept.index.sweeps == 1


async def test_what_is_due_later_is_done_then(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    fake = Fake()
    fake.due = 3.0
    async with keeping(monkeypatch, fake):
        await trio.sleep(1)
        fake.records = 1
        await trio.sleep(4)
        assert fake.read == 1


async def test_sync_waits_for_a_sweep_that_began_after_it(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with keeping(monkeypatch, Fake()) as kept:
        await trio.sleep(1)
        kept.index.records = 5
        await kept.keeper.synced(None)
        assert kept.index.read == 5
        assert kept.index.sweeps == 2
        assert trio.current_time() == 1.0


async def test_sync_does_not_return_while_indexing_stands_still(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    fake = Fake()
    async with keeping(monkeypatch, fake) as kept:
        fake.fault, fake.due = "disk_full", 1.0
        with trio.move_on_after(5) as scope:
            await kept.keeper.synced(None)
        assert scope.cancelled_caught
        fake.fault, fake.due = "", None
        await kept.keeper.synced(None)


async def test_a_caller_s_label_is_told_once_its_log_is_read_so_far(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with keeping(monkeypatch, Fake()) as kept:
        await trio.sleep(1)
        kept.index.records = 3
        assert await kept.keeper.label_of(Caller("a.jsonl", 3)) == Label(1, False)
        assert kept.index.hints[0] == Path("/logs/a.jsonl")
        assert trio.current_time() < 1.01


@pytest.mark.parametrize("name", ["a.jsonl", "never.jsonl", "../a.jsonl", "/logs/a.jsonl", "a\0b"])
async def test_a_log_that_is_not_read_so_far_or_not_known_is_behind_after_two_seconds(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock, name: str
) -> None:
    async with keeping(monkeypatch, Fake()) as kept:
        with pytest.raises(Behind):
            await kept.keeper.label_of(Caller(name, 3))
        assert trio.current_time() == 2.0
        hinted = {str(path) for path in kept.index.hints}
        assert hinted <= {"/logs/a.jsonl", "/logs/never.jsonl"}


async def test_a_rebuild_takes_the_place_of_the_index_r11(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with keeping(monkeypatch, Fake()) as kept:
        await trio.sleep(1)
        job = kept.keeper.reindex()
        assert kept.keeper.reindex() == job
        await trio.sleep(1)
        found = kept.keeper.rebuilding
        assert found is not None
        assert (found.job, found.state, found.seconds) == (job, "done", 0.5)
        assert found.counts == Counts(records=7)
        assert found.progress == Progress(1, 2, 3, 4)
        assert kept.gate.events == ["open", "shut", "open"]
        assert kept.keeper.reindex() != job


async def test_a_rebuild_that_fails_leaves_what_was_and_says_why(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with keeping(monkeypatch, Fake()) as kept:
        kept.index.refuses = Conflict("it lacks logs", remedy="look")
        kept.keeper.reindex()
        await trio.sleep(1)
        found = kept.keeper.rebuilding
        assert found is not None
        assert (found.state, found.error, found.remedy) == ("failed", "it lacks logs", "look")
        assert kept.gate.events == ["open"]


async def test_an_index_that_cannot_be_served_is_rebuilt_before_anything_is_told(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with keeping(monkeypatch, Fake(ready=False)) as kept:
        with pytest.raises(Unavailable):
            await kept.keeper.label_of(Caller("a.jsonl", 0))
        await kept.keeper.synced(None)
        assert kept.index.generation == "g2"
        assert kept.gate.events == ["shut", "open"]


async def test_a_rebuild_that_fails_is_tried_again_where_nothing_can_be_served(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    fake = Fake(ready=False)
    fake.refuses = Conflict("not yet")
    async with keeping(monkeypatch, fake) as kept:
        await trio.sleep(10)
        first = kept.keeper.rebuilding
        assert first is not None
        assert first.state == "failed"
        fake.refuses = None
        await trio.sleep(60)
        assert fake.ready
        assert kept.keeper.rebuilding is not first


@pytest.mark.parametrize("sure", [True, False])
async def test_folders_are_looked_at_once_an_hour_where_the_watcher_misses_nothing(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock, sure: bool
) -> None:
    fake = Fake()
    async with keeping(monkeypatch, fake) as kept:
        kept.keeper.sure = lambda: sure
        await trio.sleep(1)
        kept.keeper.sweep_soon()
        await trio.sleep(1)
        before = fake.sweeps
        await trio.sleep(3_590)
        between = fake.sweeps - before
        assert between == 0 if sure else between > 60
        await trio.sleep(60)
        assert fake.sweeps - before - between in range(1, 3)


async def test_a_watcher_that_asks_each_second_gets_a_tenth_of_the_time_for_looks(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    took = 5.0
    monkeypatch.setattr(turning, "monotonic", iter(took * n for n in itertools.count()).__next__)
    fake = Fake()
    async with keeping(monkeypatch, fake) as kept:
        await trio.sleep(1)
        kept.keeper.missed()
        await trio.sleep(1)
        before = fake.sweeps
        for _ in range(450):
            kept.keeper.missed()
            await trio.sleep(1)
        assert 450 / took / 12 <= fake.sweeps - before <= 450 / took / 9 + 1
        now = fake.sweeps
        kept.keeper.sweep_soon()
        await trio.sleep(0.1)
        assert fake.sweeps == now + 1  # somebody waits for it


async def test_a_quick_look_is_taken_each_time_that_the_watcher_asks(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(turning, "monotonic", lambda: 0.0)
    fake = Fake()
    async with keeping(monkeypatch, fake) as kept:
        await trio.sleep(1)
        before = fake.sweeps
        for _ in range(30):
            kept.keeper.missed()
            await trio.sleep(1)
        assert fake.sweeps - before == 30


async def test_an_index_that_is_lost_is_withdrawn_and_rebuilt(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    fake = Fake()
    async with keeping(monkeypatch, fake) as kept:
        await trio.sleep(1)
        fake.ready, fake.generation, fake.why = False, "", "damaged"
        kept.keeper.sweep_soon()
        await trio.sleep(1)
        assert kept.gate.events == ["open", "withdraw", "shut", "open"]
        assert fake.ready


async def test_a_file_that_somebody_put_in_its_place_is_served_to_new_readers(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    fake = Fake()
    async with keeping(monkeypatch, fake) as kept:
        await trio.sleep(1)
        fake.generation = "other"
        kept.keeper.sweep_soon()
        await trio.sleep(1)
        assert kept.gate.events == ["open", "shut", "open"]


async def test_a_fault_of_ours_in_one_turn_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    fake = Fake()
    async with keeping(monkeypatch, fake) as kept:
        await trio.sleep(1)
        monkeypatch.setattr(fake, "catch_up", lambda: 1 / 0)
        with structlog.testing.capture_logs() as logged:
            kept.keeper.sweep_soon()
            await trio.sleep(1)
        assert [entry["event"] for entry in logged] == ["a fault while indexing"]
        monkeypatch.delattr(fake, "catch_up")
        fake.records = 1
        await trio.sleep(120)
        assert fake.read == 1
        assert kept.gate.events == ["open"]


async def test_a_fault_of_ours_in_a_rebuild_is_a_rebuild_that_failed(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with keeping(monkeypatch, Fake()) as kept:
        kept.index.refuses = RuntimeError("the owner's words")
        with structlog.testing.capture_logs() as logged:
            kept.keeper.reindex()
            await trio.sleep(1)
        found = kept.keeper.rebuilding
        assert found is not None
        assert (found.state, found.error) == ("failed", "a fault of memoryd")
        assert "the rebuild failed" in [entry["event"] for entry in logged]


async def test_what_a_reader_found_damaged_is_rebuilt_once(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with keeping(monkeypatch, Fake()) as kept:
        await trio.sleep(1)
        kept.keeper.suspect()
        first = kept.keeper.rebuilding
        await trio.sleep(1)
        kept.keeper.suspect()
        assert kept.keeper.rebuilding is first
        assert first is not None
        assert first.state == "done"
        await trio.sleep(60)
        kept.keeper.suspect()
        assert kept.keeper.rebuilding is not first
