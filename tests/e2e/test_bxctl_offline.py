"""`bxctl` while the daemon is down: what it still answers, and a rebuild under the daemon's lock."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.disposable import Daemon, throwaway_home
from tests.support.logs import (
    dated,
    native_assistant,
    native_call,
    native_owner,
    native_result,
    native_session,
)
from tests.support.modes import too_wide
from tests.support.running import BXCTL, Running, running

LOGS = {
    "shop": dated(
        native_session("shop"),
        native_owner("cap the retry backoff at thirty seconds"),
        native_call("Read", {"path": "ledger"}, "c1"),
        native_result("c1", "…", "private"),
        native_assistant("the private ledger mentions retry"),
    ),
    "loft": dated(native_session("loft", "/home/ada/loft"), native_owner("retry the loft ladder")),
}
QUESTIONS = [
    ["memory", "search", "retry"],
    ["memory", "search", "retry", "--max-class", "public", "--limit", "1"],
    ["memory", "search", "retry", "--group", "session", "--since", "2026-01-01"],
    ["memory", "sessions"],
    ["memory", "projects", "--kind", "owner"],
    ["memory", "stats"],
    ["memory", "dump"],
]


class Before:
    """What the daemon answered, and the home as it was left when the daemon had stopped."""

    def __init__(self, made: Running) -> None:
        hit = json.loads(made.bxctl("memory", "search", "retry", "--json").stdout)["hits"][0]["id"]
        show = ["memory", "show", hit, "--before", "2", "--after", "2"]
        agent = [
            ["--socket", "agent", *argv]
            for argv in (QUESTIONS[0], QUESTIONS[3], QUESTIONS[6], show)
        ]
        self.answers = [(argv, made.bxctl("--json", *argv)) for argv in [*QUESTIONS, show, *agent]]
        self.dump = made.bxctl("memory", "dump").stdout
        made.daemon.stop()
        self.home = made.home


@pytest.fixture(scope="module")
def before() -> Iterator[Before]:
    """A home whose daemon has read `LOGS`, answered, and stopped."""
    with running(LOGS) as made:
        yield Before(made)


@pytest.fixture
def down(before: Before) -> Iterator[Running]:
    """A copy of that home, its daemon not started."""
    with throwaway_home("md-down-") as home:
        shutil.copytree(before.home / "state", home / "state", ignore=shutil.ignore_patterns("run"))
        with Daemon(home, user_home=home) as daemon:
            yield Running(daemon)


def test_the_fallback_answers_as_the_daemon_did_and_says_so(before):
    here = Running(Daemon(before.home, user_home=before.home))
    for argv, up in before.answers:
        ran = here.bxctl("--json", *argv)
        assert ran.stdout == up.stdout, argv
        assert ran.returncode == up.returncode, argv
        said = ran.stderr.splitlines()
        assert "answering from the index as it was " in said[0], argv
        assert len(said) == 1 + bool(up.returncode), argv


@pytest.fixture
def here() -> Iterator[Running]:
    """A running daemon that has read `LOGS`; the test stops it."""
    with running(LOGS) as made:
        yield made


def test_a_killed_daemon_s_last_rows_are_read_from_its_wal_s11(here):
    here.log("late", *dated(native_session("late"), native_owner("a tardy kumquat")))
    assert here.bxctl("memory", "sync").returncode == 0
    assert here.bxctl("memory", "search", "kumquat").returncode == 0
    here.daemon.kill()
    assert here.bxctl("memory", "search", "kumquat").returncode == 0
    assert [path for path in too_wide(here.state) if "/run" not in path] == []


def test_what_needs_the_daemon_is_69_without_it(down):
    for argv in (["status"], ["memory", "sync"]):
        ran = down.bxctl(*argv)
        assert (ran.returncode, ran.stdout) == (69, "")
        assert "start it with `memoryd`" in ran.stderr
        assert ran.stderr.count("\n") == 1


def configured(down: Running, text: str) -> None:
    (down.home / "memoryd.toml").write_text(text, "utf-8")


REFUSALS = {
    "another max_class": lambda down: configured(down, '[index]\nmax_class = "internal"\n'),
    "another rule": lambda down: configured(
        down, '[[labels.tool]]\nmatch = "Read"\nclass = "secret"\n'
    ),
    "no index": lambda down: [path.unlink() for path in (down.state / "index").iterdir()],
    "no state": lambda down: (down.state / "key").unlink(),
    "a broken index": lambda down: (down.state / "index" / "memory.sqlite3").write_bytes(
        b"x" * 9_000
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_an_index_that_cannot_be_served_is_69_with_a_remedy(down, case):
    REFUSALS[case](down)
    for argv in (["search", "retry"], ["dump"]):
        ran = down.bxctl("memory", *argv)
        assert (ran.returncode, ran.stdout) == (69, ""), ran.stderr
        assert "memoryd" in ran.stderr.split("; ")[-1]
        assert ran.stderr.count("\n") == 1


def test_a_broken_configuration_is_78_with_its_line(down):
    configured(down, '[index]\nmax_clas = "internal"\n')
    for argv in (["memory", "search", "retry"], ["reindex", "--offline"]):
        ran = down.bxctl(*argv)
        assert (ran.returncode, ran.stdout) == (78, "")
        assert "memoryd.toml:2" in ran.stderr
        assert "max_class" in ran.stderr


def test_an_offline_rebuild_gives_the_same_index(before, down):
    ran = down.bxctl("reindex", "--json")
    assert ran.returncode == 0, ran.stderr
    assert "rebuilding from here" in ran.stderr
    told = json.loads(ran.stdout)
    assert (told["format"], told["indexed"], told["left_out"], told["unreadable"]) == (
        "counts",
        4,
        0,
        0,
    )
    assert down.bxctl("memory", "dump").stdout == before.dump
    assert too_wide(down.state) == []
    down.daemon.start()
    assert down.bxctl("memory", "dump").stdout == before.dump


def test_an_offline_rebuild_brings_a_changed_configuration_into_force(down):
    configured(down, '[index]\nmax_class = "public"\n')
    ran = down.bxctl("reindex", "--offline", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["left_out"] == 1
    assert "private" not in down.bxctl("memory", "dump").stdout


def test_an_offline_rebuild_beside_a_running_daemon_is_75(here):
    ran = here.bxctl("reindex", "--offline")
    assert (ran.returncode, ran.stdout) == (75, "")
    assert str(here.daemon.pid) in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert here.bxctl("memory", "search", "retry").returncode == 0


def test_ctrl_c_leaves_the_old_index_whole_and_nothing_else(here):
    for number in range(60):  # enough to be still at work when it is interrupted
        words = [native_owner(f"word{number} " * 2_000) for _ in range(40)]
        here.log(f"big{number}", *dated(native_session(f"big{number}"), *words))
    assert here.bxctl("memory", "sync").returncode == 0
    before = here.bxctl("memory", "dump").stdout
    here.daemon.stop()
    process = subprocess.Popen(
        [BXCTL, "reindex", "--offline"],
        env=here.daemon.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not any(os.getpgid(int(child)) != process.pid for child in children.read_text().split()):
        # A child in our own group would get the Ctrl-C as well, and print its traceback.
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of its processes
    out, err = process.communicate(timeout=180)
    assert (process.returncode, out, err) == (130, b"", b"bxctl: interrupted\n")
    assert list((here.state / "index").glob("*.rebuild-*")) == []
    assert here.bxctl("memory", "dump").stdout == before
