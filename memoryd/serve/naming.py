"""What lessons call a log, so that nothing is learned twice: not when its file moves, nor when it is rewritten.

In: the keys of logs, the database's progress. Out: `Place`, a name and how far it is learned from. The name is
the log's key in twelve hexadecimal digits. A file that takes another's place under the same path gets the next
number (`0123456789ab.1`); calls that stand where they stood before are not learned from again. A log under a
new path whose first call is known of a log that is gone takes over that log's name.
"""

from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from memoryd.index import Known
from memoryd.index.heard import Told
from memoryd.lessons import calls
from memoryd.lessons import forget as forgetting
from memoryd.lessons.pairing import Seen


class Place(NamedTuple):
    """A log's name, and the number of the next record to learn from."""

    name: str
    n: int


class LastCall(NamedTuple):
    """The last call of a log that was written down."""

    n: int
    block: int
    fingerprint: str


def read(connection: apsw.Connection) -> dict[int, Place]:
    """Return how far each log is learned from, by key; of a rewritten one, its newest name's."""
    found: dict[int, Place] = {}
    for name, n in connection.execute("SELECT log, n FROM progress"):
        key = _key(str(name))
        known = found.get(key) if key is not None else None
        if key is not None and (known is None or _number(known.name) < _number(str(name))):
            found[key] = Place(str(name), int(n))
    return found


def place(
    connection: apsw.Connection,
    told: Told,
    known: Place | None,
    logs: Callable[[], dict[int, Known]],
) -> Place:
    """Return where a batch belongs; in the caller's transaction, which may rename a log that moved."""
    if known is None:
        name = f"{told.key:012x}"
        moved = _moved(connection, told, logs) if told.first == 0 else None
        return Place(name, 0) if moved is None else _renamed(connection, moved, name)
    if told.anew and told.first == 0:
        return Place(f"{told.key:012x}.{_number(known.name) + 1}", 0)
    return known


def anew(told: Told) -> Told:
    """Return a batch as one of a log that is another one than it was."""
    return msgspec.structs.replace(told, anew=True)


def before(name: str) -> str | None:
    """Return the name that a rewritten log had before; None for one that was not."""
    number = _number(name)
    if not number:
        return None
    return name[:12] if number == 1 else f"{name[:12]}.{number - 1}"


def known(connection: apsw.Connection, log: str, seen: Seen) -> bool:
    """Say whether the same call stood at the same place in `log`."""
    return calls.at(connection, log, seen.n, seen.block) == seen.fingerprint


def last_call(connection: apsw.Connection, name: str) -> LastCall | None:
    """Return the last call of a log that was written down."""
    found = connection.execute(
        "SELECT n, block, fingerprint FROM call WHERE log = ? ORDER BY n DESC, block DESC LIMIT 1",
        (name,),
    ).get
    return None if found is None else LastCall(int(found[0]), int(found[1]), str(found[2]))


def stands(last: LastCall, told: Told) -> bool:
    """Say whether a call that was written down stands where it stood, as far as a batch can tell."""
    if not told.first <= last.n < told.end:
        return True
    return any(
        call[0] == last.n and call[1] == last.block and print_ == last.fingerprint
        for passage in told.heard
        for call, print_ in zip(passage.made, passage.prints, strict=True)
    )


def forget(connection: apsw.Connection, key: int, home: Path) -> None:
    """Forget all that was learned from a log; in the caller's transaction."""
    forgetting.gone(connection, f"{key:012x}", None, home=home)


def let_go(connection: apsw.Connection, places: Mapping[int, Place], there: Container[int]) -> None:
    """Forget the open calls of logs that are not there: nothing answers them, and nobody could name them any more.

    A log under another path is known again by a call that was answered; where it has none, these stay behind.
    """
    names = [place.name for key, place in places.items() if key not in there]
    if names:
        connection.execute(
            "DELETE FROM waiting WHERE log IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(names).decode(),),
        )


def _moved(
    connection: apsw.Connection, told: Told, logs: Callable[[], dict[int, Known]]
) -> str | None:
    """Return the name of the log that this one was under another path, by its first call."""
    passage = next((one for one in told.heard if one.made), None)
    if passage is None:
        return None
    if not calls.of_session(connection, passage.session):
        return None  # nearly always: a new log is of a new session
    n, block, *_ = passage.made[0]
    found = connection.execute(
        "SELECT log FROM call WHERE session = ? AND n = ? AND block = ? AND fingerprint = ?",
        (passage.session, n, block, passage.prints[0]),
    )
    names = [str(name) for (name,) in found]
    there = logs() if names else {}
    return next((n for n in names if (key := _key(n)) is not None and key not in there), None)


def speaker(told: Told) -> str | None:
    """Return the session of the first call of a batch, by which its log is known again; None if there is none."""
    return next((passage.session for passage in told.heard if passage.made), None)


def _renamed(connection: apsw.Connection, old: str, new: str) -> Place:
    for table in ("failed", "well", "charge", "waiting", "progress"):
        connection.execute(f"UPDATE {table} SET log = ? WHERE log = ?", (new, old))
    taught = connection.execute(
        "SELECT row, call FROM lesson WHERE call >= ? AND call < ?", (f"{old}\0", f"{old}\1")
    )
    for row, call in list(taught):
        connection.execute(
            "UPDATE lesson SET call = ? WHERE row = ?", (new + str(call)[len(old) :], row)
        )
    n = connection.execute("SELECT n FROM progress WHERE log = ?", (new,)).get
    return Place(new, 0 if n is None else int(n))


def _key(name: str) -> int | None:
    head, _, number = name.partition(".")
    try:
        return int(head, 16) if len(head) == 12 and (number.isdigit() or not number) else None
    except ValueError:
        return None


def _number(name: str) -> int:
    return int(name.partition(".")[2] or 0)
