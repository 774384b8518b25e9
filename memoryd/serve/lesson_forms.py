"""What the methods of lessons take, as structs that check it. Names are those of docs/protocol.md.

A session can be named as `session` or as `session_id`, a relevance as `relevance` or as `relevance_score`.
"""

from typing import Annotated, Literal

import msgspec

from memoryd.serve.asking import Caller
from memoryd.serve.calls import Common
from memoryd.serve.note_args import Claimed

Name = Annotated[str, msgspec.Meta(max_length=1_024)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Words = Annotated[str, msgspec.Meta(max_length=4_096)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=16_384)]


class Nothing(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class Looking(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Who looks, and how high."""

    caller: Caller | None = None
    max_class: str | None = None


class Save(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A lesson in words. `label` raises the session's own; with `owner` it is the label itself."""

    type: Literal["error", "pattern", "decision", "context", "rule", "solution"]
    content: Text
    scope: Literal["project", "session"] = "project"
    metadata: dict[str, object] | None = None
    relevance: Share = 0.5
    relevance_score: Share | None = None
    source_tool: Name | None = None
    source_session: Name | None = None
    project: Words | None = None
    caller: Caller | None = None
    label: Claimed | None = None
    owner: bool = False


class Query(Looking, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Words that must all be there."""

    query: Annotated[Words, msgspec.Meta(min_length=1)]
    type: Name | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 10
    full: bool = False
    evidence: bool = False
    include_superseded: bool = False
    include_archived: bool = False


class Get(Looking, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One lesson."""

    id: Name


class Recall(Looking, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Words any of which may be there; `limit` is worth 500 tokens each."""

    query: Words = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5
    scope: Literal["project", "session", "all"] = "all"
    session: Name | None = None
    session_id: Name | None = None
    project: Words | None = None


class Retrospective(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Whose page: a session by name, or the caller's."""

    session: Name | None = None
    session_id: Name | None = None
    caller: Caller | None = None


class Why(Looking, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What is to be explained."""

    query: Annotated[Words, msgspec.Meta(min_length=1)]


class Export(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """In which form, up to which class, and whether with what is untrusted."""

    caller: Caller | None = None
    format: Literal["okf", "markdown"] = "okf"
    untrusted: bool = False
    max_class: str | None = None


class Import(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A bundle and the label that it gets; without one the highest class, and untrusted."""

    caller: Caller | None = None
    bundle: Annotated[str, msgspec.Meta(min_length=1, max_length=1 << 20)]
    label: Claimed | None = None
    project: Words = ""


class Config(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """List the settings, or set one."""

    caller: Caller | None = None
    action: Literal["list", "set"] = "list"
    key: Name | None = None
    value: Name = "1"


class Feedback(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What somebody thinks of a lesson."""

    memory_id: Name
    verdict: Literal["useful", "wrong", "outdated", "ignore"]
    note: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None
    session: Name | None = None
    session_id: Name | None = None
    caller: Caller | None = None
    max_class: str | None = None


class Trace(Looking, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What a block would hold. `tag` ``memory`` is the one before compacting."""

    query: Words = ""
    session: Name | None = None
    session_id: Name | None = None
    project: Words | None = None
    tag: Literal["context", "memory"] = "context"
    cap: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None


class Audit(Looking, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The whole account; `verbose`: the settings too."""

    verbose: bool = False


class Propose(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Lines for a project's AGENTS.md; with `approve` and the draft's `hash` they are written."""

    caller: Caller | None = None
    project: Annotated[Words, msgspec.Meta(min_length=1)]
    file: Words | None = None
    approve: bool = False
    hash: Name | None = None


class Idle(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which session has come to rest; `end`: for good."""

    caller: Caller | None = None
    session: Name | None = None
    session_id: Name | None = None
    end: bool = False
