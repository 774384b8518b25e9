"""Many rows a statement, and the words of many lessons at once: what is written one at a time."""

import apsw
import pytest

from memoryd import db
from memoryd.lessons import rows, store, words

TEXTS = (
    "Bash `make` fails with test: failed, failing, fails\nSuggestion: read the output again",
    "",
    "the of and to",
    "the the same same\nsame line",
    "one\0two é e\u0301 Straße \ud800 x",
    "a\n",
    *(f"lesson {number} of many says error{number % 7}" for number in range(80)),
)
PLACES = (("p", 0, 0), ("p", 2, 1), ("", 0, 0))


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 71])
def test_any_number_of_rows_is_written_in_order(count):
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE told(a, b, c)")
    told = [(number, f"text {number}", None) for number in range(count)]
    rows.insert(connection, "INSERT INTO told", 3, [value for row in told for value in row])
    assert list(connection.execute("SELECT a, b, c FROM told ORDER BY rowid")) == told


@pytest.mark.parametrize("count", [4, 40])
def test_a_row_that_is_there_twice_is_refused_alone_and_among_many(count):
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE told(a PRIMARY KEY)")
    with pytest.raises(apsw.ConstraintError):
        rows.insert(
            connection, "INSERT INTO told", 1, [number % (count - 1) for number in range(count)]
        )


def test_the_words_of_many_lessons_are_those_of_each():
    alone, together = store.memory(), store.memory()
    lessons = [(number, text, PLACES[number % len(PLACES)]) for number, text in enumerate(TEXTS, 1)]
    with db.transaction(alone), db.transaction(together):
        for number, text, place in lessons:
            words.put(alone, number, words.counted(alone, text), place)
        lengths = words.put_many(together, lessons)
    assert lengths == [max(1, len(words.tokens(alone, text))) for text in TEXTS]
    for table in ("part", "posting"):
        asked = f"SELECT * FROM {table} ORDER BY 1, 2, 3"
        assert list(together.execute(asked)) == list(alone.execute(asked))
    held = list(together.execute("SELECT count, words FROM posting WHERE term = 'fail'"))
    assert held == [(4, 13)]
    assert list(together.execute("SELECT 1 FROM posting WHERE term IN ('the', 'of')")) == []
