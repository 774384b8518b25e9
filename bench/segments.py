"""What many small commits cost a question, and what merging them while nothing happens is worth.

In: the corpus. Out: rows. Copies of one index: as a rebuild leaves it (one segment a class), after `COMMITS` commits
of one row, the same merged (`PAGES` at a time, as an idle daemon could), and with many segments, as if FTS5 did not
merge by itself. Each question is asked of all of them in turn, in CPU time on one core; p50 over the questions of a
kind, once with frequencies counted anew, as after a commit, and once with those of the question before. Merging is
told with the CPU seconds that it takes and what it writes to the write-ahead log.
"""

import contextlib
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import apsw
import msgspec

from bench import engines, query
from bench.row import Row, cpu_seconds, interleaved, percentile, pinned
from bench.standing import KEY, Standing, standing
from memoryd import db
from memoryd.ids import Ids
from memoryd.index.rows import Rows, Source
from memoryd.index.search import Reader
from memoryd.labels import Classes, Label
from memoryd.records import Kind

ROUNDS = 9
COMMITS = 400
MANY = 60
"""Segments of the copy in which nothing is merged."""
KINDS = ("rare", "mid", "common", "five_or")
PAGES = 64
"""Pages of 4 kB that one step of merging writes."""
_DID_SOMETHING = 2
"""Changes from which on a step has merged anything, by SQLite's documentation."""
CLASS = 1
BASE = "rebuilt"


class Copy(msgspec.Struct, frozen=True):
    """A copy of the index: how many segments its class has, and what asks it."""

    segments: int
    reader: Reader


def rows(corpus: Path) -> Iterator[Row]:
    """Yield every row of this measure."""
    with standing(corpus) as stands, contextlib.ExitStack() as stack:
        queries = query.asked(stands, stack.enter_context(opened(stands.settings.path)))
        said = [text for kind in KINDS for text in queries[kind]]
        merged = Merged()
        copies = {
            name: copied(stands, name.replace(" ", "-"), partial(change, said), stack)
            for name, change in (
                (BASE, lambda said, connection: None),
                ("after commits", commits),
                ("merged", merged.take),
                ("not merged at all", unmerged),
            )
        }
        for kind in KINDS:
            with pinned(0):
                yield from compared(kind, copies, queries[kind])
        yield merged.row()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """Give a reader of an index."""
    connection = engines.warm(db.reader(path))
    try:
        yield Reader(connection, Ids(KEY), Classes(("public", "internal", "private", "secret")))
    finally:
        connection.close()


def copied(
    stands: Standing,
    name: str,
    change: Callable[[apsw.Connection], None],
    stack: contextlib.ExitStack,
) -> Copy:
    """Return a changed copy of the index, removed at the end."""
    path = stands.home / f"segments-{name}.sqlite3"
    stack.callback(removed, path)
    shutil.copyfile(stands.settings.path, path)
    connection = db.writer(path)
    change(connection)
    segments = counted(connection)
    connection.close()
    return Copy(segments, stack.enter_context(opened(path)))


def counted(connection: apsw.Connection) -> int:
    """Return how many segments the class has."""
    return int(str(connection.execute(f"SELECT count(DISTINCT segid) FROM ft_{CLASS}_idx").get))


def removed(path: Path) -> None:
    """Remove a database's files."""
    for one in (path, *(path.with_name(path.name + end) for end in db.SIDECARS)):
        one.unlink(missing_ok=True)


def commits(said: Sequence[str], connection: apsw.Connection, count: int | None = None) -> None:
    """Commit one row after the other, each of which says again what is asked for."""
    first = int(str(connection.execute(f"SELECT max(id) FROM row_{CLASS}").get)) * 2
    for number in range(COMMITS if count is None else count):
        with db.transaction(connection):
            written = Rows(connection, 4, first + number)
            source = Source(1, 1_000_000 + number, 0, Kind.OWNER, number)
            text = f"{said[number % len(said)]} again {number}"
            written.add(source, Label(CLASS, False), text)
            written.flush()


def unmerged(said: Sequence[str], connection: apsw.Connection) -> None:
    """Commit rows that FTS5 leaves in a segment each."""
    for option, value in (("automerge", 0), ("crisismerge", 2 * MANY)):
        connection.execute(
            f"INSERT INTO ft_{CLASS}(ft_{CLASS}, rank) VALUES (?, ?)", (option, value)
        )
    commits(said, connection, MANY)


class Merged:
    """Merges as an idle daemon could, and remembers what it cost."""

    def __init__(self) -> None:
        """Have merged nothing."""
        self._steps, self._seconds, self._written = 0, 0.0, 0

    def take(self, said: Sequence[str], connection: apsw.Connection) -> None:
        """Commit, then merge until nothing is left to merge."""
        commits(said, connection)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._seconds = cpu_seconds(lambda: self._all(connection))
        wal = Path(connection.filename + db.SIDECARS[0])
        self._written = wal.stat().st_size if wal.exists() else 0

    def _all(self, connection: apsw.Connection) -> None:
        more = True
        while more:
            before = connection.total_changes()
            sql = f"INSERT INTO ft_{CLASS}(ft_{CLASS}, rank) VALUES ('merge', ?)"
            connection.execute(sql, (PAGES,))
            more = connection.total_changes() - before >= _DID_SOMETHING
            self._steps += more

    def row(self) -> Row:
        """Return what merging cost."""
        detail = f"{self._steps} steps, {self._written / 1024:.0f} KiB written"
        return Row(
            f"merging what {COMMITS} commits left",
            "-",
            1e3 * self._seconds,
            math.inf,
            unit="ms",
            detail=detail,
        )


def compared(kind: str, copies: Mapping[str, Copy], queries: Sequence[str]) -> Iterator[Row]:
    """Yield what each copy costs against the rebuilt one."""
    for anew in (True, False):
        taken: dict[str, list[float]] = {name: [] for name in copies}
        for text in queries:
            works = {
                name: partial(asked, copy.reader, text, anew=anew) for name, copy in copies.items()
            }
            for name, seconds in interleaved(works, rounds=ROUNDS).items():
                taken[name].append(seconds)
        half = {name: percentile(several, 0.5) for name, several in taken.items()}
        for name in list(copies)[1:]:
            yield Row(
                f"{kind}, {name}{', counted anew' if anew else ''}",
                f"the same index as {BASE}",
                half[name] / half[BASE],
                2.0 if name == "after commits" else math.inf,
                detail=f"{1e3 * half[name]:.2f} ms against {1e3 * half[BASE]:.2f};"
                f" {copies[name].segments} segments against {copies[BASE].segments}",
            )


def asked(reader: Reader, text: str, *, anew: bool) -> None:
    """Ask a question, its frequencies counted anew or kept."""
    if anew:
        reader.figures._counts.clear()  # noqa: SLF001 - what a commit does
    query.top(reader, text)
