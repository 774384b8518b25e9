"""Read one log from where reading stopped: bytes → decoded lines → records, each exactly once.

In: an open file, a `Position`, the log's `Adapter`. Out: `Batch` after `Batch`, each with its records and
the position after them, which is to be stored in the same transaction as what the records become::

    Position(offset=0, records=0, discarding=False, begun=False)    # the start of a log
    Batch(records: list[Record], position: Position, first: bytes, last: bytes)
    read(file, position, adapter, *, log="", budget_bytes=None, at_end=True) -> Iterator[Batch]

The one property that everything rests on: however the file grew and wherever reading stopped, the records
of all batches together are those of one read of the whole file. It holds because what a line means is
decided from its left end, object by object (`memoryd.sources.objects`), so that a stop after any whole
object changes nothing, and because a line is never judged before its newline, except that whole objects
at its left end are read at once (`at_end`). A line that cannot be read is a record with `Unreadable` in it.

A line of one object is decoded in one step; only one with something odd in it is taken apart. Memory
is bounded by `LINE_LIMIT`: what is longer is skipped, and `discarding` says so when reading stops in it.
"""

import os
from collections.abc import Iterator
from io import BytesIO
from typing import IO

import msgspec

from memoryd.records import About, Record
from memoryd.sources import objects
from memoryd.sources.base import Adapter, NotJson, unreadable

BLOCK = 1 << 18
"""Bytes read at once, so that they are looked at while the processor still holds them; more only for a longer line."""

LINE_LIMIT = 8 << 20
"""Bytes that one object may have, with what stands before it in its line."""

ENDS = 1024
"""Bytes at either end of what a batch took, for who wants to know the file again."""

_BOM = b"\xef\xbb\xbf"


class Position(msgspec.Struct, frozen=True):
    """Where reading stopped: all of it must be stored and given back.

    `offset`: bytes read. `records`: the number of the next record. `discarding`: inside a line that is
    too long. `begun`: a record has named itself (`Record.uuid`), so that later ones no longer tell of a
    parent, or has said that the log is a sub-agent's.
    """

    offset: int = 0
    records: int = 0
    discarding: bool = False
    begun: bool = False


class Batch(msgspec.Struct, frozen=True):
    """Records in file order, the position after the last of them, and the `ENDS` of the bytes they took."""

    records: list[Record]
    position: Position
    first: bytes = b""
    last: bytes = b""


def read(
    file: int | IO[bytes],
    position: Position,
    adapter: Adapter,
    *,
    log: str = "",
    budget_bytes: int | None = None,
    at_end: bool = True,
    block_bytes: int = BLOCK,
) -> Iterator[Batch]:
    """Yield what the log holds after `position`, in batches of about a MiB of it.

    `file` is a descriptor or a file with one; its own position is neither used nor moved. `log` is the
    log's path below its root, which may tell a parent. After `budget_bytes` of progress (at least one
    batch) the reader stops, so that a fast log cannot starve the others. `at_end`: read whole objects of a
    last line without newline; False leaves that line alone. `block_bytes` are read and decoded at once.

    Raises: OSError.
    """
    descriptor = file if isinstance(file, int) else file.fileno()
    start = position.offset
    while budget_bytes is None or position.offset - start < budget_bytes:
        if position.discarding:
            batch = _discard(descriptor, position)
        else:
            batch = _next(descriptor, position, adapter, block_bytes, at_end=at_end)
        if batch is None:
            return
        if position.records == 0 and batch.records and (link := adapter.origin(log)) is not None:
            first = batch.records[0]
            known = first.about or About()
            if known.link is None:
                known = msgspec.structs.replace(known, link=link)
                batch.records[0] = msgspec.structs.replace(first, about=known)
        yield batch
        position = batch.position


def _next(
    descriptor: int, position: Position, adapter: Adapter, block_bytes: int, *, at_end: bool
) -> Batch | None:
    """Return the next batch, or None when nothing more can be read yet."""
    start, mark = position, b""
    if start.offset == 0 and os.pread(descriptor, len(_BOM), 0) == _BOM:
        start, mark = msgspec.structs.replace(start, offset=len(_BOM)), _BOM
    data, cut = _window(descriptor, start.offset, block_bytes)
    reading = _Reading(start, adapter)
    if cut > 0:
        reading.block(data[:cut])
    elif len(data) > LINE_LIMIT:
        reading.left_of_long_line(data)
    elif at_end:
        reading.left_of_line(data)
    after = reading.position()
    return (
        None if after == position else _batch(reading.records, after, data[: reading.taken], mark)
    )


def _batch(records: list[Record], after: Position, taken: bytes, mark: bytes = b"") -> Batch:
    return Batch(records, after, (mark + taken[:ENDS])[:ENDS], (mark + taken[-ENDS:])[-ENDS:])


def _window(descriptor: int, offset: int, want: int) -> tuple[bytes, int]:
    """Return the bytes at `offset`, and how many of them are whole lines.

    There is a whole line in it unless the file ends first or the line is longer than `LINE_LIMIT`; then
    there is one byte more than that.
    """
    want = min(want, LINE_LIMIT + 1)
    while True:
        data = os.pread(descriptor, want, offset)
        cut = data.rfind(b"\n") + 1
        if cut or len(data) < want or want > LINE_LIMIT:
            return data, cut
        want = min(want * 4, LINE_LIMIT + 1)


def _discard(descriptor: int, position: Position) -> Batch | None:
    """Return the batch that skips more of a line that is too long, to its end at most."""
    data = os.pread(descriptor, BLOCK, position.offset)
    if not data:
        return None
    end = data.find(b"\n") + 1
    offset = position.offset + (end or len(data))
    after = msgspec.structs.replace(position, offset=offset, discarding=not end)
    return _batch([], after, data[: end or len(data)])


class _Reading:
    """One batch in the making: the records so far and how much of the window they took."""

    def __init__(self, position: Position, adapter: Adapter) -> None:
        self.before = position
        self.adapter = adapter
        self.n = position.records
        self.begun = position.begun
        self.taken = 0
        self.discarding = False
        self.records: list[Record] = []

    def position(self) -> Position:
        return Position(self.before.offset + self.taken, self.n, self.discarding, self.begun)

    def block(self, data: bytes) -> None:
        """Read whole lines: each in one step if nothing is odd in it, else object by object."""
        self.taken = len(data)
        rest = BytesIO(data)
        if objects.suspicious(data):
            for line in rest:
                self.line(line.removesuffix(b"\n"))
            return
        while (odd := self.plainly(rest)) is not None:
            self.line(odd.removesuffix(b"\n"))

    def plainly(self, rest: Iterator[bytes]) -> bytes | None:
        """Read lines, each of which is one object; return the first that needs a closer look, None at the end."""
        adapter, keep = self.adapter, self.records.append
        decode, parse = adapter.decoder.decode, adapter.parse
        line, n, begun = b"", self.n, self.begun
        try:
            while adapter.begins and not (begun and n >= adapter.told_by):
                if (line := next(rest, b"")) == b"":
                    return None
                record = parse(decode(line), n, begun, line)
                keep(record)
                n += 1
                begun = begun or begins(record)
            decode = adapter.decoder_of(n, begun).decode
            for line in rest:
                keep(parse(decode(line), n, begun, line))
                n += 1
        except (msgspec.DecodeError, NotJson, RecursionError):
            return line
        finally:
            self.n, self.begun = n, begun
        return None

    def line(self, line: bytes) -> None:
        """Read a whole line: its objects, and what is left over as one unreadable record."""
        at, reason = self.objects(line, 0)
        if at < len(line):
            self.keep(unreadable(self.n, reason))

    def left_of_line(self, data: bytes) -> None:
        """Read whole objects of a last line that has no newline yet."""
        self.taken, _ = self.objects(data, 0)

    def left_of_long_line(self, data: bytes) -> None:
        """Read whole objects of a line longer than the limit, or give the rest of it up."""
        self.taken, _ = self.objects(data[:LINE_LIMIT], 0)
        if self.taken == 0:
            self.keep(unreadable(self.n, f"longer than {LINE_LIMIT} bytes"))
            self.taken, self.discarding = len(data), True

    def objects(self, data: bytes, at: int) -> tuple[int, str]:
        """Read objects from `at` on. Returns: where the first thing starts that is none, and what it is."""
        at = objects.after_blank(data, at)
        if (record := objects.only(data, at, self.record)) is not None:
            self.keep(record)
            return len(data), ""
        while at < len(data):
            found = objects.first(data, at, self.record)
            if isinstance(found, objects.Broken):
                return at, found.reason
            record, end = found
            self.keep(record)
            at = objects.after_blank(data, end)
        return at, ""

    def record(self, data: bytes) -> Record:
        """Return the record of one object. Raises: NotJson."""
        return objects.record(data, self.adapter, self.n, self.begun)

    def keep(self, record: Record) -> None:
        self.records.append(record)
        self.n += 1
        self.begun = self.begun or begins(record)


def begins(record: Record) -> bool:
    """Say whether a log has named itself with this record, or has said that it is a sub-agent's."""
    link = None if record.about is None else record.about.link
    return record.uuid is not None or (link is not None and link.how == "subagent")
