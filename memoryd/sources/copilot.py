"""GitHub's Copilot CLI: a stream of events, appended to.

In: lines `{type, data, id, timestamp}`. Out: records with one item each for words and calls. Of a user message only
`content` is read, never `transformedContent`, which has the harness's context in it. A sub-agent's messages
stand in the same log; a user message in its name is the assistant's. `tool.execution_start` repeats a call.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import About, Brought, Called, Item, Kind, Record
from memoryd.sources import answers, base, loose

ID = "copilot"

_FAMILIES = frozenset(
    ("abort", "assistant", "hook", "session", "skill", "subagent", "system", "tool", "user")
)
_SILENT = frozenset(
    (
        *("abort", "assistant.turn_start", "assistant.turn_end", "assistant.usage"),
        *("assistant.intent", "session.start", "session.resume", "session.model_change"),
        *("session.auto_mode_resolved", "session.idle", "session.mode_changed"),
        *("session.shutdown", "session.truncation", "session.usage_checkpoint"),
        *("assistant.reasoning", "assistant.reasoning_delta", "session.snapshot_rewind"),
    )
)
"""Events that bring no text into the conversation, and thinking."""

_META = frozenset(
    (
        *("session.info", "session.error", "session.warning", "session.title_changed"),
        *("hook.start", "tool.execution_start", "assistant.message_delta"),
        *("subagent.started", "subagent.completed", "subagent.failed", "subagent.selected"),
    )
)
"""Notices, titles, and copies of what has its own event."""

_BROUGHT = {
    "system.message": "preamble",
    "system.notification": "task-notification",
    "skill.invoked": "skill-text",
    "tool.execution_partial_result": "progress:tool",
    "tool.execution_progress": "progress:tool",
    "session.compaction_start": "compaction",
}


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of session states."""
    moved = env.get("COPILOT_HOME")
    try:
        top = Path(moved) if moved else paths.user_home(env) / ".copilot"
    except ConfigError:
        return []
    return [top / "session-state"]


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is one of these events."""
    kind = loose.string(record.get("type"))
    known = kind.partition(".")[0] in _FAMILIES
    return known and isinstance(record.get("data"), dict) and "id" in record


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    kind, data = loose.string(line.get("type")), loose.obj(line.get("data"))
    items: list[Item] = []
    if not isinstance(line.get("data"), dict):
        loose.odd(items, 0, line.get("data"))
    elif kind == "user.message":
        _user(items, data)
    elif kind == "assistant.message":
        _assistant(items, data)
    elif kind == "tool.execution_complete":
        answer = answers.of_copilot(data.get("result"), data.get("error"))
        ok = answer.judged(loose.flag(data.get("success")))
        items.append(loose.returned(0, data.get("toolCallId"), ok=ok, said=answer.said))
    elif kind == "hook.end":
        told = {key: value for key, value in data.items() if key not in _HOOK_KEYS}
        items += [Brought(0, "hook")] if base.carries_text(told) else []
    elif kind == "session.compaction_complete":
        loose.say(items, 0, Kind.SUMMARY, data.get("summaryContent"))
        items.append(Brought(0, "compaction"))
    elif kind in _META:
        items.append(Brought(0, "meta"))
    elif kind in _BROUGHT:
        items.append(Brought(0, _BROUGHT[kind]))
    elif kind not in _SILENT:
        items += base.unknown(base.text(kind), data, frozenset())
    return Record(n, loose.when(line.get("timestamp")), items, _about(kind, data))


_HOOK_KEYS = frozenset(("hookInvocationId", "hookType"))


def _about(kind: object, data: loose.Line) -> About | None:
    if kind not in ("session.start", "session.resume"):
        return None
    cwd = base.text(loose.obj(data.get("context")).get("cwd"))
    return base.about(base.text(data.get("sessionId")), cwd, ID)


def _user(items: list[Item], data: loose.Line) -> None:
    theirs = data.get("parentAgentTaskId") or data.get("parentToolCallId") or data.get("agentId")
    source = loose.string(data.get("source"))
    if source not in ("", "user", "cli"):
        items.append(Brought(0, "task-notification"))
    elif isinstance(data.get("content"), str):
        speaker = Kind.ASSISTANT if theirs else Kind.OWNER
        loose.say(items, 0, speaker, data.get("content"))
    else:
        loose.odd(items, 0, data.get("content"))
    if (shown := data.get("transformedContent")) is not None and shown != data.get("content"):
        items.append(Brought(0, "hook"))
    for number, attached in enumerate(loose.objs(data.get("attachments"))):
        path = base.text(attached.get("path")) or base.text(attached.get("filePath"))
        args = None if path is None else {"path": path}
        items.append(Brought(number, "attachment:file", args=args))


def _assistant(items: list[Item], data: loose.Line) -> None:
    loose.say(items, 0, Kind.ASSISTANT, data.get("content"))
    if not isinstance(data.get("content"), str):
        loose.odd(items, 0, data.get("content"))
    for number, asked in enumerate(loose.objs(data.get("toolRequests")), 1):
        name, args = loose.string(asked.get("name")), loose.args_of(asked.get("arguments"))
        items.append(Called(number, base.text(asked.get("toolCallId")), name, args))


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
)
