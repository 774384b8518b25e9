"""What is forgotten: records that no reading of their log, and no rebuild, may bring back.

In: entries of kind ``forget`` and ``remember`` in `overrides.jsonl`. Out: a `Tomb` for each log that has any:
whether it covers a place, and a number that names it, so that an index read under other entries is noticed.
A forgotten record still raises the label of what follows: only its words go.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from memoryd.ids import Ids
from memoryd.index import overrides
from memoryd.index.overrides import Forget, Overrides, Remember

Values = dict[str, str | int | float | None]


class Tomb(msgspec.Struct, frozen=True):
    """The entries in force for one log; never empty."""

    entries: tuple[Forget, ...]

    def covers(self, n: int, block: int, ts: int | None) -> bool:
        """Say whether a row of this place and time (ms) is forgotten."""
        return any(_covers(entry, n, block, ts) for entry in self.entries)

    def touches(self, n: int, block: int, last: int) -> bool:
        """Say whether a place without a time is forgotten: where times decide, up to record `last`."""
        return any(
            _covers(entry, n, block, None if entry.until is None else entry.until - 1)
            and (entry.until is None or n <= last)
            for entry in self.entries
        )

    def whole(self, records: int) -> bool:
        """Say whether all of a log's first `records` records are forgotten."""
        return any(
            entry.first == 0
            and entry.block is None
            and entry.until is None
            and (entry.last is None or entry.last >= records - 1)
            for entry in self.entries
        )

    @property
    def mark(self) -> int:
        """Return the number that names these entries, whenever and by whichever act they were made."""
        told = sorted(
            (entry.first, _least(entry.last), _least(entry.block), _least(entry.until))
            for entry in self.entries
        )
        packed = msgspec.msgpack.encode(told)
        return int.from_bytes(hashlib.blake2b(packed, digest_size=7).digest())


def _least(number: int | None) -> int:
    return -1 if number is None else number


def _covers(entry: Forget, n: int, block: int, ts: int | None) -> bool:
    if n < entry.first or (entry.last is not None and n > entry.last):
        return False
    if entry.block is not None and block != entry.block:
        return False
    return entry.until is None or (ts is not None and ts < entry.until)


def condition(entry: Forget) -> tuple[str, Values]:
    """Return `Tomb.covers` of one entry as SQL over a ``row_C`` table, with its values."""
    parts, values = ["n >= :first"], {"first": entry.first}
    for name, compare in (("last", "n <= "), ("block", "block = "), ("until", "ts < ")):
        value = getattr(entry, name)
        if value is not None:
            parts.append(f"{compare}:{name}")
            values[name] = value
    return " AND ".join(parts), dict(values)


class Tombs(msgspec.Struct, frozen=True):
    """Every log's tomb, by its key."""

    by_log: dict[int, Tomb]

    def of(self, key: int) -> Tomb | None:
        """Return the tomb of a log, None where nothing of it is forgotten."""
        return self.by_log.get(key)

    def mark(self, key: int) -> int:
        """Return the number of a log's tomb; 0 where it has none."""
        tomb = self.by_log.get(key)
        return 0 if tomb is None else tomb.mark


def read(home: Path, ids: Ids) -> Tombs:
    """Return what is in force. Raises: ConfigError, OSError."""
    return gathered(overrides.read(home), ids)


def gathered(found: Overrides, ids: Ids) -> Tombs:
    """Return what is in force among entries."""
    by_log: dict[int, tuple[Forget, ...]] = {}
    for entry in in_force(found):
        key = ids.log_key(entry.source, entry.root, entry.log)
        by_log[key] = (*by_log.get(key, ()), entry)
    return Tombs({key: Tomb(entries) for key, entries in by_log.items()})


def in_force(found: Overrides) -> Iterator[Forget]:
    """Yield the entries that no later one takes back, in their order."""
    entries = found.entries
    back = {entry.act: at for at, entry in enumerate(entries) if isinstance(entry, Remember)}
    for at, entry in enumerate(entries):
        if isinstance(entry, Forget) and back.get(entry.act, -1) < at:
            yield entry
