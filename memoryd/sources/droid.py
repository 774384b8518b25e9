"""Factory's Droid: its session store, and the stream of JSON that `droid exec` prints, saved to a file.

In: lines with a `type`. Out: records with one item a content block. The store's messages hold text, calls and
results as Claude Code's do, reminders between tags included; the stream has a line for each.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import About, Brought, Called, Item, Kind, Record
from memoryd.sources import answers, base, loose
from memoryd.sources.wrapped import in_claude_code

ID = "droid"

_STREAM = frozenset(("tool_call", "tool_result", "completion", "system", "error"))
_META = frozenset(("error", "todo_state", "session_settings"))
_KEYS = frozenset(("type", "id", "parentId", "timestamp", "sessionId", "session_id"))
_FOREIGN = frozenset(("data", "message", "parentId", "payload", "role", "sessionId", "uuid"))


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of sessions."""
    try:
        return [paths.user_home(env) / ".factory" / "sessions"]
    except ConfigError:
        return []


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is Droid's; a message of plain text could be pi's too."""
    kind = loose.string(record.get("type"))
    if kind == "session_start":
        return "id" in record
    if kind == "message" and "message" in record:
        message = loose.obj(record.get("message"))
        kinds = {loose.string(block.get("type")) for block in loose.objs(message.get("content"))}
        if "content" not in message or "toolCall" in kinds or "toolName" in message:
            return False
        return bool(kinds & {"tool_use", "tool_result"}) or None
    named = "session_id" in record or "sessionId" in record
    if kind == "message":
        return named and "text" in record
    if kind in _STREAM:
        return (named and ("uuid" not in record)) or None
    own = loose.has(record, "type", "id", "timestamp") and not _FOREIGN & record.keys()
    return None if own or kind in ("todo_state", "compaction_state") else False


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    kind = loose.string(line.get("type"))
    items: list[Item] = []
    if kind == "message":
        _message(items, line)
    elif kind == "tool_call":
        name = loose.string(line.get("toolName") or line.get("toolId"))
        items.append(Called(0, _call(line), name, loose.args_of(line.get("parameters"))))
    elif kind == "tool_result":
        items.append(_result(line))
    elif kind == "completion":
        loose.say(items, 0, Kind.ASSISTANT, line.get("finalText"))
    elif kind == "compaction_state":
        loose.say(items, 0, Kind.SUMMARY, line.get("summaryText"))
        items.append(Brought(0, "compaction"))
    elif kind in _META:
        items.append(Brought(0, "meta"))
    elif kind not in ("session_start", "system"):
        items += base.unknown(base.text(kind), line, _KEYS)
    return Record(n, loose.when(line.get("timestamp")), items, _about(line, begun))


def _about(line: loose.Line, begun: bool) -> About | None:
    session = line.get("id") if line.get("type") == "session_start" else None
    session = session or line.get("session_id") or line.get("sessionId")
    cwd = base.text(line.get("cwd"))
    if session is None and cwd is None:
        return None
    return base.about(base.text(session), cwd, ID)


def _call(line: loose.Line) -> str | None:
    return base.text(line.get("toolCallId")) or base.text(line.get("id"))


def _result(line: loose.Line) -> Item:
    value = line.get("value")
    code = loose.obj(value).get("exitCode")
    ok = loose.flag(line.get("isError"), of=False)
    if ok is None and isinstance(code, int):
        ok = code == 0
    return loose.returned(0, _call(line), ok=ok, said=value)


def _message(items: list[Item], line: loose.Line) -> None:
    if "message" not in line:
        _speak(items, 0, line.get("role"), line.get("text"))
        return
    message = loose.obj(line.get("message"))
    role, content = loose.string(message.get("role")), message.get("content")
    if isinstance(content, str):
        _speak(items, 0, role, content)
    elif not isinstance(content, list) or not isinstance(line.get("message"), dict):
        loose.odd(items, 0, content or line.get("message"))
    for number, block in enumerate(loose.objs(content)):
        kind = loose.string(block.get("type"))
        if kind == "text":
            _speak(items, number, role, block.get("text"))
        elif kind == "tool_use":
            name, args = loose.string(block.get("name")), loose.args_of(block.get("input"))
            items.append(Called(number, base.text(block.get("id")), name, args))
        elif kind == "tool_result":
            answer = answers.of_droid(block.get("content"))
            ok = answer.judged(loose.flag(block.get("is_error"), of=False))
            call = block.get("tool_use_id")
            items.append(loose.returned(number, call, ok=ok, said=answer.said))
        elif kind not in ("thinking", "redacted_thinking"):
            items.append(Brought(number, base.named("block", base.text(kind))))


def _speak(items: list[Item], number: int, role: object, words: object) -> None:
    if not isinstance(words, str):
        loose.odd(items, number, words)
    elif role == "assistant":
        loose.say(items, number, Kind.ASSISTANT, words)
    elif role == "user":
        own = in_claude_code(words)
        loose.say(items, number, Kind.OWNER, own.words)
        items.extend(base.came_along(number, along) for along in own.along)
    else:
        loose.odd(items, number, words)


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
)
