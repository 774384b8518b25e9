"""Must hold 2 and 8: what only results (or only records above `max_class`) hold is in no byte of the state.

A real daemon reads the logs, is asked, rebuilds, is asked again; then every file it wrote is searched.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd import db
from memoryd.client import Client
from memoryd.lessons import store
from memoryd.lessons.failure import MOST_BYTES, shell_like
from tests.support.daemon import Daemon
from tests.support.logs import write

RUN = 12
WORD = re.compile(r"\w+")

CLAUDE = [
    {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s",
        "cwd": "/w",
        "message": {"role": "user", "content": "canwords owner"},
    },
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "canarythinking1", "signature": "canarysignature"},
                {"type": "redacted_thinking", "data": "canaryredacted"},
                {"type": "text", "text": "canwords reply"},
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "Bash",
                    "input": {"command": "export API_KEY=sk-ant-canarysecretargument1234567890"},
                },
            ],
        },
    },
    {
        "type": "user",
        "uuid": "u3",
        "parentUuid": "u2",
        "toolUseResult": {"stdout": "canarystdout"},
        "message": {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "canaryresultblock"}],
                }
            ],
        },
    },
    {
        "type": "user",
        "uuid": "u4",
        "toolUseResult": "canaryresultstring",
        "message": {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": "canaryresulttext",
                    "is_error": True,
                }
            ],
        },
    },
    {
        "type": "progress",
        "uuid": "u5",
        "data": {"type": "bash_progress", "output": "canaryprogress"},
    },
    {
        "type": "progress",
        "uuid": "u6",
        "data": {
            "type": "agent_progress",
            "message": {"content": [{"type": "text", "text": "canaryagent"}]},
        },
    },
    {
        "type": "attachment",
        "uuid": "u7",
        "attachment": {"type": "file", "filename": "a", "content": "canaryattachment"},
    },
    {
        "type": "attachment",
        "uuid": "u8",
        "attachment": {"type": "hook_success", "content": "canaryhook"},
    },
    {
        "type": "system",
        "uuid": "u9",
        "subtype": "local_command",
        "content": "<local-command-stdout>canarylocal</local-command-stdout>",
    },
    {"type": "system", "uuid": "u10", "subtype": "informational", "content": "canarysystem"},
    {
        "type": "user",
        "uuid": "u11",
        "isMeta": True,
        "message": {"role": "user", "content": "canarymeta"},
    },
    {
        "type": "user",
        "uuid": "u12",
        "message": {"role": "user", "content": "<bash-stdout>canarybash</bash-stdout>"},
    },
    {
        "type": "assistant",
        "uuid": "u13",
        "message": {
            "role": "assistant",
            "content": [
                {
                    "type": "server_tool_use",
                    "id": "w1",
                    "name": "web_search",
                    "input": {"query": "canwords hosted"},
                },
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "w1",
                    "content": [{"title": "canaryweb"}],
                },
            ],
        },
    },
    {"type": "brand-new-kind", "text": "canaryunknown"},
    "canarygarbage {",
]
CODEX = [
    {
        "type": "session_meta",
        "payload": {
            "id": "c",
            "cwd": "/w",
            "instructions": "canaryinstructions",
            "base_instructions": {"text": "canarybase"},
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "canarydeveloper"}],
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [
                {
                    "type": "input_text",
                    "text": "<environment_context>canaryenvironment</environment_context>",
                }
            ],
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "canwords codexowner"}],
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "canaryreasoning"}],
            "encrypted_content": "canaryencrypted",
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "shell",
            "arguments": '{"command":["canwords","codexcall"]}',
            "call_id": "k",
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "function_call_output",
            "call_id": "k",
            "output": '{"output":"canaryoutput","metadata":{"exit_code":1}}',
        },
    },
    {"type": "event_msg", "payload": {"type": "exec_command_end", "stdout": "canaryexec"}},
    {"type": "event_msg", "payload": {"type": "agent_reasoning", "text": "canaryeventreasoning"}},
    {"type": "turn_context", "payload": {"cwd": "/w", "user_instructions": "canaryturn"}},
]
NATIVE = [
    {"kind": "owner", "text": "canwords native"},
    {
        "kind": "tool_call",
        "call": "1",
        "tool": "Read",
        "args": {"path": "canwords.txt", "password": "canarypassword"},
    },
    {
        "kind": "tool_result",
        "call": "1",
        "ok": True,
        "class": "internal",
        "untrusted": False,
        "text": "canarynative",
    },
    {"kind": "memory_block", "class": "internal", "untrusted": False, "text": "canaryblock"},
    {"kind": "novelty", "text": "canarynovelty"},
]
FOUND = ("owner", "reply", "hosted", "codexowner", "codexcall", "native")


def bytes_written(state: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield every file of the state but the native logs, which are the agent's own."""
    for path in state.rglob("*"):
        if path.is_file() and "sessions" not in path.relative_to(state).parts:
            yield path, path.read_bytes()


def asked_and_rebuilt(memory: Client, *queries: str) -> None:
    memory.call("sync", deadline_ms=120_000)
    for query in queries:
        memory.call("recall", query=query, text=True)
    memory.call("reindex")
    while memory.call("status")["rebuild"].get("running"):
        memory.call("sync")


def test_no_canary_reaches_a_byte_that_is_written_v04(user_home: Path) -> None:
    logs = user_home / "logs"
    for name, lines in (("claude/s", CLAUDE), ("codex/rollout-c", CODEX)):
        write(
            logs / f"{name}.jsonl",
            *(line.encode() if isinstance(line, str) else line for line in lines),
        )
    config = f'[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n'
    config += f'[[source]]\nkind = "native"\npath = "{user_home}/state/sessions"\n'
    write(user_home / "state" / "sessions" / "n.jsonl", *NATIVE)
    with Daemon(user_home, config) as daemon:
        daemon.start()
        with daemon.client() as memory:
            asked_and_rebuilt(memory, "canwords", "canaryresulttext")
            found = {
                word
                for word in FOUND
                if memory.call("recall", query=f"canwords {word}", mode="all")["hits"]
            }
            assert found == set(FOUND)
        leaks = {
            (path.name, word.decode())
            for path, content in bytes_written(daemon.state)
            for word in re.findall(rb"canary\w+", content)
        }
        kept = {leak for leak in leaks if leak[0].startswith("lessons.sqlite3")}
        assert leaks - kept == set()
        # The one thing that is kept of a result: the first error line of a shell's failed call.
        assert all(word.startswith("canaryoutput") for _, word in kept)
        assert "canary" not in daemon.log.read_text()


def test_words_only_above_max_class_are_in_no_byte_that_is_written(user_home: Path) -> None:
    write(
        user_home / "state" / "sessions" / "high.jsonl",
        {"kind": "owner", "text": "lowword before"},
        {"kind": "tool_call", "call": "1", "tool": "Read", "args": {"path": "lowcall"}},
        {
            "kind": "tool_result",
            "call": "1",
            "class": "secret",
            "untrusted": False,
            "ok": True,
            "text": "x",
        },
        {"kind": "assistant", "text": "highwordone after"},
        {"kind": "highwordkind", "text": "highwordunknown"},
        {"kind": "session", "session": "highwordsession", "project": "highwordproject"},
        {
            "kind": "tool_call",
            "call": "highwordcall",
            "tool": "highwordtool",
            "args": {"q": "highwordargument"},
        },
    )
    with Daemon(user_home, '[index]\nmax_class = "private"\n') as daemon:
        daemon.start()
        with daemon.client() as memory:
            asked_and_rebuilt(memory, "lowword")
            assert memory.call("recall", query="lowword")["hits"]
            assert not memory.call("recall", query="highwordone")["hits"]
        for path, content in bytes_written(daemon.state):
            assert b"highword" not in content, path.name


def strings(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from strings(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from strings(value)


def plain_values(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from plain_values(value)
    elif isinstance(tree, str | int | float) and not isinstance(tree, bool):
        yield str(tree)


def apart(record: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the strings of a record that may be indexed, and those of results, thinking and the like."""
    if record.get("type") == "response_item" or "payload" in record:
        payload = record.get("payload") or {}
        kind = str(payload.get("type"))
        hidden = (
            kind.endswith("_output") or kind == "reasoning" or record.get("type") == "event_msg"
        )
        copied = kind in {"user_message", "agent_message"}
        return (
            ([], list(strings(payload))) if hidden and not copied else (list(strings(payload)), [])
        )
    hidden = list(strings(record.get("toolUseResult"))) + list(strings(record.get("data")))
    hidden += list(strings(record.get("attachment")))
    seen = [
        text
        for key, value in record.items()
        if key not in {"toolUseResult", "data", "attachment", "message"}
        for text in strings(value)
    ]
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else message
    if isinstance(content, str):
        seen.append(content)
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, dict):
            continue
        target = (
            hidden
            if block.get("type") in {"tool_result", "thinking", "web_search_tool_result"}
            else seen
        )
        target += strings(block)
        if block.get("type") == "tool_use":
            # A call is indexed as its name and its values, one a line: runs go across them.
            seen.append(" ".join((str(block.get("name")), *plain_values(block.get("input")))))
    return seen, hidden


def runs(text: str) -> Iterator[str]:
    words = WORD.findall(text)
    for start in range(len(words) - RUN + 1):
        yield " ".join(words[start : start + RUN])


def first_error_lines(state: Path) -> list[str]:
    """Return what lessons keep of results: of each lesson one line of a shell's failed call."""
    connection = db.reader(state / store.NAME)
    try:
        found = list(
            connection.execute("SELECT first_line, tool FROM lesson WHERE first_line <> ''")
        )
    finally:
        connection.close()
    assert all(shell_like(tool) for _, tool in found)
    return [line for line, _ in found]


def stray(run: str, allowed: set[str]) -> bool:
    """Say whether it is eleven words that may be kept, and a byte of the file beside them that reads as a word."""
    first, *_, last = run.split()
    for byte, words in (
        (last, run.removesuffix(f" {last}")),
        (first, run.removeprefix(f"{first} ")),
    ):
        if len(byte) == 1 and any(one.startswith(words) or one.endswith(words) for one in allowed):
            return True
    return False


def test_no_run_of_twelve_words_of_a_real_result_is_written(user_home: Path, corpus: Path) -> None:
    folders = [corpus / "sessions" / name for name in ("claude", "codex")]
    allowed: set[str] = set()
    forbidden: set[str] = set()
    for path in (path for folder in folders for path in folder.rglob("*.jsonl")):
        for line in path.read_text("utf-8", "replace").split("\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if not isinstance(record, dict):
                continue
            seen, hidden = apart(record)
            allowed.update(run for text in seen for run in runs(text))
            forbidden.update(run for text in hidden for run in runs(text))
    forbidden -= allowed
    assert len(forbidden) > 50_000
    sources = "".join(f'[[source]]\npath = "{folder}"\n' for folder in folders)
    with Daemon(user_home, f'[index]\nmax_class = "secret"\n{sources}') as daemon:
        daemon.start()
        with daemon.client() as memory:
            asked_and_rebuilt(memory, "error in the test", "commit")
            assert memory.call("status")["rows"] > 1_000
            memory.call("sync", lessons=True, deadline_ms=120_000)
        written = {
            run
            for _, content in bytes_written(daemon.state)
            for run in runs(content.decode("utf-8", "replace"))
        }
        daemon.stop()
    kept = first_error_lines(user_home / "state")
    assert all(len(line.encode()) <= MOST_BYTES for line in kept)
    written -= {run for line in kept for run in runs(line)}
    leaked = sorted(run for run in forbidden & written if not stray(run, allowed))
    assert leaked[:3] == []


@pytest.mark.parametrize("text", ["result text", "thinking"])
def test_the_walk_of_this_test_tells_results_from_words(text: str) -> None:
    block = (
        {"type": "tool_result", "content": text}
        if text == "result text"
        else {"type": text, text: text}
    )
    seen, hidden = apart(
        {"type": "user", "message": {"content": [block, {"type": "text", "text": "said"}]}}
    )
    assert text in hidden
    assert "said" in seen
