"""Codex's rollout: an envelope around response items, and many events that repeat them.

In: lines `{timestamp, type, payload}`, or the bare items of releases before 0.32. Out: records with one item
a content block. Only response items are read; `event_msg` lines are copies of them and `turn_context` repeats
the instructions, so they count as the copies that the rules know them for. A call's arguments are JSON inside
a string. A result's success is told by an exit code in its first or last words, and by nothing else.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import About, Brought, Called, Item, Kind, Link, Record, Returned, Said
from memoryd.sources import base
from memoryd.sources.mend import mend_surrogates
from memoryd.sources.wrapped import in_codex

ID = "codex"
VERSION = 2

_ENVELOPES = frozenset(
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
)
_REPEATS = frozenset(("session_meta", "turn_context", "world_state"))
_OVER = frozenset(("task_complete", "turn_aborted"))
"""Events that end a turn."""
_CALLS = frozenset(("function_call", "custom_tool_call", "tool_call"))
_RESULTS = frozenset(("tool_result", "function_result"))
_LOCAL_SHELL = "local_shell_call"
_SILENT = frozenset(("reasoning", "ghost_snapshot"))
_TEXT_PARTS = frozenset(("input_text", "output_text", "text"))
_PARTS = {"input_image": "image", "input_file": "document"}
_ROLES = frozenset(("user", "assistant", "developer"))
_OLD_ROLES = frozenset(("user", "assistant"))
_OLD_KEYS = frozenset(("content", "created_at", "message", "model", "role", "timestamp"))
_KEYS = frozenset(("call_id", "created_at", "id", "model", "status", "timestamp", "type"))
"""Fields that carry no text in any record."""

_FIRST_LINE = re.compile(
    rb'"(?:(?:Chunk ID|Wall time|Total output lines)[^\\]*\\n)*'
    rb"(?:Exit code:|Process exited with code) (-?\d+)"
)
_METADATA = re.compile(rb'(?:\\"exit_code\\"|"exitCode"):\s*(-?\d+)|"success":\s*(true|false)')
_FAILED = (
    b'"exec command rejected',
    b'"failed in sandbox',
    b'"execution error',
    b'"apply_patch verification failed',
)
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_NEAR = 240
"""Bytes at either end of an output in which its exit code is looked for."""


class Part(msgspec.Struct, gc=False):
    """A part of a message."""

    type: str | None = None
    text: str | None = None


class Payload(msgspec.Struct, gc=False):
    """What is read of a response item, of a session's meta, or of another payload."""

    type: str | None = None
    role: str | None = None
    content: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()
    name: str | None = None
    function: msgspec.Raw = msgspec.Raw()
    arguments: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    action: msgspec.Raw = msgspec.Raw()
    output: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    call_id: str | None = None
    id: str | None = None
    cwd: str | None = None
    source: msgspec.Raw = msgspec.Raw()
    forked_from_id: str | None = None
    parent_thread_id: str | None = None


class Line(Payload, gc=False):
    """An envelope, or the bare item of an old release."""

    timestamp: datetime | None = None
    created_at: datetime | None = None
    payload: Payload | None = None
    record_type: object = None


_content = msgspec.json.Decoder(str | list[Part] | None)


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folders of live and of archived rollouts: below CODEX_HOME, else ~/.codex."""
    try:
        moved = env.get("CODEX_HOME")
        top = Path(moved) if moved else paths.user_home(env) / ".codex"
    except ConfigError:
        return []
    return [top / "sessions", top / "archived_sessions"]


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is Codex's: an envelope, a bare item, or one of its older forms."""
    kind = record.get("type")
    if isinstance(record.get("payload"), dict):
        return (isinstance(kind, str) and kind in _ENVELOPES) or None
    if not all(isinstance(record.get(key), str | None) for key in ("type", "role")):
        return False
    if kind is None:
        about = "id" in record and ("git" in record or "instructions" in record)
        return about or "record_type" in record or _old_message(record)
    if kind == "message":
        return record.get("role") in _ROLES and _parts(record.get("content"))
    if kind in _CALLS:
        given = "call_id" in record and ("arguments" in record or "input" in record)
        return given or "function" in record
    if isinstance(kind, str) and kind.endswith("_output"):
        return "call_id" in record
    return kind == "reasoning" and "summary" in record


def _parts(content: object) -> bool:
    known = _TEXT_PARTS.union(_PARTS)
    return isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") in known for part in content
    )


def _old_message(record: Mapping[str, object]) -> bool:
    stamp = record.get("timestamp", record.get("created_at"))
    return (
        record.get("role") in _OLD_ROLES
        and isinstance(record.get("content", record.get("message")), str)
        and isinstance(stamp, str)
        and stamp.endswith("Z")
        and _OLD_KEYS.issuperset(record)
    )


def parse(line: Line, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson.

    In a sub-agent's log (`begun`) the user is the agent that started it.
    """
    when = line.created_at if line.timestamp is None else line.timestamp
    speaker = Kind.ASSISTANT if begun else Kind.OWNER
    about = None
    if line.payload is None:
        items = _bare(line, speaker)
        if line.type is None and line.role is None:
            about = _about(line)
    else:
        items = _enveloped(line.type, line.payload, speaker)
        if line.type == "session_meta":
            about = _about(line.payload)
    if items is None:
        told = base.members(raw)
        inside = told.get("payload")
        items = base.unknown(line.type, inside if isinstance(inside, dict) else told, _KEYS)
    over = line.payload is not None and line.payload.type in _OVER and line.type == "event_msg"
    return Record(n, when, items, about, rest="idle" if over else None)


def _enveloped(kind: str | None, payload: Payload, speaker: Kind) -> list[Item] | None:
    """Return the items of a payload, or None if its kind is not known."""
    if kind == "response_item":
        return _item(payload, speaker)
    if kind == "event_msg":
        return [Brought(0, base.named("event", payload.type))]
    if kind in _REPEATS:
        return [Brought(0, "preamble")]
    if kind == "compacted":
        summary = base.decoded(payload.message)
        if isinstance(summary, str) and summary.strip():
            return [Said(0, Kind.SUMMARY, summary), Brought(0, "compaction")]
        return [Brought(0, "compaction")]
    return None


def _bare(line: Line, speaker: Kind) -> list[Item] | None:
    """Return the items of a line without an envelope, or None if its kind is not known."""
    if line.type is None:
        if line.role is not None:
            return _message(line, speaker) if line.role in _OLD_ROLES else None
        return [] if line.record_type is not None or line.id is not None else None
    return [Brought(0, "event:error")] if line.type == "error" else _item(line, speaker)


def _about(meta: Payload) -> About:
    return base.about(meta.id, meta.cwd, ID, _link(meta))


def _link(meta: Payload) -> Link | None:
    """Return where a session says it comes from; a sub-agent may be a fork of its parent as well."""
    source = base.decoded(meta.source)
    started = source.get("subagent") if isinstance(source, dict) else None
    spawn = started.get("thread_spawn") if isinstance(started, dict) else None
    parent = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
    if started is not None or meta.parent_thread_id is not None or source == "subagent":
        return Link("subagent", session=meta.parent_thread_id or base.text(parent))
    forked = meta.forked_from_id
    return None if forked is None else Link("fork", session=forked)


def _item(item: Payload, speaker: Kind) -> list[Item] | None:
    """Return the items of a response item, or None if its kind is not known."""
    kind, call = item.type, item.call_id
    if kind == "message" or (kind is None and item.role is not None):
        return _message(item, speaker)
    if kind is None:
        return None
    if kind in _SILENT:
        return []
    if kind in _CALLS:
        return [Called(0, call, _tool(item), _arguments(item))]
    if kind.endswith("_output") or kind in _RESULTS:
        ok = _ok(item)
        given = item.output if memoryview(item.output) else item.result
        return [Returned(0, call, item.name, ok, told=None if ok else given, more=given)]
    if kind == _LOCAL_SHELL:
        return [Called(0, call, "local_shell", base.decoded(item.action))]
    if kind.endswith("_call"):
        given = item.action if memoryview(item.action) else item.arguments
        return [Called(0, call, kind, base.decoded(given), hosted=True)]
    return [Brought(0, "compaction")] if kind.startswith("compaction") else None


def _message(item: Payload, speaker: Kind) -> list[Item]:
    items: list[Item] = []
    for number, part in enumerate(_read_parts(item)):
        words = part.text
        if part.type not in _TEXT_PARTS or words is None:
            known = _PARTS.get(part.type or "", part.type)
            items.append(Brought(number, base.named("block", known)))
        elif item.role == "assistant":
            if words.strip():
                items.append(Said(number, Kind.ASSISTANT, words))
        elif item.role == "user":
            own = in_codex(words)
            if own.words.strip():
                items.append(Said(number, speaker, own.words))
            items.extend(base.came_along(number, along) for along in own.along)
        elif item.role in ("developer", "system"):
            items.append(Brought(number, "preamble"))
        else:
            items.append(Brought(number, base.named("record", item.role)))
    return items


def _read_parts(item: Payload) -> list[Part]:
    """Return the parts of a message; its text alone is one. Raises: NotJson."""
    given = item.content if memoryview(item.content) else item.message
    if not memoryview(given):
        return []
    try:
        content = _content.decode(given)
    except msgspec.ValidationError:
        return [Part("malformed")]
    if isinstance(content, str):
        return [Part("text", content)]
    if content is not None and len(content) > base.MAX_BLOCKS:
        raise base.NotJson(f"more than {base.MAX_BLOCKS} content blocks")
    return content or []


def _tool(item: Payload) -> str:
    if item.name is not None:
        return item.name
    function = base.decoded(item.function)
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def _arguments(item: Payload) -> object:
    """Return a call's arguments: JSON out of its string, the raw text where it is none."""
    if not memoryview(item.arguments):
        return base.decoded(item.input)
    given = base.decoded(item.arguments)
    if not isinstance(given, str):
        return given
    try:
        return base.decoded(msgspec.Raw(mend_surrogates(given.encode())))
    except base.NotJson:
        return given


def _ok(item: Payload) -> bool | None:
    """Return whether an output tells success, without decoding what it says."""
    told = memoryview(item.output) or memoryview(item.result)
    head = bytes(told[:_NEAR])
    if (code := _FIRST_LINE.match(head)) is not None:
        return int(code[1]) == 0
    if head.startswith(_FAILED):
        return False
    if not head.startswith((b'"{', b"{")):
        return None
    found = list(_METADATA.finditer(bytes(told[-_NEAR:])))
    if not found:
        return None
    number, success = found[-1].groups()
    return success == b"true" if success else int(number) == 0


def agent(log: str, session: str) -> str:
    """Return the thread's id: each sub-agent is a thread of its own."""
    return session


def agents(more: msgspec.Raw) -> tuple[str, ...]:
    """Return the threads that an output of the agents' tools tells: values and keys of the JSON in it."""
    try:
        told = base.decoded(more)
        if isinstance(told, str):
            told = base.decoded(msgspec.Raw(told.encode()))
    except (base.NotJson, UnicodeEncodeError):
        return ()
    found: list[str] = []
    stack = [told]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            found += [key for key in value if _ID.fullmatch(key)]
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, str) and _ID.fullmatch(value):
            found.append(value)
    return tuple(found)


ADAPTER = base.Adapter(
    id=ID,
    version=VERSION,
    decoder=msgspec.json.Decoder(Line),
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
    telling=frozenset(("payload",)),
    agent=agent,
    agents=agents,
)
