"""The journal of notes: every edit twice, before it (intent) and after it (commit), in one sealed chain.

In: entries as maps. Out: ``journal/journal.jsonl`` (append-only, synced line by line), ``HEAD``, the keys
(`keys`), ``blobs/``; and `state`, what all of it comes to. A full file ends in a ``rotate`` line and is
renamed; the next one's first line follows it in the chain.
A damaged journal, or one whose file failed to sync, takes no more entries (`broken` says why): notes can
then be read and not be edited. After a damage nothing counts as known, so that every note is shown as
changed outside and none is trusted; after a failed sync only a new start tells what is on the disk.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from memoryd import points
from memoryd.errors import IOFailed, MemorydError
from memoryd.notes import chain
from memoryd.notes import keys as sealing
from memoryd.notes.blobs import Blobs, sync_folder, write_file
from memoryd.notes.handles import failed
from memoryd.notes.keys import Keys
from memoryd.notes.replay import Entry, State, damaged
from memoryd.notes.together import Together

CURRENT = "journal.jsonl"
HEAD = "HEAD"
ROTATE_BYTES = 64 << 20


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
        self.keys = Keys(b"")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            sealing.undo_begun(folder)
            self.keys = sealing.read(folder) or self._first_start()
            cut_torn_line(folder / CURRENT)
            self.state = replayed(folder, self.keys)
            check_anchor(folder, self.keys, self.state)
            self._durable = (self.state.seq, self.state.last)
            write_file(folder / HEAD, chain.anchor(self.keys.current, *self._durable) * 2)
            self._begin_segment()
        except OSError as error:
            raise failed(error) from error
        except IOFailed as error:
            self._damaged(error)

    def _damaged(self, error: IOFailed) -> None:
        self.broken, self.damage = error.message, True
        self.state = State()

    def _begin_segment(self) -> None:
        """Write the first line under a new key, unless it is there."""
        if self.state.seq == self.keys.since:
            self.append({"kind": sealing.REKEY})
            self.set_anchor()

    def _first_start(self) -> Keys:
        """Make the key, and an anchor that says that nothing is written yet."""
        if files(self.folder) or (self.folder / HEAD).exists():
            raise IOFailed("the journal's key is gone", remedy="restore journal/key", check="chain")
        keys = sealing.make(self.folder)
        write_file(self.folder / HEAD, chain.anchor(keys.current, 0, chain.START) * 2)
        return keys

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
        made = chain.sealed(self.keys.current, entry, self.state.seq + 1, self.state.last)
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
                anchor = chain.anchor(self.keys.current, seq, last)
                os.pwrite(handle, anchor, chain.ANCHOR_BYTES * self._slot)
            finally:
                os.close(handle)
            points.reached("notes: head written")
            path = self.folder / CURRENT
            if path.exists() and path.stat().st_size >= self.rotate_bytes:
                self._rotate(path)
        except OSError as error:
            self.stop(failed(error))
            raise failed(error) from error

    def change_key(self) -> None:
        """Seal every line from now on with a new key, in a new file; what is sealed stays as it is.

        Killed at any moment, the key has changed or has not: the next start finishes or takes back.
        Raises: IOFailed, and then every later call too, until the next start.
        """
        self.check_writable()
        try:
            if (self.folder / CURRENT).exists():
                self._set_aside(self.folder / CURRENT)
            sealing.begin(
                self.folder, self.keys, self.state.seq, self.state.last, self.folder / HEAD
            )
            self.keys = sealing.read(self.folder) or self.keys
            self._begin_segment()
        except OSError as error:
            self.stop(failed(error))
            raise failed(error) from error

    def _rotate(self, path: Path) -> None:
        self._set_aside(path)
        self.append({"kind": "open"})

    def _set_aside(self, path: Path) -> None:
        """End a file with a line that says so, and give it the name of an old one."""
        name = f"journal-{len(files(self.folder)):06}.jsonl"
        self.append({"kind": "rotate", "to": name})
        points.reached("notes: rotate written")
        path.rename(self.folder / name)
        sync_folder(self.folder)
        points.reached("notes: rotated")


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


def replayed(folder: Path, keys: Keys) -> State:
    """Return what the journal in `folder` comes to. Raises: IOFailed where its chain breaks, OSError."""
    state = State()
    for entry in entries(folder):
        state.follow(keys, entry)
    return state


def check_anchor(folder: Path, keys: Keys, state: State) -> None:
    """Hold HEAD against the lines: they may be ahead of it (a kill), never behind.

    Where no line is sealed with the key of today, HEAD alone is, and must name the last of them.

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
    seq, last = chain.read_anchor(keys.current, content)
    same = (seq, last) == (state.seq, state.last)
    if not same and (seq >= state.seq or state.seq <= keys.since):
        raise IOFailed(
            f"the journal ends at line {state.seq} but HEAD says {seq}: its tail was cut",
            remedy="restore the journal from a copy; until then notes can only be read",
            check="truncated",
            seq=seq,
        )


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
