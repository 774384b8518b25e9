"""Is the file at a path still the one that was read so far?

In: an open file and what was recorded of it. Out: yes or no. A path alone says nothing (logs are rotated),
an inode alone neither (ext4 gives a new file the inode of the one just deleted), and neither does the
file's head (sessions share headers): so it is device, inode, a hash of the head and a hash of the bytes
just before the offset, all together. What is changed in the middle of a file, with neither end and not
the size touched, is seen by a rebuild only. The bytes that are hashed are those that were read (`Ends`): a file
may be rewritten between its reading and a second look at it.

A log that is read whole (`memoryd.sources.whole`) is changed anywhere as a matter of course, and replaced by
another file: of it all bytes up to the offset are hashed, and they alone decide.
"""

import hashlib
import os
from typing import Self

import msgspec

from memoryd.clock import now_ms
from memoryd.sources import LogFile

HEAD_BYTES = 1024
TAIL_BYTES = 256
GRAIN_MS = 50
"""Within so many milliseconds a file can change twice and bear one time: the kernel's clock ticks every 10 at most."""
_MOST = (1 << 63) - 1
_devices: dict[int, int] = {}
"""One number for all the files of a device: there may be a hundred thousand, and a handful of devices."""
_PIECE = 1 << 20


class Marks(msgspec.Struct, frozen=True):
    """What a log's bytes looked like up to an offset: hashes of both ends, 16 bytes each."""

    head: bytes = b""
    tail: bytes = b""


class Seen(msgspec.Struct, frozen=True, gc=False):
    """What the folder says of a file: one look at it costs a microsecond, so every sweep takes one."""

    dev: int
    ino: int
    size: int
    mtime_ns: int


def seen(status: os.stat_result) -> Seen:
    """Return what is compared of a file's status; numbers beyond SQLite's are cut to 63 bits."""
    return _cut(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def look(file: LogFile) -> Seen:
    """Return what a log looks like from outside now. Raises: OSError."""
    if file.mark is not None:
        return _cut(*file.mark)
    whole = file.whole
    if whole is not None and whole.look is not None:
        return _cut(*whole.look(file.root.path, file.log))
    return seen(os.lstat(file.where))


def marks(handle: int, offset: int, *, whole: bool = False) -> Marks:
    """Return the marks of an open log for the first `offset` bytes. Raises: OSError."""
    if offset == 0:
        return Marks()
    if whole:
        return Marks(head=_hash_all(handle, offset))
    return Ends.of(handle, offset).marks()


def remembered(seen: Seen, *, unfinished: bool = False) -> Seen:
    """Return what is remembered of a file seen so: one to be looked at once more is remembered as changed before.

    That is one changed this moment, since its next change may leave size and time as they are; and one that is
    `unfinished`, which holds more than was read: whoever starts next would find it as it was.
    """
    if not unfinished and abs(now_ms() - seen.mtime_ns // 1_000_000) > GRAIN_MS:
        return seen
    return msgspec.structs.replace(seen, mtime_ns=seen.mtime_ns - 1)


def differs(now: Seen, before: Seen) -> bool:
    """Say whether a file seen `now` has changed since it was remembered as `before` (`remembered`)."""
    early = msgspec.structs.replace(now, mtime_ns=now.mtime_ns - 1)
    return before not in (now, early)


class Ends:
    """The bytes at both ends of what has been read of a log, as they were when they were read."""

    def __init__(self, head: bytes = b"", tail: bytes = b"") -> None:
        """Start with nothing read, or with what was read earlier."""
        self._head, self._tail = head, tail

    @classmethod
    def of(cls, handle: int, offset: int) -> Self:
        """Return those of the first `offset` bytes of an open log. Raises: OSError."""
        length = min(TAIL_BYTES, offset)
        head = os.pread(handle, min(HEAD_BYTES, offset), 0)
        return cls(head, os.pread(handle, length, offset - length))

    def add(self, first: bytes, last: bytes) -> None:
        """Take the ends of what was read next (`lines.Batch`)."""
        if len(self._head) < HEAD_BYTES:
            self._head = (self._head + first)[:HEAD_BYTES]
        self._tail = (self._tail + last)[-TAIL_BYTES:]

    def marks(self) -> Marks:
        """Return the marks of all that was read."""
        return Marks(_hash(self._head), _hash(self._tail)) if self._tail else Marks()


def same(now: Seen, before: Seen, offset: int, ends: Ends, before_marks: Marks) -> bool:
    """Say whether a log, seen `now` and with these `ends` up to `offset`, goes on where `before` was read to."""
    if (now.dev, now.ino) != (before.dev, before.ino) or now.size < offset:
        return False
    return ends.marks() == before_marks


def same_whole(handle: int, offset: int, before_marks: Marks) -> bool:
    """Say whether an open log that is read whole starts with the bytes that were read. Raises: OSError."""
    return os.fstat(handle).st_size >= offset and (
        marks(handle, offset, whole=True) == before_marks
    )


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _hash_all(handle: int, length: int) -> bytes:
    mixed = hashlib.blake2b(digest_size=16)
    for at in range(0, length, _PIECE):
        mixed.update(os.pread(handle, min(_PIECE, length - at), at))
    return mixed.digest()


def _cut(dev: int, ino: int, size: int, mtime_ns: int) -> Seen:
    dev &= _MOST
    return Seen(_devices.setdefault(dev, dev), ino & _MOST, size & _MOST, mtime_ns & _MOST)
