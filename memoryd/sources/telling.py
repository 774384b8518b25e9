"""Tell a log's format by its first records, never by its name or place, which are often wrong.

In: an open file, or the place of one that is read whole. Out: the adapter, None while there is too little in
it, or in a few words why there is none.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from memoryd.records import Record
from memoryd.sources import ADAPTERS, lines, sqlite, whole
from memoryd.sources.base import Adapter

PEEKED = 32
"""Records by which a format is told."""

_BLOCK = 16 * 1024
_MOST = 4 * lines.LINE_LIMIT
_objects = msgspec.json.Decoder(dict[str, Any])


def tell(descriptor: int) -> Adapter | str | None:
    """Return the adapter that an open file's first records ask for, or why there is none.

    None: there is too little in it to say. A record decides for the format that it can only be of, unless
    one before it was none of that format; unreadable lines count for nothing. Raises: OSError.
    """
    if (sure := _by_its_first(descriptor)) is not None:
        return sure
    records: list[dict[str, Any]] = []
    broken = 0
    for batch in lines.read(
        descriptor,
        lines.Position(),
        _peeking(records),
        budget_bytes=_MOST,
        block_bytes=_BLOCK,
    ):
        broken += sum(len(record.items) for record in batch.records)
        if len(records) >= PEEKED:
            break
    if not records:
        return "holds no JSON object" if broken else None
    return _decided(records[:PEEKED])


def _by_its_first(descriptor: int) -> Adapter | None:
    """Return what the first line alone decides, as nearly always; None where more has to be looked at."""
    line, newline, _ = os.pread(descriptor, _BLOCK, 0).partition(b"\n")
    try:
        record = _objects.decode(line) if newline else None
    except (msgspec.DecodeError, RecursionError):
        return None
    found = None if record is None else _decided([record])
    return found if isinstance(found, Adapter) else None


def tell_whole(root: Path, log: str) -> Adapter | str | None:
    """Return the adapter of a document, a text or a database, or why there is none, as `tell` does.

    Only the adapters that want its name are asked. Raises: OSError, but for what is half there: None.
    """
    asked = [
        (adapter, how)
        for adapter in ADAPTERS.values()
        if (how := adapter.whole_of(log)) is not None
    ]
    forms = {how.form for _, how in asked}
    try:
        shown = {form: _SHOWN[form](root, log) for form in forms}
    except whole.NotNow as error:
        return None if "half" in str(error) else str(error)
    if not any(shown.values()):
        return None
    for adapter, how in asked:
        if how.claims(shown[how.form]):
            return adapter
    return "no format that is known"


def _start(root: Path, log: str) -> str:
    return whole.content(root, log).lstrip()[:_START].decode("utf-8", "replace")


_START = 256
_SHOWN = {"json": whole.document, "text": _start, "sqlite": sqlite.tables}


def _decided(records: list[dict[str, Any]]) -> Adapter | str | None:
    """Return what the first record that can only be of one format decides, whatever comes after it.

    So a file that is looked at early and one that is looked at whole are told alike.
    """
    possible = list(ADAPTERS.values())
    for record in records:
        left = []
        for adapter in possible:
            claim = adapter.claims(record)
            if claim:
                return adapter
            if claim is None:
                left.append(adapter)
        possible = left
    return None if possible else "no format that is known"


def _peeking(records: list[dict[str, Any]]) -> Adapter:
    """Return an adapter that only gathers what it is shown."""

    def gather(line: dict[str, Any], n: int, begun: bool, raw: bytes) -> Record:
        records.append(line)
        return Record(n, None, [])

    return Adapter(
        id="any",
        version=0,
        decoder=_objects,
        find=lambda home, env: [],
        wants=lambda log: True,
        claims=lambda record: None,
        parse=gather,
    )
