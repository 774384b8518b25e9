"""Who may write what where: the truth table, cell by cell through the whole check, and what a changed cell does."""

import pytest

from memoryd.notes import rights
from tests.support.notes import OWNER, session

ACTS = (
    "create",
    "str_replace",
    "insert",
    "delete",
    "rename",
    "rename_up",
    "delete_folder",
    "index",
)
TRUTH = """
session        where   create  str_replace  insert  delete     rename     rename_up  delete_folder  index
below          plain   done    done         done    ask        done       ask        ask            ask
below          inbox   done    done         done    ask        untrusted  ask        ask            -
same           plain   done    done         done    ask        done       ask        ask            ask
same           inbox   done    done         done    ask        untrusted  ask        ask            -
above          plain   label   label        label   label      label      label      label          label
above          inbox   label   label        label   label      label      label      label          -
below-tainted  plain   pending pending      pending untrusted  pending    pending    untrusted      untrusted
below-tainted  inbox   done    done         done    untrusted  untrusted  pending    untrusted      -
same-tainted   plain   pending pending      pending untrusted  pending    pending    untrusted      untrusted
same-tainted   inbox   done    done         done    untrusted  untrusted  pending    untrusted      -
above-tainted  plain   label   label        label   label      label      label      label          label
above-tainted  inbox   label   label        label   label      label      label      label          -
unnamed        plain   label   label        label   label      label      label      label          label
owner          plain   done    done         done    done       done       done       done           done
owner          inbox   done    done         done    done       done       done       done           -
"""
"""What each session may do to an internal note.

`rename` moves it to a plain place of its class, `rename_up` to the same place of a higher class.
"""
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
    (who, where, act, said)
    for who, where, *row in (line.split() for line in TRUTH.strip().splitlines()[1:])
    for act, said in zip(ACTS, row, strict=True)
    if said != "-"
]
ARGUMENTS = {
    "create": {"file_text": "new\n"},
    "str_replace": {"old_str": "text", "new_str": "word"},
    "insert": {"insert_line": 0, "insert_text": "new"},
    "delete": {},
    "rename": {"to": "/memories/internal/moved.md"},
    "delete_folder": {"recursive": True},
    "index": {"old_str": "text", "new_str": "word"},
}
COMMANDS = {"rename_up": "rename", "delete_folder": "delete", "index": "str_replace"}
INBOX_TARGET = "/memories/internal/inbox/moved.md"
STAYING = {"same": "done", "same-tainted": "pending", "above": "label", "above-tainted": "label"}
"""A rename that leaves a note in the inbox; out of it, it would become trusted, which is the owner's act."""


def moved_up(act, path):
    return {"to": path.replace("internal", "private")} if act == "rename_up" else {}


def outcome(desk, who, where, act, **more):
    """Do the act and return what came of it, with the notes unchanged unless it was done."""
    folder = "/memories/internal/inbox/" if where == "inbox" else "/memories/internal/"
    path = folder + {"create": "new.md", "delete_folder": "d", "index": "MEMORY.md"}.get(
        act, "a.md"
    )
    for name in ("a.md", *([] if where == "inbox" else ["MEMORY.md"])):
        if not desk.file(folder + name).exists():
            desk.create(folder + name)
    # Empty: that of a folder with notes in it is also decided by the cell of their deletion.
    desk.file(folder + "d").mkdir(mode=0o700, exist_ok=True)
    given = ARGUMENTS.get(act) or moved_up(act, path)
    before = desk.tree(), desk.file(folder + "d").exists()
    said = desk.refusal(COMMANDS.get(act, act), path, SESSIONS[who], **{**given, **more}) or "done"
    assert ((desk.tree(), desk.file(folder + "d").exists()) != before) == (said == "done")
    return said


@pytest.mark.parametrize(("who", "where", "act", "said"), CELLS, ids=str)
def test_case_40_every_cell_of_the_truth_table_holds_n12(desk, who, where, act, said):
    assert outcome(desk, who, where, act) == said


def test_case_40_what_is_refused_leaves_the_journal_as_it_was(desk):
    refused = [cell for cell in CELLS if cell[0] == "above"]
    for _, where, act, _ in refused:
        outcome(desk, "above", where, act)
    refused_only = desk.journal_bytes()
    for _, where, act, _ in refused:
        outcome(desk, "above", where, act)
    assert desk.journal_bytes() == refused_only
    desk.check_sound()


@pytest.mark.parametrize("cell", list(rights.TABLE), ids=lambda cell: "-".join(map(str, cell)))
def test_case_68_a_change_of_any_cell_of_notes_is_noticed(desk, monkeypatch, cell):
    """Each cell of the code's table decides some cell of the truth above."""
    for wrong in {"allow", "ask", "pend", "label", "untrusted"} - {rights.TABLE[cell]}:
        monkeypatch.setitem(rights.TABLE, cell, wrong)
        inbox, standing, act = cell
        who = {"trusted": "same", "untrusted": "same-tainted", "above": "above"}[standing]
        where = "inbox" if inbox else "plain"
        stays = {"to": INBOX_TARGET} if inbox and act == "rename" else {}
        said = outcome(desk, who, where, act, **stays)
        expected = next(row[3] for row in CELLS if row[:3] == (who, where, act))
        if stays:
            expected = STAYING[who]
        assert said != expected, wrong
        for path in sorted(desk.tree()):
            if not path.endswith("/MEMORY.md"):
                desk.edit("delete", f"/memories/{path}")


@pytest.mark.parametrize("who", STAYING)
def test_inside_the_inbox_a_rename_follows_the_table(desk, who):
    assert outcome(desk, who, "inbox", "rename", to=INBOX_TARGET) == STAYING[who]


def test_a_note_moves_up_a_class_never_down(desk):
    desk.create("/memories/internal/a.md")
    up = {"to": "/memories/private/a.md"}
    assert desk.refusal("rename", "/memories/internal/a.md", session(1), **up) == "ask"
    desk.edit("rename", "/memories/internal/a.md", OWNER, **up)
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
