"""Phrases, prefixes and pairs of letters as what finds the rows: what they cost, and whether the best rows are found.

In: the corpus. Out: rows. Texts of a script without spaces are added to a copy of the index (a `CJK_SHARE`th of its
rows, letters drawn by a Zipf law), since the corpus has none. Each kind of question (`KINDS`) is held against plain
FTS5: the same expression over the same tables, `ORDER BY rank` of each class under the same filter; CPU time on one
core, interleaved, once with frequencies counted anew, as after a commit, and once with those of the question before.
Quality: against scoring every row that holds anything asked for, every frequency exact; each planned row is worth
what it scores there.
"""

import contextlib
import itertools
import math
import random
import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from unittest import mock

from bench import query
from bench.row import Row, interleaved, percentile, pinned
from bench.segments import asked, opened, removed
from bench.standing import Standing, standing
from memoryd import db
from memoryd.index import figures, search
from memoryd.index.hits import Key, fetch
from memoryd.index.pages import START
from memoryd.index.rows import Rows, Source
from memoryd.index.search import Match, Reader
from memoryd.labels import Label
from memoryd.recall import question
from memoryd.recall.ask import Ask
from memoryd.recall.query import parse
from memoryd.records import Kind

ROUNDS = 3
ASKED = 10
CJK_SHARE = 20
CLASS = 1
LETTERS, EXPONENT = 3_000, 0.9
A_TEXT = 40
A_LOG = 200
NO_LIMIT = db.Deadline()


def rows(corpus: Path) -> Iterator[Row]:
    """Yield every row of this measure."""
    with standing(corpus) as stands, contextlib.ExitStack() as stack:
        path = with_letters(stands)
        stack.callback(removed, path)
        reader = stack.enter_context(opened(path))
        for kind, several in questions(reader, query.asked(stands, reader)["common"]).items():
            with pinned(0):
                yield from costs(kind, reader, several)
            yield from quality(kind, reader, several)


def with_letters(stands: Standing) -> Path:
    """Return a copy of the index with texts of a script without spaces."""
    path = stands.home / "drivers.sqlite3"
    shutil.copyfile(stands.settings.path, path)
    connection = db.writer(path)
    rng = random.Random(9)
    letters = [chr(0x4E00 + 5 * number) for number in range(LETTERS)]
    weights = list(itertools.accumulate((rank + 3) ** -EXPONENT for rank in range(LETTERS)))
    first = int(str(connection.execute(f"SELECT max(id) FROM row_{CLASS}").get)) * 2
    count = stands.built.counts.indexed // CJK_SHARE
    with db.transaction(connection):
        written = Rows(connection, 4, first)
        for number in range(count):
            text = "".join(rng.choices(letters, cum_weights=weights, k=A_TEXT))
            # Logs that are there, behind all their records: a row without a log is not fetched.
            log = 1 + number // A_LOG % stands.built.logs
            source = Source(log, 1_000_000 + number, 0, Kind.OWNER, number)
            written.add(source, Label(CLASS, False), text)
        written.flush()
        connection.execute(f"INSERT INTO ft_{CLASS}(ft_{CLASS}) VALUES ('optimize')")
    connection.close()
    return path


def questions(reader: Reader, common: Sequence[str]) -> dict[str, list[str]]:
    """Return the kinds of questions, most of them taken from rows; the same for the same index."""
    rng = random.Random(4)
    spaced = [*_texts(reader, rng, "ASC", 40 * ASKED)]
    runs = [*_texts(reader, rng, "DESC", ASKED)]
    plain = [[word for word in text.split() if word.isalpha()] for text in spaced]
    long = [words for words in plain if len(words) > 8]
    phrases = [" ".join(words[3:5]) for words in long]
    singles = [word for word in map(rng.choice, long) if len(word) > 4]
    every = [word for text in spaced for word in text.split()]
    two = [f"{one} {other}" for one, other in itertools.pairwise(singles)]
    several = {
        "phrase of a row": [f'"{phrase}"' for phrase in phrases],
        "phrase, both words common": [
            f'"{rng.choice(common)} {rng.choice(common)}"' for _ in range(ASKED)
        ],
        "phrase beside two words": [
            f'"{phrase}" {words}' for phrase, words in zip(phrases[ASKED:], two, strict=False)
        ],
        "identifier": [word for word in every if word.count("_") == 1],
        "path": [word for word in every if word.count("/") > 1],
        "prefix of 4 letters": [f"{word[:4]}*" for word in singles],
        "prefix of 3 letters": [f"{word[:3]}*" for word in singles],
        "prefix beside two words": [
            f"{word[:4]}* {words}" for word, words in zip(singles, two[ASKED:], strict=False)
        ],
        "two letters": [run[10:12] for run in runs],
        "five letters": [run[10:15] for run in runs],
    }
    return {kind: found[:ASKED] for kind, found in several.items() if found}


def _texts(reader: Reader, rng: random.Random, end: str, count: int) -> Iterator[str]:
    """Yield texts of rows near one end of the class: the spaced ones were written first."""
    last = int(str(reader.connection.execute(f"SELECT count(*) FROM row_{CLASS}").get))
    sql = f"SELECT id FROM row_{CLASS} ORDER BY id {end} LIMIT 1 OFFSET ?"
    for _ in range(count):
        id_ = reader.connection.execute(sql, (rng.randrange(last // (2 * CJK_SHARE)),)).get
        text = f"SELECT text FROM ft_{CLASS} WHERE rowid = ?"
        yield str(reader.connection.execute(text, (id_,)).get)


def costs(kind: str, reader: Reader, several: Sequence[str]) -> Iterator[Row]:
    """Yield what a kind costs against plain FTS5."""
    taken: dict[str, list[float]] = {"anew": [], "kept": [], "rank": []}
    for text in several:
        works: dict[str, Callable[[], object]] = {
            "anew": partial(asked, reader, text, anew=True),
            "kept": partial(asked, reader, text, anew=False),
            "rank": partial(ranked, reader, expression(reader, text)),
        }
        for name, seconds in interleaved(works, rounds=ROUNDS).items():
            taken[name].append(seconds)
    half = {name: 1e3 * percentile(seconds, 0.5) for name, seconds in taken.items()}
    most = {name: 1e3 * max(seconds) for name, seconds in taken.items()}
    detail = ", ".join(f"{name} {half[name]:.2f} (most {most[name]:.1f})" for name in half)
    for name, said in (("anew", "counted anew"), ("kept", "frequencies kept")):
        yield Row(
            f"{kind}, {said}",
            "ORDER BY rank, same tables",
            half[name] / half["rank"],
            math.inf,
            detail=f"{len(several)} questions, p50 in ms: {detail}",
        )


def expression(reader: Reader, text: str) -> str:
    """Return what plain FTS5 is asked: anything that the question holds, as memoryd cuts it."""
    with search.snapshot(reader, NO_LIMIT):
        prepared = question.prepared(reader, query.scope(reader), Ask(query=text))
        weighed = question._weigh(prepared, parse(text, "smart", reader.words))  # noqa: SLF001 - its own cut
        return " OR ".join(one.term.match for one in weighed)


def ranked(reader: Reader, match: str) -> None:
    """Have FTS5 rank each class by itself, without the untrusted rows."""
    for level in search.levels(reader, query.scope(reader)):
        sql = (
            f"SELECT f.rowid, rank FROM ft_{level} f CROSS JOIN row_{level} r ON r.id = f.rowid"
            f" WHERE ft_{level} MATCH ? AND r.untrusted = 0 ORDER BY rank LIMIT 10"
        )
        reader.connection.execute(sql, (match,)).fetchall()


def quality(kind: str, reader: Reader, several: Sequence[str]) -> Iterator[Row]:
    """Yield how near the planned ranking comes to the exhaustive one."""
    gains, shared, newest = zip(*(nearness(reader, text) for text in several), strict=True)
    told = f"{len(several)} questions, {sum(newest)} of them by the newest rows alone"
    for name, found in (("nDCG@10", gains), ("overlap@10", shared)):
        against = "scoring every row with anything of it"
        yield Row(f"{name}, {kind}", against, statistics.fmean(found), 0.0, ">=", "", told)


def nearness(reader: Reader, text: str) -> tuple[float, float, bool]:
    """Return nDCG@10 and overlap@10 of one question, and whether only the newest rows were ranked."""
    reader.figures._counts.clear()  # noqa: SLF001 - what a commit does
    with search.snapshot(reader, NO_LIMIT):
        prepared = question.prepared(reader, query.scope(reader), Ask(query=text))
        looked = question.look(prepared, START)
    planned, newest = (looked.page.matches, looked.capped) if looked else ([], False)
    reader.figures._counts.clear()  # noqa: SLF001 - measured as it is inside
    with query.everything_drives(), mock.patch.object(figures, "MOST_COUNTED", 1 << 60):
        best, worth = exhaustive(reader, text, planned)
    reader.figures._counts.clear()  # noqa: SLF001 - measured as it is inside
    if not best:
        return 1.0, 1.0, newest
    as_good = [score for score in worth if score >= best[-1] - 1e-9]
    return query.gain(worth) / query.gain(best), len(as_good) / len(best), newest


def exhaustive(
    reader: Reader, text: str, planned: Sequence[Match]
) -> tuple[list[float], list[float]]:
    """Return the scores of the ten best rows of all, and those that the planned rows have beside them."""
    with search.snapshot(reader, NO_LIMIT):
        prepared = question.prepared(reader, query.scope(reader), Ask(query=text))
        looked = question.look(prepared, START)
        if looked is None:
            return [], []
        way = looked.plan
        score = reader.scorer.load(way.weights, 0, prepared.average, columns=way.columns)
        keys = [Key(match.level, match.id) for match in planned]
        match = " OR ".join(term.match for term in way.terms)
        rows = fetch(reader.connection, keys, match=match, score=score)
        return [-match.first for match in looked.page.matches], [row.score for row in rows]
