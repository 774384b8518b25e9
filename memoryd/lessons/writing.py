"""Whole files or none: what lessons write beside their database.

In: a path and bytes. Out: a file that only its owner reads, replaced in one step.
"""

import os
from pathlib import Path


def replace(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write `content` to a new file and rename it over `path`. Raises: OSError, with `path` as it was."""
    temp = path.with_name(f".{path.name}.new")
    temp.unlink(missing_ok=True)
    handle = os.open(
        temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temp.replace(path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
