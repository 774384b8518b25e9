"""Recordings give the same row twice, and the row that is expected of them."""

import json
from pathlib import Path

import pytest

from memoryd import replay
from memoryd.errors import BadRequest

FIXTURES = Path(__file__).parents[2] / "replay" / "fixtures"
EXPECTED = json.loads((FIXTURES / "expected.txt").read_text("utf-8"))


def told(row):
    return {key: getattr(row, key) for key in next(iter(EXPECTED.values()))}


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.json")), ids=lambda path: path.stem)
def test_our_recordings_give_their_rows_and_twice_the_same(path, tmp_path):
    rows = replay.every([path], tmp_path)
    assert replay.as_json(rows) == replay.as_json(replay.every([path], tmp_path))
    assert told(rows[0]) == EXPECTED[path.stem]


def test_the_corpus_recording_gives_its_expected_row(corpus, tmp_path):
    path = corpus / "replay" / "typescript-loop.json"
    expect = json.loads(path.read_text("utf-8"))["expect"]
    (row,) = replay.every([path], tmp_path)
    assert {key: getattr(row, key) for key in expect} == expect
    assert row.tokens_pre_prompt > 0


def test_an_array_of_events_is_a_transcript_too():
    event = {"kind": "session.created", "at": "2026-01-01T00:00:00Z", "sessionId": "s"}
    assert replay.transcript(json.dumps([event]).encode(), "x").name == "x"


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "session.created", "at": "2026-01-01T00:00:00", "sessionId": "s"},
        {"kind": "session.created", "at": "yesterday", "sessionId": "s"},
        {"kind": "session.created", "sessionId": "s"},
        {"kind": "session.gone", "at": "2026-01-01T00:00:00Z", "sessionId": "s"},
    ],
)
def test_a_time_without_a_zone_and_a_strange_kind_are_refused(event):
    with pytest.raises(BadRequest):
        replay.transcript(json.dumps([event]).encode(), "x")


def test_a_session_log_is_a_recording(tmp_path):
    call = {
        "type": "assistant",
        "uuid": "a",
        "sessionId": "s",
        "cwd": "/w",
        "timestamp": "2026-01-01T00:00:01Z",
        "message": {
            "content": [
                {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "make"}}
            ]
        },
    }
    back = {
        "type": "user",
        "uuid": "b",
        "sessionId": "s",
        "cwd": "/w",
        "timestamp": "2026-01-01T00:00:02Z",
        "message": {
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "is_error": True,
                    "content": "x.ts(1,1): error TS2304: Cannot find name 'y'.",
                }
            ]
        },
    }
    log = tmp_path / "s.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in (call, back)), "utf-8")
    (row,) = replay.every([log], tmp_path)
    assert row.lessons == 1
    assert replay.table([row]).splitlines()[2].startswith("s.jsonl")
