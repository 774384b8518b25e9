"""Another key for a state folder: what is named with the old one gets new names, nothing else changes.

In: the settings under the old key, of a state folder that the caller holds. Out: a new ``key``. ``key.next`` is
written first and renamed to ``key`` last; while it is there no memoryd starts, and the next run goes on with it.
Each step between says the same when it is done twice:

1. what only the old index knows is saved, as before every rebuild;
2. lessons call each log by its new name, in one transaction;
3. kept logs get the files that their new names mean;
4. the index goes. It is made again from the logs, and nothing in it was made with the new key.

Names of rows in `overrides.jsonl` cannot be made anew where their logs are gone, and a ruling that lost its rows
would lower a label: where there is any, the new key carries on the part that they were made with.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from memoryd import db, state
from memoryd.ids import Ids
from memoryd.index import (
    Built,
    Index,
    Progress,
    Rebuild,
    overrides,
    schema,
    swap,
    table,
    vanished,
)
from memoryd.index.files import place_of
from memoryd.index.overrides import Relabel, Remember
from memoryd.index.salvage import salvage
from memoryd.index.settings import Settings
from memoryd.index.table import Place
from memoryd.lessons import renaming, store
from memoryd.points import reached
from memoryd.sources import discover


class Rotated(msgspec.Struct, frozen=True):
    """How many logs have another name in the lessons, and how many kept logs another file."""

    lessons: int
    kept: int


def rotate(settings: Settings) -> tuple[bytes, Rotated]:
    """Change the key, or go on with a change that was begun; return the new one and what was renamed.

    Raises: ConfigError for a database of a newer memoryd, DiskFull, IOFailed; then `key` is still the old one.
    """
    home, old = settings.home, settings.ids
    new_key = state.next_key(home)
    if new_key is None:
        if not schema.check_file(settings.path):
            _salvage(settings)
        new_key = state.begin_next_key(home, _names_kept(home, old))
        reached("keys: state: next written")
    new = Ids(new_key)
    names = {old.log_key(*place): new.log_key(*place) for place in _places(settings)}
    lessons = _rename_lessons(home / store.NAME, names)
    reached("keys: state: lessons renamed")
    kept = _rename_kept(home, new)
    reached("keys: state: kept logs renamed")
    swap.remove(settings.path)
    reached("keys: state: index removed")
    state.finish_next_key(home)
    reached("keys: state: changed")
    return new_key, Rotated(lessons, kept)


def build(settings: Settings, tell: Callable[[Progress], None]) -> Built:
    """Make the index that `rotate` took away, under the new key. Raises: what `Rebuild.run` raises."""
    index = Index(settings)
    try:
        built = Rebuild(settings).run(tell)
        index.publish(built, swap.NoGate())
    finally:
        index.close()
    return built


def _salvage(settings: Settings) -> None:
    with db.translated():
        connection = db.reader(settings.path)
        try:
            salvage(connection, settings)
        finally:
            connection.close()


def _names_kept(home: Path, old: Ids) -> bytes:
    """Return the part of the old key that names rows, where the owner has ruled on any; else b""."""
    ruled = any(isinstance(entry, Relabel) for entry in overrides.read(home).entries)
    return old.content_key if ruled else b""


def _places(settings: Settings) -> Iterator[Place]:
    """Yield where each log lies that anything knows of; some twice."""
    if not schema.check_file(settings.path):
        with db.translated():
            connection = db.reader(settings.path)
            try:
                yield from (log.place for log in table.every(connection))
            finally:
                connection.close()
    yield from (place_of(file) for file in discover.discover(settings.roots).logs)
    for path in _kept(settings.home):
        with suppress(vanished.Unusable):
            about = vanished.head(path)
            yield Place(about.source, about.root, about.log)
    for entry in overrides.read(settings.home).entries:
        if not isinstance(entry, Remember):
            yield Place(entry.source, entry.root, entry.log)


def _kept(home: Path) -> list[Path]:
    return [vanished.path_of(home, key) for key in sorted(vanished.keys(home))]


def _rename_lessons(path: Path, names: dict[int, int]) -> int:
    if not path.exists():
        return 0
    connection = store.opened(path)
    try:
        with db.translated():
            told = {f"{old:012x}": f"{new:012x}" for old, new in names.items()}
            return renaming.rename(connection, told)
    finally:
        db.close(connection)


def _rename_kept(home: Path, new: Ids) -> int:
    """Give each kept log the file of its new name; what cannot be read keeps its own, and stays unread."""
    renamed = 0
    for path in _kept(home):
        with suppress(vanished.Unusable):
            about = vanished.head(path)
            target = vanished.path_of(home, new.log_key(about.source, about.root, about.log))
            if target != path:
                path.rename(target)
                renamed += 1
    if renamed:
        swap.sync_folder(home / vanished.FOLDER)
    return renamed
