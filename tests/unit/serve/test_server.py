"""The server on real sockets: who gets in, how many, and how it stops."""

import errno
import resource
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import pytest
import structlog
import trio

from memoryd.config import Socket
from memoryd.db import Deadline
from memoryd.serve import connection, server
from memoryd.serve.calls import Common, Methods, Quick, Slow, fitting
from memoryd.serve.connection import Traffic
from memoryd.serve.listening import Listening, listen
from memoryd.serve.peers import Asker, Peer
from memoryd.serve.server import Server
from tests.support.peer import allowing


class Text(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A string, and seconds to wait."""

    text: str = ""
    seconds: float = 0.0


def echo(asker: Asker, args: Text) -> object:
    return {"text": args.text, "socket": asker.capability.name, "pid": asker.peer.pid}


async def wait(asker: Asker, args: Text, deadline: Deadline) -> object:
    await trio.sleep(args.seconds)
    return args.text


METHODS = {"echo": Quick(fitting(Text), echo), "wait": Slow(fitting(Text), wait)}


class Client:
    """A client on a real socket."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.unpacker = msgpack.Unpacker()

    async def ask(self, method: str, msgid: int = 1, **args: Any) -> None:
        await self.stream.send_all(msgpack.packb([0, msgid, method, [args]]))

    async def answer(self) -> Any:
        while True:
            for message in self.unpacker:
                return message
            try:
                chunk = await self.stream.receive_some()
            except trio.BrokenResourceError:
                return None
            if not chunk:
                return None
            self.unpacker.feed(chunk)


class Running(msgspec.Struct):
    """A server under test."""

    server: Server
    listening: Listening
    ended: trio.Event
    logged: list[Any]
    clients: list[Client]

    @property
    def traffic(self) -> Traffic:
        return self.server.traffic

    async def connect(self) -> Client:
        self.clients.append(Client(await trio.open_unix_socket(str(self.listening.path))))
        return self.clients[-1]


@asynccontextmanager
async def serving(
    home: Path, methods: Methods = METHODS, change: Callable[[Listening], Listening] | None = None
) -> AsyncIterator[Running]:
    env = {"MEMORYD_HOME": str(home), "HOME": str(home)}
    found = listen(Socket("test", "secret", ["*"]), allowing(*methods), env)
    running = Running(
        Server(methods, Traffic()), found if change is None else change(found), trio.Event(), [], []
    )

    async def serve() -> None:
        await running.server.run([running.listening])
        running.ended.set()

    with structlog.testing.capture_logs() as running.logged:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            with trio.fail_after(10):
                yield running
            nursery.cancel_scope.cancel()
    for client in running.clients:
        client.stream.socket.close()
    found.sock.close()


async def test_a_peer_is_known_by_its_socket_and_its_process(memoryd_home: Path) -> None:
    import os

    async with serving(memoryd_home) as running:
        client = await running.connect()
        await client.ask("echo", text="x")
        expected = {"text": "x", "socket": "test", "pid": os.getpid()}
        assert await client.answer() == [1, 1, None, expected]


async def test_a_large_answer_arrives_whole(memoryd_home: Path) -> None:
    def large(asker: Asker, args: Text) -> object:
        return "x" * 5_000_000

    async with serving(memoryd_home, {"large": Quick(fitting(Text), large)}) as running:
        client = await running.connect()
        await client.ask("large")
        assert len((await client.answer())[3]) == 5_000_000


async def test_case_35_a_peer_of_another_user_is_closed_unread_and_told_nothing_p21(
    memoryd_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "peer_of", lambda sock: Peer(1, 4_242))
    async with serving(memoryd_home) as running:
        for _ in range(3):
            client = await running.connect()
            assert await client.answer() is None
        assert running.traffic.foreign_peers == 3
        assert running.traffic.requests == 0
        assert [entry["uid"] for entry in running.logged] == [4_242]


async def test_a_uid_that_the_socket_names_gets_in(
    memoryd_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(found: Listening) -> Listening:
        wider = msgspec.structs.replace(found.capability, uids=frozenset({4_242}))
        return msgspec.structs.replace(found, capability=wider)

    monkeypatch.setattr(server, "peer_of", lambda sock: Peer(1, 4_242))
    async with serving(memoryd_home, change=named) as running:
        client = await running.connect()
        await client.ask("echo", text="x")
        assert (await client.answer())[3]["text"] == "x"


async def test_the_sixty_fifth_connection_is_told_busy_and_the_others_live_p17_q05(
    memoryd_home: Path,
) -> None:
    async with serving(memoryd_home) as running:
        clients = [await running.connect() for _ in range(64)]
        for client in clients:
            await client.ask("echo", text="x")
            await client.answer()
        extra = await running.connect()
        await extra.ask("echo", text="x")
        assert (await extra.answer())[2][1].startswith("busy: ")
        await clients[0].stream.aclose()
        await clients[1].ask("echo", text="y")
        assert (await clients[1].answer())[3]["text"] == "y"
        with trio.fail_after(5):
            while True:
                client = await running.connect()
                await client.ask("echo", text="z")
                answer = await client.answer()
                if answer is not None and answer[2] is None:
                    break


async def test_connections_cannot_take_the_last_descriptors(
    memoryd_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by chaos: with 64 descriptors, clients left none to open the index with (P22, Q02)."""
    async with serving(memoryd_home) as running:
        first = await running.connect()
        await first.ask("echo", text="a")
        assert (await first.answer())[3]["text"] == "a"
        running.server._most = 0
        late = await running.connect()
        assert await late.answer() is None
        await first.ask("echo", text="b")
        assert (await first.answer())[3]["text"] == "b"
        assert [entry["event"] for entry in running.logged] == [
            "no descriptor to spare for another connection"
        ]


def test_a_server_keeps_descriptors_to_spare() -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert Server(METHODS, Traffic())._most == limit - server.SPARE


async def test_no_descriptor_left_is_logged_once_and_survived_p22(
    memoryd_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short:
        """A listening socket that has no descriptor left, three times."""

        def __init__(self, sock: socket.socket) -> None:
            self.sock, self.left = sock, 3
            self.fileno = sock.fileno

        def accept(self) -> object:
            if self.left:
                self.left -= 1
                raise OSError(errno.EMFILE, "too many open files")
            return self.sock.accept()

    def change(found):
        return msgspec.structs.replace(found, sock=Short(found.sock))

    monkeypatch.setattr(server, "_PAUSE_S", 0.0)
    async with serving(memoryd_home, change=change) as running:
        client = await running.connect()
        await client.ask("echo", text="x")
        assert (await client.answer())[3]["text"] == "x"
        assert [entry["errno"] for entry in running.logged] == [errno.EMFILE]


async def test_a_fault_in_one_connection_ends_that_one_only_p24(
    memoryd_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(memoryd_home) as running:
        monkeypatch.setattr(connection.Connection, "_take", lambda self, message: 1 / 0)
        client = await running.connect()
        await client.ask("echo")
        assert await client.answer() is None
        monkeypatch.undo()
        client = await running.connect()
        await client.ask("echo", text="x")
        assert (await client.answer())[3]["text"] == "x"
        assert [entry["event"] for entry in running.logged] == ["a connection failed"]


async def test_stop_finishes_what_is_in_flight_and_closes(memoryd_home: Path) -> None:
    async with serving(memoryd_home) as running:
        client = await running.connect()
        await client.ask("wait", text="x", seconds=0.05)
        with trio.fail_after(2):
            while running.traffic.in_flight == 0:
                await trio.lowlevel.checkpoint()
            await running.server.stop()
            await running.ended.wait()
        assert await client.answer() == [1, 1, None, "x"]
        assert await client.answer() is None


async def test_stop_does_not_wait_for_ever(
    memoryd_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FINISH_S", 0.05)
    async with serving(memoryd_home) as running:
        client = await running.connect()
        await client.ask("wait", seconds=60, deadline_ms=60_000)
        while running.traffic.in_flight == 0:
            await trio.lowlevel.checkpoint()
        await running.server.stop()
        await running.ended.wait()
        assert await client.answer() is None
        assert running.traffic.in_flight == 0
