"""Forgetting: the owner's wish that records be gone, from the index, from kept copies, and for good.

In: an open index, which records are meant. Out: what goes (`Forgotten`), and then its going, in this order:
entries in `overrides.jsonl`, without which the next reading would bring the records back; kept copies; rows,
with what the index noted beside them; what others derived from them (hooks that the daemon gives); their
logs' files, only if that is asked for. A kill in between leaves an index that was read under other entries
than there are, which the next sweep sees and mends. Last, words are taken out of the file (`purging`).

What a forgotten record brought into its session still raises the label of what follows it.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from memoryd import db
from memoryd.errors import BadRequest, Conflict, NotFound
from memoryd.index import identity, overrides, purging, swap, table, tombs, vanished
from memoryd.index.catalogue import Known
from memoryd.index.following import Following
from memoryd.index.overrides import Forget, Remember
from memoryd.index.table import Place
from memoryd.index.tombs import Tomb
from memoryd.index.writer import FORGOTTEN
from memoryd.points import reached

ERASED = "erased"
"""The state of a log that the index does not know any more."""


class Wanted(msgspec.Struct, frozen=True):
    """Which records are meant: all that is given must fit. `before`: ms since 1970; `ids`: of rows.

    `project` is a glob, also tried on a path's last part.
    """

    session: str | None = None
    project: str | None = None
    before: int | None = None
    ids: tuple[str, ...] = ()


class Gone(msgspec.Struct, frozen=True):
    """What goes of one log; `whole`: all of it that was read."""

    place: Place
    session: str
    project: str | None
    tomb: Tomb
    whole: bool

    def covers(self, n: int, block: int, ts: int | None) -> bool:
        """Say whether a row of this place in the log and this time goes."""
        return self.tomb.covers(n, block, ts)


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
    """What goes, or went; `act` names it, for taking it back. `copies`: kept files of vanished logs."""

    act: str
    rows: int
    copies: int
    logs: list[OneLog]
    derived: dict[str, int]


class _One(msgspec.Struct):
    """One log on its way out; `known` None: it is kept, and in no index."""

    gone: Gone
    key: int
    entries: tuple[Forget, ...]
    known: Known | None
    copy: Path | None
    rows: int = 0


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
        found = list(_plan(following, wanted, act))
    if not found:
        raise NotFound(
            "nothing fits", remedy="see `bxctl memory sessions`; it may be forgotten already"
        )
    erased = Erased(tuple(one.gone for one in found), _names(following, found))
    if not dry:
        _carry_out(following, found)
    derived: dict[str, int] = {}
    for hook in hooks:
        for kind, many in hook(erased, dry).items():
            derived[kind] = derived.get(kind, 0) + many
    logs = [_told(one, delete=delete_logs, dry=dry) for one in found]
    copies = sum(one.copy is not None for one in found)
    return Forgotten("" if dry else act, sum(one.rows for one in found), copies, logs, derived)


def remember(following: Following, act: str) -> tuple[int, int]:
    """Let what `act` forgot be read again from its logs; return how many there are, and how many are gone.

    Raises: NotFound for an act that is not in force, Conflict when all of its logs are gone, OSError.
    """
    home = following.settings.home
    entries = list(tombs.in_force(home))
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


# ---------------------------------------------------------------- what is meant


def _plan(following: Following, wanted: Wanted, act: str) -> Iterator[_One]:
    """Yield what goes of each log that fits, read or only kept."""
    spots = [following.writer.ids.decode(id_) for id_ in wanted.ids]
    at: dict[int, list[tuple[int, int]]] = {}
    for spot in filter(None, spots):
        at.setdefault(spot[0], []).append(spot[1:])
    home, known_logs = following.settings.home, following.catalogue.known
    kept = vanished.keys(home)
    for key, known in sorted(known_logs.items(), key=lambda item: item[1].place):
        about = _Named(known.place, known.session, known.project, known.records)
        entries = _entries(about, (known.first_ts, known.last_ts), wanted, at.get(key, []), act)
        if entries:
            copy = vanished.path_of(home, key) if key in kept else None
            yield _counted(following, _One(_gone(about, entries), key, entries, known, copy))
    for key in sorted(kept - set(known_logs)):
        path = vanished.path_of(home, key)
        with suppress(vanished.Unusable):
            head = vanished.head(path)
            place = Place(head.source, head.root, head.log)
            about = _Named(place, head.session, head.project, head.records)
            times = (head.first_ts, head.last_ts)
            entries = _entries(about, times, wanted, at.get(key, []), act)
            if entries:
                yield _counted(following, _One(_gone(about, entries), key, entries, None, path))


class _Named(NamedTuple):
    place: Place
    session: str
    project: str | None
    records: int


def _entries(
    about: _Named,
    times: tuple[int | None, int | None],
    wanted: Wanted,
    spots: list[tuple[int, int]],
    act: str,
) -> tuple[Forget, ...]:
    """Return the entries by which what is meant of one log goes; none where nothing is."""
    if not about.records or (wanted.session is not None and about.session != wanted.session):
        return ()
    if wanted.project is not None and not _fits(wanted.project, about.project or ""):
        return ()
    first_ts, last_ts = times
    last, before = about.records - 1, wanted.before
    if wanted.ids:
        return tuple(Forget(*about.place, n, n, block, before, act) for n, block in sorted(spots))
    if before is None or (last_ts is not None and last_ts < before):
        return (Forget(*about.place, 0, last, act=act),)
    if first_ts is None or first_ts >= before:
        return ()
    return (Forget(*about.place, 0, last, until=before, act=act),)


def _fits(glob: str, project: str) -> bool:
    return fnmatchcase(project, glob) or fnmatchcase(project.rsplit("/", 1)[-1], glob)


def _gone(about: _Named, entries: tuple[Forget, ...]) -> Gone:
    tomb = Tomb(entries)
    return Gone(about.place, about.session, about.project, tomb, tomb.whole(about.records))


def _counted(following: Following, one: _One) -> _One:
    """Return `one` with the number of its rows that go."""
    tomb = one.gone.tomb
    if one.known is not None:
        classes = len(following.settings.classes)
        one.rows = _count(following.connection, one.known.id, tomb, classes)
    elif one.copy is not None:
        for line in filter(None, vanished.kept(one.copy)):
            gone = tomb.covers(line.n, line.block, line.ts)
            one.rows += line.kind != vanished.RAISED and gone
    return one


def _where(log: int, entry: Forget) -> tuple[str, tombs.Values]:
    sql, values = tombs.condition(entry)
    return f"log = :log AND {sql}", {"log": log, **values}


def _count(connection: apsw.Connection, log: int, tomb: Tomb, classes: int) -> int:
    many = 0
    for c in range(classes):
        for sql, values in (_where(log, entry) for entry in tomb.entries):
            many += int(
                connection.execute(f"SELECT count(*) FROM row_{c} WHERE {sql}", values).get or 0
            )
    return many


def _names(following: Following, found: Sequence[_One]) -> frozenset[str]:
    """Return the names of sessions and projects that no other log has."""
    whole = {one.key for one in found if one.gone.whole}
    left = [known for key, known in following.catalogue.known.items() if key not in whole]
    others = {known.session for known in left} | {known.project or "" for known in left}
    logs = [one.gone for one in found if one.gone.whole]
    names = {gone.session for gone in logs} | {gone.project or "" for gone in logs}
    return frozenset(names - others - {""})


# ---------------------------------------------------------------- its going


def _carry_out(following: Following, found: Sequence[_One]) -> None:
    """Write down what is forgotten, then delete it. Raises: OSError, what `db.wrong` knows."""
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
    writer.forget(writer.rows.mark())  # folds in memory hold names
    with db.transaction(following.connection):
        logs = [_erase(following, one) for one in found if one.known is not None]
        purging.want(following.connection)
    reached("forget: committed")
    for log in filter(None, logs):
        if log.state == ERASED:
            following.catalogue.drop(log.key)
        else:
            following.catalogue.put(log)
    following.purging = True


def _not_yet(one: _One, tomb: Tomb | None) -> Iterator[Forget]:
    """Yield the entries that are not in force already, by whichever act."""
    there = () if tomb is None else tomb.entries
    bare = {msgspec.structs.replace(entry, act="", ts="") for entry in there}
    for entry in one.entries:
        if msgspec.structs.replace(entry, act="", ts="") not in bare:
            yield entry


def _strip(one: _One, tomb: Tomb | None) -> None:
    if one.copy is None or tomb is None:
        return
    try:
        vanished.strip(one.copy, tomb)
    except FileNotFoundError:
        return
    except vanished.Unusable:
        if one.gone.whole:
            one.copy.unlink()


def _erase(following: Following, one: _One) -> table.Log | None:
    """Delete the rows of one log, and every word that the index noted beside them; in a transaction."""
    connection, classes = following.connection, len(following.settings.classes)
    log = None if one.known is None else table.load(connection, one.known.id)
    if log is None:
        return None
    last = _last(connection, log.id, one.gone.tomb, classes)
    for c in range(classes):
        for sql, values in (_where(log.id, entry) for entry in one.entries):
            log.indexed -= purging.delete(connection, c, sql, values)
    if log.state == table.GONE and one.gone.whole:
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
        for sql, values in (_where(log, entry) for entry in tomb.entries):
            found = connection.execute(f"SELECT max(n) FROM row_{c} WHERE {sql}", values).get
            numbers.append(-1 if found is None else int(str(found)))
    return max(numbers)


def _told(one: _One, *, delete: bool, dry: bool) -> OneLog:
    """Delete a log's file if that is wanted and all of it was forgotten; return what is told of it."""
    place, known = one.gone.place, one.known
    path = Path(place.root, place.log)
    there = path.is_file()
    deletes = delete and there and one.gone.whole and known is not None
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
