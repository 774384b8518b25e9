"""Calls that the owner must approve: bound to their letters, made once, and gone after a while."""

import json

import pytest

from memoryd.errors import MemorydError
from memoryd.labels import Label
from memoryd.notes import approvals, history, waiting
from memoryd.notes.request import Limits
from tests.support.notes import OWNER, Desk, session

ASKER = session(1, untrusted=True)
CALL = approvals.Wanted(
    method="recall", args={"query": "keys", "max_class": "private"}, rule="the rule", repeat=True
)
DONE = approvals.Wanted(
    method="lessons.feedback", args={"memory_id": "x", "verdict": "wrong"}, rule="r", repeat=False
)
HOUR_MS = 3_600_000


def refused(desk, wanted=CALL, asker=ASKER):
    """Make the call; return the error that it meets, None when it is let through."""
    try:
        approvals.check(desk.notes, wanted, asker)
    except MemorydError as error:
        return error
    return None


def approved(desk, wanted=CALL):
    """Ask for the call and have the owner approve it; return its transaction."""
    txn = str(refused(desk, wanted).data["txn"])
    history.accept(desk.notes, OWNER, txn=txn)
    return txn


def test_a_call_waits_with_its_literal_arguments_and_its_rule(desk):
    error = refused(desk)
    assert (error.code, error.data["check"], error.data["rule"]) == ("pending", "ask", "the rule")
    [told] = waiting.pending(desk.notes)
    assert (told["kind"], told["op"], told["args"]) == ("call", "recall", CALL.args)
    assert (told["client"], told["session"]) == ("agent", {"log": "s.jsonl", "n": 7})
    assert told["session_label"] == {"class": "internal", "untrusted": True}
    assert (told["txn"], told["approved"], told["rule"]) == (error.data["txn"], False, "the rule")
    desk.check_sound()


def test_asked_twice_it_is_one_question(desk):
    assert refused(desk).data["txn"] == refused(desk).data["txn"]
    assert len(waiting.pending(desk.notes)) == 1


def test_an_approved_call_is_let_through_once(desk):
    txn = approved(desk)
    assert waiting.pending(desk.notes)[0]["approved"] is True
    assert refused(desk) is None
    again = refused(desk)
    assert again.code == "pending"
    assert again.data["txn"] != txn
    desk.check_sound()


@pytest.mark.parametrize(
    ("args", "asker"),
    [
        ({"query": "keys", "max_class": "secret"}, ASKER),
        ({"query": "key", "max_class": "private"}, ASKER),
        ({"query": "keys", "max_class": "private", "limit": 2}, ASKER),
        (CALL.args, session(1, untrusted=True, log="other.jsonl")),
        (CALL.args, session(1, untrusted=True, client="other")),
        (CALL.args, session(2, untrusted=True)),
    ],
    ids=["class", "query", "more", "session", "socket", "label"],
)
def test_an_approval_is_for_these_letters_this_session_and_its_label(desk, args, asker):
    approved(desk)
    wanted = approvals.Wanted(method="recall", args=args, rule="the rule", repeat=True)
    assert refused(desk, wanted, asker).code == "pending"
    assert refused(desk) is None


def test_an_approval_survives_a_restart_and_so_does_its_use(desk):
    approved(desk)
    desk.reopen()
    assert refused(desk) is None
    desk.reopen()
    assert refused(desk).code == "pending"
    desk.check_sound()


def test_what_is_done_by_the_approval_itself_is_used_up_by_it(desk):
    txn = approved(desk, DONE)
    assert waiting.pending(desk.notes) == []
    with pytest.raises(MemorydError, match="no such proposal"):
        history.accept(desk.notes, OWNER, txn=txn)
    assert refused(desk, DONE).data["txn"] != txn


def test_a_rejected_call_asks_again(desk):
    txn = refused(desk).data["txn"]
    history.reject(desk.notes, txn)
    assert refused(desk).data["txn"] != txn


def test_calls_and_their_approvals_expire(desk):
    late = refused(desk, DONE).data["txn"]
    txn = approved(desk)
    desk.now += 24 * HOUR_MS
    assert refused(desk).data["txn"] != txn
    with pytest.raises(MemorydError, match="waited too long"):
        history.accept(desk.notes, OWNER, txn=late)
    desk.now += 1
    desk.notes.look_after()
    assert len(waiting.pending(desk.notes)) == 1
    desk.check_sound()


def test_calls_take_the_room_of_proposals(memoryd_home):
    with Desk(memoryd_home, Limits(pending_a_session=1)) as desk:
        refused(desk)
        assert refused(desk, DONE).data["check"] == "quota"


def test_a_call_changed_on_the_disk_cannot_be_approved_or_made(desk):
    txn = approved(desk)
    file = desk.home / "journal/pending" / f"{txn}.json"
    forged = json.loads(file.read_bytes())
    forged["label"] = list(Label(3, True))
    file.write_text(json.dumps(forged))
    assert refused(desk).data["txn"] != txn
    assert (
        "changed" in next(one for one in waiting.pending(desk.notes) if one["txn"] == txn)["broken"]
    )


def test_the_journal_tells_the_story_without_the_words(desk):
    approved(desk)
    refused(desk)
    story = [(entry["kind"], entry.get("op")) for entry in history.log(desk.notes)]
    assert story == [("ask", "recall"), ("approve", "recall"), ("use", "recall")]
    assert b"keys" not in desk.journal_bytes()


def folder(desk):
    """Have a trusted session ask to delete a folder of two notes; return the transaction."""
    for name in "ab":
        desk.create(f"/memories/internal/d/{name}.md", f"{name} text\n")
    with pytest.raises(MemorydError) as waits:
        desk.edit("delete", "/memories/internal/d", session(1), recursive=True)
    assert waits.value.data["check"] == "ask"
    return waits.value.data["txn"]


def test_a_folder_s_removal_waits_whole_and_shows_every_note(desk):
    txn = folder(desk)
    [told] = waiting.pending(desk.notes)
    assert (told["op"], told["path"]) == ("delete", "/memories/internal/d")
    assert "-a text\n" in told["diff"]
    assert "-b text\n" in told["diff"]
    desk.reopen()
    assert history.accept(desk.notes, OWNER, txn=txn)["count"] == 2
    assert (desk.tree(), waiting.pending(desk.notes)) == ({}, [])
    desk.check_sound()


@pytest.mark.parametrize("change", ["create", "replace"])
def test_a_folder_that_holds_other_notes_by_then_stays(desk, change):
    txn = folder(desk)
    if change == "create":
        desk.create("/memories/internal/d/c.md")
    else:
        desk.replace("/memories/internal/d/a.md", "text", "words")
    before = desk.tree()
    with pytest.raises(MemorydError) as refused:
        history.accept(desk.notes, OWNER, txn=txn)
    assert (refused.value.data["check"], desk.tree()) == ("stale", before)


@pytest.mark.parametrize(
    ("command", "more"),
    [("delete", {}), ("rename", {"to": "/memories/private/a.md"})],
)
def test_what_a_trusted_session_asks_for_the_owner_s_acceptance_does(desk, command, more):
    path = "/memories/internal/a.md"
    desk.create(path, "one\n")
    assert desk.refusal(command, path, session(1), **more) == "ask"
    assert desk.tree() == {"internal/a.md": b"one\n"}
    history.accept(desk.notes, OWNER, txn=waiting.pending(desk.notes)[0]["txn"])
    assert desk.tree() == ({"private/a.md": b"one\n"} if more else {})
    desk.check_sound()


def test_every_refusal_and_every_wait_says_its_rule(desk):
    path = "/memories/internal/a.md"
    desk.create(path)
    rules = {}
    for name, who in {"above": session(2), "tainted": ASKER, "trusted": session(1)}.items():
        with pytest.raises(MemorydError) as refused_:
            desk.edit("delete", path, who)
        rules[name] = refused_.value.data["rule"]
    assert rules == {
        "above": "delete, above session: label",
        "tainted": "delete, untrusted session: untrusted",
        "trusted": "delete, trusted session: ask",
    }
