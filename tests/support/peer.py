"""A client on memory streams: a connection without a socket, for virtual time and exact bytes.

::

    async with talking({"echo": Quick(...)}) as peer:
        peer.send(peer.request("echo", query="x"))
        assert await peer.answer() == [1, 0, None, {...}]
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgpack
import trio
import trio.testing

from memoryd.serve.calls import Methods
from memoryd.serve.connection import Connection, Traffic
from memoryd.serve.peers import Asker, Capability, Peer

HERE = Peer(os.getpid(), os.getuid())


def allowing(*methods: str, owner: bool = True, level: int = 3) -> Capability:
    """Return the capability of a socket that grants `methods`."""
    return Capability(
        name="test",
        level=level,
        owner=owner,
        methods=frozenset(methods),
        tools=("*",),
        untrusted="include",
        projects=("*",),
        uids=frozenset({HERE.uid}),
    )


class MemoryWire:
    """The server's end; `takes` is how many bytes it takes unread before sending waits."""

    def __init__(self, stream: trio.testing.MemoryReceiveStream, takes: int) -> None:
        self._in = stream
        self._takes = takes
        self.out = bytearray()
        self.closed = False
        self.moved = trio.lowlevel.ParkingLot()

    async def receive(self) -> bytes:
        """Return what the peer sent, nothing once it has closed."""
        return bytes(await self._in.receive_some(65_536))

    async def send(self, content: bytes | bytearray) -> None:
        """Send all, waiting for the peer to read."""
        rest = memoryview(bytes(content))
        while rest:
            done = self.send_nowait(rest)
            rest = rest[done:]
            if rest:
                await self.moved.park()

    def send_nowait(self, content: bytes | bytearray | memoryview) -> int:
        """Send what fits."""
        if self.closed:
            raise trio.BrokenResourceError
        done = min(len(content), self._takes - len(self.out))
        self.out += content[:done]
        self.moved.unpark_all()
        return done

    def close(self) -> None:
        """Close."""
        self.closed = True
        self.moved.unpark_all()


class TalkingPeer:
    """The client's end."""

    def __init__(self, wire: MemoryWire, stream: trio.testing.MemorySendStream) -> None:
        self.wire = wire
        self.traffic = Traffic()
        self.ended = trio.Event()
        self._stream = stream
        self._unpacker = msgpack.Unpacker()
        self._msgid = -1

    def request(self, method: str, /, **args: Any) -> bytes:
        """Return the bytes of a request with the next msgid."""
        self._msgid += 1
        packed: bytes = msgpack.packb([0, self._msgid, method, [args]])
        return packed

    async def send(self, content: bytes) -> None:
        """Send bytes as they are."""
        await self._stream.send_all(content)

    async def leave(self) -> None:
        """Close the client's end."""
        await self._stream.aclose()

    def nothing_came(self) -> bool:
        """Say whether no byte waits to be read."""
        return not self.wire.out

    async def answer(self) -> Any:
        """Return the next message; None once the connection has closed and all is read."""
        while True:
            for message in self._unpacker:
                return message
            if self.wire.out:
                self._unpacker.feed(bytes(self.wire.out))
                self.wire.out.clear()
                self.wire.moved.unpark_all()
            elif self.wire.closed:
                return None
            else:
                await self.wire.moved.park()


@asynccontextmanager
async def talking(
    methods: Methods, allowed: Capability | None = None, *, takes: int = 1 << 30
) -> AsyncIterator[TalkingPeer]:
    """Serve `methods` to one peer, all of them granted unless `allowed` says less."""
    ours, theirs = trio.testing.memory_stream_one_way_pair()
    peer = TalkingPeer(MemoryWire(theirs, takes), ours)
    asker = Asker(HERE, allowed or allowing(*methods))
    connection = Connection(peer.wire, asker, methods, peer.traffic)

    async def serve() -> None:
        await connection.run()
        peer.ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        yield peer
        nursery.cancel_scope.cancel()
