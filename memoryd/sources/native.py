"""memoryd's own session log: one flat JSON object a line, written by the owner's agent loop.

In: lines with a `kind`. Out: records with one item each. It is the only format with label fields of its
own, which are passed on unchecked (`Own`); whether they count is decided by where the log lies. A label
field given twice in one object is no label: such a line is not believed.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from memoryd.records import (
    Brought,
    Called,
    Item,
    Kind,
    Link,
    Own,
    Record,
    Returned,
    Said,
)
from memoryd.sources import base

ID = "native"
VERSION = 1

KINDS = frozenset(
    ("session", "owner", "assistant", "summary", "tool_call", "tool_result", "memory_block", "end")
)
_SAID = {"owner": Kind.OWNER, "assistant": Kind.ASSISTANT, "summary": Kind.SUMMARY}
_NO_TEXT = frozenset(("kind", "ts"))
_UNSET = msgspec.UNSET
_milliseconds = base.milliseconds
_LABEL_KEYS = ("class", "untrusted")


class Line(msgspec.Struct, gc=False):
    """What is read of a line; a result's `text` is only skipped over."""

    kind: str | None = None
    ts: datetime | None = None
    text: msgspec.Raw = msgspec.Raw()
    call: str | None = None
    tool: str | None = None
    args: Any = None
    ok: bool | None = None
    cls: object = msgspec.field(name="class", default=msgspec.UNSET)
    untrusted: object = msgspec.UNSET
    session: str | None = None
    project: str | None = None
    agent: str | None = None
    parent: object = None


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of native logs."""
    return [home / "sessions"]


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is native: it has a `kind` and no `type`."""
    if "type" in record or not isinstance(record.get("kind"), str):
        return False
    return record["kind"] in KINDS or None


def parse(line: Line, n: int, begun: bool, raw: bytes | None = None) -> Record:
    """Return the record of a line. Raises: NotJson, CloserLook."""
    kind, ts = line.kind, _milliseconds(line.ts)
    if kind == "tool_result":
        own = Own(line.cls, line.untrusted)
        words = None if line.ok else line.text
        return Record(n, ts, [Returned(0, line.call or None, line.tool, line.ok, own, words)])
    if kind == "tool_call":
        called = Called(0, line.call or None, line.tool or "", base.checked(line.args))
        return Record(n, ts, [called])
    if kind in _SAID:
        return Record(n, ts, _words(line, _SAID[kind]))
    if kind == "memory_block":
        return Record(n, ts, [Brought(0, kind, Own(line.cls, line.untrusted))])
    if kind == "session":
        told = base.about(
            line.session or None, line.project, line.agent or ID, _parent(line.parent)
        )
        return Record(n, ts, [], told)
    if kind == "end":
        return Record(n, ts, [], rest="end")
    return Record(n, ts, base.unknown(kind, base.members(raw), _NO_TEXT))


def _words(line: Line, kind: Kind) -> list[Item]:
    words = base.decoded(line.text)
    if isinstance(words, str):
        return [Said(0, kind, words)] if words and not words.isspace() else []
    return [Brought(0, "record:malformed")] if base.carries_text(words) else []


def _parent(parent: object) -> Link | None:
    """Return the link that `parent` names, even where it names it badly."""
    if parent is None:
        return None
    if not isinstance(parent, dict):
        return Link("parent")
    n = parent.get("n")
    whole = n if isinstance(n, int) and not isinstance(n, bool) and n >= 0 else None
    return Link("parent", log=base.text(parent.get("log")), n=whole)


def labelled(lines: list[Line]) -> list[int]:
    """Return which lines give a label."""
    return [
        number
        for number, line in enumerate(lines)
        if line.cls is not _UNSET or line.untrusted is not _UNSET
    ]


def doubt(raw: bytes, line: Line) -> str | None:
    """Return why a line's label must not be believed: a label field stands in it twice.

    A long text is not gone through: all that stands outside of it, keys included, lies within as many bytes
    of the line's start, or of its end, as there are outside.
    """
    outside = len(raw) - len(line.text)
    short = raw if len(raw) <= 2 * outside else raw[:outside] + raw[-outside:]
    plain = (
        short.count(b'"class"') < 2
        and short.count(b'"untrusted"') < 2
        and b"\\u00" not in short  # an escape could hide a key
    )
    return "a label field given twice" if not plain and _given_twice(raw) else None


def _given_twice(raw: bytes) -> bool:
    pairs: list[tuple[str, object]] = []

    def keep(found: list[tuple[str, object]]) -> None:
        pairs[:] = found  # the outermost object is the last to be complete

    json.loads(raw, object_pairs_hook=keep, parse_int=str)
    keys = [key for key, _ in pairs]
    return any(keys.count(key) > 1 for key in _LABEL_KEYS)


ADAPTER = base.Adapter(
    id=ID,
    version=VERSION,
    decoder=msgspec.json.Decoder(Line),
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
    labelled=labelled,
    doubt=doubt,
)
