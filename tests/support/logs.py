"""Small session logs in the three first formats, built record by record.

In: words, tool names, arguments. Out: records (plain dicts, one JSON object a line) and files of them.
A record says only what its test is about; ids, parents and times are filled in by `dated`, a second
apart, so that the same calls give the same bytes.

::

    path = write(home / "sessions" / "a.jsonl", native_session("a"), native_owner("hello"))
    write(folder / "s1.jsonl", *dated(claude_user("hello"), claude_call("Bash", {"command": "ls"}, "t1"),
                                      claude_result("t1", "a.py")))
"""

import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Line = dict[str, Any]

START_MS = 1_767_323_045_000
"""2026-01-02T03:04:05Z: when every built session starts."""


def stamp(second: int) -> str:
    """Return the time `second` seconds after the start, as RFC 3339 with milliseconds."""
    hours, rest = divmod(3 * 3600 + 4 * 60 + 5 + second, 3600)
    days, hours = divmod(hours, 24)
    return f"2026-01-{2 + days:02}T{hours:02}:{rest // 60:02}:{rest % 60:02}.000Z"


def encoded(*records: Line | bytes) -> bytes:
    """Return the records as JSON lines; bytes go in as they are, for lines that are no JSON."""
    return b"".join(
        record + b"\n"
        if isinstance(record, bytes)
        else json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for record in records
    )


def write(path: Path, *records: Line | bytes) -> Path:
    """Write a whole log, making its folders, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(encoded(*records))
    path.chmod(0o600)
    return path


def append(path: Path, *records: Line | bytes) -> Path:
    """Append records to a log that is there, and return its path."""
    with path.open("ab") as file:
        file.write(encoded(*records))
    return path


def dated(*records: Line | bytes, start: int = 0) -> list[Line | bytes]:
    """Return the records with what a harness would add where it is missing.

    Claude Code: `uuid`, `parentUuid`, `timestamp`; Codex: `timestamp`; native: `ts`. A second apart from
    `start`. A record that names one of these itself keeps it.
    """
    parent: str | None = None
    filled: list[Line | bytes] = []
    for number, record in enumerate(records, start):
        if isinstance(record, bytes):
            filled.append(record)
        elif "kind" in record:
            filled.append({"ts": stamp(number), **record})
        elif "payload" in record:
            filled.append({"timestamp": stamp(number), **record})
        elif "sessionId" in record:
            said = json.dumps(record, sort_keys=True)
            own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number} {said}"))
            filled.append({"uuid": own, "parentUuid": parent, "timestamp": stamp(number), **record})
            parent = own
        else:
            filled.append(record)
    return filled


# ---------------------------------------------------------------- native


def native_session(session: str, project: str = "/home/ada/shop", **more: object) -> Line:
    """Return the first line of a native log."""
    return {"kind": "session", "session": session, "project": project, "agent": "loop", **more}


def native_owner(text: str, **more: object) -> Line:
    """Return the owner's words."""
    return {"kind": "owner", "text": text, **more}


def native_assistant(text: str, **more: object) -> Line:
    """Return the assistant's words."""
    return {"kind": "assistant", "text": text, **more}


def native_summary(text: str, **more: object) -> Line:
    """Return a compaction's summary."""
    return {"kind": "summary", "text": text, **more}


def native_call(tool: str, args: object, call: str, **more: object) -> Line:
    """Return a tool call."""
    return {"kind": "tool_call", "call": call, "tool": tool, "args": args, **more}


def native_result(
    call: str, text: str, cls: object = "internal", untrusted: object = False, **more: object
) -> Line:
    """Return a tool's result with its explicit label."""
    made = {"kind": "tool_result", "call": call, "ok": True, "class": cls, "untrusted": untrusted}
    return {**made, "text": text, **more}


def native_block(cls: object = "internal", untrusted: object = False, **more: object) -> Line:
    """Return the record of a memory block that the loop put into its prompt."""
    return {"kind": "memory_block", "class": cls, "untrusted": untrusted, **more}


# ---------------------------------------------------------------- Claude Code


def claude(kind: str, content: object, **more: object) -> Line:
    """Return a Claude Code record of type `kind` with `content` as its message's."""
    made: Line = {
        "type": kind,
        "sessionId": "s1",
        "cwd": "/home/ada/shop",
        "version": "2.1.0",
        "isSidechain": False,
        "userType": "external",
        "message": {"role": kind, "content": content},
    }
    if kind == "assistant":
        made["message"] |= {"id": "msg_1", "model": "invented-1", "stop_reason": None}
    return made | more


def claude_user(text: str, **more: object) -> Line:
    """Return the owner's words."""
    return claude("user", text, **more)


def claude_assistant(text: str, **more: object) -> Line:
    """Return the assistant's words."""
    return claude("assistant", [{"type": "text", "text": text}], **more)


def claude_thinking(text: str, **more: object) -> Line:
    """Return a thinking block, which is never a row."""
    return claude("assistant", [{"type": "thinking", "thinking": text, "signature": "x"}], **more)


def claude_call(tool: str, args: object, call: str, **more: object) -> Line:
    """Return a tool call."""
    block = {"type": "tool_use", "id": call, "name": tool, "input": args}
    return claude("assistant", [block], **more)


def claude_result(call: str, text: str, is_error: bool | None = None, **more: object) -> Line:
    """Return a tool's result, with its copy in `toolUseResult` as the harness writes it."""
    block: Line = {"type": "tool_result", "tool_use_id": call, "content": text}
    if is_error is not None:
        block["is_error"] = is_error
    return claude("user", [block], toolUseResult={"stdout": text, "stderr": ""}, **more)


def claude_attachment(kind: str, content: str, **more: object) -> Line:
    """Return an attachment, whose `content` is outside text."""
    made = claude("attachment", "", **more)
    del made["message"]
    return made | {"attachment": {"type": kind, "content": content}}


def claude_summary(text: str, **more: object) -> Line:
    """Return a compaction's summary, which the harness writes as a `user` record."""
    return claude_user(text, isCompactSummary=True, isVisibleInTranscriptOnly=True, **more)


# ---------------------------------------------------------------- Codex


def codex(kind: str, **payload: object) -> Line:
    """Return a Codex response item of type `kind`."""
    return {"type": "response_item", "payload": {"type": kind, **payload}}


def codex_meta(session: str = "c1", cwd: str = "/home/ada/shop", **more: object) -> Line:
    """Return the first line of a rollout."""
    about = {"id": session, "cwd": cwd, "originator": "codex_cli_rs", "cli_version": "0.94.0"}
    return {"type": "session_meta", "payload": {**about, "source": "cli", **more}}


def codex_user(text: str) -> Line:
    """Return the owner's words."""
    return codex("message", role="user", content=[{"type": "input_text", "text": text}])


def codex_assistant(text: str) -> Line:
    """Return the assistant's words."""
    return codex("message", role="assistant", content=[{"type": "output_text", "text": text}])


def codex_call(tool: str, args: object, call: str) -> Line:
    """Return a function call, whose arguments are JSON in a string."""
    return codex("function_call", name=tool, arguments=json.dumps(args), call_id=call)


def codex_patch(patch: str, call: str) -> Line:
    """Return an `apply_patch` call, whose input is raw text."""
    return codex("custom_tool_call", name="apply_patch", input=patch, call_id=call)


def codex_result(call: str, text: str, exit_code: int = 0) -> Line:
    """Return the output of a function call, in the JSON form."""
    output = json.dumps({"output": text, "metadata": {"exit_code": exit_code}})
    return codex("function_call_output", call_id=call, output=output)


def codex_search(query: str) -> Line:
    """Return a hosted web search, which no result record follows."""
    return codex("web_search_call", status="completed", action={"type": "search", "query": query})


# ---------------------------------------------------------------- where harnesses keep them


def claude_path(home: Path, session: str = "s1", cwd: str = "/home/ada/shop") -> Path:
    """Return where Claude Code keeps the log of `session` in `cwd`."""
    folder = "".join(char if char.isalnum() or char == "-" else "-" for char in cwd)
    return home / ".claude" / "projects" / folder / f"{session}.jsonl"


def codex_path(home: Path, session: str = "c1") -> Path:
    """Return where Codex keeps the rollout of `session`."""
    name = f"rollout-2026-01-02T03-04-05-{session}.jsonl"
    return home / ".codex" / "sessions" / "2026" / "01" / "02" / name


def words(records: Iterable[Line | bytes]) -> str:
    """Return the whole text of the records, for searches of planted words."""
    return encoded(*records).decode("utf-8", "replace")
