"""Rows as they travel: the map that a hit is, the label that an answer has, and how much fits.

In: ids of rows that a search has already allowed for. Out: maps with the keys of a hit, in one order, so
that equal answers are equal bytes. Text keeps its control characters; whoever shows it makes them visible.
"""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import apsw
import msgspec

from memoryd.clock import rfc3339
from memoryd.ids import Ids
from memoryd.index.scope import Scope
from memoryd.labels import LOWEST, Classes, Label
from memoryd.notes.names import INBOX
from memoryd.records import Kind

MOST_BYTES = 2 << 20
"""UTF-8 bytes of text in one part of an answer; three such parts stay below the wire's 8 MiB."""


class Key(NamedTuple):
    """A row's class and its id there; never leaves this process."""

    level: int
    id: int


class Row(msgspec.Struct, frozen=True):
    """A row with its log, as fetched."""

    level: int
    id: int
    n: int
    block: int
    kind: int
    untrusted: int
    ts: int | None
    tool: str | None
    log_key: int
    source: str
    session: str
    project: str | None
    text: str
    score: float
    snippet: str = ""
    cut: bool = False

    @property
    def label(self) -> Label:
        """Return the row's own label."""
        return Label(self.level, bool(self.untrusted))


def fetch(
    connection: apsw.Connection, keys: Sequence[Key], *, match: str = "", score: str = ""
) -> list[Row]:
    """Return the rows of `keys` in their order, with text.

    With `match`, an expression that finds them all, also the `score` that a function of the connection
    (`score.Scorer`) gives them.
    """
    found: dict[Key, Row] = {}
    for level in sorted({key.level for key in keys}):
        scored = f"{score}(ft_{level}, r.dl)" if match else "0.0"
        matching = f" WHERE f.ft_{level} MATCH :match" if match else ""
        sql = (
            "SELECT r.id, r.n, r.block, r.kind, r.untrusted, r.ts, r.tool,"
            f" l.key, l.source, l.session, l.project, f.text, {scored}"
            f" FROM json_each(:ids) j CROSS JOIN row_{level} r ON r.id = j.value"
            f" CROSS JOIN log l ON l.id = r.log CROSS JOIN ft_{level} f ON f.rowid = r.id{matching}"
        )
        ids = json.dumps([key.id for key in keys if key.level == level])
        for columns in connection.execute(sql, {"ids": ids, "match": match}):
            row = Row(level, *columns)
            found[Key(level, row.id)] = row
    return [found[key] for key in keys if key in found]


def wire(ids: Ids, classes: Classes, scope: Scope, row: Row) -> dict[str, object]:
    """Return what is told of a row whatever it was asked for; its number only to the owner."""
    told: dict[str, object] = {
        "id": ids.encode(row.log_key, row.n, row.block),
        "kind": Kind(row.kind).word,
        "session": row.session,
        "project": row.project,
        "source": row.source,
        "ts": None if row.ts is None else rfc3339(row.ts),
        "tool": row.tool,
        "class": classes.name(row.level),
        "untrusted": bool(row.untrusted),
    }
    if row.kind == Kind.NOTE:
        # A note is untrusted where it lies in an inbox, or while nobody has accepted its bytes.
        told["external"] = bool(row.untrusted) and row.session.split("/")[1:2] != [INBOX]
    if scope.owner:
        told["n"] = row.n
    return told


def with_text(told: dict[str, object], row: Row) -> dict[str, object]:
    """Return `told` with the row's text, and `cut` where that is not the whole of it."""
    return told | {"text": row.text} | ({"cut": True} if row.cut else {})


def join(classes: Classes, labels: Iterable[Label]) -> dict[str, object]:
    """Return the label of everything told, as it travels; of nothing, the lowest."""
    label = LOWEST
    for other in labels:
        label = label.join(other)
    return {"class": classes.name(label.level), "untrusted": label.untrusted}


def fitting(rows: Sequence[Row], room: int) -> list[Row]:
    """Return the first rows whose texts fit into `room` bytes of UTF-8, the last of them cut to fit."""
    kept: list[Row] = []
    for row in rows:
        size = len(row.text.encode())
        if size > room:
            return [*kept, shortened(row, room)] if room > 0 else kept
        kept.append(row)
        room -= size
    return kept


def shortened(row: Row, room: int) -> Row:
    """Return `row` with at most `room` bytes of its text."""
    text = row.text.encode()[:room].decode(errors="ignore")
    return msgspec.structs.replace(row, text=text, cut=True)
