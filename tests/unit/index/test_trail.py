"""What is taken over of a batch: its events, what raised its log above `max_class`, what is handed on of it."""

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from memoryd import config
from memoryd.fold import Event, Folded, State
from memoryd.index.lineage import NOTHING
from memoryd.index.listening import Retelling
from memoryd.index.overrides import Forget
from memoryd.index.retelling import again, heard
from memoryd.index.table import Folding, Log, Place
from memoryd.index.tombs import Tomb
from memoryd.index.trail import FORGOTTEN, take
from memoryd.index.turn import Turn
from memoryd.labels import Label
from memoryd.lessons.passage import Mark
from memoryd.records import Brought, Called, Kind, Record, Returned, Said, Unreadable
from memoryd.rules import Rules
from tests.support.classroom import START, Classroom, Script

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


def told(records, labels, skip=(), tomb=None, last_ts=50):
    """Return what is handed on of records whose calls have the first labels, where the last one stands after all."""
    turn = Turn(
        Log(1, 1, Place("codex", "/r", "a"), "a", last_ts=last_ts),
        Folding(State(labels[-1])),
        False,
        0,
        Retelling(NOTHING),
        tomb=tomb,
    )
    rows, results = [], []
    for record, label in zip(records, labels, strict=False):
        rows += [(record, item, label) for item in record.items if isinstance(item, Called)]
        results += [(record.n, item) for item in record.items if isinstance(item, Returned)]
    tale = Folded(rows, labels[:-1], results)
    times = {record.n: record.ts for record in records}
    return heard(turn, records, times, (tale, set(skip)), SETTINGS)


def answered(n, ts):
    return Record(n, ts, [Called(0, f"c{n}", f"tool{n}", {}), Returned(1, f"c{n}", ok=True)])


def calls(found):
    return [(n, tool, label) for n, _, _, tool, _, label in found.made]


def test_a_record_at_max_class_is_handed_on_whole_and_one_above_it_without_its_results():
    (found,) = told([answered(0, 100), answered(1, 90)], [LOW, MOST, TOP])
    assert calls(found) == [(0, "tool0", LOW), (1, "tool1", MOST)]
    assert [(n, after, at) for _, n, _, _, after, at, _ in found.answers] == [(0, MOST, 100)]
    assert (found.above, found.open) == (1, [1])
    (hidden,) = told([answered(0, 1)], [TOP, TOP])
    assert (hidden.made, hidden.answers, hidden.above) == ([], [], 0)


def test_what_raises_a_log_above_max_class_counts_from_the_first_record_that_tells_something():
    words = Record(1, 101, [Said(0, Kind.OWNER, "x")])
    (found,) = told([answered(0, 100), words, answered(2, 102)], [LOW, LOW, TOP, TOP])
    assert (len(found.answers), found.above) == (1, 2)


def test_neither_copies_nor_what_is_forgotten_are_handed_on_with_their_calls():
    records = [answered(n, n) for n in range(3)]
    tomb = Tomb((Forget("codex", "/r", "a", first=2, last=2),))
    (found,) = told(records, [LOW] * 4, skip=[0], tomb=tomb)
    assert calls(found) == [(1, "tool1", LOW)]


def test_a_result_without_a_time_has_the_newest_that_was_told_before_it():
    (found,) = told([answered(0, None), answered(1, 90), answered(2, None)], [LOW] * 4)
    assert [(at, before) for *_, at, before in found.answers] == [
        (None, 50),
        (90, None),
        (None, 90),
    ]


def test_words_alone_are_handed_on_after_a_pause_only():
    quiet = [
        Record(n, ts, [Said(0, Kind.OWNER, "x")]) for n, ts in enumerate((1_050, 1_051, 2_052))
    ]
    (found,) = told(quiet, [LOW] * 4)
    assert found.marks == [Mark(2, "quiet", 2_052)]
    assert told(quiet[:2], [LOW] * 3) == []


def test_a_log_is_quiet_from_its_first_time_and_rests_where_it_says_so():
    said, first = Record(0, 90, [Said(0, Kind.OWNER, "x")]), answered(1, None)
    call, end = answered(2, 95), Record(3, None, [], rest="end")
    (found,) = told([first, call, end], [LOW] * 4, last_ts=None)
    assert found.marks == [Mark(2, "quiet", 95), Mark(3, "end", 95)]
    (found,) = told([said, call], [LOW] * 3, last_ts=None)
    assert found.marks == []
    (found,) = told([Record(0, 90, [], rest="idle")], [LOW] * 2, last_ts=None)
    assert found.marks == [Mark(0, "quiet", 90), Mark(0, "idle", 90)]
    (found,) = told([Record(0, 60, [], rest="idle"), call], [LOW] * 3)
    assert found.marks == [Mark(0, "idle", 60)]


def test_what_is_skipped_or_forgotten_alone_is_left_out_each():
    records = [answered(n, n) for n in range(3)]
    (copied,) = told(records, [LOW] * 4, skip=[0])
    assert [n for n, *_ in copied.made] == [1, 2]
    tomb = Tomb((Forget("codex", "/r", "a", first=2, last=2),))
    (forgotten,) = told(records, [LOW] * 4, tomb=tomb)
    assert [n for n, *_ in forgotten.made] == [0, 1]


def test_a_log_that_cannot_be_found_again_is_not_told(user_home):
    with Classroom(user_home) as room:
        room.write("a.jsonl", Script("s1").fail())
        room.read()
        ((key, known),) = room.index.known().items()
        for place in (known.place._replace(source="none"), known.place._replace(root="/none")):
            gone = msgspec.structs.replace(known, place=place)
            with pytest.raises(FileNotFoundError):
                list(again(room.learner.settings, key, gone))


def test_a_log_of_many_blocks_is_told_again_as_far_as_the_index_is_and_as_it_was_told(user_home):
    script = Script("s1", at=START)
    for number in range(1_500):
        script.good(f"make {number}")
    with Classroom(user_home) as room:
        room.write("a.jsonl", script, upto=2_600)
        room.index.sweep()
        while room.index.catch_up()[1]:
            pass
        first = room.index.take_told()
        room.append("a.jsonl", script, 2_600, 3_001)
        ((key, known),) = room.index.known().items()
        twice = list(again(room.learner.settings, key, known))
    assert len(twice) > 1
    assert (twice[0].first, twice[-1].end) == (0, 2_600)
    assert [each.first for each in twice[1:]] == [each.end for each in twice[:-1]]
    assert [one for each in twice for one in each.heard] == [
        one for each in first for one in each.heard
    ]
    assert {each.written for each in twice} == {each.written for each in first}
