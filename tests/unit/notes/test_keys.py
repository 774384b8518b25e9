"""The journal's key changed: old lines stay as they are, and nobody with the old key alone can write."""

import shutil
from pathlib import Path

import pytest

from memoryd import points
from memoryd.notes import chain, keys
from memoryd.notes.keys import Keys
from memoryd.notes.shelf import Shelf
from tests.support.notes import CLASSES, A, B, Desk

OLD, NEW = b"o" * 32, b"n" * 32


def changed(desk: Desk) -> int:
    """Write three edits' worth of lines, change the key, write on; return the last line under the old one."""
    desk.create(A, "one\n")
    desk.replace(A, "one", "two")
    desk.notes.journal.change_key()
    desk.create(B, "three\n")
    return desk.notes.journal.keys.since


def journal(desk: Desk) -> Path:
    return desk.home / "journal"


def broken(desk: Desk) -> bool:
    desk.reopen()
    return desk.notes.journal.damage


def test_old_lines_stay_byte_for_byte_and_new_ones_follow_them_in_the_chain(desk):
    desk.create(A, "one\n")
    before, first = desk.journal_bytes(), desk.notes.journal.keys.current
    desk.notes.journal.change_key()
    desk.create(B, "two\n")
    since = desk.notes.journal.keys.since
    kept = (journal(desk) / "journal-000001.jsonl").read_bytes()
    assert kept.startswith(before)
    assert (journal(desk) / f"key-{since:06}").read_bytes() == first
    assert desk.notes.journal.keys.current != first
    entries = list(desk.notes.journal.entries())
    assert [e["kind"] for e in entries[since - 1 : since + 1]] == ["rotate", "rekey"]
    assert entries[since]["prev"] == entries[since - 1]["mac"]
    desk.check_sound()
    desk.reopen()
    desk.check_sound()
    assert Shelf(desk.home, CLASSES).live().keys() == {"internal/a.md", "internal/b.md"}


def test_a_journal_without_a_line_gets_another_key_too(desk):
    desk.notes.journal.change_key()
    desk.reopen()
    assert (desk.notes.journal.keys.since, desk.notes.journal.state.seq) == (0, 1)
    desk.create(A)
    desk.notes.journal.change_key()
    desk.create(B)
    desk.reopen()
    assert len(desk.notes.journal.keys.old) == 2
    desk.check_sound()


def test_the_key_of_a_line_and_what_must_begin_under_the_next():
    both = Keys(NEW, ((4, b"first"), (9, OLD)))
    assert [both.of(seq) for seq in (1, 4, 5, 9, 10)] == [b"first", b"first", OLD, OLD, NEW]
    assert (both.since, Keys(NEW).since) == (9, -1)
    line = chain.sealed(NEW, {"kind": "create"}, 10, "p")
    assert both.check(line, 10, "p") == "does not begin what is sealed with the next key"
    assert both.check(chain.sealed(NEW, {"kind": "rekey"}, 10, "p"), 10, "p") == ""
    assert "without the key" in both.check(chain.sealed(OLD, {"kind": "rekey"}, 10, "p"), 10, "p")


def test_whoever_has_the_old_key_alone_can_change_no_line_of_its_time(desk):
    since = changed(desk)
    folder = journal(desk)
    old = (folder / f"key-{since:06}").read_bytes()
    path = folder / "journal-000001.jsonl"
    lines = [chain.parse(line) for line in chain.lines_of(path.read_bytes())]
    forged, previous = [], chain.START
    for line in lines:
        own = {k: v for k, v in line.items() if k not in {"v", "seq", "prev", "mac"}}
        made = chain.sealed(old, {**own, "reason": "forged"}, line["seq"], previous)
        forged.append(chain.line(made))
        previous = made["mac"]
    path.write_bytes(b"".join(forged))
    assert any("does not follow" in what for _, what in desk.faults())
    assert broken(desk)


@pytest.mark.parametrize("behind", [False, True])
def test_whoever_has_the_old_key_alone_cannot_write_a_whole_other_history(desk, behind):
    since = changed(desk)
    folder = journal(desk)
    old = (folder / f"key-{since:06}").read_bytes()
    entries = [*desk.notes.journal.entries(), *[{"kind": "open"}] * (2 if behind else 0)]
    previous, forged = chain.START, []
    for number, entry in enumerate(entries, 1):
        own = {k: v for k, v in entry.items() if k not in {"v", "seq", "prev", "mac"}}
        made = chain.sealed(old, {**own, "reason": "forged"}, number, previous)
        forged.append(chain.line(made))
        previous = made["mac"]
    (folder / "journal-000001.jsonl").unlink()
    (folder / "journal.jsonl").write_bytes(b"".join(forged))
    (folder / f"key-{since:06}").rename(folder / f"key-{len(entries):06}")
    assert Shelf(desk.home, CLASSES).live() == {}
    assert broken(desk)


def test_an_old_key_that_is_gone_is_a_damage_and_not_a_new_start(desk):
    since = changed(desk)
    (journal(desk) / f"key-{since:06}").unlink()
    assert broken(desk)


def test_a_change_that_has_not_taken_effect_is_taken_back(desk, tmp_path):
    desk.create(A)
    folder, first = journal(desk), desk.notes.journal.keys
    met: list[str] = []

    def observe(point: str) -> None:
        met.append(point)
        shutil.copytree(desk.home, tmp_path / str(len(met)))

    points.observe(observe)
    desk.notes.journal.change_key()
    points.observe(None)
    at = met.index("keys: journal: changed") + 1
    for number in range(1, len(met) + 1):
        home = tmp_path / str(number)
        begun = keys.read(home / "journal")
        with Desk(home) as again:
            assert (again.notes.journal.keys.current == first.current) == (number < at)
            assert begun == again.notes.journal.keys
            assert not list((home / "journal").glob("key.next"))
            again.check_sound()
            again.create(B)
    assert not (folder / "key.next").exists()
