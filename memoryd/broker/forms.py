"""What each memory tool takes: the arguments that a model writes.

In: nothing (values only). Out: one frozen struct a tool. Arguments are decoded with it and the tool's JSON Schema
is made from it, so that a model is told just what is accepted; an argument that is left out stays `UNSET`.
Names and bounds of the memory tools are those of Anthropic's memory tool (``memory_20250818``), so that its calls
can be passed on as they are.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Path = Annotated[
    str,
    Meta(max_length=255, description="A path below /memories, such as /memories/internal/a.md."),
]
Reason = Annotated[str, Meta(max_length=200, description="Why, in one line; the journal keeps it.")]
Expect = Annotated[
    str,
    Meta(
        pattern="^[0-9a-f]{64}$",
        description="The `hash` of the last view; the edit is refused if the note has another.",
    ),
]
Class = Annotated[str, Meta(max_length=32, description="Look up to this class, not only your own.")]
Time = Annotated[
    str, Meta(max_length=64, extra_json_schema={"format": "date-time"}, description="RFC 3339.")
]
Query = Annotated[
    str, Meta(min_length=1, max_length=4_096, description='Words, "quoted phrases", prefix*.')
]
Words = Annotated[str, Meta(min_length=1, max_length=4_096)]
LessonId = Annotated[str, Meta(min_length=1, max_length=64, description="A lesson's id.")]
LessonType = Literal["error", "pattern", "decision", "context", "rule", "solution"]
Kind = Literal["owner", "assistant", "tool_call", "summary", "note", "lesson"]


class Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of one tool."""


class View(Form, frozen=True, kw_only=True):
    """View a note or folder."""

    path: Path
    view_range: (
        Annotated[
            list[int],
            Meta(min_length=2, max_length=2, description="First and last line; -1: to the end."),
        ]
        | UnsetType
    ) = UNSET
    depth: (
        Annotated[int, Meta(ge=1, le=3, description="How deep a folder is shown.")] | UnsetType
    ) = UNSET


class Create(Form, frozen=True, kw_only=True):
    """Create a note."""

    path: Path
    file_text: Annotated[str, Meta(max_length=102_400, description="The note's whole text.")]
    reason: Reason | UnsetType = UNSET


class Replace(Form, frozen=True, kw_only=True):
    """Replace text in a note."""

    path: Path
    old_str: Annotated[
        str, Meta(min_length=1, max_length=102_400, description="It must stand there exactly once.")
    ]
    new_str: Annotated[str, Meta(max_length=102_400)]
    expect: Expect | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET


class Insert(Form, frozen=True, kw_only=True):
    """Insert lines into a note."""

    path: Path
    insert_line: Annotated[int, Meta(ge=0, description="After this line; 0: before the first.")]
    insert_text: Annotated[str, Meta(max_length=102_400)]
    expect: Expect | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET


class Delete(Form, frozen=True, kw_only=True):
    """Delete a note or folder."""

    path: Path
    recursive: Annotated[bool, Meta(description="A folder with all its notes.")] | UnsetType = UNSET
    expect: Expect | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET


class Rename(Form, frozen=True, kw_only=True):
    """Rename or move a note."""

    old_path: Path
    new_path: Path
    expect: Expect | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET


class Recall(Form, frozen=True, kw_only=True):
    """Search what was said and done."""

    query: Query
    limit: Annotated[int, Meta(ge=1, le=20)] | UnsetType = UNSET
    kinds: Annotated[list[Kind], Meta(extra_json_schema={"uniqueItems": True})] | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    project: Annotated[str, Meta(max_length=1_024)] | UnsetType = UNSET
    max_class: Class | UnsetType = UNSET
    untrusted: Literal["include", "owner-only", "exclude"] | UnsetType = UNSET
    cursor: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET


class Open(Form, frozen=True, kw_only=True):
    """Open one record."""

    id: Annotated[str, Meta(pattern="^[a-z2-7]{20}$", description="The `id` of a hit.")]
    before: Annotated[int, Meta(ge=0, le=10, description="Records before it.")] | UnsetType = UNSET
    after: Annotated[int, Meta(ge=0, le=10, description="Records after it.")] | UnsetType = UNSET


class Memory(Form, frozen=True, kw_only=True):
    """The six commands in one tool."""

    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"]
    path: Path | UnsetType = UNSET
    view_range: Annotated[list[int], Meta(min_length=2, max_length=2)] | UnsetType = UNSET
    file_text: Annotated[str, Meta(max_length=102_400)] | UnsetType = UNSET
    old_str: Annotated[str, Meta(max_length=102_400)] | UnsetType = UNSET
    new_str: Annotated[str, Meta(max_length=102_400)] | UnsetType = UNSET
    insert_line: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    insert_text: Annotated[str, Meta(max_length=102_400)] | UnsetType = UNSET
    old_path: Path | UnsetType = UNSET
    new_path: Path | UnsetType = UNSET


class Save(Form, frozen=True, kw_only=True):
    """Save a lesson."""

    type: LessonType
    content: Words
    scope: Literal["project", "session"] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    relevance: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET


class LessonQuery(Form, frozen=True, kw_only=True):
    """Find lessons that hold all the words."""

    query: Words
    type: LessonType | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100)] | UnsetType = UNSET
    full: bool | UnsetType = UNSET
    evidence: bool | UnsetType = UNSET


class LessonGet(Form, frozen=True, kw_only=True):
    """Read one lesson."""

    id: LessonId


class LessonRecall(Form, frozen=True, kw_only=True):
    """Recall the lessons that fit."""

    query: Annotated[str, Meta(max_length=4_096)] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=50, description="500 tokens each.")] | UnsetType = UNSET
    scope: Literal["project", "session", "all"] | UnsetType = UNSET


class LessonStatus(Form, frozen=True, kw_only=True):
    """The figures of the lessons."""


class Retrospective(Form, frozen=True, kw_only=True):
    """Write a session's retrospective."""

    session: (
        Annotated[str, Meta(min_length=1, max_length=1_024, description="Yours, if left out.")]
        | UnsetType
    ) = UNSET


class Why(Form, frozen=True, kw_only=True):
    """Ask what lies behind a failure."""

    query: Words


class Export(Form, frozen=True, kw_only=True):
    """Export lessons as a bundle."""

    format: Literal["okf", "markdown"] | UnsetType = UNSET


class Import(Form, frozen=True, kw_only=True):
    """Import a bundle of lessons."""

    bundle: Annotated[str, Meta(min_length=1, max_length=1_000_000)]


class Configure(Form, frozen=True, kw_only=True):
    """List the settings of the lessons, or set one."""

    action: Literal["list", "set"]
    key: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    value: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET


class Feedback(Form, frozen=True, kw_only=True):
    """Judge a lesson."""

    memory_id: LessonId
    verdict: Literal["useful", "wrong", "outdated", "ignore"]
    note: Annotated[str, Meta(max_length=1_024)] | UnsetType = UNSET


class Trace(Form, frozen=True, kw_only=True):
    """See what the next block would hold."""

    query: Annotated[str, Meta(max_length=4_096)] | UnsetType = UNSET
    session: Annotated[str, Meta(max_length=1_024)] | UnsetType = UNSET
    tag: (
        Annotated[
            Literal["context", "memory"], Meta(description="memory: the one after a compaction.")
        ]
        | UnsetType
    ) = UNSET
    cap: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType = UNSET


class Audit(Form, frozen=True, kw_only=True):
    """The whole account of the lessons."""

    verbose: bool | UnsetType = UNSET


def schema(form: type[Form]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a form, whole: no reference leads out of it."""
    (_,), parts = msgspec.json.schema_components((form,), ref_template="{name}")
    made: dict[str, Any] = next(iter(parts.values()))
    for unneeded in ("title", "description"):
        made.pop(unneeded, None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def given(form: Form) -> dict[str, Any]:
    """Return the arguments that were given, and no others."""
    told: dict[str, Any] = msgspec.to_builtins(form)
    return told
