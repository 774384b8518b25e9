"""Forgetting one log of about a thousand records, and what a low reader's time tells of hidden rows.

In: the corpus. Out: rows. Forgetting is CPU time of the call that takes the rows away (against the same log
indexed fresh, also in CPU time), and of the steps that then take its words out of the file, as a part of what
building the index cost. The low reader's is wall time of the same question with no hidden match and with
60,000: how often a run with hidden ones is the slower of a pair (Mann and Whitney's U over the pairs); 0.5 is
what chance gives, and no more than 0.1 away from it is the target.
"""

import statistics
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import apsw

from bench import corpus as made
from bench.row import Row, cpu_seconds, pinned, wall_seconds
from memoryd import db, migrations, recall
from memoryd.ids import Ids
from memoryd.index import Index, Settings, Wanted, building, index_log, table, tombs
from memoryd.index.rows import Rows, Source
from memoryd.index.search import Reader
from memoryd.labels import Classes, Label
from memoryd.recall import Scope
from memoryd.records import Kind

LOGS = 7
RUNS = 400
VISIBLE, HIDDEN = 5_000, 60_000
NO_LIMIT = db.Deadline()


def rows(corpus: Path) -> list[Row]:
    """Return every row of this measure."""
    with tempfile.TemporaryDirectory(prefix="md-forget-") as folder:
        state = Path(folder)
        settings = made.settings(corpus, state)
        db.create(settings.path)
        with pinned(0):
            building_s = cpu_seconds(lambda: building.build(settings.path, settings))
            return [*forgetting(corpus, settings, building_s), timing(state)]


def forgetting(corpus: Path, settings: Settings, building_s: float) -> Iterator[Row]:
    """Yield the rows of forgetting."""
    index = Index(settings)
    following = index._following  # noqa: SLF001 - the bench looks into the machine
    if following is None:
        raise AssertionError("there is no index")
    writer, connection = following.writer, following.connection
    files = {writer.key_of(file): file for file in made.logs(corpus, settings.home)}
    near = sorted(table.every(connection), key=lambda log: abs(log.position.records - 1_000))[:LOGS]
    gone, fresh, purge = list[float](), list[float](), list[list[float]]()
    for log in near:
        wanted = Wanted(session=log.session)
        gone.append(cpu_seconds(lambda wanted=wanted: index.forget(wanted, dry=False)))
        purge.append([])
        while index.purging:
            purge[-1].append(cpu_seconds(following.purge))
        with db.transaction(connection):
            table.delete(connection, log.id, len(settings.classes))
        writer.tombs = tombs.Tombs({})
        writer.kin.drop(log.key)

        def again(key: int = log.key) -> None:
            with db.transaction(connection):
                index_log(writer, files[key], None, None)
                writer.rows.flush()

        fresh.append(cpu_seconds(again))
    index.close()
    ratio = statistics.median(gone) / statistics.median(fresh)
    records = statistics.median(log.position.records for log in near)
    detail = (
        f"{1e3 * statistics.median(gone):.0f} ms against {1e3 * statistics.median(fresh):.0f} ms"
    )
    yield Row(
        f"forget a log of {records:,.0f} records",
        "the same log indexed fresh",
        ratio,
        2.0,
        detail=detail,
    )
    whole = statistics.median(map(sum, purge))
    part, longest = whole / building_s, max(map(max, purge))
    detail = f"{whole:.2f} s in steps of {1e3 * longest:.0f} ms at most"
    yield Row("its words out of the file", "building the whole index", part, 0.5, detail=detail)


def timing(folder: Path) -> Row:
    """Return the row of a low reader's question without and with hidden matches."""
    with small(folder / "none.sqlite3", 0) as none, small(folder / "many.sqlite3", HIDDEN) as many:
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(RUNS):
            for reader, seconds in zip((none, many), taken, strict=True):
                asked = {"query": f"merger alpha word{number % 50}"}
                ask = partial(recall.recall, reader, Scope(0), asked, NO_LIMIT)
                ask()
                seconds.append(wall_seconds(ask))
    without, among = taken
    slower = above(among, without)
    middle = [1e6 * statistics.median(seconds) for seconds in taken]
    return Row(
        metric="low reader, 60,000 hidden matches",
        against="none hidden",
        value=abs(slower - 0.5),
        target=0.1,
        unit="",
        detail=f"the slower in {slower:.0%} of pairs; medians {middle[0]:.0f} and {middle[1]:.0f} us",
    )


def above(these: list[float], those: list[float]) -> float:
    """Return in how many of all pairs the first is the greater, ties counting half (Mann and Whitney, 1947)."""
    ordered = sorted(those)
    wins = sum(bisect_left(ordered, one) + bisect_right(ordered, one) for one in these)
    return wins / 2 / len(these) / len(those)


@contextmanager
def small(path: Path, hidden: int) -> Iterator[Reader]:
    """Give a reader of an index with some visible rows and `hidden` ones that hold the same words."""
    db.create(path)
    connection = db.writer(path)
    migrations.apply(connection, "index", classes=4)
    connection.execute("INSERT INTO meta VALUES ('generation', 'g')")
    written = Rows(connection, 4, 1)
    with db.transaction(connection):
        for log, level, many in ((1, 0, VISIBLE), (2, 2, hidden)):
            _log(connection, log)
            for n in range(many):
                text = f"merger alpha word{n % 50} said{n}"
                written.add(Source(log, n, 0, Kind.OWNER, n), Label(level, False), text)
        written.flush()
    connection.close()
    reader = db.reader(path)
    try:
        yield Reader(reader, Ids(made.KEY), Classes(("public", "internal", "private", "secret")))
    finally:
        reader.close()


def _log(connection: apsw.Connection, number: int) -> None:
    log = table.Log(number, number, table.Place("native", "/", str(number)), str(number))
    table.store(connection, log)
