"""A daemon on an index that stands: how soon it answers, what it holds in memory, how it fares under other work.

In: the corpus. Out: rows. `ready` is the daemon's CPU from its start to an answer from the index, against a Python
that imports the same libraries, interleaved medians; CPU, since wall time hangs on what else the machine does.
Resident memory is the daemon's highest after a question of each kind. `while a rebuild runs`: the median question
over the socket with a rebuild in its own process, against without. Two readers: questions a second of two threads,
each with a connection, against one, beside a thread that writes rows. Small segments: CPU of a question after many
small commits to a copy of the index, against before, and after merging.
"""

import itertools
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw

from bench import idle, query
from bench.cold import _as_installed
from bench.row import Row, command_cpu, cpu_seconds, percentile, wall_seconds
from bench.standing import KEY, Standing, standing
from examples.disposable import Daemon
from memoryd import db, recall
from memoryd.errors import MemorydError
from memoryd.ids import Ids
from memoryd.index.rows import Rows, Source
from memoryd.index.search import Reader
from memoryd.labels import Classes, Label
from memoryd.records import Kind

ROUNDS = 3
SECONDS = 4.0
COMMITS = 400
LIBRARIES = "import trio, structlog, msgspec, apsw, msgpack"


def rows(corpus: Path) -> Iterator[Row]:
    """Yield every row of this measure."""
    with standing(corpus) as stands:
        queries = json.loads((corpus / "queries.json").read_text())
        asked = [text for kind in ("rare", "mid", "mid_common") for text in queries[kind]]
        yield from with_daemon(stands, asked)
        yield from two_readers(stands, asked)
        yield from small_segments(stands, queries["rare"])
        built = stands.built
        yield Row("rebuild, resident memory", "limit", built.peak_kib / 1024, 200, unit="MiB")


class _Asked(Daemon):
    """A daemon that counts as ready once it has answered a question; refusing one costs it next to nothing."""

    def ready(self) -> bool:
        """Say whether a question is answered from the index."""
        try:
            with self.client(timeout=1.0) as memory:
                return memory.call("recall", query="nobody_has_this_word") is not None
        except MemorydError:
            return False


def with_daemon(stands: Standing, asked: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a real daemon."""
    with _Asked(stands.home, stands.config, user_home=stands.home / "user") as daemon:
        daemon.env = _as_installed(daemon.env, stands.home / "bytecode")
        started, imported = [], []
        for number in range(ROUNDS + 1):
            seconds = daemon.start(120)
            cpu = idle._cpu(daemon.pid)  # noqa: SLF001 - the same look at another daemon
            if number < ROUNDS:
                daemon.stop()
            imports = command_cpu([sys.executable, "-c", LIBRARIES], daemon.env)
            if number:
                started.append((cpu, seconds))
                imported.append(imports)
        ready, base = percentile([cpu for cpu, _ in started], 0.5), percentile(imported, 0.5)
        felt = percentile([seconds for _, seconds in started], 0.5)
        yield Row(
            "daemon ready, beyond its imports, CPU",
            "importing trio, structlog, msgspec, apsw, msgpack",
            1e3 * (ready - base),
            300,
            unit="ms",
            detail=f"{1e3 * ready:.0f} ms against {1e3 * base:.0f}; from start to answer {1e3 * felt:.0f} ms",
        )
        with daemon.client(timeout=600) as memory:
            memory.call("sync", deadline_ms=600_000)
            before = asking(lambda text: memory.call("recall", query=text), asked)
            yield Row("daemon, resident memory", "limit", resident(daemon.pid), 120, unit="MiB")
            memory.call("reindex")
            during = asking(lambda text: memory.call("recall", query=text), asked)
        yield Row(
            "recall p50 while a rebuild runs",
            "without one",
            during / before,
            1.5,
            detail=f"{1e3 * during:.2f} ms against {1e3 * before:.2f}",
        )


def asking(ask: Callable[[str], object], asked: Sequence[str]) -> float:
    """Return the seconds of the median question, asked one after the other for a while."""
    taken, ends = [], time.monotonic() + SECONDS
    for text in itertools.cycle(asked):
        taken.append(wall_seconds(lambda text=text: ask(text)))
        if time.monotonic() > ends and len(taken) >= len(asked):
            return percentile(taken, 0.5)
    raise AssertionError("there is nothing to ask")


def resident(pid: int) -> float:
    """Return the highest resident memory of a process in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def two_readers(stands: Standing, asked: Sequence[str]) -> Iterator[Row]:
    """Yield how two threads that ask compare with one, alone and beside a thread that writes."""
    for writing in (False, True):
        one, two = (rate(stands, asked, threads, writing=writing) for threads in (1, 2))
        yield Row(
            f"two query threads{' beside ingest' if writing else ''}",
            "one query thread",
            two / one,
            1.0,
            ">=",
            detail=f"{two:.0f} questions a second against {one:.0f}, {len(os.sched_getaffinity(0))} cores",
        )


def rate(stands: Standing, asked: Sequence[str], threads: int, *, writing: bool) -> float:
    """Return how many questions a second so many threads get answered."""
    done, ends = [0] * threads, threading.Event()
    readers = [query.opened(stands) for _ in range(threads)]

    def ask(number: int) -> None:
        for text in itertools.cycle(asked):
            if ends.is_set():
                return
            scope = query.scope(readers[number])
            recall.recall(readers[number], scope, {"query": text}, db.Deadline())
            done[number] += 1

    def write() -> None:
        with scratch_rows() as add:
            for number in itertools.count():
                if ends.is_set():
                    return
                add(f"{asked[number % len(asked)]} said again {number}")

    works = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    works += [threading.Thread(target=write)] if writing else []
    for work in works:
        work.start()
    ends.wait(SECONDS)
    ends.set()
    for work in works:
        work.join()
    for reader in readers:
        reader.connection.close()
    return sum(done) / SECONDS


class scratch_rows:  # noqa: N801 - used as a function, in `with`
    """A function that writes one row into a small index in memory, as an append does."""

    def __enter__(self) -> Callable[[str], None]:
        """Make the table."""
        self._connection = apsw.Connection(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE ft USING fts5(text)")
        return lambda text: self._connection.execute("INSERT INTO ft VALUES (?)", (text,)).close()

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._connection.close()


def small_segments(stands: Standing, asked: Sequence[str]) -> Iterator[Row]:
    """Yield what many small commits cost a question about rare words, before and after they are merged."""
    path = stands.home / "segments.sqlite3"
    shutil.copyfile(stands.settings.path, path)
    connection = db.writer(path)
    fresh = taking(path, asked)
    first = int(str(connection.execute("SELECT max(id) FROM row_1").get)) * 2
    for number in range(COMMITS):
        with db.transaction(connection):
            written = Rows(connection, 4, first + number)
            source = Source(1, 1_000_000 + number, 0, Kind.OWNER, number)
            written.add(source, Label(1, False), f"{asked[number % len(asked)]} again {number}")
            written.flush()
    many, segments = taking(path, asked), counted(connection)
    connection.execute("INSERT INTO ft_1(ft_1, rank) VALUES ('merge', 500)")
    merged, left = taking(path, asked), counted(connection)
    connection.close()
    for one in (path, *(path.with_name(path.name + end) for end in db.SIDECARS)):
        one.unlink(missing_ok=True)
    yield Row(
        f"a rare word after {COMMITS} small commits",
        "the same index as rebuilt",
        many / fresh,
        2.0,
        detail=f"{segments} segments; merged while idle to {left}: {merged / fresh:.2f}x",
    )


def taking(path: Path, asked: Sequence[str]) -> float:
    """Return the CPU seconds of the median question, its frequencies counted anew."""
    reader = Reader(db.reader(path), Ids(KEY), Classes(("public", "internal", "private", "secret")))
    taken = []
    for text in [*asked, *asked, *asked]:
        reader.figures._counts.clear()  # noqa: SLF001 - what a commit does
        taken.append(cpu_seconds(lambda text=text: query.top(reader, text)))
    reader.connection.close()
    return percentile(taken[len(asked) :], 0.5)


def counted(connection: apsw.Connection) -> int:
    """Return how many segments the class has."""
    return int(str(connection.execute("SELECT count(DISTINCT segid) FROM ft_1_idx").get))
