"""What is held against a lesson, to the call; and that an end stays one."""

from tests.support.teaching import World


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
