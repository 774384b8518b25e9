"""Cursors: where an answer went on, sealed so that it fits only the same question by the same reader.

In: what the question was, and a place in its answer. Out: text, and the place again. Nothing is stored:
the seal binds scope, generation and question, and holds no number that a hidden row could move.
"""

import msgspec

from memoryd.errors import Conflict
from memoryd.ids import Ids
from memoryd.index.scope import Scope


class Place(msgspec.Struct, frozen=True, array_like=True):
    """How many of a round's results were told, and which round it is (`recall.rank`)."""

    told: int = 0
    round: int = 0


START = Place()


def bound(generation: str, scope: Scope, question: object) -> bytes:
    """Return what a cursor is bound to: this index, this reader, this question."""
    return msgspec.msgpack.encode((generation, scope, question))


def seal(ids: Ids, place: Place, to: bytes) -> str:
    """Return the cursor for `place` in the answer `to`."""
    return ids.seal(msgspec.msgpack.encode(place), to)


def unseal(ids: Ids, cursor: str | None, to: bytes) -> Place:
    """Return the place of a cursor; the start without one.

    Raises: Conflict for a cursor of another question, another reader or an index that is gone.
    """
    if cursor is None:
        return START
    content = ids.open(cursor, to)
    if content is None:
        raise Conflict(
            "this cursor does not go on from here: it belongs to another question or reader,"
            " or the index was rebuilt since",
            remedy="ask again without a cursor",
        )
    return msgspec.msgpack.decode(content, type=Place)
