"""Is the file at a path still the one that was read so far?

In: an open file and what was recorded of it. Out: yes or no. A path alone says nothing (logs are rotated),
an inode alone neither (ext4 gives a new file the inode of the one just deleted), and neither does the
file's head (sessions share headers): so it is device, inode, a hash of the head and a hash of the bytes
just before the offset, all together. What is changed in the middle of a file, with neither end and not
the size touched, is seen by a rebuild only.

A log that is read whole (`memoryd.sources.whole`) is changed anywhere as a matter of course, and replaced by
another file: of it all bytes up to the offset are hashed, and they alone decide.
"""

import hashlib
import os

import msgspec

from memoryd.sources import LogFile

HEAD_BYTES = 1024
TAIL_BYTES = 256
_MOST = (1 << 63) - 1
_PIECE = 1 << 20


class Marks(msgspec.Struct, frozen=True):
    """What a log's bytes looked like up to an offset: hashes of both ends, 16 bytes each."""

    head: bytes = b""
    tail: bytes = b""


class Seen(msgspec.Struct, frozen=True):
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
    return seen(file.path.lstat())


def marks(handle: int, offset: int, *, whole: bool = False) -> Marks:
    """Return the marks of an open log for the first `offset` bytes. Raises: OSError."""
    if offset == 0:
        return Marks()
    if whole:
        return Marks(head=_hash_all(handle, offset))
    head = os.pread(handle, min(HEAD_BYTES, offset), 0)
    length = min(TAIL_BYTES, offset)
    return Marks(_hash(head), _hash(os.pread(handle, length, offset - length)))


def same(
    handle: int, now: Seen, before: Seen, offset: int, before_marks: Marks, *, whole: bool = False
) -> bool:
    """Say whether the open log, seen `now`, goes on where `before` had been read up to `offset`.

    Raises: OSError.
    """
    if whole:
        return os.fstat(handle).st_size >= offset and (
            marks(handle, offset, whole=True) == before_marks
        )
    if (now.dev, now.ino) != (before.dev, before.ino) or now.size < offset:
        return False
    return marks(handle, offset) == before_marks


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _hash_all(handle: int, length: int) -> bytes:
    mixed = hashlib.blake2b(digest_size=16)
    for at in range(0, length, _PIECE):
        mixed.update(os.pread(handle, min(_PIECE, length - at), at))
    return mixed.digest()


def _cut(dev: int, ino: int, size: int, mtime_ns: int) -> Seen:
    return Seen(dev & _MOST, ino & _MOST, size & _MOST, mtime_ns & _MOST)
