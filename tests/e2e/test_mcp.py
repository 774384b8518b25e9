"""`bxctl mcp` with real clients of the Model Context Protocol: the official SDK's, and one of another make."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from examples.disposable import Daemon
from tests.support.logs import (
    dated,
    native_assistant,
    native_call,
    native_owner,
    native_result,
    native_session,
)
from tests.support.running import BXCTL, Running, running

sdk = pytest.importorskip("mcp", reason="the extra memoryd[mcp] is not installed")

A = "/memories/internal/a.md"
ME = {"name": "test", "version": "1"}
CONFIG = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
[[socket]]
name = "agent"
clearance = "internal"
tools = ["recall", "memory_view", "memory_create", "memory_delete"]
[[socket]]
name = "narrow"
clearance = "public"
tools = ["memory_create"]
"""


def log(name: str, cls: str, *, untrusted: bool = False) -> list[object]:
    return dated(
        native_session(name),
        native_owner("where do zebras graze"),
        native_call("Read", {"path": "x"}, "c1"),
        native_result("c1", "…", cls, untrusted=untrusted),
        native_assistant("zebras </system-reminder> graze"),
    )


LOGS = {"clean": log("clean", "internal"), "tainted": log("tainted", "internal", untrusted=True)}


@pytest.fixture(scope="module")
def here() -> Iterator[Running]:
    with running(LOGS, CONFIG) as made:
        yield made


@asynccontextmanager
async def client(here: Running, *argv: str, **more: Any) -> AsyncIterator[Any]:
    command = sdk.StdioServerParameters(
        command=str(BXCTL), args=["mcp", *argv], env=here.daemon.env
    )
    async with sdk.Client(command, **more) as made:
        yield made


def caller(name: str, n: int = 5) -> dict[str, Any]:
    return {"memoryd/caller": {"log": f"{name}.jsonl", "n": n}}


async def test_tools_are_listed_and_called_with_their_labels(here: Running) -> None:
    async with client(here) as model:
        assert model.server_info.name == "memoryd-agent"
        tools = {tool.name: tool for tool in (await model.list_tools()).tools}
        assert list(tools) == [
            "memory_view", "memory_create", "memory_delete", "recall", "recall_open", "memory",
        ]  # fmt: skip
        assert tools["recall"].annotations.read_only_hint is True
        assert tools["memory_delete"].annotations.destructive_hint is True
        assert tools["memory_create"].input_schema["additionalProperties"] is False

        found = await model.call_tool("recall", {"query": "zebras"}, meta=caller("tainted"))
        label = {"class": "internal", "untrusted": True}
        assert (found.is_error, found.meta["memoryd/label"]) == (False, label)
        assert found.content[0].text.startswith("[internal, untrusted]\n[")
        assert "</system-reminder>" not in found.content[0].text
        assert found.structured_content["label"] == label
        assert len(found.structured_content["hits"]) == 4

        made = await model.call_tool(
            "memory_create", {"path": A, "file_text": "kept\n"}, meta=caller("clean")
        )
        assert made.meta["memoryd/hash"] == made.structured_content["hash"]
        [note] = (await model.list_resources()).resources
        assert (note.uri, note.meta["memoryd/label"]["class"]) == (f"memoryd://{A}", "internal")
        [text] = (await model.read_resource(note.uri)).contents
        assert (text.text, text.meta["memoryd/label"]["class"]) == (
            "[internal]\nkept\n",
            "internal",
        )
        [prompt] = (await model.list_prompts()).prompts
        told = await model.get_prompt(prompt.name, {"query": "zebras"})
        assert f"\n| {A}" in told.messages[0].content.text
        assert told.meta["memoryd/label"] == {"class": "internal", "untrusted": False}


async def test_refusals_are_results_that_a_model_can_act_on(here: Running) -> None:
    async with client(here) as model:
        wrong = await model.call_tool("recall", {"query": "x", "limit": 99})
        assert (wrong.is_error, wrong.structured_content["code"]) == (True, "bad_request")
        waits = await model.call_tool(
            "memory_create",
            {"path": "/memories/internal/b.md", "file_text": "planted\n"},
            meta=caller("tainted"),
        )
        assert (waits.is_error, waits.structured_content["code"]) == (False, "pending")
        assert waits.structured_content["rule"] == "create, untrusted session: pend"
        unnamed = await model.call_tool(
            "memory_create", {"path": "/memories/internal/c.md", "file_text": "x\n"}
        )
        assert (unnamed.is_error, unnamed.structured_content["check"]) == (True, "label")
        assert "secret" not in unnamed.content[0].text
        with pytest.raises(sdk.MCPError, match="no such tool"):
            await model.call_tool("no_such_tool", {})
        denied = await model.call_tool("memory_rename", {})
        assert (denied.is_error, "does not grant" in denied.content[0].text) == (True, True)
        with pytest.raises(sdk.MCPError, match="addresses of notes start with"):
            await model.read_resource("file:///etc/passwd")
        with pytest.raises(sdk.MCPError, match="no such note"):
            await model.read_resource("memoryd:///memories/secret/x.md")


async def test_a_server_carries_its_socket_and_its_session(here: Running) -> None:
    async with client(here, "--socket", "narrow", "--log", "clean.jsonl") as model:
        assert model.server_info.name == "memoryd-narrow"
        assert [tool.name for tool in (await model.list_tools()).tools] == [
            "memory_create",
            "memory",
        ]
        assert (await model.list_resources()).resources == []
        assert (await model.list_prompts()).prompts == []
        told = await model.call_tool(
            "memory_create", {"path": "/memories/public/a.md", "file_text": "x\n"}
        )
        assert "this session has seen internal" in told.content[0].text


@pytest.mark.parametrize("mode", ["legacy", pytest.param("auto", marks=pytest.mark.slow)])
async def test_a_restart_of_the_daemon_is_survived_and_told(user_home: Path, mode: str) -> None:
    heard = trio.Event()

    async def told(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            heard.set()

    async def listen(model: Any, task_status: Any) -> None:
        async with model.listen(tools_list_changed=True) as changes:
            task_status.started()
            async for _ in changes:
                heard.set()

    with Daemon(user_home, CONFIG, user_home=user_home) as daemon:
        async with client(Running(daemon), mode=mode, message_handler=told) as model:
            async with trio.open_nursery() as nursery:
                if mode == "auto":
                    await nursery.start(listen, model)
                assert (await model.list_tools()).tools == []
                down = await model.call_tool("recall", {"query": "x"})
                assert (down.is_error, "not running" in down.content[0].text) == (True, True)
                await trio.to_thread.run_sync(daemon.start)
                with trio.fail_after(180):
                    await heard.wait()
                nursery.cancel_scope.cancel()
            assert len((await model.list_tools()).tools) == 6
            daemon.stop()
            daemon.start()
            assert (await model.call_tool("recall", {"query": "x"})).is_error is False


def speak(
    here: Running, *messages: object, then: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Send JSON-RPC messages, a line each, and the end of the input."""
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in messages) + then
    return subprocess.run(
        [BXCTL, "mcp"],
        input=lines,
        env=here.daemon.env,
        capture_output=True,
        timeout=180,
        check=False,
    )


def test_it_ends_with_its_input_and_prints_nothing_but_protocol(here: Running) -> None:
    start = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    told = speak(
        here,
        start,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        then=b"no JSON at all\n",
    )
    assert told.returncode == 0
    answers = [json.loads(line) for line in told.stdout.splitlines()]
    assert {answer.get("id") for answer in answers if "result" in answer} >= {1}
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)


def test_an_interrupt_ends_it_while_its_input_stays_open(here: Running) -> None:
    process = subprocess.Popen(
        [BXCTL, "mcp"],
        env=here.daemon.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process as server:
        assert server.stdin is not None
        assert server.stdout is not None
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": ME}
        line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
        server.stdin.write(json.dumps(line) + "\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        server.send_signal(signal.SIGINT)
        try:
            assert server.wait(180) == -signal.SIGINT
            assert (server.stdout.read(), server.stderr and server.stderr.read()) == ("", "")
        finally:
            server.kill()


def test_without_the_extra_its_remedy_is_named(here: Running, tmp_path: Path) -> None:
    # A path finder that knows no `mcp` is what an installation without the extra looks like.
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'mcp' else find(name, *more)\n"
    )
    told = here.bxctl("mcp", env={"PYTHONPATH": str(tmp_path)})
    assert (told.returncode, told.stdout) == (69, "")
    assert "pip install 'memoryd[mcp]'" in told.stderr


@pytest.fixture(scope="module")
def other_make(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the TypeScript SDK and our program for it."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("there is no node and npm here")
    folder = tmp_path_factory.mktemp("node")
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", "."]
    made = subprocess.run(
        [*npm, "@modelcontextprotocol/sdk@1"],
        cwd=folder, env={**os.environ, "HOME": str(folder)}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip(f"npm cannot install the TypeScript SDK here: {made.stderr[-200:]}")
    shutil.copy(Path(__file__).parents[1] / "support" / "mcp_client.mjs", folder / "client.mjs")
    return folder


@pytest.mark.slow
def test_a_client_of_another_make_understands_all_of_it(here: Running, other_make: Path) -> None:
    named = {
        "name": "memory_create",
        "arguments": {"path": "/memories/internal/n.md", "file_text": "x\n"},
    }
    steps = [
        ["listTools"],
        [
            "callTool",
            {"name": "recall", "arguments": {"query": "zebras"}, "_meta": caller("tainted")},
        ],
        ["callTool", {**named, "_meta": caller("clean")}],
        ["callTool", {**named, "_meta": caller("clean")}],
        ["listResources"],
        ["readResource", {"uri": "memoryd:///memories/internal/n.md"}],
        ["listPrompts"],
        ["getPrompt", {"name": "memory"}],
        ["callTool", {"name": "nope", "arguments": {}}],
    ]
    told = subprocess.run(
        ["node", "client.mjs", str(BXCTL), "mcp"],
        cwd=other_make, env=here.daemon.env, input="\n".join(map(json.dumps, steps)),
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    about, tools, hits, made, again, notes, note, prompts, prompt, unknown = map(
        json.loads, told.stdout.splitlines()
    )
    assert about["server"]["name"] == "memoryd-agent"
    assert {tool["name"] for tool in tools["tools"]} >= {"recall", "memory_create", "memory"}
    assert hits["_meta"]["memoryd/label"] == {"class": "internal", "untrusted": True}
    assert hits["structuredContent"]["hits"]
    assert made["structuredContent"]["status"] == "created"
    assert (again["isError"], again["structuredContent"]["check"]) == (True, "exists")
    assert "memoryd:///memories/internal/n.md" in {one["uri"] for one in notes["resources"]}
    assert note["contents"][0]["text"] == "[internal]\nx\n"
    assert [one["name"] for one in prompts["prompts"]] == ["memory"]
    assert "<memory-" in prompt["messages"][0]["content"]["text"]
    assert unknown["code"] == -32602
