"""Gemini CLI's chats: a document that is rewritten at each turn, or lines of which the last of an id counts.

In: either form, or a checkpoint (`history` of roles and parts). Out: a header line and one line a message, and
records of these, with one item for the words and two for each tool call, whose result stands beside it. What
`@file` puts into a prompt stands after a mark of its own and is not the owner's words.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import Brought, Item, Kind, Link, Record
from memoryd.sources import answers, base, loose, whole

ID = "gemini"

_OWNER, _ASSISTANT = frozenset(("user",)), frozenset(("gemini", "model"))
_NOTICES = frozenset(("info", "error", "warning"))
_TYPES = _OWNER | _ASSISTANT | _NOTICES
_FILES = "--- Content from referenced files ---"
_DONE = {"success": True, "error": False, "cancelled": False}
_KEYS = frozenset(("id", "timestamp", "type"))


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder in which each project has its chats."""
    try:
        return [paths.user_home(env) / ".gemini" / "tmp"]
    except ConfigError:
        return []


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a line is of a chat kept as lines: its header, a message, or a change to the header."""
    if "type" not in record:
        return loose.has(record, "sessionId", "projectHash") or (
            None if "$set" in record else False
        )
    if "message" in record or loose.string(record["type"]) not in _TYPES or "id" not in record:
        return False
    return loose.has(record, "timestamp") and ("content" in record or "parts" in record)


def is_chat(found: object) -> bool:
    """Say whether a document is a chat or a checkpoint."""
    chat = loose.obj(found)
    if isinstance(chat.get("messages"), list):
        return loose.has(chat, "sessionId", "projectHash")
    entries = loose.objs(chat.get("history"))
    return bool(entries) and all(loose.has(entry, "role", "parts") for entry in entries)


def lines(root: Path, log: str) -> Iterator[bytes]:
    """Yield the header and the messages of a chat in the order of their first appearance."""
    header: loose.Line
    if base.is_jsonl(log):
        header, messages = _patched(whole.content(root, log))
    else:
        chat = whole.document(root, log)
        header, messages = chat, loose.objs(chat.get("messages", chat.get("history")))
    kept: loose.Line = {
        key: header[key] for key in ("sessionId", "projectHash", "kind") if key in header
    }
    yield whole.line({"gemini": "chat", **kept})
    for message in messages:
        # What changes with every rewriting and says nothing would have it read again from its start.
        yield whole.line({key: value for key, value in message.items() if key not in _UNREAD})


_UNREADABLE: loose.Line = {"type": "unreadable line", "text": "?"}
_UNREAD = frozenset(("thoughts", "tokens", "model", "toolUseDisplay"))


def _patched(found: bytes) -> tuple[loose.Line, list[loose.Line]]:
    """Return the header and the last state of each message of a chat kept as lines."""
    header: loose.Line = {}
    messages: dict[object, loose.Line] = {}
    for number, text in enumerate(found[: found.rfind(b"\n") + 1].splitlines()):
        try:
            record = loose.obj(whole.parsed(text))
        except whole.NotNow:
            record = _UNREADABLE if text.strip() else loose.obj(None)
        patch = loose.obj(record.get("$set"))
        if "type" in record:
            messages[record.get("id") or number] = record
        elif "$set" not in record:
            header = {**header, **record}
        elif isinstance(patch.get("messages"), list):
            for place, one in enumerate(loose.objs(patch["messages"])):
                messages[one.get("id") or (number, place)] = one
    return header, list(messages.values())


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    if "type" not in line and "role" not in line:
        link = Link("subagent") if line.get("kind") == "subagent" else None
        session = base.text(line.get("sessionId"))
        told = {key: value for key, value in line.items() if key not in _HEADER}
        return Record(n, None, base.unknown(None, told, frozenset()),
                      base.about(session, None, ID, link), session)  # fmt: skip
    kind = loose.string(line.get("type", line.get("role")))
    items: list[Item] = []
    if kind in _OWNER:
        _heard(items, line)
    elif kind in _ASSISTANT:
        for number, part in enumerate(_parts(line)):
            if part.get("thought") is not True:
                _say(items, number, Kind.ASSISTANT, part)
        _tools(items, line)
    elif kind in _NOTICES:
        items.append(Brought(0, "meta"))
    else:
        items += base.unknown(base.text(kind), line, _KEYS)
    about = base.about(None, None, ID) if n == 0 else None
    return Record(n, loose.when(line.get("timestamp", line.get("ts"))), items, about)


_HEADER = frozenset(
    ("gemini", "sessionId", "projectHash", "kind", "startTime", "lastUpdated", "$set", "summary")
)


def _parts(line: loose.Line) -> list[loose.Line]:
    content = line.get("content", line.get("parts"))
    if isinstance(content, str):
        return [{"text": content}]
    if isinstance(content, dict):
        return [content]
    if content is not None and not isinstance(content, list):
        return [{}]
    if isinstance(content, list):
        content = [{"text": one} if isinstance(one, str) else one for one in content]
    return loose.objs(content)


def _say(items: list[Item], number: int, kind: Kind, part: loose.Line) -> None:
    if isinstance(part.get("text"), str):
        loose.say(items, number, kind, part["text"])
    elif base.carries_text(part):
        items.append(
            Brought(number, base.named("block", "image" if "inlineData" in part else None))
        )


def _heard(items: list[Item], line: loose.Line) -> None:
    """Add the owner's words: up to where the contents of files begin."""
    for number, part in enumerate(_parts(line)):
        words, mark, _ = loose.string(part.get("text")).partition(_FILES)
        if mark:
            loose.say(items, number, Kind.OWNER, words.rstrip())
            items.append(Brought(number, "attachment:file"))
            return
        if "functionResponse" in part:
            response = loose.obj(part["functionResponse"])
            items.append(loose.returned(number, response.get("id"), response.get("name")))
        else:
            _say(items, number, Kind.OWNER, part)


def _tools(items: list[Item], line: loose.Line) -> None:
    """Add each call and, where it has one, the result beside it, in blocks above those of the words."""
    first = len(_parts(line))
    for number, tool in enumerate(loose.objs(line.get("toolCalls"))):
        answer = answers.of_gemini(tool.get("name"), tool.get("result"))
        ok = answer.judged(_DONE.get(loose.string(tool.get("status"))))
        at, name = first + 2 * number, tool.get("name")
        loose.both(items, at, tool.get("id"), name, tool.get("args"), ok=ok, said=answer.said)
        if ok is None and not tool.get("result"):
            items.pop()  # still running


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
    whole=(
        whole.Whole(
            wants=lambda log: log.endswith((".json", ".jsonl")),
            form="json",
            claims=is_chat,
            lines=lines,
        ),
    ),
)
