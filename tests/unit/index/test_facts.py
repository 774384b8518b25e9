"""What is known of rows in memory is true of the index, in every snapshot, and of no class that nobody asked about."""

from pathlib import Path

import pytest

from memoryd import db
from memoryd.index import facts, purging, schema
from memoryd.index.facts import Facts
from memoryd.records import Kind
from tests.support.shelf import CLASSES, Line, add, fill

LINES = [
    Line("one two three"),
    Line("four", untrusted=True),
    Line("five six", untrusted=True, kind=Kind.ASSISTANT),
    Line("seven eight", level=2),
]


def opened(path: Path):
    connection = db.reader(path)
    connection.execute("BEGIN")
    return connection


def told(known: Facts) -> list[tuple[int, int]]:
    return list(zip(known.lengths[1:], known.trust, strict=True))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "i.sqlite3", LINES)
    return tmp_path / "i.sqlite3"


def test_lengths_and_trust_are_those_of_the_rows_from_the_second_question_on(path):
    known, connection = Facts(), opened(path)
    assert not known.ready(connection, (0, 2))
    assert known.ready(connection, (0, 2))
    assert told(known) == [
        (3, facts.TRUSTED),
        (1, facts.OWNERS),
        (2, facts.OTHERS),
        (2, facts.TRUSTED),
    ]


def test_no_row_of_a_class_that_was_not_asked_about_is_read(path):
    known, connection = Facts(), opened(path)
    known.ready(connection, (0,))
    assert known.ready(connection, (0,))
    assert told(known)[3:] == []
    assert known.ready(connection, (0, 2))
    assert told(known)[3:] == [(2, facts.TRUSTED)]


def test_few_rows_are_read_a_question(path, monkeypatch):
    monkeypatch.setattr(facts, "A_TIME", 2)
    known, connection = Facts(), opened(path)
    assert [known.ready(connection, (0, 2)) for _ in range(4)] == [False, False, False, True]


def test_an_index_of_too_many_ids_is_not_kept(path, monkeypatch):
    monkeypatch.setattr(facts, "MOST_IDS", 2)
    known, connection = Facts(), opened(path)
    assert not any(known.ready(connection, (0, 2)) for _ in range(4))


def test_a_row_that_is_added_is_known_with_the_snapshot_that_has_it(path):
    known, connection = Facts(), opened(path)
    known.ready(connection, (0, 2))
    known.ready(connection, (0, 2))
    writer = db.writer(path)
    add(writer, [Line("nine ten eleven twelve", level=2)])
    known.ready(connection, (0, 2))
    assert len(known.trust) == 4
    connection.execute("ROLLBACK")
    assert known.ready(connection, (0, 2))
    assert told(known)[4] == (4, facts.TRUSTED)


@pytest.mark.parametrize("where", ["id = 4", "id >= 1"])
def test_an_id_that_was_deleted_is_not_given_again(path, where):
    writer = db.writer(path)
    for level in (2, 0):
        with writer:
            purging.delete(writer, level, where, {})
    assert schema.next_id(writer, len(CLASSES)) == 5
    with writer:
        purging.delete(writer, 0, "id = 1", {})
    assert schema.next_id(writer, len(CLASSES)) == 5


def test_readers_of_one_index_share_what_is_known_and_others_do_not():
    one = facts.facts(("g", "a"))
    assert facts.facts(("g", "a")) is one
    assert facts.facts(("g", "b")) is not one
