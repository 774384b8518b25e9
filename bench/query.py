"""Top-10 of the memory against plain FTS5, tantivy and ripgrep, and how good it is.

One run: an index as a rebuild makes it (four class tables), the same rows in one plain FTS5 table and in tantivy,
the raw logs. Every query is asked of each in turn, round by round, warm; its time is the median over the rounds.
`top-10` is what is ranked without a snippet, since the peers give row numbers alone: CPU time on one core, p50
over the queries of a kind, of a reader cleared for every class who wants no untrusted row; ORDER BY rank and
tantivy filter alike, bare bm25() does not filter. `recall` is the whole answer: wall time, p99, a process to each.
The targets against the peers are meant at a million records and not judged below that; the one against ripgrep is
meant at a hundred thousand and not taken above.
Quality: the planned ranking against one that scores every row that holds any of the words.
"""

import contextlib
import functools
import json
import math
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bench import engines
from bench.engines import Engine
from bench.row import Row, cpu_seconds, interleaved, percentile, pinned, wall_seconds
from bench.standing import KEY, Standing, standing
from memoryd import db, recall
from memoryd.ids import Ids
from memoryd.index import search
from memoryd.index.pages import START
from memoryd.index.search import Match, Reader
from memoryd.labels import Classes
from memoryd.recall import Scope, plan, question
from memoryd.recall.ask import Ask

ROUNDS = 5
AT_A_MILLION = (2, 10)
"""Rounds, and queries a kind, where one takes a second."""
A_MILLION = 900_000
"""Records from which on the targets against the peers are judged."""
NO_LIMIT = db.Deadline()
WARMING = 100
"""Questions after which all rows of the index are known in memory."""
WORDS = 12
ASKED = 10


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
AGAINST = {
    "bm25": "bare bm25(), one table",
    "rank": "ORDER BY rank, same filter, one table",
}
TANTIVY = "tantivy, same filter"
OF_TANTIVY = 2.7


def rows(corpus: Path) -> Iterator[Row]:
    """Yield every row of this measure."""
    with standing(corpus) as stands:
        reader = opened(stands)
        queries = asked(stands, reader)
        judged = stands.built.counts.records >= A_MILLION
        rounds, many = AT_A_MILLION if judged else (ROUNDS, ASKED)
        queries = {key: texts[:many] for key, texts in queries.items()}
        ranking = ranking_engines(stands, reader)
        answers = {} if judged else answering_engines(corpus, reader)
        for kind in KINDS:
            with pinned(0):
                taken = timed(ranking, queries[kind.key], rounds, cpu_seconds)
            yield from ranked(kind, taken, judged=judged)
            if answers:
                taken = timed(answers, queries[kind.key], rounds, wall_seconds)
                yield answered(kind, taken)
        yield from quality(reader, queries)


def opened(stands: Standing) -> Reader:
    """Return a reader of the standing index, warm."""
    settings = stands.settings
    connection = engines.warm(db.reader(settings.path))
    reader = Reader(connection, Ids(KEY), Classes(settings.classes.names))
    with search.snapshot(reader, NO_LIMIT):
        for _ in range(WARMING):
            reader.facts.ready(connection, search.levels(reader, scope(reader)))
    return reader


def asked(stands: Standing, reader: Reader) -> dict[str, list[str]]:
    """Return the queries of each kind; `twelve`: twelve different words of a row, as a prompt has them."""
    queries: dict[str, list[str]] = json.loads((stands.corpus / "queries.json").read_text())
    rng = random.Random(1)
    last = int(str(reader.connection.execute("SELECT max(id) FROM row_1").get))
    queries["twelve"] = []
    while len(queries["twelve"]) < ASKED:
        sql = "SELECT text FROM ft_1 WHERE rowid >= ? LIMIT 1"
        text = str(reader.connection.execute(sql, (rng.randrange(last),)).get)
        words = sorted({word for word in text.split() if word.replace("_", "").isalpha()})
        if len(words) >= WORDS:
            queries["twelve"].append(" ".join(rng.sample(words, WORDS)))
    return queries


def ranking_engines(stands: Standing, reader: Reader) -> dict[str, Engine]:
    """Return what ranks ten rows: memoryd and its peers."""
    plain = engines.one_table(reader.connection, stands.home / "plain.sqlite3")
    found: dict[str, Engine] = {
        "top-10": lambda query: top(reader, query),
        "bm25": engines.statement(plain, engines.BARE),
        "rank": engines.statement(plain, engines.RANK),
    }
    tantivy = engines.tantivy(reader.connection, stands.home / "tantivy")
    return found | ({"tantivy": tantivy} if tantivy else {})


def answering_engines(corpus: Path, reader: Reader) -> dict[str, Engine]:
    """Return what answers in full: memoryd, and ripgrep where it is installed."""
    if not shutil.which("rg"):
        print("query: no ripgrep here, its rows are left out (apt-get install ripgrep)")
        return {}
    return {
        "recall": lambda query: recall.recall(reader, scope(reader), {"query": query}, NO_LIMIT),
        "ripgrep": lambda query: ripgrep(corpus, query),
    }


def scope(reader: Reader) -> Scope:
    """Return a clearance for every class, without untrusted rows."""
    return Scope(reader.classes.top, "exclude")


def top(reader: Reader, query: str) -> list[Match]:
    """Return the ten best rows, unread."""
    with search.snapshot(reader, NO_LIMIT):
        prepared = question.prepared(reader, scope(reader), Ask(query=query))
        looked = question.look(prepared, START)
        return looked.page.matches if looked else []


def ripgrep(corpus: Path, query: str) -> bytes:
    """Return how often any of the words stand in each log."""
    words = [part for word in query.split() for part in ("-e", word)]
    said = ["rg", "--count", "--ignore-case", "--fixed-strings", "--no-ignore"]
    return subprocess.run([*said, *words, str(corpus)], check=False, capture_output=True).stdout


def timed(
    works: Mapping[str, Engine], queries: Sequence[str], rounds: int, measure: Callable[..., float]
) -> dict[str, list[float]]:
    """Return each engine's seconds a query, medians of interleaved rounds."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for query in queries:
        bound = {name: functools.partial(engine, query) for name, engine in works.items()}
        for name, seconds in interleaved(bound, rounds=rounds, measure=measure).items():
            taken[name].append(seconds)
    return taken


def ranked(kind: Kind, taken: dict[str, list[float]], *, judged: bool) -> list[Row]:
    """Return the rows of one kind of query against the peers, in CPU time."""
    half = {name: percentile(seconds, 0.5) for name, seconds in taken.items()}
    detail = "p50 in ms: " + ", ".join(f"{name} {1e3 * half[name]:.2f}" for name in half)
    found = [
        Row(
            metric=f"top-10, {kind.name}",
            against=AGAINST[kind.against],
            value=half["top-10"] / half[kind.against],
            target=kind.target if judged else math.inf,
            detail=detail,
        )
    ]
    if kind.against == "rank":
        there = "tantivy" in half
        found.append(
            Row(
                metric=f"top-10, {kind.name}",
                against=TANTIVY,
                value=half["top-10"] / half["tantivy"] if there else 0.0,
                target=OF_TANTIVY if judged and there else math.inf,
                detail="" if there else "not installed",
            )
        )
    return found


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


def quality(reader: Reader, queries: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Yield how near the planned ranking comes to scoring every row that holds any of the words."""
    for kind in KINDS:
        pairs = [nearness(reader, query) for query in queries[kind.key]]
        gains, shared, driven = zip(*pairs, strict=True)
        # The target is for words of which a rarer one drives; the others are told, not judged.
        bounds = (0.95, 0.85) if all(driven) else (0.0, 0.0)
        told = f"{len(pairs)} queries" + ("" if all(driven) else f", {sum(driven)} of them driven")
        named = (("nDCG@10", gains), ("overlap@10", shared))
        for (name, figures), least in zip(named, bounds, strict=True):
            against = "scoring every row with any of the words"
            mean = statistics.fmean(figures)
            yield Row(f"{name}, {kind.name}", against, mean, least, ">=", "", told)


def nearness(reader: Reader, query: str) -> tuple[float, float, bool]:
    """Return nDCG@10 and overlap@10 of one query, and whether rarer words drove it."""
    planned = top(reader, query)
    with everything_drives():
        best = top(reader, query)
    if not best:
        return 1.0, 1.0, True
    worth = [gain([-match.first for match in found]) for found in (planned, best)]
    as_good = [match for match in planned if match.first <= best[-1].first + 1e-9]
    return worth[0] / worth[1], len(as_good) / len(best), not capped(reader, query)


def capped(reader: Reader, query: str) -> bool:
    """Say whether only the newest rows were ranked."""
    return bool(recall.recall(reader, scope(reader), {"query": query}, NO_LIMIT)["capped"])


def gain(scores: Sequence[float]) -> float:
    """Return the discounted cumulative gain of scores in their order (Järvelin and Kekäläinen, 2002)."""
    return sum(score / math.log2(place + 2) for place, score in enumerate(scores))


@contextlib.contextmanager
def everything_drives() -> Iterator[None]:
    """Let every word drive meanwhile, so that every row with any of them is scored."""
    kept = plan.driven
    plan.driven = lambda rows, wide: 1 << 60
    try:
        yield
    finally:
        plan.driven = kept
