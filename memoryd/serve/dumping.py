"""The dump in pages: canonical lines, and a cursor that fits the same index only.

In: a reader, the cursor of the page before. Out: ``{lines, cursor, label}``. For the owner's socket.
"""

import msgspec

from memoryd.db import Deadline
from memoryd.errors import Conflict
from memoryd.index.dump import Place, dump
from memoryd.index.search import Reader, snapshot

PAGE_BYTES = 1 << 20


def page(reader: Reader, cursor: str | None, deadline: Deadline) -> dict[str, object]:
    """Return the lines (without their newlines) after `cursor`, and where they go on.

    Raises: Conflict for a cursor of an index that was replaced since, TimedOut, Cancelled.
    """
    bound = msgspec.msgpack.encode(("dump", reader.generation))
    after = _opened(reader, cursor, bound)
    lines: list[str] = []
    size = 0
    going_on: str | None = None
    with snapshot(reader, deadline):
        for place, line in dump(reader.connection, after):
            if size >= PAGE_BYTES:
                going_on = reader.ids.seal(msgspec.msgpack.encode(after), bound)
                break
            lines.append(line[:-1].decode())
            size += len(line)
            after = place
    label = {"class": reader.classes.name(reader.classes.top), "untrusted": True}
    return {"lines": lines, "cursor": going_on, "label": label}


def _opened(reader: Reader, cursor: str | None, bound: bytes) -> Place | None:
    if cursor is None:
        return None
    content = reader.ids.open(cursor, bound)
    if content is None:
        raise Conflict("the index was replaced since this dump began", remedy="begin it again")
    return msgspec.msgpack.decode(content, type=Place)
