"""Open what lies below a folder of logs, and nothing that a link there leads to.

In: the folder, a path below it with ``/``. Out: a descriptor of a regular file, a listing, or bytes. Agents
can write into the folders that their logs lie in, so every part of a path is opened without following links.
"""

import os
import stat
from pathlib import Path

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def open_below(root: Path, log: str) -> int:
    """Return a descriptor of the regular file at `log` below `root`, following no link below `root`.

    The caller closes it. Raises: OSError, also for what is no regular file.
    """
    folder, _, name = log.rpartition("/")
    at = folder_below(root, folder)
    try:
        descriptor = os.open(name, _OPEN, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file", log)
    return descriptor


def folder_below(root: Path, folder: str) -> int:
    """Return a descriptor of the folder at `folder` below `root` (``""``: `root` itself). Raises: OSError."""
    at = os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        for name in filter(None, folder.split("/")):
            below = os.open(name, _OPEN | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
    except OSError:
        os.close(at)
        raise
    return at
