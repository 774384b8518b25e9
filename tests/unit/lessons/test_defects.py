"""Defects of that other system that no catalogue of its own lists (§13.5): what ours does instead.

Those that belong to observing, telling or the tools are held beside their like; `test_catalogue` sees that each
line has a test.
"""

import apsw
import pytest

from memoryd import db
from memoryd.lessons import retention, row, settings, store, tools
from memoryd.lessons.observe import observe_many
from tests.support.teaching import DAY, OWNER, TS2304, World

SECRETS = (
    "MY_API_KEY=q8Zk1w9XbT4", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "GITHUB_TOKEN=abcDEF123456", '"password": "hunter2hunter2"', "--token abc9d8e7f6",
    "api-key: Zx81kk2Lm0", "https://user:hunter2pw@host.example/x",
    "sk-abcdefghijklmnopqrstuvwxyz012345", "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "Bearer eyJhbGciOiJIUzI1.abcdef0123==", "Authorization: Bearer aaa11:bbb22",
)  # fmt: skip
TELLTALE = (
    "q8Zk1w9XbT4", "wJalrXUtnFEMI", "abcDEF123456", "hunter2", "abc9d8e7f6", "Zx81kk2Lm0", "hunter2pw",
    "abcdefghijklmnop", "0123456789abcdefghij", "eyJhbGciOiJIUzI1", "aaa11", "bbb22", "abcdef0123",
)  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
def test_u_06_no_form_of_a_secret_reaches_a_table_by_the_output_or_the_command(secret):
    world = World()
    world.fail("s1", text=f"error TS2304: x {secret}\nmore {secret}", command=f"deploy {secret}")
    held = " ".join(str(value) for rows in world.dump().values() for value in rows)
    assert not [word for word in TELLTALE if word in held]


def test_u_13_two_writers_that_count_the_same_lose_nothing(tmp_path):
    path = tmp_path / store.NAME
    one, two = store.opened(path), store.opened(path)
    for connection in (one, two, one):
        with db.transaction(connection):
            settings.count(connection, "causal_links")
    assert settings.counters(two)["causal_links"] == 3


def test_u_14_every_answer_derives_confidence_from_every_count():
    world = World()
    world.fail("s1")
    world.connection.execute(
        "UPDATE lesson SET evidence = 2, recurrence = 1, useful = 2, against = 1"
    )
    asked = tools.Question(query="TS2304", now=world.now, evidence=True)
    (hit,) = tools.query(world.connection, OWNER, asked)
    whole = tools.get(world.connection, OWNER, world.one("id"))
    assert hit["confidence"] == whole["confidence"] == 0.55


@pytest.mark.parametrize(
    ("query", "found"),
    [("fix src/main.ts", 1), ("MAIN.TS", 1), ("node-gyp", 0), ("падает сборка", 0), ("failing builds", 1)],
)  # fmt: skip
def test_u_15_a_question_is_cut_into_words_as_the_lessons_are(query, found):
    world = World()
    world.fail("s1")
    assert len(world.block("s2", query).shown) == found


def test_u_15_a_question_in_any_script_finds_its_lesson():
    world = World()
    world.fail("s1", text="error TS2304: сборка падает: неизвестное имя")
    assert len(world.block("s2", "почему падает сборка?").shown) == 1


def test_u_17_a_lesson_and_its_pattern_are_one_telling_with_one_row():
    world = World()
    world.fail("s1")
    world.edit("s1")
    world.succeed("s1")
    world.idle("s1")
    plan = world.block("s2")
    assert len(plan.shown) == 1
    assert [one.reason for one in plan.refused] == ["duplicate"]
    assert world.all("SELECT count(*) FROM injection") == [(1,)]


def test_u_28_failures_are_kept_whatever_the_setting_leaves_out():
    world = World()
    tools.config(world.connection, OWNER, "set", "tool_calls_dedup_enabled", "1")
    world.now -= world.now % 60_000
    world.fail("s1")
    world.block("s2")
    world.fail("s2")
    world.fail("s2")
    world.succeed("s2", command="ls")
    world.succeed("s2", command="ls")
    world.idle("s2")
    assert world.all("SELECT ok, count(*) FROM call GROUP BY ok") == [(0, 3), (1, 1)]
    assert world.one("recurrence") == 2
    assert settings.counters(world.connection)["tool_calls_deduped"] == 1


def test_u_28_a_repeated_success_that_is_left_out_still_proves_a_fix():
    world = World()
    tools.config(world.connection, OWNER, "set", "tool_calls_dedup_enabled", "1")
    world.now -= world.now % 60_000
    world.succeed("s1")
    world.fail("s1")
    world.succeed("s1")
    assert world.one("evidence") == 1


def test_u_29_each_failure_has_its_row_of_calls_however_it_is_reported():
    world = World()
    world.fail("s1", tool="mcp__x__deploy", args={"where": "prod"})
    assert world.all("SELECT tool, ok, error_type FROM call") == [
        ("mcp__x__deploy", 0, "typecheck")
    ]
    assert world.one("count(*)") == 1


def test_u_30_a_success_that_follows_at_once_finds_the_failure_stamped(monkeypatch):
    batch = []
    monkeypatch.setattr("tests.support.teaching.observe", lambda _, seen: batch.append(seen))
    world = World()
    world.fail("s1")
    world.succeed("s1")
    with db.transaction(world.connection):
        assert observe_many(world.connection, batch) == 2
    assert world.one("evidence") == 1


def test_a_batch_gives_the_rows_that_its_calls_give_one_by_one(monkeypatch):
    batch = []
    apart = World()
    scenario(apart)
    monkeypatch.setattr("tests.support.teaching.observe", lambda _, seen: batch.append(seen))
    together = World()
    scenario(together)
    with db.transaction(together.connection):
        observe_many(together.connection, batch)
        assert observe_many(together.connection, batch) == 0
    one, other = together.dump(), apart.dump()
    fixes = [sorted(row[1:] for row in found.pop("fix")) for found in (one, other)]
    assert one == other
    assert fixes[0] == fixes[1]


def scenario(world):
    for session in ("s1", "s2"):
        world.fail(session)
        world.fail(session, text="zsh: command not found: rg", command="rg x")
        world.succeed(session, command="ls")
        world.edit(session)
        world.succeed(session)
        world.succeed(session, command="rg x")
        world.fail(session)
        world.call(session, text="2 failed, 3 passed", command="pytest")
        world.fail(session, text="", command="false")


def test_u_34_calls_and_tellings_go_after_a_year_and_lessons_and_counters_stay():
    world = World()
    world.fail("s1")
    world.block("s2")
    world.fail("s2")
    world.succeed("s2")
    world.idle("s2", ended=True)
    world.later(364 * DAY).idle("s3")
    assert world.all("SELECT count(*) FROM call") == [(3,)]
    world.later(2 * DAY).idle("s3")
    for table in ("call", "injection", "charge", "session"):
        assert world.all(f"SELECT count(*) FROM {table}") == [(0,)], table
    assert world.all("SELECT count(*) FROM lesson") == [(2,)]
    assert world.all("SELECT count(*) FROM fix") == [(1,)]
    counted = settings.counters(world.connection)
    assert (counted["injections_total"], counted["injections_ineffective"]) == (1, 1)


def test_u_34_it_looks_once_a_day_and_each_row_goes_by_its_own_age():
    world = World()
    world.fail("s1")
    world.later(200 * DAY).fail("s1", command="make later")
    world.later(200 * DAY)
    assert retention.expire(world.connection, world.now) == 1
    assert world.all("SELECT summary FROM call") == [("make later",)]
    looked = world.now
    world.fail("s1", command="make old", text=TS2304)
    world.connection.execute("UPDATE call SET at = 1 WHERE summary = 'make old'")
    assert retention.expire(world.connection, looked + DAY - 1) == 0
    assert retention.expire(world.connection, looked + DAY) == 1


def test_u_37_a_second_idle_with_the_same_fix_refreshes_and_counts_nothing():
    world = World()
    world.fail("s1")
    world.edit("s1")
    world.succeed("s1")
    world.idle("s1")
    world.connection.execute("UPDATE lesson SET recurrence = 2 WHERE type = 'error'")
    before = settings.counters(world.connection)
    world.idle("s1")
    (pattern,) = row.select(world.connection, "type = 'pattern'")
    assert (pattern.recurrence, pattern.evidence) == (2, 1)
    assert settings.counters(world.connection) == before
    assert before["patterns_promoted_new"] == 1


def test_the_counters_of_outcomes_follow_the_rows_when_they_are_settled_again():
    world = World()
    world.fail("s1")
    world.block("s2")
    world.idle("s2")
    assert settings.counters(world.connection)["injections_inconclusive"] == 1
    world.fail("s2")
    world.idle("s2")
    world.idle("s2")
    counted = settings.counters(world.connection)
    assert (counted["injections_inconclusive"], counted["injections_ineffective"]) == (0, 1)


def test_a_database_holds_each_call_once():
    world = World()
    world.fail("s1", n=1)
    with pytest.raises(apsw.ConstraintError):
        world.connection.execute("INSERT INTO call SELECT * FROM call")
