"""What the owner, or memoryd for the owner's safety, has decided against the logs: kept by every rebuild.

In and out: ``overrides.jsonl`` in memoryd's home, one JSON object a line, each with a `kind`::

    {"kind":"floor","source","root","log","class","untrusted","ts","why"}
    {"kind":"relabel","source","root","log","from","to","class","trusted","reason","rows","ts"}
    {"kind":"forget","source","root","log","from","to","block","until","act","ts"}
    {"kind":"remember","act","ts"}

Lines are only ever appended, and each is on the disk before anything that rests on it is committed; a line
that nothing rests on does no harm. A line that a kill cut short was never acted upon: it is counted. A line
that is whole and not understood is refused by its number, since what it held back would come out.
"""

import os
from pathlib import Path

import msgspec

from memoryd.clock import now_ms, rfc3339
from memoryd.errors import ConfigError

FILE = "overrides.jsonl"


class Floor(msgspec.Struct, frozen=True, tag_field="kind", tag="floor"):
    """The first record of a log starts at this label or above: its file was rewritten."""

    source: str
    root: str
    log: str
    cls: str = msgspec.field(name="class")
    untrusted: bool
    why: str = ""
    ts: str = ""


class Relabel(msgspec.Struct, frozen=True, tag_field="kind", tag="relabel", omit_defaults=True):
    """The owner's own label for records `first` to `last` (both included) of a log.

    `cls`: the class they have instead, or None: theirs. `trusted`: no longer untrusted. `rows` names the
    rows that it was said of, by their content: other words at their place keep the label they have.
    """

    source: str
    root: str
    log: str
    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")
    rows: str
    reason: str
    cls: str | None = msgspec.field(name="class", default=None)
    trusted: bool = False
    ts: str = ""


class Forget(msgspec.Struct, frozen=True, tag_field="kind", tag="forget", omit_defaults=True):
    """Records of a log that must not come back: `first` to `last` (both included); None: to its end.

    `block`: only this one of theirs; `until`: only those of an earlier time (ms). `act` names all entries
    that one wish of the owner made.
    """

    source: str
    root: str
    log: str
    first: int = msgspec.field(name="from", default=0)
    last: int | None = msgspec.field(name="to", default=None)
    block: int | None = None
    until: int | None = None
    act: str = ""
    ts: str = ""


class Remember(msgspec.Struct, frozen=True, tag_field="kind", tag="remember"):
    """What `act` forgot may come back: its earlier entries count no more."""

    act: str
    ts: str = ""


Entry = Floor | Relabel | Forget | Remember


class Overrides(msgspec.Struct):
    """Every entry in the order of the file, and how many lines were cut short."""

    entries: list[Entry] = []
    unreadable: int = 0


_decode = msgspec.json.Decoder(Entry).decode
_encode = msgspec.json.Encoder(order="sorted").encode


def read(home: Path) -> Overrides:
    """Return what the file holds; nothing where there is none.

    Raises: ConfigError naming the line of an entry that this program does not understand; OSError.
    """
    found = Overrides()
    try:
        lines = (home / FILE).read_bytes().split(b"\n")
    except FileNotFoundError:
        return found
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            found.entries.append(_decode(line))
        except msgspec.ValidationError:
            raise ConfigError(
                f"line {number} of {FILE} is no entry that this memoryd knows",
                remedy="run the memoryd that wrote it, or take the line out if it is not yours",
            ) from None
        except msgspec.DecodeError:
            found.unreadable += 1
    return found


def append(home: Path, *entries: Entry) -> None:
    """Write entries onto the disk, all by one write; one without a time gets the present.

    Raises: OSError.
    """
    stamp = rfc3339(now_ms())
    stamped = (e if e.ts else msgspec.structs.replace(e, ts=stamp) for e in entries)
    written = b"".join(_encode(entry) + b"\n" for entry in stamped)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(home / FILE, flags, 0o600)
    try:
        size = os.fstat(handle).st_size
        # A line that a kill cut short must not swallow this one.
        cut = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        _write_all(handle, b"\n" * cut + written)
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
