"""The journal's keys: the one that seals now, and those that sealed earlier lines.

In: a folder with ``key`` and, for each time that the key was changed, ``key-N``: the key of the lines up to
number N. Out: which key seals a line. The first line under a key is a ``rekey`` line, which names the seal of
the line before it as every line does: so whoever has only an old key can change nothing that is sealed with it,
neither write on. A change takes effect when ``key.next`` is renamed to ``key``; until then nothing has changed.
"""

import os
import secrets
import stat
from pathlib import Path
from typing import Any, NamedTuple

from memoryd import points
from memoryd.errors import IOFailed
from memoryd.notes import chain
from memoryd.notes.blobs import sync_folder, write_file

KEY, NEXT, OLD = "key", "key.next", "key-"
KEY_BYTES = 32
REKEY = "rekey"


class Keys(NamedTuple):
    """The key that seals now, and (last line's number, key) of each earlier one, in order."""

    current: bytes
    old: tuple[tuple[int, bytes], ...] = ()

    @property
    def since(self) -> int:
        """Return the number of the last line that an earlier key sealed; -1 where there was none."""
        return self.old[-1][0] if self.old else -1

    def of(self, seq: int) -> bytes:
        """Return the key that seals line `seq`."""
        return next((key for last, key in self.old if seq <= last), self.current)

    def check(self, entry: dict[str, Any], seq: int, previous: str | None) -> str:
        """Return what is wrong with an entry at this place of the chain; "" for nothing."""
        if any(last + 1 == seq for last, _ in self.old) and entry.get("kind") != REKEY:
            return "does not begin what is sealed with the next key"
        return chain.check(self.of(seq), entry, seq, previous)


def read(folder: Path) -> Keys | None:
    """Return the keys in `folder`, None where there is none yet. Raises: IOFailed for a file that is no key."""
    current = _read(folder / KEY)
    if current is None:
        return None
    found = sorted((int(path.name.removeprefix(OLD)), path) for path in _old(folder))
    old = [(last, key) for last, path in found if (key := _read(path)) is not None]
    return Keys(current, tuple((last, key) for last, key in old if key != current))


def make(folder: Path) -> Keys:
    """Make the first key. Raises: OSError."""
    key = secrets.token_bytes(KEY_BYTES)
    write_file(folder / KEY, key)
    return Keys(key)


def begin(folder: Path, keys: Keys, seq: int, last: str, head: Path) -> None:
    """Change the key after line `seq`, sealed `last`: with the last step it has changed. Raises: OSError."""
    new = secrets.token_bytes(KEY_BYTES)
    write_file(folder / NEXT, new)
    points.reached("keys: journal: next written")
    write_file(folder / f"{OLD}{seq:06}", keys.current)
    points.reached("keys: journal: old kept")
    write_file(head, chain.anchor(keys.current, seq, last) + chain.anchor(new, seq, last))
    points.reached("keys: journal: head under both")
    (folder / NEXT).rename(folder / KEY)
    sync_folder(folder)
    points.reached("keys: journal: changed")


def undo_begun(folder: Path) -> None:
    """Take back a change that has not taken effect. Raises: IOFailed, OSError."""
    if not (folder / NEXT).exists():
        return
    current = _read(folder / KEY)
    for path in _old(folder):
        if _read(path) == current:
            path.unlink()
    (folder / NEXT).unlink()
    sync_folder(folder)


def _old(folder: Path) -> list[Path]:
    return [path for path in folder.glob(f"{OLD}*") if path.name.removeprefix(OLD).isdigit()]


def _read(path: Path) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        key = file.read(KEY_BYTES + 1)
    ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    if not ours or found.st_mode & 0o077 or len(key) != KEY_BYTES:
        raise IOFailed(
            "the journal's key is damaged, or others can read it",
            remedy="restore journal/key and run: chmod 600 on it",
            check="chain",
        )
    return key
