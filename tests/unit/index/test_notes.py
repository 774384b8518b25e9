"""Notes in the index: found, labelled, followed, and the same after any rebuild."""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memoryd import db, points
from memoryd.errors import MemorydError
from memoryd.index import Budget, NoGate, building, catch_up, opening
from memoryd.index.scope import Scope
from memoryd.index.search import Reader
from memoryd.notes import history
from memoryd.recall import recall, sessions
from tests.support.indexing import World, dumped
from tests.support.notes import OWNER, A, B, Desk, session

OPEN = "[[source]]\nkind = 'auto'\npath = '{logs}'\n[index]\nmax_class = 'private'\n"


@pytest.fixture
def world(user_home: Path) -> World:
    return World(user_home, OPEN)


@pytest.fixture
def desk(world: World) -> Iterator[Desk]:
    with Desk(world.state) as desk:
        yield desk


def rows(lines: list[bytes]) -> dict[str, tuple[str, bool, str]]:
    found = {}
    for line in lines:
        row = json.loads(line)
        if row["source"] == "notes":
            assert (row["n"], row["block"], row["kind"]) == (0, 0, "note")
            found[row["log"]] = (row["class"], row["untrusted"], row["text"])
    return found


def test_notes_are_rows_with_the_label_of_their_place(world, desk):
    desk.create(A, "the build\n")
    desk.create("/memories/public/MEMORY.md", "index\n")
    desk.create("/memories/internal/inbox/w.md", "from the web\n", session(1, untrusted=True))
    assert rows(world.caught_up()) == {
        "internal/a.md": ("internal", False, "the build\n"),
        "internal/inbox/w.md": ("internal", True, "from the web\n"),
        "public/MEMORY.md": ("public", False, "index\n"),
    }


def test_a_note_above_max_class_is_not_in_the_index(world, desk):
    desk.create("/memories/secret/s.md", "the planted word xyzzy\n")
    assert rows(world.caught_up()) == {}
    assert b"xyzzy" not in world.settings().path.read_bytes()


def test_notes_are_followed_through_every_edit_n09(world, desk):
    with world.index() as index:

        def now() -> dict[str, tuple[str, bool, str]]:
            catch_up(index)
            assert dumped(index) == world.fresh()
            return rows(dumped(index))

        desk.create(A, "one\n")
        assert now() == {"internal/a.md": ("internal", False, "one\n")}
        desk.replace(A, "one", "two")
        assert now() == {"internal/a.md": ("internal", False, "two\n")}
        desk.edit("rename", A, to="/memories/private/b.md")
        assert now() == {"private/b.md": ("private", False, "two\n")}
        desk.edit("rename", "/memories/private/b.md", to="/memories/secret/b.md")
        assert now() == {}
        desk.create(B, "three\n")
        desk.edit("delete", B)
        assert now() == {}


def test_an_outside_edit_is_untrusted_until_it_is_accepted(world, desk):
    desk.create(A, "one\n")
    with world.index() as index:
        catch_up(index)
        desk.outside("internal/a.md", b"theirs\n")
        desk.outside("internal/new.md", b"new\n")
        desk.outside("internal/odd.md", b"\xff")
        catch_up(index)
        assert rows(dumped(index)) == {
            "internal/a.md": ("internal", True, "theirs\n"),
            "internal/new.md": ("internal", True, "new\n"),
        }
        history.accept(desk.notes, OWNER, path=A)
        catch_up(index)
        assert rows(dumped(index))["internal/a.md"] == ("internal", False, "theirs\n")
        assert dumped(index) == world.fresh()


def test_secrets_that_the_owner_forced_are_masked(world, desk):
    desk.create(A, "token ghp_a8Kd03jLq92mZx7Vb5Nw1Rt6Yc4Ue0Ig3Hf2\n", force=True)
    assert rows(world.caught_up())["internal/a.md"][2] == "token <redacted>\n"


def test_a_hint_of_a_changed_note_is_enough(world, desk):
    with world.index() as index:
        catch_up(index)
        desk.create(A, "one\n")
        index.changed([desk.file(A)])
        assert index.wait() == 0.0
        index.catch_up()
        assert set(rows(dumped(index))) == {"internal/a.md"}


def test_notes_edited_while_an_index_is_built_are_in_it_r09(world, desk):
    desk.create(A, "one\n")
    desk.create(B, "three\n")
    with world.index() as index:
        catch_up(index)
        settings = world.settings()
        built = building.build(opening.new_temp(settings.path), settings)
        desk.replace(A, "one", "two")
        desk.edit("delete", B)
        index.publish(built, NoGate())
        assert rows(dumped(index)) == {"internal/a.md": ("internal", False, "two\n")}
        assert dumped(index) == world.fresh()


def test_many_notes_are_indexed_turn_by_turn(world, desk):
    for number in range(20):
        desk.outside(f"internal/{number}.md", f"{number}\n".encode())
    with world.index() as index:
        index.sweep()
        index.catch_up(Budget(seconds=0.0))
        assert 0 < len(rows(dumped(index))) < 20
        while index.wait() == 0.0:
            index.catch_up(Budget(seconds=0.0))
        assert len(rows(dumped(index))) == 20


def test_recall_finds_notes_beside_records_and_sessions_list_none(world, desk):
    desk.create(A, "deploy with the green button\n")
    desk.create("/memories/private/p.md", "deploy from home\n")
    with world.index() as index:
        catch_up(index)
        settings = world.settings()
        reader = Reader(db.reader(settings.path), settings.ids, settings.classes)
        answer = recall(reader, Scope(1), {"query": "deploy"}, db.Deadline())
        assert [(hit["kind"], hit["source"], hit["session"]) for hit in answer["hits"]] == [
            ("note", "notes", "internal/a.md")
        ]
        assert answer["label"] == {"class": "internal", "untrusted": False}
        assert (
            recall(reader, Scope(3), {"query": "deploy", "kinds": ["owner"]}, db.Deadline())["hits"]
            == []
        )
        assert sessions(reader, Scope(3), {}, db.Deadline())["sessions"] == []
        reader.connection.close()


def test_a_damaged_journal_makes_every_row_untrusted(world, desk):
    desk.create(A, "one\n")
    with world.index() as index:
        catch_up(index)
    (world.state / "journal/HEAD").unlink()
    assert rows(world.caught_up())["internal/a.md"] == ("internal", True, "one\n")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("seed", range(6))
def test_notes_edited_deleted_and_killed_at_random_give_the_dump_of_a_rebuild(world, desk, seed):
    dice = random.Random(seed)
    for _ in range(25):
        path = f"/memories/{dice.choice(['public', 'internal', 'secret'])}/{dice.choice('abc')}.md"
        act = dice.randrange(6)
        left = dice.randrange(12)

        def observe(point: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed

        points.observe(observe if dice.random() < 0.5 else None)
        try:
            match act:
                case 0 | 1:
                    desk.create(path, f"{dice.random()}\n")
                case 2:
                    desk.edit("insert", path, insert_line=0, insert_text=str(dice.random()))
                case 3:
                    desk.edit("delete", path)
                case 4:
                    desk.edit("rename", path, to=f"/memories/private/{dice.choice('abc')}.md")
                case _:
                    desk.outside(path, str(dice.random()).encode())
        except MemorydError:
            pass
        except Killed:
            points.observe(None)
            desk.reopen()
        points.observe(observe if dice.random() < 0.3 else None)
        with suppress(Killed):
            world.caught_up()
        points.observe(None)
    assert world.caught_up() == world.fresh()
    told = {path: text for path, (_, _, text) in rows(world.caught_up()).items()}
    disk = {
        path: content.decode()
        for path, content in desk.tree().items()
        if not path.startswith("secret/")
    }
    assert told == disk
