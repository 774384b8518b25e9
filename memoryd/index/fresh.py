"""What a turn brought: the rows that came in, summed up by log and label, for whoever follows along.

In: a connection, the id of the first row that is new. Out: `Fresh`, none of them with text. Ids of rows are
given in reading order, so the new ones are a range, and nothing has to be kept while rows are written.
"""

import apsw
import msgspec

from memoryd.ids import Ids
from memoryd.labels import Label
from memoryd.records import Kind


class Fresh(msgspec.Struct, frozen=True):
    """New rows of one log under one label: how many, and the last of them.

    `said` says whether the owner said them: alone these a reader may be told of, where they are untrusted.
    """

    label: Label
    said: bool
    rows: int
    id: str
    ts: int | None
    source: str
    session: str
    project: str | None


def fresh(connection: apsw.Connection, ids: Ids, classes: int, since: int) -> list[Fresh]:
    """Return what came in from row `since` on, notes aside, class by class. Raises: apsw.Error."""
    return [
        Fresh(
            Label(level, bool(untrusted)),
            bool(said),
            rows,
            ids.encode(key, n, block),
            ts,
            source,
            session,
            project,
        )
        for level in range(classes)
        for untrusted, said, rows, _, n, block, ts, key, source, session, project in connection.execute(
            f"SELECT r.untrusted, r.kind = ?, count(*), max(r.id), r.n, r.block, r.ts, "
            f"log.key, log.source, log.session, log.project "
            f"FROM row_{level} r JOIN log ON log.id = r.log WHERE r.id >= ? AND r.kind != ? "
            f"GROUP BY r.log, r.untrusted, r.kind = ? ORDER BY max(r.id)",
            (int(Kind.OWNER), since, int(Kind.NOTE), int(Kind.OWNER)),
        )
    ]
