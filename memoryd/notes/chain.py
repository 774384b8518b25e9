"""The journal's lines: canonical JSON, each bound to the one before it by a keyed hash.

In: entries and a 32-byte key. Out: lines that nobody without the key can have written, cut out, exchanged or
changed. A plain hash chain can be recomputed by whoever can write the file, so the hash is keyed
(HMAC-SHA256), names its use, and frames what it covers by its length. The anchor (`HEAD`) says how far
the chain went: without it a cut tail would not show.
"""

import hashlib
import hmac
from typing import Any

import msgspec

from memoryd.errors import IOFailed

VERSION = 1
ANCHOR_BYTES = 256
"""Of a record of HEAD, which holds two: one is always whole."""
START = "0" * 64
"""What the first line of a journal has as `prev`."""


class Fault(msgspec.Struct, frozen=True):
    """Something wrong with the journal or a note: where (sequence number or path) and what."""

    where: str
    what: str


def canonical(entry: dict[str, Any]) -> bytes:
    """Return `entry` as sorted keys, no spaces, UTF-8: equal entries are equal bytes."""
    return msgspec.json.encode(entry, order="sorted")


def mac(key: bytes, use: bytes, content: bytes) -> str:
    """Return the keyed hash of `content` for one use, as 64 hexadecimal digits."""
    framed = b"memoryd journal " + use + len(content).to_bytes(8) + content
    return hmac.new(key, framed, hashlib.sha256).hexdigest()


def sealed(key: bytes, entry: dict[str, Any], seq: int, previous: str) -> dict[str, Any]:
    """Return `entry` with its place in the chain: `v`, `seq`, `prev` and `mac`."""
    placed = {**entry, "v": VERSION, "seq": seq, "prev": previous}
    return {**placed, "mac": mac(key, b"line", canonical(placed))}


def line(entry: dict[str, Any]) -> bytes:
    """Return a sealed entry as the journal's line."""
    return canonical(entry) + b"\n"


def parse(content: bytes) -> dict[str, Any] | None:
    """Return the entry of a line without its newline, or None for what is no canonical entry."""
    try:
        entry = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return entry if isinstance(entry, dict) and canonical(entry) == content else None


def lines_of(content: bytes) -> list[bytes]:
    """Return the lines of a journal file; a last one without its newline too."""
    lines = content.split(b"\n")
    return lines[:-1] if not lines[-1] else lines


def check(key: bytes, entry: dict[str, Any], seq: int, previous: str | None) -> str:
    """Return what is wrong with an entry at this place of the chain; "" for nothing.

    `previous`: the seal of the line before; None where that line cannot be read.
    """
    if entry.get("seq") != seq:
        return f"has sequence number {entry.get('seq')!r}: a line is missing, repeated or moved"
    if previous is not None and entry.get("prev") != previous:
        return "does not follow the line before it"
    unsealed = {name: value for name, value in entry.items() if name != "mac"}
    claimed = str(entry.get("mac")).encode()  # compare_digest takes no other text than ASCII
    if not hmac.compare_digest(claimed, mac(key, b"line", canonical(unsealed)).encode()):
        return "was changed, or written without the key"
    if entry.get("v") != VERSION:
        return f"has version {entry.get('v')!r}; this memoryd knows {VERSION}"
    return ""


def anchor(key: bytes, seq: int, last: str) -> bytes:
    """Return one sealed record of HEAD: how far the chain is on the disk. All have one length."""
    head = {"seq": seq, "mac": last}
    record = canonical({**head, "hmac": mac(key, b"head", canonical(head))})
    return record.ljust(ANCHOR_BYTES - 1) + b"\n"


def read_anchor(key: bytes, content: bytes) -> tuple[int, str]:
    """Return (seq, mac) of the later of HEAD's two records; one alone may be half written.

    Raises: IOFailed when both were changed or written without the key.
    """
    parts = (content[:ANCHOR_BYTES], content[ANCHOR_BYTES:])
    found = [head for part in parts if (head := _anchored(key, part)) is not None]
    if found:
        return max(found)
    raise IOFailed(
        "the journal's HEAD was changed or written without the key",
        remedy="run `bxctl memory notes verify` and restore the journal from a copy",
        check="chain",
    )


def _anchored(key: bytes, content: bytes) -> tuple[int, str] | None:
    head = parse(content.rstrip())
    if head is None:
        return None
    claimed = str(head.pop("hmac", None)).encode()
    if not hmac.compare_digest(claimed, mac(key, b"head", canonical(head)).encode()):
        return None
    return int(head["seq"]), str(head["mac"])
