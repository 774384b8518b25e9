"""The table of logs: how far each is read, what its label is, what was counted.

In and out: `Log`, one row, loaded when a log gets its turn and stored with the rows it counts; and the
fold's state between two turns (open calls, answered calls, trail), in tables of their own.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.fold import Event, State, call_hash
from memoryd.index import kinfolk, purging
from memoryd.index.identity import Marks, Seen
from memoryd.index.kinfolk import Names, Told
from memoryd.index.lineage import NOTHING, Heard
from memoryd.labels import LOWEST, Label
from memoryd.records import About
from memoryd.sources.lines import Position

GONE, LIVE, EXCLUDED, EXPIRED = "gone", "live", "excluded", "expired"


class Place(NamedTuple):
    """Which log: the adapter's id, the source's folder, the path below it."""

    source: str
    root: str
    log: str


class Log(msgspec.Struct):
    """One log as the index knows it; the fields are the columns of table `log`."""

    id: int
    key: int
    place: Place
    session: str
    project: str | None = None
    agent: str | None = None
    told: bool = False
    state: str = LIVE
    position: Position = Position()
    label: Label = LOWEST
    peak: Label = LOWEST
    floor: Label = LOWEST
    seen: Seen = Seen(0, 0, 0, 0)
    marks: Marks = Marks()
    indexed: int = 0
    left_out: int = 0
    unreadable: int = 0
    why: str | None = None
    first_ts: int | None = None
    last_ts: int | None = None
    forgot: int = 0
    kin: Told = msgspec.field(default_factory=Told)
    heard: Heard = NOTHING
    decided: bytes = b""

    def tell(self, about: About) -> None:
        """Take over what a record says of its log; the first record that tells a thing decides it."""
        if about.session is not None and not self.told:
            self.session, self.told = about.session, True
        if about.project is not None and self.project is None:
            self.project = about.project
        if about.agent is not None and self.agent is None:
            self.agent = about.agent

    def met(self, times: Iterable[int | None]) -> None:
        """Take records' times (ms) into account."""
        told = [ts for ts in times if ts is not None]
        if told:
            first, last = min(told), max(told)
            self.first_ts = first if self.first_ts is None else min(first, self.first_ts)
            self.last_ts = last if self.last_ts is None else max(last, self.last_ts)


class Known(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of a log between its turns."""

    id: int
    place: Place
    session: str
    project: str | None
    state: str
    offset: int
    records: int
    label: Label
    floor: Label
    seen: Seen
    indexed: int
    left_out: int
    unreadable: int
    why: str | None
    last_ts: int | None
    first_ts: int | None = None
    forgot: int = 0
    hears: Heard = NOTHING
    decided: bytes = b""


class Folding(msgspec.Struct):
    """A log's fold between two turns: its state, of which tools its open calls are, what is not stored yet.

    `tools` are named by the calls' places, "" for what must not be told; `stored` are the answered calls that the
    database already knows.
    """

    state: State
    tools: dict[tuple[int, int], str] = {}
    events: list[Event] = []
    stored: frozenset[bytes] = frozenset()


_NOWHERE = (-1, -1)
_COLUMNS = (
    "id key source root log session project agent told state records offset discarding begun level untrusted "
    "peak_level peak_untrusted floor_level floor_untrusted dev ino size mtime_ns head tail indexed left_out "
    "unreadable why first_ts last_ts forgot kin heard decided"
).split()
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM log"
_KNOWN_COLUMNS = (
    "id key source root log session project state offset records level untrusted floor_level floor_untrusted "
    "dev ino size mtime_ns indexed left_out unreadable why last_ts first_ts forgot heard decided"
).split()
_SELECT_KNOWN = f"SELECT {', '.join(_KNOWN_COLUMNS)} FROM log"
_STORE = f"INSERT INTO log({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_HASH_BYTES = 8
_decode_heard = msgspec.msgpack.Decoder(Heard).decode
_decode_trail = msgspec.msgpack.Decoder(tuple[bytes, list[Event]]).decode


_SAID_OF_ALL = frozenset(
    ("agents", "base_state", "events", "main", "transcript", "ui_messages", "wire")
)
"""File and folder names that are the same in every session of some harness."""


def session_of(log: str) -> str:
    """Return the session that a log is called where no record tells one: its file's stem.

    Where every log of a harness has the same name, it is the name of the nearest folder that differs.
    """
    *folders, name = log.split("/")
    stem = name[:dot] if 0 < (dot := name.rfind(".")) < len(name) - 1 else name
    for name in (stem, *reversed(folders)):
        if name not in _SAID_OF_ALL:
            return name
    return stem


def load(connection: apsw.Connection, number: int) -> Log | None:
    """Return the log with this row id. Raises: apsw.Error."""
    row = connection.execute(f"{_SELECT} WHERE id = ?", (number,)).fetchone()
    return None if row is None else _log(row)


def every(connection: apsw.Connection) -> list[Log]:
    """Return every log, by row id; notes have rows there too and are none. Raises: apsw.Error."""
    return _where(connection, "source <> 'notes'")


def known(connection: apsw.Connection) -> Iterator[tuple[int, Known]]:
    """Yield every log's key and what is remembered of it, by row id: a third of what a `Log` costs.

    Raises: apsw.Error.
    """
    share: dict[object, Any] = {}  # what many logs have alike is kept once

    def alike(value: Any) -> Any:
        return share.setdefault(value, value)

    found = connection.execute(f"{_SELECT_KNOWN} WHERE source <> 'notes' ORDER BY id")
    for (number, key, source, root, log, session, project, state, offset, records, level, untrusted,
         floor_level, floor_untrusted, dev, ino, size, mtime_ns, indexed, left_out, unreadable, why,
         last_ts, first_ts, forgot, heard, decided) in found:  # fmt: skip
        yield key, Known(
            number, Place(alike(source), alike(root), log), session, alike(project), alike(state),
            offset, records, alike(Label(level, bool(untrusted))),
            alike(Label(floor_level, bool(floor_untrusted))),
            Seen(dev, ino, size, mtime_ns), indexed, left_out, unreadable, why, last_ts, first_ts,
            forgot, _decode_heard(heard) if heard else NOTHING, decided,
        )  # fmt: skip


def notes(connection: apsw.Connection) -> list[Log]:
    """Return the rows of notes, by row id. Raises: apsw.Error."""
    return _where(connection, "source = 'notes'")


def _where(connection: apsw.Connection, condition: str) -> list[Log]:
    found = connection.execute(f"{_SELECT} WHERE {condition} ORDER BY id")
    return [_log(row) for row in found]


def next_number(connection: apsw.Connection) -> int:
    """Return the row id of the next new log. Raises: apsw.Error."""
    return int(str(connection.execute("SELECT coalesce(max(id), 0) + 1 FROM log").get))


def store(connection: apsw.Connection, log: Log) -> None:
    """Write a log's row. Raises: apsw.Error."""
    at, seen, marks = log.position, log.seen, log.marks
    row = (log.id, log.key, *log.place, log.session, log.project, log.agent, log.told, log.state,
           at.records, at.offset, at.discarding, at.begun, *log.label, *log.peak, *log.floor,
           seen.dev, seen.ino, seen.size, seen.mtime_ns, marks.head, marks.tail, log.indexed,
           log.left_out, log.unreadable, log.why, log.first_ts, log.last_ts, log.forgot,
           kinfolk.encode(log.kin), _packed(log.heard), log.decided)  # fmt: skip
    # Never INSERT OR REPLACE: its statement journal makes FTS5 write out a segment each time.
    connection.execute("DELETE FROM log WHERE id = ?", (log.id,))
    connection.execute(_STORE, row)


def load_folding(connection: apsw.Connection, log: Log) -> Folding:
    """Return the fold of a log as its last turn left it. Raises: apsw.Error."""
    if log.position.offset == 0:
        return Folding(State(log.label))
    state = State(log.label, steps=list(log.kin.steps))
    tools: dict[tuple[int, int], str] = {}
    found = connection.execute(
        "SELECT call, level, untrusted, n, block, tool FROM call WHERE log = ?", (log.id,)
    )
    for call, level, untrusted, n, block, tool in found:
        state.calls[call] = Label(level, bool(untrusted))
        state.places[call] = (n, block)
        tools[n, block] = tool
    for hashes, _ in trails(connection, log.id):
        state.answered.update(
            hashes[at : at + _HASH_BYTES] for at in range(0, len(hashes), _HASH_BYTES)
        )
    return Folding(state, tools, [], frozenset(state.answered))


def store_folding(connection: apsw.Connection, log: Log, first_n: int, folding: Folding) -> None:
    """Write what a turn that began at record `first_n` changed. Raises: apsw.Error."""
    state = folding.state
    calls: dict[str | bytes, Label] = {}
    places: dict[str | bytes, tuple[int, int]] = {}
    for call, label in state.calls.items():
        # An id may be a word of a record above `max_class`: only its hash is written.
        key = call if isinstance(call, bytes) else call_hash(call)
        calls[key] = calls.get(key, LOWEST).join(label)
        places[key] = state.places.get(call, _NOWHERE)
    folding.tools = {place: folding.tools.get(place, "") for place in places.values()}
    state.calls, state.places = calls, places
    connection.execute("DELETE FROM call WHERE log = ?", (log.id,))
    connection.executemany(
        "INSERT INTO call(log, call, level, untrusted, n, block, tool) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (log.id, call, *calls[call], *place, folding.tools[place])
            for call, place in places.items()
        ],
    )
    new = state.answered - folding.stored
    if new or folding.events:
        packed = msgspec.msgpack.encode((b"".join(sorted(new)), folding.events))
        connection.execute(
            "INSERT INTO trail(log, first_n, events) VALUES (?, ?, ?)", (log.id, first_n, packed)
        )


def names(connection: apsw.Connection, number: int) -> list[Names]:
    """Return the names of a log's records, as each turn stored them. Raises: apsw.Error."""
    found: Iterable[tuple[int, bytes, bytes]] = connection.execute(
        "SELECT first_n, names, origins FROM anchor WHERE log = ? ORDER BY first_n", (number,)
    )
    return [Names(*row) for row in found]


def trails(connection: apsw.Connection, number: int) -> list[tuple[bytes, list[Event]]]:
    """Return a log's stored turns: hashes of the calls answered in each, and its events."""
    found = connection.execute("SELECT events FROM trail WHERE log = ? ORDER BY first_n", (number,))
    return [_decode_trail(row[0]) for row in found]


def strip(connection: apsw.Connection, number: int, forgotten: Callable[[int, int], bool]) -> None:
    """Leave no word in the trail and the open calls of forgotten places (n, block). Raises: apsw.Error."""
    found = connection.execute("SELECT first_n, events FROM trail WHERE log = ?", (number,))
    turns: list[tuple[Any, ...]] = found.fetchall()
    for first_n, packed in turns:
        hashes, events = _decode_trail(packed)
        bare = [event.bare() if forgotten(event.n, event.block) else event for event in events]
        if bare != events:
            connection.execute(
                "UPDATE trail SET events = ? WHERE log = ? AND first_n = ?",
                (msgspec.msgpack.encode((hashes, bare)), number, first_n),
            )
    calls: list[tuple[Any, ...]] = connection.execute(
        "SELECT call, n, block FROM call WHERE log = ?", (number,)
    ).fetchall()
    for call, n, block in calls:
        if forgotten(n, block):
            connection.execute(
                "UPDATE call SET tool = '' WHERE log = ? AND call = ?", (number, call)
            )


def delete(connection: apsw.Connection, number: int, classes: int, *, row: bool = True) -> None:
    """Delete all that a log has in the index, its own row too unless told otherwise. Raises: apsw.Error."""
    delete_rows(connection, number, classes)
    connection.execute("DELETE FROM call WHERE log = ?", (number,))
    connection.execute("DELETE FROM trail WHERE log = ?", (number,))
    connection.execute("DELETE FROM anchor WHERE log = ?", (number,))
    if row:
        connection.execute("DELETE FROM log WHERE id = ?", (number,))


def delete_rows(connection: apsw.Connection, number: int, classes: int) -> None:
    """Delete a log's rows and nothing else of it. Raises: apsw.Error."""
    delete_rows_of(connection, [number], classes)


def delete_rows_of(connection: apsw.Connection, numbers: list[int], classes: int) -> None:
    """Delete the rows of several logs at once, which costs what it costs for one. Raises: apsw.Error."""
    for c in range(classes if numbers else 0):
        where = f"log IN ({', '.join(map(str, numbers))})"
        purging.delete(connection, c, where, {})


def store_names(connection: apsw.Connection, number: int, names: Names) -> None:
    """Write the names of a turn's records. Raises: apsw.Error."""
    if names.own:
        connection.execute(
            "INSERT INTO anchor(log, first_n, names, origins) VALUES (?, ?, ?, ?)",
            (number, names.first_n, names.own, names.copied),
        )


def _log(row: tuple[Any, ...]) -> Log:
    (number, key, source, root, log, session, project, agent, told, state, records, offset, discarding,
     begun, level, untrusted, peak_level, peak_untrusted, floor_level, floor_untrusted, dev, ino, size,
     mtime_ns, head, tail, indexed, left_out, unreadable, why, first_ts, last_ts, forgot, kin, heard,
     decided) = row  # fmt: skip
    return Log(
        id=number,
        key=key,
        place=Place(source, root, log),
        session=session,
        project=project,
        agent=agent,
        told=bool(told),
        state=state,
        position=Position(offset, records, bool(discarding), bool(begun)),
        label=Label(level, bool(untrusted)),
        peak=Label(peak_level, bool(peak_untrusted)),
        floor=Label(floor_level, bool(floor_untrusted)),
        seen=Seen(dev, ino, size, mtime_ns),
        marks=Marks(head, tail),
        indexed=indexed,
        left_out=left_out,
        unreadable=unreadable,
        why=why,
        first_ts=first_ts,
        last_ts=last_ts,
        forgot=forgot,
        kin=kinfolk.decode(kin) if kin else Told(),
        heard=_decode_heard(heard) if heard else NOTHING,
        decided=decided,
    )


def _packed(heard: Heard) -> bytes:
    return b"" if heard == NOTHING else msgspec.msgpack.encode(heard)
