"""`bxctl status --watch` on a real terminal: drawn again in place, through a restart, until Ctrl-C."""

import os
import pty
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bxctl import watch
from tests.support.logs import dated, native_owner, native_session
from tests.support.running import BXCTL, LIMIT_S, Running, running


class Watching:
    """A watching `bxctl` on a terminal of its own."""

    def __init__(self, leader: int, process: subprocess.Popen[bytes]) -> None:
        self.leader, self.process, self.shown = leader, process, ""

    def until(self, words: str) -> str:
        """Read until `words` have been drawn, and return what was drawn since the last time."""
        seen = ""
        while words not in seen:
            ready, _, _ = select.select([self.leader], [], [], LIMIT_S)
            assert ready, f"{words!r} is never drawn: {seen!r}"
            try:
                seen += os.read(self.leader, 1 << 16).decode()
            except OSError:  # EIO: the other end is closed
                raise AssertionError(f"it ended before {words!r}: {seen!r}") from None
        return seen


@contextmanager
def watching(here: Running, **env: str) -> Iterator[Watching]:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [BXCTL, "status", "--watch"],
        env={**here.daemon.env, "TERM": "xterm", "COLUMNS": "80", "LINES": "24", **env},
        stdin=follower, stdout=follower, stderr=follower,
    )  # fmt: skip
    os.close(follower)
    try:
        yield Watching(leader, process)
    finally:
        process.kill()
        process.wait()
        os.close(leader)


@pytest.fixture(scope="module")
def here() -> Iterator[Running]:
    with running({"one": dated(native_session("one"), native_owner("a row"))}) as made:
        yield made


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_is_drawn_in_place_until_it_is_ended_and_leaves_the_terminal_as_it_was(here, end):
    with watching(here) as seen:
        first = seen.until(watch.REST_OF_SCREEN)
        assert first.startswith(watch.OTHER_SCREEN + watch.HOME)
        again = seen.until(watch.REST_OF_SCREEN)
        assert again.startswith(watch.HOME)
        assert "is ready" in again
        seen.process.send_signal(end)
        last = seen.until(" secret\r\n")
        assert watch.OWN_SCREEN in last
        assert "is ready" in last.split(watch.OWN_SCREEN)[1]
        assert seen.process.wait(LIMIT_S) == 0


def test_a_low_terminal_gets_as_much_as_it_holds(here):
    with watching(here, LINES="4") as seen:
        drawn = seen.until(watch.REST_OF_SCREEN)
    assert drawn.count("\n") == 3
    assert drawn.endswith(f"…{watch.REST_OF_LINE}\r\n{watch.REST_OF_SCREEN}")


def test_it_outlives_the_daemon_and_goes_on_with_the_next():
    logs = {"one": dated(native_session("one"), native_owner("a row"))}
    with running(logs) as here, watching(here) as seen:
        seen.until("is ready")
        here.daemon.stop()
        seen.until("asking again each second")
        assert seen.process.poll() is None
        here.daemon.start()
        seen.until("is ready")


def test_where_nobody_answers_it_does_not_begin(here):
    with watching(here, MEMORYD_HOME=str(here.home / "nowhere")) as seen:
        told = seen.until("not running")
        assert watch.OTHER_SCREEN not in told
        assert seen.process.wait(LIMIT_S) == 69
