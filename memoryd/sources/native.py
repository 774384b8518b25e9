"""memoryd's own session log: one flat JSON object a line, written by the owner's agent loop.

In: lines with a `kind`. Out: records with one item each. It is the only format with label fields of its
own, which are passed on unchecked (`Own`); whether they count is decided by where the log lies. A label
field given twice in one object is no label: such a line is not believed.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

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

_NO_TEXT = frozenset(("kind", "ts"))
_UNSET = msgspec.UNSET
_LABEL_KEYS = ("class", "untrusted")
_CLOSE, _BACKSLASH = b"}\\"


class _Line(msgspec.Struct, gc=False):
    """What is read of a line besides its kind and its text, whatever its kind."""

    ts: datetime | None = None
    call: str | None = None
    tool: str | None = None
    args: base.Args = None
    ok: bool | None = None
    cls: object = msgspec.field(name="class", default=_UNSET)
    untrusted: object = _UNSET
    session: str | None = None
    project: str | None = None
    agent: str | None = None
    parent: object = None


class _Spoken(_Line, gc=False, tag_field="kind"):
    """A line whose text is read."""

    text: str = ""


class _Silent(_Line, gc=False, tag_field="kind"):
    """A line whose text is only skipped over."""

    text: msgspec.Raw = msgspec.Raw()


class _Owner(_Spoken, tag="owner"):
    pass


class _Assistant(_Spoken, tag="assistant"):
    pass


class _Summary(_Spoken, tag="summary"):
    pass


class _Call(_Silent, tag="tool_call"):
    pass


class _Result(_Silent, tag="tool_result"):
    pass


class _Block(_Silent, tag="memory_block"):
    pass


class _Session(_Silent, tag="session"):
    pass


class _End(_Silent, tag="end"):
    pass


class Line(_Line, gc=False):
    """A line of an unknown kind, or with a field of another shape than its kind has."""

    kind: str | None = None
    args: Any = None
    text: msgspec.Raw = msgspec.Raw()


_Heard = _Owner | _Assistant | _Summary
_Known = _Heard | _Call | _Result | _Block | _Session | _End
_BY_KIND: dict[str, type[Any]] = {shape.__struct_config__.tag: shape for shape in get_args(_Known)}
_SAID: dict[type, Kind] = {
    _Owner: Kind.OWNER,
    _Assistant: Kind.ASSISTANT,
    _Summary: Kind.SUMMARY,
}


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of native logs."""
    return [home / "sessions"]


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is native: it has a `kind` and no `type`."""
    if "type" in record or not isinstance(record.get("kind"), str):
        return False
    return record["kind"] in _BY_KIND or None


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    shape = type(line)
    if line.cls is not _UNSET or line.untrusted is not _UNSET:
        full = shape is _Result and _is_full(raw, line)
        if not full and _doubtful(raw, line):
            raise base.NotJson("a label field given twice")
    if (speaker := _SAID.get(shape)) is not None:
        words = line.text
        said: list[Item] = [Said(0, speaker, words)] if words and not words.isspace() else []
        return Record(n, line.ts, said)
    if shape is _Result:
        own, told = Own(line.cls, line.untrusted), None if line.ok else line.text
        return Record(n, line.ts, [Returned(0, line.call or None, line.tool, line.ok, own, told)])
    if shape is _Call:
        return Record(n, line.ts, [Called(0, line.call or None, line.tool or "", line.args)])
    return _gathered(line, n, raw) if shape is Line else _aside(line, n)


def _aside(line: Any, n: int) -> Record:
    """Return the record of a line that is no part of the talk."""
    if type(line) is _Block:
        return Record(n, line.ts, [Brought(0, "memory_block", Own(line.cls, line.untrusted))])
    if type(line) is _End:
        return Record(n, line.ts, [], rest="end")
    link = _parent(line.parent)
    return Record(
        n, line.ts, [], base.about(line.session or None, line.project, line.agent or ID, link)
    )


def _gathered(line: Line, n: int, raw: bytes) -> Record:
    """Return the record of a line whose fields were gathered one by one. Raises: NotJson."""
    shape = None if line.kind is None else _BY_KIND.get(line.kind)
    if shape is None:
        return Record(n, line.ts, base.unknown(line.kind, base.members(raw), _NO_TEXT))
    text: object = line.text
    if shape in _SAID:
        text = base.decoded(line.text)
        if not isinstance(text, str):
            odd = base.carries_text(text)
            return Record(n, line.ts, [Brought(0, "record:malformed")] if odd else [])
    fields = {name: getattr(line, name) for name in _Line.__struct_fields__}
    if shape is _Call:
        base.checked(line.args)
    return parse(shape(**fields, text=text), n, False, raw)


def _parent(parent: object) -> Link | None:
    """Return the link that `parent` names, even where it names it badly."""
    if parent is None:
        return None
    if not isinstance(parent, dict):
        return Link("parent")
    n = parent.get("n")
    whole = n if isinstance(n, int) and not isinstance(n, bool) and n >= 0 else None
    return Link("parent", log=base.text(parent.get("log")), n=whole)


_LEAST = len(
    '{"ts":"2026-01-02T03:04:05","kind":"tool_result","call":"","ok":true,"class":"","untrusted":true,'
    '"text":}'
)
_SHORTEST = len(',"class":0')


def _is_full(raw: bytes, line: _Result) -> bool:
    """Say quickly that a result has no room for a label field besides those that were decoded, as mostly.

    What was decoded takes up so many bytes at least, and a label field given twice `_SHORTEST` more.
    """
    call, cls = line.call, line.cls
    if call is None or type(cls) is not str or line.ok is None or line.ts is None:
        return False
    least = _LEAST + len(call) + len(cls) + len(line.text)
    return type(line.untrusted) is bool and len(raw) < least + _SHORTEST


def _doubtful(raw: bytes, line: Any) -> bool:
    """Say whether a label field stands twice in a line, which must then not be believed.

    A long text is not gone through. Mostly it is the last value: then all keys stand before its first quote.
    Else all that stands outside of it, keys included, lies within as many bytes of the line's start, or of its
    end, as there are outside.
    """
    outside = len(raw) - len(line.text)
    end = raw.rfind(b'"')
    start = raw.rfind(b'"', 0, end)
    if start <= outside and raw[end + 1] == _CLOSE:
        short = raw[:start]
    else:
        short = raw if len(raw) <= 2 * outside else raw[:outside] + raw[-outside:]
    plain = (
        (_BACKSLASH not in short or b"\\u00" not in short)  # an escape could hide a key
        and short.count(b'"class"') < 2
        and short.count(b'"untrusted"') < 2
    )
    return not plain and _given_twice(raw)


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
    decoder=msgspec.json.Decoder(_Known),
    gathered=Line,
    begins=False,
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
)
