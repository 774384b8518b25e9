"""Each reason for which a lesson is not told: that it can be reached, that it is counted, and who is told of it."""

import pytest

from memoryd.labels import Label
from memoryd.lessons import gate, ledger, row, settings, tools
from memoryd.lessons.plan import Ask
from memoryd.lessons.rank import ranked
from memoryd.lessons.reader import Reader
from memoryd.lessons.reflect import GENERIC, quality
from tests.support.teaching import LOW, OWNER, TS2304, World


def verdict(world, word, where="type = 'error'"):
    given = tools.Verdict(memory_id=world.one("id", where), verdict=word, now=world.now)
    tools.feedback(world.connection, OWNER, given)


def seen(world):
    world.fail("s1")
    world.block("s2")


def ignored(world):
    world.fail("s1")
    verdict(world, "ignore")


def stale(world):
    world.fail("s1")
    verdict(world, "outdated")


def recurrence(world):
    world.fail("s1")
    world.block("s2")
    # A lesson of the same error that this session has not seen: it is taught below the first.
    world.connection.execute("UPDATE lesson SET level = 1")
    world.connection.execute("UPDATE part SET level = 1")
    world.fail("s2")


def weak(world):
    world.fail("s1", text="something the build said")


def above_clearance(world):
    world.fail("s1", label=Label(3, False))


def untrusted(world):
    world.fail("s1", label=Label(0, True))


def other_project(world):
    world.fail("s1", project="/w/other")


def duplicate(world):
    world.fail("s1")
    world.succeed("s1")
    world.idle("s1")


CASES = {
    "seen_this_session": seen, "ignored": ignored, "stale": stale, "recurrence": recurrence, "weak": weak,
    "above_clearance": above_clearance, "untrusted": untrusted, "other_project": other_project,
    "duplicate": duplicate,
}  # fmt: skip
LIMITED = Reader(1, "include", ("*",), owner=True)


def test_there_is_a_case_for_every_reason():
    assert set(CASES) == set(gate.REASONS)


@pytest.mark.parametrize("reason", gate.REASONS)
def test_every_reason_can_be_reached_and_is_counted_under_its_name(reason):
    world = World()
    CASES[reason](world)
    before = tools.audit(world.connection, OWNER)["blocked"]
    planned = world.block("s2", reader=LIMITED)
    assert reason in {one.reason for one in planned.refused}
    after = tools.audit(world.connection, OWNER)["blocked"]
    name = "seen" if reason == "seen_this_session" else reason
    assert after[name] - before[name] >= 1
    if f"injections_blocked_{name}" in settings.METRICS:
        counted = settings.counters(world.connection)[f"injections_blocked_{name}"]
        assert counted == after[name]


def test_what_does_not_fit_is_counted_too():
    world = World()
    world.fail("s1")
    world.block("s2", cap=1)
    assert tools.audit(world.connection, OWNER)["blocked"]["budget"] == 1


@pytest.mark.parametrize("reason", ["above_clearance", "untrusted"])
def test_only_the_owner_is_told_that_there_is_something_hidden(reason):
    world = World()
    CASES[reason](world)
    asked = world.ask("s2")
    assert [one["reason"] for one in tools.trace(world.connection, LIMITED, asked)["blocked"]] == [
        reason
    ]
    low = Reader(0, "exclude")
    assert tools.trace(world.connection, low, asked)["blocked"] == []
    assert not any(tools.audit(world.connection, low)["blocked"].values())


def test_a_lesson_at_the_readers_own_level_is_told():
    world = World()
    world.fail("s1", label=Label(1, False))
    assert len(world.block("s2", reader=LIMITED).shown) == 1
    assert world.block("s3", reader=Reader(0)).text == ""


def test_the_first_reason_that_holds_is_the_one():
    lesson = row.Lesson(
        id="x", type="error", content="x", project="/w/other", fingerprint="f", origin="reflector",
        level=9, untrusted=True, ignored=True, status="stale", created_at=0, updated_at=0,
    )  # fmt: skip
    here = gate.Circumstances(LIMITED, "/w/app", frozenset({"x"}), frozenset({"f"}))
    assert list(gate._against(lesson, here)) == list(gate.REASONS[:-1])
    assert gate.verdict(lesson, here) == "seen_this_session"


def observed(**more):
    given = {"error_type": "runtime", "suggestion": GENERIC["runtime"], "code": None, **more}
    return row.Lesson(
        id="x", type=given.pop("type", "error"), content="bash fails with x: y\nSuggestion: z",
        fingerprint="f", origin=given.pop("origin", "reflector"), level=0, untrusted=False,
        created_at=0, updated_at=0, **given,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lesson", "strong", "actionable"),
    [
        (observed(type="pattern", origin="causal", error_type="unknown"), True, True),
        (observed(type="decision", origin="agent"), True, True),
        (observed(origin="agent", error_type="unknown"), True, True),  # prose decides nothing
        (observed(), True, False),
        (observed(error_type="unknown", suggestion=GENERIC["unknown"]), False, False),
        (observed(error_type="unknown", code="TS2304"), True, True),
        (observed(code="TS2304"), True, True),
        (observed(suggestion="import it"), True, True),
        (observed(error_type="unknown", suggestion="import it"), False, True),
    ],
)
def test_strength_and_actionability_are_read_from_columns(lesson, strong, actionable):
    worth = quality(lesson)
    assert (worth.strong, worth.actionable) == (strong, actionable)
    assert gate.low_confidence(lesson) is not (strong and actionable)


def test_with_the_gate_off_a_weak_lesson_is_told_and_marked():
    world = World()
    weak(world)
    world.fail("s1")
    tools.config(world.connection, OWNER, "set", "quality_gate_enabled", "0")
    text = world.block("s2").text
    assert text.count("[error] (low confidence)") == 1
    assert text.count("[error]") == 2


def test_the_gate_off_lifts_no_other_rule():
    world = World()
    stale(world)
    tools.config(world.connection, OWNER, "set", "quality_gate_enabled", "0")
    assert [one.reason for one in world.block("s2").refused] == ["stale"]


def many(world):
    for number in range(60):
        text = f"src/x.ts(1,1): error TS2304: Cannot find name {chr(97 + number % 26) * (2 + number // 26)}."
        world.fail("s1", text=text, command=f"npm run build-{number}")


@pytest.mark.parametrize(
    ("hook", "least", "most"), [("pre_prompt", 700, 900), ("compacting", 1_700, 2_000)]
)
def test_a_block_fills_its_budget_and_never_passes_it(hook, least, most):
    world = World()
    many(world)
    planned = world.block("s2", hook=hook)
    assert planned.cap == most
    assert least < planned.tokens <= most
    assert {one.reason for one in planned.refused} == {"budget"}


def test_the_ledger_is_written_with_the_block_or_not_at_all(monkeypatch):
    world = World()
    world.fail("s1")
    before = world.dump()

    def broken(*_):
        raise RuntimeError

    monkeypatch.setattr("memoryd.lessons.rank.bump", broken)
    with pytest.raises(RuntimeError):
        world.block("s2")
    assert world.dump() == before
    monkeypatch.undo()
    planned = world.block("s2")
    held = world.all("SELECT lesson, session, hook, tokens, at, outcome FROM injection")
    (shown,) = planned.shown
    assert held == [(shown.lesson.id, "s2", "pre_prompt", shown.tokens, world.now, "unmeasured")]


def test_deterministic_retrieval_freezes_age_and_bumps():
    world = World()
    world.fail("s1")
    ask = Ask(query="build fails", session="s2", project="/w/app", now=world.now)
    tools.config(world.connection, OWNER, "set", "deterministic_retrieval", "1")
    ledger.block(world.connection, OWNER, ask)
    assert world.one("relevance") == 0.5


@pytest.mark.parametrize("snippet", ["0", "1"])
def test_a_snippet_is_two_lines_and_the_fix(snippet):
    world = World()
    world.fail("s1", text=TS2304)
    world.edit("s1")
    world.succeed("s1")
    world.idle("s1")
    tools.config(world.connection, OWNER, "set", "lesson_snippet_injection", snippet)
    (shown,) = world.block("s2").shown
    assert shown.lesson.type == "pattern"
    assert ("Original:" in shown.text) is (snippet == "0")
    assert shown.text.count("Fixed by:") == 1


def test_a_note_of_somebody_is_no_observed_failure_whatever_it_says():
    world = World()
    given = tools.Saved(
        type="context", content="bash fails with unknown: x\nSuggestion: read the output again",
        label=LOW, now=world.now, project="/w/app",
    )  # fmt: skip
    tools.save(world.connection, OWNER, given)
    assert len(world.block("s2", "bash fails").shown) == 1


@pytest.mark.parametrize(("days", "factor"), [(0, 1.0), (14, 0.846), (365, 0.7)])
def test_age_takes_three_tenths_of_a_weight_at_most(days, factor):
    lesson = observed(code="TS2304")
    assert ranked(lesson, 1.0, days * 86_400_000) == pytest.approx(2 * factor, abs=0.001)
    assert ranked(lesson, 1.0, None) == 2.0


@pytest.mark.parametrize(
    ("origin", "boost"),
    [("reflector", 2), ("causal", 2), ("pattern", 1.5), ("agent", 1), ("imported", 1)],
)
def test_what_was_observed_counts_more(origin, boost):
    assert ranked(observed(origin=origin), 1.0, None) == boost
