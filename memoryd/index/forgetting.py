"""Forgetting: the owner's wish that records be gone, from the index, from kept copies, and for good.

In: an open index, which records are meant. Out: what goes (`Forgotten`), and then its going, in this order:
what others derived from them (hooks that the daemon gives); entries in `overrides.jsonl`, without which the next
reading would bring the records back; kept copies; rows, with what the index noted beside them; what others
derived meanwhile; their logs' files, only if that is asked for. A kill before the entries leaves a wish that is
not carried out, after them an index that was read under other entries than there are, which the next sweep sees
and mends: nobody would see that something derived was left. Last, words are taken out of the file (`purging`).

What a forgotten record brought into its session still raises the label of what follows it.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from memoryd import db
from memoryd.errors import BadRequest, Conflict, NotFound
from memoryd.index import identity, overrides, purging, swap, table, tombs, vanished
from memoryd.index.catalogue import Known
from memoryd.index.choosing import Gone, One, Wanted, names, plan, where
from memoryd.index.following import Following
from memoryd.index.overrides import Forget, Remember
from memoryd.index.table import Place
from memoryd.index.tombs import Tomb
from memoryd.index.writer import FORGOTTEN
from memoryd.points import reached
from memoryd.sources import ADAPTERS

ERASED = "erased"
"""The state of a log that the index does not know any more."""


class Erased(NamedTuple):
    """What those who derive from records are told: what goes, and names that nothing else has any more."""

    logs: tuple[Gone, ...]
    names: frozenset[str]


Hook = Callable[[Erased, bool], Mapping[str, int]]
"""Takes away what was derived from records, or with True only counts it; returns how many of each kind."""


class OneLog(msgspec.Struct, frozen=True):
    """What is told of a log: how many rows go, and whether its file still holds the words afterwards."""

    source: str
    session: str
    project: str | None
    path: str
    rows: int
    whole: bool
    held: bool
    deleted: bool


class Forgotten(msgspec.Struct, frozen=True):
    """What goes, or went. `copies`: kept files of vanished logs.

    `act` names it, for taking it back; "" where nothing is new.
    """

    act: str
    rows: int
    copies: int
    logs: list[OneLog]
    derived: dict[str, int]


def forget(
    following: Following, wanted: Wanted, *, dry: bool, delete_logs: bool, hooks: Sequence[Hook]
) -> Forgotten:
    """Forget what is meant; `dry`: only tell what that would come to.

    Raises: BadRequest for a wish without any bound, NotFound where nothing fits, OSError, what `db.wrong` knows.
    """
    if wanted == Wanted():
        raise BadRequest(
            "nothing says what to forget", remedy="name a session, project, time or id"
        )
    act = f"forget-{secrets.token_hex(4)}"
    with db.translated():
        found = plan(following, wanted, act)
    if not found:
        raise NotFound(
            "nothing fits", remedy="see `bxctl memory sessions`; it may be forgotten already"
        )
    erased = Erased(tuple(one.gone for one in found), names(following, found))
    derived = _derived(hooks, erased, dry=dry)
    if dry or not _carry_out(following, found):
        act = ""
    if not dry:  # what was told or learned in the meantime
        derived.update(_derived(hooks, erased, dry=dry))
    logs = [_told(one, delete=delete_logs, dry=dry) for one in found]
    copies = sum(one.copy is not None for one in found)
    return Forgotten(act, sum(one.rows for one in found), copies, logs, dict(derived))


def _derived(hooks: Sequence[Hook], erased: Erased, *, dry: bool) -> Counter[str]:
    """Have what was derived from records taken away, or counted; return how many of each kind."""
    derived: Counter[str] = Counter()
    for hook in hooks:
        derived.update(hook(erased, dry))
    return derived


def remember(following: Following, act: str) -> tuple[int, int]:
    """Let what `act` forgot be read again from its logs; return how many there are, and how many are gone.

    Raises: NotFound for an act that is not in force, Conflict when all of its logs are gone, OSError.
    """
    home = following.settings.home
    entries = list(tombs.in_force(overrides.read(home)))
    places = {Place(one.source, one.root, one.log) for one in entries if one.act == act}
    if not places:
        last = list(dict.fromkeys(one.act for one in reversed(entries)))[:5]
        known = f"there are {', '.join(last)}" if last else "nothing is forgotten"
        raise NotFound("nothing was forgotten under that name", remedy=known)
    there = {place for place in places if Path(place.root, place.log).is_file()}
    if not there:
        raise Conflict("the logs are gone, so nothing can come back", remedy="there is none")
    overrides.append(home, Remember(act))
    following.writer.tombs = tombs.read(home, following.writer.ids)
    following.sweep()
    return len(there), len(places) - len(there)


def _carry_out(following: Following, found: Sequence[One]) -> bool:
    """Write down what is forgotten, then delete it; say whether any of it was not written down before.

    Raises: OSError, what `db.wrong` knows.
    """
    settings, writer = following.settings, following.writer
    new = [entry for one in found for entry in _not_yet(one, writer.tombs.of(one.key))]
    if new:
        overrides.append(settings.home, *new)
    writer.tombs = tombs.read(settings.home, writer.ids)
    reached("forget: written down")
    for one in found:
        if one.copy is not None:
            _strip(one, writer.tombs.of(one.key))
    swap.remove_copies(settings.path)
    reached("forget: copies gone")
    mark = writer.rows.mark()
    try:
        with db.transaction(following.connection):
            logs = [_erase(following, one) for one in found if one.known is not None]
            logs += following.settle()
            purging.want(following.connection)
    except BaseException:
        writer.forget(mark)
        raise
    reached("forget: committed")
    for log in filter(None, logs):
        if log.state == ERASED:
            following.catalogue.drop(log.key)
        else:
            following.catalogue.put(log)
    following.purging = True
    return bool(new)


def _not_yet(one: One, tomb: Tomb | None) -> Iterator[Forget]:
    """Yield the entries that are not in force already, by whichever act."""
    there = () if tomb is None else tomb.entries
    bare = {msgspec.structs.replace(entry, act="", ts="") for entry in there}
    for entry in one.entries:
        if msgspec.structs.replace(entry, act="", ts="") not in bare:
            yield entry


def _strip(one: One, tomb: Tomb | None) -> None:
    if one.copy is None or tomb is None:
        return
    try:
        vanished.strip(one.copy, tomb)
    except FileNotFoundError:
        return
    except vanished.Unusable:
        if one.gone.whole:
            one.copy.unlink()


def _erase(following: Following, one: One) -> table.Log | None:
    """Delete the rows of one log, and every word that the index noted beside them; in a transaction."""
    connection, classes = following.connection, len(following.settings.classes)
    log = None if one.known is None else table.load(connection, one.known.id)
    if log is None:
        return None
    following.writer.relate()
    following.writer.release(log)  # a fold in memory holds names
    last = _last(connection, log.id, one.gone.tomb, classes)
    for c in range(classes):
        for sql, values in (where(log.id, entry) for entry in one.entries):
            log.indexed -= purging.delete(connection, c, sql, values)
    if log.state == table.GONE and one.gone.whole:
        following.writer.touched |= following.writer.kin.around(log.key)
        following.writer.kin.drop(log.key)
        table.delete(connection, log.id, classes)
        log.state = ERASED
        return log
    tomb = one.gone.tomb
    table.strip(connection, log.id, lambda n, block: tomb.touches(n, block, last))
    log.forgot = following.writer.tombs.mark(log.key)
    log.left_out = 0 if one.gone.whole else log.left_out
    log.why = FORGOTTEN if log.left_out else None
    table.store(connection, log)
    return log


def _last(connection: apsw.Connection, log: int, tomb: Tomb, classes: int) -> int:
    """Return the number of the last record of which a row goes; -1 for none."""
    numbers = [-1]
    for c in range(classes):
        for sql, values in (where(log, entry) for entry in tomb.entries):
            found = connection.execute(f"SELECT max(n) FROM row_{c} WHERE {sql}", values).get
            numbers.append(-1 if found is None else int(str(found)))
    return max(numbers)


def _told(one: One, *, delete: bool, dry: bool) -> OneLog:
    """Delete a log's file if that is wanted and all of it was forgotten; return what is told of it.

    A session in a database, or in many files, is its harness's to delete: it stays and is told as held.
    """
    place, known = one.gone.place, one.known
    path = Path(place.root, place.log)
    how = ADAPTERS[place.source].whole_of(place.log) if place.source in ADAPTERS else None
    there = path.is_file() if how is None or how.names is None else path.parent.is_file()
    alone = how is None or (how.names is None and how.look is None)
    deletes = delete and there and alone and one.gone.whole and known is not None
    if deletes and not dry and known is not None:
        deletes = _delete(path, known)
    return OneLog(
        source=place.source,
        session=one.gone.session,
        project=one.gone.project,
        path=str(path),
        rows=one.rows,
        whole=one.gone.whole,
        held=there and not deletes,
        deleted=deletes,
    )


def _delete(path: Path, known: Known) -> bool:
    """Delete the file that was read, and no other that lies there now. Raises: OSError."""
    status = path.lstat()
    seen = identity.seen(status)
    if (seen.dev, seen.ino) != (known.seen.dev, known.seen.ino):
        return False
    path.unlink()
    return True
