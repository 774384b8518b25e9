"""Rows on their way: ids in reading order, lengths as FTS5 counts them, secrets masked, nothing half."""

import random

import apsw
import pytest

from memoryd import db, migrations
from memoryd.index.rows import Counts, Rows, Source, storable, tokens
from memoryd.labels import Label
from memoryd.records import Kind


@pytest.fixture
def connection():
    connection = apsw.Connection(":memory:")
    migrations.apply(connection, "index", classes=3)
    yield connection
    connection.close()


def place(n, kind=Kind.OWNER, tool=None):
    return Source(1, n, 0, kind, 1000 + n, tool)


def test_ids_rise_in_reading_order_over_all_classes(connection):
    rows = Rows(connection, 3, 7)
    for n, level in enumerate([2, 0, 1, 0, 2]):
        rows.add(place(n), Label(level, n % 2 == 1), f"text {n}")
    rows.flush()
    found = sorted(
        row
        for c in range(3)
        for row in connection.execute(f"SELECT id, n, {c}, untrusted FROM row_{c}")
    )
    assert found == [(7, 0, 2, 0), (8, 1, 0, 1), (9, 2, 1, 0), (10, 3, 0, 1), (11, 4, 2, 0)]
    assert connection.execute("SELECT text FROM ft_1 WHERE rowid = 9").get == "text 2"


@pytest.mark.parametrize("count", [0, 1, 127, 128, 300, 16_383, 16_384, 40_000])
def test_a_row_s_length_is_what_fts5_counts(connection, count):
    rows = Rows(connection, 3, 1)
    rows.add(place(0), Label(0, False), "word " * count)
    rows.flush()
    assert connection.execute("SELECT dl FROM row_0").get == count


def test_every_row_keeps_its_own_place_and_tool(connection):
    rows = Rows(connection, 3, 1)
    rows.add(place(4, Kind.TOOL_CALL, "Bash"), Label(0, True), "Bash\nls")
    rows.flush()
    (row,) = connection.execute("SELECT log, n, block, kind, untrusted, ts, tool, dl FROM row_0")
    assert row == (1, 4, 0, Kind.TOOL_CALL, 1, 1004, "Bash", 2)


def test_secrets_are_masked_whoever_wrote_them_v11(connection):
    rows = Rows(connection, 3, 1)
    rows.add(place(0), Label(0, False), "the key is AKIAIOSFODNN7EXAMPLE")
    rows.flush()
    assert connection.execute("SELECT text FROM ft_0").get == "the key is <redacted>"


def test_half_a_surrogate_pair_in_a_batch_harms_no_neighbour(connection):
    rows = Rows(connection, 3, 1)
    for n, text in enumerate(["before", "half \ud800 pair", "after"]):
        rows.add(place(n), Label(0, False), text)
    rows.flush()
    assert connection.execute("SELECT text FROM ft_0 ORDER BY rowid").fetchall() == [
        ("before",),
        ("half \ufffd pair",),
        ("after",),
    ]
    assert connection.execute("SELECT count(*) FROM row_0").get == 3


def test_the_words_of_the_fullest_class_are_written_out_when_all_hold_too_much(connection):
    """Until then FTS5 keeps them, as far as its own bound lets it."""
    for c in range(3):
        connection.execute(f"INSERT INTO ft_{c}(ft_{c}, rank) VALUES ('hashsize', 1000000)")
    rows = Rows(connection, 3, 1, hold=100)
    written = []
    connection.execute("BEGIN")
    for level, size in ((0, 40), (1, 50), (0, 9), (0, 2), (1, 49), (1, 1), (0, 1)):
        rows.add(place(len(written)), Label(level, False), "x" * size)
        rows.flush()
        found = [
            connection.execute(f"SELECT count(DISTINCT segid) FROM ft_{c}_idx").get
            for c in range(2)
        ]
        written.append(found)
    connection.execute("COMMIT")
    assert written == [[0, 0], [0, 0], [0, 0], [1, 0], [1, 0], [1, 0], [1, 1]]


def test_many_rows_are_written_without_being_asked(connection):
    rows = Rows(connection, 3, 1)
    for n in range(4_500):
        rows.add(place(n), Label(0, False), "x")
    assert 3_900 < connection.execute("SELECT count(*) FROM row_0").get < 4_100
    rows.flush()
    assert connection.execute("SELECT count(*) FROM row_0").get == 4_500


def test_what_was_rolled_back_is_forgotten_and_its_ids_are_free(connection):
    rows = Rows(connection, 3, 1)
    mark = rows.mark()
    rows.add(place(0), Label(0, False), "gone")
    rows.forget(mark)
    rows.add(place(1), Label(0, False), "kept")
    rows.flush()
    assert connection.execute("SELECT id, n FROM row_0").fetchall() == [(1, 1)]


def test_whole_pairs_are_text_and_halves_are_replaced():
    assert storable("a\ud83d\ude00b") == "a\U0001f600b"
    assert storable("a\udc00b\ud800") == "a\ufffdb\ufffd"
    assert storable("plain ü") == "plain ü"


def test_lengths_are_read_as_sqlite_writes_them():
    assert [tokens(bytes(size)) for size in ([5], [0x82, 0x2C], [0x81, 0x80, 0x00])] == [
        5,
        300,
        16_384,
    ]


def test_counts_add_up():
    assert Counts(1, 2, 3, 4).plus(Counts(10, 20, 30, 40)) == Counts(11, 22, 33, 44)


@pytest.mark.parametrize("each", [400, 20])
def test_deleting_a_log_leaves_no_byte_of_its_words_once_it_is_purged(tmp_path, each):
    from memoryd.index import purging, table

    path = tmp_path / "x.sqlite3"
    db.create(path)
    connection = db.writer(path)
    migrations.apply(connection, "index", classes=3)
    rows = Rows(connection, 3, 1)
    with db.transaction(connection):
        for n in range(each):
            rows.add(
                Source(n % 2, n, 0, Kind.OWNER, None),
                Label(n % 3, False),
                f"quince{n % 2} pear{n}x",
            )
        rows.flush()
    with db.transaction(connection):
        table.delete(connection, 1, 3)
        merging = purging.bits(connection, purging.RESIDUE) & 0b111
        assert (merging != 0) is (each > 3 * 2 * purging.FEW)
    purging.finish(connection)
    assert purging.bits(connection, purging.RESIDUE) == 0
    assert purging.bits(connection, purging.PURGE) == 0
    connection.close()
    content = path.read_bytes()
    assert b"quince0" in content
    assert b"quince1" not in content
    assert [n for n in range(each) if b"pear%dx" % n in content] == list(range(0, each, 2))


@pytest.mark.parametrize("seed", range(4))
def test_no_copy_of_a_deleted_row_stays_in_what_pages_do_not_use(tmp_path, seed):
    """Where rows are deleted SQLite moves others, and `secure_delete` forgets where they stood before."""
    from memoryd.index import purging, table

    rng = random.Random(seed)
    path = tmp_path / "x.sqlite3"
    db.create(path)
    connection = db.writer(path)
    migrations.apply(connection, "index", classes=1)
    rows = Rows(connection, 1, 1)
    log = 0
    with db.transaction(connection):
        for n in range(6_000):
            log = rng.randrange(10) if n % rng.randint(3, 40) == 0 else log
            words = "word " * rng.randint(5, 400)
            rows.add(
                Source(log, n, 0, Kind.OWNER, None), Label(0, False), f"quince{log}p{n} {words}"
            )
        rows.flush()
    for gone in range(6):
        with db.transaction(connection):
            table.delete(connection, gone, 1)
        purging.finish(connection)
    connection.close()
    content = path.read_bytes()
    assert {number for number in range(10) if b"quince%dp" % number in content} == {6, 7, 8, 9}
