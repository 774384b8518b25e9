"""Who was told what: one line for every answer that holds stored text, written before it leaves.

In: who asked, the method, the ids, sessions and label of the answer. Out: a line of JSON in ``reads.jsonl``,
never with the query's text, and the lines again for `bxctl memory reads`. Written in the reader's thread, so
that no disk is waited for on the loop. An answer is not held back by a full disk: the line is then missing,
and the owner's status says so.
"""

import os
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec
import structlog

from memoryd.clock import now_ms, rfc3339
from memoryd.index.forgetting import Erased
from memoryd.serve.peers import Asker

FILE = "reads.jsonl"
ROTATED_AT = 16 << 20
"""Bytes at which the file becomes ``reads.jsonl.1``, and the one before it goes."""

log = structlog.get_logger()


class Told(msgspec.Struct, frozen=True):
    """One answer. `caller`: the log of the session that asked, if it named itself.

    `ids`: of records, or names of what was listed; `sessions`: whose records they are. Both are empty for a
    page of a dump, which tells of everything.
    """

    time: str
    socket: str
    uid: int
    pid: int
    method: str
    ids: list[str | None]
    label: dict[str, object]
    caller: str | None = None
    sessions: list[str] = []

    def concerns(self, session: str) -> bool:
        """Say whether a session asked, or records of it were told."""
        if self.caller is not None and session in {self.caller, Path(self.caller).stem}:
            return True
        if self.method in {"dump", "sessions"}:
            return self.method == "dump" or session in self.ids
        return session in self.sessions


_decode = msgspec.json.Decoder(Told).decode


def files(path: Path) -> list[Path]:
    """Return the read log's files that are there, the oldest first."""
    turned = [
        (int(number), one)
        for one in path.parent.glob(f"{path.name}.*")
        if (number := one.name.removeprefix(f"{path.name}.")).isdigit()
    ]
    older = [one for _, one in sorted(turned, reverse=True)]
    return [*older, *([path] if path.exists() else [])]


def told(path: Path) -> Iterator[Told | None]:
    """Yield every answer in the read log at `path`, oldest first; None for a line that cannot be read.

    Raises: OSError.
    """
    for one in files(path):
        with one.open("rb") as file:
            for line in file:
                try:
                    yield _decode(line)
                except msgspec.MsgspecError:
                    yield None


FORGOTTEN = "(forgotten)"
"""What stands in the place of a name that was forgotten."""


def _without(line: bytes, names: Collection[str]) -> bytes:
    """Return a line without these names; one that cannot be read goes whole if it holds any."""
    try:
        told = _decode(line)
    except msgspec.MsgspecError:
        return b"" if any(name.encode() in line for name in names) else line
    logs = {told.caller} if told.caller and Path(told.caller).stem in names else set()
    gone = {*names, *logs}
    if not gone & {*told.ids, *told.sessions, told.caller}:
        return line
    clean = msgspec.structs.replace(
        told,
        ids=[FORGOTTEN if one in gone else one for one in told.ids],
        sessions=[FORGOTTEN if one in gone else one for one in told.sessions],
        caller=FORGOTTEN if told.caller in gone else told.caller,
    )
    return msgspec.json.encode(clean) + b"\n"


class Reads:
    """The read log at `path`; `missing` counts the lines that could not be written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._size = 0
        self.missing = 0

    def note(
        self,
        asker: Asker,
        method: str,
        ids: Iterable[object],
        label: object,
        *,
        caller: str | None = None,
        sessions: Iterable[str] = (),
    ) -> None:
        """Write down that `asker` is being told the records `ids`, whose joined label is `label`."""
        line = msgspec.json.encode(
            {
                "time": rfc3339(now_ms()),
                "socket": asker.capability.name,
                "uid": asker.peer.uid,
                "pid": asker.peer.pid,
                "method": method,
                "ids": list(ids),
                "label": label,
                "caller": caller,
                "sessions": sorted(set(sessions)),
            }
        )
        with self._lock:
            try:
                self._append(line + b"\n")
            except OSError as error:
                self.missing += 1
                log.warning("an answer is missing in reads.jsonl", method=method, errno=error.errno)

    def forget(self, erased: Erased, dry: bool) -> dict[str, int]:
        """Take the names that are forgotten out of every line, or (`dry`) count the lines that hold them.

        Raises: OSError.
        """
        many = 0
        with self._lock:
            for path in files(self._path):
                lines = path.read_bytes().splitlines(keepends=True)
                clean = [_without(line, erased.names) for line in lines]
                changed = sum(old != new for old, new in zip(lines, clean, strict=True))
                if changed and not dry:
                    self._replace(path, b"".join(clean))
                many += changed
        return {"reads": many} if many else {}

    def _replace(self, path: Path, content: bytes) -> None:
        """Put a file with other content in the place of one that may be open."""
        temp = path.with_name(f"{path.name}.new")
        temp.unlink(missing_ok=True)
        handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        temp.rename(path)
        if path == self._path and self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _append(self, line: bytes) -> None:
        """Write one line with one call, so that two writers' lines never mix."""
        if self._handle is not None and self._size >= ROTATED_AT:
            os.close(self._handle)
            self._handle = None
            self._path.rename(self._path.with_name(f"{self._path.name}.1"))
        if self._handle is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._handle = os.open(self._path, flags, 0o600)
            self._size = os.fstat(self._handle).st_size
        self._size += os.write(self._handle, line)
