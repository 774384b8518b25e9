"""What is taken over of a batch: its events, what raised its log above `max_class`, what is handed on of it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from memoryd import config
from memoryd.fold import Event, Folded, State
from memoryd.index.lineage import NOTHING
from memoryd.index.listening import Retelling
from memoryd.index.overrides import Forget
from memoryd.index.retelling import heard
from memoryd.index.table import Folding, Log, Place
from memoryd.index.tombs import Tomb
from memoryd.index.trail import FORGOTTEN, take
from memoryd.index.turn import Turn
from memoryd.labels import Label
from memoryd.records import Brought, Called, Kind, Record, Returned, Said, Unreadable
from memoryd.rules import Rules

RULES = Rules(config.parse("", Path("/x.toml")).config, state=Path("/s"), home=Path("/home/ada"))
SETTINGS = SimpleNamespace(max_level=1, rules=RULES, pause=1_000)
LOW, TOP = Label(0, False), Label(3, True)
OTHERS = "what another log had met"


def taken(events, before, after=TOP, items=(), tools=None, tomb=None):
    """Return the turn that took `events` of records from number 5 on, which had the labels `before`."""
    log = Log(1, 1, Place("codex", "/r", "a"), "a")
    turn = Turn(log, Folding(State(after, trail=list(events))), False, 5, Retelling(NOTHING))
    turn.folding.tools, turn.tomb = tools or {}, tomb
    take(turn, [Record(5 + n, None, list(items)) for n in range(len(before))], before, SETTINGS)
    return turn


def raised(n, level=3, name=":hook", of=None):
    return Event(n, 0, of, name, None, level, True)


@pytest.mark.parametrize(
    ("events", "before", "after", "why"),
    [
        ([raised(5)], [LOW, TOP, TOP], TOP, "hook"),
        ([raised(6), raised(7, name=":x")], [LOW, LOW, TOP], TOP, "hook"),
        ([raised(7)], [LOW, LOW, LOW], TOP, "hook"),
        ([raised(6)], [LOW, TOP, TOP], TOP, OTHERS),  # record 5 had met it already
        ([raised(5, level=1)], [LOW, LOW], TOP, OTHERS),
        ([], [LOW, TOP], TOP, OTHERS),
        ([], [LOW, LOW], TOP, OTHERS),
        ([], [LOW, LOW], LOW, None),
        ([], [TOP, TOP], TOP, None),  # it started there
        ([raised(6)], [TOP, TOP], TOP, "a line or a result that nobody can place"),  # no name
        ([raised(5, name=":x", level=2)], [LOW], Label(2, True), "x (no rule)"),
        ([raised(5, name=None)], [LOW], TOP, "a line or a result that nobody can place"),
        ([raised(5, name=None, of=(2, 1))], [LOW], TOP, "a call above max_class"),
        ([raised(5, name=None, of=(2, 0))], [LOW], TOP, "Bash"),
        ([raised(5, name=None, of=(3, 0))], [LOW], TOP, "Mystery (no rule)"),
    ],
)
def test_the_first_thing_that_raised_a_log_above_max_class_is_told(events, before, after, why):
    tools = {(2, 0): "Bash", (3, 0): "Mystery", (2, 1): ""}
    turn = taken(events, before, after, tools=tools)
    assert turn.log.why == why
    assert turn.folding.state.trail == []


def test_of_a_record_above_max_class_no_name_and_no_path_is_kept():
    came = [Brought(0, "hook", args={"path": ["/a", "/b"]})]
    turn = taken([raised(5), raised(6)], [LOW, TOP], items=came)
    assert turn.folding.events == [
        (5, 0, None, ":hook", None, 3, True, ("/a", "/b")),
        (6, 0, None, None, None, 3, True, None),
    ]


def test_of_a_forgotten_record_only_that_it_raised_is_kept():
    tomb = Tomb((Forget("codex", "/r", "a", first=5, last=5),))
    turn = taken([raised(5, of=(1, 0))], [LOW], tomb=tomb)
    assert turn.folding.events == [(5, 0, None, None, None, 3, True, None)]
    assert turn.log.why == FORGOTTEN


def test_unreadable_lines_are_counted_once_each():
    lines = [Event(n, 0, None, None, None, 3, True) for n in (5, 6)]
    assert taken(lines, [LOW, TOP], items=[Unreadable("x")]).counts.unreadable == 2
    assert taken(lines, [LOW, TOP]).counts.unreadable == 0


MOST = Label(1, True)
"""What may just be told: at `max_class`."""


def told(records, labels, skip=(), tomb=None):
    """Return what is handed on of records whose calls have the first labels, where the last one stands after all."""
    turn = Turn(
        Log(1, 1, Place("codex", "/r", "a"), "a", last_ts=50),
        Folding(State(labels[-1])),
        False,
        0,
        Retelling(NOTHING),
        tomb=tomb,
    )
    rows = [
        (record, item, label)
        for record, label in zip(records, labels, strict=False)
        for item in record.items
        if isinstance(item, Called)
    ]
    tale = Folded(rows, labels[:-1])
    return list(heard(turn, records, tale, set(skip), SETTINGS))


def answered(n, ts):
    return Record(n, ts, [Called(0, "c", f"tool{n}", {}), Returned(1, "c")])


def test_a_record_at_max_class_is_handed_on_whole_and_one_above_it_without_its_items():
    at, above = told([answered(0, 100), answered(1, 90)], [LOW, MOST, TOP])
    assert (at.above, at.after, at.before, len(at.record.items)) == (False, MOST, 50, 2)
    assert [(item.tool, label) for item, label in at.calls] == [("tool0", LOW)]
    assert (above.above, above.after, above.before, above.record.items) == (True, TOP, 100, [])
    assert [(item.tool, label) for item, label in above.calls] == [("tool1", MOST)]
    (hidden,) = told([answered(0, 1)], [TOP, TOP])
    assert hidden.calls == []


def test_neither_copies_nor_what_is_forgotten_are_handed_on_with_their_calls():
    records = [answered(n, n) for n in range(3)]
    tomb = Tomb((Forget("codex", "/r", "a", first=2, last=2),))
    found = told(records, [LOW] * 4, skip=[0], tomb=tomb)
    assert [[item.tool for item, _ in one.calls] for one in found] == [[], ["tool1"], []]


def test_words_alone_are_handed_on_after_a_pause_only():
    quiet = [
        Record(n, ts, [Said(0, Kind.OWNER, "x")]) for n, ts in enumerate((1_050, 1_051, 2_052))
    ]
    assert [one.record.n for one in told(quiet, [LOW] * 4)] == [2]
