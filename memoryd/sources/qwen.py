"""Qwen Code: Claude Code's envelope around Gemini's parts, appended to.

In: lines with a `type`. Out: records with one item a part. What the harness adds to a prompt stands in a part of
its own between tags; notifications are filed under the user and are not the owner's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import About, Brought, Called, Item, Kind, Link, Record
from memoryd.sources import answers, base, loose

ID = "qwen"

_INJECTED = "<qwen:"
_OWN = (None, "mid_turn_user_message")
"""Subtypes of a user line that are the owner's words."""

_SYSTEM = {
    "ui_telemetry": "event:telemetry",
    "chat_compression": "compaction",
    "custom_title": "meta",
    "session_artifact_snapshot": "meta",
    "slash_command": "local-command",
    "at_command": "attachment:file",
    "notification": "task-notification",
    "rewind": "meta",
}
_TYPES = frozenset(("user", "assistant", "tool_result", "system"))


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of projects."""
    try:
        return [paths.user_home(env) / ".qwen" / "projects"]
    except ConfigError:
        return []


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is Qwen's and not Claude Code's: it has parts, or a payload of its own."""
    if loose.string(record.get("type")) not in _TYPES or not loose.has(record, "sessionId", "uuid"):
        return False
    parts = loose.obj(record.get("message")).get("parts")
    return isinstance(parts, list) or "systemPayload" in record


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    kind, items = loose.string(line.get("type")), list[Item]()
    message = loose.obj(line.get("message"))
    if kind == "system":
        _system(items, line)
    elif kind not in _TYPES:
        items += base.unknown(base.text(kind), line, _KEYS)
    else:
        if not isinstance(message.get("parts"), list):
            loose.odd(items, 0, line.get("message"))
        for number, part in enumerate(loose.objs(message.get("parts"))):
            _part(items, number, part, line)
        if kind == "tool_result" and not items:
            items.append(loose.returned(0, loose.obj(line.get("toolCallResult")).get("callId")))
        if base.carries_text(loose.obj(line.get("systemPayload")).get("hookContext")):
            items.append(Brought(0, "hook"))
    uuid = base.text(line.get("uuid"))
    return Record(n, loose.when(line.get("timestamp")), items, _about(line, n, begun), uuid)


_KEYS = frozenset(
    ("uuid", "parentUuid", "sessionId", "timestamp", "type", "cwd", "version", "gitBranch", "model")
)
_TOLD_BY = 16


def _about(line: loose.Line, n: int, begun: bool) -> About | None:
    if begun and n >= _TOLD_BY:
        return None
    parent = base.text(line.get("parentUuid"))
    link = None if begun or parent is None else Link("resume", uuid=parent)
    return base.about(base.text(line.get("sessionId")), base.text(line.get("cwd")), ID, link)


def _part(items: list[Item], number: int, part: loose.Line, line: loose.Line) -> None:
    kind = loose.string(line.get("type"))
    if (called := part.get("functionCall")) is not None:
        called = loose.obj(called)
        name, args = loose.string(called.get("name")), loose.args_of(called.get("args"))
        items.append(Called(number, base.text(called.get("id")), name, args))
    elif (found := part.get("functionResponse")) is not None:
        found, told = loose.obj(found), loose.obj(line.get("toolCallResult"))
        status = told.get("status")
        answer = answers.of_gemini(found.get("name"), found)
        ok = answer.judged(None if not isinstance(status, str) else status == "success")
        call = found.get("id") or told.get("callId")
        items.append(loose.returned(number, call, found.get("name"), ok=ok, said=answer.said))
    elif "text" not in part:
        items.append(
            Brought(number, base.named("block", "image" if "inlineData" in part else None))
        )
    elif kind == "tool_result":
        items.append(loose.returned(number, loose.obj(line.get("toolCallResult")).get("callId")))
    elif kind == "assistant":
        if part.get("thought") is not True:
            loose.say(items, number, Kind.ASSISTANT, part.get("text"))
    else:
        _hear(items, number, part.get("text"), line)


def _hear(items: list[Item], number: int, heard: object, line: loose.Line) -> None:
    if not isinstance(heard, str):
        loose.odd(items, number, heard)
    elif line.get("subtype") not in _OWN:
        items.append(Brought(number, "task-notification"))
    elif heard.lstrip().startswith(_INJECTED):
        items.append(Brought(number, "hook"))
    else:
        loose.say(items, number, Kind.OWNER, heard)


def _system(items: list[Item], line: loose.Line) -> None:
    subtype = loose.string(line.get("subtype"))
    if subtype == "slash_command":
        payload = loose.obj(line.get("systemPayload"))
        if "outputHistoryItems" not in payload:  # the record of its end repeats the command
            loose.say(items, 0, Kind.OWNER, payload.get("rawCommand"))
    if subtype in _SYSTEM:
        items.append(Brought(0, _SYSTEM[subtype]))
    else:
        items += base.unknown(f"system/{subtype}", line, _KEYS | {"subtype"})


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
)
