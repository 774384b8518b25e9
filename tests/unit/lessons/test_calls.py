"""Calls as they lie: failures as rows, what went well a batch together; the view shows all, and takes all."""

import apsw
import pytest

from memoryd import migrations
from memoryd.labels import Label
from memoryd.lessons import calls, store
from memoryd.lessons.pairing import OUTCOMES, Seen

DAY = calls.DAY
LOW = Label(0, False)
COLUMNS = "log, n, block, session, project, tool, summary, fingerprint, ok, at, level, untrusted"


def seen(
    n: int, *, at: int = 0, ok: bool = True, label: Label = LOW, log: str = "a", session: str = "s"
):
    return Seen(
        log, n, 0, session, "/w/app", "bash", f"make {n}", f"{n:016x}", at, OUTCOMES[ok], "", label
    )


def shown(connection: apsw.Connection) -> list[tuple[object, ...]]:
    return sorted(connection.execute(f"SELECT {COLUMNS} FROM call"))


def row(one: Seen) -> tuple[object, ...]:
    ok = int(one.outcome.ok is True)
    return (one.log, one.n, 0, one.session, "/w/app", "bash", one.summary, one.fingerprint, ok, one.at,
            one.label.level, int(one.label.untrusted))  # fmt: skip


@pytest.fixture
def connection() -> apsw.Connection:
    return store.memory()


def test_what_went_well_lies_together_and_is_shown_apart(connection):
    batch = [seen(1, at=5), seen(2, at=9, ok=False), seen(3, at=7)]
    calls.put(connection, batch, {1: ("e" * 16, "test")})
    assert shown(connection) == [row(one) for one in batch]
    assert list(connection.execute("SELECT n, last, at, until, level FROM well")) == [
        (1, 3, 5, 7, 0)
    ]
    assert list(connection.execute("SELECT n, error, error_type FROM failed")) == [
        (2, "e" * 16, "test")
    ]


@pytest.mark.parametrize("ok", [True, False])
def test_a_session_is_known_by_any_call_of_it(connection, ok):
    assert not calls.of_session(connection, "s")
    one = seen(1, ok=ok, session="s")
    calls.put(connection, [one], {} if ok else {0: ("e" * 16, "test")})
    assert calls.of_session(connection, "s")
    assert not calls.of_session(connection, "t")


@pytest.mark.parametrize(
    "other",
    [
        seen(2, label=Label(1, False)),
        seen(2, label=Label(0, True)),
        seen(2, session="t"),
        seen(2, log="b"),
        seen(2, at=DAY + 1),
    ],
)
def test_a_batch_is_of_one_log_one_session_one_label_and_one_day(connection, other):
    calls.put(connection, [seen(1), other], {})
    assert shown(connection) == sorted([row(seen(1)), row(other)])
    assert connection.execute("SELECT count(*) FROM well").get == 2


def test_a_day_to_the_millisecond_is_one_batch(connection):
    calls.put(connection, [seen(1, at=DAY), seen(2, at=0)], {})
    assert list(connection.execute("SELECT at, until FROM well")) == [(0, DAY)]


def test_known_tells_of_both_kinds_from_a_record_on(connection):
    calls.put(connection, [seen(1), seen(2, ok=False), seen(3)], {1: ("e", "test")})
    calls.put(connection, [seen(9, log="b")], {})
    assert calls.known(connection, {"a": 2}) == {("a", 2, 0), ("a", 3, 0)}
    assert calls.known(connection, {"a": 3, "b": 9}) == {("a", 3, 0), ("b", 9, 0)}
    assert calls.known(connection, {"a": 4, "c": 0}) == set()
    assert calls.at(connection, "a", 2, 0) == f"{2:016x}"
    assert calls.at(connection, "a", 3, 0) == f"{3:016x}"
    assert calls.at(connection, "a", 3, 1) is None


def test_the_view_takes_changes_of_both_kinds(connection):
    calls.put(connection, [seen(1, at=3), seen(2, at=4), seen(3, ok=False)], {2: ("e", "test")})
    connection.execute("UPDATE call SET level = 2 WHERE n IN (2, 3)")
    assert [(r[1], r[8], r[10]) for r in shown(connection)] == [(1, 1, 0), (2, 1, 2), (3, 0, 2)]
    assert connection.execute("SELECT error FROM failed").get == "e"
    connection.execute("DELETE FROM call WHERE n = 1")
    connection.execute("DELETE FROM call WHERE n = 3")
    assert [r[1] for r in shown(connection)] == [2]
    assert connection.execute("SELECT count(*) FROM well").get == 1


@pytest.mark.parametrize("n", [1, 2])
def test_a_call_is_there_once_however_it_went(connection, n):
    calls.put(connection, [seen(1), seen(2, ok=False)], {1: ("e", "test")})
    with pytest.raises(apsw.ConstraintError):
        connection.execute("INSERT INTO call SELECT * FROM call WHERE n = ?", (n,))


def test_trim_goes_by_each_calls_own_age_and_leaves_what_was_imported(connection):
    connection.execute("INSERT INTO session(id, project, last_at) VALUES ('s', '/w/app', 0)")
    batch = [seen(1, at=10), seen(2, at=20), seen(3, at=10, ok=False), seen(4, at=20, ok=False)]
    calls.put(connection, batch, {2: ("e", "test"), 3: ("e", "test")})
    calls.put(connection, [seen(5, at=10, session="imported")], {})
    assert calls.trim(connection, 20) == 2
    assert [r[1] for r in shown(connection)] == [2, 4, 5]
    assert connection.execute("SELECT prints FROM well WHERE session = 's'").get == f"{2:016x}"
    assert calls.trim(connection, 21) == 2
    assert [r[1] for r in shown(connection)] == [5]


def test_of_a_deleted_call_no_fingerprint_stays(connection):
    batch = [seen(1), seen(2), seen(3, ok=False)]
    calls.put(connection, [*batch, seen(9, log="b")], {2: ("e", "test")})
    calls.delete(connection, [("a", 1, 0), ("a", 3, 0)])
    assert [(r[0], r[1]) for r in shown(connection)] == [("a", 2), ("b", 9)]
    assert list(connection.execute("SELECT log, prints FROM well ORDER BY log")) == [
        ("a", f"{2:016x}"),
        ("b", f"{9:016x}"),
    ]


def test_a_batch_is_taken_apart_once_however_much_of_it_goes(connection):
    batch = [seen(n) for n in range(200)]
    calls.put(connection, batch, {})
    before = connection.total_changes()
    calls.delete(connection, [(one.log, one.n, one.block) for one in batch[:-1]])
    assert connection.total_changes() - before == 1
    assert shown(connection) == [row(batch[-1])]
    calls.delete(connection, [("a", 199, 0), ("a", 200, 0)])
    assert connection.execute("SELECT count(*) FROM well").get == 0


def test_calls_of_an_older_database_come_over(tmp_path):
    connection = apsw.Connection(str(tmp_path / "old.sqlite3"))
    for step in migrations.steps("lessons")[:9]:
        connection.execute(step.sql)
    old = [seen(1, at=3), seen(2, at=4, ok=False), seen(300, at=9), seen(301, label=Label(2, True))]
    connection.executemany(
        f"INSERT INTO call({COLUMNS}, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*row(one), None if one.outcome.ok else "e") for one in old],
    )
    connection.execute(migrations.steps("lessons")[9].sql)
    assert shown(connection) == [row(one) for one in old]
    assert connection.execute("SELECT error FROM call WHERE ok = 0").get == "e"
