"""The peers that a query is held against: the same rows in one plain FTS5 table, and in tantivy.

In: memoryd's index of a corpus, a folder to keep the peers' in. Out: engines, each a callable from a text to its ten
best rows, any word counting. Both peers know each row's trust and class, so that they can filter as memoryd does;
tantivy (`pip install tantivy`) is a peer of the bench alone and may be absent.
"""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from memoryd import db
from memoryd.index import search

Engine = Callable[[str], object]

RANK = (
    "SELECT f.rowid FROM ft f CROSS JOIN row r ON r.id = f.rowid"
    " WHERE ft MATCH ? AND r.untrusted = 0 ORDER BY rank LIMIT 10"
)
BARE = "SELECT rowid, bm25(ft) AS score FROM ft WHERE ft MATCH ? ORDER BY score LIMIT 10"
_HASH = 64 << 20
_HEAP = 256 << 20


def warm(connection: apsw.Connection) -> apsw.Connection:
    """Give a connection room for the whole index in memory."""
    connection.pragma("mmap_size", 4 << 30)
    connection.pragma("cache_size", -65_536)
    return connection


def texts(connection: apsw.Connection) -> Iterator[tuple[int, int, int, str]]:
    """Yield (id, class, untrusted, text) of every row of memoryd's index, class by class."""
    for level in range(4):
        sql = (
            f"SELECT r.id, {level}, r.untrusted, f.text FROM row_{level} r"
            f" CROSS JOIN ft_{level} f ON f.rowid = r.id ORDER BY r.id"
        )
        yield from connection.execute(sql)


def one_table(connection: apsw.Connection, path: Path) -> apsw.Connection:
    """Return the texts in one FTS5 table, as a search without classes would have them; made once."""
    if not path.exists():
        temp = path.with_suffix(".part")
        temp.unlink(missing_ok=True)
        db.create(temp)
        made = db.builder(temp)
        tokenizer = " ".join(search.TOKENIZER)
        made.execute("CREATE TABLE row(id INTEGER PRIMARY KEY, untrusted INTEGER NOT NULL)")
        made.execute(f"CREATE VIRTUAL TABLE ft USING fts5(text, tokenize = '{tokenizer}')")
        made.execute("INSERT INTO ft(ft, rank) VALUES ('hashsize', ?)", (_HASH,))
        with made:
            for id_, _, untrusted, text in sorted(texts(connection)):
                made.execute("INSERT INTO ft(rowid, text) VALUES (?, ?)", (id_, text))
                made.execute("INSERT INTO row VALUES (?, ?)", (id_, untrusted))
        made.close()
        temp.rename(path)
    return warm(db.reader(path))


def statement(connection: apsw.Connection, sql: str) -> Engine:
    """Return an engine that runs one plain statement for any of the words."""

    def ask(query: str) -> object:
        words = " OR ".join(f'"{word}"' for word in query.split())
        return connection.execute(sql, (words,)).fetchall()

    return ask


def tantivy(connection: apsw.Connection, folder: Path) -> Engine | None:
    """Return tantivy over the texts under the same filter, made once; None where it is not installed."""
    if importlib.util.find_spec("tantivy") is None:
        return None
    import tantivy as engine  # noqa: PLC0415 - a peer that need not be there

    if not folder.exists():
        part = folder.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        _fill(engine, engine.Index(_schema(engine), path=str(part)), connection)
        part.rename(folder)
    index = engine.Index(_schema(engine), path=str(folder))
    index.reload()
    searcher = index.searcher()

    def ask(query: str) -> object:
        words = " OR ".join(f'"{word}"' for word in query.split())
        parsed = index.parse_query(f"+({words}) +untrusted:0", ["text"])
        return searcher.search(parsed, 10, count=False).hits

    return ask


def _schema(engine: Any) -> Any:
    builder = engine.SchemaBuilder()
    builder.add_unsigned_field("id", stored=True, fast=True)
    builder.add_unsigned_field("untrusted", indexed=True, fast=True)
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
    return builder.build()


def _fill(engine: Any, index: Any, connection: apsw.Connection) -> None:
    writer = index.writer(heap_size=_HEAP, num_threads=1)
    for id_, _, untrusted, text in texts(connection):
        document = engine.Document()
        document.add_unsigned("id", id_)
        document.add_unsigned("untrusted", untrusted)
        document.add_text("text", text)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
