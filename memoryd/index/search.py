"""What can be asked of the index: matching rows, one record with its neighbours, how many rows there are.

In: a `Reader` (a read-only connection and what it needs to answer) and a `Scope`, required everywhere.
Out: candidates for `recall` to rank, or the maps that travel. A question runs inside one `snapshot`, so
that all its statements see the same rows, until its deadline. Only tables up to the scope's level are
touched; limits to projects and trust are in every statement's own condition.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, NamedTuple, cast

import apsw

from memoryd.db import Deadline, within
from memoryd.errors import NotFound
from memoryd.ids import Ids
from memoryd.index import grams
from memoryd.index.facts import facts
from memoryd.index.figures import Figures
from memoryd.index.hits import MOST_BYTES, Key, Row, fetch, fitting, join, wire, with_text
from memoryd.index.scan import Find, Scan
from memoryd.index.scope import Scope
from memoryd.index.score import Scorer
from memoryd.index.where import NOTHING_ASKED, Filters, Values, Where, where
from memoryd.labels import Classes

Order = Literal["relevance", "newest", "oldest"]
TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2")
"""As in memoryd/migrations/index: a query is cut into words the way the rows were."""
MOST_NEIGHBOURS = 50
LENGTH = "r.dl"
"""What counts as a row's length when it is scored."""

_NEVER = 1 << 62
_ORDERS: dict[Order, tuple[str, str]] = {
    "relevance": ("-{score}", f"coalesce(-r.ts, {_NEVER})"),
    "newest": (f"coalesce(-r.ts, {_NEVER})", "0"),
    "oldest": (f"coalesce(r.ts, {_NEVER})", "0"),
}
"""What rows are sorted by, ascending; those without a time come last."""


class Match(NamedTuple):
    """A row that holds what was asked for; matches sort as they are, but for ties between logs.

    `first` and `second` are what the order asked for sorts by (the negative score, the negative time).
    `log` and `id` are numbers of this index and never leave this process.
    """

    first: float
    second: float
    log: int
    n: int
    block: int
    id: int
    level: int

    @property
    def ts(self) -> int | None:
        """Return the row's time, where matches are ordered by relevance; None: it has none."""
        return None if self.second == _NEVER else -int(self.second)


_matched: Callable[[Iterable[object]], Match] = partial(tuple.__new__, Match)
"""What `Match._make` is, without a call of Python's."""


class Look(NamedTuple):
    """How to look for rows.

    `match`: an FTS5 expression of quoted strings. `score`: the loaded function (`Scorer.load`), for
    relevance. `depth`: how many rows to return, first by `order`; 0: all, in no order. `newest`: by class,
    above 0, only so many of the rows read last are looked at.
    """

    match: str
    score: str
    order: Order
    depth: int
    newest: Sequence[int] = ()


class LogName(NamedTuple):
    """What a log is called; names sort the same in equal indexes, numbers need not."""

    source: str
    root: str
    log: str
    session: str
    project: str


class Reader:
    """One read-only connection to one generation of the index; one question at a time."""

    def __init__(self, connection: apsw.Connection, ids: Ids, classes: Classes) -> None:
        """Take a connection of `db.reader`, with its key and its classes."""
        self.connection = connection
        self.ids = ids
        self.classes = classes
        self.generation = str(
            connection.execute("SELECT value FROM meta WHERE key = 'generation'").get
        )
        self.figures = Figures(connection)
        self.facts = facts((self.generation, *_file(connection.filename)))
        self.scorer = Scorer(connection)
        self.scan = Scan(connection, self.facts, self.scorer)
        name, *arguments = TOKENIZER
        self._tokenizer = connection.fts5_tokenizer(name, list(arguments))

    def words(self, text: bytes) -> list[tuple[int, int, str]]:
        """Return where each word of UTF-8 `text` starts and ends, and the word as the index keeps it."""
        found = self._tokenizer(text, apsw.FTS5_TOKENIZE_QUERY, None, include_colocated=False)
        return cast("list[tuple[int, int, str]]", found)

    def spans(self, text: bytes) -> list[tuple[int, int, str]]:
        """Return what `words` does, with the grams in place of words that are written without spaces."""
        whole = text.decode(errors="ignore")
        if not grams.unspaced(whole):
            return self.words(text)
        return sorted([*self.words(grams.without(whole).encode()), *grams.spans(whole)])


def _file(path: str) -> tuple[object, ...]:
    # Somebody may have put an older copy of an index in its place.
    try:
        status = Path(path).stat()
    except OSError:
        return (path,)
    return path, status.st_dev, status.st_ino


@contextmanager
def snapshot(reader: Reader, deadline: Deadline) -> Iterator[Reader]:
    """Answer one question from one state of the index. Raises: TimedOut, Cancelled, and `db.wrong`."""
    with within(reader.connection, deadline):
        reader.connection.execute("BEGIN")
        try:
            reader.figures.settle()
            yield reader
        finally:
            if reader.connection.in_transaction:
                reader.connection.execute("ROLLBACK")


def visible(reader: Reader, scope: Scope, filters: Filters = NOTHING_ASKED) -> Where:
    """Return the condition for rows that `scope` may see and `filters` ask for."""
    if not scope.limited and filters.project is None:
        return where(scope, filters, None)
    inside = tuple(
        name
        for name in reader.figures.projects()
        if scope.covers_project(name) and _asked(filters.project, name)
    )
    return where(scope, filters, inside)


def countable(reader: Reader, scope: Scope) -> Where | None:
    """Return the condition for rows whose words count in `scope`'s frequencies; None: all of a class.

    Rows of projects outside must not; untrusted rows may: hiding them is a matter of trust, not secrecy.
    """
    return visible(reader, Scope(scope.level, projects=scope.projects)) if scope.limited else None


def levels(reader: Reader, scope: Scope) -> range:
    """Return the classes that `scope` may see."""
    return range(min(scope.level, reader.classes.top) + 1)


def matches(reader: Reader, levels: Sequence[int], look: Look, seen: Where) -> list[Match]:
    """Return the first rows of `levels` that match and that may be `seen`, as `look` says.

    Rows equal in what they are ordered by come in any order.
    """
    newest = [look.newest[level] if look.newest else 0 for level in levels]
    rows = _statement(tuple(levels), look.score, look.order, tuple(map(bool, newest)), seen.sql)
    values: Values = {"match": look.match, "depth": look.depth, **seen.values}
    values |= {f"newest_{level}": many for level, many in zip(levels, newest, strict=True)}
    # A sorter costs as much as a hundred rows, so there is one for all classes, or none. The plus signs keep
    # SQLite from sorting each class whole in order to merge them.
    sql = f"SELECT * FROM ({rows}) ORDER BY +first, +second LIMIT :depth" if look.depth else rows
    return [*map(_matched, reader.connection.execute(sql, values))]


def best(reader: Reader, find: Find, seen: Where) -> list[Match]:
    """Return what `matches` does by relevance, where trust alone limits what is `seen` and `facts` are ready."""
    noted = reader.scan.best(find)
    found: list[Match] = []
    for level in find.levels:
        scores = {id_: score for score, at, id_ in noted if at == level}
        if scores:
            sql = (
                f"SELECT coalesce(-r.ts, {_NEVER}), r.log, r.n, r.block, r.id FROM json_each(:ids) j"
                f" CROSS JOIN row_{level} r ON r.id = j.value WHERE true{seen.sql}"
            )
            values: Values = {"ids": json.dumps([*scores]), **seen.values}
            told = reader.connection.execute(sql, values)
            for second, log, n, block, id_ in told:
                found.append(Match(-scores[id_], second, log, n, block, id_, level))
    return sorted(found)[: find.depth]


@lru_cache(maxsize=256)
def _statement(
    levels: tuple[int, ...], score: str, order: Order, newest: tuple[bool, ...], seen: str
) -> str:
    """Return one statement for all classes: a small question costs as much to start as to answer."""
    parts = (
        _of_class(level, score, order, newest=bounded, seen=seen)
        for level, bounded in zip(levels, newest, strict=True)
    )
    return " UNION ALL ".join(parts)


def _of_class(level: int, score: str, order: Order, *, newest: bool, seen: str) -> str:
    first, second = _ORDERS[order]
    first = first.replace("{score}", f"{score}(ft_{level}, {LENGTH})")
    sql = (
        f"SELECT {first} AS first, {second} AS second, r.log, r.n, r.block, r.id, {level}"
        f" FROM ft_{level} f CROSS JOIN row_{level} r ON r.id = f.rowid"
        f" WHERE f.ft_{level} MATCH :match{seen}"
    )
    if newest:
        return f"SELECT * FROM ({sql} ORDER BY f.rowid DESC LIMIT :newest_{level})"
    return sql


def logs(reader: Reader, ids: Iterable[int]) -> dict[int, LogName]:
    """Return the names of logs by their numbers in the index."""
    wanted = json.dumps(sorted(ids))
    if wanted == "[]":
        return {}
    sql = (
        "SELECT id, source, root, log, session, coalesce(project, '') FROM log"
        " WHERE id IN (SELECT value FROM json_each(?))"
    )
    return {id_: LogName(*name) for id_, *name in reader.connection.execute(sql, (wanted,))}


def lengths(reader: Reader, scope: Scope, ids: Iterable[int]) -> dict[int, int]:
    """Return how many rows each log has in the classes that `scope` may see (`Figures.rows`)."""
    visible = levels(reader, scope)
    return {id_: sum(reader.figures.rows(level, id_) for level in visible) for id_ in ids}


def visible_rows(reader: Reader, scope: Scope) -> int:
    """Return how many rows `scope` may see."""
    if scope.untrusted == "include":
        inside = countable(reader, scope)
        return sum(reader.figures.size(level, inside).rows for level in levels(reader, scope))
    seen = visible(reader, scope)
    return sum(reader.figures.size(level, seen).rows for level in levels(reader, scope))


def get(
    reader: Reader, scope: Scope, id: str, *, before: int = 0, after: int = 0
) -> dict[str, object]:
    """Return ``{record, before, after, label}``: a row with its text, and its visible neighbours.

    Neighbours are the rows of the same log that `scope` may see, in the log's order, at most
    `MOST_NEIGHBOURS` a side. Raises: NotFound, the same whether the row is absent, hidden, held back or
    outside the scope's projects.
    """
    spot = _spot(reader, id)
    here = _near(reader, scope, spot, "here", 1)
    if not here:
        raise NotFound("no such record", remedy="ids come from recall; ask again, it may have gone")
    earlier = _near(reader, scope, spot, "before", before)
    later = _near(reader, scope, spot, "after", after)
    return {
        "record": _told(reader, scope, here[0]),
        "before": [_told(reader, scope, row) for row in reversed(earlier)],
        "after": [_told(reader, scope, row) for row in later],
        "label": join(reader.classes, (row.label for row in (*earlier, *here, *later))),
    }


class Spot(NamedTuple):
    """A place in a log, as the index numbers logs."""

    log: int
    n: int
    block: int


_NOWHERE = Spot(-1, -1, -1)
_SIDES = {
    "here": ("=", "r.n, r.block"),
    "before": ("<", "r.n DESC, r.block DESC"),
    "after": (">", "r.n, r.block"),
}


def _spot(reader: Reader, id: str) -> Spot:
    """Return the place that an id names, nowhere for any other text; both are looked for alike."""
    log_key, n, block = reader.ids.decode(id) or (-1, -1, -1)
    log = reader.connection.execute("SELECT id FROM log WHERE key = ?", (log_key,)).get
    return _NOWHERE if log is None else Spot(int(str(log)), n, block)


def _near(reader: Reader, scope: Scope, spot: Spot, side: str, most: int) -> list[Row]:
    """Return up to `most` visible rows on one side of a spot, nearest first, as far as they fit."""
    compare, order = _SIDES[side]
    seen = visible(reader, scope)
    values: Values = {**spot._asdict(), "most": most, **seen.values}
    near: list[tuple[int, int, Key]] = []
    for level in levels(reader, scope):
        sql = (
            f"SELECT r.n, r.block, r.id FROM row_{level} r WHERE r.log = :log"
            f" AND (r.n, r.block) {compare} (:n, :block){seen.sql} ORDER BY {order} LIMIT :most"
        )
        found = reader.connection.execute(sql, values)
        near.extend((n, block, Key(level, id_)) for n, block, id_ in found)
    near.sort(reverse=side == "before")
    return fitting(fetch(reader.connection, [key for *_, key in near[:most]]), MOST_BYTES)


def _told(reader: Reader, scope: Scope, row: Row) -> dict[str, object]:
    return with_text(wire(reader.ids, reader.classes, scope, row), row)


def _asked(glob: str | None, project: str) -> bool:
    # A project is a folder's path in most harnesses; people name it by its last part.
    return (
        glob is None or fnmatchcase(project, glob) or fnmatchcase(project.rsplit("/", 1)[-1], glob)
    )
