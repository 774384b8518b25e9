"""Copies that one log holds of another's records, when those are forgotten: they are not to come back as its own.

In: entries that forget records of a log; a related log as it is read. Out: entries for its copies of them,
under the same acts, so that taking an act back takes these back too. A resumed or forked session repeats its
parent's records under their names. They count once, as the parent's; but once the parent is forgotten and its
log is gone, they would be the copying log's own: also where the copy was made after its parent was forgotten.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import apsw

from memoryd.index import kinfolk, overrides, purging, table, tombs
from memoryd.index.kinship import runs
from memoryd.index.overrides import Forget
from memoryd.index.table import Log
from memoryd.index.tombs import Tomb
from memoryd.index.writer import Writer

Gone = dict[tuple[int | None, str], set[int]]
"""Names of forgotten records, by the block that is meant of them (None: all of them) and the act."""


def gone(connection: apsw.Connection, log: int, entries: Iterable[Forget], classes: int) -> Gone:
    """Return the names of a log's records that `entries` forget. Raises: apsw.Error.

    Names have no time: where times decide, a record is meant unless it has a row that stays.
    """
    found: Gone = {}
    names = [*_anchors(connection, log)]
    for entry in entries:
        stay = set() if entry.until is None else _younger(connection, log, entry.until, classes)
        meant = {name for n, name in names if n not in stay and _spans(entry, n)}
        if meant:
            found.setdefault((entry.block, entry.act), set()).update(meant)
    return found


def entries_of(
    connection: apsw.Connection, log: Log, gone: Gone, tomb: Tomb | None = None
) -> Iterator[Forget]:
    """Yield entries for a log's copies of records called so, less what its `tomb` covers. Raises: apsw.Error."""
    names = [
        (n, name)
        for n, name in _anchors(connection, log.id)
        if any(first <= n <= last for first, last in log.heard.skips)
    ]
    for (block, act), meant in gone.items():
        numbers = {n for n, name in names if name in meant and not _covered(tomb, n, block)}
        for first, last in runs(sorted(numbers)):
            yield Forget(*log.place, first, last, block, act=act)


def entomb(writer: Writer, keys: set[int]) -> list[Log]:
    """Forget what logs that were just read hold as copies of forgotten records; return those that do.

    In the caller's transaction, once it is settled what is a copy. Raises: ConfigError, OSError, apsw.Error.
    """
    made = [] if not (keys and writer.tombs.by_log) else [*_untold(writer, keys)]
    if not made:
        return []
    overrides.append(writer.settings.home, *(entry for _, entries in made for entry in entries))
    writer.tombs = tombs.read(writer.settings.home, writer.ids)
    for log, entries in made:
        covers = Tomb(tuple(entries)).covers
        table.strip(writer.connection, log.id, partial(covers, ts=None))
        log.forgot = writer.tombs.mark(log.key)
        table.store(writer.connection, log)
        writer.release(log)  # a fold in memory holds names
    purging.want(writer.connection)
    return [log for log, _ in made]


def _untold(writer: Writer, keys: set[int]) -> Iterator[tuple[Log, list[Forget]]]:
    """Yield the logs among `keys` with copies of what is forgotten, and the entries that say so."""
    members, classes = writer.kin.members, len(writer.settings.classes)
    for key in sorted(keys):
        member = members.get(key)
        log = None if member is None else table.load(writer.connection, member.id)
        if log is None or not log.heard.skips or log.state != table.LIVE:
            continue
        entries: list[Forget] = []
        for other in sorted(writer.kin.around(key)):
            tomb = writer.tombs.of(other)
            if tomb is not None:
                meant = gone(writer.connection, members[other].id, tomb.entries, classes)
                entries += entries_of(writer.connection, log, meant, writer.tombs.of(key))
        if entries:
            yield log, entries


def _anchors(connection: apsw.Connection, log: int) -> Iterator[tuple[int, int]]:
    for names in table.names(connection, log):
        yield from kinfolk.named(names.own, names.first_n)
        yield from kinfolk.named(names.copied, names.first_n)


def _younger(connection: apsw.Connection, log: int, until: int, classes: int) -> set[int]:
    """Return the records with a row that is not of before `until` (ms)."""
    found: set[int] = set()
    for c in range(classes):
        sql = f"SELECT n FROM row_{c} WHERE log = ? AND (ts IS NULL OR ts >= ?)"
        found.update(n for (n,) in connection.execute(sql, (log, until)))
    return found


def _spans(entry: Forget, n: int) -> bool:
    return entry.first <= n and (entry.last is None or n <= entry.last)


def _covered(tomb: Tomb | None, n: int, block: int | None) -> bool:
    entries = () if tomb is None else tomb.entries
    return any(e.until is None and e.block in (None, block) and _spans(e, n) for e in entries)
