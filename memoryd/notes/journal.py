"""The journal of notes: every edit twice, before it (intent) and after it (commit), in one sealed chain.

In: entries as maps. Out: ``journal/journal.jsonl`` (append-only, synced line by line), ``HEAD``, ``key``,
``blobs/``; and `state`, what all of it comes to. A full file ends in a ``rotate`` line and is renamed; the
next one's first line follows it in the chain.
A damaged journal, or one whose file failed to sync, takes no more entries (`broken` says why): notes can
then be read and not be edited. After a damage nothing counts as known, so that every note is shown as
changed outside and none is trusted; after a failed sync only a new start tells what is on the disk.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from memoryd import points
from memoryd.errors import IOFailed, MemorydError
from memoryd.notes import chain
from memoryd.notes.blobs import Blobs, sync_folder, write_file
from memoryd.notes.handles import failed
from memoryd.notes.replay import Entry, State, damaged
from memoryd.notes.together import Together

CURRENT = "journal.jsonl"
HEAD = "HEAD"
KEY = "key"
ROTATE_BYTES = 64 << 20
_KEY_BYTES = 32


class Journal:
    """The open journal of one store; one process holds it."""

    def __init__(self, folder: Path, *, rotate_bytes: int = ROTATE_BYTES) -> None:
        """Open the journal in `folder`, made at the first start; a torn last line is cut off.

        Whatever is wrong with it is said by `broken`. Raises: IOFailed when the disk cannot be used at all.
        """
        self.folder, self.rotate_bytes = folder, rotate_bytes
        self.broken, self.damage = "", False
        self.blobs = Blobs(folder / "blobs")
        self.state = State()
        self._durable = (0, chain.START)
        self._slot = False
        self.key = b""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            self.key = read_key(folder) or self._first_start()
            cut_torn_line(folder / CURRENT)
            self.state = replayed(folder, self.key)
            check_anchor(folder, self.key, self.state)
            self._durable = (self.state.seq, self.state.last)
            write_file(folder / HEAD, chain.anchor(self.key, *self._durable) * 2)
        except OSError as error:
            raise failed(error) from error
        except IOFailed as error:
            self._damaged(error)

    def _damaged(self, error: IOFailed) -> None:
        self.broken, self.damage = error.message, True
        self.state = State()

    def _first_start(self) -> bytes:
        """Make the key, and an anchor that says that nothing is written yet."""
        if files(self.folder) or (self.folder / HEAD).exists():
            raise IOFailed("the journal's key is gone", remedy="restore journal/key", check="chain")
        key = secrets.token_bytes(_KEY_BYTES)
        write_file(self.folder / KEY, key)
        write_file(self.folder / HEAD, chain.anchor(key, 0, chain.START) * 2)
        return key

    def check_writable(self) -> None:
        """Refuse every edit of a journal that takes no entries. Raises: IOFailed."""
        if self.broken:
            remedy = (
                "run `bxctl memory notes verify`; restore the journal from a copy"
                if self.damage
                else "restart memoryd once the disk is well"
            )
            raise IOFailed(f"notes can only be read: {self.broken}", remedy=remedy, check="io")

    def stop(self, error: MemorydError) -> None:
        """Take no more entries: what is on the disk is not known any more."""
        self.broken = self.broken or error.message

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, oldest first. Raises: IOFailed at a line that is none."""
        return entries(self.folder)

    def append(self, entry: Entry) -> Entry:
        """Seal `entry`, make it durable and return it as it stands in the journal.

        Raises: DiskFull with nothing written; IOFailed, and then every later call too, until the next start.
        """
        with Together() as together:
            made = self.write(entry, together)
            self.sync(together)
        points.reached("notes: line written")
        return made

    def write(self, entry: Entry, together: Together) -> Entry:
        """Seal `entry` and write it; durable once `sync` has returned. Raises: as `append`."""
        self.check_writable()
        made = chain.sealed(self.key, entry, self.state.seq + 1, self.state.last)
        try:
            self._write(chain.line(made), together)
        except OSError as error:
            raise failed(error) from error
        self.state.take(made)
        return made

    def _write(self, content: bytes, together: Together) -> None:
        """Append a line whole or not at all. Raises: OSError."""
        path = self.folder / CURRENT
        new = not path.exists()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags, 0o600)
        together.add(handle)
        size = os.fstat(handle).st_size
        try:
            while content:
                content = content[os.write(handle, content) :]
        except OSError:
            os.ftruncate(handle, size)
            raise
        if new:
            together.add_folder(self.folder)

    def sync(self, together: Together) -> None:
        """Have everything that was written on the disk.

        After a failure the page cache may claim what the disk does not hold, so nothing is edited any more
        before the next start. Raises: IOFailed.
        """
        try:
            together.sync()
        except OSError as error:
            self.stop(failed(error))
            raise failed(error) from error
        self._durable = (self.state.seq, self.state.last)

    def set_anchor(self) -> None:
        """Let HEAD say how far the journal is on the disk; then rotate a file that is full.

        HEAD itself need not be: behind the lines it is believed, and of its two records one is always whole.
        Raises: IOFailed.
        """
        seq, last = self._durable
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self.folder / HEAD, flags, 0o600)
            try:
                self._slot = not self._slot
                os.pwrite(
                    handle, chain.anchor(self.key, seq, last), chain.ANCHOR_BYTES * self._slot
                )
            finally:
                os.close(handle)
            points.reached("notes: head written")
            path = self.folder / CURRENT
            if path.exists() and path.stat().st_size >= self.rotate_bytes:
                self._rotate(path)
        except OSError as error:
            self.stop(failed(error))
            raise failed(error) from error

    def _rotate(self, path: Path) -> None:
        name = f"journal-{len(files(self.folder)):06}.jsonl"
        self.append({"kind": "rotate", "to": name})
        points.reached("notes: rotate written")
        path.rename(self.folder / name)
        sync_folder(self.folder)
        points.reached("notes: rotated")
        self.append({"kind": "open"})


def files(folder: Path) -> list[Path]:
    """Return the journal's files, oldest first."""
    old = sorted(folder.glob("journal-*.jsonl"))
    current = folder / CURRENT
    return [*old, current] if current.exists() else old


def entries(folder: Path) -> Iterator[Entry]:
    """Yield every entry, oldest first. Raises: IOFailed at a line that is none, OSError."""
    number = 0
    for path in files(folder):
        with path.open("rb") as file:
            for content in file:
                number += 1
                entry = chain.parse(content.rstrip(b"\n"))
                if entry is None:
                    raise damaged(number, "is no entry")
                yield entry


def replayed(folder: Path, key: bytes) -> State:
    """Return what the journal in `folder` comes to. Raises: IOFailed where its chain breaks, OSError."""
    state = State()
    for entry in entries(folder):
        state.follow(key, entry)
    return state


def check_anchor(folder: Path, key: bytes, state: State) -> None:
    """Hold HEAD against the lines: they may be ahead of it (a kill), never behind.

    Raises: IOFailed (``truncated``, ``chain``), OSError.
    """
    try:
        content = (folder / HEAD).read_bytes()
    except FileNotFoundError:
        if not state.seq:
            return
        raise IOFailed(
            "the journal's HEAD is gone", remedy="restore journal/HEAD", check="chain"
        ) from None
    seq, last = chain.read_anchor(key, content)
    if seq > state.seq or (seq == state.seq and last != state.last):
        raise IOFailed(
            f"the journal ends at line {state.seq} but HEAD says {seq}: its tail was cut",
            remedy="restore the journal from a copy; until then notes can only be read",
            check="truncated",
            seq=seq,
        )


def read_key(folder: Path) -> bytes | None:
    """Return the journal's key, None where there is none. Raises: IOFailed for a file that is no key."""
    path = folder / KEY
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        key = file.read(_KEY_BYTES + 1)
    ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    if not ours or found.st_mode & 0o077 or len(key) != _KEY_BYTES:
        raise IOFailed(
            "the journal's key is damaged, or others can read it",
            remedy="restore journal/key and run: chmod 600 on it",
            check="chain",
        )
    return key


def cut_torn_line(path: Path) -> None:
    """Cut off a last line without its newline: a kill in mid-write, never acknowledged. Raises: OSError."""
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        return
    with file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)
            os.fsync(file.fileno())
