"""The server: listening sockets in, connections served, a clean stop.

In: listening sockets with their capabilities, the table of methods. Out: nothing but what the
connections write. A peer of a uid that the socket does not name is closed before anything of it is read;
the 65th connection of a socket is told `busy`; one that would take the last file descriptors is closed, so
that whoever is connected is served as before.
"""

import errno
import resource
import socket

import structlog
import trio

from memoryd.errors import Busy
from memoryd.serve.calls import Methods
from memoryd.serve.connection import Connection, Traffic
from memoryd.serve.listening import Listening
from memoryd.serve.peers import Asker, Capability, peer_of
from memoryd.serve.wire import SocketWire, Wire

CONNECTIONS = 64
SPARE = 24
"""Descriptors that no connection may take: the index, the logs and the notes are opened with them."""
_TURNED_AWAY = 16
"""Connections beyond the limit that are still told why; more are closed unread."""
_TELL_S = 1.0
FINISH_S = 3.0
"""How long requests in flight may go on once the daemon stops."""
_PAUSE_S = 0.1
_SELDOM_S = 10.0
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

log = structlog.get_logger()


class Seldom:
    """Lets one of many equal log lines through each ten seconds, with how many were held back."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}
        self._held: dict[str, int] = {}

    def warn(self, event: str, **keys: object) -> None:
        """Log `event`, unless it was logged a moment ago."""
        now = trio.current_time()
        if now < self._next.get(event, 0.0):
            self._held[event] = self._held.get(event, 0) + 1
            return
        self._next[event] = now + _SELDOM_S
        log.warning(event, held=self._held.pop(event, 0), **keys)


class Server:
    """Serves methods on sockets that listen already; `run` it in a nursery, `stop` it once."""

    def __init__(self, methods: Methods, traffic: Traffic) -> None:
        self._methods, self.traffic = methods, traffic
        self._open: dict[str, set[Connection]] = {}
        self._turned_away = 0
        self._accepting = trio.CancelScope()
        self._serving = trio.CancelScope()
        self._seldom = Seldom()
        self._most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE

    async def run(
        self,
        listening: list[Listening],
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept and serve until `stop`, or until cancelled."""
        self.traffic.stopping = False
        with self._serving:
            async with trio.open_nursery() as connections:
                with self._accepting:
                    async with trio.open_nursery() as accepting:
                        for each in listening:
                            accepting.start_soon(self._accept, each, connections)
                        task_status.started()

    async def stop(self) -> None:
        """Take nothing new, let what is in flight finish for a few seconds, then close everything."""
        self.traffic.stopping = True
        self._accepting.cancel()
        with trio.move_on_after(FINISH_S):
            for connection in [each for here in self._open.values() for each in here]:
                await connection.finished()
        self._serving.cancel()

    async def _accept(self, listening: Listening, connections: trio.Nursery) -> None:
        while True:
            await trio.lowlevel.wait_readable(listening.sock)
            try:
                sock, _ = listening.sock.accept()
            except OSError as error:
                if error.errno in _FULL:
                    self._seldom.warn("no descriptor for another connection", errno=error.errno)
                    await trio.sleep(_PAUSE_S)
                continue
            asker = self._admitted(sock, listening.capability)
            if sock.fileno() >= self._most:
                self._seldom.warn("no descriptor to spare for another connection")
                sock.close()
            elif asker is None:
                sock.close()
            else:
                connections.start_soon(self._serve, SocketWire(sock), asker)

    def _admitted(self, sock: socket.socket, capability: Capability) -> Asker | None:
        """Return who asks, None for a peer of a uid that this socket is not for."""
        try:
            peer = peer_of(sock)
        except OSError:
            return None
        if peer.uid not in capability.uids:
            self.traffic.foreign_peers += 1
            self._seldom.warn(
                "refused a peer of another user",
                socket=capability.name,
                uid=peer.uid,
                pid=peer.pid,
                remedy="add the uid to the socket's `uids` if it may ask",
            )
            return None
        return Asker(peer, capability)

    async def _serve(self, wire: Wire, asker: Asker) -> None:
        """Serve a connection, or tell the one too many that all places are taken."""
        here = self._open.setdefault(asker.capability.name, set())
        if len(here) >= CONNECTIONS:
            await self._turn_away(wire, asker)
            return
        connection = Connection(wire, asker, self._methods, self.traffic)
        here.add(connection)
        try:
            await connection.run()
        except Exception:
            # A fault in one connection must not end the others.
            log.exception("a connection failed", socket=asker.capability.name)
        finally:
            here.discard(connection)

    async def _turn_away(self, wire: Wire, asker: Asker) -> None:
        self._seldom.warn("all connections of a socket are taken", socket=asker.capability.name)
        if self._turned_away >= _TURNED_AWAY:
            wire.close()
            return
        busy = Busy(
            f"all {CONNECTIONS} connections of this socket are taken",
            remedy="try again, and close connections that are no longer used",
            retry_after_ms=1_000,
        )
        self._turned_away += 1
        try:
            with trio.move_on_after(_TELL_S):
                await Connection(wire, asker, self._methods, self.traffic, busy).run()
        finally:
            self._turned_away -= 1
