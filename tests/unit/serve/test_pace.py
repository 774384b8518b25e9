"""How fast a history is read, and under which policy."""

import os
import threading

import pytest

from memoryd.serve.pace import LARGE, Pace, Rate, politely


def test_a_day_s_work_has_no_pace():
    pace = Pace()
    pace.looked(LARGE - 1, 0, 100.0)
    assert not pace.large
    assert pace.rate(5, 1 << 20, 200.0) == Rate()


def test_a_history_is_told_with_its_rate_and_what_remains():
    pace = Pace()
    pace.looked(LARGE, 1_000, 100.0)
    assert pace.large
    assert pace.rate(LARGE, 1_000, 100.0) == Rate()
    assert pace.rate(30_000, 21_000, 110.0) == Rate(2_000, 15)
    pace.looked(LARGE * 2, 50_000, 120.0)  # a later look does not begin it anew
    assert pace.rate(30_000, 41_000, 120.0) == Rate(2_000, 15)
    pace.took(more=True)
    assert pace.large
    pace.took(more=False)
    assert not pace.large
    assert pace.rate(0, 41_000, 120.0) == Rate()


@pytest.mark.parametrize("wanted", [True, False])
def test_a_polite_thread_is_batch_work_and_only_for_as_long(wanted):
    found = []

    def policy():
        return os.sched_getscheduler(threading.get_native_id())

    def work():
        with pytest.raises(KeyError), politely(wanted):
            found.append(policy())
            raise KeyError
        found.append(policy())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [os.SCHED_BATCH if wanted else os.SCHED_OTHER, os.SCHED_OTHER]
