"""Real logs: what is read of them agrees with an independent walk of their JSON, and nothing else is read.

The walk knows neither adapters nor typed decoding: it goes through plain objects and has, of who spoke, only
the short lists below.
"""

import json
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memoryd.index.writer import opened
from memoryd.records import Called, Item, Record, Returned, Said, Unreadable, values
from memoryd.sources import ADAPTERS, base, discover
from memoryd.sources.lines import Position, read
from tests.contract.walks import NO_SAMPLES, Walked, blocks, objects, strings
from tests.contract.walks import WALKS as LATER

CUT = "claude/kenn-io+agentsview/internal/parser/testdata/claude/truncated.jsonl"
NO_OBJECTS = "claude/daaain+claude-code-log/test/test_data/edge_cases.jsonl"
NO_JSON = "pi/kenn-io+agentsview/internal/parser/testdata/pi/session.jsonl"
UNREADABLE = {CUT: 1, NO_OBJECTS: 3, NO_JSON: 1}
"""A record cut in its middle; lines that are `"massive error"`, `42` and `[1]`; a line of plain words."""

HARNESS_SAYS = (
    "<command-name>", "<command-message>", "<local-command-", "<task-notification>", "<bash-stdout>",
    "<bash-stderr>", "Caveat: The messages below", "[Request interrupted by user",
)  # fmt: skip
CODEX_SAYS = (
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<turn_aborted>",
)
RUN = 12
"""Words in a row that do not repeat by accident."""


def walk_claude(path: Path) -> Walked:
    walked = Walked([], [], [], [], 0, [])
    results = 0
    for line in objects(path):
        message = line.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if line.get("type") == "attachment" and line["attachment"]["type"] == "queued_command":
            content = line["attachment"]["prompt"]
        elif line.get("type") not in ("user", "assistant"):
            walked.outside.extend(
                strings([line.get("data"), line.get("attachment"), line.get("result")])
            )
        walked.outside.extend(strings(line.get("toolUseResult")))
        if line.get("type") == "tool_use":
            walked.tools.append(line["name"])
            walked.arguments.extend(strings(line["input"]))
        elif line.get("type") == "tool_result":
            results += 1
            walked.outside.append(line["output"])
        for block in blocks(content):
            kind, words = block.get("type"), block.get("text", "")
            if kind == "tool_use":
                walked.tools.append(block["name"])
                walked.arguments.extend(strings(block["input"]))
            elif kind == "tool_result":
                results += 1
                walked.outside.extend(strings(block.get("content")))
            elif kind != "text":
                walked.outside.extend(strings(block))
            elif line["type"] == "assistant":
                walked.assistant.append(words)
            else:
                _claude_words(line, words, walked)
    return walked._replace(results=results)


def _claude_words(line: dict[str, Any], words: str, walked: Walked) -> None:
    origin = line.get("origin")
    theirs = isinstance(origin, dict) and origin.get("kind") == "task-notification"
    if line.get("isMeta") or line.get("isCompactSummary") or theirs:
        return
    if args := re.search(r"<command-args>(.+?)</command-args>", words, re.DOTALL):
        words = args[1]
    elif words.lstrip().startswith(HARNESS_SAYS):
        walked.outside.append(words)
        return
    words = re.sub(r"<ide_(\w+)>.*?</ide_\1>", "", words, flags=re.DOTALL)
    (walked.assistant if line.get("isSidechain") else walked.owner).append(words)


def walk_codex(path: Path) -> Walked:
    walked = Walked([], [], [], [], 0, [])
    results = 0
    by_an_agent = False
    for line in objects(path):
        item = line.get("payload") or line
        kind = item.get("type")
        by_an_agent = by_an_agent or "subagent" in str(item.get("source"))
        if "payload" in line and line["type"] != "response_item":
            if kind != "user_message":  # a copy of what the owner said
                walked.outside.extend(strings(item) if kind != "agent_message" else [])
        elif kind in ("function_call", "custom_tool_call", "tool_call"):
            walked.tools.append(item.get("name") or item["function"]["name"])
            given = item.get("arguments", item.get("input"))
            with suppress(TypeError, ValueError):
                given = json.loads(given)
            walked.arguments.extend(strings(given))
        elif kind in (
            "function_call_output",
            "custom_tool_call_output",
            "tool_result",
            "function_result",
        ):
            results += 1
            walked.outside.extend(strings([item.get("output"), item.get("result")]))
        elif "role" in item:
            for block in blocks(item.get("content", item.get("message"))):
                prompt = by_an_agent and not block["text"].startswith(CODEX_SAYS)
                role = "assistant" if prompt and item["role"] == "user" else item["role"]
                _codex_words(role, block["text"], walked)
        else:
            walked.outside.extend(strings(item))
    return walked._replace(results=results)


def _codex_words(role: str, words: str, walked: Walked) -> None:
    if role == "assistant":
        walked.assistant.append(words)
    elif role != "user" or words.startswith(CODEX_SAYS):
        walked.outside.append(words)
    elif words.startswith("# Context from my IDE setup:"):
        walked.owner.append(words.split("## My request for Codex:", 1)[1])
    else:
        walked.owner.append(words)


WALKS = {"claude-code": walk_claude, "codex": walk_codex, **LATER}
OTHERS_FORM = {"iflow": "claude-code", "traex": "codex", "openclaw": "pi"}
"""Harnesses whose logs are another's under another name."""

NOT_READ = {
    "antigravity": "its own form of steps, without a public description",
    "cursor": "`test-store.db`: blobs without a public description",
    "gptme": "not one of the harnesses that are read",
    "grok": "not one of the harnesses that are read",
    "grok-build": "not one of the harnesses that are read",
    "hermes": "not one of the harnesses that are read",
    "kimi": "`state.json` beside its logs: titles, no conversation",
    "kiro_sqlite": "not one of the harnesses that are read",
    "omnigent": "not one of the harnesses that are read",
    "posit-assistant": "not one of the harnesses that are read",
    "qwenpaw": "not one of the harnesses that are read",
    "vibe": "not one of the harnesses that are read",
}
"""Folders of files that are found and not read, with the reason."""


@cache
def logs_of(sessions: Path) -> list[discover.LogFile]:
    return discover.logs([base.Root("auto", sessions)])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each real log a test of its own, where there are any."""
    if "real" in metafunc.fixturenames:
        import os

        named = os.environ.get("MEMORYD_CORPUS")
        sessions = Path(named) / "sessions" if named else None
        found = logs_of(sessions) if sessions is not None and sessions.is_dir() else [None]
        metafunc.parametrize("real", found, ids=lambda log: log.log[-70:] if log else "no corpus")


@pytest.fixture
def records(corpus, real) -> list[Record]:
    with opened(real) as (handle, _):
        batches = list(read(handle, Position(), real.adapter, log=real.log))
    return [record for batch in batches for record in batch.records]


@pytest.fixture
def walked(corpus, real) -> Walked:
    return WALKS[real.adapter.id](real.path)


def said(records: list[Record], kind: str) -> list[str]:
    return [
        item.text
        for record in records
        for item in record.items
        if isinstance(item, Said) and item.kind.word == kind
    ]


def heard(words: list[str]) -> list[str]:
    return [text.strip() for text in words if text.strip()]


def test_every_real_log_is_recognised_by_its_content(corpus):
    found = Counter(log.adapter.id for log in logs_of(corpus / "sessions"))
    files = {
        name: len(list((corpus / "sessions" / name).rglob("*.jsonl")))
        for name in ("claude", "codex", "_series", "pi", "openclaw", "droid", "copilot", "cursor",
                     "kimi", "qwen")
    }  # fmt: skip
    assert found == {
        "claude-code": files["claude"] + files["_series"] + 1,
        "codex": files["codex"] + 1,
        "pi": files["pi"] + files["openclaw"],
        **{name: files[name] for name in ("droid", "copilot", "cursor", "kimi", "qwen")},
        "gemini": 9, "opencode": 3, "aider": 1, "swe-agent": 13,
    }  # fmt: skip


def test_every_file_is_read_or_a_part_of_what_is_or_named_with_the_reason(corpus):
    """One file is empty; one is a text that only says where it came from, and one is a README."""
    sessions = corpus / "sessions"
    found = discover.discover([base.Root("auto", sessions)])
    folder = {log.log.split("/")[0]: log.adapter.id for log in found.logs}
    folder = {OTHERS_FORM.get(name, name): kind for name, kind in folder.items()}
    assert folder == {
        "claude": "claude-code", "_series": "claude-code", "claude-code": "claude-code",
        **{name: name for name in WALKS if name != "claude-code"},
    }  # fmt: skip
    assert [path.parent.name for path in found.undecided] == ["session_empty"]
    assert {skipped.reason for skipped in found.skipped} == {"no format that is known"}
    named = {skipped.path.relative_to(sessions).parts[0] for skipped in found.skipped}
    assert named == set(NOT_READ)
    told = {log.path for log in found.logs} | {one.path for one in found.skipped}
    told |= set(found.undecided)
    rest = [path for path in sessions.rglob("*") if path.is_file() and path not in told]
    assert {path.relative_to(sessions).as_posix().rpartition("/")[2] for path in rest
            if "opencode" not in path.parts} == {"README.md", "small.md"}  # fmt: skip
    assert all({"message", "part"} & set(path.parts) for path in rest if "opencode" in path.parts)


def test_no_line_is_unreadable_but_the_ones_known_to_be(real, records):
    broken = [item for record in records for item in record.items if isinstance(item, Unreadable)]
    assert len(broken) == UNREADABLE.get(real.log, 0)


def test_who_spoke_and_what_was_said_agree_with_a_plain_walk(records, walked):
    assert [text.strip() for text in said(records, "owner")] == heard(walked.owner)
    assert [text.strip() for text in said(records, "assistant")] == heard(walked.assistant)


def test_calls_and_results_agree_with_a_plain_walk(real, records, walked):
    calls = [item for record in records for item in record.items if isinstance(item, Called)]
    results = [item for record in records for item in record.items if isinstance(item, Returned)]
    assert [call.tool for call in calls] == walked.tools
    # Results whose messages are not as they should be.
    malformed = 2 if real.log == NO_OBJECTS else 0
    assert len(results) == walked.results + malformed


def test_no_run_of_words_that_stands_only_outside_is_read(records, walked):
    outside = runs(walked.outside) - runs([*walked.owner, *walked.assistant, *walked.arguments])
    emitted = [text for record in records for item in record.items for text in emits(item)]
    assert not runs(emitted) & outside


def emits(item: Item) -> list[str]:
    """Texts of one item; two arguments side by side may read like a file that holds them so."""
    if isinstance(item, Called):
        return [item.tool, *values(item.args)]
    return [item.text] if isinstance(item, Said) else []


def runs(texts: list[str]) -> set[tuple[str, ...]]:
    found = set()
    for text in texts:
        words = re.findall(r"\w+", text)
        found.update(zip(*(words[at:] for at in range(RUN)), strict=False))
    return found


def test_the_adapters_under_test_are_all_there_are():
    assert set(ADAPTERS) == {*WALKS, *NO_SAMPLES, "native"}
