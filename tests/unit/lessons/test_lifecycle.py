"""What an idle does beside settling: relevance, patterns, habits, the archive; each by its rule."""

import pytest

from memoryd.labels import Label
from memoryd.lessons import archive, promote, row, settings, tools
from memoryd.lessons.confidence import confidence
from tests.support.teaching import DAY, HOUR, LOW, OWNER, TS2304, World


def put(world, key, value):
    world.connection.execute("UPDATE setting SET value = ? WHERE key = ?", (value, key))


def stale(world, count=1):
    for number in range(count):
        world.fail("s1", text=f"error TS23{number + 10}: x", command=f"make {number}")
    world.connection.execute(
        "UPDATE lesson SET status = 'stale', staled_at = ? WHERE type = 'error'", (world.now,)
    )


TABLE = (
    (0.50, 0.35, 0.20, 0.05, 0.05, 0.05),
    (0.60, 0.45, 0.30, 0.15, 0.05, 0.05),
    (0.70, 0.55, 0.40, 0.25, 0.10, 0.05),
    (0.80, 0.65, 0.50, 0.35, 0.20, 0.05),
    (0.90, 0.75, 0.60, 0.45, 0.30, 0.15),
    (0.95, 0.85, 0.70, 0.55, 0.40, 0.25),
)


@pytest.mark.parametrize("evidence", range(6))
@pytest.mark.parametrize("recurrence", range(6))
def test_confidence_follows_its_table(evidence, recurrence):
    assert confidence(evidence, recurrence, 0, 0) == TABLE[evidence][recurrence]


@pytest.mark.parametrize(
    ("given", "told"),
    [((0, 0, 4, 0), 0.7), ((0, 0, 0, 3), 0.2), ((0, 0, 0, 5), 0.05), ((2, 0, 0, 1), 0.6)],
)
def test_opinions_move_confidence_by_five_and_ten_hundredths(given, told):
    assert confidence(*given) == told


def test_a_lesson_whose_error_never_came_back_gains_a_twentieth_at_each_idle_after_news():
    world = World()
    world.fail("s1")
    world.idle("s1")
    assert world.one("relevance") == 0.55
    world.idle("s1")
    assert world.one("relevance") == 0.55
    world.connection.execute("UPDATE lesson SET relevance = 0.98")
    world.edit("s1")
    world.idle("s1")
    assert world.one("relevance") == 1.0


def test_a_lesson_whose_error_came_back_loses_a_twentieth_once():
    world = World()
    world.fail("s1")
    world.fail("s2")
    for _ in range(2):
        world.idle("s2")
    assert world.one("relevance") == 0.45
    assert world.one("verified_at") > world.one("created_at")
    world.connection.execute("UPDATE lesson SET relevance = 0.02")
    world.fail("s3")
    world.idle("s3")
    assert world.one("relevance") == 0.0


def test_the_session_that_taught_a_lesson_is_not_charged_for_it_untold():
    world = World()
    world.fail("s1")
    world.fail("s1")
    world.idle("s1")
    assert (world.one("recurrence"), world.all("SELECT count(*) FROM charge")) == (0, [(0,)])


def test_where_it_was_not_told_a_session_is_charged_once_and_where_it_was_for_each_failure():
    world = World()
    world.fail("s1")
    for _ in range(2):
        world.fail("s2")
    world.idle("s2")
    assert world.one("recurrence") == 1
    world.block("s3")
    for _ in range(2):
        world.fail("s3")
    world.idle("s3")
    assert world.one("recurrence") == 3


def test_a_hidden_failure_makes_no_fix_that_a_lower_reader_sees():
    world = World()
    world.fail("s1")
    world.succeed("s1")
    world.fail("s1", label=Label(2, False), log="hidden")
    world.succeed("s1")
    assert world.all("SELECT level FROM fix ORDER BY row") == [(0,), (2,)]
    assert world.one("evidence", "type = 'error' AND level = 0") == 1


def test_no_step_above_a_fixs_label_is_told_with_it():
    world = World()
    world.fail("s1")
    world.call("s1", command="make hush", ok=True, label=Label(2, False), log="hidden")
    world.succeed("s1")
    assert "hush" not in world.one("fix_args")


def test_notes_of_agents_are_moved_by_no_idle():
    world = World()
    given = tools.Saved(type="rule", content="run it", label=LOW, now=world.now, session="s1")
    tools.save(world.connection, OWNER, given)
    world.fail("s1")
    world.idle("s1")
    assert world.one("relevance", "origin = 'agent'") == 0.5


def test_one_proven_fix_makes_a_pattern_that_carries_the_lessons_counts():
    world = World()
    world.fail("s1")
    world.edit("s1")
    world.succeed("s1")
    world.idle("s1")
    (made,) = row.select(world.connection, "type = 'pattern'")
    assert (made.origin, made.evidence, made.recurrence, made.status) == ("causal", 1, 0, "active")
    assert made.fingerprint == world.one("fingerprint")
    lines = made.content.splitlines()
    assert lines[0].startswith("Causal pattern: bash `npm run build` fails with TS2304")
    assert lines[1] == "Fixed by: edit `src/main.ts`; bash `npm run build` went well"
    assert lines[2] == "Evidence: 1 proven fixes, confidence 0.60"
    assert lines[3].startswith("Original: ")
    assert settings.counters(world.connection)["patterns_promoted_new"] == 1
    assert settings.counters(world.connection)["patterns_causal"] == 0


def test_a_fix_below_a_pattern_refreshes_it_too_for_its_readers_see_both():
    world = World()
    world.fail("s1")
    world.succeed("s1", label=Label(1, True))
    world.idle("s1")
    world.later(HOUR).fail("s2")
    world.succeed("s2")
    world.idle("s2")
    found = world.all(
        "SELECT level, untrusted, evidence FROM lesson WHERE type = 'pattern' ORDER BY level"
    )
    assert found == [(0, 0, 1), (1, 1, 2)]


def test_nothing_is_promoted_without_a_fix():
    world = World()
    world.fail("s1")
    world.edit("s1")
    world.idle("s1")
    assert row.select(world.connection, "type = 'pattern'") == []


def habit(world, sessions, middle=None):
    for number in range(sessions):
        name = f"h{number}"
        world.edit(name)
        if middle == "fails":
            world.fail(name, text="error TS2304: x", command="tsc")
        else:
            world.succeed(name, command="tsc")
        world.call(name, tool="Read", args={"file_path": "a"}, ok=True)


def mined(world):
    found = world.all("SELECT content FROM lesson WHERE origin = 'pattern' ORDER BY content")
    return [content.splitlines()[0] for (content,) in found]


def test_habits_of_five_sessions_are_mined_when_the_setting_says_so_and_once():
    world = World()
    habit(world, 5)
    world.idle("h0")
    assert mined(world) == []
    put(world, "patternminer_enabled", "1")
    for _ in range(2):
        world.idle("h0")
    assert mined(world) == ["Tool pattern: bash → Read", "Tool pattern: edit → bash"]
    assert settings.counters(world.connection)["patterns_mined"] == 2


def test_habits_of_four_sessions_are_not_mined():
    world = World()
    put(world, "patternminer_enabled", "1")
    habit(world, 4)
    assert promote.mine(world.connection, "/w/app", world.now) == 0


def test_three_calls_in_a_row_are_a_habit_where_the_middle_one_fails():
    world = World()
    put(world, "patternminer_enabled", "1")
    habit(world, 5, "fails")
    assert promote.mine(world.connection, "/w/app", world.now) == 3
    assert "Tool pattern: edit → bash (fails) → Read" in mined(world)


@pytest.mark.parametrize(
    ("days", "after", "gone"),
    [
        ("30", 31, 1), ("30", 29, 0), ("0.5", 1, 1), ("0.00001", 0.001, 1), ("0", 999, 0), ("-1", 999, 0),
        ("junk", 31, 1), ("junk", 29, 0),
    ],
)  # fmt: skip
def test_what_is_stale_goes_into_the_archive_after_its_days_by_the_given_clock(days, after, gone):
    world = World()
    stale(world)
    put(world, "archive_after_days", days)
    assert archive.archive(world.connection, world.now + int(after * DAY)) == gone
    assert world.one("status") == ("archived" if gone else "stale")


def test_the_archive_grows_by_the_batch_and_a_second_run_takes_none():
    world = World()
    stale(world, 3)
    later = world.now + 40 * DAY
    assert archive.archive(world.connection, later) == 3
    assert archive.archive(world.connection, later) == 0
    assert settings.counters(world.connection)["memories_archived"] == 3
    assert world.all("SELECT count(*) FROM lesson WHERE archived_at = ?", later) == [(3,)]


def test_patterns_and_active_lessons_are_never_archived():
    world = World()
    world.fail("s1")
    world.edit("s1")
    world.succeed("s1")
    world.idle("s1")
    world.connection.execute(
        "UPDATE lesson SET status = 'stale', staled_at = 1 WHERE type = 'pattern'"
    )
    assert archive.archive(world.connection, world.now + 999 * DAY) == 0


def test_a_lesson_called_outdated_is_replaced_when_its_error_comes_back():
    world = World()
    world.fail("s1")
    first = world.one("id")
    given = tools.Verdict(memory_id=first, verdict="outdated", now=world.now)
    tools.feedback(world.connection, OWNER, given)
    world.fail("s2", text=TS2304)
    old = tools.get(world.connection, OWNER, first)
    assert old["status"] == "superseded"
    fresh = tools.get(world.connection, OWNER, old["superseded_by"])
    assert (fresh["status"], fresh["recurrence_count"]) == ("active", 0)


def test_a_chain_of_rules_is_walked_from_the_oldest_to_the_newest():
    world = World()
    for word in ("Run the linter", "run  the linter", "RUN THE LINTER"):
        world.now += 1_000
        given = tools.Saved(type="rule", content=word, label=LOW, now=world.now)
        tools.save(world.connection, OWNER, given)
    (at,) = world.all("SELECT id FROM lesson ORDER BY created_at LIMIT 1")[0]
    walked = []
    while at:
        one = tools.get(world.connection, OWNER, at)
        walked.append(one["content"])
        at = one["superseded_by"]
    assert walked == ["Run the linter", "run  the linter", "RUN THE LINTER"]


def test_rates_are_null_where_there_is_nothing_to_divide_by():
    rates = World().rates()
    assert (rates.precision_rate, rates.coverage_rate) == (None, None)


def test_rates_come_from_their_counts():
    world = World()
    for outcome, count in (("effective", 3), ("ineffective", 1), ("inconclusive", 96)):
        for _ in range(count):
            world.connection.execute(
                "INSERT INTO injection(lesson, fingerprint, project, session, hook, tokens, at, outcome, level, "
                "untrusted) VALUES ('l', 'f', '/w', 's', 'pull', 1, 1, ?, 0, 0)", (outcome,))  # fmt: skip
    rates = world.rates()
    assert (rates.precision_rate, rates.coverage_rate) == (0.75, 0.04)


def test_a_visible_failure_is_mended_for_its_readers_though_a_hidden_one_came_after_it():
    world = World()
    world.fail("s1")
    world.fail("s1", label=Label(2, False), log="hidden")
    world.succeed("s1")
    assert world.one("evidence", "type = 'error' AND level = 0") == 1


def test_a_fix_above_a_lessons_readers_is_no_evidence_of_it():
    world = World()
    world.fail("s1")
    world.succeed("s1", label=Label(2, False))
    assert world.one("evidence") == 0


def test_a_fix_is_taken_back_when_an_earlier_success_is_read_later():
    world = World()
    world.later(60_000).succeed("s2")
    world.later(-50_000).fail("s1")
    world.succeed("s1")
    assert world.all("SELECT session FROM fix") == [("s1",)]
    assert world.one("evidence") == 1
