"""What lessons cost: a daemon that catches up with its logs, and a block with ten thousand lessons.

In: the corpus, page cache warm. Out: three rows. Catching up: the CPU of the daemon's own keeper and tutor, each with
its thread, from an empty state folder until every log is read, every call learned from and every session come to
rest, over that of a keeper to whom nobody listens. What else the machine does comes and goes by the second, and makes
single rounds differ by a third of themselves: so there are many short rounds, one without lessons and one with in
turn, and the figure is the median of the pairs' own ratios; what each thread adds is told by the medians.
Once with none of the calls failing, so that all there is to do is to observe; and once with the corpus as it is, of
whose calls 7 % fail, nearly each with another error and so a lesson.
A block: the median of plans for prompts of three to twelve words, their ledger rows written, in a database on disk
with ten thousand lessons of one project.
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any, NamedTuple
from unittest import mock

import apsw
import structlog
import trio

from bench import corpus as made
from bench.generate import START_MS, Writer
from bench.row import Row, cpu_seconds, percentile, pinned, wall_seconds
from memoryd import db
from memoryd.db import Deadline
from memoryd.index import Settings
from memoryd.index.search import Reader as IndexReader
from memoryd.lessons import ledger, row, store
from memoryd.lessons.codes import RULES
from memoryd.lessons.plan import Ask
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson
from memoryd.serve import tutor
from memoryd.serve.keeper import Keeper
from memoryd.serve.readers import Readers
from memoryd.serve.tutor import Tutor

ROUNDS = 60
LESSONS = 10_000
BLOCKS = 200
MOST_BYTES = 8 << 20
LONG_AGO_S = START_MS // 1000 + 86_400 * 30
"""When the logs were written: sessions come to rest as soon as all of them is read."""
PROJECT = "/home/dev/shop"
OWNER = Reader(7, "include", ("*",), owner=True)


def rows(corpus: Path) -> list[Row]:
    """Return the rows `observing`, `learning` and `block`."""
    with tempfile.TemporaryDirectory(prefix="md-lessons-") as name:
        folder = Path(name)
        return [
            _added("observing while catching up, CPU added", corpus, folder / "well", _well),
            _added("learning while catching up, CPU added", corpus, folder / "both", _as_it_is),
            _block(folder),
        ]


def _as_it_is(line: bytes) -> bytes:
    return line


def _well(line: bytes) -> bytes:
    """Return a line of the corpus that says of no call that it failed."""
    return line.replace(b'"is_error":true', b'"is_error":false').replace(
        b'"ok":false', b'"ok":true'
    )


class Spent(NamedTuple):
    """CPU seconds of one catching up: in all, of the main thread, of the learner's."""

    whole: float
    main: float
    learner: float

    @property
    def reader(self) -> float:
        """Return those of the thread that reads, and of what is asked meanwhile."""
        return self.whole - self.main - self.learner


def _added(metric: str, corpus: Path, folder: Path, told: Callable[[bytes], bytes]) -> Row:
    """Catch up without lessons and with, in turn, and compare each two. `told`: what the logs say."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    chosen = _chosen(corpus, folder, told)
    taken: dict[bool, list[Spent]] = {False: [], True: []}
    calls = 0
    # A year of calls is kept: the clock stands where the logs are not that old.
    with (
        pinned(0),
        mock.patch("memoryd.clock.now_ms", return_value=1_000 * LONG_AGO_S + 60 * 86_400_000),
    ):
        for _ in range(ROUNDS + 1):
            for learns, rounds in taken.items():
                state = folder / f"{learns}"
                rounds.append(_spent(partial(_caught_up, chosen, state, learns=learns)))
                calls = _calls(state) if learns else calls
                shutil.rmtree(state)
    alone, both = (rounds[1:] for rounds in taken.values())
    added = median(two.whole / one.whole - 1 for one, two in zip(alone, both, strict=True))
    usual = median(one.whole for one in alone)
    parts = ", ".join(
        f"{name} {1e3 * (median(map(of, both)) - median(map(of, alone))):+.0f} ms"
        for name, of in _PARTS
    )
    detail = (
        f"{added * usual / calls * 1e6:.0f} us a call of {calls:,}; "
        f"catching up {usual:.2f} s; {parts}"
    )
    return Row(metric, "catching up", added, 0.15, detail=detail)


_PARTS = tuple((name, attrgetter(name)) for name in ("reader", "learner", "main"))


def _spent(work: Callable[[], None]) -> Spent:
    """Do it once, and tell what each thread had of it."""
    learner = 0.0
    step = tutor._step  # noqa: SLF001 - all that the learner's thread does for what was heard

    def timed(*given: Any) -> tuple[bool, float | None]:
        nonlocal learner
        before = thread_time()
        try:
            return step(*given)
        finally:
            learner += thread_time() - before

    with mock.patch.object(tutor, "_step", timed):
        before = thread_time()
        whole = cpu_seconds(work)
        return Spent(whole, thread_time() - before, learner)


def _chosen(corpus: Path, folder: Path, told: Callable[[bytes], bytes]) -> Path:
    """Return a folder with copies of some of the corpus's logs, as old as what stands in them, and saying `told`."""
    target, size = folder / "corpus", 0
    for file in made.logs(corpus, folder / "look"):
        if size > MOST_BYTES:
            break
        size += file.path.stat().st_size
        copy = target / file.path.relative_to(corpus)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(told(file.path.read_bytes()))
        os.utime(copy, (LONG_AGO_S, LONG_AGO_S))
    for name in ("sessions", "claude"):
        (target / name).mkdir(parents=True, exist_ok=True)
    return target


def _caught_up(corpus: Path, state: Path, *, learns: bool) -> None:
    """Do what a daemon does with logs that it has never seen."""
    trio.run(_follow, made.settings(corpus, state), learns)


async def _follow(settings: Settings, learns: bool) -> None:
    def reader() -> IndexReader:
        return IndexReader(db.reader(settings.path), settings.ids, settings.classes)

    keeper = Keeper(settings, Readers(reader))
    learner = Tutor(settings, keeper.known, idle_after_s=900) if learns else None
    keeper.listener = learner
    async with trio.open_nursery() as nursery:
        await nursery.start(keeper.run)
        if learner is not None:
            nursery.start_soon(learner.run)
        await keeper.synced(None)
        if learner is not None:
            await learner.caught_up()
            # Nobody tells when the last session has come to rest.
            while await learner.read(_restless, Deadline(10)):  # noqa: ASYNC110 - see above
                await trio.sleep(0.05)
        nursery.cancel_scope.cancel()


def _restless(connection: apsw.Connection) -> int:
    """Return how many sessions have not come to rest."""
    found = connection.execute(
        "SELECT count(*) FROM session WHERE idle_at IS NULL OR idle_at < last_at"
    )
    return int(found.get)


def _calls(state: Path) -> int:
    connection = db.reader(state / store.NAME)
    try:
        return int(connection.execute("SELECT count(*) FROM call").get)
    finally:
        connection.close()


def _block(folder: Path) -> Row:
    """Measure blocks of new sessions, so that nothing is refused for having been seen."""
    connection = store.opened(folder / "block.sqlite3")
    writer = Writer(3)
    with db.transaction(connection):
        for number in range(LESSONS):
            row.insert(connection, _lesson(writer, number))
    taken: list[float] = []
    shown = 0
    for number in range(BLOCKS):
        ask = Ask(query=_prompt(writer), session=f"s{number}", project=PROJECT, now=number)
        taken.append(1e3 * wall_seconds(partial(ledger.block, connection, OWNER, ask)))
        shown += connection.execute(
            "SELECT count(*) FROM injection WHERE session = ?", (ask.session,)
        ).get
    connection.close()
    middle, late = percentile(taken, 0.5), percentile(taken, 0.95)
    detail = f"p95 {late:.1f} ms; {shown / BLOCKS:.1f} lessons a block"
    return Row("block, 10,000 lessons, p50", "limit", middle, 5, unit="ms", detail=detail)


def _lesson(writer: Writer, number: int) -> Lesson:
    rng = writer.rng
    rule = rng.choice(RULES)
    code = rule.code or next(iter(rule.hints)) or "E1"
    hint = rule.hints.get("", "") or next(iter(rule.hints.values()))
    line = f"{writer.path()}: {' '.join(writer.draw(rng.randint(4, 16)))}"
    return Lesson(
        id=row.new_id(number, "bench", number),
        type="error",
        content=f"Bash `{' '.join(writer.draw(4))}` fails with {code}: {line}\nSuggestion: {hint} ({code})",
        project=PROJECT,
        fingerprint=f"{number:016x}",
        origin="reflector",
        level=0,
        untrusted=False,
        error_type="runtime",
        first_line=line,
        code=code,
        hint=hint,
        suggestion=hint,
        created_at=number,
        updated_at=number,
    )


def _prompt(writer: Writer) -> str:
    """Return what people write when something fails: words of every rank, common ones of lessons among them."""
    said = writer.rng.choice(
        ("the build fails again", "why does this fail", "fix the error in", "")
    )
    return f"{said} {writer.path()} {' '.join(writer.draw(writer.rng.randint(3, 12)))}"
