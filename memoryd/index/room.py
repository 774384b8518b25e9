"""Is there room on the device? Little is left for others before nothing is left for us.

In: a folder. Out: nothing, or `DiskFull` while less is free than 100 MiB and than a hundredth of the device. Indexing
and rebuilding pause then: the logs of the agents themselves, and the owner's notes, need the rest. A hundredth alone
would be 100 GB of a large disk, 100 MiB alone all of a small one.
"""

import os
from pathlib import Path

from memoryd.errors import DiskFull

LEAST_BYTES = 100 << 20
LEAST_SHARE = 100
"""One of so many parts of the device."""


def least(device_bytes: int) -> int:
    """Return how many bytes of a device of `device_bytes` must be free for the index to grow."""
    return min(LEAST_BYTES, device_bytes // LEAST_SHARE)


def lacking(folder: Path) -> DiskFull | None:
    """Return why nothing may be added on the device of `folder`; None while there is room."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None  # whoever writes there meets what is wrong
    free, wanted = found.f_bavail * found.f_frsize, least(found.f_blocks * found.f_frsize)
    if free >= wanted:
        return None
    return DiskFull(
        f"only {free >> 10} KiB of the device are free, below {wanted >> 10} nothing is added",
        remedy="free some space; it goes on by itself",
    )


def check(folder: Path) -> None:
    """Let the caller add to the device of `folder`. Raises: DiskFull while it is nearly full."""
    if (why := lacking(folder)) is not None:
        raise why
