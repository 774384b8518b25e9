"""Recordings give the same row twice, and the row that is expected of them."""

import json
from pathlib import Path

import pytest

from memoryd import replay
from memoryd.errors import BadRequest, NotFound
from tests.support.failing import FAILING
from tests.support.harnesses import HARNESSES

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


@pytest.mark.parametrize("kind", replay.KINDS)
def test_each_of_the_seven_kinds_is_taken_in_either_form(kind):
    event = {"kind": kind, "at": "2026-01-01T00:00:00+01:00", "sessionId": "s"}
    for given in ([event], {"version": 1, "name": "n", "project": "/w", "events": [event]}):
        found = replay.transcript(json.dumps(given).encode(), "x")
        assert [one.kind for one in found.events] == [kind]
        assert replay.play(found).lessons == 0
    assert len(replay.KINDS) == 7


@pytest.mark.parametrize(
    "given", [{"version": 2, "events": [{}]}, {"events": []}, [], 7, "x", {"name": "n"}]
)
def test_what_is_no_transcript_is_refused(given):
    with pytest.raises(BadRequest):
        replay.transcript(json.dumps(given).encode(), "x")


def test_a_folder_may_hold_other_files_and_a_named_one_may_not(tmp_path):
    (tmp_path / "a.json").write_bytes((FIXTURES / "mended.json").read_bytes())
    other = tmp_path / "notes.jsonl"
    other.write_text('{"hello": 1}\n', "utf-8")
    skipped = []
    rows = replay.every([tmp_path], tmp_path, skipped=skipped)
    assert ([row.transcript for row in rows], skipped) == (["mended"], [other])
    with pytest.raises(BadRequest):
        replay.every([other], tmp_path)


@pytest.mark.parametrize("name", FAILING)
def test_a_session_of_any_harness_is_a_recording_alone_and_in_a_folder(name, tmp_path):
    kind, folder = HARNESSES[name], tmp_path / "logs"
    said = "src/a.ts(3,5): error TS2304: Cannot find name 'foo'."
    path = kind.put(folder, [kind.owner("hello"), *FAILING[name]("make app", said)])
    for named in (path, folder):
        assert [row.lessons for row in replay.every([named], tmp_path)] == [1]


def test_a_file_that_is_not_there_is_no_recording(tmp_path):
    for name in ("a.json", "a.traj"):
        with pytest.raises(NotFound):
            replay.every([tmp_path / name], tmp_path)


def test_real_logs_replayed_twice_give_the_same_bytes(corpus, tmp_path):
    folder = next((corpus / "sessions" / "codex").glob("Python*"))
    rows = replay.every([folder], tmp_path)
    assert replay.as_json(rows) == replay.as_json(replay.every([folder], tmp_path))
    assert sum(row.lessons for row in rows) > 5


@pytest.mark.slow
def test_every_real_log_replayed_twice_gives_the_same_bytes(corpus, tmp_path):
    rows = replay.every([corpus / "sessions"], tmp_path)
    assert replay.as_json(rows) == replay.as_json(replay.every([corpus / "sessions"], tmp_path))
    assert len(rows) > 120
