"""Whose index it is: foreign, newer, older, or made under other settings (U rows, S22)."""

import apsw
import msgspec
import pytest

from memoryd import migrations
from memoryd.errors import ConfigError
from memoryd.index import Index, NoGate, building, opening
from tests.support.indexing import dumped, publish
from tests.support.logs import claude_user, dated, write


@pytest.fixture
def log(world):
    return write(world.logs / "a.jsonl", *dated(claude_user("one"), claude_user("two")))


def names(world):
    return sorted(path.name for path in (world.state / "index").iterdir())


def built(world):
    settings = world.settings()
    return building.build(opening.new_temp(settings.path), settings)


def test_a_foreign_database_is_refused_and_left_as_it_is_u03(world):
    path = world.state / "index" / "memory.sqlite3"
    path.parent.mkdir(mode=0o700)
    connection = apsw.Connection(str(path))
    connection.pragma("application_id", 1234)
    connection.execute("CREATE TABLE mine(a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="another program") as caught:
        Index(world.settings())
    assert caught.value.exit_code == 78
    assert path.read_bytes() == before
    assert names(world) == ["memory.sqlite3"]


def test_an_index_of_a_newer_memoryd_is_refused_and_left_as_it_is_u02(world, log):
    world.caught_up()
    path = world.state / "index" / "memory.sqlite3"
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 99)
    connection.pragma("journal_mode", "delete")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="version 99"):
        Index(world.settings())
    assert path.read_bytes() == before


def test_an_index_of_an_older_schema_is_rebuilt_u01(world, log):
    world.caught_up()
    path = world.state / "index" / "memory.sqlite3"
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 1)
    connection.pragma("journal_mode", "delete")
    connection.close()
    with world.index() as index:
        assert index.why == "another version"
        index.publish(built(world), NoGate())
        assert dumped(index) == world.fresh()


@pytest.mark.parametrize(
    "toml",
    [
        pytest.param('[index]\nmax_class = "public"\n', id="s22-max-class"),
        pytest.param('[labels]\nclasses = ["public", "internal", "private"]\n', id="c05-classes"),
        pytest.param('[[labels.tool]]\nmatch = "Bash"\nclass = "private"\n', id="rules"),
        pytest.param('[labels]\nstart = "internal"\n', id="start"),
        pytest.param('[labels]\nprofile = "strict"\n', id="profile"),
    ],
)
def test_at_another_epoch_nothing_is_served_until_it_is_rebuilt_c05_s22_u07(world, log, toml):
    world.caught_up()
    with world.index(toml + world.toml) as index:
        assert (index.ready, index.why) == (False, "other settings")
        publish(index, index.settings)
        assert index.ready
        assert dumped(index) == world.fresh(toml + world.toml)
    with world.index(toml + world.toml) as index:
        assert index.ready


def test_changing_folders_alone_is_no_other_epoch(world, log):
    world.caught_up()
    with world.index(world.toml + '[[source]]\npath = "{logs}/more"\n') as index:
        assert index.ready


@pytest.mark.parametrize("inside", ["", "/index", "/notes/internal", "/journal", "/sessions/sub"])
def test_a_folder_of_logs_inside_memoryd_s_own_is_refused_c07(world, inside):
    with pytest.raises(ConfigError, match="memoryd's own folder") as refused:
        world.settings(f'[[source]]\npath = "{world.state}{inside}"\n')
    assert refused.value.exit_code == 78
    assert refused.value.remedy


def test_a_folder_of_logs_around_memoryd_s_own_is_read_without_it_c07(world):
    log = write(world.logs / "a.jsonl", *dated(claude_user("one")))
    (world.state / "reads.jsonl").write_bytes(log.read_bytes().replace(b"one", b"own"))
    found = world.caught_up(f'[[source]]\nkind = "auto"\npath = "{world.user}"\n')
    assert [b'"one"' in line for line in found] == [True]


def test_other_words_of_the_search_engine_s_table_rebuild_the_index_u08(world, log, monkeypatch):
    world.caught_up()
    steps = migrations.steps("index")
    assert any("tokenize" in step.sql for step in steps)
    other = [
        msgspec.structs.replace(step, sql=step.sql.replace("tokenize", "tokenize ", 1))
        for step in steps
    ]
    monkeypatch.setattr(migrations, "steps", lambda database: tuple(other))
    with world.index() as index:
        assert (index.ready, index.why) == (False, "other settings")
        publish(index, index.settings)
        assert index.ready
        assert dumped(index) == world.fresh()


def test_an_index_of_a_newer_memoryd_may_be_deleted_and_comes_back_u09(world, log):
    before = world.caught_up()
    path = world.state / "index" / "memory.sqlite3"
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(ConfigError, match="set the file aside"):
        Index(world.settings())
    path.unlink()
    assert world.caught_up() == before
