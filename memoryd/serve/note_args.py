"""What the methods of notes take: one struct a method, whose fields are its arguments.

In: the map of a request, by `serve.calls`. Out: checked values; a mistake is refused before a note is looked at.
"""

from typing import Annotated

import msgspec

from memoryd.serve.asking import Caller
from memoryd.serve.calls import Common

Text = Annotated[str, msgspec.Meta(max_length=4_096)]


class Claimed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A label that the asking side knows of; it can only raise the daemon's own."""

    cls: str = msgspec.field(name="class")
    untrusted: bool


class Looking(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Who looks, and how high."""

    caller: Caller | None = None
    max_class: str | None = None


class ViewArgs(Looking, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A note's lines, or a folder's entries."""

    path: str
    view_range: tuple[int, int] | None = None
    depth: int = 2
    raw: bool = False


class ListArgs(Looking, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Notes at and below a path, from behind `after` on."""

    path: str = "/memories"
    after: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 500


class Editing(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What every edit may say beside its own arguments."""

    caller: Caller | None = None
    label: Claimed | None = None
    expect: str | None = None
    reason: str = ""
    owner: bool = False
    force: bool = False


class CreateArgs(Editing, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A new note."""

    path: str
    file_text: str


class ReplaceArgs(Editing, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Other words in the one place where some stand."""

    path: str
    old_str: str
    new_str: str


class InsertArgs(Editing, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """New lines after a line."""

    path: str
    insert_line: int
    insert_text: str


class DeleteArgs(Editing, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A note away, or with `recursive` a folder."""

    path: str
    recursive: bool = False


class RenameArgs(Editing, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Another place for a note."""

    old_path: str
    new_path: str


class LogArgs(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The newest entries of the journal, of one note if given."""

    path: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 50


class UndoArgs(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The edit to undo."""

    txn: Text


class Nothing(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class AcceptArgs(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A proposal, or a note changed outside with the hash ("": no file) that the owner was shown."""

    txn: Text | None = None
    path: str | None = None
    expect: str | None = None
    force: bool = False


class RejectArgs(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The proposal to turn down."""

    txn: Text
    reason: Annotated[str, msgspec.Meta(max_length=200)] = ""


class RedactArgs(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The hash of the content to take away."""

    hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    reason: Annotated[str, msgspec.Meta(max_length=200)] = ""
