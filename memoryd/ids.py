"""Names of records that tell a reader nothing, and cursors that cannot be forged.

A record's place is (log key, record number, block). Its id is that place under a keyed permutation of
100 bits, written as 20 letters of base32: no row number shows, equal logs give equal ids after any
rebuild, and nothing has to be stored to find the record again. The permutation is a balanced Feistel
network of ten rounds over two halves of 50 bits with keyed BLAKE2b as round function (Luby and Rackoff,
1988: four rounds already give a strong pseudorandom permutation); 12 bits of the plain form are zero,
so a guessed id is refused unless one of 4,096 guesses passes, and then it still names no record.
"""

import hashlib
import hmac
from base64 import b32decode, b32encode, urlsafe_b64decode, urlsafe_b64encode

_HALF = 50
_MASK = (1 << _HALF) - 1
_ROUNDS = 10
_N_BITS, _BLOCK_BITS, _ZERO_BITS = 28, 12, 12
_LOG_BITS = 100 - _N_BITS - _BLOCK_BITS - _ZERO_BITS
MAX_N = (1 << _N_BITS) - 1
MAX_BLOCK = (1 << _BLOCK_BITS) - 1
_MAC_BYTES = 16
_MOST_ROOTS = 64
"""Folders whose part of a log's name is kept hashed: it is the same for thousands of logs."""


def _framed(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return len(data).to_bytes(4) + data


class Ids:
    """Ids and cursors under one key; the key outlives the index, so ids survive a rebuild.

    32 bytes; or 64, of which the last 32 are what stands for texts: they outlive a change of the rest.
    """

    def __init__(self, key: bytes) -> None:
        """Derive the working keys from `key`. Raises: ValueError when it is not 32 or 64 bytes."""
        if len(key) not in {32, 64}:
            raise ValueError("the key has 32 or 64 bytes")
        key, texts = key[:32], key[32:]
        self._log_key = self._derive(key, b"log")
        self._begun: dict[tuple[str, str], hashlib.blake2b] = {}
        self._id_key = self._derive(key, b"id")
        self._seal_key = self._derive(key, b"seal")
        self.content_key = texts or self._derive(key, b"content")

    @staticmethod
    def _derive(key: bytes, use: bytes) -> bytes:
        return hashlib.blake2b(b"memoryd " + use, key=key, digest_size=32).digest()

    def log_key(self, source: str, root: str, log: str) -> int:
        """Return the 48-bit keyed name of a log: its source, its root folder, its path below it."""
        begun = self._begun.get((source, root))
        if begun is None:
            framed = _framed(source) + _framed(root)
            begun = hashlib.blake2b(framed, key=self._log_key, digest_size=6)
            if len(self._begun) < _MOST_ROOTS:
                self._begun[source, root] = begun
        named = begun.copy()
        named.update(_framed(log))
        return int.from_bytes(named.digest())

    def content(self, text: str) -> str:
        """Return 16 hex digits that stand for `text`, and that nobody can check a guess against."""
        data = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self.content_key, digest_size=8).hexdigest()

    def _round(self, number: int, half: int) -> int:
        mixed = hashlib.blake2b(half.to_bytes(7), key=self._id_key, digest_size=7,
                                salt=bytes((number,)))  # fmt: skip
        return int.from_bytes(mixed.digest()) & _MASK

    def encode(self, log_key: int, n: int, block: int) -> str:
        """Return the 20-letter id (``a-z2-7``) of a record's block.

        Raises: ValueError for a place outside 48 bits of log, 28 of record number, 12 of block.
        """
        if not (0 <= log_key < 1 << _LOG_BITS and 0 <= n <= MAX_N and 0 <= block <= MAX_BLOCK):
            raise ValueError("a place that no id can name")
        plain = ((log_key << _N_BITS | n) << _BLOCK_BITS | block) << _ZERO_BITS
        left, right = plain >> _HALF, plain & _MASK
        for number in range(_ROUNDS):
            left, right = right, left ^ self._round(number, right)
        return b32encode((left << _HALF | right).to_bytes(15)).decode().lower()[4:]

    def decode(self, text: str) -> tuple[int, int, int] | None:
        """Return (log key, n, block) of an id, or None for anything this key never gave out."""
        if len(text) != 20 or not text.isascii() or text != text.lower():
            return None
        try:
            mixed = int.from_bytes(b32decode("AAAA" + text.upper()))
        except ValueError:
            return None
        left, right = mixed >> _HALF, mixed & _MASK
        for number in reversed(range(_ROUNDS)):
            left, right = right ^ self._round(number, left), left
        plain = left << _HALF | right
        if plain & ((1 << _ZERO_BITS) - 1):
            return None
        place = plain >> _ZERO_BITS
        return place >> _N_BITS + _BLOCK_BITS, place >> _BLOCK_BITS & MAX_N, place & MAX_BLOCK

    def seal(self, content: bytes, bound: bytes) -> str:
        """Return `content` as text that only this key can have made, bound to `bound`.

        The content is not hidden: put nothing into it that its reader may not know.
        """
        return urlsafe_b64encode(self._mac(content, bound) + content).decode().rstrip("=")

    def open(self, text: str, bound: bytes) -> bytes | None:
        """Return what `seal` was given with the same `bound`, or None for any other text."""
        try:
            raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        except (ValueError, UnicodeEncodeError):
            return None
        mac, content = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        return content if hmac.compare_digest(mac, self._mac(content, bound)) else None

    def _mac(self, content: bytes, bound: bytes) -> bytes:
        framed = len(bound).to_bytes(4) + bound + content
        return hashlib.blake2b(framed, key=self._seal_key, digest_size=_MAC_BYTES).digest()
