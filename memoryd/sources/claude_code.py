"""Claude Code's session log: messages of nested content blocks, and whatever else the harness notes down.

In: lines with a `type`. Out: records with one item a content block, numbered as in the record. `user` lines
hold the owner's words, tool results, or text that the harness sends in the owner's name; who spoke decides
(`wrapped`, `isMeta`, `isSidechain`, `isCompactSummary`, `origin`). Never read: `toolUseResult`, thinking,
`progress` and attachments other than queued words; they only raise the label, under the names of the rules.

No public schema exists and the format drifts with each release, so an unknown type, block or attachment
that carries text counts as an unknown tool's result.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import Brought, Called, Item, Kind, Link, Record, Returned, Said
from memoryd.sources import base, claude_links
from memoryd.sources.claude_lines import (
    NOTHING,
    Attachment,
    Block,
    LaterLine,
    Line,
    Message,
    PlainBlock,
    PlainMessage,
)
from memoryd.sources.wrapped import in_claude_code, is_bare

ID = "claude-code"
VERSION = 2

_NO_TEXT = frozenset(
    (
        *("agent-color", "agent-setting", "atis-latch", "bridge-session"),
        *("content-replacement", "file-history-delta", "file-history-snapshot", "frame-link"),
        *("fork-context-ref", "marble-origami-commit", "mode", "permission-mode", "pr-link"),
        *("relocated", "started", "tag", "task-summary", "worktree-state"),
    )
)
"""Types that bring nothing into the conversation."""

_COPIES = frozenset(
    (
        *("agent-name", "ai-title", "custom-title", "last-prompt", "queue-operation"),
        *("speculation-accept", "summary"),
    )
)
"""Titles, and copies of what has its own record."""

_NOTICES = frozenset(
    (
        *("agents_killed", "api_error", "api_refusal", "away_summary", "bridge_status"),
        *("compact_boundary", "error", "informational", "init", "memory_saved"),
        *("microcompact_boundary", "model_refusal_fallback", "permission_retry"),
        *("scheduled_task_fire", "session_start", "status", "turn_duration"),
    )
)
"""`system` subtypes in which the harness speaks of itself."""
_OVER = frozenset(("stop_hook_summary", "turn_duration"))
"""Those that end a turn."""

_KEYS = frozenset(
    (
        *("agentId", "cwd", "entrypoint", "gitBranch", "id", "isMeta", "key", "level"),
        *("messageId", "parentToolUseID", "parentUuid", "promptId", "requestId", "sessionId"),
        *("session_id", "sessionKind", "slug", "subtype", "timestamp", "toolUseID", "type"),
        *("userType", "uuid", "version"),
    )
)
"""Fields that carry no text in any record."""

_TOLD_BY = 16
"""Records by which a log has told its session and folder, which every record repeats."""

_OWNER, _ASSISTANT, _SUMMARY = Kind.OWNER, Kind.ASSISTANT, Kind.SUMMARY
_HOSTED = frozenset(("server_tool_use", "mcp_tool_use"))
_SILENT_BLOCKS = frozenset(("thinking", "redacted_thinking", "fallback"))
_NOT_THE_OWNER = frozenset(
    (
        *("agent", "auto-continuation", "channel", "coordinator", "hook", "peer", "subagent"),
        *("system", "task-notification", "teammate"),
    )
)
_decoder = msgspec.json.Decoder(Line)
_EMPTY = frozenset((b"", b"null", b"[]", b'""', b"{}", b"false"))


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of projects: below CLAUDE_CONFIG_DIR, else ~/.claude."""
    if moved := env.get("CLAUDE_CONFIG_DIR"):
        return [Path(moved) / "projects"]
    try:
        return [paths.user_home(env) / ".claude" / "projects"]
    except ConfigError:
        return []


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a record is Claude Code's, and not one of the formats that imitate it."""
    kind = record.get("type")
    if not isinstance(kind, str) or any(key in record for key in ("payload", "systemPayload")):
        return False
    if kind in ("user", "assistant"):
        message = record.get("message")
        if not isinstance(message, dict):
            return None if message is not None else False
        return "content" in message or (None if "parts" not in message else False)
    if kind == "summary":
        return "leafUuid" in record
    if kind == "file-history-snapshot":
        return "snapshot" in record
    if kind in ("system", "attachment", "progress"):
        return ("parentUuid" in record and "sessionId" in record) or None
    return None if kind in _NO_TEXT or kind in _COPIES or "sessionId" in record else False


def parse(line: LaterLine, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson, DecodeError for one that is to be taken apart."""
    kind, rest = line.type, None
    if kind == "assistant":
        items = _assistant(line.message)
    elif kind == "user":
        items = _user(line)
    else:
        items, rest = _noted(line, kind, raw)
    told = None
    if not begun or n < _TOLD_BY:
        first = _whole(line, raw)
        told = base.about(first.session_id, first.cwd, ID, None if begun else _link(first))
    copy = None if line.forked_from is None else claude_links.copied(line.forked_from)
    return Record(n, line.timestamp, items, told, line.uuid, copy, rest)


def _whole(line: LaterLine, raw: bytes) -> Line:
    """Return a line with all of its fields. Raises: ValidationError."""
    return line if isinstance(line, Line) else _decoder.decode(raw)


def _link(line: Line) -> Link | None:
    if line.is_sidechain:
        return claude_links.link(line.session_id, line.parent_uuid, None, sidechain=True)
    parent = line.parent_uuid or line.logical_parent_uuid
    return claude_links.link(line.session_id, parent, line.forked_from, sidechain=False)


def _assistant(message: PlainMessage | Message | None) -> list[Item]:
    content = None if message is None else message.content
    if isinstance(content, str):
        return [] if _blank(content) else [Said(0, _ASSISTANT, content)]
    items: list[Item] = []
    number = 0
    for block in content or ():
        kind = block.type
        if kind == "tool_use":
            args = block.input if type(block) is PlainBlock else base.checked(block.input)
            items.append(Called(number, block.id, block.name or "", args))
        elif kind == "text":
            if (words := block.text) and not words.isspace():  # as `_say` does, for most of all
                items.append(Said(number, _ASSISTANT, words))
        elif kind not in _SILENT_BLOCKS:
            items.append(_elsewhere(block, number))
        number += 1
    return items if number <= base.MAX_BLOCKS else _numbered(items, number)


def _user(line: LaterLine) -> list[Item]:
    content = None if line.message is None else line.message.content
    more = line.tool_use_result
    items: list[Item] = []
    returned, number = False, 0
    if isinstance(content, str):
        _hear(items, 0, content, line)
    else:
        for block in content or ():
            kind = block.type
            if kind == "tool_result":
                returned = True
                items.append(_returned(block, number, more))
            elif kind == "text":
                _hear(items, number, block.text, line)
            elif kind not in _SILENT_BLOCKS:
                items.append(_elsewhere(block, number))
            number += 1
    if not returned and more is not NOTHING and bytes(more) not in _EMPTY:
        items.append(Returned(0, None))
    return items if number <= base.MAX_BLOCKS else _numbered(items, number)


def _numbered(items: list[Item], blocks: int) -> list[Item]:
    """Return the items of so many blocks, each of which an id must be able to name. Raises: NotJson."""
    if blocks > base.MAX_BLOCKS:
        raise base.NotJson(f"more than {base.MAX_BLOCKS} content blocks")
    return items


def _blank(words: str) -> bool:
    return not words or words.isspace()


def _say(items: list[Item], number: int, kind: Kind, words: str | None) -> None:
    if words is not None and not _blank(words):
        items.append(Said(number, kind, words))


def _hear(items: list[Item], number: int, heard: str | None, line: LaterLine) -> None:
    """Add a text that the harness filed under the user."""
    if heard is None:
        return
    if line.is_compact_summary:
        _say(items, number, _SUMMARY, heard)
        items.append(Brought(number, "compaction"))
        return
    if line.is_meta:
        items.append(Brought(number, _meta(heard)))
        return
    if line.origin is not None and (name := _sender(line.origin)) is not None:
        items.append(Brought(number, name))
        return
    speaker = _ASSISTANT if line.is_sidechain else _OWNER
    if is_bare(heard):
        if heard and not heard.isspace():
            items.append(Said(number, speaker, heard))
        return
    own = in_claude_code(heard)
    _say(items, number, speaker, own.words)
    items.extend(base.came_along(number, along) for along in own.along)


def _meta(heard: str) -> str:
    """Return the name of what the harness says on its own account."""
    told = in_claude_code(heard)
    if not told.words and told.along:
        return told.along[-1].name
    return "hook" if "hook feedback" in heard[:64] else "skill-text"


def _sender(origin: object) -> str | None:
    """Return the name of a message's text if its origin says that somebody else than the owner sent it."""
    kind = origin.get("kind") if isinstance(origin, dict) else None
    if not isinstance(kind, str) or kind not in _NOT_THE_OWNER:
        return None
    return "hook" if kind == "hook" else "task-notification"


def _returned(block: Block, number: int, more: msgspec.Raw | None = None) -> Returned:
    failed = block.is_error
    if failed is False:
        return Returned(number, block.tool_use_id, None, True, None, None, more)
    ok = None if failed is None else False
    return Returned(number, block.tool_use_id, None, ok, None, block.content, more)


def _elsewhere(block: Block, number: int) -> Item:
    """Return the item of a block that is found where it usually is not, or that is not known."""
    kind = block.type or ""
    if kind in _HOSTED or kind == "tool_use":
        args = base.checked(block.input)
        return Called(number, block.id, block.name or "", args, hosted=kind in _HOSTED)
    if kind.endswith("tool_result"):
        return _returned(block, number)
    return Brought(number, base.named("block", kind))


def _noted(line: LaterLine, kind: str | None, raw: bytes) -> tuple[list[Item], str | None]:
    """Return the items of a line that is no message, and whether the session comes to rest. Raises: NotJson."""
    if kind == "progress":
        return [Brought(0, base.named("progress", line.data.type if line.data else None))], None
    if kind == "attachment":
        return _attachment(line), None
    if kind in _NO_TEXT:
        return [], None
    if kind in _COPIES:
        return [Brought(0, "meta")], None
    whole = _whole(line, raw)
    if kind == "tool_use":
        return [Called(0, whole.id, whole.name or "", base.checked(whole.input))], None
    if kind == "tool_result":
        return [Returned(0, whole.tool_use_id, whole.name)], None
    if kind == "system" and (found := _system(whole)) is not None:
        return found, "idle" if whole.subtype in _OVER else None
    what = f"system/{whole.subtype}" if kind == "system" else kind
    return base.unknown(what, base.members(raw), _KEYS), None


def _attachment(line: LaterLine) -> list[Item]:
    attached = line.attachment or Attachment()
    items: list[Item] = []
    theirs = attached.is_meta is True or _sender(attached.origin) is not None
    if attached.type == "queued_command" and not theirs:
        if isinstance(attached.prompt, str):
            _hear(items, 0, attached.prompt, line)
        else:
            blocks = attached.prompt or []
            for number, block in enumerate(blocks):
                _hear(items, number, block.text, line)
            _numbered(items, len(blocks))
    named = (attached.filename, attached.path, attached.plan_file_path)
    files = [path for path in named if isinstance(path, str)]
    name = base.named("attachment", attached.type)
    return [*items, Brought(0, name, args={"path": files} if files else None)]


def _system(line: Line) -> list[Item] | None:
    subtype = line.subtype
    if subtype == "stop_hook_summary":
        told = any(bytes(raw) not in _EMPTY
                   for raw in (line.hook_errors, line.hook_additional_context))  # fmt: skip
        return [Brought(0, "hook")] if told or line.has_output is True else []
    if subtype == "local_command":
        items: list[Item] = []
        heard = base.decoded(line.content)
        if isinstance(heard, str):
            _hear(items, 0, heard, msgspec.structs.replace(line, is_meta=None))
        return [*items, Brought(0, "local-command")]
    if subtype in ("compact_boundary", "microcompact_boundary"):
        return [Brought(0, "compaction")]
    if subtype in _NOTICES:
        return [Brought(0, "meta")]
    return None


ADAPTER = base.Adapter(
    id=ID,
    version=VERSION,
    decoder=_decoder,
    later=msgspec.json.Decoder(LaterLine),
    told_by=_TOLD_BY,
    find=find,
    wants=base.is_jsonl,
    claims=claims,
    parse=parse,
    telling=frozenset(("message", "attachment", "data")),
    origin=claude_links.origin,
    agent=claude_links.agent,
    agents=claude_links.agents,
    below=claude_links.below,
    named=True,
)
