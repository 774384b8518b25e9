"""Take one line of a log apart: whole objects from its left end, however it was damaged.

In: bytes of a line, an `Adapter`. Out: records, and where the first thing starts that is no readable
object. A writer that died left a run of NUL bytes; two writers put two objects on one line; a harness cut a
string inside an emoji and wrote half of a surrogate pair. All of that is read. Whether an object can be
read is decided from its own bytes alone, so a line may be read in pieces, as it arrives.
"""

import re
from codecs import utf_8_decode
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from memoryd.records import Brought, Record
from memoryd.sources.base import MAX_DEPTH, Adapter, NotJson, decoded, too_deep
from memoryd.sources.mend import mend_surrogates

T = TypeVar("T")
Take = Callable[[bytes], T]

_OPEN, _CLOSE = b"{}"
_NOT_BLANK = re.compile(rb"[^ \t\r]")
_AFTER_NUL = re.compile(rb"[^\0 \t\r]")
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]', re.DOTALL)


class Broken(NamedTuple):
    """No readable object stands there, for this reason."""

    reason: str


_RUN = 180
_STRIDE = _RUN // 4
_SAMPLED = bytes(0x7D if byte in b"}]" else 0x20 for byte in range(256))
_CLOSERS = re.compile(rb"[}\]]{%d}" % _RUN)
_PIECE = 4 * 1024


def suspicious(data: bytes) -> bool:
    """Say whether something in the block may be no UTF-8, or nested too deeply."""
    return not is_utf8(data) or closes_deep(data)


def is_utf8(data: bytes) -> bool:
    """Say whether `data` is UTF-8; the decoder looks only at the strings it keeps.

    Piece by piece, since most pieces are ASCII, which costs nothing.
    """
    if data.isascii():
        return True
    at = 0
    try:
        while at < len(data):
            piece = data[at : at + _PIECE]
            last = at + len(piece) == len(data)
            at += len(piece) if piece.isascii() else utf_8_decode(piece, "strict", last)[1]
    except UnicodeDecodeError:
        return False
    return True


def closes_deep(data: bytes) -> bool:
    """Say whether brackets close in a row as only deeply nested values do.

    Every row of that length has four neighbours in a sample of every 45th byte, which is quickly made.
    """
    sample = data[::_STRIDE].translate(_SAMPLED)
    return b"}}}}" in sample and _CLOSERS.search(data) is not None


def after_blank(data: bytes, at: int) -> int:
    """Return where the next byte is that is no blank."""
    found = _NOT_BLANK.search(data, at)
    return found.start() if found else len(data)


def only(data: bytes, at: int, take: Take[T]) -> T | None:
    """Return what `take` makes of the one object that all of `data` from `at` on is, as nearly always."""
    body = data[at:].lstrip(b"\0 \t\r").rstrip(b" \t\r")
    if not (body.startswith(b"{") and body.endswith(b"}")):
        return None
    try:
        return take(body)
    except NotJson:
        return None


def first(data: bytes, at: int, take: Take[T]) -> tuple[T, int] | Broken:
    """Return what `take` makes of the object at `at`, after NUL bytes maybe, and where the object ends."""
    start = _AFTER_NUL.search(data, at)
    if start is None or start[0] != b"{":
        return Broken("NUL bytes" if start is None else "no object")
    end = end_of_object(data, start.start())
    if end is None:
        return Broken("a cut object")
    try:
        return take(data[start.start() : end]), end
    except NotJson as reason:
        return Broken(str(reason))


def end_of_object(data: bytes, start: int) -> int | None:
    """Return where the object that starts at `start` ends, by counting brackets outside of strings."""
    depth = 0
    for token in _TOKEN.finditer(data, start):
        mark = data[token.start()]
        if mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
            if depth == 0:
                return token.end()
        elif token.end() - token.start() == 1:  # a string without an end
            return None
    return None


def record(data: bytes, adapter: Adapter, n: int, begun: bool) -> Record:
    """Return the record of one object.

    Raises: NotJson when it cannot be decoded, lone surrogates mended or not, or must not be believed.
    """
    if not is_utf8(data):
        raise NotJson("no UTF-8")
    if closes_deep(data) and too_deep(data, MAX_DEPTH):
        raise NotJson("nested too deeply")
    try:
        try:
            return _parsed(data, adapter, n, begun)
        except msgspec.DecodeError:
            mended = mend_surrogates(data)
            return _parsed(mended, adapter, n, begun)
    except msgspec.DecodeError:
        raise NotJson("no JSON") from None
    except RecursionError:
        raise NotJson("nested too deeply") from None


def _parsed(data: bytes, adapter: Adapter, n: int, begun: bool) -> Record:
    try:
        return adapter.parse(adapter.decoder_of(n, begun).decode(data), n, begun, data)
    except msgspec.ValidationError:
        line, odd = _loosely(data, adapter.gathered or adapter.decoder.type, adapter.telling)
    made = adapter.parse(line, n, begun, data)
    if odd:
        made.items.append(Brought(0, "record:malformed"))
    return made


_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


_fields = cache(
    msgspec.structs.fields
)  # a millisecond a call, and logs have such lines by the hundred


def _loosely(data: bytes, shape: Any, telling: frozenset[str]) -> tuple[Any, bool]:
    """Decode an object field by field, without those that have another shape than expected.

    Returns: the line, and whether a field was left out that may have brought text.
    """
    if not (isinstance(shape, type) and issubclass(shape, msgspec.Struct)):
        raise NotJson("no JSON value")
    members = _members.decode(data)
    fitting, odd = {}, False
    for field in _fields(shape):
        if (raw := members.get(field.encode_name)) is not None:
            try:
                fitting[field.name] = msgspec.json.decode(raw, type=field.type)
            except msgspec.ValidationError:
                decoded(raw)  # a number that no JSON reader agrees on is no odd shape
                odd = odd or field.name in telling
    return shape(**fitting), odd
