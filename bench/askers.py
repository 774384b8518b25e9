"""What two that ask at once cost each other, and a thread that reads logs beside them: is the lock a hindrance?

In: the corpus. Out: rows. SQLite calls our scoring function for every hit and takes the interpreter's lock for it.
Three ways to answer the same questions (rare, mid, mid and common, five and twelve words in turn), each by one and by
two askers, with and without a writer: the function, in threads; `bounded` scoring in C, in threads; the function in
processes (`bench.fallback`). The writer is memoryd's own: logs of the corpus come into a folder and are indexed, in a
thread, as fast as can be, into an index of its own (a commit to the one that is asked would have frequencies counted
anew, which is no matter of the lock). Everything is interleaved round by round; medians. The seconds that a thread
was ready and waited for a processor are taken off its time, since those are other people's doing; what a lock makes
it wait stays. `two busy processes` tells how much of two cores was there meanwhile.
"""

import itertools
import multiprocessing
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path

import msgspec

from bench import corpus as made
from bench import fallback, query
from bench.row import Row
from bench.standing import KEY, Standing, standing
from memoryd import config, index

ROUNDS = 5
SECONDS = 2.0
KINDS = ("rare", "mid", "mid_common", "five_or", "twelve")
NO_TARGET = float("inf")
NOTHING = fallback.Used()


class Arm(msgspec.Struct, frozen=True):
    """A way of answering: its name, whether in processes of its own, and the setting it needs."""

    name: str
    processes: bool = False
    setting: Callable[[], AbstractContextManager[None]] = nullcontext


ARMS = (
    Arm("function"),
    Arm("bounded", setting=fallback.bounded),
    Arm("processes", processes=True),
)


class Case(msgspec.Struct, frozen=True):
    """What is measured at once."""

    arm: str
    askers: int
    writing: bool


class Taken(msgspec.Struct, frozen=True):
    """What came of one case: answers a second, in wall time and without the wait for a processor, the same of
    records, CPU seconds an answer.
    """

    wall: float
    answers: float
    records: float
    cpu: float


def rows(corpus: Path) -> Iterator[Row]:
    """Yield every row of this measure."""
    with standing(corpus) as stands:
        settings = stands.settings
        reading = fallback.Reading(str(settings.path), KEY, settings.classes.names)
        reader = reading.open()
        queries = query.asked(stands, reader)
        asked = fallback.mixed([queries[kind] for kind in KINDS])
        reader.connection.close()
        with ExitStack() as stack:
            processes = [fallback.Process(reading) for _ in range(2)]
            for process in processes:
                stack.callback(process.close)
            bench = Bench(reading, asked, processes, stack.enter_context(writing(stands)))
            cores = [parallel()]
            taken: dict[Case, list[Taken]] = {}
            for number in range(ROUNDS + 1):
                for case in cases():
                    found = bench.run(case)
                    if number:
                        taken.setdefault(case, []).append(found)
                cores.append(parallel())
        yield from told({case: middle(several) for case, several in taken.items()})
        yield Row(
            "two busy processes", "one", statistics.median(cores), NO_TARGET, detail="of two cores"
        )
        memory = processes[0].memory_kib / 1024
        yield Row("a reading process, memory of its own", "limit", memory, NO_TARGET, unit="MiB")


def cases() -> Iterator[Case]:
    """Yield every case; the writer alone first."""
    yield Case("nobody", 0, writing=True)
    for writes in (False, True):
        for askers in (1, 2):
            for arm in ARMS:
                yield Case(arm.name, askers, writes)


def middle(several: Sequence[Taken]) -> Taken:
    """Return the medians."""
    columns = zip(*(msgspec.structs.astuple(one) for one in several), strict=True)
    return Taken(*map(statistics.median, columns))


def told(taken: dict[Case, Taken]) -> Iterator[Row]:
    """Yield the rows: each arm's gain by a second asker, what a writer takes, what the writer is left with."""
    alone = taken[Case("nobody", 0, writing=True)]
    for arm in ARMS:
        found = {
            (askers, writes): taken[Case(arm.name, askers, writes)]
            for askers in (1, 2)
            for writes in (False, True)
        }
        rates = {key: one.answers for key, one in found.items()}
        for writes, what in ((False, "two askers"), (True, "two askers beside ingest")):
            wall = found[2, writes].wall / found[1, writes].wall
            detail = f"{rates[2, writes]:.0f} answers a second against {rates[1, writes]:.0f}"
            detail += f"; in wall time {wall:.2f}"
            yield judged(arm, what, rates[2, writes] / rates[1, writes], detail)
        for askers in (1, 2):
            beside = found[askers, True]
            share = beside.records / alone.records
            yield Row(
                f"{arm.name}: ingest beside {askers}",
                "ingest alone",
                share,
                0.0,
                ">=",
                detail=f"{beside.records:.0f} records a second against {alone.records:.0f}",
            )
            yield Row(
                f"{arm.name}: {askers} beside ingest",
                "without it",
                rates[askers, True] / rates[askers, False],
                0.0,
                ">=",
                detail=f"CPU {1e3 * beside.cpu:.2f} ms an answer against {1e3 * found[askers, False].cpu:.2f}",
            )


def judged(arm: Arm, what: str, value: float, detail: str) -> Row:
    """Return a row that is judged for the way that memoryd takes."""
    target = 1.0 if arm is ARMS[0] else 0.0
    return Row(f"{arm.name}: {what}", "one asker", value, target, ">=", detail=detail)


class Bench:
    """What is asked, and who asks and writes."""

    def __init__(
        self,
        reading: fallback.Reading,
        asked: Sequence[str],
        processes: Sequence[fallback.Process],
        writer: "Writing",
    ) -> None:
        """Take them; threads get readers of their own, warmed by every question."""
        self._asked, self._processes, self._writer = asked, processes, writer
        self._readers = [fallback.thread_asker(reading)[0] for _ in range(2)]

    def run(self, case: Case) -> Taken:
        """Return what one case comes to."""
        arm = next((arm for arm in ARMS if arm.name == case.arm), ARMS[0])
        asks: list[fallback.Ask] = [
            process.ask if arm.processes else ask
            for process, ask in zip(self._processes, self._readers, strict=True)
        ][: case.askers]
        ends = threading.Event()
        before = [process.used() for process in self._processes]
        works = [Work(partial(self._ask, ask, ends, start)) for start, ask in enumerate(asks)]
        writers = [Work(partial(self._writer.until, ends))] if case.writing else []
        with arm.setting():
            for work in (*works, *writers):
                work.start()
            ends.wait(SECONDS)
            ends.set()
            for work in (*works, *writers):
                work.join()
        there = [p.used().since(was) for p, was in zip(self._processes, before, strict=True)]
        answers = sum(work.done for work in works)
        cpu = sum(one.cpu for one in (*(work.used for work in works), *there))
        pairs = zip(works, there, strict=False)
        return Taken(
            sum(work.done / work.seconds for work in works),
            sum(work.rate(elsewhere if arm.processes else NOTHING) for work, elsewhere in pairs),
            sum(work.rate() for work in writers),
            cpu / answers if answers else 0.0,
        )

    def _ask(self, ask: fallback.Ask, ends: threading.Event, start: int) -> int:
        """Ask one question after the other until it `ends`, beginning elsewhere for each asker."""
        first = start * len(self._asked) // 2
        for number in itertools.count():
            if ends.is_set():
                return number
            ask(self._asked[(first + number) % len(self._asked)])
        raise AssertionError("it never ends")


class Work(threading.Thread):
    """A thread that counts what it does, and what it uses."""

    def __init__(self, work: Callable[[], int]) -> None:
        """Take what returns how much was done."""
        super().__init__()
        self._work, self.done = work, 0
        self.used, self.seconds = fallback.Used(), 0.0

    def run(self) -> None:
        """Do it."""
        before, began = fallback.used(), time.perf_counter()
        self.done = self._work()
        self.used, self.seconds = fallback.used().since(before), time.perf_counter() - began

    def rate(self, elsewhere: fallback.Used = NOTHING) -> float:
        """Return how much was done a second, less those of waiting for a processor, here and `elsewhere`.

        Both may wait at once; what they compute, one after the other, is the least that it can have taken.
        """
        cpu, waited = self.used.cpu + elsewhere.cpu, self.used.waited + elsewhere.waited
        return self.done / max(cpu, self.seconds - waited)


class Writing:
    """An index of its own into which logs of the corpus are read."""

    def __init__(self, folder: Path, logs: Sequence[Path]) -> None:
        """Open it, empty."""
        self._source = folder / "logs"
        self._source.mkdir()
        (folder / "state" / "index").mkdir(parents=True, mode=0o700)
        text = f'[[source]]\nkind = "claude-code"\npath = "{self._source}"\n'
        loaded = config.parse(text, folder / "memoryd.toml")
        home = {"HOME": str(folder)}
        self._settings = index.from_config(loaded.config, folder / "state", made.KEY, home)
        self._logs = itertools.cycle(logs)
        self._number = 0
        self._index: index.Index | None = None

    def until(self, ends: threading.Event) -> int:
        """Read logs until it `ends`; return how many records."""
        if self._index is None:
            self._index = index.open(self._settings)
        read = 0
        while not ends.is_set():
            self._number += 1
            log = self._source / f"p{self._number}" / "one.jsonl"
            log.parent.mkdir()
            shutil.copyfile(next(self._logs), log)
            self._index.changed([log])
            more = True
            while more and not ends.is_set():
                counts, more = self._index.catch_up()
                read += counts.records
        return read

    def close(self) -> None:
        """Close the index."""
        if self._index is not None:
            self._index.close()


class writing:  # noqa: N801 - used as a function, in `with`
    """A `Writing` over the corpus of a standing index."""

    def __init__(self, stands: Standing) -> None:
        """Take the corpus."""
        self._corpus = stands.corpus

    def __enter__(self) -> Writing:
        """Make its folder."""
        self._folder = tempfile.TemporaryDirectory(prefix="md-askers-")
        logs = sorted((self._corpus / "claude").rglob("*.jsonl"))
        self._writing = Writing(Path(self._folder.name), logs[:200])
        return self._writing

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self._writing.close()
        self._folder.cleanup()


def parallel() -> float:
    """Return how much more two busy processes get done in a moment than one: 2 on two free cores."""
    spawn = multiprocessing.get_context("fork")

    def busy(count: int) -> int:
        with spawn.Pool(count) as pool:
            return sum(pool.map(_busy, [SECONDS / 8] * count))

    one = busy(1)
    return busy(2) / one if one else 0.0


def _busy(seconds: float) -> int:
    ends = time.perf_counter() + seconds
    return next(number for number in itertools.count() if time.perf_counter() > ends)
