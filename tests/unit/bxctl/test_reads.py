"""`bxctl memory reads`: who was told what, from the read log and the one before it."""

import json
from pathlib import Path

import pytest

from memoryd.clock import parse_rfc3339
from memoryd.serve import reads
from memoryd.serve.peers import Asker, Capability, Peer
from memoryd.serve.reads import Reads

LABEL = {"class": "internal", "untrusted": True}


def asker(socket: str) -> Asker:
    allowed = Capability(socket, 1, False, frozenset(), (), "include", ("*",), frozenset({1000}))
    return Asker(Peer(77, 1000), allowed)


@pytest.fixture
def log(memoryd_home: Path) -> Path:
    memoryd_home.mkdir(mode=0o700)
    path = memoryd_home / reads.FILE
    written = Reads(path)
    written.note(asker("agent"), "recall", ["aaa", "bbb"], LABEL, sessions=["s2", "s1", "s1"])
    written.note(asker("agent"), "get", ["aaa"], LABEL, caller="2026/s9.jsonl", sessions=["s1"])
    written.note(asker("memoryd"), "dump", (), LABEL)
    written.note(asker("memoryd"), "projects", ["/p", None], LABEL)
    written.note(asker("agent"), "sessions", ["s7", "s8"], LABEL)
    written.close()
    return path


def methods(ran) -> list[str]:
    return [json.loads(line)["method"] for line in ran.out.splitlines()]


def test_every_answer_is_one_line_with_all_that_is_known(bxctl, log):
    ran = bxctl("memory", "reads", "--json")
    assert ran.code == 0
    first = json.loads(ran.out.splitlines()[0])
    assert parse_rfc3339(first.pop("time")) is not None
    assert first == {
        "format": "read",
        "version": 1,
        "socket": "agent",
        "uid": 1000,
        "pid": 77,
        "method": "recall",
        "ids": ["aaa", "bbb"],
        "label": LABEL,
        "caller": None,
        "sessions": ["s1", "s2"],
    }
    assert methods(ran) == ["recall", "get", "dump", "projects", "sessions"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["--socket", "agent"], ["recall", "get", "sessions"]),
        (["--socket", "none"], []),
        (["--session", "s1"], ["recall", "get", "dump"]),
        (["--session", "s2"], ["recall", "dump"]),
        (["--session", "s9"], ["get", "dump"]),
        (["--session", "2026/s9.jsonl"], ["get", "dump"]),
        (["--since", "2000-01-01"], ["recall", "get", "dump", "projects", "sessions"]),
        (["--since", "2099-01-01"], []),
        (["--limit", "2"], ["projects", "sessions"]),
        (["--limit", "1", "--socket", "agent"], ["sessions"]),
        (["--session", "s8"], ["dump", "sessions"]),
    ],
)
def test_filters_narrow_what_is_listed(bxctl, log, asked, found):
    ran = bxctl("memory", "reads", "--json", *asked)
    assert methods(ran) == found
    assert ran.code == (0 if found else 1)


def test_the_file_before_the_last_turn_is_read_first(bxctl, log, monkeypatch):
    monkeypatch.setattr(reads, "ROTATED_AT", 1)
    more = Reads(log)
    more.note(asker("agent"), "sessions", ["s3"], LABEL)
    more.note(asker("agent"), "sync", [], LABEL)
    more.close()
    assert sorted(path.name for path in log.parent.iterdir()) == ["reads.jsonl", "reads.jsonl.1"]
    ran = bxctl("memory", "reads", "--json")
    assert methods(ran) == ["recall", "get", "dump", "projects", "sessions", "sessions", "sync"]


def test_a_person_sees_a_table_without_control_characters(bxctl, log):
    written = Reads(log)
    written.note(asker("agent"), "get", ["x"], LABEL, caller="\x1b[2Jevil", sessions=["s\x1b"])
    written.close()
    ran = bxctl("memory", "reads")
    assert "2 told" in ran.out
    assert "of s1, s2" in ran.out
    assert "a page of everything" in ran.out
    assert "\x1b" not in ran.out


def test_a_line_that_cannot_be_read_is_counted_and_stops_nothing(bxctl, log):
    with log.open("ab") as file:
        file.write(b'{"time": "cut\n')
    ran = bxctl("memory", "reads", "--json")
    assert len(methods(ran)) == 5
    assert "1 lines of reads.jsonl cannot be read" in ran.err


def test_where_nothing_was_told_that_is_said(bxctl, memoryd_home):
    ran = bxctl("memory", "reads")
    assert (ran.code, ran.out) == (1, "")
    assert "nobody was told anything" in ran.err
