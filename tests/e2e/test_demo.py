"""`make demo` does what README says: it answers, it shows less to an agent, and it leaves nothing."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.disposable import Daemon
from tests.support.modes import holding
from tests.support.samples import PUDDINGS, ROOT, SESSIONS

ID = re.compile(r"\b[a-z2-7]{20}\b")
pytestmark = pytest.mark.slow


def demo(tmp_path: Path, user_home: Path) -> subprocess.Popen[str]:
    """Start the demonstration with its throw-away folder in `tmp_path`."""
    env = os.environ | {"TMPDIR": str(tmp_path), "HOME": str(user_home)}
    env.pop("MEMORYD_HOME")
    return subprocess.Popen(
        [sys.executable, ROOT / "examples" / "demo.py"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        yield Path(folder)


def test_without_logs_the_invented_sessions_are_asked(short: Path, user_home: Path):
    told = demo(short, user_home)
    text, _ = told.communicate(timeout=180)
    assert told.returncode == 0, text
    assert "invented sessions" in text
    assert "float rounding per line" in text
    assert "nothing found" in text
    assert [
        pudding for pudding in PUDDINGS if text.lower().count(pudding) > (pudding == "zabaglione")
    ] == []
    assert list(short.iterdir()) == []


def test_the_logs_of_the_machine_are_asked_and_not_touched(short: Path, user_home: Path):
    shutil.copytree(SESSIONS / "claude", user_home / ".claude")
    shutil.copytree(SESSIONS / "codex", user_home / ".codex")
    before = {path: path.read_bytes() for path in user_home.rglob("*.jsonl")}
    told = demo(short, user_home)
    text, _ = told.communicate(timeout=180)
    assert told.returncode == 0, text
    assert "the newest of this machine: 2 of claude-code, 1 of codex;" in text
    assert {path: path.read_bytes() for path in user_home.rglob("*.jsonl")} == before
    assert not (user_home / ".local").exists()
    assert list(short.iterdir()) == []


def test_interrupted_it_leaves_nothing(short: Path, user_home: Path):
    told = demo(short, user_home)
    assert told.stdout is not None
    assert told.stdout.readline().startswith("memoryd demo")
    told.send_signal(signal.SIGINT)
    told.communicate(timeout=180)
    assert told.returncode == 130
    assert list(short.iterdir()) == []


def test_the_transcript_of_readme_is_what_bxctl_prints(short: Path, user_home: Path):
    """Ids are keyed, so each store has its own; all else must be as printed."""
    transcript = (ROOT / "README.md").read_text("utf-8").split("```console\n")[1].split("```")[0]
    shutil.copytree(SESSIONS / "codex", user_home / ".codex")
    with Daemon(short) as daemon:
        shutil.copytree(SESSIONS / "native", daemon.state / "sessions")
        for path in (daemon.state / "sessions", *(daemon.state / "sessions").iterdir()):
            path.chmod(0o700 if path.is_dir() else 0o600)
        daemon.start()
        with daemon.client() as memory:
            memory.call("sync")
        for part in transcript.removeprefix("$ bxctl ").split("$ bxctl "):
            line, _, shown = part.partition("\n")
            done, _ = daemon.bxctl(*line.split())
            assert ID.sub("ID", done.stdout + done.stderr) == ID.sub("ID", shown)


def test_no_pudding_reaches_a_byte_that_is_written(short: Path, user_home: Path):
    shutil.copytree(SESSIONS / "claude", user_home / ".claude")
    shutil.copytree(SESSIONS / "codex", user_home / ".codex")
    with Daemon(short) as daemon:
        daemon.start()
        with daemon.client() as memory:
            memory.call("sync")
            assert memory.call("recall", query="jitter")["hits"]
        daemon.stop()
    found = [holding(daemon.state, word.encode(), word.title().encode()) for word in PUDDINGS]
    assert [where for where in found if where] == []
    said = (short / "daemon.log").read_text("utf-8")
    assert [pudding for pudding in PUDDINGS if pudding in said.lower()] == []
