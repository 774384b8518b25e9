"""Codex's own ways: arguments in strings, exit codes in words, hosted calls, old releases, sub-agents."""

import json
from pathlib import Path

import msgspec
import pytest

from memoryd.records import Brought, Called, Kind, Link, Record, Returned, Said
from memoryd.sources import codex
from memoryd.sources.objects import record as read_record
from tests.support import logs


def record(line: logs.Line, *, begun: bool = False) -> Record:
    return read_record(msgspec.json.encode(line), codex.ADAPTER, 0, begun)


def output(value: object, kind: str = "function_call_output") -> bool | None:
    [returned] = record(logs.codex(kind, call_id="c", output=value)).items
    return returned.ok


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ('{"command":["ls"]}', {"command": ["ls"]}),
        ('{"s":"\\ud83d"}', {"s": "\ufffd"}),
        ('{"cut":', '{"cut":'),
        ("plain words", "plain words"),
        ("", None),
        ({"chars": "yes\n"}, {"chars": "yes\n"}),
        (None, None),
        ("[" * 300 + "]" * 300, "[" * 300 + "]" * 300),
        ('{"n":1e999}', '{"n":1e999}'),
    ],
)
def test_arguments_are_decoded_out_of_their_string_or_kept_as_they_are(given, args):
    line = logs.codex("function_call", name="shell", call_id="c", arguments=given)
    assert record(line).items == [Called(0, "c", "shell", args)]


def test_a_patch_is_raw_text_even_if_it_is_json():
    line = logs.codex_patch('{"not": "decoded"}', "c")
    assert record(line).items == [Called(0, "c", "apply_patch", '{"not": "decoded"}')]


@pytest.mark.parametrize(
    ("value", "ok"),
    [
        (json.dumps({"output": "x", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}), True),
        (json.dumps({"output": "x", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}), False),
        (json.dumps({"output": "x" * 900, "metadata": {"exit_code": -9}}), False),
        (json.dumps({"output": 'it says "exit_code": 0', "metadata": {"exit_code": 1}}), False),
        (json.dumps({"output": '{"exit_code":0}'}), None),
        ("Exit code: 0\nWall time: 1 s\nOutput:\nfine", True),
        ("Exit code: 127\nOutput:\nExit code: 0", False),
        ("Chunk ID: ab12\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nx", True),
        ("Wall time: 0.1 seconds\nProcess exited with code 3\nOutput:\nx", False),
        ("the file says Exit code: 0", None),
        ("exec command rejected by user", False),
        ("failed in sandbox: x", False),
        ("Plan updated", None),
        ({"content": "x", "success": True}, True),
        ({"content": {"success": True}, "success": False}, False),
        ({"content": "x", "success": False}, False),
        ([{"type": "input_text", "text": "Exit code: 0"}], None),
        ("", None),
        (None, None),
    ],
)
def test_an_outcome_is_told_by_its_exit_code_and_by_nothing_else(value, ok):
    assert output(value) is ok
    assert output(value, "custom_tool_call_output") is ok


@pytest.mark.parametrize(
    ("line", "call"),
    [
        (logs.codex_search("date parser"),
         Called(0, None, "web_search_call", {"type": "search", "query": "date parser"}, hosted=True)),
        (logs.codex("image_generation_call", id="i", revised_prompt="x"),
         Called(0, None, "image_generation_call", None, hosted=True)),
        (logs.codex("tool_search_call", call_id="t", arguments={"query": "x"}),
         Called(0, "t", "tool_search_call", {"query": "x"}, hosted=True)),
        (logs.codex("local_shell_call", call_id="l", action={"command": ["ls"]}),
         Called(0, "l", "local_shell", {"command": ["ls"]})),
    ],
)  # fmt: skip
def test_calls_under_the_logs_own_name(line, call):
    assert record(line).items == [call]


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ({"type": "event_msg", "payload": {"type": "user_message", "message": "x"}},
         [Brought(0, "event:user_message")]),
        ({"type": "event_msg", "payload": {}}, [Brought(0, "event:nameless")]),
        ({"type": "turn_context", "payload": {"cwd": "/w"}}, [Brought(0, "preamble")]),
        ({"type": "compacted", "payload": {"message": "so far"}},
         [Said(0, Kind.SUMMARY, "so far"), Brought(0, "compaction")]),
        (logs.codex("compaction", encrypted_content="x"), [Brought(0, "compaction")]),
        (logs.codex("reasoning", summary=[]), []),
        (logs.codex("ghost_snapshot", ghost_commit={"id": "x"}), []),
        (logs.codex("message", role="user", content="bare words"), [Said(0, Kind.OWNER, "bare words")]),
        (logs.codex("message", role="user"), []),
        (logs.codex("message", role="developer", content="x"), [Brought(0, "preamble")]),
        (logs.codex("message", role="tool", content="x"), [Brought(0, "record:tool")]),
        (logs.codex("message", role="user", content=[{"type": "input_file"}]), [Brought(0, "block:document")]),
        ({"type": "response_item", "payload": {"role": "user", "content": [{"type": "input_text", "text": "x"}]}},
         [Said(0, Kind.OWNER, "x")]),
        ({"type": "response_item", "payload": {"count": 1}}, []),
    ],
)  # fmt: skip
def test_other_records(line, items):
    assert record(line).items == items


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ({"id": "c0", "timestamp": "2025-06-01T00:00:00Z", "instructions": "x", "git": {}}, []),
        ({"record_type": "state"}, []),
        ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
         [Said(0, Kind.ASSISTANT, "x")]),
        ({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
         [Called(0, "c", "shell", {})]),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, [Returned(0, "c")]),
        ({"timestamp": "2025-06-01T00:00:00Z", "role": "user", "content": "x"}, [Said(0, Kind.OWNER, "x")]),
        ({"created_at": "2025-06-01T00:00:00Z", "role": "user", "message": "x"}, [Said(0, Kind.OWNER, "x")]),
        ({"type": "tool_call", "function": {"name": "git"}, "arguments": "status"},
         [Called(0, None, "git", "status")]),
        ({"type": "tool_result", "name": "git", "result": {"exitCode": 1}}, [Returned(0, None, "git", False)]),
        ({"type": "error", "text": "x"}, [Brought(0, "event:error")]),
        ({"role": "system", "content": "a result of another program"}, [Brought(0, "record:nameless")]),
    ],
)  # fmt: skip
def test_the_bare_records_of_old_releases(line, items):
    assert record(line).items == items


def test_an_old_first_line_tells_the_session():
    assert record({"id": "c0", "instructions": None, "git": {}}).about.session == "c0"


@pytest.mark.parametrize(
    ("more", "link"),
    [
        ({}, None),
        ({"source": "vscode"}, None),
        ({"forked_from_id": "c0"}, Link("fork", session="c0")),
        ({"parent_thread_id": "c0"}, Link("subagent", session="c0")),
        ({"source": {"subagent": "review"}}, Link("subagent")),
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "c0", "depth": 1}}}},
         Link("subagent", session="c0")),
        ({"forked_from_id": "c9", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "c0"}}}},
         Link("subagent", session="c0")),
    ],
)  # fmt: skip
def test_the_meta_line_tells_where_a_log_comes_from(more, link):
    assert record(logs.codex_meta(**more)).about.link == link


def test_in_a_sub_agents_log_the_user_is_the_agent_that_started_it():
    assert record(logs.codex_user("x"), begun=True).items == [Said(0, Kind.ASSISTANT, "x")]


def test_a_sub_agents_log_stays_one_across_stops(tmp_path):
    from memoryd.sources.lines import Position, read

    log = tmp_path / "rollout.jsonl"
    lines = [
        logs.codex_meta(source={"subagent": "review"}),
        logs.codex_user("a"),
        logs.codex_user("b"),
    ]
    position, said = Position(), []
    for count in range(1, 4):
        logs.write(log, *lines[:count])
        with log.open("rb") as file:
            for batch in read(file, position, codex.ADAPTER):
                position = batch.position
                said += [
                    item.kind for r in batch.records for item in r.items if isinstance(item, Said)
                ]
    assert said == [Kind.ASSISTANT, Kind.ASSISTANT]


def test_the_configured_folder_is_used(tmp_path):
    assert codex.find(Path("/s"), {"CODEX_HOME": str(tmp_path)}) == [
        tmp_path / "sessions",
        tmp_path / "archived_sessions",
    ]
    assert codex.find(Path("/s"), {}) == []


@pytest.mark.parametrize(
    "line",
    [
        {"role": "system", "content": "gptme", "timestamp": "2026-06-13T10:00:00.000000"},
        {"role": "user", "content": "gptme", "timestamp": "2026-06-13T10:00:00.000000"},
        {"role": "user", "content": "vibe", "message_id": "m"},
        {"role": "user", "message": {"content": []}},
        {"type": "message", "role": "user", "text": "droid", "timestamp": 1},
        {"type": "user", "message": {"content": "x"}},
    ],
)
def test_formats_that_look_alike_are_not_claimed(line):
    assert codex.claims(line) is False
