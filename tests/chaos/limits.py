"""Part 6: a real daemon with little of everything: descriptors, file sizes, room on the disk; and umask 000.

In: a seed. Out: one sentence a check. What a limit does not let through is refused with a code or waits; when
the limit is gone, the index comes to what the oracle says.
"""

import os
import resource
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoryd.client import Client
from memoryd.errors import MemorydError
from tests.chaos.ground import Ground, Violation, room
from tests.chaos.kills import SOCKETS, dump
from tests.support.daemon import Daemon
from tests.support.modes import too_wide

FEW = 64
"""Descriptors that a daemon must live with."""
SETTLED_S = 300.0
"""After a fault the index tries again after a minute at most."""
PATIENCE = 100
"""Tries, a tenth of a second apart, to get in after a crowd has left."""
SMALL = 1_500_000
"""Bytes that a file may have under the quota."""
ALLOWED = {"busy", "timeout", "disk_full", "io_error", "unavailable", "pending", "shutting_down"}
"""Codes with which a daemon that has too little may refuse."""


class Skipped(Exception):
    """What this machine does not let us try, and why."""


def play(seed: int, number: int, *, small: bool = False) -> int:
    """Play one of the checks and return 1. Raises: Violation."""
    check = CHECKS[number % len(CHECKS)]
    with room("limits", seed, number) as ground:
        ground.change(20)
        try:
            check(ground)
        except Skipped as why:
            print(f"chaos: limits: {check.__name__} is skipped: {why}", flush=True)
    return 1


def _connected(daemon: Daemon) -> Client:
    """Return a connection, as soon as those that were just closed have been given back."""
    for _ in range(PATIENCE):
        try:
            return daemon.client(timeout=SETTLED_S)
        except MemorydError as error:
            if error.code not in ALLOWED:
                raise
        threading.Event().wait(0.1)
    return daemon.client()


def _settled(ground: Ground, daemon: Daemon) -> None:
    """Wait until all is read, and compare."""
    with _connected(daemon) as memory:
        memory.call("sync", deadline_ms=int(SETTLED_S * 1_000))
        ground.compare(dump(memory))
    ground.private()


def umask_000(ground: Ground) -> None:
    """Nothing is wider than promised, whatever the umask, and what was wider is tightened."""
    (ground.state / "index").mkdir(mode=0o755, exist_ok=True)
    with Daemon(ground.home, ground.config() + SOCKETS) as daemon:
        daemon.start(before=lambda: os.umask(0) and None)
        with daemon.client() as memory:
            memory.call("notes.create", path="/memories/public/a.md", file_text="a\n", owner=True)
            memory.call("reindex")
        _settled(ground, daemon)
        wide = [line for line in too_wide(daemon.state) if "/sessions" not in line]
        if wide:
            raise Violation(f"too wide: {wide}")
        daemon.stop()


def few_descriptors(ground: Ground) -> None:
    """With 64 descriptors whoever is connected is served, the rest waits, and it comes back."""
    with Daemon(ground.home, ground.config() + SOCKETS) as daemon, ExitStack() as open_ones:
        daemon.start(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW)))
        first = open_ones.enter_context(daemon.client())
        first.call("sync", deadline_ms=120_000)
        crowd: list[Client] = []
        for _ in range(2 * FEW):
            try:
                crowd.append(daemon.client(timeout=2.0))
            except MemorydError as error:
                if error.code not in ALLOWED:
                    raise
                break
        ground.change(5)
        first.call("recall", query="amber")
        for client in crowd:
            client.close()
        _settled(ground, daemon)
        if daemon.stop() != 0:
            raise Violation("it does not stop")


def small_files(ground: Ground) -> None:
    """Beyond a quota the index stands still and says so; without it, it goes on."""
    with Daemon(ground.home, ground.config() + SOCKETS) as daemon:
        soft = (SMALL, resource.RLIM_INFINITY)
        daemon.start(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, soft))
        _fill(ground, 3 * SMALL)
        with daemon.client() as memory:
            _stands_still(memory, "a full quota")
            memory.call("recall", query="amber")
        pid = daemon.process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        _settled(ground, daemon)


def full_disk(ground: Ground) -> None:
    """On a disk of a few MiB the index stands still when it is full, and goes on when there is room."""
    with (
        _tiny_disk(ground.state / "index"),
        Daemon(ground.home, ground.config() + SOCKETS) as daemon,
    ):
        daemon.start()
        _fill(ground, 6 << 20)
        with daemon.client() as memory:
            _stands_still(memory, "a full disk")
            memory.call("recall", query="amber")
            for path in ground.fields[0].root.glob("big*.jsonl"):
                os.truncate(path, len(path.read_bytes().split(b"\n", 1)[0]) + 1)
        # What is written waits in the WAL for room to be taken over: without any it can go nowhere.
        more = ["mount", "-o", "remount,size=64m", str(ground.state / "index")]
        subprocess.run(more, check=True)
        _settled(ground, daemon)
        daemon.stop()


def _stands_still(memory: Client, why: str) -> None:
    """Return once status tells that something is wrong. Raises: Violation when it never does."""
    for _ in range(PATIENCE):
        _told(memory, "sync", deadline_ms=3_000)
        if memory.call("status")["faults"]:
            return
    raise Violation(f"status tells nothing of {why}")


def _told(memory: Client, method: str, **args: object) -> None:
    """Ask; a refusal must be one that such a daemon may give."""
    try:
        memory.call(method, **args)
    except MemorydError as error:
        if error.code not in ALLOWED:
            raise


def _fill(ground: Ground, size: int) -> None:
    """Write a log of more rows than there is room for."""
    field, made, number = ground.fields[0], 0, 0
    path = field.root / "big.jsonl"
    path.touch(mode=0o600)
    with path.open("ab") as file:
        file.write(field.first())
        while made < size:
            number += 1
            words = f"{field.words((0, False))} {field.rng.randbytes(200).hex()}"
            line = f'{{"kind":"owner","ts":"2026-01-02T03:04:05.000Z","text":"{words}"}}\n'
            made += file.write(line.encode())


@contextmanager
def _tiny_disk(folder: Path) -> Iterator[None]:
    """Put a disk of 4 MiB at `folder`. Raises: Skipped where nothing may be mounted."""
    folder.mkdir(mode=0o700, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        raise Skipped(done.stderr.decode().strip() or "no mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


CHECKS: tuple[Callable[[Ground], None], ...] = (umask_000, few_descriptors, small_files, full_disk)
