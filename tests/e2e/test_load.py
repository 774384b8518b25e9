"""Much at once: clients, records and a rebuild; idle, slow and flooding peers; huge logs and very many.

What is held against a bound is a count or memory, never time. docs/chaos.md names the bounds.
"""

import json
import resource
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import msgpack
import pytest

from memoryd.errors import Busy, MemorydError, Unavailable
from memoryd.serve import server
from tests.support.daemon import Daemon
from tests.support.indexing import World
from tests.support.logs import (
    append,
    native_assistant,
    native_owner,
    native_result,
    native_session,
    write,
)

ROOT = Path(__file__).parents[2]
CLIENTS = 64
ANCHORS = 20
BASE_FDS = 40
"""Descriptors of a daemon that nobody is connected to, at most."""
IDLE = 10_000
FLOOD = 20_000
TRIES = 2_000
"""Each is a round trip in which the daemon has its turn to take leave of those who have gone."""
MOST_MIB = 256
CONFIG = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
[[socket]]
name = "control"
clearance = "secret"
tools = ["*"]
"""

pytestmark = pytest.mark.slow


def rows(start, number):
    return [
        native_assistant(f"ordinary words of record {n} fresh{n}")
        for n in range(start, start + number)
    ]


@pytest.fixture
def daemon(user_home):
    sessions = user_home / "state" / "sessions"
    anchors = [native_owner(f"anchor{n} anchor{n}") for n in range(ANCHORS)]
    write(sessions / "old.jsonl", native_session("old"), *anchors, *rows(0, 5_000))
    for folder in (user_home / "state", sessions):
        folder.chmod(0o700)
    with Daemon(user_home, CONFIG) as daemon:
        daemon.start()
        with daemon.client("control") as memory:
            memory.call("sync", deadline_ms=120_000)
        yield daemon


def usage(daemon):
    """Return the descriptors and the memory (MiB, now and at most) of the daemon."""
    proc = Path(f"/proc/{daemon.process.pid}")
    lines = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    mib = [int(lines[name].split()[0]) // 1024 for name in ("VmRSS", "VmHWM")]
    return len(list((proc / "fd").iterdir())), *mib


class Asking:
    """A client that asks the same thing again and again, and counts what it is told."""

    def __init__(self, daemon, number, stop):
        self.daemon, self.number, self.stop = daemon, number, stop
        self.asked = self.right = self.busy = 0
        self.wrong = []
        self.thread = threading.Thread(target=self.run)

    def run(self):
        word = f"anchor{self.number % ANCHORS}"
        try:
            with self.daemon.client("memoryd", timeout=120.0) as memory:
                while not self.stop.is_set():
                    self.asked += 1
                    try:
                        told = memory.call("recall", query=word, deadline_ms=120_000)
                    except MemorydError as error:
                        if error.code != "busy":
                            raise
                        self.busy += 1
                        continue
                    found = [hit["snippet"].count(word) for hit in told["hits"]]
                    if found == [2]:
                        self.right += 1
                    else:
                        self.wrong.append(told)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.wrong.append(repr(error))


def test_64_clients_are_answered_rightly_while_records_arrive_and_a_rebuild_runs(daemon):
    stop = threading.Event()
    asking = [Asking(daemon, number, stop) for number in range(CLIENTS)]
    log = daemon.state / "sessions" / "new.jsonl"
    write(log, native_session("new"))
    generations = set()
    with daemon.client("control", timeout=120.0) as control:
        for one in asking:
            one.thread.start()
        rebuilds = written = 0
        control.call("reindex")
        while rebuilds < 2 or written < 600:
            append(log, *rows(10_000 + written, 10))
            written += 10
            stop.wait(0.1)
            told = control.call("status", deadline_ms=120_000)
            generations.add(told["generation"])
            if told["rebuild"]["state"] != "running":
                assert told["rebuild"]["state"] == "done", told["rebuild"]
                rebuilds += 1
                if rebuilds < 2:
                    control.call("reindex")
        stop.set()
        for one in asking:
            one.thread.join(120)
        control.call("sync", deadline_ms=120_000)
        indexed = {source["indexed"] for source in control.call("status")["sources"]}
    assert [one.wrong[:1] for one in asking if one.wrong] == []
    assert all(one.right for one in asking)
    assert sum(one.right + one.busy for one in asking) == sum(one.asked for one in asking)
    assert len(generations) >= 3
    assert indexed == {5_000 + ANCHORS + written}


def test_ten_thousand_idle_connections_are_held_or_refused_within_bounds(daemon):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    number = min(IDLE, hard - 200)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    path = next((daemon.state / "run").glob("memoryd.sock"))
    idle = []
    try:
        _, rss, _ = usage(daemon)
        with daemon.client("control") as control:
            for made in range(number):
                peer = socket.socket(socket.AF_UNIX)
                idle.append(peer)
                peer.connect(str(path))  # without a timeout it waits where the queue is full
                if made % 1_000 == 0:
                    assert (
                        control.call("status")["traffic"]["connections"] <= server.CONNECTIONS + 20
                    )
            assert control.call("status")["ready"]
            fds, now, _ = usage(daemon)
        assert fds <= BASE_FDS + server.CONNECTIONS + 20
        assert now - rss < 64
    finally:
        for peer in idle:
            peer.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    with let_in(daemon) as memory:
        assert memory.call("status")["ready"]


def let_in(daemon):
    """Connect as a client does that tries again: those who have just hung up still have their places.

    The first of those who are too many are told so, the others are closed unread.
    """
    for _ in range(TRIES - 1):
        with suppress(Busy, Unavailable):
            return daemon.client("memoryd")
    return daemon.client("memoryd")


def test_floods_and_slow_readers_harm_only_themselves(daemon):
    path = next((daemon.state / "run").glob("memoryd.sock"))
    _, rss, _ = usage(daemon)
    request = msgpack.packb([0, 1, "recall", [{"query": "ordinary words", "limit": 50}]])
    with socket.socket(socket.AF_UNIX) as flood, socket.socket(socket.AF_UNIX) as endless:
        for peer in (flood, endless):
            peer.connect(str(path))
            peer.settimeout(1.0)
        with suppress(OSError):  # at some point nobody takes it any more, as promised
            for _ in range(FLOOD):
                flood.sendall(request)
        with suppress(OSError):
            endless.sendall(b"\xdb\x00\x0f\xff\xff" + b"x" * 900_000)
        with daemon.client("memoryd") as memory:
            for number in range(50):
                told = memory.call("recall", query=f"anchor{number % ANCHORS}", deadline_ms=120_000)
                assert len(told["hits"]) == 1
        assert usage(daemon)[1] - rss < 96


def hungry(home):
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.hungry", str(home)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_log_of_a_gib_is_read_in_bounded_memory_q03(user_home):
    world = World(user_home)
    log = write(world.sessions / "big.jsonl", native_session("big"))
    block = native_result("c", "x" * 65_000, "internal", False)
    line = json.dumps(block).encode() + b"\n"
    word = json.dumps(native_owner("between")).encode() + b"\n"
    with log.open("ab") as file:
        for _ in range((1 << 30) // (len(line) * 16)):
            file.write(line * 16 + word)
    told = hungry(user_home)
    assert log.stat().st_size > (1 << 30) - (2 << 20)
    assert told["unreadable"] == 0
    assert told["records"] > 16_000
    assert told["most_mib"] < MOST_MIB


@pytest.mark.parametrize("ended", [True, False], ids=["a line of 200 MB", "an endless line"])
def test_a_huge_line_is_skipped_in_bounded_memory_t13_t14(user_home, ended):
    world = World(user_home)
    log = write(world.sessions / "long.jsonl", native_session("long"), native_owner("before"))
    with log.open("ab") as file:
        file.write(b'{"kind":"owner","text":"')
        for _ in range(200):
            file.write(b"x" * 1_000_000)
        if ended:
            file.write(b'"}\n')
    if ended:
        append(log, native_owner("after"))
    told = hungry(user_home)
    assert told["unreadable"] == 1
    assert told["rows"] == 1  # what stands behind it is worth the highest class
    assert told["most_mib"] < MOST_MIB


@pytest.mark.parametrize("number", [30_000])
def test_very_many_logs_are_opened_once_and_never_all_at_once_q01(user_home, number):
    world = World(user_home)
    for folder in range(number // 1_000):
        for n in range(1_000):
            write(
                world.sessions / f"{folder}" / f"{n}.jsonl",
                native_session(f"s{n}"),
                native_owner("hello"),
            )
    told = hungry(user_home)
    assert (told["logs"], told["rows"]) == (number, number)
    assert told["opened_again"] == 0
    assert told["descriptors"] < BASE_FDS
    assert told["most_mib"] < MOST_MIB // 2
