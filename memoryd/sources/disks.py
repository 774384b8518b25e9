"""Which file systems change only by the hand of this kernel, so that inotify tells of all that happens there.

In: a folder. Out: yes or no, by the file system's magic number. What other machines or a process outside can write
to (NFS, SMB, FUSE, what a virtual machine shares) is none of them, and neither is what is not known here.
"""

import ctypes
import os
from pathlib import Path

_LOCAL = frozenset(
    (
        0xEF53,  # ext2, ext3, ext4
        0x5846_5342,  # xfs
        0x9123_683E,  # btrfs
        0x0102_1994,  # tmpfs
        0x8584_58F6,  # ramfs
        0x794C_7630,  # overlayfs
        0x2FC1_2FC1,  # zfs
        0xF2F5_2010,  # f2fs
        0xCA45_1A4E,  # bcachefs
        0x3153_464A,  # jfs
        0x5265_4973,  # reiserfs
        0x3434,  # nilfs2
    )
)
"""As statfs(2) and <linux/magic.h> have them."""
_ROOM = 256
"""More than a `struct statfs` has; its first field is the magic number."""


def local(folder: Path | str) -> bool:
    """Say whether a folder lies on a file system that only this kernel changes; False where nobody knows."""
    room = ctypes.create_string_buffer(_ROOM)
    try:
        failed = ctypes.CDLL(None).statfs(os.fsencode(folder), room)
    except AttributeError:
        return False
    return not failed and ctypes.c_long.from_buffer(room).value & 0xFFFF_FFFF in _LOCAL
