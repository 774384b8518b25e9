"""Ranking from memory tells what ranking by joined rows tells: every byte of every answer, to every reader.

So all that is shown of the latter (test_clearance.py) holds for the former. The rows change between questions, as
they do in a daemon: some are deleted, others are added, and what is known of rows is kept meanwhile.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd import db, recall
from memoryd.index import purging, schema, search
from memoryd.index.scan import Find
from memoryd.index.search import Reader
from memoryd.recall import Scope, plan, question
from tests.property.test_clearance import FEW, lines, numbered
from tests.support.shelf import CLASSES, IDS, NEVER, Line, add, fill

QUERIES = (
    "merger",
    "alpha merger",
    "token src/main.ts retry_limit",
    "merg* überprüfung 続エラ deploy",
)
SCOPES = [Scope(0, "exclude"), Scope(1, "owner-only"), Scope(3, "include"), Scope(3, "exclude")]

many = st.lists(lines(range(4), ("web",), "s"), min_size=1, max_size=30).map(numbered)


def answers(reader: Reader) -> Iterator[object]:
    for scope in SCOPES:
        for query in QUERIES:
            asked: dict[str, object] = {"query": query, "limit": 2}
            told = recall.recall(reader, scope, asked, NEVER)
            yield told
            if told["cursor"]:
                yield recall.recall(reader, scope, asked | {"cursor": told["cursor"]}, NEVER)


@pytest.fixture(params=[(2, 1), (4, 3), (plan.LEAST_DRIVEN, plan.NEWEST)])
def bounds(request, monkeypatch):
    """Let rows be many: words drive, come late or are too common, as in a large index."""
    driven, newest = request.param
    monkeypatch.setattr(question, "_FEW", 0)
    monkeypatch.setattr(plan, "driven", lambda _rows, wide: driven * (1 + wide))
    monkeypatch.setattr(plan, "WALKED", 2 * driven)
    monkeypatch.setattr(plan, "NEWEST", newest)


def pair(path: Path) -> tuple[Reader, Reader]:
    """Return a reader that ranks from memory and one that never does."""
    one, other = (Reader(db.reader(path), IDS, CLASSES) for _ in range(2))
    other.facts = type(other.facts)()
    other.facts.ready = lambda *_: False
    return one, other


def rewrite(writer: apsw.Connection, where: str, more: list[Line]) -> None:
    """Delete rows and add others, with ids as the writer gives them."""
    with writer:
        for level in range(len(CLASSES)):
            purging.delete(writer, level, where, {})
    add(writer, more, schema.next_id(writer, len(CLASSES)))


@pytest.mark.usefixtures("bounds")
@settings(FEW, max_examples=5)
@given(first=many, more=many, where=st.sampled_from(("id % 3 = 0", "id > 4", "untrusted = 1")))
def test_answers_from_memory_are_those_of_the_rows(first, more, where):
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        path = Path(folder, "i.sqlite3")
        fill(path, first)
        quick, slow = pair(path)
        writer = db.writer(path)
        try:
            list(answers(quick))
            assert list(answers(quick)) == list(answers(slow))
            rewrite(writer, where, more)
            assert list(answers(quick)) == list(answers(slow))
            assert quick.facts.trust
        finally:
            for connection in (quick.connection, slow.connection, writer):
                connection.close()


def test_rows_are_ranked_from_memory_where_they_are_many(monkeypatch):
    monkeypatch.setattr(question, "_FEW", 0)
    seen: list[int] = []
    best = search.best
    monkeypatch.setattr(search, "best", lambda *args: seen.append(1) or best(*args))
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        path = Path(folder, "i.sqlite3")
        fill(path, [Line("merger alpha", n=1), Line("merger", n=2, log="b")])
        reader = Reader(db.reader(path), IDS, CLASSES)
        for asked in ({}, {}, {"group": "session"}, {"order": "newest"}, {"since": 0}):
            recall.recall(reader, SCOPES[0], {"query": "merger", **asked}, NEVER)
        recall.recall(reader, Scope(0, projects=("web",)), {"query": "merger"}, NEVER)
        reader.connection.close()
    assert len(seen) == 1


@pytest.mark.parametrize("depth", [1, 2, 3])
@settings(FEW, max_examples=25)
@given(found=many)
def test_what_is_left_early_could_not_be_among_the_best(depth, found):
    weights, match = (1.0, 3.0, 2.0), '"alpha" OR "merger" OR "token"'
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        path = Path(folder, "i.sqlite3")
        fill(path, found)
        reader, other = pair(path)
        reader.scorer.load(weights, 0, 3.0)
        while not reader.facts.ready(reader.connection, range(4)):
            pass
        best = reader.scan.best(Find(range(4), match, "include", depth, [0] * 4))
        every = reader.scan.best(Find(range(4), match, "include", 1_000, [0] * 4))
        for connection in (reader.connection, other.connection):
            connection.close()
    assert best == [
        row for row in every if row[0] >= every[: depth + 1][min(depth, len(every)) - 1][0]
    ]
