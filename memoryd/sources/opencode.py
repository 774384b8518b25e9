"""OpenCode: a tree of small files that are rewritten in place, or a database of the same objects.

In: `session/PROJECT/SESSION.json` with `message/SESSION/*.json` and `part/MESSAGE/*.json` beside `session`, or
`opencode.db`. Out: one line for the session, one a message, one a part, and their records. A tool's part holds
its call and its result; the result is left behind here already, as is reasoning. A message whose `summary` is true
is a compaction. A session with a parent is a sub-agent's: its prompts are the assistant's words.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import Brought, Called, Item, Kind, Link, Record, Returned
from memoryd.sources import base, loose, sqlite, whole
from memoryd.sources.whole import Mark

ID = "opencode"

_SILENT = frozenset(("reasoning", "step-start", "step-finish", "patch", "snapshot", "agent"))
_UNDONE = ("pending", "running")
_DONE = {"completed": True, "success": True, "error": False}
_BESIDE = frozenset(("session", "message", "part"))
_NO_LOGS = frozenset(("log", "bin", "snapshot", "tool-output", "worktree"))
_KEPT = ("id", "type", "text", "synthetic", "ignored", "callID", "tool", "filename", "url")
_UNREAD_STATE = frozenset(("output", "metadata", "title", "attachments", "time", "raw"))


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return OpenCode's data folder: below XDG_DATA_HOME, else ~/.local/share."""
    try:
        moved = env.get("XDG_DATA_HOME")
        top = Path(moved) if moved else paths.user_home(env) / ".local" / "share"
    except ConfigError:
        return []
    return [top / "opencode"]


def claims(record: Mapping[str, object]) -> bool | None:
    """Say whether a line is of those that are made here; OpenCode keeps no lines."""
    return "opencode" in record


def is_session(found: object) -> bool:
    """Say whether a document is a session's."""
    told = loose.obj(found)
    return loose.has(told, "id", "projectID", "directory") and isinstance(told.get("time"), dict)


def has_sessions(tables: frozenset[str]) -> bool:
    """Say whether a database is OpenCode's, by its tables."""
    return tables >= _BESIDE


# ---------------------------------------------------------------- the tree


def look(root: Path, log: str) -> Mark:
    """Return the mark of a session's files. Raises: OSError."""
    store, session = _store(log), PurePosixPath(log).stem
    messages = whole.listed(root, f"{store}message/{session}")
    parts = [status for name, _ in messages for _, status in _part_files(root, store, name)]
    return whole.mark_of((root / log).lstat(), [*(status for _, status in messages), *parts])


def glance(root: Path, log: str) -> tuple[int, ...]:
    """Return what changes when a session is taken up again. Raises: OSError."""
    # Plain strings: a sweep does this for every session there is.
    folder, _, name = log.rpartition("/")
    store = folder[: folder.rfind("session/")] if "session/" in folder else _store(log)
    file = os.lstat(f"{root}/{log}")
    try:
        messages = os.lstat(f"{root}/{store}message/{name[:-5]}").st_mtime_ns
    except FileNotFoundError:
        messages = 0
    return file.st_mtime_ns, file.st_size, messages


def _store(log: str) -> str:
    """Return the path of the folder that holds `session`, with a slash, or nothing."""
    at = PurePosixPath(log).parent.parent.parent.as_posix()
    return "" if at == "." else f"{at}/"


def _part_files(root: Path, store: str, message: str) -> list[tuple[str, Any]]:
    return whole.listed(root, f"{store}part/{PurePosixPath(message).stem}")


def tree_lines(root: Path, log: str) -> Iterator[bytes]:
    """Yield the lines of a session that lies in files."""
    session = whole.document(root, log)
    store = _store(log)
    yield from made(session, _messages(root, store, session["id"]))


def _messages(
    root: Path, store: str, session: str
) -> Iterator[tuple[loose.Line, list[loose.Line]]]:
    """Yield each message with its parts, in the order of their making."""
    folder = f"{store}message/{session}"
    found = [whole.document(root, f"{folder}/{name}") for name in _names(root, folder)]
    for message in sorted(found, key=_order):
        parts = f"{store}part/{message['id']}"
        yield message, [whole.document(root, f"{parts}/{name}") for name in _names(root, parts)]


def _names(root: Path, folder: str) -> list[str]:
    return [name for name, _ in whole.listed(root, folder) if name.endswith(".json")]


def _order(message: loose.Line) -> tuple[float, str]:
    created = loose.obj(message.get("time")).get("created")
    return created if isinstance(created, int | float) else 0, loose.string(message.get("id"))


def main(root: Path, log: str) -> str | None:
    """Return the session's file that a message's or a part's belongs to."""
    path = PurePosixPath(log)
    kinds = [(at, part) for at, part in enumerate(path.parts[:-1]) if part in ("message", "part")]
    if not kinds or path.suffix != ".json":
        return None
    at, kind = kinds[-1]
    store = "".join(f"{part}/" for part in path.parts[:at])
    session = path.parent.name if kind == "message" else _session_of(root, log)
    for folder in sorted((root / store / "session").glob("*/")):
        if session and (folder / f"{session}.json").is_file():
            return (folder / f"{session}.json").relative_to(root).as_posix()
    return None


def _session_of(root: Path, log: str) -> str:
    try:
        return loose.string(loose.obj(whole.document(root, log)).get("sessionID"))
    except OSError:
        return ""


def leaves_out(names: frozenset[str]) -> frozenset[str]:
    """Return the folders beside these names in which no session has its file."""
    if names >= _BESIDE:
        return names - {"session"}
    return _NO_LOGS if names & {"storage", "opencode.db"} else frozenset()


# ---------------------------------------------------------------- the database

_NAMES = """
    SELECT s.id, s.time_updated,
        (SELECT count(*) FROM message m WHERE m.session_id = s.id)
        + (SELECT count(*) FROM part p WHERE p.session_id = s.id),
        max(coalesce((SELECT max(m.time_updated) FROM message m WHERE m.session_id = s.id), 0),
            coalesce((SELECT max(p.time_updated) FROM part p WHERE p.session_id = s.id), 0))
    FROM session s
"""


def names(root: Path, log: str) -> dict[str, Mark]:
    """Return the sessions in a database, each with its mark. Raises: OSError, NotNow."""
    file = sqlite.mark(root, log)
    with sqlite.database(root, log) as database:
        found = database.execute(_NAMES).fetchall()
    return {
        str(name): whole.named_mark(file, str(name), int(str(count)),
                                    max(int(str(updated or 0)), int(str(last or 0))))
        for name, updated, count, last in found
        if isinstance(name, str) and name and "/" not in name
    }  # fmt: skip


def database_lines(root: Path, log: str) -> Iterator[bytes]:
    """Yield the lines of a session that lies in a database."""
    file, _, name = log.rpartition("/")
    with sqlite.database(root, file) as database:
        rows = database.execute(
            "SELECT id, parent_id, directory FROM session WHERE id = ?", (name,)
        ).fetchall()
        messages = database.execute(
            "SELECT id, time_created, data FROM message WHERE session_id = ?"
            " ORDER BY time_created, id",
            (name,),
        ).fetchall()
        parts = database.execute(
            "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id", (name,)
        ).fetchall()
    if not rows:
        raise FileNotFoundError(name)
    of: dict[str, list[loose.Line]] = {}
    for message, number, data in parts:
        of.setdefault(str(message), []).append({**_data(data), "id": number})
    session = dict(zip(("id", "parentID", "directory"), rows[0], strict=True))
    told = [
        ({**_data(data), "id": id_, "time": {"created": created}}, of.get(str(id_), []))
        for id_, created, data in messages
    ]
    yield from made(session, told)


def _data(data: object) -> loose.Line:
    return loose.obj(
        whole.parsed(data.encode() if isinstance(data, str) else bytes(str(data), "utf-8"))
    )


# ---------------------------------------------------------------- lines and records


def made(
    session: loose.Line, messages: Iterable[tuple[loose.Line, list[loose.Line]]]
) -> Iterator[bytes]:
    """Yield the lines of a session: of what changes all the time, only what is read of it."""
    child = bool(session.get("parentID"))
    kept = {key: session.get(key) for key in ("id", "parentID", "directory")}
    yield whole.line({"opencode": "session", **kept})
    for message, parts in messages:
        role = loose.string(message.get("role"))
        made_at = loose.obj(message.get("time")).get("created")
        about = {"role": role, "child": child, "summary": message.get("summary") is True,
                 "time": made_at}  # fmt: skip
        yield whole.line({"opencode": "message", "id": message.get("id"), **about})
        for part in parts:
            kept = _kept(part)
            yield whole.line({"opencode": "part", **about, "part": kept})
            if kept["type"] == "tool" and kept["state"].get("status") not in _UNDONE:
                # In a record of its own: a task's session starts from its call, and answers in its result.
                told = _told(part)
                yield whole.line(
                    {"opencode": "result", "time": made_at, "part": kept, "told": told}
                )


def _kept(part: loose.Line) -> loose.Line:
    """Return what is read of a part; of an unknown kind all."""
    kind = loose.string(part.get("type"))
    if kind in _SILENT:
        return {"type": kind}
    if kind == "tool":
        state = loose.obj(part.get("state"))
        kept = {key: value for key, value in state.items() if key not in _UNREAD_STATE}
        more = loose.obj(state.get("metadata"))
        return {"type": kind, **{key: part.get(key) for key in ("id", "tool", "callID")},
                "state": kept, "exit": more.get("exit"), "session": more.get("sessionId")}  # fmt: skip
    if kind in ("text", "file"):
        return {key: part[key] for key in _KEPT if key in part}
    return {**part, "type": kind}


def _told(part: loose.Line) -> object:
    """Return what a tool's part says of how it failed; of what went well nothing is read."""
    state = loose.obj(part.get("state"))
    return state.get("error", state.get("output")) if _ok(part, state) is False else None


def _ok(part: loose.Line, state: loose.Line) -> bool | None:
    """Return how a call went: its status, unless what it ran has another exit code than 0."""
    code = part.get("exit", loose.obj(state.get("metadata")).get("exit"))
    if isinstance(code, int) and code:
        return False
    return _DONE.get(loose.string(state.get("status")))


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    kind, items = loose.string(line.get("opencode")), list[Item]()
    ts = loose.when(line.get("time"))
    if kind == "session":
        session, parent = base.text(line.get("id")), base.text(line.get("parentID"))
        link = None if parent is None else Link("subagent", session=parent)
        about = base.about(session, base.text(line.get("directory")), ID, link)
        return Record(n, None, items, about, session)
    if kind == "result" and isinstance(line.get("part"), dict):
        _result(items, line["part"], line.get("told"))
        return Record(n, ts, items)
    if kind == "part" and isinstance(line.get("part"), dict):
        _part(items, line["part"], line)
        return Record(n, ts, items, None, base.text(line["part"].get("id")))
    if kind != "message":
        items += base.unknown(base.text(kind), line, frozenset(("opencode",)))
    return Record(n, ts, items)


def _part(items: list[Item], part: loose.Line, line: loose.Line) -> None:
    kind = loose.string(part.get("type"))
    if kind == "text":
        _text(items, part, line)
    elif kind == "tool":
        _tool(items, part)
    elif kind == "file":
        path = base.text(part.get("filename")) or base.text(part.get("url"))
        items.append(Brought(0, "attachment:file", args=None if path is None else {"path": path}))
    elif kind == "compaction":
        items.append(Brought(0, "compaction"))
    elif kind == "subtask":
        items.append(Brought(0, "skill-text"))
    elif kind == "retry":
        items.append(Brought(0, "meta"))
    elif kind not in _SILENT:
        items.append(Brought(0, base.named("block", base.text(kind))))


def _text(items: list[Item], part: loose.Line, line: loose.Line) -> None:
    role, words = loose.string(line.get("role")), part.get("text")
    if not isinstance(words, str):
        loose.odd(items, 0, words)
    elif part.get("synthetic") is True or part.get("ignored") is True:
        items.append(Brought(0, "attachment:file"))
    elif line.get("summary") is True:
        loose.say(items, 0, Kind.SUMMARY, words)
        items.append(Brought(0, "compaction"))
    elif role == "user":
        loose.say(items, 0, Kind.ASSISTANT if line.get("child") else Kind.OWNER, words)
    elif role == "assistant":
        loose.say(items, 0, Kind.ASSISTANT, words)
    else:
        loose.odd(items, 0, words)


def _tool(items: list[Item], part: loose.Line) -> None:
    state = loose.obj(part.get("state"))
    call = _call(part)
    items.append(Called(0, call, loose.string(part.get("tool")), loose.args_of(state.get("input"))))


def _call(part: loose.Line) -> str:
    return base.text(part.get("callID")) or base.text(part.get("id")) or "nameless"


def _result(items: list[Item], part: loose.Line, told: object) -> None:
    ok = _ok(part, loose.obj(part.get("state")))
    found = loose.returned(0, _call(part), ok=ok, said=told)
    child = base.text(part.get("session"))
    more = None if child is None else msgspec.Raw(msgspec.json.encode(child))
    items.append(Returned(0, found.call, ok=ok, told=found.told, more=more))


def agents(more: msgspec.Raw) -> tuple[str, ...]:
    """Return the session that a task's result tells."""
    child = base.decoded(more)
    return (child,) if isinstance(child, str) else ()


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=lambda log: False,
    claims=claims,
    parse=parse,
    agent=lambda log, session: session,
    agents=agents,
    whole=(
        whole.Whole(
            wants=lambda log: log.endswith(".json"),
            form="json",
            claims=is_session,
            lines=tree_lines,
            look=look,
            glance=glance,
            main=main,
            leaves_out=leaves_out,
        ),
        whole.Whole(
            wants=lambda log: log.endswith(".db") or ".db/" in log,
            form="sqlite",
            claims=has_sessions,
            lines=database_lines,
            names=names,
            main=lambda root, log: sqlite.main(log),
        ),
    ),
)
