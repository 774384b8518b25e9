"""The watcher on real folders: nothing that changes goes untold, whatever inotify does or does not do."""

import errno
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from memoryd.sources import disks
from memoryd.sources.inotify import Inotify
from memoryd.sources.watch import EVERYTHING, SURE_S, SWEEP_S, Change, Watcher

PATIENCE_S = 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    (folder / "p1").mkdir(parents=True)
    (folder / "p1" / "old.jsonl").write_bytes(b"{}\n")
    return folder


@pytest.fixture
async def watcher(root: Path) -> AsyncIterator[Watcher]:
    """A watcher on `root` that has told what it tells at the start."""
    async with Watcher([root]) as watcher:
        assert await told(watcher) is EVERYTHING
        yield watcher


async def told(watcher: Watcher) -> Change:
    with trio.fail_after(PATIENCE_S):
        return await anext(watcher)


async def told_until(watcher: Watcher, enough: Callable[[set[Path | Change]], bool]) -> None:
    """Gather changes until there are enough: how the kernel bundles them is its own affair."""
    gathered: set[Path | Change] = set()
    while not enough(gathered):
        change = await told(watcher)
        gathered |= change if isinstance(change, frozenset) else {change}


def open_files() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())


def append(path: Path, line: bytes = b"{}\n") -> Path:
    with path.open("ab") as file:
        file.write(line)
    return path


async def test_an_appended_line_is_told_with_its_path(watcher: Watcher, root: Path):
    assert (watcher.mode, watcher.reason) == ("inotify", "")
    assert await anext_after(watcher, append, root / "p1" / "old.jsonl") == {
        root / "p1" / "old.jsonl"
    }


async def anext_after(watcher: Watcher, act: Callable[[Path], object], path: Path) -> Change:
    act(path)
    return await told(watcher)


async def test_new_moved_and_deleted_files_are_told(watcher: Watcher, root: Path, tmp_path: Path):
    new, moved = root / "p1" / "new.jsonl", root / "moved.jsonl"
    append(new)
    append(tmp_path / "outside").rename(moved)
    await told_until(watcher, lambda seen: {new, moved} <= seen)
    new.unlink()
    assert await told(watcher) == {new}


async def test_a_name_that_is_no_text_is_told(watcher: Watcher, root: Path):
    path = root / os.fsdecode(b"\xff.jsonl")
    assert await anext_after(watcher, append, path) == {path}


async def test_files_made_in_a_new_folder_before_it_is_watched_are_told(
    watcher: Watcher, root: Path
):
    deep = root / "a" / "b" / "c"
    deep.mkdir(parents=True)
    append(deep / "1.jsonl")
    await told_until(watcher, lambda seen: deep / "1.jsonl" in seen)
    append(deep / "1.jsonl")
    assert await told(watcher) == {deep / "1.jsonl"}


async def test_a_folder_moved_in_is_told_with_its_files(
    watcher: Watcher, root: Path, tmp_path: Path
):
    (tmp_path / "other" / "below").mkdir(parents=True)
    append(tmp_path / "other" / "below" / "1.jsonl")
    (tmp_path / "other").rename(root / "here")
    await told_until(watcher, lambda seen: root / "here" / "below" / "1.jsonl" in seen)


async def test_a_renamed_folder_is_known_by_its_new_name(watcher: Watcher, root: Path):
    (root / "p1").rename(root / "p2")
    await told_until(watcher, lambda seen: EVERYTHING in seen)
    append(root / "p2" / "old.jsonl")
    await told_until(watcher, lambda seen: root / "p2" / "old.jsonl" in seen)


async def test_a_folder_that_goes_makes_everything_change(watcher: Watcher, root: Path):
    (root / "p1" / "old.jsonl").unlink()
    (root / "p1").rmdir()
    await told_until(watcher, lambda seen: EVERYTHING in seen)


def go_away(folder: Path) -> None:
    folder.rename(folder.with_name("away"))


def come_back(folder: Path) -> None:
    folder.mkdir()


async def test_a_root_that_goes_and_comes_back_is_watched_again(watcher: Watcher, root: Path):
    go_away(root)
    await told_until(watcher, lambda seen: EVERYTHING in seen)
    come_back(root)
    await told_until(watcher, lambda seen: EVERYTHING in seen)
    append(root / "new.jsonl")
    await told_until(watcher, lambda seen: root / "new.jsonl" in seen)


async def test_a_root_that_is_missing_is_noticed_when_it_appears(tmp_path: Path):
    root = tmp_path / "home" / ".tool" / "logs"
    async with Watcher([root, tmp_path]) as watcher:
        assert await told(watcher) is EVERYTHING
        root.mkdir(parents=True)
        append(root / "1.jsonl")
        await told_until(watcher, lambda seen: EVERYTHING in seen or root / "1.jsonl" in seen)
        append(root / "2.jsonl")
        await told_until(watcher, lambda seen: root / "2.jsonl" in seen)


async def test_what_happens_beside_a_missing_root_wakes_nobody(tmp_path: Path):
    root = tmp_path / "logs"
    append(tmp_path / "busy")
    async with Watcher([root]) as watcher:
        assert await told(watcher) is EVERYTHING
        append(tmp_path / "busy")
        append(tmp_path / "another")
        root.mkdir()
        assert await told(watcher) is EVERYTHING
        append(root / "1.jsonl")
        assert await told(watcher) == {root / "1.jsonl"}


async def test_links_below_a_root_are_not_followed(root: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)
    async with Watcher([root]) as watcher:
        assert await told(watcher) is EVERYTHING
        append(outside / "1.jsonl")
        append(root / "2.jsonl")
        assert await told(watcher) == {root / "2.jsonl"}


def overflow(folder: Path) -> None:
    """Cause more events than the kernel keeps; in turn, since equal neighbours would be one event."""
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text("ascii"))
    with (folder / "1").open("ab", 0) as one, (folder / "2").open("ab", 0) as two:
        for _ in range(most // 2 + 100):
            one.write(b"x")
            two.write(b"x")


async def test_a_queue_that_overflows_makes_everything_change_t30(watcher: Watcher, root: Path):
    overflow(root)
    await told_until(watcher, lambda seen: EVERYTHING in seen)


async def test_everything_is_called_changed_on_time(root: Path, autojump_clock: MockClock):
    async with Watcher([root], sure_s=30) as watcher:
        times = []
        for _ in range(3):
            assert await anext(watcher) is EVERYTHING
            times.append(trio.current_time())
    assert times == pytest.approx([times[0], times[0] + 30, times[0] + 60])


async def test_where_all_is_told_the_clock_waits_an_hour_and_changes_are_told_at_once(
    root: Path, autojump_clock: MockClock
):
    async with Watcher([root]) as watcher:
        assert await anext(watcher) is EVERYTHING
        assert watcher.sure
        began = trio.current_time()
        append(root / "1.jsonl")
        assert await anext(watcher) == {root / "1.jsonl"}
        assert trio.current_time() - began < 1
        assert await anext(watcher) is EVERYTHING
        assert trio.current_time() - began == pytest.approx(SURE_S)


async def test_on_a_disk_that_others_write_to_the_clock_looks_more_often(
    root: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
):
    monkeypatch.setattr(disks, "_LOCAL", frozenset())
    async with Watcher([root]) as watcher:
        assert await anext(watcher) is EVERYTHING
        began = trio.current_time()
        assert (watcher.mode, watcher.sure) == ("inotify", False)
        assert await anext(watcher) is EVERYTHING
        assert trio.current_time() - began == pytest.approx(SWEEP_S)


async def test_a_folder_that_cannot_be_watched_ends_the_trust_and_is_tried_again(
    root: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
):
    add = Inotify.add

    def refused(self: Inotify, folder: Path, mask: int, *, follow: bool = False) -> int:
        if folder == root / "p2":
            raise OSError(errno.EACCES, "Permission denied")
        return add(self, folder, mask, follow=follow)

    async with Watcher([root]) as watcher:
        assert await anext(watcher) is EVERYTHING
        with monkeypatch.context() as patch:
            patch.setattr(Inotify, "add", refused)
            (root / "p2").mkdir()
            began = trio.current_time()
            assert await anext(watcher) is EVERYTHING
            assert (watcher.sure, trio.current_time() - began) == (False, pytest.approx(0, abs=1))
            assert await anext(watcher) is EVERYTHING
            assert (watcher.sure, trio.current_time() - began) == (False, pytest.approx(SWEEP_S))
        assert await anext(watcher) is EVERYTHING
        assert watcher.sure
        append(root / "p2" / "1.jsonl")
        assert await anext(watcher) == {root / "p2" / "1.jsonl"}


async def test_another_folder_in_a_roots_place_is_noticed_within_minutes(
    root: Path, tmp_path: Path, autojump_clock: MockClock
):
    link, other = tmp_path / "link", tmp_path / "other"
    other.mkdir()
    link.symlink_to(root)
    async with Watcher([link]) as watcher:
        assert await anext(watcher) is EVERYTHING
        assert watcher.sure
        link.unlink()
        link.symlink_to(other)
        began = trio.current_time()
        assert await anext(watcher) is EVERYTHING
        assert trio.current_time() - began <= SWEEP_S + 1
        append(other / "1.jsonl")
        assert await anext(watcher) == {link / "1.jsonl"}


async def test_events_that_never_cease_do_not_put_off_the_sweep(root: Path, mock_clock: MockClock):
    async with Watcher([root], sure_s=30, sweep_s=30) as watcher:
        assert await told(watcher) is EVERYTHING
        append(root / "1.jsonl")
        mock_clock.jump(31)
        assert await anext(watcher) is EVERYTHING
        assert await anext(watcher) == {root / "1.jsonl"}


@pytest.mark.parametrize(
    ("number", "word"), [(errno.EMFILE, "max_user_instances"), (0, "this system has no inotify")]
)
async def test_without_inotify_the_clock_alone_tells_and_the_reason_is_said_t30(
    root: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, number: int, word: str
):
    def refused(self: Inotify) -> None:
        raise OSError(number, "this system has no inotify")

    with monkeypatch.context() as patch:
        patch.setattr(Inotify, "__init__", refused)
        async with Watcher([root], sweep_s=30, poll_s=1) as watcher:
            times = [trio.current_time() for _ in range(4) if await anext(watcher) is EVERYTHING]
            assert times == pytest.approx([times[0] + second for second in range(4)])
            assert watcher.mode == "polling"
            assert word in watcher.reason
            patch.undo()
            while trio.current_time() < times[0] + 31:
                assert await anext(watcher) is EVERYTHING
            assert (watcher.mode, watcher.reason) == ("inotify", "")


async def test_when_watches_are_used_up_the_rest_is_polled_t30(
    root: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
):
    add = Inotify.add

    def used_up(self: Inotify, folder: Path | str, mask: int, *, follow: bool = False) -> int:
        if Path(folder) == root / "p1":
            raise OSError(errno.ENOSPC, "No space left on device")
        return add(self, folder, mask, follow=follow)

    monkeypatch.setattr(Inotify, "add", used_up)
    async with Watcher([root], sweep_s=30, poll_s=1) as watcher:
        assert await anext(watcher) is EVERYTHING
        assert (watcher.mode, "max_user_watches" in watcher.reason) == ("polling", True)
        append(root / "1.jsonl")
        assert await anext(watcher) == {root / "1.jsonl"}
        began = trio.current_time()
        assert await anext(watcher) is EVERYTHING
        assert trio.current_time() - began <= 1


async def test_a_new_folder_without_a_watch_left_is_polled_from_then_on_t30(
    watcher: Watcher, root: Path, monkeypatch: pytest.MonkeyPatch
):
    def used_up(self: Inotify, folder: Path, mask: int, *, follow: bool = False) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Inotify, "add", used_up)
    (root / "p2").mkdir()
    assert await told(watcher) is EVERYTHING
    assert watcher.mode == "polling"


async def test_waiting_is_cancelled_at_once_and_nothing_is_left_open(root: Path):
    before = open_files()
    with trio.fail_after(PATIENCE_S):
        async with Watcher([root]) as watcher, trio.open_nursery() as nursery:
            assert await anext(watcher) is EVERYTHING
            nursery.start_soon(anext, watcher)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert open_files() == before
