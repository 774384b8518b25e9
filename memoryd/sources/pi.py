"""The logs of pi, and of OpenClaw, which is built on it: a tree of entries, appended to.

In: lines with a `type`; the first is a `session`. Out: records with one item a content block. `bashExecution` is
the owner's own command with its output beside it: the command is the owner's words. What extensions inject
(`custom_message`) and what a system role says is nobody's words; `custom` entries are not in the conversation.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import About, Brought, Called, Item, Kind, Link, Record
from memoryd.sources import base, loose

ID = "pi"

_SILENT = frozenset(("model_change", "thinking_level_change", "session_info", "label", "leaf"))
_ENTRIES = _SILENT | {"message", "compaction", "branch_summary", "custom", "custom_message"}
_KEYS = frozenset(("type", "id", "parentId", "timestamp", "agent"))
_OTHERS = frozenset(("tool_use", "tool_result"))
"""Blocks that Droid's messages have, which are else the same."""


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the session folders of pi and of OpenClaw's agents."""
    try:
        user = paths.user_home(env)
    except ConfigError:
        return []
    moved = env.get("PI_CODING_AGENT_DIR")
    own = Path(moved) if moved else user / ".pi" / "agent"
    return [own / "sessions", user / ".openclaw" / "agents"]


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is an entry of pi's; a message of plain text could be another's too."""
    kind = loose.string(record.get("type"))
    if kind == "session":
        return loose.has(record, "id", "cwd") and "payload" not in record
    if kind == "message":
        message = record.get("message")
        if not isinstance(message, dict):
            return None
        blocks = message.get("content")
        kinds = {loose.string(block.get("type")) for block in loose.objs(blocks)}
        if ("content" not in message and "command" not in message) or kinds & _OTHERS:
            return False
        return "toolCall" in kinds or message.get("role") == "toolResult" or None
    if kind in _ENTRIES:
        return loose.has(record, "id", "parentId") or None
    return None if loose.has(record, "type", "id", "parentId", "timestamp") else False


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    kind = loose.string(line.get("type"))
    about = _about(line) if kind == "session" else None
    uuid = base.text(line.get("id"))
    return Record(n, loose.when(line.get("timestamp")), _items(line, kind), about, uuid)


def _about(line: loose.Line) -> About:
    parent = line.get("branchedFrom") or line.get("parentSession")
    link = None
    if parent is not None:
        # A branch's file says which file it was copied from, entries and all; its name ends in the session's
        # id. What an extension hands over to a new session is copied nowhere.
        stem = PurePosixPath(loose.string(parent)).stem
        copied = line.get("branchedFrom") is not None
        link = Link("fork", session=stem.rpartition("_")[2] or None, whole=copied)
    return base.about(base.text(line.get("id")), base.text(line.get("cwd")), ID, link)


def _items(line: loose.Line, kind: object) -> list[Item]:
    items: list[Item] = []
    if kind == "message":
        _message(items, loose.obj(line.get("message")))
        if not isinstance(line.get("message"), dict):
            loose.odd(items, 0, line.get("message"))
    elif kind in ("compaction", "branch_summary"):
        loose.say(items, 0, Kind.SUMMARY, line.get("summary"))
        items.append(Brought(0, "compaction"))
    elif kind == "custom_message":
        items.append(Brought(0, "hook"))
    elif kind == "custom":
        items.append(Brought(0, "meta"))
    elif kind != "session" and kind not in _SILENT:
        items += base.unknown(base.text(kind), line, _KEYS)
    return items


def _message(items: list[Item], message: loose.Line) -> None:
    role, content = loose.string(message.get("role")), message.get("content")
    if role == "toolResult":
        ok = loose.flag(message.get("isError"), of=False)
        call, tool = message.get("toolCallId"), message.get("toolName")
        items.append(loose.returned(0, call, tool, ok=ok, said=content))
    elif role == "bashExecution":
        loose.say(items, 0, Kind.OWNER, message.get("command"))
        items.append(Brought(0, "local-command"))
    elif role in ("user", "assistant"):
        speaker = Kind.OWNER if role == "user" else Kind.ASSISTANT
        if isinstance(content, str):
            loose.say(items, 0, speaker, content)
        elif not isinstance(content, list):
            loose.odd(items, 0, content)
        for number, block in enumerate(loose.objs(content)):
            _block(items, number, block, speaker)
    elif role == "system":
        items.append(Brought(0, "task-notification"))
    else:
        items += base.unknown(f"role/{role}", message, frozenset(("role",)))


def _block(items: list[Item], number: int, block: loose.Line, speaker: Kind) -> None:
    kind = loose.string(block.get("type"))
    if kind == "text":
        loose.say(items, number, speaker, block.get("text"))
    elif kind == "toolCall":
        name, args = loose.string(block.get("name")), loose.args_of(block.get("arguments"))
        items.append(Called(number, base.text(block.get("id")), name, args))
    elif kind != "thinking":
        items.append(Brought(number, base.named("block", base.text(kind))))


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
)
