"""Turns: everybody gets one, whoever fails waits longer each time, and nobody is forgotten."""

from pathlib import Path

import pytest

from memoryd.index.pending import LONGEST_WAIT, Pending
from memoryd.sources import ADAPTERS, LogFile, Root

ROOT = Root("auto", Path("/logs"))


def file(name):
    return LogFile(ROOT, ADAPTERS["native"], name)


@pytest.fixture
def pending():
    pending = Pending()
    for key, name in enumerate("abc"):
        pending.put(key, file(name))
    return pending


def test_logs_are_taken_in_the_order_in_which_they_came(pending):
    pending.put(0, file("a"))  # waits already: keeps its place
    assert [pending.take(0.0)[0] for _ in range(3)] == [0, 1, 2]
    assert pending.take(0.0) is None


def test_a_turn_taken_back_comes_first(pending):
    key, log = pending.take(0.0)
    pending.first(key, log)
    assert pending.take(0.0)[0] == key


def test_who_fails_waits_twice_as_long_each_time_up_to_a_minute(pending):
    now, waits = 0.0, []
    for _ in range(9):
        while (taken := pending.take(now)) is not None:
            if taken[0] == 0:
                pending.failed(*taken, "EACCES", now)
        waits.append(pending.due_in(now))
        now += waits[-1]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, LONGEST_WAIT]
    assert pending.faults[0].reason == "EACCES"


def test_a_hint_does_not_shorten_the_wait_of_who_failed(pending):
    pending.failed(*pending.take(0.0), "EIO", 0.0)
    pending.put(0, file("a"))
    assert [pending.take(0.5)[0] for _ in range(2)] == [1, 2]
    assert pending.take(0.5) is None
    assert pending.take(1.0)[0] == 0


def test_who_succeeds_is_at_fault_no_longer(pending):
    pending.failed(*pending.take(0.0), "EIO", 0.0)
    assert [pending.take(1.0)[0] for _ in range(3)] == [1, 2, 0]
    assert pending.keys() == [0]
    pending.succeeded(0)
    assert pending.keys() == []


def test_nobody_is_due_when_nobody_waits():
    assert Pending().due_in(5.0) is None
    assert len(Pending()) == 0


def test_a_log_that_is_gone_waits_no_more(pending):
    pending.failed(*pending.take(0.0), "EIO", 0.0)
    for key in (0, 1, 2):
        pending.drop(key)
    assert pending.due_in(100.0) is None
    assert 1 not in pending


@pytest.mark.parametrize("number", [1, 7, 2_000])
def test_who_waits_for_logs_that_are_gone_is_tried_a_few_times_each(number):
    pending = Pending()
    for key in range(number):
        pending.put(key, file(f"{key}"))
    tries, read = 0, []
    while (taken := pending.take(0.0)) is not None:
        tries += 1
        if pending.patient:
            pending.hold(*taken)
        else:
            read.append(taken[0])
            pending.succeeded(taken[0])
    assert sorted(read) == list(range(number))
    assert tries <= 12 * number
