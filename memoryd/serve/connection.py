"""One connection: requests in, answers out as they finish, and nothing a peer does reaches others.

In: a `Wire`, the `Asker` behind it, the table of methods. Out: bytes, until the peer leaves, is idle for
ten minutes, does not read its answers, or sends what nobody can decode. The reader task decodes and
starts requests (a quick method is answered on the spot), each slower one is a task of its own under its
deadline, and one writer task sends whatever the socket did not take at once.
"""

import secrets

import msgspec
import structlog
import trio

from memoryd import protocol
from memoryd.db import Deadline
from memoryd.errors import (
    BadMessage,
    BadRequest,
    Busy,
    Cancelled,
    Internal,
    MemorydError,
    ShuttingDown,
    TimedOut,
)
from memoryd.protocol import Notification, Request
from memoryd.serve.calls import Common, Method, Methods, Quick, Slow, admit
from memoryd.serve.peers import Asker
from memoryd.serve.wire import Wire

IN_FLIGHT = 32
IDLE_S = 600.0
MESSAGE_S = 10.0
"""How long a message may take from its first byte to its last."""
SEND_S = 10.0
"""How long answers may wait for the peer to read them."""
LINGER_S = 0.25
"""How long a connection that is given up stays open for its last answers to be read."""
UNREAD = 256 << 10
"""Bytes that may wait to be read while notifications are still added to them; beyond it they are dropped."""
QUEUED = protocol.MAX_ANSWER
"""Bytes of answers a peer may leave unread before nothing more is read from it."""
_BREATH = 64
"""Messages taken in one go before other tasks get their turn."""
_RETRY_MS = 50
_NO_MEMORY_RETRY_MS = 1_000

log = structlog.get_logger()


class Traffic(msgspec.Struct):
    """What all connections share: whether the daemon stops, and counts for the owner's status."""

    stopping: bool = False
    connections: int = 0
    in_flight: int = 0
    requests: int = 0
    foreign_peers: int = 0
    bad_messages: int = 0
    unknown_notifications: int = 0
    unasked_responses: int = 0
    slow_readers: int = 0
    internal_errors: int = 0


class Job:
    """A request in flight; cancelling it reaches both its task and the thread that works for it."""

    def __init__(self, seconds: float) -> None:
        self.scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        self.deadline = Deadline(seconds)

    def cancel(self) -> None:
        """End the request; its asker gets `cancelled`."""
        self.deadline.cancel()
        self.scope.cancel()

    def ended(self) -> MemorydError:
        """Return why the request ended without a result."""
        if self.deadline.cancelled:
            return Cancelled("the request was cancelled")
        return TimedOut("the deadline passed", remedy="ask for less, or allow more deadline_ms")


class Connection:
    """Serves one peer until it is gone; `run` returns when all of its requests have ended."""

    def __init__(
        self,
        wire: Wire,
        asker: Asker,
        methods: Methods,
        traffic: Traffic,
        turned_away: MemorydError | None = None,
    ) -> None:
        """Take a connected peer; `turned_away`: why every one of its requests is refused."""
        self._wire, self._asker, self._methods, self._traffic = wire, asker, methods, traffic
        self._turned_away = turned_away
        self._decoder = protocol.Decoder()
        self._jobs: dict[int, Job] = {}
        self._out = bytearray()
        self._sending = self._missed = 0
        self._unsent = trio.Event()
        self._moved = trio.lowlevel.ParkingLot()
        self._heard = self._begun = 0.0
        self._nursery: trio.Nursery

    async def run(self) -> None:
        """Serve until the peer leaves or the surrounding scope is cancelled, then close."""
        self._traffic.connections += 1
        self._heard = trio.current_time()
        self._asker.post = self._post
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._write)
                self._nursery.start_soon(self._end_when_idle)
                try:
                    await self._read()
                finally:
                    self._cancel_all()
                self._nursery.cancel_scope.cancel()
        finally:
            self._asker.post = None
            self._traffic.connections -= 1
            self._wire.close()

    async def finished(self) -> None:
        """Return when nothing is in flight and every answer has been handed to the socket."""
        while self._jobs or self._out or self._sending:
            await self._moved.park()

    async def _read(self) -> None:
        while chunk := await (
            self._rest_of_message() if self._decoder.partial else self._wire.receive()
        ):
            self._heard = trio.current_time()
            begun = not self._decoder.partial
            messages, fault = self._decoder.feed(chunk)
            if begun or messages:
                self._begun = self._heard
            for number, message in enumerate(messages, 1):
                self._take(message)
                if number % _BREATH == 0:
                    self._flush()
                    await trio.lowlevel.checkpoint()
                    await self._room()
            self._flush()
            if fault is not None:
                await self._give_up(fault)
                return
            if self._out or self._sending:
                await self._room()

    async def _rest_of_message(self) -> bytes:
        """Return the next bytes of a message that has begun, none when they do not come in time."""
        with trio.move_on_at(self._begun + MESSAGE_S):
            return await self._wire.receive()
        await self._give_up(
            BadMessage(
                f"a message took over {MESSAGE_S:.0f} s to arrive",
                remedy="send each message at once, on a new connection",
            )
        )
        return b""

    def _take(self, message: protocol.Message) -> None:
        if isinstance(message, Request):
            self._request(message)
        elif not isinstance(message, Notification):
            self._traffic.unasked_responses += 1
        elif message.method == "cancel":
            msgid = (message.args or {}).get("msgid")
            if type(msgid) is int and msgid in self._jobs:
                self._jobs[msgid].cancel()
        else:
            self._traffic.unknown_notifications += 1

    def _request(self, request: Request) -> None:
        """Answer a request on the spot, or start its task."""
        self._traffic.requests += 1
        try:
            method, args = self._admit(request)
            if isinstance(method, Quick):
                self._answer(request.msgid, method.run(self._asker, args))
                return
        except Exception as error:  # noqa: BLE001 - a fault of one method is one refusal
            self._refuse(request.msgid, self._known(error, request.method))
            return
        job = self._jobs[request.msgid] = Job(args.deadline_ms / 1000)
        self._traffic.in_flight += 1
        self._nursery.start_soon(self._work, request, method, args, job)

    def _admit(self, request: Request) -> tuple[Method, Common]:
        if request.msgid in self._jobs:
            raise BadRequest("a request with this msgid is in flight", remedy="count msgids up")
        if self._turned_away is not None:
            raise self._turned_away
        if self._traffic.stopping:
            raise ShuttingDown("memoryd is stopping", remedy="ask again once it is back")
        if len(self._jobs) >= IN_FLIGHT:
            raise Busy(
                f"{IN_FLIGHT} requests are in flight on this connection",
                remedy="wait for an answer first",
                retry_after_ms=_RETRY_MS,
            )
        return admit(self._methods, self._asker.capability, request)

    async def _work(self, request: Request, method: Slow, args: Common, job: Job) -> None:
        """Run one request to its answer; whatever goes wrong in it ends here."""
        error: MemorydError | None = None
        result: object = None
        try:
            with job.scope:
                result = await method.run(self._asker, args, job.deadline)
                await self._room()
            if job.scope.cancelled_caught:
                error = job.ended()
        except Exception as fault:  # noqa: BLE001 - a fault of one method is one refusal
            error = self._known(fault, request.method)
        finally:
            self._traffic.in_flight -= 1
            self._heard = trio.current_time()
        if self._jobs.get(request.msgid) is job:
            del self._jobs[request.msgid]
            if error is None:
                self._answer(request.msgid, result)
            else:
                self._refuse(request.msgid, error)
            self._flush_soon()

    def _answer(self, msgid: int, result: object) -> None:
        try:
            self._out += protocol.answer(msgid, result, as_map=self._asker.as_map)
        except (TypeError, ValueError, OverflowError) as error:
            self._refuse(msgid, self._known(error, "answer"))

    def _post(self, name: str, args: dict[str, object]) -> None:
        """Send a notification; where the peer does not read, count it as missed instead."""
        if self._missed or len(self._out) + self._sending > UNREAD:
            self._missed += 1
            return
        self._out += protocol.notification(name, args)
        self._flush_soon()

    def _tell_missed(self) -> None:
        """Tell a peer that reads again what it was not told, behind all that was still sent before."""
        if self._missed:
            self._out += protocol.notification("lagged", {"missed": self._missed})
            self._missed = 0

    def _refuse(self, msgid: int, error: MemorydError) -> None:
        self._out += protocol.refusal(msgid, error, as_map=self._asker.as_map)

    def _known(self, error: Exception, method: str) -> MemorydError:
        """Return what the peer is told of `error`: never the words of an exception that is no refusal."""
        error = _gravest(error)
        if isinstance(error, MemoryError):
            return Busy(
                "there is no memory for that now",
                remedy="ask for less, or later",
                retry_after_ms=_NO_MEMORY_RETRY_MS,
            )
        if isinstance(error, MemorydError) and not isinstance(error, Internal):
            return error
        error_id = secrets.token_hex(4)
        self._traffic.internal_errors += 1
        log.error("a method failed", method=method, error_id=error_id, exc_info=error)
        return Internal(
            "a fault of memoryd", remedy=f"find {error_id} in its log", error_id=error_id
        )

    async def _give_up(self, fault: BadMessage) -> None:
        """Answer every pending request with `fault`: the peer's user reads why it was closed.

        Neovim lets the end of a stream overwrite an answer that it has not looked at yet, so the end
        follows a moment later; what the peer still sends is thrown away until then.
        """
        self._traffic.bad_messages += 1
        pending = bool(self._jobs)
        for msgid in self._jobs:
            self._refuse(msgid, fault)
        self._cancel_all()
        self._flush()
        await self._room(0)
        if pending:
            with trio.move_on_after(LINGER_S):
                while await self._wire.receive():
                    pass

    def _cancel_all(self) -> None:
        """End every request; threads that work for them stop within microseconds."""
        for job in self._jobs.values():
            job.cancel()
        self._jobs.clear()

    def _flush_soon(self) -> None:
        """Send at once when nothing else is under way; else with what ends at the same time."""
        if self._jobs:
            self._unsent.set()
        else:
            self._flush()

    def _flush(self) -> None:
        """Hand the socket what it takes now; the writer task sends the rest."""
        if not self._out or self._sending:
            return
        try:
            done = self._wire.send_nowait(self._out)
        except trio.BrokenResourceError:
            self._nursery.cancel_scope.cancel()
            return
        del self._out[:done]
        if self._out:
            self._unsent.set()
        elif self._moved:
            self._moved.unpark_all()

    async def _room(self, limit: int = QUEUED) -> None:
        """Return once at most `limit` bytes of answers wait to be sent."""
        while len(self._out) + self._sending > limit:
            await self._moved.park()

    async def _write(self) -> None:
        while True:
            await self._unsent.wait()
            self._unsent = trio.Event()
            while self._out:
                content, self._out = self._out, bytearray()
                self._sending = len(content)
                if not await self._send(content):
                    self._nursery.cancel_scope.cancel()
                    return
                self._sending = 0
                if not self._out:
                    self._tell_missed()
                self._moved.unpark_all()

    async def _send(self, content: bytearray) -> bool:
        """Say whether the peer took `content` in time."""
        try:
            with trio.move_on_after(IDLE_S if self._asker.told else SEND_S) as scope:
                await self._wire.send(content)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        self._traffic.slow_readers += scope.cancelled_caught
        return not scope.cancelled_caught

    async def _end_when_idle(self) -> None:
        """Close a connection on which nothing was asked and nothing is under way for ten minutes."""
        while (due := self._heard + IDLE_S) > trio.current_time():
            await trio.sleep_until(due)
            if self._jobs or self._asker.told:
                self._heard = trio.current_time()
        self._nursery.cancel_scope.cancel()


def _gravest(error: Exception) -> Exception:
    """Return the one error of a group that its asker is told: a fault of ours before any refusal."""
    if not isinstance(error, ExceptionGroup):
        return error
    each = [_gravest(inner) for inner in error.exceptions]
    return next((one for one in each if not isinstance(one, MemorydError)), each[0])
