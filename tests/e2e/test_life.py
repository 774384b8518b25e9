"""The life of a real daemon: signals, being stopped, limits of its files, and many starts at once."""

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from memoryd import clock
from memoryd.errors import MemorydError, TimedOut
from tests.support.daemon import READY_S, Daemon
from tests.support.logs import append, native_owner, native_session, write

ONE = '[[socket]]\nname = "memoryd"\nclearance = "secret"\ntools = ["*"]\n'
TOO_LONG = 200


@pytest.fixture
def log(memoryd_home: Path) -> Path:
    return write(
        memoryd_home / "sessions/a.jsonl", native_session("s"), native_owner("crane grease")
    )


@pytest.fixture
def daemon(user_home: Path, log: Path) -> Iterator[Daemon]:
    with Daemon(user_home, ONE) as daemon:
        yield daemon


def reload(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGHUP)


def faults(daemon: Daemon) -> list[str]:
    return [fault["what"] for fault in daemon.ask("status")["faults"]]


def wait_for(daemon: Daemon, words: str) -> None:
    """Return once the daemon's log holds `words`; each look costs a question, so that nobody spins."""
    ends = clock.monotonic() + READY_S
    while words not in daemon.said():
        assert clock.monotonic() < ends, daemon.said()
        with contextlib.suppress(MemorydError):
            daemon.ask("status")


MOST_ENDS = 5


def ended_twice(daemon: Daemon) -> int:
    """End a daemon that has a question in flight, for two seconds, twice; return its exit code."""
    asked = {"query": "crane", "caller": {"log": "a.jsonl", "n": 99}}
    with daemon.client() as memory:
        memory._sock.sendall(msgpack.packb([0, 77, "recall", [asked]]))
        memory.call("status")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.told("STOPPING=1")
        daemon.process.send_signal(signal.SIGTERM)
        return daemon.process.wait(READY_S)


def test_a_second_signal_ends_it_at_once_and_half_writes_no_note_l07(daemon: Daemon) -> None:
    daemon.start().ask("sync")
    with daemon.client() as memory:
        memory.call("notes.create", path="/memories/internal/a.md", file_text="one\n", owner=True)
    codes = [ended_twice(daemon)]
    while codes[-1] == 0 and len(codes) < MOST_ENDS:  # two seconds had passed between two signals
        daemon.start()
        codes.append(ended_twice(daemon))
    assert codes[-1] == 1, codes
    daemon.start()
    assert daemon.ask("notes.verify")["faults"] == []
    assert daemon.ask("notes.view", path="/memories/internal/a.md", raw=True)["text"] == "one\n"
    assert daemon.stop() == 0


def test_whoever_hangs_for_a_moment_costs_its_clients_their_deadline_only_l11(
    daemon: Daemon,
) -> None:
    daemon.start().ask("sync")
    with daemon.client() as memory:
        memory._timeout = 0.3
        daemon.process.send_signal(signal.SIGSTOP)
        for _ in range(2):
            with pytest.raises(TimedOut):
                memory.call("recall", query="crane")
        daemon.process.send_signal(signal.SIGCONT)
        assert daemon.ask("recall", query="crane")["hits"]
        assert daemon.ask("status")["traffic"]["internal_errors"] == 0
    assert daemon.stop() == 0


@pytest.mark.slow
def test_it_is_ready_before_it_has_read_what_there_is_l12(daemon: Daemon, log: Path) -> None:
    for number in range(40):
        write(
            log.with_name(f"{number}.jsonl"),
            native_session(f"s{number}"),
            *[
                native_owner(f"the mortar of house {number}, course {course}")
                for course in range(500)
            ],
        )
    daemon.start()
    said = daemon.said()
    told = daemon.ask("status")
    assert told["rows"] in (None, *range(20_002))
    assert "read all that was there" not in said or told["behind"]["logs"] == 0
    daemon.ask("sync", deadline_ms=120_000)
    said = daemon.said()
    assert said.index("read all that was there") > said.index('"serving"')
    assert daemon.ask("status")["rows"] == 20_001


@pytest.mark.slow
@pytest.mark.parametrize("address", [None, "", "/no/such/socket", "@" + "x" * TOO_LONG])
def test_no_manager_or_an_odd_one_is_no_fault_l13(daemon: Daemon, address: str | None) -> None:
    del daemon.env["NOTIFY_SOCKET"]
    if address is not None:
        daemon.env["NOTIFY_SOCKET"] = address
    daemon.launch()
    wait_for(daemon, '"serving"')
    assert daemon.ask("status")["faults"] == []
    assert daemon.stop() == 0


def test_a_reader_of_its_output_that_left_is_no_end_l09(daemon: Daemon) -> None:
    reader, writer = os.pipe()
    daemon.launch(before=lambda: os.dup2(writer, 2) and None)
    os.close(reader)
    os.close(writer)
    daemon.told("READY=1")
    reload(daemon)
    assert daemon.ask("sync") is not None
    assert daemon.ask("recall", query="crane")["hits"]
    assert daemon.stop() == 0


@pytest.mark.slow
def test_a_limit_of_the_size_of_files_is_an_error_and_no_end_l09(daemon: Daemon, log: Path) -> None:
    most = 600_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    daemon.start(before=limited).ask("sync")
    for number in range(60):
        append(log, native_owner(f"the quarry {number} " + "granite basalt marble " * 900))
    ends = clock.monotonic() + READY_S
    while not any("indexing stands still" in what for what in faults(daemon)):
        assert clock.monotonic() < ends, daemon.said()
        with contextlib.suppress(MemorydError):
            daemon.ask("sync", deadline_ms=300)
    assert daemon.ask("recall", query="grease")["hits"]
    assert daemon.ask("status")["traffic"]["internal_errors"] == 0
    assert daemon.stop() == 0


@pytest.mark.slow
def test_of_many_starts_at_once_over_a_killed_one_s_socket_one_serves_l01(daemon: Daemon) -> None:
    daemon.start().kill()
    others = []
    for _ in range(3):
        daemon.launch()
        others.append(daemon.process)
    daemon.told("READY=1")
    running = daemon.ask("status")["pid"]
    codes = {one.pid: one.wait(READY_S) for one in others if one.pid != running}
    assert list(codes.values()) == [75, 75]
    (serving,) = [one for one in others if one.pid == running]
    assert daemon.said().count(f"process {running}") == 2
    serving.terminate()
    assert serving.wait(READY_S) == 0
