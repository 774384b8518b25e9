"""Names of transactions: sortable by time, unique, as UUID version 7 (RFC 9562, 5.7)."""

import secrets


def new_txn(now_ms: int) -> str:
    """Return a new transaction id: 48 bits of milliseconds, version 7, 74 random bits."""
    value = (now_ms & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    value |= 0b10 << 62 | secrets.randbits(62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
