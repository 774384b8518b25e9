"""The ways of scoring that memoryd does not take, built here so that `bench.askers` can hold them against its own.

`bounded`: FTS5's own bm25() scores the rows of the driving words, in C and without the interpreter's lock; the best
`RESCORED` of them are then scored from their texts by all words, with the frequencies of all visible classes.
`Process`: the same questions in a process of its own, asked over a pipe; it has a lock of its own.
"""

import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from unittest import mock

import msgpack
import msgspec

from bench.engines import warm
from memoryd import db, recall
from memoryd.ids import Ids
from memoryd.index import search
from memoryd.index.figures import Term
from memoryd.index.score import saturation
from memoryd.index.search import Reader
from memoryd.labels import Classes
from memoryd.recall import Scope, late, plan, question
from memoryd.recall.plan import Plan, Weighed, shares
from memoryd.recall.question import Asked
from memoryd.recall.rank import Merged, merge

RESCORED = 300
NO_LIMIT = db.Deadline()


@contextmanager
def bounded() -> Iterator[None]:
    """Answer meanwhile with bm25() for the driving words and a bounded number of rows scored from text."""
    with ExitStack() as stack:
        for owner, name, value in (
            (plan, "_walked", _none_walked),
            (search, "_of_class", _by_bm25),
            (question, "_merged", _rescored),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        search._statement.cache_clear()  # noqa: SLF001 - statements are kept by what they are for
        try:
            yield
        finally:
            search._statement.cache_clear()  # noqa: SLF001 - measured as it is inside


def _none_walked(rest: Sequence[Weighed], most: int) -> tuple[list[Weighed], list[Weighed]]:
    return [], list(rest)


def _by_bm25(level: int, score: str, order: str, *, newest: bool, seen: str) -> str:
    sql = (
        f"SELECT bm25(ft_{level}) AS first, coalesce(-r.ts, {1 << 62}) AS second, r.log, r.n, r.block, r.id,"
        f" {level} FROM ft_{level} f CROSS JOIN row_{level} r ON r.id = f.rowid"
        f" WHERE f.ft_{level} MATCH :match{seen}"
    )
    if newest:
        return f"SELECT * FROM ({sql} ORDER BY f.rowid DESC LIMIT :newest_{level})"
    return sql


def _rescored(asked: Asked, way: Plan, score: str, depth: int) -> tuple[Merged, bool]:
    """Return the best rows by all words among those that bm25() prefers."""
    bounds = shares(asked.sizes, way.newest)
    look = search.Look(way.match, score, asked.ask.order, RESCORED, bounds)
    found = search.matches(asked.reader, way.levels, look, asked.seen)
    told = dict(late._texts(asked.reader, found))  # noqa: SLF001 - the same reading of texts
    terms = list(zip(way.terms, way.weights, strict=True))
    scored = []
    for match in found:
        row = told[match.id]
        words = [word for _, _, word in asked.reader.words(row.text.encode())]
        below = saturation(row.length, asked.average)
        counts = [(_count(words, term), weight) for term, weight in terms]
        worth = sum(weight * held / (held + below) for held, weight in counts)
        scored.append(match._replace(first=-worth))
    merged = merge(scored, min(depth, RESCORED))
    return question._settled(asked, merged), any(bounds)  # noqa: SLF001 - measured as it is inside


def _count(words: list[str], term: Term) -> int:
    """Return how often a term stands among the words of a text."""
    if len(term.tokens) == 1:
        if term.prefix:
            return sum(word.startswith(term.tokens[0]) for word in words)
        return words.count(term.tokens[0])
    size = len(term.tokens)
    return sum(tuple(words[at : at + size]) == term.tokens for at in range(len(words)))


class Reading(msgspec.Struct, frozen=True):
    """What a process needs to open the index: its path, the key of ids, and the names of classes."""

    path: str
    key: bytes
    classes: tuple[str, ...]

    def open(self) -> Reader:
        """Return a reader, warm."""
        return Reader(warm(db.reader(Path(self.path))), Ids(self.key), Classes(self.classes))


class Used(msgspec.Struct, frozen=True):
    """CPU seconds of one thread, and those for which it was ready and waited for a processor."""

    cpu: float = 0.0
    waited: float = 0.0

    def since(self, before: "Used") -> "Used":
        """Return what was used since `before`."""
        return Used(self.cpu - before.cpu, self.waited - before.waited)


def used() -> Used:
    """Return what the calling thread has used (proc_pid_schedstat(5))."""
    told = Path("/proc/thread-self/schedstat").read_text().split()
    return Used(time.thread_time(), int(told[1]) / 1e9)


Ask = Callable[[str], object]


def asking(reader: Reader, query: str) -> dict[str, object]:
    """Return the whole answer for a reader of every class who wants no untrusted row."""
    scope = Scope(reader.classes.top, "exclude")
    return recall.recall(reader, scope, {"query": query}, NO_LIMIT)


class Process:
    """A process that answers; `ask` it from one thread."""

    def __init__(self, reading: Reading) -> None:
        """Start it, with an interpreter of its own."""
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, msgspec.msgpack.encode(reading)))
        self._process.start()
        theirs.close()
        self.memory_kib = int(self._pipe.recv_bytes())

    def ask(self, query: str) -> object:
        """Return the answer to `query`."""
        self._pipe.send_bytes(query.encode())
        return msgpack.unpackb(self._pipe.recv_bytes())

    def used(self) -> "Used":
        """Return what it has used of a processor."""
        self._pipe.send_bytes(b"")
        return msgspec.msgpack.decode(self._pipe.recv_bytes(), type=Used)

    def close(self) -> None:
        """End it."""
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, packed: bytes) -> None:
    reader = msgspec.msgpack.decode(packed, type=Reading).open()
    pipe.send_bytes(str(_own_memory()).encode())
    while True:
        try:
            query = pipe.recv_bytes().decode()
        except EOFError:
            return
        if query:
            pipe.send_bytes(msgpack.packb(asking(reader, query)))
        else:
            pipe.send_bytes(msgspec.msgpack.encode(used()))


def _own_memory() -> int:
    """Return how many KiB of memory this process shares with nobody and no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def thread_asker(reading: Reading) -> tuple[Ask, Reader]:
    """Return what asks in this process, and its reader, to be closed."""
    reader = reading.open()
    return partial(asking, reader), reader


def mixed(queries: Sequence[Sequence[str]]) -> list[str]:
    """Return queries of several kinds in turn, so that any part of them holds each kind alike."""
    return [query for several in itertools.zip_longest(*queries) for query in several if query]
