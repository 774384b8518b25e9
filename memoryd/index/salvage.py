"""What must be saved out of an index before one that was built from the logs alone takes its place.

In: the old index, open for reading, and today's settings. Out: kept files of logs that have vanished since,
and floors for logs that were rewritten since; nothing else of it can be had only there. The classes of an
index of other settings are taken by their names.
"""

from collections.abc import Iterable

import apsw

from memoryd import db
from memoryd.index import floors, identity, schema, table, tombs, vanished
from memoryd.index.settings import Settings
from memoryd.index.sweeping import is_folder, what_is_there
from memoryd.index.table import Log
from memoryd.index.vanished import label_of
from memoryd.index.writer import key_of, label_at_end, opened, same_so_far, start_of
from memoryd.labels import Label
from memoryd.sources import LogFile, discover


def salvage(connection: apsw.Connection, settings: Settings) -> None:
    """Save what `connection`, an index of other settings, alone knows.

    Raises: OSError when it cannot be written, and what `db.wrong` knows.
    """
    meta = schema.read_meta(connection)
    ids = settings.ids
    graves = tombs.read(settings.home, ids)
    files = {key_of(ids, file): file for file in discover.discover(settings.roots).logs}
    inodes = {(seen.dev, seen.ino) for seen in map(_seen, files.values()) if seen is not None}
    there = {str(root.path) for root in settings.roots if is_folder(root.path)}
    for log in table.every(connection):
        if log.state != table.LIVE:
            continue
        if log.key in files:
            _hold(settings, files[log.key], log, _label(log.peak, meta, settings))
        elif _vanished(log, there, inodes) and settings.vanished == "keep":
            tomb = graves.of(log.key)
            if tomb is None or not tomb.whole(log.position.records):
                under = vanished.Under(meta.classes, meta.rules)
                vanished.write(settings.home, connection, log, under, tomb)


def hold_rewritten(
    connection: apsw.Connection, settings: Settings, waiting: Iterable[tuple[int, LogFile]]
) -> None:
    """Write floors for those of the logs that wait to be read (row id and file) that were rewritten.

    An index that cannot write knows labels that its logs no longer have; the new one has never seen them.
    Raises: OSError when a floor cannot be written, and what `db.wrong` knows.
    """
    for number, file in waiting:
        with db.translated():
            log = table.load(connection, number)
        if log is not None and log.state == table.LIVE:
            _hold(settings, file, log, log.peak)


def _hold(settings: Settings, file: LogFile, log: Log, peak: Label) -> None:
    """Write a floor where the log was rewritten and its label would now be lower."""
    try:
        with opened(file) as (handle, seen):
            if not log.position.offset or same_so_far(file, log, handle, seen):
                return
            held = floors.read(settings.home, settings.ids, settings.classes).of(log.key)
            end = label_at_end(settings, file, start_of(settings, file, held), handle)
    except OSError:
        return  # the rebuild tells of it
    if not end.covers(peak):
        why = "the log was rewritten"
        floors.append(settings.home, log.place, peak, settings.classes, why)


def _vanished(log: Log, there: set[str], inodes: set[tuple[int, int]]) -> bool:
    return (
        log.position.records > 0
        and log.place.root in there
        and what_is_there(log.place) == "nothing"
        and (log.seen.dev, log.seen.ino) not in inodes
    )


def _label(label: Label, meta: schema.Meta, settings: Settings) -> Label:
    """Return what a label of the old index is today."""
    return label_of(schema.class_of(meta.classes, label.level), label.untrusted, settings.classes)


def _seen(file: LogFile) -> identity.Seen | None:
    try:
        return identity.look(file)
    except OSError:
        return None
