"""Tells at once that logs may have changed: inotify on folders, and a clock for what inotify misses.

In: folders of logs, there or not. Out: sets of paths that may have changed, or `EVERYTHING`::

    async with Watcher(roots) as watcher:
        async for change in watcher:
            index.sweep() if change is EVERYTHING else index.changed(change)

It is a hint and no more. Events are lost when the kernel's queue overflows, on network file systems, and
while a folder is new; so everything is called changed at the start, after an overflow, when a folder went
or moved, and every `SWEEP_S` seconds. Where every folder is watched and lies on a disk of this machine (`sure`) all of
that is told, and everything is called changed every `SURE_S` seconds only. Where inotify is not to be had, or its
watches are used up, `mode` is ``polling`` instead of ``inotify``, `reason` says why, and everything is called
changed every `POLL_S` seconds.
"""

import errno
import os
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Final, Literal, Self

import trio

from memoryd.sources import disks, inotify
from memoryd.sources.inotify import APPEARS, INSIDE, Event, Inotify

SURE_S: Final = 3600.0
SWEEP_S: Final = 300.0
POLL_S: Final = 1.0


class Everything(Enum):
    """The type of `EVERYTHING`."""

    EVERYTHING = "everything may have changed"


EVERYTHING: Final = Everything.EVERYTHING

Change = frozenset[Path] | Everything


class Watcher:
    """An endless asynchronous iterator of changes; one task at a time may wait on it."""

    def __init__(
        self,
        roots: Iterable[Path],
        *,
        sure_s: float = SURE_S,
        sweep_s: float = SWEEP_S,
        poll_s: float = POLL_S,
    ) -> None:
        """Take folders to watch with all that is below them; links below them are not followed."""
        self.mode: Literal["inotify", "polling"] = "polling"
        self.reason = "not started"
        self._roots = tuple(dict.fromkeys(roots))
        self._sure_s, self._sweep_s, self._poll_s = sure_s, sweep_s, poll_s
        self._sweep_at = self._look_at = 0.0
        self._kernel: Inotify | None = None
        self._folders: dict[int, str] = {}  # as text: there may be a hundred thousand
        self._inside: set[int] = set()  # watches below a root; the others wait for a root to appear
        self._missing: set[Path] = set()
        self._seen: dict[str, tuple[int, list[str]]] = {}  # when a folder changed; folders in it
        self._disks: dict[int, bool] = {}  # whether inotify tells all that happens on a device
        self._places: list[tuple[int, int]] = []  # what the roots were when they were watched
        self._refused: set[Path] = set()  # folders that are there and cannot be watched
        self._blind = True  # there is a disk that others write to

    @property
    def sure(self) -> bool:
        """Say whether all that changes is told, and looking for what was missed can wait."""
        return self.mode == "inotify" and not self._blind and not self._refused

    async def __aenter__(self) -> Self:
        """Set the watches; what changes from here on is told."""
        await trio.to_thread.run_sync(self._watch_all)
        self._look_at = trio.current_time() + self._rest_s
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give the watches back."""
        if self._kernel is not None:
            trio.lowlevel.notify_closing(self._kernel.fd)
            self._kernel.close()
            self._kernel = None

    def __aiter__(self) -> Self:
        """Return the watcher itself."""
        return self

    @property
    def _rest_s(self) -> float:
        """Return how long the watches are trusted."""
        return self._sure_s if self.sure else self._sweep_s

    async def __anext__(self) -> Change:
        """Wait for the next change."""
        while True:
            sure = self.sure
            if not await self._told_before(self._sweep_at):
                if await self._as_before():
                    continue
                return await self._everything()
            changed, fresh, lost = self._read()
            if lost:
                await trio.to_thread.run_sync(self._watch_all)
                return EVERYTHING
            if fresh:
                changed |= await trio.to_thread.run_sync(self._adopt, fresh)
            if sure and not self.sure:
                self._sweep_at = self._look_at = (
                    0.0  # who was told to trust us must not go on doing so
                )
                continue
            if changed:
                return frozenset(changed)

    async def _told_before(self, deadline: float) -> bool:
        """Wait for the kernel to tell something; return False when the deadline came first."""
        if trio.current_time() >= deadline:  # also when events never cease
            await trio.lowlevel.checkpoint()
            return False
        with trio.move_on_at(deadline):
            if self._kernel is None:
                await trio.sleep_forever()
            await trio.lowlevel.wait_readable(self._kernel.fd)
            return True
        return False

    async def _as_before(self) -> bool:
        """Put off the next look where all is told and the roots are what they were.

        That another disk was mounted on a root, or a link there set anew, is told by nobody.
        """
        now = trio.current_time()
        if not self._sweep_at or not self.sure or now >= self._look_at:
            return False
        if await trio.to_thread.run_sync(self._where) != self._places:
            self._look_at = 0.0
            return False
        self._sweep_at = min(now + self._sweep_s, self._look_at)
        return True

    async def _everything(self) -> Change:
        """Set the clock for the next time, and look for what is not watched yet."""
        now = trio.current_time()
        if now >= self._look_at:
            await trio.to_thread.run_sync(self._watch_all)
            # Events tell of new folders; this is for those that were lost, and to try inotify again. Whoever
            # keeps the index looks through its logs more often, and by itself.
            self._look_at = now + self._rest_s
        pause = self._sweep_s if self.mode == "inotify" else self._poll_s
        self._sweep_at = min(now + pause, self._look_at)
        return EVERYTHING

    def _watch_all(self) -> None:
        """Watch every folder there is; tell in `mode` and `reason` whether that could be done."""
        self._blind, self._disks = False, {-1: True}
        self._places = self._where()
        try:
            self._kernel = self._kernel or Inotify()
            self._missing = {root for root in self._roots if not self._watch_root(root)}
            for folder in [*self._refused]:
                self._refused.discard(folder)
                if self._add(folder, INSIDE):
                    self._watch_below(os.fspath(folder))
        except OSError as error:
            self._poll(error)
        else:
            self.mode, self.reason = "inotify", ""

    def _adopt(self, fresh: list[Path]) -> set[Path]:
        """Watch folders that are new; return the files that are in them already."""
        try:
            added = [folder for folder in fresh if self._add(folder, INSIDE)]
            return {Path(file) for folder in added for file in self._watch_below(os.fspath(folder))}
        except OSError as error:
            self._poll(error)
            return set()

    def _poll(self, error: OSError) -> None:
        """Fall back to the clock, from now on; the watches that there are still help."""
        self.mode, self.reason = "polling", _reason(error)
        self._sweep_at = 0.0

    def _watch_root(self, root: Path) -> bool:
        """Watch a root, or else wait for it in the nearest folder that is there; say which.

        Raises: OSError when no watch is left.
        """
        for _ in root.parts:  # it, or a folder on the way to it, may appear between two looks
            if self._add(root, INSIDE, follow=True):
                self._watch_below(os.fspath(root), again=True)
                return True
            there = next((up for up in root.parents if self._add(up, APPEARS, follow=True)), None)
            if there is None or not (there / root.relative_to(there).parts[0]).exists():
                break
        return False

    def _watch_below(self, top: str, *, again: bool = False) -> list[str]:
        """Watch every folder below one that is watched; return the files there.

        The watch comes before the look, so that a file is seen by one of the two. `again`: folders that have
        not changed since they were watched are passed over, and only files in others are returned: there may be
        tens of thousands. Raises: OSError when no watch is left.
        """
        files: list[str] = []
        folders = [top]
        while folders:
            folder = folders.pop()
            changed, device = _changed(folder)
            self._blind |= not self._tells(device, folder)
            before = self._seen.get(folder)
            if again and before is not None and before[0] == changed:
                folders += before[1]
                continue
            inside, here = _listed(folder)
            files += here
            added = [below for below in inside if self._add(below, INSIDE)]
            self._seen[folder] = changed, added
            folders += added
        return files

    def _add(self, folder: Path | str, mask: int, *, follow: bool = False) -> bool:
        """Watch one folder; say whether it could be. Raises: OSError when no watch is left."""
        if self._kernel is None:
            return False
        try:
            watch = self._kernel.add(folder, mask, follow=follow)
        except OSError as error:
            if error.errno in _USED_UP:
                raise
            if error.errno not in _GONE:
                self._refused.add(Path(folder))
            return False
        self._folders[watch] = os.fspath(folder)
        if mask == INSIDE:
            self._inside.add(watch)
        return True

    def _where(self) -> list[tuple[int, int]]:
        """Return which folder, on which device, each root is."""
        return [_place(root) for root in self._roots]

    def _tells(self, device: int, folder: str) -> bool:
        """Say whether inotify tells all that happens on the device that a folder is on."""
        if device not in self._disks:
            self._disks[device] = disks.local(folder)
        return self._disks[device]

    def _read(self) -> tuple[set[Path], list[Path], bool]:
        """Return files that changed, folders that are new, and whether anything else may have changed."""
        changed: set[Path] = set()
        fresh: list[Path] = []
        lost = False
        for event in self._kernel.events() if self._kernel else ():
            folder = self._folders.get(event.watch)
            if folder is None or not event.name:
                lost |= self._lost(event, folder)
                continue
            path = Path(folder, event.name)
            lost |= any(root.is_relative_to(path) for root in self._missing)
            if event.watch not in self._inside:
                continue
            if not event.mask & inotify.ISDIR:
                changed.add(path)
                continue
            self._seen.pop(
                folder, None
            )  # its time may be the same, within a tick of the kernel's clock
            if event.mask & (inotify.CREATE | inotify.MOVED_TO):
                fresh.append(path)
            else:
                lost = True  # a folder went, with all that was in it
        return changed, fresh, lost

    def _lost(self, event: Event, folder: str | None) -> bool:
        """Take an event that names no file; say whether anything may have changed."""
        if event.mask & inotify.OVERFLOW:
            self._seen.clear()  # nobody knows which folders went, and came again
            return True
        if folder is None:
            return False  # of a watch that was just given back
        if event.mask & inotify.IGNORED:
            self._forget(event.watch)
            return False
        if event.mask & inotify.MOVE_SELF:  # what it and all below are called is no longer true
            for watch, path in [*self._folders.items()]:
                if self._kernel and f"{path}/".startswith(f"{folder}/"):
                    self._kernel.remove(watch)
                    self._forget(watch)
        return True

    def _forget(self, watch: int) -> None:
        folder = self._folders.pop(watch, None)
        self._inside.discard(watch)
        if folder is not None:
            self._seen.pop(folder, None)


def _changed(folder: str) -> tuple[int, int]:
    """Return when something was added to a folder or taken from it, and its device; -1: nobody can look."""
    try:
        status = os.lstat(folder)
    except OSError:
        return -1, -1
    return status.st_mtime_ns, status.st_dev


def _place(root: Path) -> tuple[int, int]:
    try:
        status = root.stat()
    except OSError:
        return -1, -1
    return status.st_dev, status.st_ino


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """Return the folders and the files in a folder; links count as files."""
    inside: list[str] = []
    here: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                kind = inside if entry.is_dir(follow_symlinks=False) else here
                kind.append(entry.path)
    except OSError:
        pass  # gone meanwhile, or not ours to read: the sweep tells
    return inside, here


_USED_UP = {errno.ENOSPC, errno.ENOMEM}
_GONE = {errno.ENOENT, errno.ENOTDIR}
"""What a folder that went, and a link or a file in its place, are answered with."""
_REASONS = {
    errno.ENOSPC: "the user's inotify watches are used up (fs.inotify.max_user_watches)",
    errno.EMFILE: "the user's inotify instances are used up (fs.inotify.max_user_instances)",
}


def _reason(error: OSError) -> str:
    return _REASONS.get(error.errno or 0, error.strerror or "inotify does not work here")
