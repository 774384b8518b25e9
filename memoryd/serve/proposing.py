"""Lines for a project's AGENTS.md: drafted, shown, and spliced in once their owner has approved that very draft.

In: a project's folder, lines, the hash of a draft that was shown. Out: the draft (the file's name, its lines,
what would change, a hash of all that), or the file with its one marked block replaced in one step and a copy
of the lines in `proposals/`. Every other byte of the file stays what it was.
"""

import difflib
import hashlib
import stat
from pathlib import Path

import apsw

from memoryd import clock
from memoryd.errors import BadRequest, Conflict, IOFailed
from memoryd.lessons import proposals, writing
from memoryd.lessons.reader import Reader
from memoryd.state import private_folder

FILE = "AGENTS.md"
FOLDER = "proposals"
_MOST_BYTES = 1 << 20


def lines(connection: apsw.Connection, reader: Reader, project: str) -> tuple[str, list[str]]:
    """Return the lines that a project's lessons are worth, and whose they are."""
    found = proposals.worthy(connection, reader, project)
    return proposals.draft(found), [one.id for one in found]


def propose(
    project: str, file: str | None, drafted: str, approved: str | None, home: Path
) -> dict[str, object]:
    """Return the draft, or with the hash of one that was shown write it.

    Raises: BadRequest, Conflict when the draft or the file is another one by now, IOFailed.
    """
    path = _path(project, file)
    try:
        content = _content(path)
        after = proposals.splice(content, drafted) if drafted else content
        name = _hash(path, content, after)
        told: dict[str, object] = {
            "file": str(path),
            "lines": drafted.splitlines(),
            "diff": _diff(path, content, after),
            "hash": name,
            "written": False,
        }
        if approved is None or not drafted:
            return told
        if approved != name:
            raise Conflict("the draft or the file is another one now", remedy="look at it again")
        _write(path, after, home, drafted)
    except OSError as error:
        raise IOFailed(f"{path}: {error.strerror}", remedy="see that it can be written") from error
    return told | {"written": True}


def _path(project: str, file: str | None) -> Path:
    path = Path(project, FILE) if file is None else Path(file)
    if not path.is_absolute() or ".." in path.parts or not path.parent.is_dir():
        raise BadRequest(
            "file: no absolute path into a folder that is there", remedy="name the file itself"
        )
    return path


def _content(path: Path) -> bytes:
    """Return what is in the file; nothing where there is none. Raises: BadRequest, OSError."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return b""
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
        raise BadRequest("file: no regular file of 1 MiB at most", remedy="name the file itself")
    return path.read_bytes()


def _write(path: Path, content: bytes, home: Path, drafted: str) -> None:
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    copy = f"{clock.rfc3339(clock.now_ms()).replace(':', '-')}.md"
    writing.replace(private_folder(home / FOLDER) / copy, drafted.encode("utf-8", "replace"))
    writing.replace(path, content, mode=mode)


def _hash(path: Path, before: bytes, after: bytes) -> str:
    parts = b"\0".join((str(path).encode("utf-8", "replace"), before, after))
    return hashlib.blake2b(parts, digest_size=16).hexdigest()


def _diff(path: Path, before: bytes, after: bytes) -> str:
    old, new = (one.decode("utf-8", "replace").splitlines() for one in (before, after))
    return "\n".join(difflib.unified_diff(old, new, str(path), str(path), lineterm=""))
