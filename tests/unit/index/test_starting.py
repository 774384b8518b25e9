"""What an index reads when it is opened, and what it leaves until somebody asks for it."""

import os

import pytest

from memoryd.index import catch_up, table
from memoryd.index.catalogue import Catalogue
from tests.support.families import FAMILIES, put
from tests.support.indexing import World, bump, dumped
from tests.support.logs import claude_user, write

TOML = '[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n'


@pytest.fixture
def world(user_home):
    return World(user_home, TOML)


def laid(world, family):
    """Give the files of a family, all of them read, none of them new; the index is closed."""
    for name, content in FAMILIES[family]().items():
        put(world.logs, world.sessions, name, content)
    files = sorted([*world.logs.rglob("*.jsonl"), *world.sessions.rglob("*.jsonl")])
    for path in files:
        bump(path, -10)
    world.caught_up()
    return files


@pytest.fixture(params=sorted(FAMILIES))
def family(world, request):
    return laid(world, request.param)


def test_a_catalogue_that_was_read_is_the_one_that_logs_were_put_into(world, family):
    with world.index() as index:
        following = index._following
        put_in = Catalogue([])
        for log in table.every(following.connection):
            put_in.put(log)
        assert following.catalogue.known == put_in.known
        assert len(put_in.known) >= len(family)


def test_where_nothing_has_changed_no_relations_are_read(world, family):
    with world.index() as index:
        catch_up(index)
        assert not index._following.writer.related
        assert dumped(index) == world.fresh()


def test_the_first_turn_reads_them_and_rows_are_those_of_a_rebuild(world, family):
    with world.index() as index:
        with family[0].open("r+b") as log:
            log.write(log.read().splitlines(keepends=True)[-1])  # its last line once more
        catch_up(index)
        assert index._following.writer.related
        assert dumped(index) == world.fresh()


@pytest.mark.parametrize("vanished", ["keep", "drop"])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_log_that_vanished_meanwhile_is_dealt_with_as_if_relations_had_been_known(
    user_home, name, vanished
):
    toml = TOML.replace("[index]", f'[index]\nvanished = "{vanished}"')
    for which in (0, -1):
        found = []
        for known in (False, True):
            home = user_home / f"{which}-{known}"
            home.mkdir(mode=0o700)
            world = World(home, toml)
            laid(world, name)[which].unlink()
            with world.index() as index:
                if known:
                    index._following.writer.relate()
                catch_up(index)
                assert index._following.writer.related
                found.append(dumped(index))
        assert found[0] == found[1]


def test_a_log_without_others_needs_none_either(world):
    log = write(world.logs / "a.jsonl", claude_user("alone"))
    os.utime(log, (1_000_000_000, 1_000_000_000))  # one written a moment ago is looked at once more
    world.caught_up()
    with world.index() as index:
        catch_up(index)
        assert not index._following.writer.related
