"""Top-10 of the memory against ripgrep over the raw logs and against plain FTS5, and how good it is.

One run: an index as a rebuild makes it (four class tables), the same rows in one plain FTS5 table, the raw
logs. Every query is asked of each in turn, round by round, warm; its time is the median over the rounds.
`top-10` is what is ranked without a snippet, since the plain statements give row numbers alone: CPU time on
one core, p50 over the queries of a kind. `recall` is the whole answer: wall time, p99. The targets against
plain FTS5 are meant at a million records and not judged below that.
Quality: the planned ranking against one that scores every row that holds any of the words.
"""

import contextlib
import functools
import json
import math
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import apsw
import msgspec

from bench.row import Row, cpu_seconds, interleaved, percentile, pinned, wall_seconds
from memoryd import config, db, recall
from memoryd.ids import Ids
from memoryd.index import building, dump, from_config, search
from memoryd.index.pages import START
from memoryd.index.search import Match, Reader
from memoryd.labels import Classes
from memoryd.recall import Scope, plan, question
from memoryd.recall.ask import Ask

KEY = b"k" * 32
ROUNDS = 5
A_MILLION = 900_000
"""Records from which on the targets against plain FTS5 are judged."""
NO_LIMIT = db.Deadline()

Engine = Callable[[str], object]


class Kind(msgspec.Struct, frozen=True):
    """A kind of query: its key in queries.json, and what its targets compare it with."""

    key: str
    against: str
    target: float

    @property
    def name(self) -> str:
        """Return the kind as a person reads it."""
        return self.key.replace("_", " + ")


KINDS = (
    Kind("rare", "bm25", 1.2),
    Kind("mid", "bm25", 1.2),
    Kind("common", "rank", 0.04),
    Kind("mid_common", "rank", 0.04),
    Kind("five_or", "rank", 0.04),
    Kind("twelve", "rank", 0.04),
)
PLAIN = {
    "bm25": "SELECT rowid, bm25(ft) AS score FROM ft WHERE ft MATCH ? ORDER BY score LIMIT 10",
    "rank": "SELECT rowid FROM ft WHERE ft MATCH ? ORDER BY rank LIMIT 10",
}


def rows(corpus: Path) -> list[Row]:
    """Return every row of this measure."""
    queries = json.loads((corpus / "queries.json").read_text())
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as scratch:
        reader, records = indexed(corpus, Path(scratch) / "memory.sqlite3")
        plain = one_table(reader, Path(scratch) / "plain.sqlite3")
        ranking = {
            "top-10": lambda query: top(reader, query),
            **{name: statement(plain, sql) for name, sql in PLAIN.items()},
        }
        answers = {
            "recall": lambda query: recall.recall(
                reader, scope(reader), {"query": query}, NO_LIMIT
            ),
            "ripgrep": lambda query: ripgrep(corpus, query),
        }
        if not shutil.which("rg"):
            print("query: no ripgrep here, its rows are left out (apt-get install ripgrep)")
            answers.clear()
        table = []
        for kind in KINDS:
            asked = queries[kind.key]
            with pinned(0):
                table.append(ranked(kind, timed(ranking, asked, cpu_seconds), records))
            if answers:
                table.append(answered(kind, timed(answers, asked, wall_seconds)))
        return [*table, *quality(reader, queries["twelve"])]


def indexed(corpus: Path, path: Path) -> tuple[Reader, int]:
    """Return a reader of an index of the corpus, and how many records it has."""
    text = (
        f'[[source]]\nkind = "auto"\npath = "{corpus / "claude"}"\n[index]\nmax_class = "secret"\n'
    )
    loaded = config.parse(text, path.with_suffix(".toml"))
    settings = from_config(loaded.config, corpus, KEY, {"HOME": str(path.parent)})
    db.create(path)
    built = building.build(path, settings)
    connection = warm(db.reader(path))
    return Reader(connection, Ids(KEY), Classes(settings.classes.names)), built.counts.records


def one_table(reader: Reader, path: Path) -> apsw.Connection:
    """Return the same texts in one FTS5 table, as a search without labels would have them."""
    db.create(path)
    connection = db.builder(path)
    tokenizer = " ".join(search.TOKENIZER)
    connection.execute(f"CREATE VIRTUAL TABLE ft USING fts5(text, tokenize = '{tokenizer}')")
    connection.execute("INSERT INTO ft(ft, rank) VALUES ('hashsize', 16777216)")
    with connection:
        lines = (json.loads(line)["text"] for _, line in dump.dump(reader.connection))
        connection.executemany("INSERT INTO ft(text) VALUES (?)", ((text,) for text in lines))
    connection.close()
    return warm(db.reader(path))


def warm(connection: apsw.Connection) -> apsw.Connection:
    """Give a connection room for the whole index in memory."""
    connection.pragma("mmap_size", 4 << 30)
    connection.pragma("cache_size", -65_536)
    return connection


def scope(reader: Reader) -> Scope:
    """Return a clearance for everything."""
    return Scope(reader.classes.top)


def top(reader: Reader, query: str) -> list[Match]:
    """Return the ten best rows, unread."""
    with search.snapshot(reader, NO_LIMIT):
        asked = question.prepared(reader, scope(reader), Ask(query=query))
        looked = question.look(asked, START)
        return looked.page.matches if looked else []


def statement(connection: apsw.Connection, sql: str) -> Engine:
    """Return an engine that runs one plain statement for any of the words."""

    def ask(query: str) -> object:
        words = " OR ".join(f'"{word}"' for word in query.split())
        return connection.execute(sql, (words,)).fetchall()

    return ask


def ripgrep(corpus: Path, query: str) -> bytes:
    """Return how often any of the words stand in each log."""
    words = [part for word in query.split() for part in ("-e", word)]
    asked = [
        "rg",
        "--count",
        "--ignore-case",
        "--fixed-strings",
        "--no-ignore",
        *words,
        str(corpus),
    ]
    return subprocess.run(asked, check=False, capture_output=True).stdout


def timed(
    engines: Mapping[str, Engine], queries: Sequence[str], measure: Callable[..., float]
) -> dict[str, list[float]]:
    """Return each engine's seconds a query, medians of interleaved rounds."""
    taken: dict[str, list[float]] = {name: [] for name in engines}
    for query in queries:
        works = {name: functools.partial(engine, query) for name, engine in engines.items()}
        for name, seconds in interleaved(works, rounds=ROUNDS, measure=measure).items():
            taken[name].append(seconds)
    return taken


def ranked(kind: Kind, taken: dict[str, list[float]], records: int) -> Row:
    """Return the row of one kind of query against a plain statement, in CPU time."""
    half = {name: percentile(seconds, 0.5) for name, seconds in taken.items()}
    return Row(
        metric=f"top-10, {kind.name}",
        against="bare bm25(), one table" if kind.against == "bm25" else "ORDER BY rank, one table",
        value=half["top-10"] / half[kind.against],
        target=kind.target if records >= A_MILLION else math.inf,
        detail="p50 in ms: " + ", ".join(f"{name} {1e3 * half[name]:.2f}" for name in half),
    )


def answered(kind: Kind, taken: dict[str, list[float]]) -> Row:
    """Return the row of one kind of query against a search of the raw logs, in wall time."""
    worst = {name: 1e3 * percentile(seconds, 0.99) for name, seconds in taken.items()}
    return Row(
        metric=f"recall, {kind.name}",
        against="ripgrep over the raw logs",
        value=worst["recall"] / worst["ripgrep"],
        target=0.1,
        detail=f"p99 in ms: {worst['recall']:.2f} to {worst['ripgrep']:.1f}",
    )


def quality(reader: Reader, queries: Sequence[str]) -> list[Row]:
    """Return how near the planned ranking comes to scoring every row that holds any of the words."""
    gains, shared = [], []
    for query in queries:
        planned = top(reader, query)
        with everything_drives():
            best = top(reader, query)
        worth = [gain([-match.first for match in found]) for found in (planned, best)]
        gains.append(worth[0] / worth[1] if worth[1] else 1.0)
        as_good = [match for match in planned if match.first <= best[-1].first + 1e-9]
        shared.append(len(as_good) / len(best) if best else 1.0)
    against = "scoring every row with any of the words"
    detail = f"{len(queries)} queries of twelve words"
    return [
        Row("nDCG@10", against, statistics.fmean(gains), 0.95, ">=", "", detail),
        Row("overlap@10", against, statistics.fmean(shared), 0.85, ">=", "", detail),
    ]


def gain(scores: Sequence[float]) -> float:
    """Return the discounted cumulative gain of scores in their order (Järvelin and Kekäläinen, 2002)."""
    return sum(score / math.log2(place + 2) for place, score in enumerate(scores))


@contextlib.contextmanager
def everything_drives() -> Iterator[None]:
    """Let every word drive meanwhile, so that every row with any of them is scored."""
    kept = plan.driven
    plan.driven = lambda rows: 1 << 60
    try:
        yield
    finally:
        plan.driven = kept
