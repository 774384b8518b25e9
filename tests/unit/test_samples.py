"""The invented sessions are small and well formed, and hide puddings only where none may be found."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.samples import LOGS, PUDDINGS, SESSIONS

BLOCKS_SPOKEN = {"text", "tool_use"}


def spoken(record: dict[str, Any]) -> str:
    """Return what owner, assistant, calls and summaries say in a record, by plain walking."""
    if record.get("kind") in {"owner", "assistant", "summary", "tool_call"}:
        return json.dumps(record)
    message = record.get("message") or {}
    content = message.get("content", [])
    if isinstance(content, str):
        return content
    kept = [block for block in content if block["type"] in BLOCKS_SPOKEN]
    payload = record.get("payload") or {}
    if payload.get("type") in {"message", "function_call", "custom_tool_call", "web_search_call"}:
        kept.append(payload)
    return json.dumps(kept)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_there_are_sessions_of_three_formats():
    assert {path.relative_to(SESSIONS).parts[0] for path in LOGS} == {"claude", "codex", "native"}


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_sample_can_be_read_in_one_sitting(path: Path):
    assert 15 <= len(records(path)) <= 40


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_sample_hides_a_pudding_and_nobody_speaks_of_it(path: Path):
    text = path.read_text("utf-8").lower()
    assert any(pudding in text for pudding in PUDDINGS)
    said = " ".join(map(spoken, records(path))).lower()
    assert [pudding for pudding in PUDDINGS if pudding in said] == []


def test_every_pudding_is_hidden_somewhere():
    text = "".join(path.read_text("utf-8") for path in LOGS).lower()
    assert [pudding for pudding in PUDDINGS if pudding not in text] == []
