"""A connected Unix socket as the connection sees it: receive, send, send what fits now, close.

In: a non-blocking `socket.socket`. Out: bytes. trio's own `SocketStream` costs a failing call and a lock
a message; waiting first and calling once is a third faster (bench/rpc.py). Tests put memory streams in
its place, which is why `Wire` is a protocol.
"""

import socket
from typing import Protocol

import trio

CHUNK = 1 << 16


class Wire(Protocol):
    """What a connection needs of its stream; one task receives, one sends."""

    async def receive(self) -> bytes:
        """Return some bytes, or none at the end of the stream."""

    async def send(self, content: bytes | bytearray) -> None:
        """Send all of `content`. Raises: trio.BrokenResourceError."""

    def send_nowait(self, content: bytes | bytearray) -> int:
        """Send what fits without waiting; return how many bytes that were.

        Raises: trio.BrokenResourceError.
        """

    def close(self) -> None:
        """Close at once; whoever waits on it is woken with trio.ClosedResourceError."""


class SocketWire:
    """A `Wire` over a connected socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock

    async def receive(self) -> bytes:
        """Return some bytes, or none when the peer has closed or is gone."""
        while True:
            await trio.lowlevel.wait_readable(self._sock)
            try:
                return self._sock.recv(CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    async def send(self, content: bytes | bytearray) -> None:
        """Send all of `content`. Raises: trio.BrokenResourceError."""
        with memoryview(content) as view:
            done = 0
            while done < len(view):
                await trio.lowlevel.wait_writable(self._sock)
                done += self.send_nowait(view[done:])

    def send_nowait(self, content: bytes | bytearray | memoryview) -> int:
        """Send what fits into the socket's buffer. Raises: trio.BrokenResourceError."""
        try:
            return self._sock.send(content)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise trio.BrokenResourceError from error

    def close(self) -> None:
        """Close, waking whoever waits."""
        if self._sock.fileno() >= 0:
            trio.lowlevel.notify_closing(self._sock)
            self._sock.close()
