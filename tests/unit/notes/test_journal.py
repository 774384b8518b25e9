"""The journal: its chain, what tampering shows, undo, redact, rotation, a disk that fails (cases 54 to 58)."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from memoryd.errors import Busy, MemorydError
from memoryd.notes import chain, history, reading
from memoryd.notes.desk import Notes
from memoryd.notes.journal import Journal
from tests.support.notes import CLASSES, OWNER, A, B, Desk, digest, refused


def write_some(desk: Desk) -> None:
    """Leave eight lines: two edits of one note, one of another, one deleted."""
    desk.create(A, "one\n")
    desk.replace(A, "one", "two")
    desk.create(B, "three\n")
    desk.edit("delete", B)


def lines(desk: Desk) -> list[bytes]:
    return desk.journal_bytes().split(b"\n")[:-1]


def put(desk: Desk, content: list[bytes]) -> None:
    (desk.home / "journal/journal.jsonl").write_bytes(b"".join(line + b"\n" for line in content))


def where(desk: Desk) -> list[str]:
    return [fault for fault, _ in desk.faults()]


def test_every_line_is_canonical_and_sealed(desk):
    write_some(desk)
    for number, line in enumerate(lines(desk), 1):
        entry = json.loads(line)
        assert (
            line
            == json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        )
        assert (entry["seq"], entry["v"]) == (number, 1)
    desk.check_sound()


def test_an_edit_is_journaled_with_who_what_and_why(desk):
    told = desk.create(A, "one\n", reason="first")
    entry = history.log(desk.notes)[0]
    assert entry["txn"] == told["txn"]
    assert (entry["op"], entry["path"], entry["before"], entry["after"]) == (
        "create",
        "internal/a.md",
        None,
        digest(b"one\n"),
    )
    assert entry["actor"] == {"client": "memoryd", "uid": 0, "pid": 0, "owner": True}
    assert (entry["reason"], entry["ended"], entry["ts"]) == (
        "first",
        "commit",
        "2026-01-01T00:00:00.000Z",
    )
    assert b"one" not in desk.journal_bytes().replace(b'"', b"").split(b"reason")[0]


@pytest.mark.parametrize("number", range(8))
def test_case_54_one_byte_changed_in_any_line_is_reported_with_its_number(desk, number):
    write_some(desk)
    whole = lines(desk)
    for at in range(0, len(whole[number]), 7):
        for bit in (1, 0x80):
            changed = bytearray(whole[number])
            changed[at] ^= bit
            if b"\n" in changed:
                continue
            put(desk, [*whole[:number], bytes(changed), *whole[number + 1 :]])
            assert str(number + 1) in where(desk), at


def test_case_54_a_line_deleted_is_reported_where_it_is_missing(desk):
    write_some(desk)
    whole = lines(desk)
    for number in range(len(whole) - 1):
        put(desk, whole[:number] + whole[number + 1 :])
        assert where(desk)[0] == str(number + 1)


def test_case_54_two_lines_exchanged_are_reported(desk):
    write_some(desk)
    whole = lines(desk)
    for number in range(len(whole) - 1):
        swapped = list(whole)
        swapped[number : number + 2] = reversed(swapped[number : number + 2])
        put(desk, swapped)
        assert str(number + 1) in where(desk)


def test_case_54_a_cut_tail_is_reported_and_an_end_without_its_line_is_mended(desk):
    write_some(desk)
    whole = lines(desk)
    for left in range(len(whole) - 1):
        put(desk, whole[:left])
        assert where(desk)[0] == str(left + 1)
    put(desk, whole[:-1])  # the last commit is told by the note itself
    desk.reopen()
    desk.check_sound()


def test_case_54_an_unkeyed_chain_recomputed_is_reported_line_by_line(desk):
    write_some(desk)
    previous, made = chain.START, []
    for line in lines(desk):
        entry = {**json.loads(line), "prev": previous, "reason": "forged"}
        entry.pop("mac")
        previous = hashlib.sha256(chain.canonical(entry)).hexdigest()
        made.append(chain.canonical({**entry, "mac": previous}))
    put(desk, made)
    assert where(desk)[:8] == [str(number) for number in range(1, 9)]


def test_case_54_a_chain_under_another_key_is_reported(desk):
    write_some(desk)
    previous, made = chain.START, []
    for number, line in enumerate(lines(desk), 1):
        entry = {
            name: value
            for name, value in json.loads(line).items()
            if name not in {"seq", "prev", "mac", "v"}
        }
        sealed = chain.sealed(b"x" * 32, entry, number, previous)
        previous = sealed["mac"]
        made.append(chain.canonical(sealed))
    put(desk, made)
    assert where(desk)[:8] == [str(number) for number in range(1, 9)]


DAMAGES = {
    "a line changed": lambda desk: put(
        desk, [lines(desk)[0].replace(b"create", b"insert"), *lines(desk)[1:]]
    ),
    "a line gone": lambda desk: put(desk, lines(desk)[1:]),
    "the tail cut": lambda desk: put(desk, lines(desk)[:2]),
    "all lines gone": lambda desk: (desk.home / "journal/journal.jsonl").unlink(),
    "no HEAD": lambda desk: (desk.home / "journal/HEAD").unlink(),
    "a forged HEAD": lambda desk: (desk.home / "journal/HEAD").write_bytes(
        chain.anchor(b"x" * 32, 8, "0" * 64) * 2
    ),
    "an empty HEAD": lambda desk: (desk.home / "journal/HEAD").write_bytes(b""),
    "no key": lambda desk: (desk.home / "journal/key").unlink(),
    "a short key": lambda desk: (desk.home / "journal/key").write_bytes(b"x"),
    "a key that others can read": lambda desk: (desk.home / "journal/key").chmod(0o644),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_case_55_a_damaged_journal_lets_notes_be_read_and_not_edited_n05(desk, damage):
    write_some(desk)
    DAMAGES[damage](desk)
    before = desk.journal_bytes()
    desk.reopen()
    assert desk.notes.journal.broken
    assert desk.refusal("create", B, file_text="x") in {"io", "external"}
    assert desk.refusal("str_replace", A, old_str="two", new_str="x", force=True) == "io"
    assert desk.faults() != []
    told = reading.view(desk.notes, A, reading.View(3))
    assert (told["external"], told["label"]["untrusted"]) == (True, True)
    assert desk.journal_bytes() == before
    assert desk.tree() == {"internal/a.md": b"two\n"}


def test_case_55_a_journal_ahead_of_head_is_taken_and_head_follows(desk):
    desk.create(A)
    head = (desk.home / "journal/HEAD").read_bytes()
    desk.create(B)
    (desk.home / "journal/HEAD").write_bytes(head)
    desk.reopen()
    desk.check_sound()
    assert (desk.home / "journal/HEAD").read_bytes() != head


def test_of_the_two_records_of_head_one_may_be_torn(desk):
    write_some(desk)
    for at in (0, chain.ANCHOR_BYTES):
        head = bytearray((desk.home / "journal/HEAD").read_bytes())
        head[at + 10 : at + 200] = bytes(190)
        (desk.home / "journal/HEAD").write_bytes(head)
        desk.reopen()
        desk.check_sound()


@pytest.mark.parametrize("kept", [0, 1, 100])
def test_a_torn_last_line_is_cut_and_its_edit_was_never_acknowledged(desk, kept):
    write_some(desk)
    with (desk.home / "journal/journal.jsonl").open("ab") as file:
        file.write(lines(desk)[0][:kept])
    desk.reopen()
    desk.check_sound()
    desk.create("/memories/internal/c.md")
    desk.check_sound()


def test_case_56_undo_brings_back_what_was_and_twice_does_it_again(desk):
    desk.create(A, "one\n")
    edited = desk.replace(A, "one", "two")
    undone = history.undo(desk.notes, OWNER, edited["txn"])
    assert desk.tree() == {"internal/a.md": b"one\n"}
    history.undo(desk.notes, OWNER, undone["txn"])
    assert desk.tree() == {"internal/a.md": b"two\n"}
    desk.check_sound()


@pytest.mark.parametrize(
    "command", ["create", "str_replace", "insert", "delete", "rename", "rename up"]
)
def test_case_56_every_command_can_be_undone_and_done_again(desk, command):
    if command != "create":
        desk.create(A, "one\n")
    before = desk.tree()
    told = {
        "create": lambda: desk.create(A, "one\n"),
        "str_replace": lambda: desk.replace(A, "one", "two"),
        "insert": lambda: desk.edit("insert", A, insert_line=0, insert_text="zero"),
        "delete": lambda: desk.edit("delete", A),
        "rename": lambda: desk.edit("rename", A, to=B),
        "rename up": lambda: desk.edit("rename", A, to="/memories/secret/a.md"),
    }[command]()
    after = desk.tree()
    undone = history.undo(desk.notes, OWNER, told["txn"])
    assert desk.tree() == before
    desk.reopen()
    history.undo(desk.notes, OWNER, undone["txn"])
    assert desk.tree() == after
    desk.check_sound()


def test_case_56_undo_after_another_edit_conflicts(desk):
    created = desk.create(A, "one\n")
    edited = desk.replace(A, "one", "two")
    desk.replace(A, "two", "three")
    for txn in (created["txn"], edited["txn"]):
        with pytest.raises(MemorydError) as refused:
            history.undo(desk.notes, OWNER, txn)
        assert refused.value.code == "conflict"
    with pytest.raises(MemorydError, match="no such edit"):
        history.undo(desk.notes, OWNER, "none")


def test_case_57_a_redacted_content_is_gone_from_every_byte_and_the_chain_is_whole(desk):
    desk.create(A, "the planted word xyzzy\n")
    edited = desk.replace(A, "the planted word xyzzy", "clean")
    with pytest.raises(MemorydError, match="holds that content now"):
        history.redact(desk.notes, OWNER, digest(b"clean\n"))
    history.redact(
        desk.notes, OWNER, digest(b"the planted word xyzzy\n"), reason="not mine to keep"
    )
    assert b"xyzzy" not in desk.every_byte()
    desk.check_sound()
    with pytest.raises(MemorydError) as refused:
        history.undo(desk.notes, OWNER, edited["txn"])
    assert refused.value.data["check"] == "redacted"
    with pytest.raises(MemorydError, match="no such content"):
        history.redact(desk.notes, OWNER, digest(b"the planted word xyzzy\n"))
    desk.reopen()
    desk.check_sound()


def test_a_content_that_was_redacted_may_be_written_anew(desk):
    desk.create(A, "one\n")
    desk.replace(A, "one", "two")
    history.redact(desk.notes, OWNER, digest(b"one\n"))
    edited = desk.replace(A, "two", "one")
    desk.reopen()
    desk.replace(A, "one", "three")
    history.undo(desk.notes, OWNER, history.log(desk.notes)[-1]["txn"])
    assert desk.tree() == {"internal/a.md": b"one\n"}
    assert edited["hash"] == digest(b"one\n")
    assert desk.replayed() == desk.on_disk()


def test_a_full_journal_goes_on_in_another_file_n10(memoryd_home):
    folder = memoryd_home / "journal"
    with Desk(memoryd_home) as desk:
        desk.notes.journal.rotate_bytes = 2_000
        for number in range(12):
            desk.create(f"/memories/internal/{number}.md", f"{number}\n")
        desk.check_sound()
        assert len(list(folder.glob("journal-*.jsonl"))) >= 3
        desk.reopen()
        desk.check_sound()
        assert [entry["path"] for entry in history.log(desk.notes, limit=3)] == [
            f"internal/{number}.md" for number in (9, 10, 11)
        ]
        oldest = min(folder.glob("journal-*.jsonl"))
        oldest.rename(folder / "gone")
        assert desk.faults()[0][0] == "1"


@pytest.mark.parametrize("failing", range(1, 6))
@pytest.mark.parametrize("command", ["create", "str_replace", "delete", "rename"])
def test_case_58_a_sync_that_fails_ends_all_edits_and_nothing_is_acknowledged(
    desk, monkeypatch, command, failing
):
    desk.create(A, "one\n")
    calls = []

    def fsync(handle: int) -> None:
        calls.append(handle)
        if len(calls) == failing:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    path = B if command == "create" else A
    more = {
        "create": {"file_text": "x\n"},
        "str_replace": {"old_str": "one", "new_str": "two"},
        "delete": {},
        "rename": {"to": B},
    }[command]
    error = refused(lambda: desk.edit(command, path, **more))
    if error is None:
        assert len(calls) < failing, "a failed sync was acknowledged"
        return
    assert (error.code, error.data["check"]) == ("io_error", "io")
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    assert desk.refusal("create", "/memories/internal/c.md", file_text="x") == "io"
    assert reading.view(desk.notes, "/memories", reading.View(3))["entries"]
    desk.reopen()
    desk.check_sound()
    desk.create("/memories/internal/c.md")


def test_a_full_disk_takes_nothing_back_and_the_next_edit_succeeds_n04(desk, monkeypatch):
    desk.create(A, "one\n")
    write, before = os.write, desk.journal_bytes()

    def full(handle: int, content: bytes) -> int:
        if Path(f"/proc/self/fd/{handle}").readlink().name == "journal.jsonl":
            write(handle, content[:10])
            raise OSError(28, "No space left on device")
        return write(handle, content)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(MemorydError) as refused:
        desk.replace(A, "one", "two")
    assert refused.value.code == "disk_full"
    assert desk.journal_bytes() == before
    monkeypatch.setattr(os, "write", write)
    desk.replace(A, "one", "two")
    desk.check_sound()


def test_a_disk_that_fills_while_the_note_is_written_leaves_the_old_one_n04(desk, monkeypatch):
    desk.create(A, "one\n")
    write = os.write

    def full(handle: int, content: bytes) -> int:
        if Path(f"/proc/self/fd/{handle}").readlink().suffix == ".tmp":
            raise OSError(28, "No space left on device")
        return write(handle, content)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(MemorydError) as refused:
        desk.replace(A, "one", "two")
    assert refused.value.code == "disk_full"
    monkeypatch.setattr(os, "write", write)
    assert desk.tree() == {"internal/a.md": b"one\n"}
    desk.check_sound()
    desk.replace(A, "one", "two")


def test_a_second_process_cannot_fork_the_chain(desk):
    with pytest.raises(Busy):
        Notes(desk.home, CLASSES)


def test_a_class_that_is_no_longer_configured_breaks_nothing(desk):
    from memoryd.labels import Classes

    desk.create("/memories/secret/a.md")
    desk.create(A)
    desk.notes.close()
    desk.notes = Notes(desk.home, Classes(("public", "internal", "private")))
    assert [fault for fault in desk.faults() if "secret" not in fault[0]] == []
    desk.edit("delete", A)


def test_the_journal_alone_opens_an_empty_folder(tmp_path):
    journal = Journal(tmp_path / "journal")
    assert (journal.state.seq, journal.broken) == (0, "")
    assert (tmp_path / "journal/key").stat().st_mode & 0o777 == 0o600
