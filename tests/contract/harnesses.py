"""What the contract needs to know of each format: how its records are built, and where outside text stands.

In: words. Out: records of that format. `OUTSIDE` are the places whose words must never be read, each as a
builder of a record that holds the word there; `raises` says whether the record must raise the label.
"""

from collections.abc import Callable
from typing import NamedTuple

from memoryd.sources import ADAPTERS, Adapter
from tests.support import logs
from tests.support.logs import Line

Maker = Callable[..., Line]


class Harness(NamedTuple):
    """One format under the contract."""

    adapter: Adapter
    owner: Maker
    assistant: Maker
    summary: Maker
    call: Callable[[str, object, str], Line]
    result: Callable[[str, str], Line]
    unknown: Callable[[dict[str, object]], Line]
    outside: dict[str, Callable[[str], Line]]
    told: dict[str, str | None]
    first: Line


def _claude_blocks(*blocks: dict[str, object], kind: str = "user", **more: object) -> Line:
    return logs.claude(kind, list(blocks), **more)


def _claude_line(kind: str, **fields: object) -> Line:
    made = logs.claude(kind, "")
    del made["message"]
    return made | fields


CLAUDE_OUTSIDE: dict[str, Callable[[str], Line]] = {
    "result": lambda word: logs.claude_result("c1", word),
    "result in blocks": lambda word: _claude_blocks(
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": word}]}
    ),
    "toolUseResult": lambda word: _claude_line("user", toolUseResult={"stdout": word}),
    "toolUseResult as text": lambda word: _claude_line("user", toolUseResult=word),
    "progress": lambda word: _claude_line(
        "progress", data={"type": "bash_progress", "output": word}
    ),
    "agent progress": lambda word: _claude_line(
        "progress", data={"type": "agent_progress", "message": logs.claude_user(word)}
    ),
    "attachment": lambda word: logs.claude_attachment("file", word),
    "attachment of an unknown kind": lambda word: logs.claude_attachment("brand_new", word),
    "command output": lambda word: logs.claude_user(
        f"<local-command-stdout>{word}</local-command-stdout>"
    ),
    "shell output": lambda word: logs.claude_user(f"<bash-stdout>{word}</bash-stdout>"),
    "shell output after input": lambda word: logs.claude_user(
        f"<bash-input>ls</bash-input><bash-stdout><command-args>{word}</command-args></bash-stdout>"
    ),
    "notification": lambda word: logs.claude_user(f"<task-notification>{word}</task-notification>"),
    "queued notification": lambda word: {
        **_claude_line("attachment"),
        "attachment": {
            "type": "queued_command",
            "prompt": f"<task-notification>{word}</task-notification>",
        },
    },
    "reminder": lambda word: logs.claude_user(
        f"Fix it <system-reminder>{word}</system-reminder> now"
    ),
    "selection": lambda word: logs.claude_user(
        f"<ide_selection>The user selected the lines 1 to 2 from /w/a.py:\n{word}</ide_selection>\nWhy?"
    ),
    "meta": lambda word: logs.claude_user(word, isMeta=True),
    "hosted result": lambda word: _claude_blocks(
        {"type": "web_search_tool_result", "tool_use_id": "c1", "content": [{"title": word}]},
        kind="assistant",
    ),
    "image": lambda word: _claude_blocks({"type": "image", "source": {"data": word}}),
    "document": lambda word: _claude_blocks({"type": "document", "source": {"data": word}}),
    "unknown block": lambda word: _claude_blocks({"type": "brand_new", "content": word}),
    "hook": lambda word: _claude_line("system", subtype="stop_hook_summary", hookErrors=[word]),
    "local command": lambda word: _claude_line(
        "system",
        subtype="local_command",
        content=f"<local-command-stdout>{word}</local-command-stdout>",
    ),
    "title": lambda word: {"type": "ai-title", "sessionId": "s1", "aiTitle": word},
    "last prompt": lambda word: {"type": "last-prompt", "sessionId": "s1", "lastPrompt": word},
    "queue": lambda word: {"type": "queue-operation", "operation": "enqueue", "content": word},
    "title line": lambda word: {"type": "summary", "summary": word, "leafUuid": "u"},
    "unknown type": lambda word: _claude_line("brand_new", content=word),
    "unknown system": lambda word: _claude_line("system", subtype="brand_new", content=word),
    "text of another shape": lambda word: logs.claude("user", {"text": word}),
    "message of another shape": lambda word: {**logs.claude_user(""), "message": word},
}

CODEX_OUTSIDE: dict[str, Callable[[str], Line]] = {
    "result": lambda word: logs.codex_result("c1", word),
    "result in blocks": lambda word: logs.codex(
        "function_call_output", call_id="c1", output=[{"type": "input_text", "text": word}]
    ),
    "custom result": lambda word: logs.codex("custom_tool_call_output", call_id="c1", output=word),
    "event copy": lambda word: {
        "type": "event_msg",
        "payload": {"type": "exec_command_end", "stdout": word},
    },
    "turn context": lambda word: {"type": "turn_context", "payload": {"user_instructions": word}},
    "instructions": lambda word: logs.codex_meta(
        instructions=word, base_instructions={"text": word}
    ),
    "world": lambda word: {"type": "world_state", "payload": {"agents_md": {"text": word}}},
    "preamble": lambda word: logs.codex_user(f"<environment_context>{word}</environment_context>"),
    "agents": lambda word: logs.codex_user(f"# AGENTS.md instructions for /w\n\n{word}"),
    "developer": lambda word: logs.codex(
        "message", role="developer", content=[{"type": "input_text", "text": word}]
    ),
    "editor context": lambda word: logs.codex_user(
        f"# Context from my IDE setup:\n\n## Active file: {word}\n\n## My request for Codex:\nWhy?"
    ),
    "shell output": lambda word: logs.codex_user(
        f"<user_shell_command>\n<command>ls</command>\n<result>{word}</result>\n</user_shell_command>"
    ),
    "notification": lambda word: logs.codex_user(
        f"<subagent_notification>{word}</subagent_notification>"
    ),
    "skill": lambda word: logs.codex_user(f"<skill>{word}</skill>"),
    "image": lambda word: logs.codex(
        "message", role="user", content=[{"type": "input_image", "image_url": word}]
    ),
    "unknown part": lambda word: logs.codex(
        "message", role="user", content=[{"type": "brand_new", "text": word}]
    ),
    "compacted history": lambda word: {
        "type": "compacted",
        "payload": {"message": "", "replacement_history": [logs.codex_user(word)]},
    },
    "unknown item": lambda word: logs.codex("brand_new", content=word),
    "unknown envelope": lambda word: {"type": "brand_new", "payload": {"content": word}},
    "unknown role": lambda word: logs.codex(
        "message", role="tool", content=[{"type": "input_text", "text": word}]
    ),
    "payload of another shape": lambda word: {"type": "response_item", "payload": [word]},
    "content of another shape": lambda word: logs.codex(
        "message", role="user", content={"x": word}
    ),
    "old result": lambda word: {"type": "function_result", "name": "x", "result": word},
}

NATIVE_OUTSIDE: dict[str, Callable[[str], Line]] = {
    "result": lambda word: logs.native_result("c1", word),
    "memory block": lambda word: logs.native_block(text=word),
    "unknown kind": lambda word: {"kind": "brand_new", "content": word},
    "no kind": lambda word: {"words": word},
    "text of another shape": lambda word: logs.native_owner("") | {"text": [word]},
}

HARNESSES = {
    "native": Harness(
        ADAPTERS["native"],
        logs.native_owner,
        logs.native_assistant,
        logs.native_summary,
        logs.native_call,
        logs.native_result,
        lambda fields: {"kind": "brand_new", **fields},
        NATIVE_OUTSIDE,
        {"session": "n1", "project": "/home/ada/shop", "agent": "loop"},
        logs.native_session("n1"),
    ),
    "claude-code": Harness(
        ADAPTERS["claude-code"],
        logs.claude_user,
        logs.claude_assistant,
        logs.claude_summary,
        logs.claude_call,
        logs.claude_result,
        lambda fields: {"type": "brand_new", "sessionId": "s1", **fields},
        CLAUDE_OUTSIDE,
        {"session": "s1", "project": "/home/ada/shop", "agent": "claude-code"},
        logs.claude_user("hello"),
    ),
    "codex": Harness(
        ADAPTERS["codex"],
        logs.codex_user,
        logs.codex_assistant,
        lambda text: {"type": "compacted", "payload": {"message": text}},
        logs.codex_call,
        logs.codex_result,
        lambda fields: {"type": "brand_new", "payload": fields},
        CODEX_OUTSIDE,
        {"session": "c1", "project": "/home/ada/shop", "agent": "codex"},
        logs.codex_meta("c1"),
    ),
}
