"""Contents by their hash: what a note held before and after each edit, so that edits can be undone.

In: bytes. Out: SHA-256 names; the bytes again until they are redacted. Kept beside the journal and not in
it, so that words can be taken away for good while the chain of the journal stays whole.
"""

import hashlib
import os
from pathlib import Path

from memoryd import points
from memoryd.errors import IOFailed
from memoryd.notes.handles import failed
from memoryd.notes.together import Together


def name_of(content: bytes) -> str:
    """Return the name of `content`: 64 hexadecimal digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()


class Blobs:
    """A folder of contents, one file each, in 256 folders by the first two digits of the name."""

    def __init__(self, folder: Path) -> None:
        """Keep contents in `folder`, made 0700 on the first `put`."""
        self.folder = folder

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / name

    def put(self, content: bytes, together: Together) -> str:
        """Store `content`, durable once `together` is, and return its name; what is there already stays.

        A kill may leave half of it under its name: nobody takes that for the content, and the next `put`
        writes it anew. Raises: DiskFull, IOFailed.
        """
        name = name_of(content)
        try:
            if self._read(name) != content:
                self._write(name, content, together)
        except OSError as error:
            raise failed(error) from error
        return name

    def _write(self, name: str, content: bytes, together: Together) -> None:
        path = self._path(name)
        for folder in (self.folder, path.parent):
            if not folder.exists():
                folder.mkdir(mode=0o700)
                together.add_folder(folder.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags, 0o600)
        together.add(handle)
        points.reached("notes: blob opened")
        try:
            while content:
                content = content[os.write(handle, content) :]
        except OSError:
            path.unlink(missing_ok=True)
            raise
        together.add_folder(path.parent)

    def _read(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def has(self, name: str) -> bool:
        """Say whether the content of that name is still there."""
        return self._path(name).is_file()

    def get(self, name: str) -> bytes | None:
        """Return the content of that name, or None once it is redacted.

        Raises: IOFailed, also when the file's bytes are not the named ones.
        """
        try:
            content = self._read(name)
        except OSError as error:
            raise failed(error) from error
        if content is not None and name_of(content) != name:
            raise IOFailed(
                "a stored content of the journal is damaged",
                remedy="restore journal/blobs from a copy",
                check="io",
            )
        return content

    def drop(self, name: str) -> None:
        """Remove the content of that name, its bytes overwritten first. Raises: IOFailed."""
        path = self._path(name)
        try:
            with path.open("r+b") as file:
                file.write(b"\0" * path.stat().st_size)
                file.flush()
                os.fsync(file.fileno())
            path.unlink()
            sync_folder(path.parent)
        except FileNotFoundError:
            return
        except OSError as error:
            raise failed(error) from error


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable. Raises: OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_file(path: Path, content: bytes) -> None:
    """Put a small file 0600 in place in one step, synced. Raises: OSError."""
    temp = path.with_name(f".{path.name}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(temp, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temp.rename(path)
    sync_folder(path.parent)
