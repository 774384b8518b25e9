"""What lessons cost: watching calls while logs are caught up with, and a block with ten thousand lessons.

In: the corpus, page cache warm. Out: two rows. Watching: the CPU of pairing, redacting and writing down every
call, beside the index's own catch-up of the same logs (the daemon hands the same decoded and folded records to
both, so that reading them is in neither figure of watching). A block: the median of plans for prompts of
three to twelve words, their ledger rows written, in a database on disk with ten thousand lessons of one project.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw

from bench import corpus as made
from bench.generate import Writer
from bench.row import Row, cpu_seconds, percentile, wall_seconds
from memoryd import db, index, replay
from memoryd.fold import begin, fold
from memoryd.labels import Label
from memoryd.lessons import ledger, row, store
from memoryd.lessons.codes import RULES
from memoryd.lessons.observe import observe_many
from memoryd.lessons.pairing import Pairing, Rows, Seen
from memoryd.lessons.plan import Ask
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson
from memoryd.records import Record
from memoryd.sources import LogFile, lines

ROUNDS = 5
LESSONS = 10_000
BLOCKS = 200
MOST_BYTES = 40 << 20
AT_ONCE = 1_200
"""Calls in one transaction: a daemon behind its logs commits every 4,000 records."""
PROJECT = "/home/dev/shop"
OWNER = Reader(7, "include", ("*",), owner=True)
Folded = list[tuple[Record, Rows, Label, int]]


def rows(corpus: Path) -> list[Row]:
    """Return the rows `observing` and `block`."""
    with tempfile.TemporaryDirectory(prefix="md-lessons-") as folder:
        return [_observing(corpus, Path(folder)), _block(Path(folder))]


def _observing(corpus: Path, folder: Path) -> Row:
    """Measure catching up and watching, in turn, and take the median of each."""
    chosen = _chosen(corpus, folder)
    caught: list[float] = []
    watched: list[float] = []
    calls = 0
    for number in range(ROUNDS):
        state = folder / f"index-{number}"
        caught.append(_catch_up(chosen, state))
        seconds, calls = _watch(made.logs(chosen, state), folder / f"lessons-{number}.sqlite3")
        watched.append(seconds)
    ours, theirs = (sorted(taken)[ROUNDS // 2] for taken in (watched, caught))
    detail = f"{ours / calls * 1e6:.0f} us a call of {calls:,}; catching up {theirs:.2f} s"
    return Row("watching calls, CPU", "the index catching up", ours / theirs, 0.15, detail=detail)


def _chosen(corpus: Path, folder: Path) -> Path:
    """Return a folder with copies of some of the corpus's logs."""
    target, size = folder / "corpus", 0
    for file in made.logs(corpus, folder / "look"):
        if size > MOST_BYTES:
            break
        size += file.path.stat().st_size
        copy = target / file.path.relative_to(corpus)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path, copy)
    for name in ("sessions", "claude"):
        (target / name).mkdir(parents=True, exist_ok=True)
    return target


def _catch_up(corpus: Path, state: Path) -> float:
    """Return the CPU seconds in which an empty index reads the logs as a daemon does."""
    following = index.open(made.settings(corpus, state))
    try:
        return cpu_seconds(lambda: index.catch_up(following))
    finally:
        following.close()


def _watch(files: list[LogFile], path: Path) -> tuple[float, int]:
    """Return the CPU seconds of watching the logs' calls, and how many there were."""
    connection = store.opened(path)
    seconds, calls, waiting = 0.0, 0, list[Seen]()
    gc.disable()  # as the index does while it reads much
    try:
        for file in files:
            pairing = Pairing(file.log, file.log)
            for folded in _folded(file):
                before = len(waiting)
                seconds += cpu_seconds(partial(_feed, pairing, folded, waiting))
                calls += len(waiting) - before
                if len(waiting) >= AT_ONCE:
                    seconds += cpu_seconds(partial(_write, connection, waiting))
        seconds += cpu_seconds(partial(_write, connection, waiting))
    finally:
        gc.enable()
        connection.close()
    return seconds, calls


def _folded(file: LogFile) -> Iterator[Folded]:
    rules = replay.default_rules(Path("/home/dev"))
    state = begin(rules)
    handle = os.open(file.path, os.O_RDONLY)
    try:
        for batch in lines.read(handle, lines.Position(), file.adapter, log=file.log):
            yield [
                (record, fold(state, record, rules, trusted=False), state.label, 0)
                for record in batch.records
            ]
    finally:
        os.close(handle)


def _feed(pairing: Pairing, folded: Folded, waiting: list[Seen]) -> None:
    waiting += pairing.feed_many(folded)


def _write(connection: apsw.Connection, waiting: list[Seen]) -> None:
    with db.unsynced(connection):
        observe_many(connection, waiting)
    waiting.clear()


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
