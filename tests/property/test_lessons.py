"""What must hold for lessons whatever happened before: trace predicts, hidden rows move nothing, order is all one."""

import random
import re
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memoryd import db
from memoryd.errors import MemorydError
from memoryd.labels import Label
from memoryd.lessons import ledger, proposals, retrospective, settlement, tools
from memoryd.lessons.confidence import confidence
from memoryd.lessons.failure import Outcome, describe
from memoryd.lessons.fingerprint import normal
from memoryd.lessons.observe import observe, observe_many
from memoryd.lessons.pairing import Seen
from memoryd.lessons.reader import Reader
from tests.support.teaching import HOUR, LOW, OWNER, TS2304, World

ERRORS = (
    TS2304,
    "tests/a.py:7: ModuleNotFoundError: No module named 'httpx'",
    "zsh: command not found: rg",
    "something the tool said",
    "Error: listen EADDRINUSE: address already in use :::3000",
)
COMMANDS = ("npm run build", "pytest -q", "rg x", "make", "node serve.js")
QUERIES = (
    "the build fails again",
    "pytest fails",
    "rg command not found",
    "node port in use",
    "hm",
)
STATES = 1_000


def live(world: World, chance: random.Random, steps: int, label: Label = LOW) -> None:
    """Let a few sessions fail, mend, ask and idle."""
    for _ in range(steps):
        session, at = f"s{chance.randrange(4)}", chance.randrange(len(ERRORS))
        match chance.randrange(7):
            case 0 | 1 | 2:
                world.fail(session, text=ERRORS[at], command=COMMANDS[at], label=label)
            case 3:
                world.edit(session, label=label)
                world.succeed(session, command=COMMANDS[at], label=label)
            case 4:
                world.block(session, chance.choice(QUERIES))
            case 5:
                world.idle(session)
            case _:
                for (name,) in world.all("SELECT id FROM lesson ORDER BY row LIMIT 1"):
                    word = chance.choice(("useful", "wrong", "ignore"))
                    told = tools.Verdict(memory_id=name, verdict=word, now=world.now)
                    tools.feedback(world.connection, OWNER, told)


@pytest.mark.parametrize(
    "states", [80, pytest.param(STATES, marks=pytest.mark.slow)], ids=["some", "a-thousand"]
)
def test_trace_predicts_exactly_the_next_block(states):
    chance = random.Random(20261130)
    world, seen = World(), 0
    for number in range(states):
        if number % 40 == 0:
            world = World()
            live(world, chance, 6)
        live(world, chance, 1)
        reader = chance.choice((OWNER, Reader(0), Reader(1, "exclude")))
        asked = world.ask(
            f"s{chance.randrange(6)}", chance.choice(QUERIES), cap=chance.choice((None, 60, 200))
        )
        before = world.connection.total_changes()
        told = tools.trace(world.connection, reader, asked)
        assert tools.trace(world.connection, reader, asked) == told
        assert world.connection.total_changes() == before
        planned = ledger.block(world.connection, reader, asked)
        assert [one.lesson.id for one in planned.shown] == [one["id"] for one in told["admitted"]]
        assert (planned.text, planned.tokens) == (told["text"], told["total_tokens"])
        assert planned.tokens <= planned.cap or not planned.shown
        seen += len(planned.shown)
    assert seen * 10 > states


@pytest.mark.parametrize("seed", range(12))
def test_sessions_that_come_to_rest_together_do_what_they_do_one_by_one(seed):
    alone, together = World(), World()
    told = [f"s{number}" for number in range(4)] + ["s\0a", "s\0b"]
    for world in (alone, together):
        chance = random.Random(seed)
        world.connection.execute("UPDATE setting SET value = '1' WHERE key LIKE 'patternminer%'")
        world.connection.execute("UPDATE setting SET value = '0.01' WHERE key LIKE 'archive%'")
        live(world, chance, 60, chance.choice((LOW, Label(1, False))))
        world.fail("s\0a", text=ERRORS[seed % 5], command="make")
        world.fail("s\0b", text=f"zsh: command not found: tool{seed}", command="make")
        live(world, chance, 20)
        world.fail("s1", text=ERRORS[0])
    named = (
        "SELECT max(relevance) FROM lesson WHERE session = 's' || char(0) || 'b' AND type = 'error'"
    )
    before = together.connection.execute(named).get
    rests = [(session, alone.now + HOUR * n) for n, session in enumerate(told)]
    with db.transaction(alone.connection), db.transaction(together.connection):
        for session, at in rests:
            settlement.rest(alone.connection, session, at)
        settlement.rest_many(together.connection, rests)
        settlement.rest_many(together.connection, [])
    assert together.dump() == alone.dump()
    assert together.all("SELECT id FROM session WHERE idle_at IS NULL") == []
    assert together.connection.execute(named).get == pytest.approx(before + 0.05)


def everything(world: World, reader: Reader) -> list[Any]:
    """What a reader is told by every tool that only reads, and by one that writes."""
    connection, now = world.connection, world.now
    lessons = [
        name
        for (name,) in world.all(
            "SELECT id FROM lesson WHERE level = 0 AND untrusted = 0 ORDER BY id"
        )
    ]
    told: list[Any] = [
        tools.status(connection, reader),
        tools.audit(connection, reader, verbose=True),
        tools.export(connection, reader),
        tools.export(connection, reader, "markdown", untrusted=True),
        [tools.get(connection, reader, name) for name in lessons],
        proposals.draft(proposals.worthy(connection, reader, "/w/app")),
        [retrospective.page(connection, reader, session) for session in ("s0", "s1", "elsewhere")],
    ]
    for query in QUERIES:
        ask = world.ask("s0", query)
        told += [
            tools.trace(connection, reader, ask),
            tools.why(connection, reader, query),
            tools.query(connection, reader, tools.Question(query=query, now=now, full=True)),
            tools.query(
                connection, reader, tools.Question(query=query, now=now, include_archived=True)
            ),
        ]
    told.append(tools.recall(connection, reader, world.ask("s9", "build fails")))
    return told


@pytest.mark.parametrize(
    "reader", [Reader(0, "exclude"), Reader(0, "owner-only")], ids=["exclude", "owner-only"]
)
@pytest.mark.parametrize("hidden", [1, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "label", [Label(2, False), Label(0, True), Label(3, True)], ids=["high", "untrusted", "both"]
)
def test_hidden_events_move_nothing_that_a_lower_reader_is_told(reader, hidden, label):
    plain, mixed = World(), World()
    for world in (plain, mixed):
        live(world, random.Random(7), 40)
    now = mixed.now
    chance = random.Random(11)
    for number in range(hidden):
        at = number % len(ERRORS)
        session = chance.choice(("s0", "s1", "elsewhere"))
        if chance.random() < 0.3:
            mixed.succeed(session, command=COMMANDS[at], label=label, log="hidden")
        else:
            mixed.fail(session, text=ERRORS[at], command=COMMANDS[at], label=label, log="hidden")
    for world in (plain, mixed):
        world.now = now + 1_000_000
        for session in ("s0", "s1", "elsewhere"):
            world.idle(session)
    assert everything(mixed, reader) == everything(plain, reader)


EVENTS = {
    "fail": {"ok": False, "text": ERRORS[0]},
    "fail otherwise": {"ok": False, "text": ERRORS[0], "command": "make all"},
    "succeed": {"ok": True},
    "edit": {"ok": True, "tool": "edit", "args": {"filePath": "src/main.ts"}},
    "other": {"ok": True, "command": "ls"},
}


@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=12), st.randoms())
def test_lessons_fixes_and_words_do_not_depend_on_the_order_in_which_logs_are_read(events, chance):
    logs = {"one": events[::2], "two": events[1::2]}
    one_by_one = [log for log, seen in logs.items() for _ in seen]
    mixed = chance.sample(one_by_one, len(one_by_one))
    told = []
    for order in (one_by_one, one_by_one[::-1], mixed):
        world, done = World(), dict.fromkeys(logs, 0)
        for log in order:
            number = done[log]
            done[log] += 1
            world.now = 1_769_936_400_000 + 1_000 * number + (500 if log == "two" else 0)
            world.call(log, n=number, **EVENTS[logs[log][number]])
        told.append(
            [
                sorted(
                    world.all(
                        "SELECT fingerprint, project, evidence, fix_args, content, tool, session, "
                        "call, call_fingerprint, created_at FROM lesson"
                    )
                ),
                sorted(world.all("SELECT fingerprint, session, at, args FROM fix")),
            ]
        )
    assert told[1:] == [told[0], told[0]]


@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=12), st.randoms())
def test_calls_of_many_logs_that_are_observed_at_once_teach_what_each_teaches_alone(events, chance):
    seens: list[Seen] = []
    alone = World()
    for number, name in enumerate(events):
        log = chance.choice(("one", "two"))
        with mock.patch("tests.support.teaching.observe", lambda _, seen: seens.append(seen)):
            alone.call(log, n=number, **EVENTS[name])
        observe(alone.connection, seens[-1])
    orders = [seens, seens[::-1], chance.sample(seens, len(seens))]
    together = [World() for _ in orders]
    for world, order in zip(together, orders, strict=True):
        by_log = {log: [one for one in seens if one.log == log] for log in ("one", "two")}
        picked = [by_log[one.log].pop(0) for one in order]
        cut = chance.randint(0, len(picked))
        observe_many(world.connection, picked[:cut])
        observe_many(world.connection, picked[cut:])
    tables = (
        "SELECT * FROM call ORDER BY log, n",
        (
            "SELECT fingerprint, project, evidence, fix_args, content, tool, session, call, words, "
            "created_at FROM lesson ORDER BY fingerprint"
        ),
        "SELECT fingerprint, session, at, args FROM fix ORDER BY fingerprint, at",
        "SELECT term, count, posting.words, project FROM posting JOIN part USING (part) ORDER BY term, count, 3",
        "SELECT project, lessons, words FROM part",
    )
    for world in together:
        assert [world.all(sql) for sql in tables] == [alone.all(sql) for sql in tables]


@given(st.text(max_size=200))
def test_normalising_what_is_normal_keeps_it_and_never_fails(text):
    once = normal(text)
    assert isinstance(once, str)
    assert once == " ".join(once.split())


@given(
    st.lists(
        st.sampled_from([*"aB ", "  ", "\xa0", "\u2003", "\t", "\x1f", "\x85", "é"]), max_size=9
    )
)
def test_white_space_of_any_kind_tells_no_two_errors_apart(pieces):
    text = "".join(pieces)
    assert normal(text) == " ".join(text.lower().split())


@pytest.mark.parametrize("digit", ["7", "\u0667", "\uff17"])
def test_a_number_is_one_in_any_script(digit):
    assert normal(f"héap of {digit} too many") == "héap of <n> too many"


@example(["no", " ", "Fa\u0131led", " ", "fatal"])
@example(["0", " ", "failure"])
@example(["0", " ", "ERRORS"])
@example(["No", " ", "error"])
@example(["x0", " ", "ERRORS"])
@given(
    st.lists(
        st.sampled_from(["0", "no", "No", "10", "x0", " ", " ", "error", "ERRORS", "failed", "Fa\u0131led",
                         "failure", "fatal", "s"]), min_size=1, max_size=6)
)  # fmt: skip
def test_a_line_that_counts_none_names_nothing(pieces):
    line = "".join(pieces)
    told = describe("bash", Outcome(False), f"{line}\nfatal: it is this")
    none = re.search(r"\b(?:0|no) (?:errors?|failures?|failed)\b", line.lower(), re.IGNORECASE)
    words = any(word in line.lower() for word in ("error", "fail", "fatal"))
    assert (line.strip() in told.lines) is (none is None and words)


@given(*[st.integers(0, 50)] * 4)
def test_confidence_stays_within_its_bounds(evidence, recurrence, useful, against):
    assert 0.05 <= confidence(evidence, recurrence, useful, against) <= 0.95


@given(st.binary(max_size=200), st.text(alphabet="ab -`\n", max_size=40))
def test_splicing_keeps_every_other_byte_and_is_stable(content, lines):
    try:
        once = proposals.splice(content, lines)
    except MemorydError:
        return
    assert proposals.splice(once, lines) == once
    if proposals.BEGIN not in content and proposals.END not in content:
        assert once.startswith(content)


@given(
    st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=4),
    st.sampled_from(["okf", "markdown"]),
)
def test_whatever_stands_in_a_rule_survives_the_round_trip(bodies, form):
    world, other = World(), World()
    for body in bodies:
        world.now += 1
        if body.strip():
            given_ = tools.Saved(type="rule", content=body, label=Label(0, False), now=world.now)
            tools.save(world.connection, OWNER, given_)
    bundle = tools.export(world.connection, OWNER, form)
    tools.import_(other.connection, OWNER, bundle, Label(0, False), now=world.now)
    active = "SELECT id, content FROM lesson WHERE status = 'active' ORDER BY id"
    assert other.all(active) == [(i, c.replace("\r\n", "\n")) for i, c in world.all(active)]
