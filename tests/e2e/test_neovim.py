"""Neovim, a MessagePack-RPC client that knows nothing of memoryd, asks a real daemon."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.logs import native_assistant, native_owner, native_session, write

NVIM = shutil.which("nvim")

pytestmark = pytest.mark.skipif(
    NVIM is None, reason="Neovim is not installed (Debian: apt-get install neovim)"
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that has read one log."""
    home = tmp_path_factory.mktemp("n")
    write(
        home / "state" / "sessions" / "a.jsonl",
        native_session("s1"),
        native_owner("why does the retry storm begin"),
        native_assistant("the backoff has no jitter"),
    )
    with Daemon(home) as daemon:
        daemon.start()
        daemon.ask("sync")
        yield daemon


def nvim(daemon: Daemon, folder: Path, *lua: str) -> Any:
    """Run Lua in a headless Neovim with `memory` connected, and return what it puts into `out`."""
    script, told = folder / "ask.lua", folder / "told.json"
    lines = [
        f"local path = {json.dumps(str(daemon.state / 'run' / 'memoryd.sock'))}",
        "local memory = vim.fn.sockconnect('pipe', path, {rpc = true})",
        "local out = {}",
        "local function ask()",
        *lua,
        "end",
        "local asked, fault = pcall(ask)",
        "if not asked then out = {fault = tostring(fault)} end",
        f"vim.fn.writefile({{vim.json.encode(out)}}, {json.dumps(str(told))})",
        "vim.cmd('qall!')",
    ]
    script.write_text("\n".join(lines))
    done = subprocess.run(
        [str(NVIM), "--headless", "--clean", "-u", "NONE", "-S", str(script)],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        env=daemon.env,
    )
    assert told.exists(), done.stderr
    out = json.loads(told.read_text())
    assert "fault" not in out, out
    return out


def test_recall_answers_with_hits(daemon: Daemon, tmp_path: Path) -> None:
    out = nvim(
        daemon,
        tmp_path,
        "out = vim.rpcrequest(memory, 'recall', {query = 'jitter backoff'})",
    )
    assert [hit["snippet"] for hit in out["hits"]] == ["the backoff has no jitter"]
    assert out["hits"][0]["kind"] == "assistant"
    assert out["label"] == {"class": "public", "untrusted": False}


def test_a_refused_request_shows_its_code_and_its_message(daemon: Daemon, tmp_path: Path) -> None:
    out = nvim(
        daemon,
        tmp_path,
        "local ok, said = pcall(vim.rpcrequest, memory, 'recall', {query = 'x', limit = 'ten'})",
        "out = {ok = ok, said = tostring(said)}",
    )
    assert out["ok"] is False
    assert "bad_request: limit: expected int, got str" in out["said"]


@pytest.mark.parametrize("arguments", ["", ", {}", ", vim.empty_dict()"])
def test_no_arguments_an_empty_table_and_an_empty_dictionary_are_the_same(
    daemon: Daemon, tmp_path: Path, arguments: str
) -> None:
    out = nvim(daemon, tmp_path, f"out = vim.rpcrequest(memory, 'hello'{arguments})")
    assert out["clearance"] == "secret"


def test_a_float_that_is_whole_is_taken_as_a_number(daemon: Daemon, tmp_path: Path) -> None:
    out = nvim(
        daemon, tmp_path, "out = vim.rpcrequest(memory, 'recall', {query = 'retry', limit = 1.0})"
    )
    assert len(out["hits"]) == 1


@pytest.mark.parametrize(
    "hostile",
    ["for _ = 1, 25 do hostile = {hostile} end", "hostile = vim.fn['repeat']({1}, 20000)"],
    ids=["too deep", "too long"],
)
def test_after_hostile_bytes_the_pending_call_reports_bad_message(
    daemon: Daemon, tmp_path: Path, hostile: str
) -> None:
    # The call stays pending since memoryd waits for a log to grow to where its caller says it is.
    caller = "{log = 'a.jsonl', n = 1000}"
    out = nvim(
        daemon,
        tmp_path,
        "local hostile = {}",
        hostile,
        "local timer = vim.loop.new_timer()",
        "timer:start(50, 0, function() vim.rpcnotify(memory, 'cancel', hostile) end)",
        f"local asked = {{query = 'x', caller = {caller}}}",
        "local ok, said = pcall(vim.rpcrequest, memory, 'recall', asked)",
        "out = {ok = ok, said = tostring(said)}",
    )
    assert out["ok"] is False
    assert "bad_message" in out["said"]
    assert daemon.ask("recall", query="jitter")["hits"]


def test_a_notification_that_memoryd_does_not_know_is_ignored(
    daemon: Daemon, tmp_path: Path
) -> None:
    out = nvim(
        daemon,
        tmp_path,
        "vim.rpcnotify(memory, 'nvim_error_event', 0, 'what')",
        "out = vim.rpcrequest(memory, 'hello')",
    )
    assert out["server"] == "memoryd"
