"""What is read from the index of logs that refer to each other: all rows at once, and the names of records.

In: an open index. Out: of each log what it tells others, and the turns in which a record of some name may stand.
"""

from collections.abc import Collection, Iterator, Mapping

import apsw
import msgspec

from memoryd.index import kinfolk
from memoryd.index.kinfolk import Told
from memoryd.index.lineage import NOTHING, Heard
from memoryd.index.table import Known, Log, Place
from memoryd.labels import Label
from memoryd.sources.lines import Position

_LOGS = (
    "SELECT id, key, source, root, log, session, state, records, floor_level, floor_untrusted, kin, heard "
    "FROM log WHERE source <> 'notes' ORDER BY id"
)
_FEW = 4
"""Names of records that SQLite looks for itself; where there are more, all that stand there are handed over."""
_decode_heard = msgspec.msgpack.Decoder(Heard).decode


def logs(connection: apsw.Connection, known: Mapping[int, Known]) -> Iterator[Log]:
    """Yield of every log, by row id, only what it tells other logs; never to be stored.

    What is `known` of a log already is not kept twice. Raises: apsw.Error.
    """
    share: dict[str, str] = {}
    for (
        number,
        key,
        source,
        root,
        log,
        session,
        state,
        records,
        level,
        bit,
        kin,
        heard,
    ) in connection.execute(_LOGS):
        there = known.get(key)
        place = Place(share.setdefault(source, source), share.setdefault(root, root), log)
        yield Log(
            number, key,
            place if there is None or there.place != place else there.place,
            session if there is None or there.session != session else there.session,
            state=state, position=Position(0, records),
            floor=Label(level, bool(bit)), kin=kinfolk.decode(kin) if kin else Told(),
            heard=_decode_heard(heard) if heard else NOTHING,
        )  # fmt: skip


def names_with(
    connection: apsw.Connection, wanted: Collection[int]
) -> Iterator[tuple[int, int, bytes]]:
    """Yield the log, first record and anchors of each turn that may hold one of these. Raises: apsw.Error."""
    few = [value.to_bytes(8, kinfolk.BYTES) for value in wanted] if len(wanted) <= _FEW else []
    where = " OR ".join(["instr(names, ?)"] * len(few)) or "true"
    yield from connection.execute(f"SELECT log, first_n, names FROM anchor WHERE {where}", few)
