"""MessagePack-RPC as bytes: streaming requests in, answers out. Pure: no socket, clock or task.

In: whatever a peer sends, in pieces of any size. Out: `Request`, `Response` and `Notification` values,
or `BadMessage` once the bytes can no longer be understood; and, the other way, whole encoded answers.

The public MessagePack-RPC specification: request ``[0, msgid, method, params]``, response
``[1, msgid, error, result]``, notification ``[2, method, params]``. A peer's bytes pass two parsers:

1. the framer only skips: it finds where each message ends and builds nothing. So three kilobytes that
   claim a thousand nested arrays of ten thousand places cost three kilobytes (a building `Unpacker`
   takes 66 MiB for them at once, measured).
2. the builder decodes whole messages within the size limit, and counts values while it does.
"""

from typing import Any

import msgpack
import msgspec

from memoryd.errors import BadMessage, MemorydError, TooLarge

VERSION = 1
"""The version of the methods' arguments and answers that `hello` states."""
MAX_REQUEST = 1 << 20
MAX_ANSWER = 8 << 20
MAX_VALUES = 20_000
MAX_ARRAY = 10_000
MAX_MAP = 256
MAX_DEPTH = 16
MAX_INT = (1 << 63) - 1
MAX_MSGID = (1 << 32) - 1

_REQUEST, _RESPONSE, _NOTIFICATION = 0, 1, 2
_BUFFER = 4_096
"""Bytes that a parser starts with; it grows as needed. By itself it takes a MiB and walks through it all."""
_REMEDY = "send MessagePack-RPC as docs/protocol.md says, on a new connection"

Args = dict[str, Any]


class Request(msgspec.Struct, gc=False):
    """``[0, msgid, method, params]``; `args` is None when `params` have another form than ours."""

    msgid: int
    method: str
    args: Args | None


class Response(msgspec.Struct, gc=False):
    """``[1, msgid, error, result]``: memoryd asks nothing, so nobody waits for it."""

    msgid: int


class Notification(msgspec.Struct, gc=False):
    """``[2, method, params]``; `args` as in `Request`."""

    method: str
    args: Args | None


Message = Request | Response | Notification


class Decoder:
    """Turns one peer's bytes into messages, within the limits of this module.

    After `BadMessage` the decoder is of no more use: where the next message starts is unknown.
    """

    def __init__(self) -> None:
        self._values = self._containers = 0
        self._rest = bytearray()
        self._fed = self._start = 0
        self._framer = msgpack.Unpacker(read_size=_BUFFER, max_buffer_size=2 * MAX_REQUEST)
        self._builder = msgpack.Unpacker(
            list_hook=self._array,
            object_pairs_hook=self._map,
            ext_hook=_no_extension,
            read_size=_BUFFER,
            max_buffer_size=2 * MAX_REQUEST,
            max_array_len=MAX_ARRAY,
            max_map_len=MAX_MAP,
            max_str_len=MAX_REQUEST,
            max_bin_len=MAX_REQUEST,
            max_ext_len=0,
        )

    @property
    def partial(self) -> bool:
        """Say whether a message has begun and not ended."""
        return bool(self._rest)

    def feed(self, chunk: bytes) -> tuple[list[Message], BadMessage | None]:
        """Return the messages that `chunk` (64 KiB at most) completes, and the fault after them.

        A fault is final: answer what is pending with it and close.
        """
        begun = self._start
        fault = self._frame(chunk)
        whole = self._start - begun
        if self._rest or whole < len(chunk):
            self._rest += chunk
            chunk = bytes(self._rest[:whole])
            del self._rest[:whole]
        messages: list[Message] = []
        try:
            if whole:
                self._build(chunk, messages)
        except BadMessage as error:
            fault = error
        if fault is None and len(self._rest) > MAX_REQUEST:
            fault = _too_long()
        return messages, fault

    def _frame(self, chunk: bytes) -> BadMessage | None:
        """Move `_start` behind the last whole message; return what is wrong after it, if anything."""
        skip, tell = self._framer.skip, self._framer.tell
        self._fed += len(chunk)
        try:
            self._framer.feed(chunk)
            while True:
                skip()
                end = tell()
                if end - self._start > MAX_REQUEST:
                    return _too_long()
                self._start = end
                if end == self._fed:
                    return None
        except msgpack.OutOfData:
            return None
        except (ValueError, msgpack.UnpackException):
            return _no_messagepack()

    def _build(self, whole: bytes, messages: list[Message]) -> None:
        """Decode complete messages and append them, up to the first fault."""
        self._builder.feed(whole)
        try:
            for message in self._builder:
                if self._containers > MAX_DEPTH and _too_deep(message):
                    raise BadMessage(f"a message nested over {MAX_DEPTH} deep", remedy=_REMEDY)
                self._values = self._containers = 0
                messages.append(_read(message))
        except (ValueError, OverflowError, msgpack.UnpackException):
            raise _no_messagepack() from None

    def _array(self, items: list[Any]) -> list[Any]:
        """Count and check an array's values: memory grows with values, not with bytes."""
        self._containers += 1
        self._values += len(items)
        if self._values > MAX_VALUES:
            raise _too_many()
        for item in items:
            if type(item) is int and item > MAX_INT:
                raise BadMessage("an integer beyond int64", remedy=_REMEDY)
        return items

    def _map(self, pairs: list[tuple[Any, Any]]) -> Args:
        """Count and check a map's values and keys; its keys are unique, non-empty strings."""
        self._containers += 1
        self._values += len(pairs)
        if self._values > MAX_VALUES:
            raise _too_many()
        made = dict(pairs)
        if len(made) != len(pairs) or "" in made:
            raise BadMessage("a map with an empty or repeated key", remedy=_REMEDY)
        for key, value in pairs:
            if type(key) is not str:
                raise BadMessage("a map key that is no string", remedy=_REMEDY)
            if type(value) is int and value > MAX_INT:
                raise BadMessage("an integer beyond int64", remedy=_REMEDY)
        return made


def _read(message: object) -> Message:
    """Return what a decoded message is. Raises: BadMessage when it is none of the three kinds."""
    if not isinstance(message, list):
        raise BadMessage("a message that is no array", remedy=_REMEDY)
    if len(message) == 4:
        kind, msgid, method, params = message
        if type(kind) is int and type(msgid) is int and 0 <= msgid <= MAX_MSGID:
            if kind == _REQUEST and type(method) is str:
                return Request(msgid, method, _args(params))
            if kind == _RESPONSE:
                return Response(msgid)
    elif len(message) == 3:
        kind, method, params = message
        if type(kind) is int and kind == _NOTIFICATION and type(method) is str:
            return Notification(method, _args(params))
    raise BadMessage("a message that is no request", remedy=_REMEDY)


def _args(params: object) -> Args | None:
    """Return named arguments: ``[]``, ``[{}]``, ``[[]]`` (Lua's empty table) or ``[{...}]``."""
    if isinstance(params, list) and len(params) <= 1:
        named = params[0] if params else {}
        if isinstance(named, dict):
            return named
        if named == []:
            return {}
    return None


def _too_deep(message: object) -> bool:
    """Say whether containers nest over the limit, level by level and so without recursion.

    Only asked of messages with more containers than the limit: fewer cannot nest that deep.
    """
    level = [message]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]
    return bool(level)


def _no_extension(code: int, content: bytes) -> object:
    raise BadMessage("an extension type", remedy=_REMEDY)


def _no_messagepack() -> BadMessage:
    return BadMessage("bytes that are no MessagePack, or beyond a limit", remedy=_REMEDY)


def _too_many() -> BadMessage:
    return BadMessage(f"a message with over {MAX_VALUES} values", remedy=_REMEDY)


def _too_long() -> BadMessage:
    return BadMessage(f"a message over {MAX_REQUEST} bytes", remedy=_REMEDY)


_encode = msgspec.msgpack.Encoder().encode


def answer(msgid: int, result: object, *, as_map: bool = False) -> bytes:
    """Return the encoded answer, or a `too_large` refusal in its place when it is over 8 MiB.

    Raises: TypeError, ValueError or OverflowError for a result that MessagePack cannot hold.
    """
    frame = _encode((_RESPONSE, msgid, None, result))
    if len(frame) > MAX_ANSWER:
        error = TooLarge("the answer is over 8 MiB", remedy="ask for fewer, with `limit`")
        return refusal(msgid, error, as_map=as_map)
    return frame


def refusal(msgid: int, error: MemorydError, *, as_map: bool) -> bytes:
    """Return the encoded error: ``[0, "code: message"]``, which Neovim shows, or a map.

    The map is ``{code, message, data}``, with the remedy in `data`.
    """
    shown: object = (0, f"{error.code}: {error}")
    if as_map:
        remedy = {"remedy": error.remedy} if error.remedy else {}
        shown = {"code": error.code, "message": error.message, "data": {**error.data, **remedy}}
    return _encode((_RESPONSE, msgid, shown, None))


def notification(name: str, args: Args) -> bytes:
    """Return the encoded notification; Neovim wants its parameters in an array."""
    return _encode((_NOTIFICATION, name, (args,)))
