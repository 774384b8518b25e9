"""Every indexed record as one line of canonical JSON: two equal indexes give the same bytes.

In: a connection to an index. Out: lines, sorted by (source, log, n, block) in the order of their UTF-8
bytes; two roots that hold the same path stand side by side. Canonical: sorted keys, no spaces, UTF-8.
For the owner only: it tells everything.
"""

from collections.abc import Iterator
from itertools import groupby

import apsw
import msgspec

from memoryd import db
from memoryd.clock import rfc3339
from memoryd.index.schema import class_of, read_meta
from memoryd.records import Kind

Place = tuple[str, str, int, int, str]
"""Source, log, n, block, root: where a dump has come to, and where it goes on."""

_encode = msgspec.json.Encoder(order="sorted").encode


def dump(connection: apsw.Connection, after: Place | None = None) -> Iterator[tuple[Place, bytes]]:
    """Yield the place and the line (with its newline) of every record behind `after`.

    Raises: what `db.wrong` knows.
    """
    names = read_meta(connection).classes
    start = after[:2] if after else ("", "")
    with db.translated():
        logs = connection.execute(
            "SELECT source, log, id, root, session FROM log WHERE (source, log) >= (?, ?) "
            "ORDER BY source, log, root",
            start,
        ).fetchall()
        for (source, log), group in groupby(logs, key=lambda row: (str(row[0]), str(row[1]))):
            told = {int(str(row[2])): (str(row[3]), str(row[4])) for row in group}
            for row in _rows(connection, names, tuple(told)):
                n, block, kind, ts, tool, level, untrusted, text, number = row
                root, session = told[number]
                place = (source, log, n, block, root)
                if after is None or place > after:
                    line = {
                        "source": source,
                        "log": log,
                        "session": session,
                        "n": n,
                        "block": block,
                        "kind": Kind(kind).word,
                        "ts": None if ts is None else rfc3339(ts),
                        "tool": tool,
                        "class": class_of(names, level),
                        "untrusted": bool(untrusted),
                        "text": text,
                    }
                    yield place, _encode(line) + b"\n"


def _rows(
    connection: apsw.Connection, names: tuple[str, ...], logs: tuple[int, ...]
) -> apsw.Cursor:
    marks = ", ".join("?" * len(logs))
    tables = " UNION ALL ".join(
        f"SELECT n, block, kind, ts, tool, {c} AS level, untrusted, text, log "
        f"FROM row_{c} AS r JOIN ft_{c} AS f ON f.rowid = r.id WHERE log IN ({marks})"
        for c in range(len(names))
    )
    return connection.execute(
        f"SELECT t.* FROM ({tables}) AS t JOIN log ON log.id = t.log ORDER BY n, block, root",
        logs * len(names),
    )
