"""On real logs, masking touches what was written out as a secret and leaves ordinary work readable."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.records import values
from memoryd.redact import find, secrets, secrets_many


def said(record: object) -> Iterator[str]:
    """Yield what people and agents wrote, and what tools were called with, by walking plain JSON."""
    if not isinstance(record, dict):
        return
    message = record.get("message")
    payload = record.get("payload", record)
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [content]
    if isinstance(payload, dict):
        blocks += [payload, *(payload.get("content") or [])]
    for block in blocks:
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict):
            yield from values([block.get(key) for key in ("text", "input", "arguments")])


@pytest.fixture(scope="module")
def texts(corpus: Path) -> list[str]:
    found: list[str] = []
    for harness in ("claude", "codex"):
        for path in sorted((corpus / "sessions" / harness).rglob("*.jsonl")):
            for line in path.read_text("utf-8", "replace").splitlines():
                try:
                    found += said(json.loads(line))
                except json.JSONDecodeError:
                    continue
    assert len(found) > 1_000
    return found


def test_hardly_a_text_of_real_work_is_touched(texts: list[str]):
    touched = [text for text in texts if find(text)]
    assert 0 < len(touched) < len(texts) / 100


def test_what_is_masked_is_written_out(texts: list[str]):
    masked = [(one.kind, text[one.start : one.end]) for text in texts for one in find(text)]
    assert Counter(kind for kind, _ in masked).keys() <= {"assignment", "userinfo", "token"}
    assert not [value for _, value in masked if any(mark in value for mark in "(){}[]$<>")]


def test_a_batch_of_real_texts_gives_what_each_gives_alone(texts: list[str]):
    assert secrets_many(texts) == [secrets(text) for text in texts]
