"""Another key, killed at each named point: a second run ends it, and nothing is learned or labelled anew."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd import points, rotation, state
from memoryd.errors import ConfigError
from memoryd.ids import Ids
from memoryd.index import overrides, vanished
from memoryd.index.overrides import Forget, Relabel
from memoryd.index.relabels import gathered
from memoryd.lessons import renaming, store
from tests.support import indexing
from tests.support.classroom import Classroom, Script

KEEP = '[index]\nvanished = "keep"\n'


class Killed(BaseException):
    """The end of the process, as far as the code can tell."""


@pytest.fixture(autouse=True)
def nobody_observes() -> Iterator[None]:
    yield
    points.observe(None)


def session(name: str) -> Script:
    script = Script(name).owner(f"the build of {name} fails")
    return script.fail(f"npm run {name}").edit().good(f"npm run {name}").end()


def lived(user: Path) -> list[bytes]:
    """Leave a state with lessons, a rewritten log, a vanished one, and its key; return the index's dump."""
    with Classroom(user) as room:
        for name in ("a", "b", "gone"):
            room.write(f"{name}.jsonl", session(name))
        room.learn()
        (room.world.sessions / "b.jsonl").unlink()
        room.write("b.jsonl", session("other"))
        room.learn()
        (room.world.sessions / "gone.jsonl").unlink()
        room.learn()
        dump = indexing.dumped(room.index)
    key = user / "state" / state.KEY
    key.write_bytes(indexing.KEY)
    key.chmod(0o600)
    return dump


def learned(user: Path, key: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[bytes]]:
    """Follow the logs under `key`, and return what is learned under names that no key decides, and the dump."""
    monkeypatch.setattr(indexing, "KEY", key)
    with Classroom(user) as room:
        room.learn()
        places = {f"{Ids(key).log_key(*known.place):012x}": known.place.log
                  for known in room.index.known().values()}  # fmt: skip
        told = room.told()

        def named(value: object) -> object:
            known = isinstance(value, str) and places.get(value[:12])
            return f"{known}{value[12:]}" if known else value

        plain = {
            table: sorted((tuple(named(one) for one in row) for row in rows), key=repr)
            for table, rows in told.items()
        }
        return plain, indexing.dumped(room.index)


def rotated(user: Path, observe: Callable[[str], None] | None = None) -> bytes:
    world = indexing.World(user)
    settings = world.settings()
    points.observe(observe)
    try:
        return rotation.rotate(settings)[0]
    finally:
        points.observe(None)


def unnamed(dump: list[bytes]) -> list[bytes]:
    """Return a dump without what a key decides."""
    import json

    return sorted(
        json.dumps({k: v for k, v in json.loads(line).items() if k != "id"}).encode()
        for line in dump
    )


def test_killed_at_any_point_a_second_run_ends_it_and_nothing_is_learned_twice(
    user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = indexing.KEY
    lived(user_home)
    template = user_home / "template"
    shutil.copytree(user_home / "state", template)
    before = learned(user_home, old, monkeypatch)
    assert (len(before[0]["lesson"]), len(before[0]["call"])) == (2, 11)
    met: list[str] = []
    for number in range(20):
        shutil.rmtree(user_home / "state")
        shutil.copytree(template, user_home / "state")
        monkeypatch.setattr(indexing, "KEY", old)
        count = iter(range(100))

        def observe(point: str, count: Iterator[int] = count, number: int = number) -> None:
            if point.startswith("keys:") and next(count) == number:
                met.append(point)
                raise Killed

        try:
            key = rotated(user_home, observe)
        except Killed:
            if (user_home / "state" / state.NEXT).exists():
                with pytest.raises(ConfigError, match="not finished"):
                    state.key(user_home / "state")
                key = rotated(user_home)
            else:
                key = state.key(user_home / "state")
            assert key != old
        else:
            break
        assert state.key(user_home / "state") == key
        assert not (user_home / "state" / state.NEXT).exists()
        home = user_home / "state"
        place = ("native", str(home / "sessions"), "gone.jsonl")
        target = vanished.path_of(home, Ids(key).log_key(*place))
        assert list((home / vanished.FOLDER).iterdir()) == [target]
        after = learned(user_home, key, monkeypatch)
        assert after[0] == before[0], met[-1]
        assert unnamed(after[1]) == unnamed(before[1])
    assert [point.rpartition(": ")[2] for point in met] == [
        "next written",
        "lessons renamed",
        "kept logs renamed",
        "index removed",
        "changed",
    ]


def test_what_the_owner_ruled_on_keeps_its_names_and_what_is_forgotten_stays_so(
    user_home: Path,
) -> None:
    lived(user_home)
    home, old = user_home / "state", Ids(indexing.KEY)
    place = ("native", str(home / "sessions"), "a.jsonl")
    name = old.content("0/0/words")
    overrides.append(home, Relabel(*place, 0, 9, name, "mine", cls="secret"), Forget(*place, 3, 3))
    key = rotated(user_home)
    assert (len(key), key[32:]) == (64, old.content_key)
    new = Ids(key)
    assert new.content("0/0/words") == name
    assert new.log_key(*place) != old.log_key(*place)
    classes = indexing.World(user_home).settings().classes
    (ruling,) = gathered(overrides.read(home), new, classes).of(new.log_key(*place))
    assert name in ruling.rows
    assert rotated(user_home)[32:] == old.content_key


def test_where_nothing_was_ruled_on_nothing_of_the_old_key_stays(user_home: Path) -> None:
    lived(user_home)
    assert len(rotated(user_home)) == 32


def test_a_name_that_nobody_knows_stays_and_a_rewritten_log_keeps_its_number() -> None:
    connection = store.memory()
    old, new, other = "0" * 12, "1" * 12, "2" * 12
    for name in (old, f"{old}.1", other):
        connection.execute("INSERT INTO progress VALUES (?, 4)", (name,))
    assert renaming.rename(connection, {old: new}) == 2
    found = {str(name) for (name,) in connection.execute("SELECT log FROM progress")}
    assert found == {new, f"{new}.1", other}
    assert renaming.rename(connection, {old: new}) == 0
