"""A device that is nearly full: nothing is added to it, what is there is served, what goes is taken out."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from memoryd.errors import DiskFull
from memoryd.index import Counts, Index, building, catch_up, live, opening, room
from memoryd.index.choosing import Wanted
from tests.support.indexing import World, dumped
from tests.support.logs import append, claude_user, dated, write

MIB, GIB = 1 << 20, 1 << 30
BLOCK = 4_096


class Device:
    """What `os.statvfs` tells: `size` and `free` bytes."""

    def __init__(self) -> None:
        self.size, self.free = 100 * GIB, 50 * GIB

    def statvfs(self, _: object) -> SimpleNamespace:
        return SimpleNamespace(
            f_frsize=BLOCK,
            f_blocks=self.size // BLOCK,
            f_bavail=self.free // BLOCK,
            f_flag=0,
        )


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    device = Device()
    monkeypatch.setattr(room.os, "statvfs", device.statvfs)
    return device


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [1_000.0]
    monkeypatch.setattr(live, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("size", "free", "enough"),
    [
        (10_000 * GIB, 100 * MIB, True),  # a hundredth of it would be 100 GiB
        (10_000 * GIB, 100 * MIB - BLOCK, False),
        (100 * MIB, 2 * MIB, True),  # 100 MiB would be all of it
        (400 * MIB, 4 * MIB - BLOCK, False),
        (400 * MIB, 4 * MIB, True),
    ],
)
def test_what_counts_as_nearly_full_q06(device, user_home, size, free, enough):
    device.size, device.free = size, free
    assert (room.lacking(user_home) is None) == enough
    if not enough:
        with pytest.raises(DiskFull) as refused:
            room.check(user_home)
        assert refused.value.remedy


def test_a_folder_that_cannot_be_asked_about_stops_nothing_q06(monkeypatch, user_home):
    assert room.lacking(user_home / "none") is None


def test_on_a_nearly_full_disk_indexing_pauses_and_goes_on_by_itself_q06(world, device, clock):
    log = write(world.logs / "a.jsonl", *dated(claude_user("one")))
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        device.free = 10 * MIB
        append(log, *dated(claude_user("two")))
        index.changed([log])
        assert index.catch_up() == (Counts(), False)
        assert index.status().fault == "disk_full"
        assert index.wait() == 1.0
        assert dumped(index) == before
        write(world.logs / "b.jsonl", *dated(claude_user("three")))
        index.sweep()
        assert dumped(index) == before
        device.free = 50 * GIB
        clock[0] += 60.0
        catch_up(index)
        assert index.status().fault == ""
        assert dumped(index) == world.fresh() != before


def test_on_a_nearly_full_disk_what_vanished_is_kept_later_q06(world, device, clock):
    log = write(world.logs / "a.jsonl", *dated(claude_user("one")))
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        device.free = 10 * MIB
        log.unlink()
        index.sweep()
        assert index.status().fault == "disk_full"
        assert not list((world.state / "vanished").glob("*"))
        device.free = 50 * GIB
        clock[0] += 60.0
        index.sweep()
        assert len(list((world.state / "vanished").glob("*"))) == 1
        assert dumped(index) == before


def test_on_a_nearly_full_disk_no_rebuild_grows_and_the_old_index_stays_q06(world, device):
    write(world.logs / "a.jsonl", *dated(claude_user("one")))
    with world.index() as index:
        catch_up(index)
        before = dumped(index)
        device.free = 10 * MIB
        temp = opening.new_temp(index.settings.path)
        with pytest.raises(DiskFull):
            building.build(temp, index.settings)
        temp.unlink()
        assert dumped(index) == before


def test_words_that_are_forgotten_go_also_while_the_disk_is_nearly_full_q06(
    world: World, device: Device
) -> None:
    write(world.logs / "a.jsonl", *dated(claude_user("the planted word xyzzy")))
    index = Index(world.settings())
    catch_up(index)
    device.free = 10 * MIB
    index.forget(Wanted(before=1 << 60), dry=False)
    for _ in range(20):
        index._retry_at = 0.0
        index.catch_up()
        if not index.purging:
            break
    assert not index.purging
    index.close()
    assert b"xyzzy" not in index.settings.path.read_bytes()
    assert list(index.settings.path.parent.iterdir()) == [index.settings.path]
