"""Who may write what where: the truth table, cell by cell through the whole check, and what a changed cell does."""

import itertools

import pytest

from memoryd.notes import rights
from tests.support.notes import OWNER, session

COMMANDS = ("create", "str_replace", "insert", "delete", "rename")
TRUTH = """
session        where   create  str_replace  insert  delete     rename
below          plain   done    done         done    done       done
below          inbox   done    done         done    done       untrusted
same           plain   done    done         done    done       done
same           inbox   done    done         done    done       untrusted
above          plain   label   label        label   label      label
above          inbox   label   label        label   label      label
below-tainted  plain   pending pending      pending untrusted  pending
below-tainted  inbox   done    done         done    untrusted  untrusted
same-tainted   plain   pending pending      pending untrusted  pending
same-tainted   inbox   done    done         done    untrusted  untrusted
above-tainted  plain   label   label        label   label      label
above-tainted  inbox   label   label        label   label      label
unnamed        plain   label   label        label   label      label
owner          plain   done    done         done    done       done
owner          inbox   done    done         done    done       done
"""
"""What each session may do to an internal note; `rename` moves it to a plain place of the same class."""
SESSIONS = {
    "below": session(0),
    "same": session(1),
    "above": session(2),
    "below-tainted": session(0, untrusted=True),
    "same-tainted": session(1, untrusted=True),
    "above-tainted": session(2, untrusted=True),
    "unnamed": session(3, untrusted=True, log=None),
    "owner": OWNER,
}
CELLS = [
    (who, where, command, said)
    for who, where, *row in (line.split() for line in TRUTH.strip().splitlines()[1:])
    for command, said in zip(COMMANDS, row, strict=True)
]
ARGUMENTS = {
    "create": {"file_text": "new\n"},
    "str_replace": {"old_str": "text", "new_str": "word"},
    "insert": {"insert_line": 0, "insert_text": "new"},
    "delete": {},
    "rename": {"to": "/memories/internal/moved.md"},
}

INBOX_TARGET = "/memories/internal/inbox/moved.md"
STAYING = {"same": "done", "same-tainted": "pending", "above": "label", "above-tainted": "label"}
"""A rename that leaves a note in the inbox; out of it, it would become trusted, which is the owner's act."""


def outcome(desk, who, where, command, **more):
    """Do the command and return what came of it, with the notes unchanged unless it was done."""
    folder = "/memories/internal/inbox/" if where == "inbox" else "/memories/internal/"
    path = folder + ("new.md" if command == "create" else "a.md")
    if not desk.file(folder + "a.md").exists():
        desk.create(folder + "a.md")
    before = desk.tree()
    said = desk.refusal(command, path, SESSIONS[who], **{**ARGUMENTS[command], **more}) or "done"
    assert (desk.tree() != before) == (said == "done")
    return said


@pytest.mark.parametrize(("who", "where", "command", "said"), CELLS, ids=str)
def test_case_40_every_cell_of_the_truth_table_holds(desk, who, where, command, said):
    assert outcome(desk, who, where, command) == said


def test_case_40_what_is_refused_leaves_the_journal_as_it_was(desk):
    for where in ("plain", "inbox"):
        for command in COMMANDS:
            outcome(desk, "above", where, command)
    refused_only = desk.journal_bytes()
    for where, command in itertools.product(("plain", "inbox"), COMMANDS):
        outcome(desk, "above", where, command)
    assert desk.journal_bytes() == refused_only
    desk.check_sound()


@pytest.mark.parametrize("cell", list(rights.TABLE), ids=lambda cell: "-".join(map(str, cell)))
def test_a_change_of_any_cell_is_noticed(desk, monkeypatch, cell):
    """Each cell of the code's table decides some cell of the truth above."""
    for wrong in {"allow", "pend", "label", "untrusted"} - {rights.TABLE[cell]}:
        monkeypatch.setitem(rights.TABLE, cell, wrong)
        above, untrusted, inbox, command = cell
        who = ("above" if above else "same") + ("-tainted" if untrusted else "")
        where = "inbox" if inbox else "plain"
        stays = {"to": INBOX_TARGET} if inbox and command == "rename" else {}
        said = outcome(desk, who, where, command, **stays)
        expected = next(row[3] for row in CELLS if row[:3] == (who, where, command))
        if stays:
            expected = STAYING[who]
        assert said != expected, wrong
        for path in ("new.md", "inbox/new.md", "moved.md", "inbox/moved.md", "a.md", "inbox/a.md"):
            if desk.file(f"internal/{path}").exists():
                desk.edit("delete", f"/memories/internal/{path}")


@pytest.mark.parametrize("who", STAYING)
def test_inside_the_inbox_a_rename_follows_the_table(desk, who):
    assert outcome(desk, who, "inbox", "rename", to=INBOX_TARGET) == STAYING[who]


def test_a_note_moves_up_a_class_never_down(desk):
    desk.create("/memories/internal/a.md")
    desk.edit("rename", "/memories/internal/a.md", session(1), to="/memories/private/a.md")
    down = {"to": "/memories/internal/a.md"}
    assert desk.refusal("rename", "/memories/private/a.md", session(1), **down) == "label"
    assert desk.refusal("rename", "/memories/private/a.md", OWNER, **down) == "label"
    desk.edit("rename", "/memories/private/a.md", OWNER, force=True, **down)
    assert set(desk.tree()) == {"internal/a.md"}


def test_moving_a_low_note_up_is_a_write_down_for_a_session_above_it(desk):
    desk.create("/memories/internal/a.md")
    assert (
        desk.refusal("rename", "/memories/internal/a.md", session(2), to="/memories/private/a.md")
        == "label"
    )


def test_the_refusal_names_both_classes_and_where_to_write(desk):
    with pytest.raises(Exception, match=r"seen private.*internal.*below /memories/private/"):
        desk.create("/memories/internal/a.md", asker=session(2))


def test_an_untrusted_session_fills_its_part_of_an_inbox_only(desk):
    asker = session(1, untrusted=True)
    for number in range(10):
        desk.create(f"/memories/internal/inbox/{number}.md", asker=asker)
    assert desk.refusal("create", "/memories/internal/inbox/x.md", asker, file_text="x") == "rate"
    desk.create(
        "/memories/internal/inbox/y.md", asker=session(1, untrusted=True, log="other.jsonl")
    )
    desk.now += 86_400_001
    desk.create("/memories/internal/inbox/x.md", asker=asker)
