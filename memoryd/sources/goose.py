"""Goose: a database of messages, and files of lines before it.

In: `sessions.db` (tables `sessions` and `messages`), or an older session's `.jsonl`. Out: a header and one line a
message, and records with one item a content block. Messages that the owner does not see are the harness's.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import Brought, Called, Item, Kind, Record
from memoryd.sources import base, loose, sqlite, whole
from memoryd.sources.whole import Mark

ID = "goose"

_SILENT = frozenset(("thinking", "redactedThinking", "reasoning"))
_META = frozenset(
    ("toolConfirmationRequest", "systemNotification", "contextLengthExceeded", "actionRequired")
)
_CALLS = frozenset(("toolRequest", "frontendToolRequest"))
_KEYS = frozenset(("goose", "working_dir", "id", "description", "name"))


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of sessions: below XDG_DATA_HOME, else ~/.local/share."""
    try:
        moved = env.get("XDG_DATA_HOME")
        top = Path(moved) if moved else paths.user_home(env) / ".local" / "share"
    except ConfigError:
        return []
    return [top / "goose" / "sessions"]


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a line is of a session kept as lines: its header, or a message with a time of making."""
    if "type" in record or "message" in record:
        return False
    if "role" in record:
        return isinstance(record.get("content"), list) and "created" in record
    return loose.has(record, "working_dir", "message_count") or "goose" in record


def names(root: Path, log: str) -> dict[str, Mark]:
    """Return the sessions in a database, each with its mark. Raises: OSError, NotNow."""
    file = sqlite.mark(root, log)
    with sqlite.database(root, log) as database:
        found = database.execute(
            "SELECT session_id, count(*), max(id), max(created_timestamp),"
            " sum(length(content_json)) FROM messages GROUP BY session_id"
        ).fetchall()
    return {
        name: whole.named_mark(file, name, int(str(last)) + int(str(size or 0)) + int(str(count)),
                               loose.when(created) or 0)
        for name, count, last, created, size in found
        if isinstance(name, str) and name and "/" not in name
    }  # fmt: skip


def lines(root: Path, log: str) -> Iterator[bytes]:
    """Yield the header and the messages of a session in a database."""
    file, _, name = log.rpartition("/")
    with sqlite.database(root, file) as database:
        about = database.execute(
            "SELECT working_dir FROM sessions WHERE id = ?", (name,)
        ).fetchall()
        rows = database.execute(
            "SELECT role, content_json, metadata_json, created_timestamp FROM messages"
            " WHERE session_id = ? ORDER BY id",
            (name,),
        ).fetchall()
    if not rows:
        raise FileNotFoundError(name)
    folder = about[0][0] if about else None
    yield whole.line({"goose": "session", "id": name, "working_dir": folder})
    for role, content, metadata, created in rows:
        told = None if metadata is None else whole.parsed(str(metadata).encode())
        yield whole.line({"role": role, "content": whole.parsed(str(content).encode()),
                          "metadata": told, "created": created})  # fmt: skip


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    items: list[Item] = []
    if "role" not in line:
        about = base.about(base.text(line.get("id")), base.text(line.get("working_dir")), ID)
        if not loose.has(line, "working_dir"):
            items += base.unknown(base.text(line.get("type")), line, _KEYS)
        return Record(n, None, items, about)
    content = line.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        loose.odd(items, 0, content)
    hidden = loose.obj(line.get("metadata")).get("userVisible") is False
    for number, block in enumerate(loose.objs(content)):
        _block(items, number, block, line["role"], hidden=hidden)
    return Record(n, loose.when(line.get("created")), items)


def _block(items: list[Item], at: int, block: loose.Line, role: object, *, hidden: bool) -> None:
    kind = loose.string(block.get("type"))
    if kind == "text" and not hidden and role in ("user", "assistant"):
        speaker = Kind.OWNER if role == "user" else Kind.ASSISTANT
        loose.say(items, at, speaker, block.get("text"))
    elif kind in _CALLS:
        call = loose.obj(loose.obj(block.get("toolCall")).get("value"))
        name, args = loose.string(call.get("name")), loose.args_of(call.get("arguments"))
        items.append(Called(at, base.text(block.get("id")), name, args))
    elif kind == "toolResponse":
        result = loose.obj(block.get("toolResult"))
        value = loose.obj(result.get("value"))
        failed = result.get("status") == "error" or value.get("isError") is True
        said = result.get("error") or value.get("content")
        items.append(loose.returned(at, block.get("id"), ok=not failed, said=said))
    elif kind == "text":
        items.append(Brought(at, "hook"))
    elif kind in _META:
        items.append(Brought(at, "meta"))
    elif kind == "summarizationRequested":
        items.append(Brought(at, "compaction"))
    elif kind not in _SILENT:
        items.append(Brought(at, base.named("block", base.text(kind))))


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
            wants=lambda log: log.endswith(".db") or ".db/" in log,
            form="sqlite",
            claims=lambda tables: tables >= frozenset(("sessions", "messages")),
            lines=lines,
            names=names,
            main=lambda root, log: sqlite.main(log),
        ),
    ),
)
