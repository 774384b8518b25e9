"""Kimi's wire log: what went over the wire between its loop and its screen, appended to.

In: lines with a `type` (protocol 1), or `{timestamp, message: {type, payload}}` of the first releases. Out: records
with one item each. The owner's words are read where a turn starts; the message appended to the context right
after is a copy, or an injection of the harness. A turn that another agent started holds that agent's words.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import About, Brought, Called, Item, Kind, Link, Record
from memoryd.sources import base, loose

ID = "kimi"

_TURNS = frozenset(("turn.prompt", "turn.steer"))
_LOOP, _APPENDED = "context.append_loop_event", "context.append_message"
_SILENT = frozenset(
    (
        *("metadata", "usage.record", "turn.cancel", "turn.ended", "plan_mode.enter"),
        *("plan_mode.exit", "permission.set_mode"),
        *("runtime.set_binding", "token_counting.measured", "token_counting.turn_recorded"),
        *("full_compaction.begin", "full_compaction.complete", "context.clear"),
    )
)
"""Records that bring no text into the conversation."""

_BROUGHT = {
    "config.update": "preamble",
    "profile.bind": "preamble",
    "plugin.session_start": "hook",
    "tools.set_active_tools": "preamble",
    "llm.tools_snapshot": "preamble",
    "llm.request": "event:request",
    "permission.record_approval_result": "meta",
}
_FAMILIES = frozenset(
    ("config", "context", "full_compaction", "llm", "permission", "tools", "turn", "usage")
)
_SENDERS = {"injection": "hook", "hook": "hook", "skill": "skill-text"}
_OLD = frozenset(
    (
        *("TurnBegin", "TurnEnd", "StepBegin", "StepInterrupted", "CompactionBegin"),
        *("CompactionEnd", "StatusUpdate", "ContentPart", "ToolCall", "ToolCallPart"),
        *("ToolResult", "ApprovalRequest", "ApprovalResponse", "SubagentEvent", "SteerInput"),
    )
)
_OLD_META = frozenset(("ApprovalRequest", "ApprovalResponse", "ToolCallPart"))
_KEYS = frozenset(("type", "time", "agentId"))


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folders of sessions of its two command-line programs."""
    try:
        user = paths.user_home(env)
    except ConfigError:
        return []
    moved = env.get("KIMI_SHARE_DIR")
    own = [Path(moved)] if moved else [user / ".kimi", user / ".kimi-code"]
    return [folder / "sessions" for folder in own]


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is one of the wire's."""
    kind = loose.string(record.get("type"))
    if "type" not in record:
        return loose.string(loose.obj(record.get("message")).get("type")) in _OLD
    if kind == "metadata":
        return "protocol_version" in record
    family = kind.partition(".")
    if family[0] in _FAMILIES and family[1] and "data" not in record:
        return "time" in record or None
    return None if "time" in record and "timestamp" not in record else False


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    if "type" not in line:
        return _old(line, n)
    kind = loose.string(line.get("type"))
    items: list[Item] = []
    if kind in _TURNS:
        _turn(items, line)
    elif kind == _LOOP:
        _event(items, loose.obj(line.get("event")))
        if not isinstance(line.get("event"), dict):
            loose.odd(items, 0, line.get("event"))
    elif kind == _APPENDED:
        items.append(Brought(0, _appended(loose.obj(line.get("message")))))
    elif kind == "context.apply_compaction":
        loose.say(items, 0, Kind.SUMMARY, line.get("summary"))
        items.append(Brought(0, "compaction"))
    elif kind in _BROUGHT:
        items.append(Brought(0, _BROUGHT[kind]))
    elif kind not in _SILENT:
        items += base.unknown(base.text(kind), line, _KEYS)
    ts = loose.when(line.get("time", line.get("created_at")))
    return Record(n, ts, items, _about(line, n, kind))


def _about(line: loose.Line, n: int, kind: object) -> About | None:
    cwd = base.text(line.get("cwd")) if kind == "config.update" else None
    if kind in _TURNS and loose.obj(line.get("origin")).get("name") == "subagent":
        return base.about(None, None, ID, Link("subagent"))
    return base.about(None, cwd, ID) if n == 0 or cwd is not None else None


def _turn(items: list[Item], line: loose.Line) -> None:
    origin = loose.obj(line.get("origin"))
    sender, given = origin.get("kind", "user"), line.get("input")
    if sender == "user" or origin.get("name") == "subagent":
        _parts(items, given, Kind.OWNER if sender == "user" else Kind.ASSISTANT)
    else:
        items.append(Brought(0, "task-notification"))


def _parts(items: list[Item], given: object, speaker: Kind) -> None:
    if isinstance(given, str):
        loose.say(items, 0, speaker, given)
    elif not isinstance(given, list):
        loose.odd(items, 0, given)
    for number, part in enumerate(loose.objs(given)):
        _part(items, number, part, speaker)


def _part(items: list[Item], number: int, part: loose.Line, speaker: Kind) -> None:
    kind = loose.string(part.get("type"))
    if kind == "text":
        loose.say(items, number, speaker, part.get("text"))
    elif kind != "think":
        name = "image" if kind in ("image_url", "image") else base.text(kind)
        items.append(Brought(number, base.named("block", name)))


def _appended(message: loose.Line) -> str:
    """Return the name of a message put into the context: what the owner said has its own record."""
    sender = loose.obj(message.get("origin")).get("kind")
    if message.get("role") == "user" and sender in ("user", "system_trigger"):
        return "meta"
    return _SENDERS.get(loose.string(sender), "task-notification")


def _event(items: list[Item], event: loose.Line) -> None:
    kind = loose.string(event.get("type"))
    if kind == "content.part":
        _part(items, 0, loose.obj(event.get("part")), Kind.ASSISTANT)
    elif kind == "tool.call":
        name, args = loose.string(event.get("name")), loose.args_of(event.get("args"))
        items.append(Called(0, base.text(event.get("toolCallId")), name, args))
    elif kind == "tool.result":
        result = loose.obj(event.get("result"))
        # The wire says `isError` only where it is true.
        ok = loose.flag(result.get("isError", False), of=False)
        call = event.get("toolCallId")
        items.append(loose.returned(0, call, ok=ok, said=result.get("output")))
    elif kind not in ("step.begin", "step.end"):
        items += base.unknown(f"event/{kind}", event, frozenset(("type", "uuid", "turnId")))


def _old(line: loose.Line, n: int) -> Record:
    message = loose.obj(line.get("message"))
    kind, payload = loose.string(message.get("type")), loose.obj(message.get("payload"))
    items: list[Item] = []
    if kind in ("TurnBegin", "SteerInput"):
        _parts(items, payload.get("user_input"), Kind.OWNER)
    elif kind == "ContentPart":
        _part(items, 0, payload, Kind.ASSISTANT)
    elif kind == "ToolCall":
        function = loose.obj(payload.get("function"))
        name, args = loose.string(function.get("name")), loose.args_of(function.get("arguments"))
        items.append(Called(0, base.text(payload.get("id")), name, args))
    elif kind == "ToolResult":
        value = loose.obj(payload.get("return_value"))
        ok = loose.flag(value.get("is_error"), of=False)
        said = value.get("output")
        items.append(loose.returned(0, payload.get("tool_call_id"), ok=ok, said=said))
    elif kind == "SubagentEvent":
        items.append(Brought(0, "progress:agent"))
    elif kind in _OLD_META:
        items.append(Brought(0, "meta"))
    elif kind not in _OLD:
        items += base.unknown(base.text(kind), line, frozenset(("timestamp",)))
    about = base.about(None, None, ID) if n == 0 else None
    return Record(n, loose.when(line.get("timestamp")), items, about)


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
)
