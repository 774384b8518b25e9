"""`bxctl status --watch`: the bar of long work, and where it is not drawn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bxctl import watch
from bxctl.layout import Para, plain
from tests.unit.bxctl.test_status import RUNNING, WELL


def read(left: int, **more: object) -> dict[str, object]:
    return WELL | {"behind": {"logs": 2, "bytes": left, **more}}


def built(done: int, job: str = "rebuild-1") -> dict[str, object]:
    return WELL | {"rebuild": RUNNING | {"job": job, "bytes": done}}


def bars(*looks: tuple[float, dict[str, object]]) -> list[str]:
    """Return the line of each look, a moment and what was told then."""
    work, shown = None, []
    for now, told in looks:
        work, doing = watch.followed(work, told, now)
        shown.append(plain([Para(doing)]).rstrip("\n"))
    return shown


def test_a_rebuild_has_share_rate_and_remaining_time_from_the_second_look_on():
    assert bars((10.0, built(1_000_000)), (12.0, built(3_000_000))) == [
        "━━━━━━━───────────────────────  25 %",
        "━━━━━━━━━━━━━━━━━━━━━━────────  75 %  1.0 MB a second, about 1.0 s left",
    ]


def test_catching_up_counts_from_the_most_that_was_behind():
    looks = ((0.0, read(4_000)), (2.0, read(1_000)), (3.0, read(8_000)), (5.0, read(6_000)))
    first, second, third, fourth = bars(*looks)
    assert first.endswith("─   0 %")
    assert second.endswith("  75 %  1.5 kB a second, about 0.7 s left")
    assert third.endswith("─   0 %"), "more has come in: the stretch begins anew"
    assert fourth.endswith("  25 %  1.0 kB a second, about 6.0 s left")


def test_the_daemon_s_own_rate_counts_where_it_tells_one():
    (line,) = bars((0.0, read(8_000, bytes_per_s=2_000, remaining_s=4)))
    assert line.endswith("  0 %  2.0 kB a second, about 4.0 s left")


@pytest.mark.parametrize(
    "told",
    [
        WELL,
        WELL | {"behind": {"logs": 1, "bytes": 0}},
        WELL | {"rebuild": RUNNING | {"state": "done"}},
        {"ready": True, "uptime": 1.0, "rows": 7},
    ],
)
def test_without_long_work_there_is_no_bar(told):
    work, _ = watch.followed(None, built(1), 0.0)
    assert watch.followed(work, told, 1.0) == (None, ())


def test_another_rebuild_begins_anew():
    assert bars((0.0, built(3_000_000)), (5.0, built(1_000_000, "rebuild-2")))[1].endswith(" 25 %")


@given(st.lists(st.tuples(st.integers(0, 4_000_000), st.floats(0, 1e6)), max_size=5))
def test_a_bar_is_always_as_wide_and_never_tells_of_time_gone(looks):
    for line in bars(*((now, built(done)) for done, now in looks)):
        assert len(line.split(" ")[0]) == watch.BAR
        assert "-" not in line


@pytest.mark.parametrize("words", [["status", "--watch"], ["status", "--watch", "--json"]])
def test_without_a_terminal_it_is_refused_with_a_remedy(words, daemon, bxctl):
    daemon.answers["status"] = WELL
    ran = bxctl(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "--watch draws on a terminal" in ran.err
    assert "bxctl status --json" in ran.err
    assert daemon.asked == []
