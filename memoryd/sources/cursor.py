"""Cursor's agent transcripts: messages without ids and without times, appended to.

In: lines `{role, message}`. Out: records with one item a content block. The owner's words stand between
`user_query` tags, what else the editor sends stands around them. Results are mostly not in the transcript, so each
call stands for its own result as well; a result that is there names a call that nothing bears, and counts as one
that nobody can place. Cursor's databases (`store.db`, `state.vscdb`) are not read.
"""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import Brought, Item, Kind, Link, Record
from memoryd.sources import base, loose

ID = "cursor"

_QUERY = re.compile(r"<user_query>(.*?)</user_query>", re.DOTALL)
_CALLS = frozenset(("tool_use", "tool_call", "tool-call"))
_RESULTS = frozenset(("tool_result", "tool-result"))
_SILENT = frozenset(("thinking", "redacted_thinking", "redacted-reasoning", "reasoning"))
_REDACTED = "[REDACTED]"
_KEYS = frozenset(("type", "status"))


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of projects."""
    try:
        return [paths.user_home(env) / ".cursor" / "projects"]
    except ConfigError:
        return []


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is a message of a transcript; the mark of a turn's end could be others'."""
    if record.get("type") == "turn_ended":
        return None
    message = record.get("message")
    spoken = record.get("role") in ("user", "assistant") and isinstance(message, dict)
    return spoken and "type" not in record and "content" in loose.obj(message)


def origin(log: str) -> Link | None:
    """Return the link of a sub-agent's own transcript, as its path tells."""
    return Link("subagent") if "subagents" in PurePosixPath(log).parts[:-1] else None


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    items: list[Item] = []
    content = loose.obj(line.get("message")).get("content")
    if "role" not in line:
        items += base.unknown(base.text(line.get("type")), line, _KEYS)
    elif isinstance(content, str):
        _speak(items, 0, line["role"], content)
    elif isinstance(content, list):
        for number, block in enumerate(loose.objs(content)):
            _block(items, 2 * number, block, line["role"])
    else:
        loose.odd(items, 0, line.get("message"))
    about = None if begun or n > 0 else base.about(None, None, ID)
    return Record(n, loose.when(line.get("timestamp")), items, about)


def _block(items: list[Item], at: int, block: loose.Line, role: object) -> None:
    kind = loose.string(block.get("type"))
    if kind == "text":
        _speak(items, at, role, block.get("text"))
    elif kind in _CALLS:
        args = block.get("input", block.get("args"))
        loose.both(items, at, None, block.get("name") or block.get("toolName"), args, ok=None)
    elif kind in _RESULTS:
        call = block.get("tool_use_id") or block.get("toolCallId")
        items.append(loose.returned(at, call, block.get("name")))
    elif kind not in _SILENT:
        items.append(Brought(at, base.named("block", base.text(kind))))


def _speak(items: list[Item], at: int, role: object, words: object) -> None:
    if role == "assistant" and words != _REDACTED:
        loose.say(items, at, Kind.ASSISTANT, words)
    elif role == "user" and isinstance(words, str):
        own = _QUERY.findall(words)
        loose.say(items, at, Kind.OWNER, "\n".join(map(str.strip, own)) if own else words)
        if own and _QUERY.sub("", words).strip():
            items.append(Brought(at, "attachment:file"))
    elif role != "assistant":
        loose.odd(items, at, words)


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
    origin=origin,
)
