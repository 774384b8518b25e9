"""Speak to a running memoryd from ordinary, blocking Python.

In: a socket's name (or path), a method and its named arguments. Out: the decoded answer, or an
error of `memoryd.errors` by the code the daemon sent. Imports the standard library, msgpack,
`errors` and `paths` alone, so that a hook can afford it.

::

    from memoryd.client import connect

    with connect("memoryd") as memory:             # the owner's socket; or "agent", or a path
        memory.server["classes"]                   # the daemon's answer to `hello`
        answer = memory.call("recall", query="retry backoff", limit=5)
        for hit in answer["hits"]:
            print(hit["class"], hit["snippet"])
        for page in memory.pages("dump"):          # follows `cursor` to the end
            ...

How long it may take, each bound kept by this side even when the daemon hangs:

- `timeout` (seconds, 5 by default) bounds connecting with its `hello`, and every later call; it is
  also sent as the call's `deadline_ms`, so the daemon stops working when nobody waits any more.
- `deadline_ms=` in a call replaces `timeout` for that call; its answer may take 0.5 s more.
- `budget` (seconds) bounds the connection's whole life: ``connect(budget=0.1)`` costs a hook 0.1 s
  at most, whatever it asks.

What it raises: `Unavailable` (nobody listens, or the daemon closed the connection), `Busy` (the
queue of waiting connections stayed full), `TimedOut` (no answer in time), `TooLarge` (an answer
beyond the limit), `ConfigError` (no such socket path is possible), `BadRequest` (an argument that
cannot be sent), and what the daemon answered.
`error.data` holds what the daemon added, `error.remedy` what to do. A client serves one thread at a
time.
"""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgpack

from memoryd import errors, paths

PROTOCOL = 1
MAX_ANSWER = 8 << 20
"""An answer's largest size in bytes; the daemon sends none larger (docs/protocol.md)."""
_GRACE_S = 0.5
_RETRY_S = 0.005
_REQUEST = 0
_UINT64, _MAX_INT = b"\xcf", (1 << 63) - 1


def connect(
    where: str | Path = "memoryd",
    *,
    timeout: float = 5.0,
    budget: float | None = None,
    env: Mapping[str, str] = os.environ,
) -> "Client":
    """Connect to the socket named `where` (a path when it holds a slash) and say hello.

    Raises: ConfigError, Unavailable, Busy, TimedOut; see the module for the two time bounds.
    """
    path = where if isinstance(where, Path) else path_of(where, env)
    now = time.monotonic()
    ends = None if budget is None else now + budget
    until = _earlier(now + timeout, ends)
    client = Client(_dial(path, until), path, timeout, ends)
    try:
        about: dict[str, Any] = {"client": "memoryd.client", "protocol": PROTOCOL, "errors": "map"}
        client.server = client.ask("hello", about, until)
    except BaseException:
        client.close()
        raise
    return client


def packed(message: object) -> bytes:
    """Return a message as it is sent. Raises: BadRequest for a value that MessagePack cannot hold."""
    try:
        frame: bytes = msgpack.packb(message)
        if _UINT64 in frame and _too_large(message):
            raise OverflowError
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.BadRequest(
            "an argument holds what cannot be sent", remedy=f"leave it out: {_why(error)}"
        ) from None
    return frame


def _too_large(value: object) -> bool:
    """Say whether a whole number is in there that MessagePack can hold and the daemon ends the connection for."""
    if isinstance(value, dict):
        return any(map(_too_large, value)) or any(map(_too_large, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_too_large, value))
    return isinstance(value, int) and value > _MAX_INT


def _why(error: Exception) -> str:
    """Return what was wrong with a value, and never the value: it may be anything."""
    if isinstance(error, UnicodeEncodeError):
        return "text is Unicode without halves of surrogate pairs"
    if isinstance(error, OverflowError):
        return "whole numbers have 64 bits, one of them for the sign"
    return "there are maps, lists, text, bytes, numbers, booleans and null, 500 deep at most"


class Client:
    """One open connection; made by `connect`. `server` is the answer to `hello`."""

    server: dict[str, Any]

    def __init__(self, sock: socket.socket, path: Path, timeout: float, ends: float | None) -> None:
        """Take a connected socket; `ends` is when (monotonic seconds) the budget is used up."""
        self._sock, self._path, self._timeout, self._ends = sock, path, timeout, ends
        self._msgid = -1
        self._unpacker = msgpack.Unpacker(max_buffer_size=2 * MAX_ANSWER)

    def call(self, method: str, /, **args: Any) -> Any:
        """Ask and return the decoded answer. Raises: the error that the daemon answered."""
        now = time.monotonic()
        if isinstance(deadline := args.get("deadline_ms"), int):
            return self.ask(method, args, _earlier(now + deadline / 1000 + _GRACE_S, self._ends))
        until = _earlier(now + self._timeout, self._ends)
        args["deadline_ms"] = max(1, int((until - now) * 1000))
        return self.ask(method, args, until)

    def ask(self, method: str, args: Mapping[str, Any], until: float) -> Any:
        """Send exactly `args` and wait for the answer until `until` (monotonic seconds)."""
        self._msgid = (self._msgid + 1) & 0xFFFFFFFF
        try:
            self._send(packed([_REQUEST, self._msgid, method, [args]]), until)
            return self._answer(self._msgid, until)
        except TimeoutError:
            raise errors.TimedOut(
                f"no answer to {method} in time", remedy="see `bxctl status`, or allow more time"
            ) from None

    def pages(self, method: str, /, **args: Any) -> Iterator[Any]:
        """Yield the answer and every further page of it, following `cursor` until it is null."""
        while True:
            page = self.call(method, **args)
            yield page
            args["cursor"] = page.get("cursor")
            if args["cursor"] is None:
                return

    def close(self) -> None:
        """Close the connection; the daemon cancels what it still did for it."""
        self._sock.close()

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def _send(self, frame: bytes, until: float) -> None:
        self._sock.settimeout(_left(until))
        try:
            self._sock.sendall(frame)
        except BrokenPipeError:
            pass  # the daemon closed; why it did may be waiting to be read
        except ConnectionError:
            raise _closed(self._path) from None

    def _answer(self, msgid: int, until: float) -> Any:
        """Return the result for `msgid`; late answers to others and notifications are skipped."""
        while True:
            for message in self._unpacker:
                match message:
                    case [1, int(answered), error, result] if answered == msgid:
                        if error is not None:
                            raise error_of(error)
                        return result
            self._receive(until)

    def _receive(self, until: float) -> None:
        self._sock.settimeout(_left(until))
        try:
            chunk = self._sock.recv(1 << 16)
        except ConnectionError:
            chunk = b""
        if not chunk:
            raise _closed(self._path)
        try:
            self._unpacker.feed(chunk)
        except msgpack.BufferFull:
            raise errors.TooLarge("an answer over 8 MiB", remedy="ask for fewer") from None


def path_of(where: str, env: Mapping[str, str]) -> Path:
    """Return the path of the socket named `where`, or that path itself when it holds a slash."""
    return paths.checked_socket(Path(where)) if "/" in where else paths.socket_path(env, where)


def _dial(path: Path, until: float) -> socket.socket:
    """Return a connected socket; a full queue (EAGAIN, unix(7)) is tried again until `until`."""
    paths.checked_socket(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        while True:
            try:
                sock.settimeout(_left(until))
                sock.connect(os.fspath(path))
                return sock
            except BlockingIOError:
                time.sleep(min(_RETRY_S, _left(until)))
    except TimeoutError:
        sock.close()
        raise errors.Busy(f"memoryd takes no connection at {path}", remedy="try again") from None
    except (FileNotFoundError, ConnectionError, NotADirectoryError):
        sock.close()
        raise errors.Unavailable(
            f"memoryd is not running: nobody listens at {path}", remedy="start it with `memoryd`"
        ) from None
    except OSError as error:
        sock.close()
        raise errors.Unavailable(
            f"{path} cannot be opened: {error.strerror}", remedy="check whose socket that is"
        ) from None


def error_of(error: Any) -> errors.MemorydError:
    """Return the exception for an error off the wire, in either of its two renderings."""
    if isinstance(error, dict):
        added = error.get("data")
        added = {str(key): value for key, value in added.items()} if isinstance(added, dict) else {}
        kind = errors.BY_CODE.get(str(error.get("code")), errors.Internal)
        remedy = str(added.pop("remedy", ""))
        made = kind(str(error.get("message", "")), remedy=remedy)
        made.data.update(added)
        return made
    text = error[1] if isinstance(error, list) and len(error) == 2 else error
    code, _, message = str(text).partition(": ")
    return errors.BY_CODE.get(code, errors.Internal)(message or code)


def _closed(path: Path) -> errors.Unavailable:
    return errors.Unavailable(f"memoryd closed the connection at {path}", remedy="see its log")


def _earlier(moment: float, other: float | None) -> float:
    return moment if other is None else min(moment, other)


def _left(until: float) -> float:
    """Return the seconds until `until`. Raises: TimeoutError when there are none."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
