"""What signals ask for, and how long what they ask for may take: no time passes in here."""

import os
import signal
import threading

import pytest

from memoryd.serve.asked import Asked


class Timer:
    """Stands in for `threading.Timer`, which would end this process."""

    def __init__(self, seconds: float, what: object, args: tuple[int]) -> None:
        assert (seconds, what, args) == (5.0, os._exit, (1,))
        self.daemon = False
        self.started = self.cancelled = 0

    def start(self) -> None:
        if self.started:
            raise RuntimeError("threads can only be started once")
        self.started += 1

    def cancel(self) -> None:
        self.cancelled += 1


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch):
    made: list[Timer] = []

    def make(seconds: float, what: object, args: tuple[int]) -> Timer:
        made.append(Timer(seconds, what, args))
        return made[-1]

    monkeypatch.setattr(threading, "Timer", make)
    return made


def test_l03_an_end_that_was_asked_for_takes_five_seconds_at_most(timers: list[Timer]) -> None:
    with Asked().within(5.0, ending=True):
        assert timers[0].started
        assert timers[0].daemon
    assert timers[0].cancelled


def test_l03_a_changed_configuration_waits_as_long_as_what_is_in_flight(
    timers: list[Timer],
) -> None:
    asked = Asked()
    with asked.kept(), asked.within(5.0, ending=False):
        signal.raise_signal(signal.SIGHUP)
        assert not timers[0].started


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_l03_who_asks_for_an_end_meanwhile_waits_five_seconds_at_most(
    timers: list[Timer], when: str
) -> None:
    asked = Asked()
    with asked.kept():
        if when == "before":
            signal.raise_signal(signal.SIGTERM)
        with asked.within(5.0, ending=False):
            signal.raise_signal(signal.SIGTERM)
            assert timers[0].started == 1
        signal.raise_signal(signal.SIGINT)
    assert timers[0].started == 1
