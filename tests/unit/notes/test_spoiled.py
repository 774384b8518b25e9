"""Notes whose bytes were lost, or are none that a note can have: seen, kept from readers, brought back."""

import pytest

from memoryd.errors import MemorydError
from memoryd.index import catch_up
from memoryd.notes import history, waiting
from tests.support.indexing import World, dumped
from tests.support.notes import OWNER, A, B, Desk


@pytest.mark.parametrize("content", [b"", b"\0" * 4_096], ids=["0 bytes", "all NUL"])
def test_a_note_emptied_by_a_power_cut_comes_back_from_the_journal_n13(desk, content):
    desk.create(A, "one\n")
    desk.outside("internal/a.md", content)
    desk.reopen()
    desk.notes.look_after()
    (waits,) = waiting.pending(desk.notes)
    assert (waits["kind"], waits["path"]) == ("external", A)
    assert desk.refusal("str_replace", A, old_str="one", new_str="two") == "external"
    desk.file(A).unlink()
    told = history.accept(desk.notes, OWNER, path=A)
    history.undo(desk.notes, OWNER, told["txn"])
    assert desk.tree() == {"internal/a.md": b"one\n"}
    desk.check_sound()


@pytest.mark.parametrize(
    "content", [b"\xff\xfe bad", b"x" * (2 << 20), b"\0" * 100], ids=["no UTF-8", "2 MiB", "NUL"]
)
def test_what_no_note_can_be_is_passed_and_named_where_it_is_read_n08(user_home, content):
    world = World(user_home, "[[source]]\nkind = 'auto'\npath = '{logs}'\n")
    with Desk(world.state) as desk:
        desk.create(B, "a good one\n")
        desk.outside("internal/a.md", content)
        with world.index() as index:
            catch_up(index)
            assert b"a good one" in b"".join(dumped(index))
            assert not any(b'"internal/a.md"' in line for line in dumped(index))
        desk.notes.look_after()
        assert "internal/a.md" in [where for where, _ in desk.faults()]
        with pytest.raises(MemorydError) as refused:
            history.accept(desk.notes, OWNER, path=A)
        assert refused.value.data["check"] in ("text", "unsafe")


@pytest.mark.parametrize("kind", ["many", "deep"])
def test_folders_without_end_are_looked_at_within_bounds_q08(desk, kind):
    desk.create(B, "a good one\n")
    folder = desk.home / "notes/internal"
    if kind == "many":
        for number in range(3_000):
            (folder / f"x{number}.txt").touch(mode=0o600)
    else:
        for _ in range(200):
            folder = folder / "d"
            folder.mkdir(mode=0o700)
        (folder / "deep.md").touch(mode=0o600)
    desk.notes.look_after()
    found = list(desk.notes.store.notes())
    assert [one.place.name for one in found if not one.odd] == ["b.md"]
    assert desk.replace(B, "good", "better")["status"] == "edited"
    assert all(len(one.place.segments) <= 6 for one in found)
