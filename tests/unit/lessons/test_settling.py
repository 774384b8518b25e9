"""What is held against a lesson, to the call; and that an end stays one."""

import pytest

from memoryd.lessons import settings, settlement, tools
from tests.support.teaching import DAY, OWNER, TS2304, World

TS6133 = "src/main.ts(9,1): error TS6133: 'bar' is declared but never read."


def held(world: World) -> list[tuple[object, ...]]:
    return world.all("SELECT recurrence FROM lesson WHERE type = 'error'")


def test_only_what_failed_after_the_telling_counts():
    world = World()
    world.fail("s1")
    world.later(1_000).fail("s2")
    world.later(1_000).block("s2")
    world.later(1_000).fail("s2")
    world.idle("s2")
    assert held(world) == [(1,)]


def test_the_session_that_taught_it_and_was_told_is_not_charged_for_what_failed_before():
    world = World()
    world.fail("s1")
    world.later(1_000).fail("s1")
    world.later(1_000).block("s1")
    world.idle("s1")
    assert held(world) == [(0,)]


def test_a_session_that_is_settled_has_rested_then():
    world = World()
    world.fail("s1")
    settlement.settle(world.connection, "s1", 5_000_000_000_000, ended=True)
    assert world.all("SELECT idle_at, ended FROM session") == [(5_000_000_000_000, 1)]
    settlement.settle(world.connection, "s1", 5_000_000_000_001)
    assert world.all("SELECT idle_at, ended FROM session") == [(5_000_000_000_001, 1)]


def test_a_session_that_has_ended_stays_ended():
    world = World()
    world.fail("s1")
    world.idle("s1", ended=True)
    world.later(1_000).idle("s1")
    assert world.all("SELECT ended FROM session") == [(1,)]


def test_a_failure_in_the_same_millisecond_as_the_telling_comes_after_it():
    world = World()
    world.fail("s1")
    world.block("s1")
    world.later(-1_000).fail("s1")
    assert world.all("SELECT at FROM injection") == world.all(
        "SELECT at FROM failed ORDER BY at DESC LIMIT 1"
    )
    world.idle("s1")
    assert held(world) == [(1,)]


def test_what_was_held_against_a_lesson_before_it_came_back_makes_it_stale_no_second_time():
    world = World()
    world.fail("s1")
    standing = []
    for number in range(2, 9):
        world.fail(f"s{number}")  # a failure after it has gone stale makes it active again
        world.idle(f"s{number}")
        standing += world.all("SELECT status, recurrence, forgiven FROM lesson WHERE recurrence")
    assert standing == [
        ("active", 1, 0),
        ("active", 2, 0),
        ("stale", 3, 0),
        ("active", 4, 3),
        ("active", 5, 3),
        ("stale", 6, 3),
        ("active", 7, 6),
    ]


def outcomes(world: World) -> tuple[list[tuple[object, ...]], dict[str, int]]:
    """The ledger's words, and the counters of them."""
    words = ("effective", "ineffective", "inconclusive")
    counted = settings.counters(world.connection)
    return (
        world.all("SELECT outcome, prevented, final FROM injection ORDER BY row"),
        {word: n for word in words if (n := counted[f"injections_{word}"])},
    )


def test_an_outcome_is_written_at_idle_counted_once_and_moved_when_it_changes():
    world = World()
    world.fail("s1")
    world.block("s2")
    assert outcomes(world) == ([("unmeasured", 0, 0)], {})
    world.later(1_000)
    for _ in range(2):
        world.idle("s2")
        assert outcomes(world) == ([("inconclusive", 0, 0)], {"inconclusive": 1})
    world.succeed("s2")
    world.idle("s2")
    assert outcomes(world) == ([("inconclusive", 1, 0)], {"inconclusive": 1})
    world.fail("s2")
    world.idle("s2", ended=True)
    assert world.all("SELECT key FROM metric WHERE value < 0") == []
    assert outcomes(world) == ([("ineffective", 0, 1)], {"ineffective": 1})
    world.succeed("s2")
    world.idle("s2")
    assert outcomes(world) == ([("ineffective", 0, 1)], {"ineffective": 1})


def test_who_is_charged_is_suggested_at_the_session_s_next_block():
    world = World()
    world.fail("s1")
    world.fail("s2")
    assert world.all("SELECT suggestion FROM session WHERE id = 's2'") == [(None,)]
    world.idle("s2")
    assert world.all("SELECT suggestion FROM session WHERE id = 's2'") == [(world.one("id"),)]


def test_an_idle_archives_what_has_been_stale_for_long_and_forgets_what_is_a_year_old():
    world = World()
    world.fail("s1")
    world.block("s2")
    world.connection.execute("UPDATE lesson SET status = 'stale', staled_at = ?", (world.now,))
    world.later(29 * DAY).idle("s3")
    assert (world.one("status"), world.all("SELECT count(*) FROM injection")) == ("stale", [(1,)])
    world.later(2 * DAY).idle("s3")
    assert world.one("status") == "archived"
    world.later(340 * DAY).idle("s3")
    assert world.all("SELECT count(*) FROM injection") == [(0,)]


@pytest.mark.parametrize(("own", "other"), [(TS2304, TS6133), (TS6133, TS2304)])
def test_a_lesson_with_nothing_against_it_keeps_no_other_from_being_charged(own: str, other: str):
    world = World()
    world.fail("s0", text=other)
    world.fail("s1", text=own)
    world.block("s1")
    world.fail("s1", text=other)
    world.idle("s1")
    found = world.all("SELECT session, recurrence FROM lesson WHERE type = 'error' ORDER BY row")
    assert found == [("s0", 1), ("s1", 0)]


def test_the_call_that_taught_a_lesson_anew_is_not_held_against_it():
    world = World()
    world.fail("s0")
    world.block("s1")
    given = tools.Verdict(memory_id=world.one("id"), verdict="outdated", now=world.now)
    tools.feedback(world.connection, OWNER, given)
    world.fail("s1")
    world.idle("s1")
    found = "SELECT session, status, recurrence FROM lesson WHERE type = 'error' ORDER BY row"
    assert world.all(found) == [("s0", "superseded", 0), ("s1", "active", 0)]
    world.fail("s1")
    world.idle("s1")
    assert world.all(found)[1] == ("s1", "active", 1)
