"""Speak to a running memoryd from trio: calls side by side, notifications, a connection that comes back.

In: a socket's name (or path), methods with named arguments, topics. Out: decoded answers, errors of
`memoryd.errors`, and notifications as they come. Imports trio, msgpack, `errors`, `paths` and the blocking client.

::

    from memoryd.client_trio import connect

    async with connect("agent") as memory:
        answer = await memory.call("recall", query="retry backoff")
        await memory.subscribe("record", "note")
        async for topic, told in memory:          # ends when the `async with` does
            print(topic, told)

- A call takes `timeout` seconds at most (``deadline_ms=`` replaces it for one call). Cancelling it, or its
  time running out, takes it back at the daemon too.
- When the daemon goes away, calls in flight raise `Unavailable`: whether they were carried out is not known.
  The client connects again by itself; a later call waits for that until its own time is over.
- After it has connected again it asks for the same topics, and says ``("lagged", {"missed": None})``: what
  happened meanwhile was told to nobody. The daemon says `lagged` with a number where this side reads too
  slowly, and so does the client where nobody takes its notifications.
"""

import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgpack
import trio

from memoryd import errors, paths
from memoryd.client import MAX_ANSWER, PROTOCOL, error_of, packed, path_of

QUEUED = 1_000
"""Notifications that wait for whoever iterates; what comes beyond is counted and dropped."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 2.0
_REQUEST, _RESPONSE, _NOTIFICATION = 0, 1, 2
_CHUNK = 1 << 16


class Notification(NamedTuple):
    """What memoryd tells: a topic (or ``lagged``), and the map that goes with it."""

    topic: str
    told: dict[str, Any]


@asynccontextmanager
async def connect(
    where: str | Path = "memoryd",
    *,
    timeout: float = 5.0,  # noqa: ASYNC109 - of each call; `trio.fail_after` around one works as well
    env: Mapping[str, str] = os.environ,
) -> AsyncIterator["Client"]:
    """Connect to the socket named `where` (a path when it holds a slash), say hello, stay connected.

    Raises: ConfigError, Unavailable, TimedOut when there is nobody at the start.
    """
    path = where if isinstance(where, Path) else path_of(where, env)
    client = Client(path, timeout)
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            await nursery.start(client.stay)
            yield client
        except Exception as error:  # noqa: BLE001 - raised below, as it is: a nursery would wrap it
            raised = error
        client.close()
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised


class Client:
    """A connection that is kept up; made by `connect`. `server` is the latest answer to `hello`."""

    server: dict[str, Any]

    def __init__(self, path: Path, timeout: float) -> None:
        """Speak to the socket at `path`; `stay` connects."""
        self._path, self._timeout = path, timeout
        self._link: _Link | None = None
        self._linked = trio.Event()
        self._topics: dict[str, Any] | None = None
        self._inbox = _Inbox()

    async def call(self, method: str, /, **args: Any) -> Any:
        """Return the answer to `method`. Raises: MemorydError, by the code that the daemon sent."""
        patience = args.get("deadline_ms", self._timeout * 1_000) / 1_000
        args.setdefault("deadline_ms", max(1, int(patience * 1_000)))
        with trio.move_on_after(patience):
            while self._link is None:
                await self._linked.wait()
            return await self._link.ask(method, args)
        if self._link is None:
            raise _nobody(self._path)
        raise errors.TimedOut(
            f"no answer to {method} in time", remedy="see `bxctl status`, or allow more time"
        )

    async def subscribe(self, *topics: str, max_class: str | None = None) -> tuple[str, ...]:
        """Be told of `topics` from now on (none: of all that the socket allows); return which those are."""
        args: dict[str, Any] = {"topics": list(topics)} if topics else {}
        if max_class is not None:
            args["max_class"] = max_class
        answer = await self.call("subscribe", **args)
        self._topics = args
        return tuple(answer["topics"])

    def __aiter__(self) -> Self:
        """Return the client itself, as the notifications to come."""
        return self

    async def __anext__(self) -> Notification:
        """Return the next notification, waiting for it."""
        found = await self._inbox.take()
        if found is None:
            raise StopAsyncIteration
        return found

    def close(self) -> None:
        """End the iteration of whoever waits for notifications."""
        self._inbox.end()

    async def stay(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Be connected until cancelled; started after the first hello. Raises: as `connect`."""
        first, pause = True, FIRST_PAUSE_S
        while True:
            try:
                with trio.move_on_after(self._timeout) as dialling:
                    stream = await _dial(self._path)
                if dialling.cancelled_caught:
                    raise errors.TimedOut("memoryd takes no connection", remedy="try again")
                async with stream, trio.open_nursery() as nursery:
                    link = _Link(stream, self._inbox, self._lost)
                    nursery.start_soon(link.write)
                    nursery.start_soon(self._greet, link, first, task_status)
                    await link.read()
                    nursery.cancel_scope.cancel()
                first, pause = False, FIRST_PAUSE_S
            except* errors.MemorydError as refused:
                if first:
                    raise _first_of(refused) from None
            await trio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)

    async def _greet(self, link: "_Link", first: bool, task_status: trio.TaskStatus[None]) -> None:
        """Say hello on a new connection, ask for the same topics again, and let calls through."""
        about = {"client": "memoryd.client_trio", "protocol": PROTOCOL, "errors": "map"}
        with trio.move_on_after(self._timeout) as patience:
            self.server = await link.ask("hello", about)
            if self._topics is not None:
                await link.ask("subscribe", self._topics)
        if patience.cancelled_caught:
            raise errors.TimedOut("memoryd does not say hello", remedy="see `bxctl status`")
        if not link.closed:  # it may have said hello and left
            self._link = link
            self._linked.set()
        if first:
            task_status.started()
        elif self._topics is not None:
            self._inbox.put(Notification("lagged", {"missed": None}))

    def _lost(self) -> None:
        if self._link is not None:
            self._link = None
            self._linked = trio.Event()


class _Inbox:
    """Notifications on their way to whoever iterates; never waited for by whoever puts one in."""

    def __init__(self) -> None:
        self._waiting: deque[Notification] = deque()
        self._missed = 0
        self._ended = False
        self._changed = trio.lowlevel.ParkingLot()

    def put(self, one: Notification) -> None:
        """Keep a notification, or count it as missed where too many wait."""
        if self._missed or len(self._waiting) >= QUEUED:
            self._missed += 1
            return
        self._waiting.append(one)
        self._changed.unpark_all()

    async def take(self) -> Notification | None:
        """Return the next one, `lagged` behind those that were kept; None at the end."""
        await trio.lowlevel.checkpoint()
        while True:
            if self._waiting:
                return self._waiting.popleft()
            if self._missed:
                told, self._missed = {"missed": self._missed}, 0
                return Notification("lagged", told)
            if self._ended:
                return None
            await self._changed.park()

    def end(self) -> None:
        """Let whoever waits know that nothing will come."""
        self._ended = True
        self._changed.unpark_all()


class _Answer:
    """A request in flight."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.error: errors.MemorydError | None = None
        self.result: Any = None


class _Link:
    """One connection: frames are written whole by one task, whoever is cancelled meanwhile."""

    def __init__(self, stream: trio.SocketStream, inbox: _Inbox, lost: Callable[[], None]) -> None:
        self._stream, self._inbox, self._lost = stream, inbox, lost
        self._out = bytearray()
        self._more = trio.Event()
        self._asked: dict[int, _Answer] = {}
        self._msgid = 0
        self.closed = False

    async def ask(self, method: str, args: Mapping[str, Any]) -> Any:
        """Return the answer. Raises: what the daemon says; Unavailable when it goes away; BadRequest."""
        if self.closed:
            await trio.lowlevel.checkpoint()
            raise _gone()
        self._msgid = msgid = (self._msgid + 1) & 0xFFFFFFFF
        self._send([_REQUEST, msgid, method, [dict(args)]])
        answer = self._asked[msgid] = _Answer()
        try:
            await answer.done.wait()
        except trio.Cancelled:
            self._send([_NOTIFICATION, "cancel", [{"msgid": msgid}]])
            raise
        finally:
            self._asked.pop(msgid, None)
        if answer.error is not None:
            raise answer.error
        return answer.result

    async def read(self) -> None:
        """Take answers and notifications until the connection ends."""
        unpacker = msgpack.Unpacker(max_buffer_size=2 * MAX_ANSWER)
        try:
            while chunk := await self._stream.receive_some(_CHUNK):
                unpacker.feed(chunk)
                for message in unpacker:
                    self._take(message)
        except (trio.BrokenResourceError, trio.ClosedResourceError, ValueError):
            pass
        finally:
            self.close()

    async def write(self) -> None:
        """Send what there is to send."""
        while True:
            await self._more.wait()
            self._more = trio.Event()
            frames, self._out = self._out, bytearray()
            try:
                await self._stream.send_all(frames)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return  # the reader finds out why

    def close(self) -> None:
        """Tell everybody who waits for an answer that there will be none."""
        self.closed = True
        self._lost()
        for answer in self._asked.values():
            if not answer.done.is_set():
                answer.error = _gone()
                answer.done.set()
        self._stream.socket.close()

    def _send(self, message: object) -> None:
        self._out += packed(message)
        self._more.set()

    def _take(self, message: object) -> None:
        match message:
            case [1, int(msgid), error, result] if msgid in self._asked:
                answer = self._asked[msgid]
                answer.error = None if error is None else error_of(error)
                answer.result = result
                answer.done.set()
            case [2, str(topic), [dict(told)]]:
                self._inbox.put(Notification(topic, told))


async def _dial(path: Path) -> trio.SocketStream:
    paths.checked_socket(path)
    try:
        return await trio.open_unix_socket(path)
    except OSError:
        raise _nobody(path) from None


def _nobody(path: Path) -> errors.Unavailable:
    return errors.Unavailable(
        f"memoryd is not running: nobody listens at {path}", remedy="start it with `memoryd`"
    )


def _gone() -> errors.Unavailable:
    return errors.Unavailable("memoryd closed the connection", remedy="see its log; ask again")


def _first_of(group: BaseExceptionGroup[errors.MemorydError]) -> errors.MemorydError:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    if not isinstance(found, errors.MemorydError):
        raise TypeError("a group of refusals holds something else")
    return found
