"""What a reader sees, and what a rebuild of the index sees."""

import threading

import pytest

from memoryd.errors import MemorydError
from memoryd.labels import Label
from memoryd.notes import reading
from memoryd.notes.names import Place
from memoryd.notes.reading import View
from memoryd.notes.shelf import Shelf, label_of
from tests.support.notes import CLASSES, OWNER, A, B, Desk, session


def paths(told) -> list[str]:
    return [entry["path"] for entry in told.get("entries", told.get("notes"))]


@pytest.fixture
def filled(desk: Desk) -> Desk:
    desk.create("/memories/public/p.md", "---\ntitle: Public\ntags: [a]\n---\nbody\n")
    desk.create(A, "one\ntwo\n")
    desk.create("/memories/internal/dir/sub/deep.md")
    desk.create("/memories/internal/inbox/web.md", asker=session(1, untrusted=True))
    desk.create("/memories/secret/s.md")
    return desk


def test_classes_above_the_clearance_are_absent(filled):
    told = reading.view(filled.notes, "/memories", View(1), depth=3)
    assert not any("secret" in path or "private" in path for path in paths(told))
    assert told["label"] == {"class": "internal", "untrusted": True}
    assert "secret" not in repr(told)
    for path in ("/memories/secret", "/memories/secret/s.md", "/memories/none/s.md"):
        with pytest.raises(MemorydError) as refused:
            reading.view(filled.notes, path, View(1))
        assert (refused.value.code, refused.value.message) == ("not_found", "no such note")


def test_a_low_reader_s_answers_are_the_same_with_and_without_hidden_notes(filled):
    def answers():
        return [
            reading.view(filled.notes, "/memories", View(1), depth=3),
            reading.listing(filled.notes, View(1)),
            reading.view(filled.notes, A, View(1)),
        ]

    before = answers()
    for number in range(5):
        filled.create(f"/memories/secret/{number}.md")
    filled.outside("secret/odd.md", b"\xff")
    assert answers() == before


def test_a_folder_lists_folders_first_then_notes_by_code_point(filled):
    filled.create("/memories/internal/B.md")
    told = reading.view(filled.notes, "/memories/internal/", View(1), depth=1)
    assert paths(told) == [
        "/memories/internal/dir/",
        "/memories/internal/inbox/",
        "/memories/internal/B.md",
        A,
    ]
    deep = reading.view(filled.notes, "/memories/internal", View(1), depth=3)
    assert "/memories/internal/dir/sub/deep.md" in paths(deep)
    assert "/memories/internal/inbox/web.md [untrusted]" in deep["text"]


def test_a_reader_who_is_shown_nothing_untrusted_sees_none(filled):
    filled.outside("internal/out.md", b"out\n")
    for told in (
        reading.view(filled.notes, "/memories", View(1, untrusted=False), depth=3),
        reading.listing(filled.notes, View(1, untrusted=False)),
    ):
        assert not any("inbox" in path or "out" in path for path in paths(told))
        assert told["label"]["untrusted"] is False
    for path in ("/memories/internal/inbox/web.md", "/memories/internal/out.md"):
        with pytest.raises(MemorydError, match="no such note"):
            reading.view(filled.notes, path, View(1, untrusted=False))


def test_an_entry_tells_what_the_note_says_of_itself(filled):
    entry = reading.listing(filled.notes, View(0))["notes"][0]
    assert {name: entry[name] for name in ("title", "tags", "lines", "external", "flags")} == {
        "title": "Public", "tags": ["a"], "lines": 5, "external": False, "flags": [],
    }  # fmt: skip


def test_a_listing_goes_on_where_it_ended(filled):
    first = reading.listing(filled.notes, View(3), limit=2)
    rest = reading.listing(filled.notes, View(3), after=first["next"])
    assert paths(first) + paths(rest) == paths(reading.listing(filled.notes, View(3)))
    assert rest["next"] is None


def test_a_folder_of_more_than_500_says_so(desk):
    for number in range(501):
        desk.outside(f"internal/{number}.md", b"x\n")
    told = reading.view(desk.notes, "/memories/internal", View(1), depth=1)
    assert (len(told["entries"]), told["more"]) == (500, True)


@pytest.mark.parametrize("more", [{"depth": 0}, {"depth": 4}, {"view_range": (1, 2)}])
def test_a_folder_refuses_what_is_for_notes(filled, more):
    with pytest.raises(MemorydError) as refused:
        reading.view(filled.notes, "/memories/internal", View(1), **more)
    assert refused.value.data["check"] == "args"


def test_a_note_is_read_in_numbered_lines(filled):
    told = reading.view(filled.notes, A, View(1), view_range=(2, 2))
    assert (told["text"], told["lines"], told["next"]) == ("     2\ttwo", 2, None)


def test_two_editors_at_once_one_wins_and_the_other_is_told_what_is_there_n11(desk):
    start = desk.create(A, "start\n")["hash"]
    said: list[object] = []
    gate = threading.Barrier(2)

    def edit(word: str) -> None:
        gate.wait()
        try:
            said.append(desk.replace(A, "start", word, session(1, log=word), expect=start)["hash"])
        except MemorydError as error:
            said.append((error.code, error.data["check"], error.data["hash"]))

    threads = [threading.Thread(target=edit, args=(word,)) for word in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [won] = [each for each in said if isinstance(each, str)]
    assert ("conflict", "stale", won) in said
    desk.check_sound()


def test_many_editors_at_once_lose_no_line(desk):
    desk.create(A, "")

    def add(name: int) -> None:
        for number in range(10):
            desk.edit("insert", A, OWNER, insert_line=0, insert_text=f"{name}-{number}")

    threads = [threading.Thread(target=add, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(desk.tree()["internal/a.md"].split())) == 40
    desk.check_sound()


def shelved(shelf: Shelf) -> dict[str, tuple[str, Label]]:
    live = shelf.live()
    found = {}
    for path, place, _ in shelf.notes():
        read = shelf.text(place)
        if read is not None:
            found[path] = (read[0], label_of(place, path, read[1], live))
    return found


def test_the_shelf_labels_notes_by_their_place_and_the_journal(filled):
    shelf = Shelf(filled.home, CLASSES)
    filled.outside("internal/a.md", b"theirs\n")
    filled.outside("internal/odd.md", b"\xff")
    seen = shelved(shelf)
    assert seen["internal/a.md"] == ("theirs\n", Label(1, True))
    assert seen["internal/inbox/web.md"][1] == Label(1, True)
    assert seen["secret/s.md"] == ("text\n", Label(3, False))
    assert "internal/odd.md" not in seen


def test_the_shelf_follows_the_journal_through_rotation(desk):
    desk.notes.journal.rotate_bytes = 1_000
    shelf = Shelf(desk.home, CLASSES)
    for number in range(8):
        desk.create(f"/memories/internal/{number}.md", f"{number}\n")
        assert shelf.live() == desk.notes.journal.state.live
    assert Shelf(desk.home, CLASSES).live() == desk.notes.journal.state.live


@pytest.mark.parametrize("damage", ["cut", "changed", "no HEAD", "key"])
def test_a_damaged_journal_makes_every_note_untrusted(filled, damage):
    shelf = Shelf(filled.home, CLASSES)
    assert shelf.live()
    file = filled.home / "journal" / ("HEAD" if damage == "no HEAD" else "journal.jsonl")
    match damage:
        case "cut":
            file.write_bytes(b"")
        case "changed":
            file.write_bytes(file.read_bytes().replace(b"create", b"insert"))
        case "no HEAD":
            file.unlink()
        case "key":
            (filled.home / "journal/key").write_bytes(b"k" * 32)
    assert Shelf(filled.home, CLASSES).live() == {}


def test_without_notes_the_shelf_is_empty(tmp_path):
    shelf = Shelf(tmp_path, CLASSES)
    assert (list(shelf.notes()), shelf.live(), shelf.text(Place(1, ("a.md",)))) == ([], {}, None)
    assert list(tmp_path.iterdir()) == []


def test_a_rename_moves_what_is_known(desk):
    desk.create(A)
    shelf = Shelf(desk.home, CLASSES)
    assert set(shelf.live()) == {"internal/a.md"}
    desk.edit("rename", A, to=B)
    assert set(shelf.live()) == {"internal/b.md"}
