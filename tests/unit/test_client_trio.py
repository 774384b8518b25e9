"""The client for trio against a daemon that is played: answers in any order, lost connections, silence."""

import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
import trio
import trio.testing

from memoryd import client_trio
from memoryd.client_trio import Notification, connect
from memoryd.errors import BadRequest, ConfigError, NotFound, TimedOut, Unavailable


class Played:
    """One connection of a played daemon: what it was asked, and words to answer with."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._unpacker = msgpack.Unpacker()

    async def heard(self) -> list[Any]:
        """Return the next message; [] at the end."""
        while True:
            for message in self._unpacker:
                return list(message)
            chunk = await self.stream.receive_some(65_536)
            if not chunk:
                return []
            self._unpacker.feed(chunk)

    async def say(self, *message: object) -> None:
        await self.stream.send_all(msgpack.packb(message))

    async def hello(self, **about: object) -> None:
        kind, msgid, method, _ = await self.heard()
        assert (kind, method) == (0, "hello")
        await self.say(1, msgid, None, {"classes": ["public"], **about})


Play = Callable[[Played], Awaitable[None]]


def listen(home: Path) -> trio.SocketListener:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(str(home / "m.sock"))
    sock.listen()
    return trio.SocketListener(trio.socket.from_stdlib_socket(sock))


async def play(nursery: trio.Nursery, home: Path, *plays: Play) -> Path:
    """Serve connections one after the other, each by its own play; return the socket's path."""

    async def serve(listener: trio.SocketListener) -> None:
        async with listener:
            for one in plays:
                async with await listener.accept() as stream:
                    await one(Played(stream))
            (home / "m.sock").unlink()

    nursery.start_soon(serve, listen(home))
    return home / "m.sock"


async def test_calls_side_by_side_get_their_own_answers(user_home: Path, nursery: trio.Nursery):
    async def backwards(daemon: Played) -> None:
        await daemon.hello()
        asked = [await daemon.heard() for _ in range(3)]
        for _, msgid, method, [args] in reversed(asked):
            assert args == {"n": args["n"], "deadline_ms": 5_000}
            await daemon.say(1, msgid, None, [method, args["n"]])
        await daemon.heard()

    path = await play(nursery, user_home, backwards)
    answers = {}

    async with connect(path) as memory, trio.open_nursery() as asking:

        async def ask(n: int) -> None:
            answers[n] = await memory.call("echo", n=n)

        for n in range(3):
            asking.start_soon(ask, n)
    assert answers == {n: ["echo", n] for n in range(3)}


async def test_what_cannot_be_sent_is_a_bad_request_and_the_connection_stays(
    user_home: Path, nursery: trio.Nursery
):
    async def echoing(daemon: Played) -> None:
        await daemon.hello()
        _, msgid, _, [args] = await daemon.heard()
        await daemon.say(1, msgid, None, args["query"])
        await daemon.heard()

    path = await play(nursery, user_home, echoing)
    async with connect(path) as memory:
        for value in ("\ud800", 1 << 70, 1 << 63, {1}):
            with pytest.raises(BadRequest, match="cannot be sent"):
                await memory.call("recall", query=value)
        assert await memory.call("recall", query="next") == "next"


async def test_an_error_comes_as_what_it_is_and_as_it_is(user_home: Path, nursery: trio.Nursery):
    async def refusing(daemon: Played) -> None:
        await daemon.hello()
        _, msgid, _, _ = await daemon.heard()
        error = {"code": "not_found", "message": "no such record", "data": {"remedy": "look"}}
        await daemon.say(1, msgid, error, None)
        await daemon.heard()

    path = await play(nursery, user_home, refusing)
    with pytest.raises(NotFound, match="no such record") as caught:
        async with connect(path) as memory:
            await memory.call("get", id="x")
    assert caught.value.remedy == "look"


async def test_whoever_cancels_a_call_takes_it_back(user_home: Path, nursery: trio.Nursery):
    told = []

    async def slow(daemon: Played) -> None:
        await daemon.hello()
        _, first, _, _ = await daemon.heard()
        told.append((first, await daemon.heard()))
        _, second, _, _ = await daemon.heard()
        await daemon.say(1, first, None, "too late")
        await daemon.say(1, second, None, "in time")
        await daemon.heard()

    path = await play(nursery, user_home, slow)
    async with connect(path) as memory:
        with trio.move_on_after(0.02) as scope:
            await memory.call("recall", query="x")
        assert scope.cancelled_caught
        assert await memory.call("status") == "in time"
    assert told == [(told[0][0], [2, "cancel", [{"msgid": told[0][0]}]])]


async def test_a_daemon_that_does_not_answer_costs_the_timeout(
    user_home: Path, nursery: trio.Nursery
):
    async def silent(daemon: Played) -> None:
        await daemon.hello()
        while await daemon.heard():
            pass

    path = await play(nursery, user_home, silent)
    async with connect(path, timeout=0.05) as memory:
        with pytest.raises(TimedOut, match="no answer to status in time"):
            await memory.call("status")


async def test_nobody_there_or_no_hello_is_told_at_once(user_home: Path, nursery: trio.Nursery):
    with pytest.raises(Unavailable, match="nobody listens"):
        async with connect(user_home / "none.sock"):
            pytest.fail("there is nobody")
    with pytest.raises(ConfigError):
        async with connect("x" * 200):
            pytest.fail("there is no such path")

    async def hung(daemon: Played) -> None:
        while await daemon.heard():
            pass

    async def closing(daemon: Played) -> None:
        await daemon.heard()

    path = await play(nursery, user_home, hung, closing)
    with pytest.raises(TimedOut, match="hello"):
        async with connect(path, timeout=0.05):
            pytest.fail("it never says hello")
    with pytest.raises(Unavailable, match="closed"):
        async with connect(path):
            pytest.fail("it closes")


async def test_a_lost_connection_fails_what_was_asked_and_comes_back_with_its_topics(
    user_home: Path, nursery: trio.Nursery
):
    async def first(daemon: Played) -> None:
        await daemon.hello(life=1)
        _, msgid, method, [args] = await daemon.heard()
        assert (method, args["topics"]) == ("subscribe", ["note"])
        await daemon.say(1, msgid, None, {"topics": ["note"]})
        await daemon.say(2, "note", [{"path": "one"}])
        await daemon.heard()

    async def second(daemon: Played) -> None:
        await daemon.hello(life=2)
        _, msgid, method, [args] = await daemon.heard()
        assert (method, args) == ("subscribe", {"topics": ["note"]})
        await daemon.say(1, msgid, None, {"topics": ["note"]})
        await daemon.say(2, "note", [{"path": "two"}])
        _, msgid, _, _ = await daemon.heard()
        await daemon.say(1, msgid, None, "back")
        await daemon.heard()

    path = await play(nursery, user_home, first, second)
    async with connect(path) as memory:
        assert await memory.subscribe("note") == ("note",)
        assert await anext(memory) == Notification("note", {"path": "one"})
        with pytest.raises(Unavailable, match="closed"):
            await memory.call("recall", query="x")
        assert await memory.call("status") == "back"
        assert memory.server["life"] == 2
        heard = [await anext(memory), await anext(memory)]
        assert sorted(heard) == [
            Notification("lagged", {"missed": None}),
            Notification("note", {"path": "two"}),
        ]


async def test_a_call_while_nobody_is_there_ends_with_its_time(
    user_home: Path, nursery: trio.Nursery
):
    async def once(daemon: Played) -> None:
        await daemon.hello()

    path = await play(nursery, user_home, once)
    async with connect(path) as memory:
        while path.exists():
            await trio.lowlevel.checkpoint()
        said = ""
        while "nobody listens" not in said:  # first it may still find that it was just closed
            with pytest.raises(Unavailable) as caught:
                await memory.call("status", deadline_ms=50)
            said = str(caught.value)


async def test_notifications_that_nobody_takes_are_counted(
    user_home: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client_trio, "QUEUED", 3)

    async def loud(daemon: Played) -> None:
        await daemon.hello()
        for n in range(10):
            await daemon.say(2, "note", [{"n": n}])
        for more in (False, True):
            _, msgid, _, _ = await daemon.heard()
            if more:
                await daemon.say(2, "note", [{"n": 10}])
            await daemon.say(1, msgid, None, None)
        await daemon.heard()

    path = await play(nursery, user_home, loud)
    async with connect(path) as memory:
        await memory.call("status")
        heard = [await anext(memory)]
        await memory.call(
            "status"
        )  # one more came meanwhile: it is missed too, or it would overtake
        heard += [await anext(memory) for _ in range(3)]
    assert [one.told for one in heard] == [{"n": 0}, {"n": 1}, {"n": 2}, {"missed": 8}]
    assert heard[-1].topic == "lagged"


async def test_the_iteration_ends_with_the_connection(user_home: Path, nursery: trio.Nursery):
    async def quiet(daemon: Played) -> None:
        await daemon.hello()
        await daemon.heard()

    path = await play(nursery, user_home, quiet)
    async with trio.open_nursery() as waiting, connect(path) as memory:

        async def listen_on() -> None:
            assert [one async for one in memory] == []

        waiting.start_soon(listen_on)
        await trio.testing.wait_all_tasks_blocked()


async def test_bytes_that_are_no_messagepack_lose_the_connection_and_nothing_else(
    user_home: Path, nursery: trio.Nursery
):
    async def babbling(daemon: Played) -> None:
        await daemon.hello()
        await daemon.heard()
        await daemon.stream.send_all(b"\xc1" * 10)
        await daemon.heard()

    path = await play(nursery, user_home, babbling)
    async with connect(path) as memory:
        with pytest.raises(Unavailable):
            await memory.call("status")
    assert os.fspath(path)
