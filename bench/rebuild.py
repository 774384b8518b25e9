"""A whole rebuild against the floor: raw FTS5 inserts of the same texts from memory, and nothing else.

In: the corpus, page cache warm. Out: rows for CPU (the rebuild's process against the floor's), the index's
size against the text in it, and the rebuild's resident memory. The floor is one FTS5 table with the same
tokenizer and a 64 MiB hash, one transaction, no journal. Both run in processes of their own, on one core.
"""

import multiprocessing
import os
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import apsw

from bench import corpus as made
from bench.row import Row, command_cpu, cpu_seconds
from memoryd.index import Built, Rebuild

ROUNDS = 9
START = (sys.executable, "-P", "-c", "import memoryd.index.__main__")
"""What a rebuild's process does before it reads a log: the target is set for a million records, where it is lost."""


def rows(corpus: Path) -> list[Row]:
    """Return the rows of a rebuild."""
    with tempfile.TemporaryDirectory(prefix="md-rebuild-") as folder:
        state = Path(folder)
        settings = made.settings(corpus, state)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        taken: list[tuple[float, float, float, Built]] = []
        for number in range(ROUNDS):
            built = Rebuild(settings).run(lambda progress: None)
            temp = Path(built.temp)
            start = command_cpu(START, os.environ)
            floor, text = _apart(temp, state / "floor")
            taken.append(((built.cpu_seconds - start) / floor, start, floor, built))
            size = temp.stat().st_size
            if number < ROUNDS - 1:
                temp.unlink()
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    ratio, start, floor, built = sorted(taken, key=lambda one: one[0])[len(taken) // 2]
    count = built.counts.indexed
    detail = (
        f"{built.cpu_seconds:.2f} s, {start:.2f} of them to start, against {floor:.2f} s, {count} rows, "
        f"{text / 1e6:.0f} MB of text"
    )
    return [
        Row(
            "rebuild, CPU, its start aside",
            "raw FTS5 executemany, hashsize 64 MB",
            ratio,
            1.35,
            detail=detail,
        ),
        Row("index size", "indexed text", size / text, 1.7, detail=f"{size / 1e6:.1f} MB"),
        Row("rebuild, resident memory", "limit", built.peak_kib / 1024, 200, unit="MiB"),
    ]


def _apart(index: Path, target: Path) -> tuple[float, int]:
    """Return (CPU seconds, bytes of text) of the floor, measured in a process of its own."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_floor, args=(index, target, theirs)
    )
    process.start()
    found: tuple[float, int] = ours.recv()
    process.join()
    return found


def _floor(index: Path, target: Path, answer: Connection) -> None:
    texts: list[tuple[str]] = []
    source = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
    for (name,) in source.execute(
        "SELECT name FROM sqlite_schema WHERE name GLOB 'ft_[0-9]'"
    ).fetchall():
        texts += source.execute(f"SELECT text FROM {name}").fetchall()
    source.close()
    target.unlink(missing_ok=True)

    def insert() -> None:
        db = apsw.Connection(str(target))
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
            db.execute(f"PRAGMA {pragma}")
        db.execute(
            "CREATE VIRTUAL TABLE ft USING fts5(text, tokenize='porter unicode61 remove_diacritics 2')"
        )
        db.execute("INSERT INTO ft(ft, rank) VALUES ('hashsize', 67108864)")
        with db:
            db.executemany("INSERT INTO ft(text) VALUES (?)", texts)
        db.close()

    seconds = cpu_seconds(insert)
    answer.send((seconds, sum(len(text.encode()) for (text,) in texts)))
