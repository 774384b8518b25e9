"""Sessions that may come to rest: each in its time, and what that costs with very many of them."""

import apsw
import pytest

from memoryd.serve.quiet import Quiet, Rested

IDLE = 900


@pytest.fixture
def table():
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE TABLE session(id TEXT PRIMARY KEY, last_at INTEGER, idle_at INTEGER)"
    )
    return connection


def news(table, session, last):
    sql = "INSERT INTO session VALUES (?, ?, NULL) ON CONFLICT DO UPDATE SET last_at = excluded.last_at"
    table.execute(sql, (session, last))


def rest(table, found):
    for session, last in found:
        table.execute("UPDATE session SET idle_at = ? WHERE id = ?", (last + IDLE, session))


def test_the_earliest_comes_first_and_nobody_before_its_time(table):
    for session, last in (("late", 30), ("", 1), ("early", 10), ("middle", 20)):
        news(table, session, last)
    quiet = Quiet(table, IDLE)
    assert quiet.ripe(9 + IDLE, 5) == []
    assert quiet.due() == 10 + IDLE
    found = quiet.ripe(20 + IDLE, 5)
    assert found == [Rested("early", 10), Rested("middle", 20)]
    rest(table, found)
    assert quiet.due() == 30 + IDLE


def test_what_is_heard_later_puts_it_off(table):
    news(table, "a", 10)
    quiet = Quiet(table, IDLE)
    assert quiet.due() == 10 + IDLE
    quiet.written("a", 50)
    assert (quiet.ripe(49 + IDLE, 5), quiet.due()) == ([], 50 + IDLE)
    news(table, "a", 60)
    quiet.touched({"a"})
    assert quiet.ripe(59 + IDLE, 5) == []
    assert quiet.ripe(60 + IDLE, 5) == [Rested("a", 60)]


def test_news_after_a_rest_and_what_others_write_are_seen(table):
    news(table, "a", 10)
    quiet = Quiet(table, IDLE)
    rest(table, quiet.ripe(10 + IDLE, 5))
    assert quiet.due() is None
    news(table, "a", 2_000)
    quiet.touched({"a"})
    assert quiet.due() == 2_000 + IDLE
    news(table, "b", 5)
    assert quiet.due() == 2_000 + IDLE
    quiet.unsure()
    assert quiet.ripe(5 + IDLE, 5) == [Rested("b", 5)]


def test_a_session_that_is_gone_or_has_been_let_rest_is_passed_over(table):
    for session in "abc":
        news(table, session, 10)
    quiet = Quiet(table, IDLE)
    assert quiet.due() == 10 + IDLE
    table.execute("DELETE FROM session WHERE id = 'a'")
    table.execute("UPDATE session SET idle_at = 10 WHERE id = 'b'")
    assert quiet.ripe(10 + IDLE, 5) == [Rested("c", 10)]


def test_ten_thousand_come_to_rest_with_a_few_look_ups_each(table):
    number = 10_000
    with table:
        for n in range(number):
            news(table, f"s{n}", n)
    quiet, asked = Quiet(table, IDLE), []
    table.trace_v2(apsw.SQLITE_TRACE_STMT, lambda told: asked.append(told["sql"]))
    rested = 0
    while found := quiet.ripe(number + IDLE, 20):
        rested += len(found)
    table.trace_v2(0, None)
    assert rested == number
    assert len([sql for sql in asked if "WHERE id = ?" in sql]) <= 4 * number
    assert len([sql for sql in asked if "WHERE id = ?" not in sql]) == 1
