"""The sets of questions of `make bench-recall`, each with the index that it is asked of.

In: a corpus. Out: one set after another, indexed as a rebuild does; those that nobody asked for are not made.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw
import msgspec

from bench import timed
from bench.questions import Line, Question, halves, read, told_by_themselves, write
from memoryd import config, db
from memoryd.ids import Ids
from memoryd.index import building, dump, from_config
from memoryd.index.search import Reader
from memoryd.labels import Classes

KEY = b"k" * 32
Wanted = Callable[[str], bool]
"""Whether sets whose names begin so are asked for."""
Sets = Iterator[tuple[str, "Index", list[Question]]]


class Index(msgspec.Struct, frozen=True):
    """What the questions are asked of: the memory, and the same texts in plain tables, which bear no times."""

    reader: Reader
    plain: apsw.Connection | None


def indexed(rows: Sequence[Line], folder: Path) -> Index:
    """Return an index of `rows` as a rebuild makes it, and the plain tables."""
    logs = folder / "logs"
    logs.mkdir(parents=True)
    write(rows, logs)
    reader = built(logs, folder)
    tables = apsw.Connection(":memory:")
    for name, tokenizer in (("stemmed", "porter unicode61"), ("unstemmed", "unicode61")):
        tables.execute(
            f"CREATE VIRTUAL TABLE {name} USING fts5(session UNINDEXED, text, tokenize = '{tokenizer}')"
        )
        with tables:
            tables.executemany(
                f"INSERT INTO {name} VALUES (?, ?)", ((row.id, row.text) for row in rows)
            )
    return Index(reader, tables)


def built(logs: Path, folder: Path) -> Reader:
    """Return a reader of an index of `logs`, made in `folder`."""
    text = f'[[source]]\nkind = "auto"\npath = "{logs}"\n[index]\nmax_class = "secret"\n'
    loaded = config.parse(text, folder / "memoryd.toml")
    state = folder / "state"
    state.mkdir()
    settings = from_config(loaded.config, state, KEY, {"HOME": str(folder)})
    path = state / "memory.sqlite3"
    db.create(path)
    building.build(path, settings)
    return Reader(db.reader(path), Ids(KEY), Classes(settings.classes.names))


def logged(logs: Path, folder: Path) -> list[Line]:
    """Return what an index of other session logs holds, as rows."""
    folder.mkdir()
    lines = (json.loads(line) for _, line in dump.dump(built(logs, folder).connection))
    return [
        Line(f"{line['source']} {line['session']}".replace("/", " "), line["text"])
        for line in lines
    ]


def sets_of(corpus: Path, scratch: Path, wanted: Wanted) -> Sets:
    """Yield every set of questions that is wanted, what it is asked of first. Raises: SystemExit without any."""
    rows, questions = read(corpus / "recall")
    if not questions:
        raise SystemExit(f"bench-recall: no questions in {corpus}/recall; say --corpus DIR")
    if wanted("intents"):
        yield "intents", indexed(rows, scratch / "whole"), questions
    own, kept = told_by_themselves(rows)
    if any(map(wanted, own)):
        less = indexed(kept, scratch / "less")
        for name, several in own.items():
            for number, half in enumerate(halves(several), 1):
                if half:
                    yield f"{name} {number}", less, half
    if (corpus / "sessions").is_dir():
        yield from _of_logs(corpus / "sessions", scratch, wanted)


def _of_logs(logs: Path, scratch: Path, wanted: Wanted) -> Sets:
    """Yield the sets that other people's logs give."""
    if wanted("others"):
        others, kept = told_by_themselves(logged(logs, scratch / "logged"))
        index = indexed(kept, scratch / "others")
        for name, several in others.items():
            if several:
                yield f"others, {name}", index, several
    if wanted("timed"):
        (scratch / "timed").mkdir()
        reader = built(logs, scratch / "timed")
        asked = {"same files": timed.questions(reader.connection), **timed.vague(reader.connection)}
        for name, several in asked.items():
            if several:
                yield f"timed, {name}", Index(reader, None), several
