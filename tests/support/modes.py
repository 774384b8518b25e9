"""Are files and folders as private as promised?"""

import stat
from pathlib import Path


def too_wide(root: Path) -> list[str]:
    """Return what below (and with) `root` is not exactly private, as ``0644 path``.

    Folders must be 0700, files and sockets 0600; a symbolic link has no mode and must not be there.
    """
    return [
        f"{stat.S_IMODE(path.lstat().st_mode):04o} {path.relative_to(root.parent)}"
        for path in (root, *sorted(root.rglob("*")))
        if not _private(path)
    ]


def _private(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600)


def holding(root: Path, *needles: bytes) -> list[str]:
    """Return ``needle in path`` for every needle found in any file's bytes below `root`, or its name."""
    found: list[str] = []
    for path in sorted(root.rglob("*")):
        held = path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b""
        found += [
            f"{needle!r} in {path.relative_to(root)}"
            for needle in needles
            if needle in held or needle in bytes(path)
        ]
    return found
