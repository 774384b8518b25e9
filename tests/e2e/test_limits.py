"""The real daemon where the machine gives little: descriptors, room on the disk, time to read what is there."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from memoryd import clock
from memoryd.client import Client
from memoryd.errors import MemorydError
from tests.support.daemon import READY_S, Daemon
from tests.support.logs import append, native_owner, native_session, write

FEW = 64
HELLO: bytes = msgpack.packb([0, 7, "hello", []])


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW))


def descriptors(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


def sessions(home: Path, count: int) -> Path:
    folder = home / "state" / "sessions"
    for number in range(count):
        write(
            folder / f"{number % 7}" / f"{number}.jsonl",
            native_session(f"s{number}"),
            native_owner(f"the mortar of house {number}"),
        )
    return folder


def test_with_few_descriptors_clients_that_are_connected_live_on_q02_p22(user_home: Path) -> None:
    sessions(user_home, 3)
    with Daemon(user_home) as daemon, contextlib.ExitStack() as stack:
        began = clock.monotonic()
        daemon.start(before=few_descriptors).ask("sync")
        first: Client = stack.enter_context(daemon.client())
        path = str(daemon.state / "run" / "memoryd.sock")
        crowd = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(63)]
        for peer in crowd:
            peer.settimeout(READY_S)
            peer.connect(path)
            with contextlib.suppress(ConnectionError):  # it may be closed already
                peer.sendall(HELLO)
        answered = 0
        for peer in crowd:
            peer.settimeout(0.5)
            with contextlib.suppress(TimeoutError, ConnectionError):
                answered += bool(peer.recv(1))
        assert 5 < answered < 63
        assert descriptors(daemon) <= FEW
        assert first.call("recall", query="mortar")["hits"]
        for peer in crowd:
            peer.close()
        while first.call("status")["traffic"]["connections"] > 1:
            pass  # until it has seen that they are gone
        assert daemon.ask("recall", query="mortar")["hits"]
        said = daemon.said().count("no descriptor")
        assert (
            1 <= said <= 1 + (clock.monotonic() - began) / 10
        )  # told every ten seconds, no oftener
        log = write(daemon.state / "sessions/late.jsonl", native_owner("the late quarry"))
        assert log.exists()
        daemon.ask("sync", deadline_ms=120_000)
        assert daemon.ask("recall", query="quarry")["hits"]
        assert daemon.stop() == 0


def test_however_many_logs_there_are_few_files_are_open_q01(user_home: Path) -> None:
    sessions(user_home, 300)
    with Daemon(user_home) as daemon:
        daemon.start(before=few_descriptors)
        most = 0
        with daemon.client() as memory:
            while (told := memory.call("status"))["rows"] != 300 or told["behind"]["logs"]:
                most = max(most, descriptors(daemon))
                with contextlib.suppress(MemorydError):
                    memory.call("sync", deadline_ms=100)
        assert 0 < most < FEW
        assert daemon.ask("recall", query='"house 299"')["hits"]
        assert daemon.ask("status")["faults"] == []
        assert daemon.stop() == 0


@pytest.mark.slow
def test_10_000_logs_are_read_with_few_files_open_q01(user_home: Path) -> None:
    sessions(user_home, 10_000)
    with Daemon(user_home) as daemon:
        daemon.start(before=few_descriptors)
        most = 0
        with daemon.client() as memory:
            while (told := memory.call("status"))["rows"] != 10_000 or told["behind"]["logs"]:
                most = max(most, descriptors(daemon))
                with contextlib.suppress(MemorydError):
                    memory.call("sync", deadline_ms=2_000)
        assert 0 < most < FEW
        assert daemon.stop() == 0


def asked_meanwhile(memory: Client, first: Path, number: int) -> tuple[int, list[int], int]:
    """Write the next backlog; return what is answered until it is read, what is said to be left, and its size."""
    backlog = first.with_name(f"backlog{number}.jsonl")
    text = " ".join(f"mortar{number} quarry granite basalt" for number in range(60))
    write(backlog, native_session(f"b{number}"), *[native_owner(text)] * 6_000)
    hits, behind = 0, list[int]()
    while not behind or memory.call("status")["rows"] < 6_000 * number + 1:
        hits += bool(memory.call("recall", query="crane")["hits"])
        behind.append(memory.call("status")["behind"]["bytes"])
        append(first, native_owner("one more word"))
    return hits, behind, backlog.stat().st_size + 100 * len(behind)


def test_while_a_backlog_is_read_questions_are_answered_and_its_size_is_told_q07(
    user_home: Path,
) -> None:
    first = write(
        user_home / "state/sessions/a.jsonl", native_session("s"), native_owner("crane grease")
    )
    with Daemon(user_home) as daemon:
        daemon.start().ask("sync")
        with daemon.client() as memory:
            for number in range(1, 11):  # a client that is seldom let go may miss the steps
                hits, behind, size = asked_meanwhile(memory, first, number)
                assert hits == len(behind)
                assert max(behind) <= size
                if len({seen for seen in behind if seen}) > 1:  # it went down step by step
                    break
            else:
                pytest.fail(f"nobody is told how much is not read: {behind}")
        assert daemon.stop() == 0


@pytest.fixture
def small_disk(user_home: Path) -> Iterator[Path]:
    """The state folder on a device of 48 MiB; unmounted at the end."""
    state = user_home / "state"
    state.mkdir(mode=0o700)
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=0700", "memoryd-test", str(state)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        yield state
    finally:
        subprocess.run(["umount", "-l", str(state)], check=True)


@pytest.mark.slow
def test_on_a_real_disk_that_is_nearly_full_indexing_pauses_and_reads_go_on_q06(
    user_home: Path, small_disk: Path
) -> None:
    log = write(small_disk / "sessions/a.jsonl", native_session("s"), native_owner("crane grease"))
    with Daemon(user_home) as daemon:
        daemon.start().ask("sync")
        found = os.statvfs(small_disk)
        filling = small_disk / "filling"
        filling.write_bytes(b"\0" * (found.f_bavail * found.f_frsize - (200 << 10)))
        append(log, native_owner("harbour light"))
        ends = clock.monotonic() + READY_S
        while not (faults := daemon.ask("status")["faults"]):
            assert clock.monotonic() < ends, daemon.said()
            with contextlib.suppress(MemorydError):
                daemon.ask("sync", deadline_ms=300)
        assert [fault["what"] for fault in faults] == ["indexing stands still (disk_full)"]
        assert daemon.ask("recall", query="grease")["hits"]
        assert daemon.ask("recall", query="harbour")["hits"] == []
        daemon.ask("reindex")
        while daemon.ask("status")["rebuild"]["state"] == "running":
            assert clock.monotonic() < ends, daemon.said()
        assert daemon.ask("status")["rebuild"]["code"] == "disk_full"
        assert list(small_disk.glob("index/*.rebuild-*")) == []
        filling.unlink()
        daemon.ask("sync", deadline_ms=120_000)
        assert daemon.ask("recall", query="harbour")["hits"]
        assert daemon.ask("status")["faults"] == []
        assert daemon.stop() == 0


LIMITED = 'echo 20 > /proc/sys/user/max_inotify_watches && exec "$0" -m memoryd'
"""In a user namespace of its own, so that nobody else has fewer watches (user_namespaces(7))."""


def test_where_watches_are_used_up_changes_are_found_by_looking_t30(user_home: Path) -> None:
    for number in range(40):
        folder = user_home / "state" / "sessions" / f"{number}"
        write(folder / "a.jsonl", native_session(f"s{number}"), native_owner(f"mortar {number}"))
    unshare = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    tried = subprocess.run([*unshare, LIMITED, "true"], check=False, capture_output=True)
    if tried.returncode != 0:
        pytest.skip("no user namespace can be had here")
    with Daemon(user_home) as daemon:
        daemon.launch(program=[*unshare, LIMITED, sys.executable])
        daemon.told("READY=1")
        daemon.ask("sync")
        (fault,) = [each["what"] for each in daemon.ask("status")["faults"]]
        assert "fs.inotify.max_user_watches" in fault
        late = [write(folder / "late" / "b.jsonl", native_owner("the late quarry"))
                for folder in sorted((user_home / "state" / "sessions").iterdir())]  # fmt: skip
        ends = clock.monotonic() + READY_S
        with daemon.client() as memory:  # nobody asks to sync
            while memory.call("status")["rows"] < 40 + len(late):
                assert clock.monotonic() < ends, daemon.said()
        assert daemon.ask("recall", query="quarry")["hits"]
        assert daemon.stop() == 0
