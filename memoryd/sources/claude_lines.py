"""What is read of a line of Claude Code's log: its fields, and those of what stands in it.

In: nothing (shapes only). Out: `Line`, all that is read of any line, and `LaterLine`, which is enough for nearly
every line of a log once it has told who it is: a third of the fields, and arguments whose depth is known. A line
that does not fit the second fits the first, or is gathered into it field by field.
"""

from datetime import datetime
from typing import Any

import msgspec

from memoryd.sources import base

NOTHING = msgspec.Raw()
"""What stands for a field that is not there."""


class Block(msgspec.Struct, gc=False):
    """A content block; what a thought says is only skipped over, what a result says is not decoded."""

    type: str | None = None
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    is_error: bool | None = None
    content: msgspec.Raw = msgspec.Raw()


class PlainBlock(Block, gc=False):
    """A content block whose arguments are not deep."""

    input: base.Args = None


class Message(msgspec.Struct, gc=False):
    """A message's content: one text, or blocks."""

    content: str | list[Block] | None = None


class PlainMessage(msgspec.Struct, gc=False):
    """The content of a later line's message."""

    content: str | list[PlainBlock] | None = None


class Named(msgspec.Struct, gc=False):
    """An object of which only the type is read."""

    type: str | None = None


class Attachment(msgspec.Struct, gc=False):
    """What was attached; only the words of a queued command are read."""

    type: str | None = None
    prompt: str | list[Block] | None = None
    origin: object = None
    is_meta: object = msgspec.field(name="isMeta", default=None)
    filename: object = None
    path: object = None
    plan_file_path: object = msgspec.field(name="planFilePath", default=None)


class LaterLine(msgspec.Struct, gc=False, rename="camel"):
    """What is read of nearly every line, in about the order of its fields: so the decoder finds them at once."""

    type: str | None = None
    message: PlainMessage | None = None
    timestamp: datetime | None = None
    uuid: str | None = None
    is_sidechain: bool | None = None
    tool_use_result: msgspec.Raw = NOTHING
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    origin: object = None
    forked_from: object = None
    attachment: Attachment | None = None
    data: Named | None = None


class Line(LaterLine, gc=False, rename="camel"):
    """All that is read of any line, and of the first ones of a log, which tell who it is."""

    message: Message | None = None  # type: ignore[assignment] # the same, of deeper arguments
    parent_uuid: str | None = None
    cwd: str | None = None
    session_id: str | None = None
    subtype: str | None = None
    content: msgspec.Raw = NOTHING
    hook_errors: msgspec.Raw = NOTHING
    hook_additional_context: msgspec.Raw = NOTHING
    has_output: object = None
    logical_parent_uuid: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = msgspec.field(name="tool_use_id", default=None)
