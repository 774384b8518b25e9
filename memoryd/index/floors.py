"""Floors: the labels below which a log may not fall, though its file was rewritten.

In and out: ``overrides.jsonl`` in memoryd's home, one JSON object a line, read by every rebuild. An entry
``{"kind":"floor","source","root","log","class","untrusted","ts","why"}`` says that the first record of
that log starts at this label or above. Lines are only ever appended, and each is on the disk before the
rows that rest on it are committed; an entry that no row rests on does no harm.

Other kinds of entries are other modules' and pass through unread. A line that cannot be read is counted:
what it lifted or held cannot be known, so `Floors.unreadable` is told by `status`.
"""

import os
from pathlib import Path

import msgspec

from memoryd.clock import now_ms, rfc3339
from memoryd.ids import Ids
from memoryd.labels import LOWEST, Classes, Label, LabelError

FILE = "overrides.jsonl"


class _Kind(msgspec.Struct):
    kind: str


class Entry(msgspec.Struct, frozen=True):
    """One floor, as far as it is read back; the file's lines also tell when and why."""

    source: str
    root: str
    log: str
    cls: str = msgspec.field(name="class")
    untrusted: bool


class Floors(msgspec.Struct):
    """Log key to the join of its floors, and how many lines said nothing readable."""

    by_log: dict[int, Label]
    unreadable: int = 0

    def of(self, key: int) -> Label:
        """Return the floor of a log; the lowest label where it has none."""
        return self.by_log.get(key, LOWEST)


def read(home: Path, ids: Ids, classes: Classes) -> Floors:
    """Return every floor in force. A class that is not configured counts as the top class."""
    floors = Floors({})
    try:
        lines = (home / FILE).read_bytes().split(b"\n")
    except FileNotFoundError:
        return floors
    for line in filter(None, lines):
        try:
            if msgspec.json.decode(line, type=_Kind).kind != "floor":
                continue
            entry = msgspec.json.decode(line, type=Entry)
        except msgspec.MsgspecError:
            floors.unreadable += 1
            continue
        key = ids.log_key(entry.source, entry.root, entry.log)
        floors.by_log[key] = floors.of(key).join(_label(entry, classes))
    return floors


def _label(entry: Entry, classes: Classes) -> Label:
    try:
        return Label(classes.level(entry.cls), entry.untrusted)
    except LabelError:
        return Label(classes.top, entry.untrusted)


def append(
    home: Path, place: tuple[str, str, str], label: Label, classes: Classes, why: str
) -> None:
    """Write the floor `label` of the log at `place` (source, root, log), onto the disk.

    Raises: OSError.
    """
    source, root, log = place
    entry = {
        "class": classes.name(label.level),
        "kind": "floor",
        "log": log,
        "root": root,
        "source": source,
        "ts": rfc3339(now_ms()),
        "untrusted": label.untrusted,
        "why": why,
    }
    _append_line(home / FILE, msgspec.json.encode(entry))


def _append_line(path: Path, line: bytes) -> None:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        size = os.fstat(handle).st_size
        # A line that a kill cut short must not swallow this one.
        cut = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, b"\n" * cut + line + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
