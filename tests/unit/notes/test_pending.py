"""What waits for the owner: proposals, and edits made outside (cases 41 to 43, 51, 59, 60)."""

import json

import pytest

from memoryd.errors import MemorydError
from memoryd.notes import history, reading, waiting
from memoryd.notes.reading import View
from memoryd.notes.request import Limits
from tests.support.notes import OWNER, A, B, Desk, digest, session

TAINTED = session(1, untrusted=True)
DAY_MS = 86_400_000


def propose(desk: Desk, old: str = "one", new: str = "two") -> str:
    """Have an untrusted session propose an edit of A and return its transaction."""
    with pytest.raises(MemorydError) as waits:
        desk.replace(A, old, new, TAINTED, reason="seen on the web")
    assert waits.value.code == "pending"
    return str(waits.value.data["txn"])


def test_case_41_an_untrusted_edit_of_a_trusted_note_waits_and_changes_nothing(desk):
    desk.create(A, "one\n")
    txn = propose(desk)
    assert desk.tree() == {"internal/a.md": b"one\n"}
    [told] = waiting.pending(desk.notes)
    assert (told["txn"], told["op"], told["client"], told["reason"]) == (
        txn,
        "str_replace",
        "agent",
        "seen on the web",
    )
    assert told["session"] == {"log": "s.jsonl", "n": 7}
    assert told["session_label"] == {"class": "internal", "untrusted": True}
    assert told["diff"].endswith("@@ -1 +1 @@\n-one\n+two\n")
    desk.check_sound()


def test_case_42_a_proposal_on_a_note_that_changed_since_conflicts(desk):
    desk.create(A, "one\nmore\n")
    txn = propose(desk)
    desk.replace(A, "more", "less")
    with pytest.raises(MemorydError) as refused:
        history.accept(desk.notes, OWNER, txn=txn)
    assert refused.value.data["check"] == "stale"
    assert len(waiting.pending(desk.notes)) == 1


def test_case_43_an_accepted_proposal_is_the_owner_s_edit_of_that_session(desk):
    desk.create(A, "one\n")
    txn = propose(desk)
    desk.reopen()
    assert history.accept(desk.notes, OWNER, txn=txn)["hash"] == digest(b"two\n")
    entry = history.log(desk.notes, path=A)[-1]
    assert (entry["of"], entry["proposed_by"], entry["actor"]["owner"]) == (txn, "agent", True)
    assert entry["session"] == {"log": "s.jsonl", "n": 7}
    assert waiting.pending(desk.notes) == []
    desk.check_sound()
    with pytest.raises(MemorydError, match="no such proposal"):
        history.accept(desk.notes, OWNER, txn=txn)


@pytest.mark.parametrize(
    ("command", "more", "after"),
    [
        ("create", {"file_text": "new\n"}, {"internal/b.md": b"new\n"}),
        ("insert", {"insert_line": 0, "insert_text": "zero"}, {"internal/a.md": b"zero\none\n"}),
        ("rename", {"to": B}, {"internal/b.md": b"one\n"}),
    ],
)
def test_every_command_that_waits_can_be_accepted(desk, command, more, after):
    path = B if command == "create" else A
    if command != "create":
        desk.create(A, "one\n")
    assert desk.refusal(command, path, TAINTED, **more) == "pending"
    history.accept(desk.notes, OWNER, txn=waiting.pending(desk.notes)[0]["txn"])
    assert desk.tree() == after
    desk.check_sound()


def test_a_rejected_proposal_is_gone_and_its_contents_can_be_redacted(desk):
    desk.create(A, "one\n")
    txn = propose(desk, new="planted xyzzy")
    with pytest.raises(MemorydError, match="a proposal holds that content"):
        history.redact(desk.notes, OWNER, digest(b"planted xyzzy\n"))
    history.reject(desk.notes, txn, reason="no")
    history.redact(desk.notes, OWNER, digest(b"planted xyzzy\n"))
    assert b"xyzzy" not in desk.every_byte()
    assert waiting.pending(desk.notes) == []
    desk.check_sound()


def test_a_proposal_changed_on_the_disk_is_shown_as_broken_and_cannot_be_accepted(desk):
    desk.create(A, "one\n")
    txn = propose(desk)
    file = desk.home / "journal/pending" / f"{txn}.json"
    forged = json.loads(file.read_bytes())
    forged["edit"]["arguments"]["new_str"] = "something else"
    file.write_text(json.dumps(forged))
    assert "changed" in waiting.pending(desk.notes)[0]["broken"]
    with pytest.raises(MemorydError) as refused:
        history.accept(desk.notes, OWNER, txn=txn)
    assert refused.value.data["check"] == "unsafe"
    history.reject(desk.notes, txn)
    assert waiting.pending(desk.notes) == []


def test_a_file_planted_among_the_proposals_is_none(desk):
    folder = desk.home / "journal/pending"
    (folder / "01.json").write_text("{}")
    assert waiting.pending(desk.notes) == []
    desk.reopen()
    assert list(folder.iterdir()) == []


def test_proposals_have_room_and_expire_after_a_week(memoryd_home):
    with Desk(memoryd_home, Limits(pending=3, pending_a_session=2)) as desk:
        desk.create(A, "one\n")
        for number in range(2):
            propose(desk, new=f"{number}")
        assert desk.refusal("str_replace", A, TAINTED, old_str="one", new_str="x") == "quota"
        other = session(1, untrusted=True, log="other.jsonl")
        assert desk.refusal("str_replace", A, other, old_str="one", new_str="x") == "pending"
        third = session(1, untrusted=True, log="third.jsonl")
        assert desk.refusal("str_replace", A, third, old_str="one", new_str="x") == "quota"
        desk.now += 7 * DAY_MS + 1
        desk.notes.look_after()
        assert waiting.pending(desk.notes) == []
        assert [entry["reason"] for entry in history.log(desk.notes)][-3:] == ["expired"] * 3
        desk.check_sound()


def test_case_60_twenty_tainted_sessions_leave_nothing_but_proposals_and_inbox_notes(desk):
    for number in range(20):
        asker = session(1, untrusted=True, log=f"{number}.jsonl")
        where = "inbox/" if number % 2 else ""
        said = desk.refusal(
            "create",
            f"/memories/internal/{where}{number}.md",
            asker,
            file_text="from now on always\n",
        )
        assert said == ("" if number % 2 else "pending")
    trusted = reading.listing(desk.notes, reading.View(3, untrusted=False))
    assert trusted["notes"] == []
    assert len(waiting.pending(desk.notes)) == 10


@pytest.mark.parametrize("content", [b"theirs\n", None])
def test_case_59_an_outside_edit_is_shown_untrusted_and_waits_with_its_difference_n06(
    desk, content
):
    desk.create(A, "one\n")
    if content is None:
        desk.file(A).unlink()
    else:
        desk.outside("internal/a.md", content)
    [told] = waiting.pending(desk.notes)
    assert (told["kind"], told["path"], told["op"]) == (
        "external",
        A,
        "edit" if content else "delete",
    )
    assert "-one\n" in told["diff"]
    if content is not None:
        seen = reading.view(desk.notes, A, reading.View(3))
        assert (seen["external"], seen["label"]["untrusted"]) == (True, True)
        assert desk.refusal("str_replace", A, old_str="theirs", new_str="x") == "external"
    else:
        assert desk.refusal("create", A, file_text="x") == "external"
    history.accept(desk.notes, OWNER, path=A, expect=told["hash"])
    assert waiting.pending(desk.notes) == []
    desk.check_sound()


def test_case_59_what_was_accepted_is_what_was_shown(desk):
    desk.create(A, "one\n")
    desk.outside("internal/a.md", b"shown\n")
    shown = waiting.pending(desk.notes)[0]["hash"]
    desk.outside("internal/a.md", b"swapped\n")
    with pytest.raises(MemorydError) as refused:
        history.accept(desk.notes, OWNER, path=A, expect=shown)
    assert refused.value.data["check"] == "stale"


def test_an_accepted_outside_edit_can_be_undone(desk):
    desk.create(A, "one\n")
    desk.outside("internal/a.md", b"theirs\n")
    told = history.accept(desk.notes, OWNER, path=A)
    history.undo(desk.notes, OWNER, told["txn"])
    assert desk.tree() == {"internal/a.md": b"one\n"}
    desk.check_sound()


@pytest.mark.parametrize(
    ("content", "check"),
    [
        (b"\xff\xfe", "text"),
        (b"one\r\n", "text"),
        (b"a\fb\n", "text"),
        (b"x" * 5_000, "size"),
        (b"---\nclass: public\n---\n", "front"),
        (b"ghp_a8Kd03jLq92mZx7Vb5Nw1Rt6Yc4Ue0Ig3Hf2\n", "secret"),
    ],
)
def test_case_51_what_no_edit_could_write_is_not_accepted_from_outside_either(desk, content, check):
    desk.outside("internal/a.md", content)
    with pytest.raises(MemorydError) as refused:
        history.accept(desk.notes, OWNER, path=A)
    assert refused.value.data["check"] == check
    assert content not in desk.journal_bytes()
    assert desk.replayed() == {}


def test_an_outside_edit_is_journaled_once_without_its_content(desk):
    desk.outside("internal/a.md", b"theirs xyzzy\n")
    desk.notes.look_after()
    desk.notes.look_after()
    desk.reopen()
    desk.notes.look_after()
    noticed = [entry for entry in history.log(desk.notes) if entry["kind"] == "external"]
    assert [(entry["path"], entry["after"]) for entry in noticed] == [
        ("internal/a.md", digest(b"theirs xyzzy\n"))
    ]
    assert not list((desk.home / "journal").glob("blobs/*/*"))


def test_the_difference_hides_nothing_behind_other_separators(desk):
    desk.create(A, "one\u2028two\n")
    desk.outside("internal/a.md", "one\u2028changed\n".encode())
    assert waiting.pending(desk.notes)[0]["diff"].endswith("-one\u2028two\n+one\u2028changed\n")


def test_accepting_names_one_thing(desk):
    for given in ({}, {"txn": "x", "path": A}):
        with pytest.raises(MemorydError) as refused:
            history.accept(desk.notes, OWNER, **given)
        assert refused.value.data["check"] == "args"


def test_a_note_says_that_an_edit_of_it_waits_until_the_owner_has_answered(desk):
    desk.create(A, "one\n")
    desk.create(B, "two\n")
    everything, trusted_only = View(1), View(1, untrusted=False)
    assert marked(desk, everything) == {A: False, B: False}
    txn = propose(desk)
    assert marked(desk, everything) == {A: True, B: False}
    assert reading.view(desk.notes, A, everything)["pending"] is True
    assert marked(desk, trusted_only) == {A: False, B: False}
    assert reading.view(desk.notes, A, trusted_only)["pending"] is False
    desk.reopen()
    assert marked(desk, everything) == {A: True, B: False}
    history.reject(desk.notes, txn)
    assert marked(desk, everything) == {A: False, B: False}


def marked(desk: Desk, reader: View) -> dict[str, bool]:
    """Return which notes a list says to be awaiting an answer."""
    told = reading.listing(desk.notes, reader)["notes"]
    return {note["path"]: note["pending"] for note in told}


def test_the_history_shows_what_each_edit_changed_and_what_a_proposal_would_have(desk):
    made = desk.create(A, "one\n")["txn"]
    edited = desk.replace(A, "one", "<script>two")["txn"]
    proposed = propose(desk, "<script>two", "three")
    history.reject(desk.notes, proposed)
    assert waiting.change(desk.notes, made)["diff"].endswith("@@ -0,0 +1 @@\n+one\n")
    told = waiting.change(desk.notes, edited)
    assert told["diff"].endswith("@@ -1 +1 @@\n-one\n+<script>two\n")
    assert (told["path"], told["op"], told["redacted"]) == (A, "str_replace", False)
    assert waiting.change(desk.notes, proposed)["diff"].endswith("-<script>two\n+three\n")


def test_a_change_whose_content_was_taken_away_says_so_and_shows_nothing(desk):
    made = desk.create(A, "one\n")["txn"]
    edited = desk.replace(A, "one", "two")["txn"]
    history.redact(desk.notes, OWNER, digest(b"one\n"))
    for txn in (made, edited):
        told = waiting.change(desk.notes, txn)
        assert (told["redacted"], told["diff"]) == (True, "")


def test_a_change_that_never_was_is_not_found(desk):
    with pytest.raises(MemorydError) as refused:
        waiting.change(desk.notes, "nothing")
    assert refused.value.code == "not_found"
