"""Later harnesses that rewrite: Gemini, OpenCode, Aider, SWE-agent, OpenHands, Goose, Cline."""

import itertools
import json
import shutil
import sqlite3
from pathlib import Path

from tests.support.harness_kind import MS, Entry, Kind, lines_at, pretty, text_block, write_file
from tests.support.logs import stamp

_later = itertools.count(MS + 1000)

# ---------------------------------------------------------------- Gemini


def _gemini(kind: str, content: object, **more: object) -> Entry:
    return {"id": f"m{abs(hash((kind, str(content), str(more))))}", "timestamp": stamp(1), "type": kind,
            "content": content, **more}  # fmt: skip


_GEMINI_HEAD = {
    "sessionId": "s1",
    "projectHash": "h1",
    "startTime": stamp(0),
    "lastUpdated": stamp(9),
}


def put_gemini(folder: Path, entries: list[Entry]) -> Path:
    """Put down a chat as one document."""
    path = folder / "h1" / "chats" / "session-1.json"
    return write_file(path, pretty({**_GEMINI_HEAD, "messages": entries}))


GEMINI = Kind(
    "gemini",
    put_gemini,
    lambda words: _gemini("user", [{"text": words}]),
    lambda words: _gemini("gemini", words),
    lambda tool, args, call, result: [
        _gemini("gemini", "", toolCalls=[
            {"id": call, "name": tool, "args": args, "status": "success", "resultDisplay": result,
             "result": [{"functionResponse": {"id": call, "response": {"output": result}}}]}])
    ],
    {
        "result": lambda word: _gemini(
            "gemini", "", toolCalls=[{"id": "c9", "name": "x", "status": "error", "result": [word]}]
        ),
        "file": lambda word: _gemini(
            "user", [{"text": "\n--- Content from referenced files ---"}, {"text": word}]
        ),
        "notice": lambda word: _gemini("info", word),
        "image": lambda word: _gemini("user", [{"inlineData": {"data": word}}]),
        "response part": lambda word: _gemini("user", [{"functionResponse": {"response": word}}]),
        "unknown type": lambda word: _gemini("news", word),
    },
    {
        "thoughts": lambda word: _gemini("gemini", "", thoughts=[{"description": word}]),
        "thought": lambda word: _gemini("gemini", [{"text": word, "thought": True}]),
    },
    None,
    lambda fields: {"type": "news", "id": "m9", "timestamp": stamp(1), **fields},
    project=None,
)  # fmt: skip
GEMINI_LINES = GEMINI._replace(put=lines_at("h1/chats/session-2.jsonl", _GEMINI_HEAD))

# ---------------------------------------------------------------- OpenCode


def _part(role: str, part: Entry, **message: object) -> Entry:
    return role, part, message


def put_opencode(folder: Path, entries: list[Entry]) -> Path:
    """Put down a session as a tree of files, a message for each entry."""
    store = folder / "storage"
    shutil.rmtree(store / "message", ignore_errors=True)
    shutil.rmtree(store / "part", ignore_errors=True)
    path = write_file(store / "session" / "p1" / "s1.json", pretty(
        {"id": "s1", "projectID": "p1", "directory": "/home/ada/shop", "parentID": None,
         "title": "canarytitle", "time": {"created": MS, "updated": MS}}))  # fmt: skip
    for number, (role, part, message) in enumerate(entries):
        name = f"msg_{number:04}"
        write_file(store / "message" / "s1" / f"{name}.json", pretty(
            {"id": name, "sessionID": "s1", "role": role, "time": {"created": MS + number},
             **message}))  # fmt: skip
        write_file(store / "part" / name / "prt_1.json", pretty(
            {"id": f"prt_{number}", "sessionID": "s1", "messageID": name, **part}))  # fmt: skip
    return path


def opencode_db(path: Path) -> sqlite3.Connection:
    """Make and open a database as OpenCode's are, in the mode in which it keeps them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.executescript("""
        CREATE TABLE IF NOT EXISTS session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT,
            directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
        CREATE TABLE IF NOT EXISTS message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
            time_updated INTEGER, data TEXT);
        CREATE TABLE IF NOT EXISTS part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
            time_created INTEGER, time_updated INTEGER, data TEXT);
    """)
    return database


def opencode_rows(
    database: sqlite3.Connection, entries: list[Entry], session: str = "s1", start: int = 0
) -> None:
    """Add entries to a session in a database."""
    database.execute("BEGIN")
    database.execute("INSERT OR IGNORE INTO session VALUES (?, 'p1', NULL, '/home/ada/shop', 'canarytitle',"
                     " ?, ?)", (session, MS, MS))  # fmt: skip
    for number, (role, part, message) in enumerate(entries, start):
        name, now = f"{session}_msg_{number:04}", MS + number
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)",
                         (name, session, now, now, json.dumps({"role": role, **message})))  # fmt: skip
        database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
                         (f"{name}_p", name, session, now, now, json.dumps(part)))  # fmt: skip
    # Whatever changes has a later time of its last change than anything before it.
    database.execute("UPDATE session SET time_updated = ? WHERE id = ?", (next(_later), session))
    database.execute("COMMIT")


def put_opencode_db(folder: Path, entries: list[Entry]) -> Path:
    """Put down a session in a database that nobody has open."""
    database = opencode_db(folder / "opencode.db")
    for table in ("session", "message", "part"):
        database.execute(f"DELETE FROM {table}")
    opencode_rows(database, entries)
    database.close()
    return folder / "opencode.db"


def _tool(tool: str, args: object, call: str, **state: object) -> Entry:
    state = {"status": "completed", "input": args, **state}
    return _part("assistant", {"type": "tool", "tool": tool, "callID": call, "state": state})


OPENCODE = Kind(
    "opencode",
    put_opencode,
    lambda words: _part("user", {"type": "text", "text": words}),
    lambda words: _part("assistant", {"type": "text", "text": words}),
    lambda tool, args, call, result: [_tool(tool, args, call, output=result, title=result)],
    {
        "result": lambda word: _tool("bash", {}, "c9", output=word, metadata={"output": word}),
        "error": lambda word: _tool("bash", {}, "c9", status="error", error=word),
        "synthetic": lambda word: _part("user", {"type": "text", "text": word, "synthetic": True}),
        "ignored": lambda word: _part("user", {"type": "text", "text": word, "ignored": True}),
        "file": lambda word: _part(
            "user", {"type": "file", "filename": "a", "source": {"text": {"value": word}}}
        ),
        "subtask": lambda word: _part("user", {"type": "subtask", "prompt": word}),
        "retry": lambda word: _part("assistant", {"type": "retry", "error": {"message": word}}),
        "compaction": lambda word: _part("user", {"type": "compaction", "auto": word}),
        "unknown part": lambda word: _part("user", {"type": "news", "text": word}),
        "text of another shape": lambda word: _part("user", {"type": "text", "text": [word]}),
        "unknown role": lambda word: _part("system", {"type": "text", "text": word}),
    },
    {
        "reasoning": lambda word: _part("assistant", {"type": "reasoning", "text": word}),
        "step": lambda word: _part("assistant", {"type": "step-start", "snapshot": word}),
        "patch": lambda word: _part("assistant", {"type": "patch", "hash": word}),
        "message": lambda word: _part(
            "user", {"type": "agent"}, summary={"title": word}, system=word
        ),
    },
    lambda words: _part("assistant", {"type": "text", "text": words}, summary=True),
)
OPENCODE_DB = OPENCODE._replace(put=put_opencode_db)

# ---------------------------------------------------------------- Aider


def put_aider(folder: Path, entries: list[Entry]) -> Path:
    """Put down a repository's history."""
    head = "\n# aider chat started at 2026-01-02 03:04:05\n\n"
    return write_file(folder / "shop" / ".aider.chat.history.md", head + "".join(entries))


AIDER = Kind(
    "aider",
    put_aider,
    lambda words: "#### " + words.replace("\n", "  \n#### ") + "  \n\n",
    lambda words: f"{words}\n\n",
    lambda tool, args, call, result: [f"> Running {tool}  \n> {result}  \n\n"],
    {
        "output": lambda word: f"> {word}  \n",
        "heading": lambda word: f"#### first  \n\n#### {word}\n",
    },
    session=None,
    project=None,
)

# ---------------------------------------------------------------- SWE-agent


def put_swe(folder: Path, entries: list[Entry]) -> Path:
    """Put down a trajectory: texts are the task, objects are steps."""
    task = [
        {"role": "user", "agent": "main", "content": said}
        for said in entries
        if isinstance(said, str)
    ]
    steps = [step for step in entries if isinstance(step, dict) and "action" in step]
    extra = [said for said in entries if isinstance(said, dict) and "role" in said]
    system = {"role": "system", "agent": "main", "content": "canarysystemprompt"}
    return write_file(folder / "run" / "s1.traj", pretty(
        {"environment": "main", "trajectory": steps, "history": [system, *extra, *task],
         "info": {"submission": "canarysubmission"}}))  # fmt: skip


def _step(action: str, observation: str, thought: str = "") -> Entry:
    return {"action": action, "observation": observation, "thought": thought, "response": thought,
            "state": {"open_file": "canarystate"}}  # fmt: skip


SWE = Kind(
    "swe-agent",
    put_swe,
    lambda words: words,
    lambda words: _step("", "", words),
    lambda tool, args, call, result: [_step(args["command"], result)],
    {"observation": lambda word: _step("ls", word)},
    {
        "demonstration": lambda word: {
            "role": "user", "agent": "main", "is_demo": True, "content": word},
    },
    project=None,
    session=None,
)  # fmt: skip

# ---------------------------------------------------------------- OpenHands


def put_openhands(folder: Path, entries: list[Entry]) -> Path:
    """Put down a conversation, a file for each event."""
    state = {
        "id": "s1",
        "agent": {"llm": "canaryagent"},
        "workspace": {"working_dir": "/home/ada/shop"},
    }
    path = write_file(folder / "s1" / "base_state.json", pretty(state))
    shutil.rmtree(folder / "s1" / "events", ignore_errors=True)
    for number, event in enumerate(entries):
        name = f"event-{number:05}-x.json"
        write_file(folder / "s1" / "events" / name, pretty({"timestamp": stamp(number), **event}))
    return path


def _event(kind: str, source: str = "agent", **more: object) -> Entry:
    return {"kind": kind, "id": "x1", "source": source, **more}


def _hands(source: str, words: str, **more: object) -> Entry:
    message = {"role": "user" if source == "user" else "assistant", "content": text_block(words)}
    return _event("MessageEvent", source, llm_message=message, **more)


OPENHANDS = Kind(
    "openhands",
    put_openhands,
    lambda words: _hands("user", words),
    lambda words: _hands("agent", words),
    lambda tool, args, call, result: [
        _event("ActionEvent", tool_name=tool, tool_call_id=call, action=args, thought=[]),
        _event("ObservationEvent", "environment", tool_name=tool, tool_call_id=call,
               observation={"content": result}),
    ],
    {
        "result": lambda word: _event("ObservationEvent", tool_call_id="c9", observation={"x": word}),
        "error": lambda word: _event("AgentErrorEvent", tool_call_id="c9", error=word),
        "extended": lambda word: _hands("user", "", extended_content=text_block(word)),
        "sender": lambda word: _hands("user", word, sender="other"),
        "environment": lambda word: _hands("environment", word),
        "system prompt": lambda word: _event("SystemPromptEvent", system_prompt=text_block(word)),
        "state": lambda word: _event("ConversationStateUpdateEvent", value=word),
        "image": lambda word: _event(
            "MessageEvent", "user", llm_message={"content": [{"type": "image", "image_urls": [word]}]}
        ),
        "unknown event": lambda word: _event("NewsEvent", text=word),
        "message of another shape": lambda word: _event("MessageEvent", "user", llm_message=word),
    },
    {
        "reasoning": lambda word: _hands("agent", "", reasoning_content=word),
        "thinking": lambda word: _hands("agent", "", thinking_blocks=[word]),
    },
    lambda words: _event("Condensation", "environment", summary=words),
    lambda fields: _event("NewsEvent", **fields),
)  # fmt: skip

# ---------------------------------------------------------------- Goose


def put_goose(folder: Path, entries: list[Entry]) -> Path:
    """Put down a session in Goose's database."""
    path = folder / "sessions.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE sessions(id TEXT PRIMARY KEY, description TEXT, working_dir TEXT);
        CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT,
            created_timestamp INTEGER, metadata_json TEXT);
        INSERT INTO sessions VALUES ('s1', 'canarydescription', '/home/ada/shop');
    """)
    for entry in entries:
        database.execute(
            "INSERT INTO messages(id, session_id, role, content_json, created_timestamp, metadata_json)"
            " VALUES (?, 's1', ?, ?, ?, ?)",
            (
                next(_later),  # a conversation that is replaced gets new rows
                entry["role"],
                json.dumps(entry["content"]),
                MS // 1000,
                json.dumps(entry["metadata"]),
            ),
        )
    database.commit()
    database.close()
    return path


def _goose(role: str, *blocks: Entry, **metadata: object) -> Entry:
    return {"role": role, "content": list(blocks), "created": MS // 1000, "metadata": metadata}


GOOSE = Kind(
    "goose",
    put_goose,
    lambda words: _goose("user", {"type": "text", "text": words}),
    lambda words: _goose("assistant", {"type": "text", "text": words}),
    lambda tool, args, call, result: [
        _goose("assistant", {"type": "toolRequest", "id": call,
                             "toolCall": {"status": "success", "value": {"name": tool, "arguments": args}}}),
        _goose("user", {"type": "toolResponse", "id": call,
                        "toolResult": {"status": "success", "value": [{"type": "text", "text": result}]}}),
    ],
    {
        "result": lambda word: _goose("user", {"type": "toolResponse", "id": "c9", "toolResult": word}),
        "hidden": lambda word: _goose("user", {"type": "text", "text": word}, userVisible=False),
        "notice": lambda word: _goose("assistant", {"type": "systemNotification", "msg": word}),
        "image": lambda word: _goose("user", {"type": "image", "data": word}),
        "unknown role": lambda word: _goose("system", {"type": "text", "text": word}),
        "unknown block": lambda word: _goose("user", {"type": "news", "text": word}),
    },
    {"thinking": lambda word: _goose("assistant", {"type": "thinking", "thinking": word})},
)  # fmt: skip
GOOSE_LINES = GOOSE._replace(
    put=lines_at("s1.jsonl", {"working_dir": "/home/ada/shop", "description": "canarydescription",
                              "message_count": 1})
)  # fmt: skip

# ---------------------------------------------------------------- Cline


def put_cline(folder: Path, entries: list[Entry]) -> Path:
    """Put down a task as the screen shows it."""
    task = {"ts": MS, "type": "say", "say": "text", "text": "task"}
    return write_file(folder / "s1" / "ui_messages.json", pretty([task, *entries]))


def _says(kind: str, text: object, **more: object) -> Entry:
    return {"ts": MS + 1, "type": "say", "say": kind, "text": text, **more}


CLINE = Kind(
    "cline",
    put_cline,
    lambda words: _says("user_feedback", words),
    lambda words: _says("text", words),
    lambda tool, args, call, result: [
        _says("command", args["command"]), _says("command_output", result)],
    {
        "output": lambda word: _says("command_output", word),
        "file": lambda word: _says("tool", json.dumps({"tool": "readFile", "path": "a", "content": word})),
        "server": lambda word: _says("mcp_server_response", word),
        "request": lambda word: _says("api_req_started", json.dumps({"request": word})),
        "browser": lambda word: _says("browser_action_result", word),
        "notice": lambda word: _says("error", word),
        "image": lambda word: _says("user_feedback", "", images=[word]),
        "unknown": lambda word: _says("news", word),
        "text of another shape": lambda word: _says("text", [word]),
    },
    {"growing": lambda word: _says("text", word, partial=True)},
    lambda words: _says("condense_context", None, contextCondense={"summary": words}),
    lambda fields: _says("news", None) | {"text": fields.get("content", None)},
    session="s1",
    project=None,
)  # fmt: skip
