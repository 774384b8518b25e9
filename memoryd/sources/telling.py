"""Tell a log's format by its first records, never by its name or place, which are often wrong.

In: an open file. Out: the adapter, None while there is too little in it, or in a few words why there is none.
"""

from typing import Any

import msgspec

from memoryd.records import Record
from memoryd.sources import ADAPTERS, lines
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

    def gather(line: dict[str, Any], n: int, begun: bool, raw: bytes | None = None) -> Record:
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
