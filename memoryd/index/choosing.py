"""What the owner wants forgotten: which records of which logs, counted and not yet touched.

In: an open index, a wish. Out: for each log that fits, the entries by which its records go, read or only
kept, and the copies that other logs hold of them; and which names nothing else has any more.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from memoryd.index import copies, table, tombs, vanished
from memoryd.index.catalogue import Known
from memoryd.index.following import Following
from memoryd.index.overrides import Forget
from memoryd.index.table import Place
from memoryd.index.tombs import Tomb


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


class One(msgspec.Struct):
    """One log on its way out; `known` None: it is kept, and in no index."""

    gone: Gone
    key: int
    entries: tuple[Forget, ...]
    known: Known | None
    copy: Path | None
    rows: int = 0


def plan(following: Following, wanted: Wanted, act: str) -> list[One]:
    """Return what goes under the name `act`; nothing where nothing fits. Raises: OSError, apsw.Error."""
    found = list(_chosen(following, wanted, act))
    return [*found, *_copies(following, found)]


def _chosen(following: Following, wanted: Wanted, act: str) -> Iterator[One]:
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
            yield _counted(following, One(_gone(about, entries), key, entries, known, copy))
    for key in sorted(kept - set(known_logs)):
        path = vanished.path_of(home, key)
        with suppress(vanished.Unusable):
            head = vanished.head(path)
            place = Place(head.source, head.root, head.log)
            about = _Named(place, head.session, head.project, head.records)
            times = (head.first_ts, head.last_ts)
            entries = _entries(about, times, wanted, at.get(key, []), act)
            if entries:
                yield _counted(following, One(_gone(about, entries), key, entries, None, path))


def _copies(following: Following, found: Sequence[One]) -> list[One]:
    """Return the copies that other logs hold of what goes, for their rows are those that go."""
    chosen = {one.key for one in found}
    connection, classes = following.connection, len(following.settings.classes)
    entries: dict[int, tuple[Forget, ...]] = {}
    for one in found:
        around = following.writer.kin.around(one.key) - chosen
        if one.known is None or not around:
            continue
        gone = copies.gone(connection, one.known.id, one.entries, classes)
        for key in sorted(around):
            known = following.catalogue.known.get(key)
            log = None if known is None else table.load(connection, known.id)
            if log is not None:
                entries[key] = (*entries.get(key, ()), *copies.entries_of(connection, log, gone))
    return [_copying(following, key, told) for key, told in entries.items() if told]


def _copying(following: Following, key: int, entries: tuple[Forget, ...]) -> One:
    known = following.catalogue.known[key]
    about = _Named(known.place, known.session, known.project, known.records)
    return _counted(following, One(_gone(about, entries), key, entries, known, None))


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


def _counted(following: Following, one: One) -> One:
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


def where(log: int, entry: Forget) -> tuple[str, tombs.Values]:
    """Return the condition for the rows of a log that an entry covers, with its values."""
    sql, values = tombs.condition(entry)
    return f"log = :log AND {sql}", {"log": log, **values}


def _count(connection: apsw.Connection, log: int, tomb: Tomb, classes: int) -> int:
    many = 0
    for c in range(classes):
        for sql, values in (where(log, entry) for entry in tomb.entries):
            many += int(
                connection.execute(f"SELECT count(*) FROM row_{c} WHERE {sql}", values).get or 0
            )
    return many


def names(following: Following, found: Sequence[One]) -> frozenset[str]:
    """Return the names of sessions and projects that no other log has."""
    whole = {one.key for one in found if one.gone.whole}
    left = [known for key, known in following.catalogue.known.items() if key not in whole]
    others = {known.session for known in left} | {known.project or "" for known in left}
    logs = [one.gone for one in found if one.gone.whole]
    names = {gone.session for gone in logs} | {gone.project or "" for gone in logs}
    return frozenset(names - others - {""})
