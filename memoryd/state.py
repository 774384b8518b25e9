"""The state folder: its owner's alone, written by one process at a time, with the key that names records.

In: a path. Out: folders and a lock on disk; the key's 32 bytes. The lock is the kernel's (flock), so that it
ends with its process however that ends; the file holds the process id for people to read.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryd.errors import Busy, ConfigError, IOFailed

LOCK, KEY, NEXT = "memoryd.lock", "key", "key.next"
_KEY_BYTES = 32
_SIZES = frozenset({32, 64})


def private_folder(folder: Path) -> Path:
    """Make a folder that only its owner may enter, or close one that others may; return it.

    Raises: ConfigError when it belongs to somebody else or is none, IOFailed.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.geteuid():
            raise ConfigError(
                f"{folder} belongs to another user", remedy="set MEMORYD_HOME to a folder of yours"
            )
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)
    except FileExistsError:
        raise ConfigError(f"{folder} is no folder", remedy="move it away") from None
    except OSError as error:
        raise IOFailed(
            f"{folder} cannot be made: {error.strerror}",
            remedy="set MEMORYD_HOME to a folder of yours",
        ) from None
    return folder


def open_to_others(home: Path) -> list[Path]:
    """Return what of the state folder and its key others could reach by its mode; a missing one is none."""
    found = []
    for path in (home, home / KEY):
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if mode & 0o077 and not stat.S_ISLNK(mode):
            found.append(path)
    return found


def close_key(home: Path) -> None:
    """Leave the key to its owner alone, whatever its mode was. Raises: IOFailed."""
    try:
        (home / KEY).chmod(0o600)
    except OSError as error:
        raise IOFailed(
            f"{home / KEY} cannot be closed to others: {error.strerror}",
            remedy="put the state on a file system with owners and modes",
        ) from None


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Be the one process that may write in `home`, which must be there.

    Raises: Busy naming the process that is it already, IOFailed.
    """
    path = home / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise IOFailed(
            f"{path} cannot be opened: {error.strerror}", remedy="see to the disk and its owner"
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(handle, home) from None
        os.fchmod(handle, 0o600)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _taken(handle: int, home: Path) -> Busy:
    said = os.pread(handle, 20, 0).strip()
    pid = int(said) if said.isdigit() else None
    who = "another process" if pid is None else f"process {pid}"
    stop = "it" if pid is None else f"it (kill {pid})"
    return Busy(
        f"memoryd runs already on {home}: {who}",
        remedy=f"stop {stop}, or set MEMORYD_HOME to another folder",
        pid=pid,
    )


def key(home: Path) -> bytes:
    """Return the key of `home`, making one at the first call; the caller holds the lock.

    Raises: ConfigError for a file that is no key, somebody else's, or being changed; IOFailed.
    """
    if (home / NEXT).exists():
        raise ConfigError(
            "the key of the state folder was being changed, and that was not finished",
            remedy="run `bxctl keys rotate` again: it finishes it",
        )
    return key_being_changed(home)


def key_being_changed(home: Path) -> bytes:
    """Return the same, whether or not a change of it was begun. Raises: as `key`."""
    try:
        if not (home / KEY).exists():
            _write_key(home / KEY, secrets.token_bytes(_KEY_BYTES))
    except OSError as error:
        raise _unreadable(home / KEY, error) from None
    return _read_key(home / KEY)


def next_key(home: Path) -> bytes | None:
    """Return the key that a change has begun with, None where there is none. Raises: as `key`."""
    return _read_key(home / NEXT) if (home / NEXT).exists() else None


def begin_next_key(home: Path, texts: bytes) -> bytes:
    """Begin a change of the key: from now on `key` refuses. `texts`: what goes on standing for texts, or b"".

    Raises: IOFailed.
    """
    made = secrets.token_bytes(_KEY_BYTES) + texts
    try:
        _write_key(home / NEXT, made)
    except OSError as error:
        raise _unreadable(home / NEXT, error) from None
    return made


def finish_next_key(home: Path) -> None:
    """Let the next key be the key. Raises: IOFailed."""
    try:
        (home / NEXT).rename(home / KEY)
        _sync(home)
    except OSError as error:
        raise _unreadable(home / KEY, error) from None


def _unreadable(path: Path, error: OSError) -> IOFailed:
    return IOFailed(
        f"{path} cannot be read or written: {error.strerror}", remedy="make it readable for you"
    )


def _read_key(path: Path) -> bytes:
    try:
        _check_owner(path)
        found = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(found) not in _SIZES:
        raise ConfigError(
            f"{path} holds no key of {_KEY_BYTES} bytes",
            remedy="restore it from a backup; without it every record gets another id",
        )
    return found


def _check_owner(path: Path) -> None:
    """Refuse a key that somebody else made. Raises: ConfigError, OSError."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path} is no plain file", remedy="restore the key from a backup")
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"{path} belongs to another user, who knows it",
            remedy="restore your own from a backup, or remove it: every record then gets another id",
        )


def _write_key(path: Path, content: bytes) -> None:
    """Write the key whole or not at all: ids and cursors depend on it for ever."""
    temp = path.with_name(f"{path.name}.new")
    temp.unlink(missing_ok=True)
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)
    temp.rename(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
