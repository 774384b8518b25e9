"""The programs of docs/agents.md, taken from the page and run against a real daemon."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.logs import append, dated, native_assistant, native_owner, native_session
from tests.support.running import Running, running

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
PROGRAMS = dict(
    re.findall(
        r"^## ([^\n]+)\n(?:(?!^## ).)*?^```\w+\n(.*?)^```$",
        PAGE.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
WORDS = "cap the retry backoff at thirty seconds"
LIMIT_S = 180


@pytest.fixture(scope="module")
def here() -> Iterator[Running]:
    logs = {"shop": dated(native_session("shop"), native_owner(WORDS))}
    with running(logs) as made:
        with made.daemon.client() as owner:
            rules = {"path": "/memories/internal/MEMORY.md", "file_text": "Be brief.\n"}
            owner.call("notes.create", owner=True, **rules)
        yield made


def python(here: Running, name: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS[name]],
        env=here.daemon.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_has_every_program():
    assert list(PROGRAMS) == ["Python", "trio", "Neovim", "Node.js", "A tool loop"]


def test_blocking_python(here: Running):
    *hits, last = python(here, "Python").splitlines()
    assert f"owner public {WORDS}" in hits
    assert last.startswith("the session that reads this becomes ")


def test_trio_python(here: Running):
    argv = [sys.executable, "-c", PROGRAMS["trio"]]
    with subprocess.Popen(argv, env=here.daemon.env, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "told of record note\n"
        append(here.state / "sessions" / "shop.jsonl", native_assistant("heard at once"))
        assert program.stdout.read() == "record shop public\nheard at once\n"
        assert program.wait(LIMIT_S) == 0


def test_neovim(here: Running, tmp_path: Path):
    nvim = shutil.which("nvim")
    if nvim is None:
        pytest.skip("Neovim is not installed (Debian: apt-get install neovim)")
    script, told = tmp_path / "ask.lua", tmp_path / "told.txt"
    script.write_text(f"{PROGRAMS['Neovim']}\nvim.cmd('silent write! {told}')\nvim.cmd('qall!')\n")
    done = subprocess.run(
        [nvim, "--headless", "--clean", "-u", "NONE", "-S", script],
        env=here.daemon.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert f"public: {WORDS}" in told.read_text().splitlines(), done.stderr


@pytest.mark.slow
def test_node(here: Running, tmp_path: Path):
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("Node.js or npm is not installed (Debian: apt-get install nodejs npm)")
    env = {**os.environ, "npm_config_cache": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    got = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "@msgpack/msgpack@3"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * LIMIT_S,
    )
    if got.returncode:
        pytest.skip(f"npm cannot fetch @msgpack/msgpack: {got.stderr.strip()[-200:]}")
    (tmp_path / "ask.mjs").write_text(PROGRAMS["Node.js"])
    done = subprocess.run(
        [node, "ask.mjs"],
        cwd=tmp_path,
        env={**here.daemon.env, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    *hits, last = done.stdout.splitlines()
    assert f"public {WORDS}" in hits, done.stderr
    assert last.startswith("label ")


def test_the_tool_loop(here: Running):
    said = python(here, "A tool loop")
    assert f"| {WORDS}" in said
    assert said.endswith("The backoff ends at thirty seconds.\n")
    log = (here.state / "sessions" / "my-loop.jsonl").read_text().splitlines()
    kinds = [re.search(r'"kind": "(\w+)"', line)[1] for line in log]
    assert kinds == [
        "session", "memory_block", "owner", "tool_call", "tool_result", "assistant", "end",
    ]  # fmt: skip
