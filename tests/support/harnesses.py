"""Small sessions of the harnesses that came later, each laid out on the disk as its harness lays them out.

In: entries as a harness writes them (`owner`, `assistant`, `call`, ...), in order. Out: files below a folder.
`OUTSIDE` entries hold a word in a place that must never be read and raises; `SILENT` ones in a place that is not
read either and brings nothing from outside (thinking).

::

    kind = HARNESSES["opencode"]
    kind.put(folder, [kind.owner("hello"), *kind.call("bash", {"command": "ls"}, "c1", "a.py")])
"""

import itertools
import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.support.logs import encoded, stamp

Entry = Any
OneWord = Callable[[str], Entry]

MS = 1_767_323_045_000
_later = itertools.count(MS + 1000)


class Kind(NamedTuple):
    """How one harness writes. `first`: what comes before every session; `summary` None: it has none."""

    adapter: str
    put: Callable[[Path, list[Entry]], Path]
    owner: OneWord
    assistant: OneWord
    call: Callable[[str, object, str, str], list[Entry]]
    outside: dict[str, OneWord]
    silent: Mapping[str, OneWord] = MappingProxyType({})
    summary: OneWord | None = None
    unknown: Callable[[dict[str, object]], Entry] | None = None
    session: str | None = "s1"
    project: str | None = "/home/ada/shop"


def lines_at(name: str, *first: Entry) -> Callable[[Path, list[Entry]], Path]:
    """Return how a log of JSON lines is put down."""

    def put(folder: Path, entries: list[Entry]) -> Path:
        return _write(folder / name, encoded(*first, *entries))

    return put


def _write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _dump(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


# ---------------------------------------------------------------- pi


def _pi(role: str, content: object, **more: object) -> Entry:
    message = {"role": role, "content": content, **more}
    return {
        "type": "message",
        "id": "e1",
        "parentId": None,
        "timestamp": stamp(1),
        "message": message,
    }


def _pi_entry(kind: str, **more: object) -> Entry:
    return {"type": kind, "id": "e1", "parentId": None, "timestamp": stamp(1), **more}


def _text(words: str) -> list[Entry]:
    return [{"type": "text", "text": words}]


PI = Kind(
    "pi",
    lines_at(
        "--shop--/2026_s1.jsonl",
        {
            "type": "session",
            "version": 3,
            "id": "s1",
            "timestamp": stamp(0),
            "cwd": "/home/ada/shop",
        },
    ),
    lambda words: _pi("user", _text(words)),
    lambda words: _pi("assistant", _text(words)),
    lambda tool, args, call, result: [
        _pi("assistant", [{"type": "toolCall", "id": call, "name": tool, "arguments": args}]),
        _pi("toolResult", _text(result), toolCallId=call, toolName=tool, isError=False),
    ],
    {
        "result": lambda word: _pi("toolResult", _text(word), toolCallId="c9", toolName="read"),
        "result as text": lambda word: _pi("toolResult", word, toolCallId="c9", isError=True),
        "details": lambda word: _pi("toolResult", [], toolCallId="c9", details={"diff": word}),
        "shell output": lambda word: _pi("bashExecution", None, command="", output=word),
        "injected": lambda word: _pi_entry("custom_message", content=word, customType="x"),
        "extension": lambda word: _pi_entry("custom", data={"x": word}),
        "image": lambda word: _pi("user", [{"type": "image", "data": word}]),
        "system": lambda word: _pi("system", _text(word)),
        "unknown role": lambda word: _pi("news", _text(word)),
        "unknown block": lambda word: _pi("user", [{"type": "news", "text": word}]),
        "message of another shape": lambda word: _pi_entry("message") | {"message": word},
        "content of another shape": lambda word: _pi("user", {"text": word}),
    },
    {
        "thinking": lambda word: _pi("assistant", [{"type": "thinking", "thinking": word}]),
        "label": lambda word: _pi_entry("label", label=word),
    },
    lambda words: _pi_entry("compaction", summary=words, firstKeptEntryId="e0"),
    lambda fields: _pi_entry("news", **fields),
)

# ---------------------------------------------------------------- Droid


def _droid(role: str, *blocks: Entry) -> Entry:
    return {"type": "message", "id": "m1", "parentId": "s1", "timestamp": stamp(1),
            "message": {"role": role, "content": list(blocks)}}  # fmt: skip


def _droid_line(kind: str, **more: object) -> Entry:
    return {"type": kind, "id": "m1", "timestamp": stamp(1), **more}


DROID = Kind(
    "droid",
    lines_at("shop/s1.jsonl", {"type": "session_start", "id": "s1", "cwd": "/home/ada/shop"}),
    lambda words: _droid("user", {"type": "text", "text": words}),
    lambda words: _droid("assistant", {"type": "text", "text": words}),
    lambda tool, args, call, result: [
        _droid("assistant", {"type": "tool_use", "id": call, "name": tool, "input": args}),
        _droid("user", {"type": "tool_result", "tool_use_id": call, "content": result}),
    ],
    {
        "result": lambda word: _droid(
            "user", {"type": "tool_result", "tool_use_id": "c9", "content": _text(word)}
        ),
        "reminder": lambda word: _droid(
            "user", {"type": "text", "text": f"<system-reminder>{word}</system-reminder>"}
        ),
        "image": lambda word: _droid("user", {"type": "image", "source": {"data": word}}),
        "to-dos": lambda word: _droid_line("todo_state", todos=[word]),
        "unknown role": lambda word: _droid("system", {"type": "text", "text": word}),
        "content of another shape": lambda word: _droid_line(
            "message", message={"content": {"x": word}}
        ),
    },
    {
        "thinking": lambda word: _droid("assistant", {"type": "thinking", "thinking": word}),
    },
    lambda words: _droid_line("compaction_state", summaryText=words),
    lambda fields: _droid_line("news", **fields),
)


def _stream(kind: str, **more: object) -> Entry:
    return {"type": kind, "session_id": "s1", "timestamp": stamp(1), "id": "m1", **more}


DROID_STREAM = Kind(
    "droid",
    lines_at("out.jsonl", _stream("system", subtype="init", cwd="/home/ada/shop")),
    lambda words: _stream("message", role="user", text=words),
    lambda words: _stream("message", role="assistant", text=words),
    lambda tool, args, call, result: [
        _stream("tool_call", toolCallId=call, toolName=tool, parameters=args),
        _stream("tool_result", toolCallId=call, value={"stdout": result, "exitCode": 0}),
    ],
    {
        "result": lambda word: _stream("tool_result", toolCallId="c9", value=word),
        "error": lambda word: _stream("error", message=word),
        "unknown role": lambda word: _stream("message", role="system", text=word),
    },
)

# ---------------------------------------------------------------- Copilot


def _copilot(kind: str, **data: object) -> Entry:
    return {"type": kind, "data": data, "id": "e1", "timestamp": stamp(1), "parentId": None}


COPILOT = Kind(
    "copilot",
    lines_at("s1/events.jsonl",
             _copilot("session.start", sessionId="s1", context={"cwd": "/home/ada/shop"})),
    lambda words: _copilot("user.message", content=words, attachments=[]),
    lambda words: _copilot("assistant.message", content=words, toolRequests=[]),
    lambda tool, args, call, result: [
        _copilot("assistant.message", content="",
                 toolRequests=[{"toolCallId": call, "name": tool, "arguments": args}]),
        _copilot("tool.execution_complete", toolCallId=call, success=True, result={"content": result}),
    ],
    {
        "result": lambda word: _copilot(
            "tool.execution_complete", toolCallId="c9", success=False, result={"content": word}
        ),
        "start": lambda word: _copilot("tool.execution_start", toolCallId="c9", arguments={"x": word}),
        "partial": lambda word: _copilot("tool.execution_partial_result", partialOutput=word),
        "transformed": lambda word: _copilot("user.message", content="", transformedContent=word),
        "attachment": lambda word: _copilot(
            "user.message", content="", attachments=[{"type": "file", "content": word}]
        ),
        "system": lambda word: _copilot("system.message", content=word),
        "notification": lambda word: _copilot("system.notification", content=word),
        "hook": lambda word: _copilot("hook.start", input={"toolResult": word}),
        "hook's end": lambda word: _copilot("hook.end", output=word),
        "skill": lambda word: _copilot("skill.invoked", content=word),
        "sub-agent": lambda word: _copilot("subagent.started", agentDescription=word),
        "notice": lambda word: _copilot("session.info", message=word),
        "another's prompt": lambda word: _copilot("user.message", content=word, source="hook-x"),
        "data of another shape": lambda word: _copilot("user.message") | {"data": word},
        "content of another shape": lambda word: _copilot("assistant.message", content=[word]),
    },
    {
        "reasoning": lambda word: _copilot("assistant.reasoning", content=word),
        "reasoning text": lambda word: _copilot("assistant.message", content="", reasoningText=word),
    },
    lambda words: _copilot("session.compaction_complete", summaryContent=words),
    lambda fields: _copilot("session.news", **fields),
)  # fmt: skip

# ---------------------------------------------------------------- Cursor


def _cursor(role: str, *blocks: Entry) -> Entry:
    return {"role": role, "message": {"content": list(blocks)}}


CURSOR = Kind(
    "cursor",
    lines_at("shop/agent-transcripts/s1/s1.jsonl"),
    lambda words: _cursor(
        "user", {"type": "text", "text": f"<user_query>\n{words}\n</user_query>"}
    ),
    lambda words: _cursor("assistant", {"type": "text", "text": words}),
    lambda tool, args, call, result: [
        _cursor("assistant", {"type": "tool_use", "name": tool, "input": args})
    ],
    {
        "result": lambda word: _cursor(
            "user", {"type": "tool_result", "tool_use_id": "t", "content": _text(word)}
        ),
        "old result": lambda word: _cursor("user", {"type": "tool-result", "content": word}),
        "context": lambda word: _cursor(
            "user",
            {
                "type": "text",
                "text": f"<attached_files>{word}</attached_files><user_query></user_query>",
            },
        ),
        "image": lambda word: _cursor("user", {"type": "image", "data": word}),
        "unknown block": lambda word: _cursor("assistant", {"type": "news", "text": word}),
        "content of another shape": lambda word: {
            "role": "user",
            "message": {"content": {"x": word}},
        },
    },
    {"thinking": lambda word: _cursor("assistant", {"type": "thinking", "thinking": word})},
    None,
    lambda fields: {"type": "news", **fields},
    session="s1",
    project=None,
)

# ---------------------------------------------------------------- Kimi


def _kimi(kind: str, **more: object) -> Entry:
    return {"type": kind, **more, "time": MS}


def _kimi_event(kind: str, **more: object) -> Entry:
    return _kimi("context.append_loop_event", event={"type": kind, **more})


def _kimi_said(sender: str, words: str, role: str = "user") -> Entry:
    message = {"role": role, "content": _text(words), "origin": {"kind": sender}}
    return _kimi("context.append_message", message=message)


KIMI = Kind(
    "kimi",
    lines_at(
        "wd/s1/agents/main/wire.jsonl",
        {"type": "metadata", "protocol_version": "1.4", "created_at": MS},
        _kimi("config.update", cwd="/home/ada/shop"),
    ),
    lambda words: _kimi("turn.prompt", input=_text(words), origin={"kind": "user"}),
    lambda words: _kimi_event("content.part", part={"type": "text", "text": words}),
    lambda tool, args, call, result: [
        _kimi_event("tool.call", toolCallId=call, name=tool, args=args),
        _kimi_event("tool.result", toolCallId=call, result={"output": result}),
    ],
    {
        "result": lambda word: _kimi_event("tool.result", toolCallId="c9", result={"output": word}),
        "copy": lambda word: _kimi_said("user", word),
        "injection": lambda word: _kimi_said("injection", word),
        "other message": lambda word: _kimi_said("news", word, "tool"),
        "system prompt": lambda word: _kimi("config.update", systemPrompt=word),
        "tools": lambda word: _kimi("llm.tools_snapshot", tools=word),
        "request": lambda word: _kimi("llm.request", prompt=word),
        "approval": lambda word: _kimi("permission.record_approval_result", action=word),
        "trigger": lambda word: _kimi("turn.prompt", input=_text(word), origin={"kind": "cron"}),
        "image": lambda word: _kimi("turn.prompt", input=[{"type": "image_url", "url": word}]),
        "unknown event": lambda word: _kimi_event("news", text=word),
        "event of another shape": lambda word: _kimi("context.append_loop_event", event=word),
        "old agent": lambda word: {"timestamp": 1.7e9, "message": {
            "type": "SubagentEvent", "payload": {"event": word}}},
    },
    {"thinking": lambda word: _kimi_event("content.part", part={"type": "think", "think": word})},
    lambda words: _kimi("context.apply_compaction", summary=words),
    lambda fields: _kimi("context.news", **fields),
    session=None,
)  # fmt: skip

# ---------------------------------------------------------------- Qwen


def _qwen(kind: str, *parts: Entry, **more: object) -> Entry:
    role = "model" if kind == "assistant" else "user"
    return {"uuid": "u1", "parentUuid": None, "sessionId": "s1", "timestamp": stamp(1), "type": kind,
            "cwd": "/home/ada/shop", "message": {"role": role, "parts": list(parts)}, **more}  # fmt: skip


def _qwen_system(subtype: str, **payload: object) -> Entry:
    made = _qwen("system", subtype=subtype, systemPayload=payload)
    del made["message"]
    return made


QWEN = Kind(
    "qwen",
    lines_at("shop/chats/s1.jsonl"),
    lambda words: _qwen("user", {"text": words}),
    lambda words: _qwen("assistant", {"text": words}),
    lambda tool, args, call, result: [
        _qwen("assistant", {"functionCall": {"id": call, "name": tool, "args": args}}),
        _qwen("tool_result",
              {"functionResponse": {"id": call, "name": tool, "response": {"output": result}}},
              toolCallResult={"callId": call, "status": "success", "resultDisplay": result}),
    ],
    {
        "result": lambda word: _qwen(
            "tool_result", {"functionResponse": {"id": "c9", "response": {"output": word}}}
        ),
        "result's text": lambda word: _qwen("tool_result", {"text": word}),
        "hook's part": lambda word: _qwen("user", {"text": f"<qwen:user-prompt-submit-context>{word}"}),
        "hook's payload": lambda word: _qwen("user", systemPayload={"hookContext": word}),
        "notification": lambda word: _qwen("user", {"text": word}, subtype="notification"),
        "telemetry": lambda word: _qwen_system("ui_telemetry", uiEvent={"function_args": word}),
        "compression": lambda word: _qwen_system("chat_compression", compressedHistory=[word]),
        "command output": lambda word: _qwen_system(
            "slash_command", rawCommand="", outputHistoryItems=[word]
        ),
        "title": lambda word: _qwen_system("custom_title", customTitle=word),
        "unknown system": lambda word: _qwen_system("news", text=word),
        "image": lambda word: _qwen("user", {"inlineData": {"data": word}}),
        "message of another shape": lambda word: _qwen("user") | {"message": word, "systemPayload": {}},
    },
    {"thinking": lambda word: _qwen("assistant", {"text": word, "thought": True})},
    None,
    lambda fields: {**_qwen("news"), "message": None, **fields},
)  # fmt: skip

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
    return _write(path, _dump({**_GEMINI_HEAD, "messages": entries}))


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
    path = _write(store / "session" / "p1" / "s1.json", _dump(
        {"id": "s1", "projectID": "p1", "directory": "/home/ada/shop", "parentID": None,
         "title": "canarytitle", "time": {"created": MS, "updated": MS}}))  # fmt: skip
    for number, (role, part, message) in enumerate(entries):
        name = f"msg_{number:04}"
        _write(store / "message" / "s1" / f"{name}.json", _dump(
            {"id": name, "sessionID": "s1", "role": role, "time": {"created": MS + number},
             **message}))  # fmt: skip
        _write(store / "part" / name / "prt_1.json", _dump(
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
    return _write(folder / "shop" / ".aider.chat.history.md", head + "".join(entries))


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
    return _write(folder / "run" / "s1.traj", _dump(
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
    path = _write(folder / "s1" / "base_state.json", _dump(state))
    shutil.rmtree(folder / "s1" / "events", ignore_errors=True)
    for number, event in enumerate(entries):
        name = f"event-{number:05}-x.json"
        _write(folder / "s1" / "events" / name, _dump({"timestamp": stamp(number), **event}))
    return path


def _event(kind: str, source: str = "agent", **more: object) -> Entry:
    return {"kind": kind, "id": "x1", "source": source, **more}


def _hands(source: str, words: str, **more: object) -> Entry:
    message = {"role": "user" if source == "user" else "assistant", "content": _text(words)}
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
        "extended": lambda word: _hands("user", "", extended_content=_text(word)),
        "sender": lambda word: _hands("user", word, sender="other"),
        "environment": lambda word: _hands("environment", word),
        "system prompt": lambda word: _event("SystemPromptEvent", system_prompt=_text(word)),
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
            "INSERT INTO messages(session_id, role, content_json, created_timestamp, metadata_json)"
            " VALUES ('s1', ?, ?, ?, ?)",
            (
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
    return _write(folder / "s1" / "ui_messages.json", _dump([task, *entries]))


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

HARNESSES = {
    "pi": PI,
    "droid": DROID,
    "droid stream": DROID_STREAM,
    "copilot": COPILOT,
    "cursor": CURSOR,
    "kimi": KIMI,
    "qwen": QWEN,
    "gemini": GEMINI,
    "gemini lines": GEMINI_LINES,
    "opencode": OPENCODE,
    "opencode database": OPENCODE_DB,
    "aider": AIDER,
    "swe-agent": SWE,
    "openhands": OPENHANDS,
    "goose": GOOSE,
    "goose lines": GOOSE_LINES,
    "cline": CLINE,
}
