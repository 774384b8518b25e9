"""Who may change which note: a session's label against the note's place, as one table.

In: the label of the session that writes, the place, the command, whether the owner acts. Out: do it, let it
wait for the owner, or refuse. No write-down (check 12): what a session above the note's class writes, deletes or
moves could carry what it has seen. No endorsement by oneself (check 13): what an untrusted session writes
lies in the inbox or waits for the owner; it deletes nothing. What takes something from other readers (a removal, a
move to a higher class, the class's index note) a trusted session does only once the owner has approved it.
"""

from typing import Literal

from memoryd.errors import CheckFailed
from memoryd.labels import Classes, Label
from memoryd.notes.names import INDEX_NOTE, Place

Decision = Literal["allow", "ask", "pend", "label", "untrusted"]
"""`ask` and `pend` wait for the owner: a trusted session's act, or an untrusted one's proposal."""
Command = Literal["create", "str_replace", "insert", "delete", "rename", "restore"]
"""`restore` puts a note's earlier bytes back: an undo, the owner's only."""
Act = Literal[
    "create", "str_replace", "insert", "delete", "rename", "delete_folder", "rename_up", "index"
]
"""A command by what it does: `index` is any change of a class's index note."""
Standing = Literal["trusted", "untrusted", "above"]
"""How a session stands to a place: not above it, trusted or not; or above it, where that decides."""

_PLAIN: dict[tuple[Standing, str], Decision] = {
    ("trusted", "create"): "allow",         ("untrusted", "create"): "pend",
    ("trusted", "str_replace"): "allow",    ("untrusted", "str_replace"): "pend",
    ("trusted", "insert"): "allow",         ("untrusted", "insert"): "pend",
    ("trusted", "rename"): "allow",         ("untrusted", "rename"): "pend",
    ("trusted", "rename_up"): "ask",        ("untrusted", "rename_up"): "pend",
    ("trusted", "delete"): "ask",           ("untrusted", "delete"): "untrusted",
    ("trusted", "delete_folder"): "ask",    ("untrusted", "delete_folder"): "untrusted",
    ("trusted", "index"): "ask",            ("untrusted", "index"): "untrusted",
    ("above", "create"): "label",           ("above", "str_replace"): "label",
    ("above", "insert"): "label",           ("above", "rename"): "label",
    ("above", "rename_up"): "label",        ("above", "delete"): "label",
    ("above", "delete_folder"): "label",    ("above", "index"): "label",
}  # fmt: skip
_INBOX: dict[tuple[Standing, str], Decision] = {
    ("trusted", "create"): "allow",         ("untrusted", "create"): "allow",
    ("trusted", "str_replace"): "allow",    ("untrusted", "str_replace"): "allow",
    ("trusted", "insert"): "allow",         ("untrusted", "insert"): "allow",
    ("trusted", "rename"): "allow",         ("untrusted", "rename"): "pend",
    ("trusted", "rename_up"): "ask",        ("untrusted", "rename_up"): "pend",
    ("trusted", "delete"): "ask",           ("untrusted", "delete"): "untrusted",
    ("trusted", "delete_folder"): "ask",    ("untrusted", "delete_folder"): "untrusted",
    ("above", "create"): "label",           ("above", "str_replace"): "label",
    ("above", "insert"): "label",           ("above", "rename"): "label",
    ("above", "rename_up"): "label",        ("above", "delete"): "label",
    ("above", "delete_folder"): "label",
}  # fmt: skip
TABLE: dict[tuple[bool, Standing, str], Decision] = {
    **{(False, *cell): said for cell, said in _PLAIN.items()},
    **{(True, *cell): said for cell, said in _INBOX.items()},
}
"""(in the inbox, standing, act) -> decision."""


def standing(session: Label, place: Place) -> Standing:
    """Return how a session that is not the owner's stands to a place."""
    if session.level > place.level:
        return "above"
    return "untrusted" if session.untrusted else "trusted"


def act_of(command: str, place: Place, target: Place | None, *, folder: bool = False) -> str:
    """Return what a command does, as the table names it."""
    if command == "delete" and folder:
        return "delete_folder"
    if target is not None and target.level > place.level:
        return "rename_up"
    return "index" if place.segments == (INDEX_NOTE,) else command


def decide(session: Label, place: Place, act: str) -> Decision:
    """Return what the table says of a session that is not the owner's."""
    return TABLE[place.inbox, standing(session, place), act]


def rule(session: Label, place: Place, act: str) -> str:
    """Return the cell that decides, for whoever asks why."""
    where = "in the inbox, " if place.inbox else ""
    return f"{act}, {where}{standing(session, place)} session: {decide(session, place, act)}"


def check_rename(
    classes: Classes, old: Place, new: Place, *, owner: bool, forced: bool = False
) -> None:
    """Refuse a move that shows a note to more readers, or makes it trusted.

    Up a class is possible (fewer readers); down only where the owner forces it, as an undo does, whose bytes
    lay there before. Out of the inbox is an endorsement: the owner's.
    Raises: CheckFailed (``label``, ``untrusted``).
    """
    if new.level < old.level and not forced:
        raise CheckFailed(
            f"a note of class {classes.name(old.level)} cannot move down to {classes.name(new.level)}",
            remedy="create a new note there with what may be known there; the owner may force it",
            check="label",
            rule="rename to a lower class: label",
        )
    if old.inbox and not new.inbox and not owner:
        raise CheckFailed(
            "leaving the inbox makes a note trusted",
            remedy="the owner moves it: `bxctl memory notes rename`",
            check="untrusted",
            rule="rename out of the inbox: the owner's",
        )


def above(classes: Classes, session: Label, place: Place, act: str, *, named: bool) -> CheckFailed:
    """Return the refusal of check 12, which names both classes; `named`: the caller said which session it is."""
    note = classes.name(place.level)
    seen = classes.name(session.level)
    problem = f"this session has seen {seen}; the note is {note} and would carry it down"
    remedy = f"write below /memories/{seen}/ instead"
    if not named:
        problem = f"no session is named, so that it may have seen anything; the note is {note}"
        remedy = "name it in `caller`; or the owner gives the socket its `unnamed` (docs/configuration.md)"
    return CheckFailed(problem, remedy=remedy, check="label", rule=rule(session, place, act))


def distrusted(session: Label, place: Place, act: str) -> CheckFailed:
    """Return the refusal of check 13 for what cannot even wait."""
    return CheckFailed(
        "an untrusted session may not do this",
        remedy="write a note into the class's inbox/; the owner sees it there",
        check="untrusted",
        rule=rule(session, place, act),
    )
