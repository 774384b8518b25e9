"""Notifications of a real daemon: rows, notes, the index and its rebuilds, each to whom it concerns."""

from collections.abc import Iterator
from typing import Any

import pytest
import trio

from memoryd.client_trio import Client, Notification, connect
from memoryd.errors import Pending
from tests.support.logs import (
    append,
    dated,
    native_assistant,
    native_call,
    native_owner,
    native_result,
    native_session,
)
from tests.support.running import Running, running

LOGS = {
    "shop": dated(native_session("shop"), native_owner("hello")),
    "vault": dated(
        native_session("vault"),
        native_call("Read", {"path": "x"}, "c1"),
        native_result("c1", "…", "private"),
    ),
    "web": dated(
        native_session("web"),
        native_call("WebFetch", {"url": "https://example.net"}, "c1"),
        native_result("c1", "…", "public", untrusted=True),
    ),
}
PATIENCE_S = 180


@pytest.fixture(scope="module")
def here() -> Iterator[Running]:
    with running(LOGS) as made:
        yield made


async def next_of(memory: Client, topic: str) -> dict[str, Any]:
    with trio.fail_after(PATIENCE_S):
        async for found in memory:
            if found.topic == topic:
                return found.told
    raise AssertionError("the connection has ended")


async def test_new_rows_are_told_to_whoever_may_see_them(here: Running):
    env = here.daemon.env
    async with connect(env=env) as owner, connect("agent", env=env) as agent:
        await owner.subscribe("record")
        await agent.subscribe("record")
        append(here.state / "sessions" / "vault.jsonl", native_assistant("a private word"))
        hidden = await next_of(owner, "record")
        assert (hidden["session"], hidden["class"], hidden["rows"]) == ("vault", "private", 1)
        append(here.state / "sessions" / "shop.jsonl", native_assistant("a public word"))
        told = await next_of(agent, "record")
        assert (told["session"], told["class"]) == ("shop", "public")
        record = await agent.call("get", id=told["id"])
        assert record["record"]["text"] == "a public word"


async def test_notes_are_told_of_and_proposals_to_the_owner_alone(here: Running):
    env = here.daemon.env
    async with connect(env=env) as owner, connect("agent", env=env) as agent:
        await owner.subscribe("note")
        await agent.subscribe("note")
        paths = [f"/memories/{cls}/s.md" for cls in ("private", "internal")]
        for path in paths:
            await owner.call("notes.create", path=path, file_text="x\n", owner=True)
        assert [(await next_of(owner, "note"))["path"] for _ in paths] == paths
        assert (await next_of(agent, "note"))["path"] == paths[1]
        proposal = {"path": "/memories/internal/t.md", "file_text": "y\n"}
        with pytest.raises(Pending):
            await agent.call("notes.create", **proposal, caller={"log": "web.jsonl", "n": 3})
        told = await next_of(owner, "note")
        assert (told["status"], told["path"]) == ("pending", "/memories/internal/t.md")
        await owner.call(
            "notes.rename", old_path=paths[1], new_path="/memories/private/u.md", owner=True
        )
        assert await next_of(agent, "note") == {
            "status": "deleted",
            "path": paths[1],
            "hash": None,
            "class": "internal",
            "untrusted": False,
        }


async def test_a_rebuild_is_followed_by_the_owner_and_its_index_by_all(here: Running):
    env = here.daemon.env
    async with connect(env=env) as owner, connect("agent", env=env) as agent:
        await owner.subscribe("progress", "index")
        await agent.subscribe()
        job = (await owner.call("reindex"))["job"]
        seen = await next_of(owner, "progress")
        assert (seen["job"], seen["state"]) == (job, "running")
        while seen["state"] == "running":
            seen = await next_of(owner, "progress")
        assert seen["state"] == "done"
        generation = (await agent.call("status"))["generation"]
        assert await next_of(agent, "index") == {"generation": generation}


async def test_a_daemon_that_is_started_again_is_found_again():
    with running(LOGS) as here:
        async with connect("agent", env=here.daemon.env) as agent:
            await agent.subscribe("note")
            await trio.to_thread.run_sync(here.daemon.stop)
            await trio.to_thread.run_sync(here.daemon.start)
            with trio.fail_after(PATIENCE_S):
                assert (await agent.call("status", deadline_ms=120_000))["ready"]
            with trio.fail_after(PATIENCE_S):
                assert await anext(agent) == Notification("lagged", {"missed": None})
