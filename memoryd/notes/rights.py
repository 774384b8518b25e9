"""Who may change which note: a session's label against the note's place, as one table.

In: the label of the session that writes, the place, the command, whether the owner acts. Out: do it, let it
wait for the owner, or refuse. No write-down (check 12): what a session above the note's class writes, deletes or
moves could carry what it has seen. No endorsement by oneself (check 13): what an untrusted session writes
lies in the inbox or waits for the owner; it deletes nothing.
"""

from typing import Literal

from memoryd.errors import CheckFailed
from memoryd.labels import Classes, Label
from memoryd.notes.names import Place

Decision = Literal["allow", "pend", "label", "untrusted"]
Command = Literal["create", "str_replace", "insert", "delete", "rename", "restore"]
"""`restore` puts a note's earlier bytes back: an undo, the owner's only."""

TABLE: dict[tuple[bool, bool, bool, str], Decision] = {
    # (session above the note, session untrusted, in the inbox, command) -> decision
    **{(False, False, inbox, command): "allow" for inbox in (False, True)
       for command in ("create", "str_replace", "insert", "delete", "rename")},
    **{(True, untrusted, inbox, command): "label" for untrusted in (False, True)
       for inbox in (False, True)
       for command in ("create", "str_replace", "insert", "delete", "rename")},
    (False, True, True, "create"): "allow",
    (False, True, True, "str_replace"): "allow",
    (False, True, True, "insert"): "allow",
    (False, True, True, "delete"): "untrusted",
    (False, True, True, "rename"): "pend",
    (False, True, False, "create"): "pend",
    (False, True, False, "str_replace"): "pend",
    (False, True, False, "insert"): "pend",
    (False, True, False, "delete"): "untrusted",
    (False, True, False, "rename"): "pend",
}  # fmt: skip


def decide(session: Label, place: Place, command: str) -> Decision:
    """Return what the table says of a session that is not the owner's."""
    return TABLE[session.level > place.level, session.untrusted, place.inbox, command]


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
        )
    if old.inbox and not new.inbox and not owner:
        raise CheckFailed(
            "leaving the inbox makes a note trusted",
            remedy="the owner moves it: `bxctl memory notes rename`",
            check="untrusted",
        )


def above(classes: Classes, session: Label, place: Place) -> CheckFailed:
    """Return the refusal of check 12, which names both classes."""
    return CheckFailed(
        f"this session has seen {classes.name(session.level)};"
        f" the note is {classes.name(place.level)} and would carry it down",
        remedy=f"write below /memories/{classes.name(session.level)}/ instead",
        check="label",
    )


def distrusted() -> CheckFailed:
    """Return the refusal of check 13 for what cannot even wait."""
    return CheckFailed(
        "an untrusted session may not do this",
        remedy="write a note into the class's inbox/; the owner sees it there",
        check="untrusted",
    )
