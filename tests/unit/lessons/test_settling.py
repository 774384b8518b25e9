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
