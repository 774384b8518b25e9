"""What the adapters of smaller formats share: lines decoded as plain objects, read with care.

In: decoded JSON of any shape. Out: values of the shape that was asked for, or nothing; items of a record. These
formats have few and short lines, so that no typed decoding is worth its while; a field of an odd shape is
taken for absent, and where it may have brought text into the conversation it raises as what nobody knows.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from memoryd.clock import milliseconds
from memoryd.records import Brought, Called, Item, Kind, Returned, Said
from memoryd.sources import base

Line = dict[str, Any]

DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Line)

MALFORMED = "record:malformed"
_FIRST_MS = 100_000_000_000
"""1973: numbers below it are no milliseconds of a session."""


def obj(value: object) -> Line:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objs(value: object) -> list[Line]:
    """Return the objects of an array. Raises: NotJson for more than an id can name."""
    found = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    if len(found) > base.MAX_BLOCKS // 4:
        raise base.NotJson(f"more than {base.MAX_BLOCKS // 4} content blocks")
    return found


def string(value: object) -> str:
    """Return `value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def when(value: object) -> int | None:
    """Return milliseconds since 1970 of an RFC 3339 string or of a number of milliseconds or seconds."""
    if isinstance(value, str):
        try:
            return milliseconds(msgspec.convert(value, datetime))
        except msgspec.ValidationError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value >= _FIRST_MS:
        return int(value) if value < 1e15 else None
    return int(value * 1000) if value >= _FIRST_MS / 1000 else None


def say(items: list[Item], block: int, kind: Kind, words: object) -> None:
    """Add words that are not blank."""
    if isinstance(words, str) and words and not words.isspace():
        items.append(Said(block, kind, words))


def odd(items: list[Item], block: int, value: object) -> None:
    """Add what raises, where `value` stands in a place of words, has another shape and carries text."""
    if base.carries_text(value):
        items.append(Brought(block, MALFORMED))


def args_of(value: object) -> object:
    """Return a call's arguments: decoded where they are JSON in a string, the string where they are none.

    Raises: NotJson for depth over 200.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return base.decoded(msgspec.Raw(value.encode("utf-8", "replace")))
        except base.NotJson:
            return value
    return base.checked(value)


def returned(
    block: int, call: object, tool: object = None, *, ok: bool | None = None, said: object = None
) -> Returned:
    """Return the item of a result; `said` is kept undecoded unless it is told that it went well."""
    told = None
    if ok is not True and said is not None:
        told = msgspec.Raw(msgspec.json.encode(said))
    return Returned(block, base.text(call), base.text(tool), ok, told=told)


def both(
    items: list[Item],
    block: int,
    call: object,
    tool: object,
    args: object,
    *,
    ok: bool | None,
    said: object = None,
) -> None:
    """Add a call and its result from one place: the result takes the block after the call's."""
    name = base.text(call) or f"at {block}"
    items.append(Called(block, name, string(tool), args_of(args)))
    items.append(returned(block + 1, name, ok=ok, said=said))


def flag(value: object, *, of: bool = True) -> bool | None:
    """Return a boolean (turned round unless `of`), None for anything else."""
    return (value if of else not value) if isinstance(value, bool) else None


def has(record: Mapping[str, object], *keys: str) -> bool:
    """Say whether a record has all of these fields."""
    return all(key in record for key in keys)
