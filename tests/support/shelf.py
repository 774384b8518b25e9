"""A small index written row by row, for tests of what is asked of it."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from memoryd import db, migrations
from memoryd.ids import Ids
from memoryd.index.grams import column
from memoryd.index.search import TOKENIZER, Reader
from memoryd.labels import Classes
from memoryd.records import Kind

CLASSES = Classes(("public", "internal", "private", "secret"))
IDS = Ids(b"k" * 32)
ROOT = "/logs"
NEVER = db.Deadline()


class Line(NamedTuple):
    """One row to be; `n` None: the next of its log. Lines are read in the order they are given in."""

    text: str
    level: int = 0
    log: str = "a"
    n: int | None = None
    block: int = 0
    kind: Kind = Kind.OWNER
    untrusted: bool = False
    ts: int | None = 0
    tool: str | None = None
    session: str | None = None
    project: str | None = "web"
    source: str = "native"


def fill(path: Path, lines: Iterable[Line], generation: str = "g1") -> None:
    """Make an index at `path` that holds `lines`."""
    db.create(path)
    connection = db.writer(path)
    migrations.apply(connection, "index", classes=len(CLASSES))
    connection.execute("INSERT INTO meta VALUES ('generation', ?)", (generation,))
    add(connection, lines)
    connection.close()


def add(connection: apsw.Connection, lines: Iterable[Line], first: int | None = None) -> None:
    """Add rows to an index; `first`: the id of the first one, None: what follows all others."""
    name, *arguments = TOKENIZER
    tokens = connection.fts5_tokenizer(name, arguments)
    logs = dict(connection.execute("SELECT key, id FROM log"))
    tables = " UNION ALL ".join(f"SELECT max(id) AS id FROM row_{c}" for c in range(len(CLASSES)))
    last = connection.execute(f"SELECT max(id) FROM ({tables})").get or 0
    counts: dict[str, int] = {}
    with connection:
        for id_, line in enumerate(lines, last + 1 if first is None else first):
            key = IDS.log_key(line.source, ROOT, line.log)
            if key not in logs:
                _log(connection, key, line)
                logs[key] = connection.last_insert_rowid()
            n = counts.get(line.log, 0) if line.n is None else line.n
            counts[line.log] = n + 1
            place = (id_, logs[key], n, line.block)
            _row(connection, place, line, len(tokens(line.text.encode(), 4, None)))


def _log(connection: apsw.Connection, key: int, line: Line) -> None:
    connection.execute(
        "INSERT INTO log(key, source, root, log, session, project, level, untrusted, peak_level,"
        " peak_untrusted, floor_level, floor_untrusted) VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0)",
        (key, line.source, ROOT, line.log, line.session or line.log, line.project),
    )


def _row(
    connection: apsw.Connection, place: tuple[int, int, int, int], line: Line, length: int
) -> None:
    connection.execute(
        f"INSERT INTO row_{line.level} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*place, int(line.kind), line.untrusted, line.ts, line.tool, length),
    )
    connection.execute(
        f"INSERT INTO ft_{line.level}(rowid, text, grams) VALUES (?, ?, ?)",
        (place[0], line.text, column(line.text)),
    )


def place_id(line: Line) -> str:
    """Return the id of a line that says its number."""
    return IDS.encode(IDS.log_key(line.source, ROOT, line.log), line.n or 0, line.block)


@contextmanager
def shelf(lines: Iterable[Line], *, generation: str = "g1") -> Iterator[Reader]:
    """Give a reader of a new index that holds `lines`."""
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        path = Path(folder) / "memory.sqlite3"
        fill(path, lines, generation)
        connection = db.reader(path)
        try:
            yield Reader(connection, IDS, CLASSES)
        finally:
            connection.close()
