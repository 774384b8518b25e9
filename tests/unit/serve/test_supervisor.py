"""What a service manager is told, and when: every time here is a mock clock's."""

import os
import socket
import threading
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from memoryd.serve import supervisor


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "n"))
        heard.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "n"))

        def all_of_it() -> list[str]:
            found = []
            while True:
                try:
                    found.append(heard.recv(4_096).decode())
                except BlockingIOError:
                    return found

        yield all_of_it


async def watched(seconds: float, alive) -> None:
    with trio.move_on_after(seconds):
        await supervisor.watchdog(alive)


async def well() -> None:
    await trio.lowlevel.checkpoint()


async def test_l05_all_is_well_twice_in_each_interval(
    told, monkeypatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "20000000")
    await watched(35, well)
    assert told() == ["WATCHDOG=1"] * 4


@pytest.mark.parametrize("how", ["hangs", "fails"])
async def test_l05_what_does_not_answer_is_not_called_well_and_what_answers_again_is(
    told, monkeypatch, autojump_clock: MockClock, how: str
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "20000000")
    began = trio.current_time()

    async def alive() -> None:
        if 5 < trio.current_time() - began < 45:
            if how == "fails":
                raise OSError("gone")
            await trio.sleep_forever()

    await watched(44, alive)
    assert told() == ["WATCHDOG=1"]
    began -= 50
    await watched(5, alive)
    assert told() == ["WATCHDOG=1"]


@pytest.mark.parametrize(("usec", "pid"), [("", ""), ("0", ""), ("junk", ""), ("1000", "1")])
async def test_l05_who_does_not_ask_for_it_is_told_nothing(
    told, monkeypatch, usec: str, pid: str
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    monkeypatch.setenv("WATCHDOG_PID", pid)
    await supervisor.watchdog(well)
    assert told() == []


async def test_the_state_is_told_where_it_changes(told, autojump_clock: MockClock) -> None:
    states = iter(["one", "one", "two", "two", "two"])
    with trio.move_on_after(45):
        await supervisor.report(lambda: next(states))
    assert told() == ["STATUS=one", "STATUS=two"]


async def test_without_a_manager_nobody_is_told(monkeypatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    supervisor.tell("READY=1")
    await supervisor.report(lambda: "anything")


@pytest.mark.parametrize("address", ["/nowhere/at/all", "", "@memoryd-nobody", "x" * 200, "\0"])
def test_l13_a_manager_that_cannot_be_reached_is_no_fault(monkeypatch, address: str) -> None:
    if "\0" not in address:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    supervisor.tell("READY=1")


def test_l12_a_long_start_asks_for_more_time(told, monkeypatch) -> None:
    monkeypatch.setattr(supervisor, "EXTEND_S", 0.001)
    with supervisor.Patience():
        assert first(told) == "EXTEND_TIMEOUT_USEC=4000\nSTATUS=starting"


def test_l05_a_manager_that_watches_hears_that_a_long_change_goes_on_until_it_is_over(
    told, monkeypatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "2000")
    patience = supervisor.Patience()
    patience.begin("changing")
    assert first(told) == "WATCHDOG=1\nEXTEND_TIMEOUT_USEC=4000\nSTATUS=changing"
    patience.end()
    for asking in threading.enumerate():
        if asking.name == "changing":
            asking.join()
    told()
    assert told() == []


def first(told) -> str:
    while not (heard := told()):
        os.sched_yield()
    return heard[0]


@pytest.mark.parametrize(("fds", "pid", "taken"), [("1", "1", 0), ("0", "own", 0), ("", "", 0)])
def test_l14_what_is_meant_for_another_process_is_left_alone(
    fds: str, pid: str, taken: int
) -> None:
    env = {
        "LISTEN_PID": str(os.getpid()) if pid == "own" else pid,
        "LISTEN_FDS": fds,
        "LISTEN_FDNAMES": "x",
        "HOME": "/",
    }
    assert len(supervisor.handed_over(env)) == taken
    assert env == {"HOME": "/"}
