"""The list of a backup: each file with its size and hash, sealed as a whole against decay.

In and out: ``manifest.json``, written last, so that a backup that was cut short has none. The seal is a plain
hash: it shows damage, and not who wrote it; whoever can write the backup can write all of it.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from memoryd.errors import ConfigError, IOFailed

FILE, HOME, CONFIG = "manifest.json", "home", "memoryd.toml"
VERSION = 1
_PIECE = 1 << 20
REMEDY = "take another backup; this one cannot be relied on"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: its bytes, their SHA-256, and when it was changed last: a note tells that of itself."""

    bytes: int
    sha256: str
    mtime_ns: int = 0

    def holds(self, other: "Entry") -> bool:
        """Say whether both are of the same bytes."""
        return (self.bytes, self.sha256) == (other.bytes, other.sha256)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a backup holds. `files` is by path below the backup; `lessons` is their database's version."""

    v: int
    made: str
    memoryd: str
    home: str
    lessons: int
    files: dict[str, Entry]
    seal: str = ""

    @property
    def size(self) -> int:
        """Return how many bytes all files have."""
        return sum(entry.bytes for entry in self.files.values())


_encode = msgspec.json.Encoder(order="sorted").encode


def encoded(manifest: Manifest) -> bytes:
    """Return the manifest as its file, sealed."""
    unsealed = msgspec.structs.replace(manifest, seal="")
    seal = hashlib.sha256(_encode(unsealed)).hexdigest()
    return msgspec.json.format(_encode(msgspec.structs.replace(manifest, seal=seal))) + b"\n"


def read(folder: Path) -> Manifest:
    """Return the manifest of the backup in `folder`.

    Raises: IOFailed for none or a damaged one; ConfigError for one that a newer memoryd wrote.
    """
    try:
        content = read_whole(folder / FILE)
        version = msgspec.json.decode(content)["v"]
    except FileNotFoundError:
        raise IOFailed(
            f"{folder} holds no whole backup: {FILE} is missing",
            remedy="name a folder that `bxctl backup` has finished",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, RecursionError):
        raise damaged(FILE) from None
    if version != VERSION and isinstance(version, int) and version > VERSION:
        raise ConfigError(
            f"the backup has version {version}; this memoryd knows {VERSION}",
            remedy="restore it with the memoryd that made it, or a newer one",
        )
    try:
        found = msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError:
        raise damaged(FILE) from None
    if encoded(found) != content:
        raise damaged(FILE)
    return found


def damaged(name: str) -> IOFailed:
    """Return the refusal of a file of a backup that is not what was written."""
    return IOFailed(f"{name} of the backup is damaged; nothing was restored", remedy=REMEDY)


def files_below(folder: Path) -> Iterator[str]:
    """Yield every plain file below `folder`, by its path there, in order; links are not followed.

    Raises: OSError.
    """
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            for name in files_below(Path(entry.path)):
                yield f"{entry.name}/{name}"
        elif entry.is_file(follow_symlinks=False):
            yield entry.name


def opened(path: Path) -> int:
    """Return a handle on a plain file, for reading; a link is refused. Raises: OSError."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)


def pieces(handle: int, most: int | None = None) -> Iterator[bytes]:
    """Yield what a handle has left, up to `most` bytes. Raises: OSError."""
    left = most
    while piece := os.read(handle, _PIECE if left is None else min(_PIECE, left)):
        yield piece
        left = None if left is None else left - len(piece)


def read_whole(path: Path) -> bytes:
    """Return the bytes of a small file. Raises: OSError."""
    handle = opened(path)
    try:
        return b"".join(pieces(handle))
    finally:
        os.close(handle)


def put(path: Path, content: Iterator[bytes], mtime_ns: int | None = None) -> Entry:
    """Write a new file 0600, on the disk when this returns, and say what was written.

    `mtime_ns`: when it shall have been changed last. Raises: OSError.
    """
    made, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        for piece in content:
            file.write(piece)
            made.update(piece)
            size += len(piece)
        file.flush()
        if mtime_ns is not None:
            os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))
        os.fsync(file.fileno())
    return Entry(size, made.hexdigest())


def hashed(path: Path) -> Entry:
    """Return what a file holds, by size and hash. Raises: OSError."""
    made, size = hashlib.sha256(), 0
    handle = opened(path)
    try:
        for piece in pieces(handle):
            made.update(piece)
            size += len(piece)
        changed = os.fstat(handle).st_mtime_ns
    finally:
        os.close(handle)
    return Entry(size, made.hexdigest(), changed)


def sync_folders(top: Path) -> None:
    """Make every name below `top`, and itself, durable. Raises: OSError."""
    for folder, _, _ in os.walk(top):
        sync_folder(Path(folder))
    sync_folder(top.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable. Raises: OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
