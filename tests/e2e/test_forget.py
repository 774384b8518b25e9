"""Forgetting through a real daemon: no byte of what memoryd wrote holds the words, and no restart finds them."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client
from memoryd.errors import MemorydError, NotFound
from tests.support.daemon import Daemon
from tests.support.logs import (
    append,
    claude_call,
    claude_path,
    claude_result,
    claude_user,
    dated,
    native_assistant,
    native_owner,
    native_session,
    write,
)

KEPT = "medlar and common words"


def bxctl(daemon: Daemon, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bxctl", *argv]
    return subprocess.run(
        command, env=daemon.env, capture_output=True, text=True, timeout=180, check=False
    )


def holding(daemon: Daemon, word: str) -> list[str]:
    """Return every file that memoryd wrote (its logs are the harness's) that holds a word, packed or not."""
    found = []
    for path in sorted(daemon.state.rglob("*")):
        if path.is_file() and "sessions" not in path.relative_to(daemon.state).parts:
            content = path.read_bytes()
            if content.startswith(b"\x1f\x8b"):
                content = gzip.decompress(content)
            if word.encode() in content:
                found.append(str(path.relative_to(daemon.state)))
    return [*found, *(["daemon.log"] if word in daemon.said() else [])]


def found(memory: Client, word: str) -> list[str]:
    hits: list[dict[str, Any]] = memory.call("recall", query=word, limit=100, text=True)["hits"]
    return [hit["text"] for hit in hits]


@pytest.fixture
def logs(user_home: Path) -> tuple[Path, Path]:
    """A session to be forgotten, of which a part lies in a log that is gone already, and one that stays."""
    calls = [
        line
        for n in range(30)
        for line in (
            claude_user(f"quince{n}q is asked", sessionId="gone", cwd="/home/ada/quinceproject"),
            claude_call("Bash", {"command": f"echo quince{n}call"}, f"t{n}", sessionId="gone"),
            claude_result(f"t{n}", "never indexed", sessionId="gone"),
        )
    ]
    first = write(claude_path(user_home, "gone", "/home/ada/quinceproject"), *dated(*calls))
    for number in range(3):
        write(
            user_home / "state" / "sessions" / f"kept{number}.jsonl",
            *dated(native_session(f"kept{number}"), native_owner(KEPT), native_assistant(KEPT)),
        )
    second = write(
        user_home / "state" / "sessions" / "gone2.jsonl",
        *dated(native_session("gone"), *[native_owner(f"quince{n}native") for n in range(30)]),
    )
    return first, second


def test_what_is_forgotten_is_in_no_byte_and_comes_back_only_when_it_is_taken_back(
    user_home: Path, logs: tuple[Path, Path]
) -> None:
    first, second = logs
    with Daemon(user_home) as daemon:
        daemon.start()
        daemon.ask("sync")
        second.unlink()
        daemon.ask("sync")
        with daemon.client() as memory:
            assert len(found(memory, "quince7q")) == 1
            memory.call("sessions")
            memory.call("projects")
        assert "index/memory.sqlite3" in " ".join(holding(daemon, "quince7"))
        assert any(name.startswith("vanished/") for name in holding(daemon, "quince7native"))

        ran = bxctl(daemon, "memory", "forget", "--session", "gone", "--dry-run", "--json")
        plan = json.loads(ran.stdout)
        assert (plan["rows"], plan["copies"], len(plan["logs"])) == (90, 1, 2)
        assert holding(daemon, "quince7")

        ran = bxctl(daemon, "memory", "forget", "--session", "gone", "--yes", "--json")
        done = json.loads(ran.stdout)
        assert (ran.returncode, done["purged"]) == (0, True), ran.stderr
        assert [log["path"] for log in done["logs"] if log["held"]] == [str(first)]
        for word in ("quince7q", "quince7call", "quince7native"):
            assert holding(daemon, word) == []
        assert holding(daemon, "medlar")

        append(first, *dated(claude_user("said afterwards", sessionId="gone"), start=500))
        daemon.ask("sync")
        bxctl(daemon, "reindex")
        assert holding(daemon, "quince7q") == []
        assert daemon.stop() == 0
        daemon.start()
        with daemon.client() as memory:
            memory.call("sync")
            assert found(memory, "quince7q") == []
            assert found(memory, "afterwards") == ["said afterwards"]
            assert len(found(memory, "medlar")) == 6
        assert holding(daemon, "quince7q") == []

        ran = bxctl(daemon, "memory", "forget", "--undo", done["act"], "--json")
        assert json.loads(ran.stdout) | {"format": "", "version": 1} == {
            "act": done["act"], "logs": 1, "gone": 1, "format": "", "version": 1,
        }  # fmt: skip
        with daemon.client() as memory:
            assert len(found(memory, "quince7q")) == 1
            assert found(memory, "quince7native") == []


def test_names_in_the_read_log_go_with_what_they_name(
    user_home: Path, logs: tuple[Path, Path]
) -> None:
    with Daemon(user_home) as daemon:
        daemon.start()
        with daemon.client() as memory:
            memory.call("sync")
            memory.call("projects")
            memory.call("recall", query="quince7q", caller={"log": "gone2.jsonl", "n": 1})
        assert "reads.jsonl" in holding(daemon, "quinceproject")
        done = daemon.ask("forget", project="*quinceproject", delete_log=True)
        assert done["purged"]
        assert done["derived"]["reads"] >= 1
        assert "reads.jsonl" not in holding(daemon, "quinceproject")
        ran = bxctl(daemon, "memory", "reads", "--json")
        assert "(forgotten)" in ran.stdout
        assert not logs[0].exists()


def test_only_the_owner_s_socket_forgets(user_home: Path, logs: tuple[Path, Path]) -> None:
    with Daemon(user_home) as daemon:
        daemon.start()
        daemon.ask("sync")
        with daemon.client("agent") as memory, pytest.raises(MemorydError) as refused:
            memory.call("forget", session="gone")
        assert refused.value.code == "not_granted"
        with pytest.raises(NotFound):
            daemon.ask("forget", session="nobody")
        for wrong in ({}, {"undo": "x", "session": "gone"}, {"before": "soon"}, {"sesion": "x"}):
            with pytest.raises(MemorydError) as refused:
                daemon.ask("forget", **wrong)
            assert refused.value.code == "bad_request"
