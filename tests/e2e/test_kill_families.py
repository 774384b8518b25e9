"""kill -9 while linked logs appear in any order loses nothing: the index goes on to what a rebuild holds."""

import random

import pytest

from memoryd.index import Index, catch_up
from tests.e2e.test_kill import TOML, Process
from tests.support.families import FAMILIES, put
from tests.support.indexing import World, dumped

POINTS = (
    "catch-up: rows added",
    "catch-up: progress set",
    "catch-up: committed",
    "lineage: folded again",
)


def killed_while_it_arrives(world, family, point, seed):
    """Let a family's files appear one by one under a process that kills itself at a point, again and again."""
    draw = random.Random(seed)
    names = draw.sample(list(family), len(family))
    while names:
        with Process("follow", world, point, str(draw.randrange(1, 6))) as process:
            while names and process.round():
                name = names.pop()
                put(world.logs, world.sessions, name, family[name])
            process.round()
            process.round()


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_that_arrives_between_kills_is_read_whole(user_home, name, point):
    world = World(user_home, TOML)
    killed_while_it_arrives(world, FAMILIES[name](), point, f"{name} {point}")
    index = Index(world.settings())
    try:
        catch_up(index)
        assert dumped(index) == world.fresh()
    finally:
        index.close()


def test_a_family_that_arrives_between_kills_is_read_whole_once(user_home):
    test_a_family_that_arrives_between_kills_is_read_whole(
        user_home, "resumed", "lineage: folded again"
    )
