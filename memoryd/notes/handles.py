"""The file system below the notes, one step at a time and never through a link.

In: directory handles and single names. Out: handles, states of files, atomic renames; errors that repeat no
path of the host. Every step says `O_NOFOLLOW`, so that whatever a second process swaps in between two
steps, the next one ends on the folder that was opened or is refused.
"""

import ctypes
import errno
import os
import re
import stat
from functools import cache

import msgspec

from memoryd import points
from memoryd.errors import CheckFailed, Conflict, DiskFull, IOFailed, MemorydError, NotFound

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
TEMP = re.compile(r"\.[0-9a-f]{16}\.tmp")
"""Names of files in the middle of being written; nothing else with a dot is ever ours."""
_OTHERS_WRITE = 0o022
_NOREPLACE = 1  # renameat2(2)
_NO_SUCH_CALL = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM})


class Version(msgspec.Struct, frozen=True, gc=False):
    """A file as it was when it was read: enough to see that somebody touched it since.

    `ctime_ns` cannot be set by hand, as `mtime_ns` can.
    """

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int


def version(found: os.stat_result) -> Version:
    """Return what identifies the state of a file."""
    return Version(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def open_folder(parent: int, name: str, dev: int, *, make: bool = False) -> int:
    """Return a handle on the folder `name` in `parent`, on file system `dev`; with `make`, made 0700.

    Raises: NotFound, CheckFailed (``unsafe``), DiskFull, IOFailed.
    """
    try:
        handle = _opened(parent, name, make=make)
    except FileNotFoundError:
        raise absent() from None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise unsafe("a part of the path is no folder") from None
        raise failed(error) from error
    if wrong := odd_folder(os.fstat(handle), dev):
        os.close(handle)
        raise unsafe(wrong)
    return handle


def _opened(parent: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
        os.fsync(parent)
    except FileExistsError:
        pass  # somebody else made it just now; the next step looks at what it is
    return os.open(name, FOLDER, dir_fd=parent)


def odd_folder(found: os.stat_result, dev: int) -> str:
    """Return why a folder is none of ours; "" when it is."""
    if found.st_dev != dev or found.st_uid != os.geteuid():
        return "a folder lies on another file system or is not ours"
    return "a folder can be written by others" if found.st_mode & _OTHERS_WRITE else ""


def odd_file(found: os.stat_result, dev: int) -> str:
    """Return why a file is no note of ours; "" when it can be one."""
    if not stat.S_ISREG(found.st_mode):
        return "that is no plain file"
    if found.st_nlink != 1:
        return "the file has a second name (a hard link)"
    if found.st_dev != dev or found.st_uid != os.geteuid():
        return "the file lies on another file system or is not ours"
    return "the file can be written by others" if found.st_mode & _OTHERS_WRITE else ""


def new_file(parent: int, name: str, content: bytes) -> int:
    """Write a new file 0600 and return its handle, not yet synced. Raises: OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o600, dir_fd=parent)
    try:
        os.fchmod(handle, 0o600)
        while content:
            content = content[os.write(handle, content) :]
    except OSError:
        os.close(handle)
        raise
    return handle


def forget(parent: int, name: str) -> None:
    """Remove a file, if it is there."""
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:
        return


def rename_new(source: int, old: str, target: int, new: str) -> None:
    """Rename, never onto something. Raises: FileExistsError, OSError.

    Where the file system knows no such rename: a second name, then the first one away; a kill in between
    leaves both, which `Store.finish_move` ends.
    """
    number = _renamed(source, old, target, new)
    if number == 0:
        return
    if number not in _NO_SUCH_CALL:
        raise OSError(number, os.strerror(number))
    os.link(old, new, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    points.reached("notes: linked")
    os.unlink(old, dir_fd=source)


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _renamed(source: int, old: str, target: int, new: str) -> int:
    """Call renameat2(2) with NOREPLACE and return its errno, 0 for success."""
    try:
        call = _library().renameat2
    except (AttributeError, OSError, TypeError):
        return errno.ENOSYS
    done = call(source, os.fsencode(old), target, os.fsencode(new), _NOREPLACE)
    return 0 if done == 0 else ctypes.get_errno()


def absent() -> NotFound:
    """Return the one answer for what does not exist and for what may not be seen (check 4)."""
    return NotFound("no such note", remedy="view /memories to see what there is", check="not_found")


def unsafe(problem: str) -> CheckFailed:
    """Return the refusal of check 7."""
    return CheckFailed(
        problem,
        remedy="look at the folder of notes: something else than memoryd put this there",
        check="unsafe",
    )


def taken() -> Conflict:
    """Return the refusal to write where something is."""
    return Conflict(
        "a note of that name exists", remedy="view it, or choose another name", check="exists"
    )


def moved_on() -> Conflict:
    """Return the refusal of a write whose file somebody changed since the check."""
    return Conflict(
        "the note was changed meanwhile", remedy="view it again and repeat the edit", check="stale"
    )


def failed(error: OSError) -> MemorydError:
    """Return what an error of the file system means; paths of the host are not repeated."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFull(
            "no room left for the note", remedy="free some space on the disk", check="io"
        )
    what = os.strerror(error.errno or errno.EIO)
    return IOFailed(
        f"the note could not be read or written ({what})",
        remedy="mend the disk, then restart memoryd",
        check="io",
    )
