"""The owner's word on labels: shown for one log (`explain`), changed for a range of its records (`relabel`).

In: an open index, a log's name, a range. Out: an entry in `overrides.jsonl`, on the disk before any row says
so, and the rows as the entry has them. A kill in between leaves rows that the next opening folds again
before anybody is served (`settled`).
"""

import msgspec

from memoryd import db
from memoryd.errors import BadRequest, Conflict, NotFound
from memoryd.fold import State, fold
from memoryd.index import overrides, relabels, table
from memoryd.index.catalogue import Known
from memoryd.index.explaining import Explained, explain
from memoryd.index.files import opened, start_of
from memoryd.index.following import Following
from memoryd.index.listening import Retelling
from memoryd.index.overrides import Relabel
from memoryd.index.relating import refold, undecided
from memoryd.index.table import Log
from memoryd.labels import LabelError
from memoryd.points import reached
from memoryd.sources import LogFile, lines
from memoryd.sources.lines import Position


class Wish(msgspec.Struct, frozen=True):
    """What the owner wants of a log's records `first` to `last` (None: to its end)."""

    first: int = 0
    last: int | None = None
    cls: str | None = None
    trusted: bool = False
    reason: str = ""


class Relabelled(msgspec.Struct, frozen=True):
    """What was changed: the log, the range as it was taken, and how many rows it holds."""

    source: str
    log: str
    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")
    rows: int


def told(following: Following, name: str) -> Explained:
    """Return why the rows of the log called `name` have their labels.

    Raises: NotFound, BadRequest, Conflict, OSError.
    """
    log, file = _found(following, name)
    writer = following.writer
    return explain(following.settings, file, log, writer.kin, writer.relabels.of(log.key))


def relabel(following: Following, name: str, wish: Wish) -> Relabelled:
    """Give rows of a log the owner's own label, for good.

    Raises: NotFound, BadRequest, Conflict, OSError, and what else `db.wrong` knows.
    """
    settings, writer = following.settings, following.writer
    _check(following, wish)
    log, file = _found(following, name)
    last = log.position.records - 1 if wish.last is None else wish.last
    rows = _rows(following, log, file, (wish.first, last))
    if not rows:
        raise BadRequest(
            "no row is in that range", remedy=f"records go from 0 to {log.position.records - 1}"
        )
    entry = Relabel(
        *log.place, wish.first, last, "".join(rows), wish.reason, wish.cls, wish.trusted
    )
    overrides.append(settings.home, entry)
    reached("relabel: written")
    writer.relabels = relabels.gathered(overrides.read(settings.home), writer.ids, settings.classes)
    settled(following)
    return Relabelled(log.place.source, log.place.log, wish.first, last, len(rows))


def settled(following: Following) -> None:
    """Fold again whoever's rows rest on other overrides than those in force, before they are served.

    A file that cannot be read is left to the next sweep. Raises: what `db.wrong` knows.
    """
    writer, changed = following.writer, list[Log]()
    mark = writer.rows.mark()
    try:
        with db.transaction(following.connection):
            wanted = (
                (following.find(log.place), log) for log in undecided(writer, following.catalogue)
            )
            there = [(file, log, log.heard) for file, log in wanted if file is not None]
            changed += refold(writer, there)
    except BaseException:
        writer.forget(mark)
        raise
    for log in changed:
        following.catalogue.put(log)


def _check(following: Following, wish: Wish) -> None:
    if wish.cls is None and not wish.trusted:
        raise BadRequest("nothing says how", remedy="give a class, or say that it is trusted")
    if wish.cls is not None:
        try:
            following.settings.classes.level(wish.cls)
        except LabelError as error:
            raise BadRequest(f"class: {error}", remedy="name one of these", field="class") from None
    if not wish.reason.strip():
        raise BadRequest(
            "no reason is given", remedy="say why; it is kept with the override", field="reason"
        )
    if wish.last is not None and wish.last < wish.first:
        raise BadRequest(
            "the range ends before it begins", remedy="FROM:TO, both included", field="to"
        )


def _found(following: Following, name: str) -> tuple[Log, LogFile]:
    """Return the one log that is called so: its path, the end of it, or its session."""
    known = list(following.catalogue.known.values())
    for same in (_is_path, _is_session, _is_end):
        found = [one for one in known if same(one, name)]
        if len(found) > 1:
            raise BadRequest(
                f"{len(found)} logs are called so", remedy="give more of the path", field="log"
            )
        if found:
            return _live(following, found[0])
    raise NotFound("no such log", remedy="name it by its path below its folder of logs")


def _is_path(known: Known, name: str) -> bool:
    return name in {known.place.log, f"{known.place.root}/{known.place.log}"}


def _is_session(known: Known, name: str) -> bool:
    return known.session == name


def _is_end(known: Known, name: str) -> bool:
    return (
        known.place.log.endswith((f"/{name}", f"/{name}.jsonl"))
        or known.place.log == f"{name}.jsonl"
    )


def _live(following: Following, known: Known) -> tuple[Log, LogFile]:
    log = table.load(following.connection, known.id)
    file = following.find(known.place)
    if log is None or file is None or log.state != table.LIVE:
        raise Conflict(
            "the log's file is gone, or not read", remedy="labels of kept rows stay as they are"
        )
    return log, file


def _rows(following: Following, log: Log, file: LogFile, span: tuple[int, int]) -> list[str]:
    """Return the names of a log's own rows in a range, as far as it is read. Raises: OSError."""
    settings, ear, names = following.settings, Retelling(log.heard), list[str]()
    state = State(start_of(settings, file, log.floor))
    with opened(file) as (handle, _):
        for batch in lines.read(handle, Position(), file.adapter, log=file.log):
            for record in batch.records:
                if record.n >= log.position.records or record.n > span[1]:
                    return names
                rows = fold(state, record, settings.rules, file.root.trusted, ear)
                state.trail.clear()
                if record.n >= span[0] and not ear.copied(record):
                    names += [relabels.name_of(following.writer.ids, record.n, i) for i, _ in rows]
    return names
