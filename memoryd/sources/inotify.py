"""The kernel's inotify, through the C library: which folders to watch, what happened in them.

In: folders. Out: events. Linux only, and nothing here waits: a descriptor that becomes readable does, and
`memoryd.sources.watch` waits for it.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

# <sys/inotify.h>
MODIFY, MOVED_FROM, MOVED_TO = 0x2, 0x40, 0x80
CREATE, DELETE, DELETE_SELF, MOVE_SELF = 0x100, 0x200, 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED, ISDIR = 0x2000, 0x4000, 0x8000, 0x4000_0000
_ONLYDIR, _DONT_FOLLOW, _MASK_ADD = 0x0100_0000, 0x0200_0000, 0x2000_0000

INSIDE = MODIFY | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
"""All that can change what a folder's files hold, or which there are."""
APPEARS = MOVED_TO | CREATE | DELETE_SELF | MOVE_SELF
"""Enough where only a folder is waited for; a home folder's many writes wake nobody."""

_HEAD = struct.Struct("iIII")
_READ_AT_ONCE = 1 << 16


class Event(NamedTuple):
    """What happened: `watch` is the number that `Inotify.add` gave, -1 for an overflow."""

    watch: int
    mask: int
    name: str


class Inotify:
    """One inotify instance. Raises OSError where the system has none, or none left."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            start = self._libc.inotify_init1
        except AttributeError:
            raise OSError(0, "this system has no inotify") from None
        self.fd: int = self._checked(start(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: Path | str, mask: int, *, follow: bool = False) -> int:
        """Watch a folder; return the number under which its events come, the same for the same folder.

        Raises: OSError (ENOSPC when the user's watches are used up, ENOTDIR, ENOENT, EACCES).
        """
        how = _ONLYDIR | (0 if follow else _DONT_FOLLOW) | (0 if mask == INSIDE else _MASK_ADD)
        return self._checked(
            self._libc.inotify_add_watch(self.fd, os.fsencode(folder), ctypes.c_uint32(mask | how))
        )

    def remove(self, watch: int) -> None:
        """Watch a folder no longer; one that the kernel dropped by itself is no fault."""
        self._libc.inotify_rm_watch(self.fd, watch)

    def events(self) -> Iterator[Event]:
        """Yield what the kernel has to tell now."""
        try:
            told = os.read(self.fd, _READ_AT_ONCE)
        except BlockingIOError:
            return
        at = 0
        while at < len(told):
            watch, mask, _, length = _HEAD.unpack_from(told, at)
            at += _HEAD.size
            yield Event(watch, mask, os.fsdecode(told[at : at + length].rstrip(b"\0")))
            at += length

    def close(self) -> None:
        """Give the instance back; its watches go with it."""
        os.close(self.fd)

    def _checked(self, result: Any) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return int(result)
