"""The fold: each row carries the join of the results before it; doubt raises (cases of docs/labels.md)."""

from pathlib import Path

import msgspec
import pytest

from memoryd import config
from memoryd.fold import Event, State, begin, call_hash, fold, fold_all
from memoryd.labels import Label, LabelError
from memoryd.records import (
    About,
    Brought,
    Called,
    Item,
    Kind,
    Link,
    Own,
    Record,
    Returned,
    Said,
    Unreadable,
)
from memoryd.rules import Rules

PUBLIC, INTERNAL, PRIVATE, SECRET = range(4)
LOW, TRUSTED, UNTRUSTED = Label(PUBLIC, False), Label(INTERNAL, False), Label(INTERNAL, True)
KEY, UNKNOWN = Label(SECRET, False), Label(SECRET, True)
FORGED = Own("public", False)


def compiled(text: str = "") -> Rules:
    return Rules(
        config.parse(text, Path("/x.toml")).config,
        state=Path("/home/ada/.local/state/memoryd"),
        home=Path("/home/ada"),
    )


RULES = compiled()


def said(text: str = "x", kind: Kind = Kind.OWNER, block: int = 0) -> Said:
    return Said(block, kind, text)


def called(
    tool: str, call: str | None, block: int = 0, hosted: bool = False, **args: object
) -> Called:
    return Called(block, call, tool, args, hosted)


def log(*items: Item | list[Item]) -> list[Record]:
    """One record an item (or a list of items), times running backwards."""
    return [
        Record(n, -n, item if isinstance(item, list) else [item]) for n, item in enumerate(items)
    ]


def run(
    *items: Item | list[Item], trusted: bool = False, state: State | None = None
) -> tuple[list[Label], State]:
    """Fold a log; return the labels of its rows in order, and the state after it."""
    state = begin(RULES) if state is None else state
    rows = [row for record in log(*items) for row in fold(state, record, RULES, trusted)]
    return [label for _, label in rows], state


def labels(*items: Item | list[Item], trusted: bool = False) -> list[Label]:
    return run(*items, trusted=trusted)[0]


def final(*items: Item | list[Item], trusted: bool = False) -> Label:
    return run(*items, trusted=trusted)[1].label


def test_01_rows_carry_the_results_before_them_and_results_are_no_rows():
    items = [
        said("owner"),
        called("Read", "A", file_path="/w/.env"),
        Returned(0, "A"),
        said("reply", Kind.ASSISTANT),
        called("Bash", "B", command="ls"),
    ]
    assert labels(*items) == [LOW, LOW, KEY, KEY]


def test_01_a_row_never_carries_its_own_or_a_later_result_t33():
    state = begin(RULES)
    together = [said(), called("Bash", "A", 1, command="curl x"), Returned(2, "A"), said(block=3)]
    rows = fold(state, Record(0, 0, list(together)), RULES, False)
    assert [(item.block, label) for item, label in rows] == [(0, LOW), (1, LOW), (3, UNTRUSTED)]


def test_03_a_web_result_makes_the_owners_next_words_untrusted_and_leaves_their_class():
    assert labels(called("WebFetch", "A", url="https://x"), Returned(0, "A"), said()) == [
        LOW,
        Label(PUBLIC, True),
    ]


def test_04_a_tool_without_rule_raises_to_the_top():
    assert labels(called("Mystery", "A"), Returned(0, "A"), said()) == [LOW, UNKNOWN]


def test_05_label_fields_of_a_foreign_log_are_ignored():
    assert final(called("Read", "A"), Returned(0, "A", own=FORGED)) == TRUSTED
    assert final(called("Mystery", "A"), Returned(0, "A", own=FORGED)) == UNKNOWN
    assert final(Brought(0, "hook", FORGED)) == TRUSTED
    assert final(Brought(0, "memory_block", FORGED)) == UNKNOWN


# ---------------------------------------------------------------- fail closed

UNSET = msgspec.UNSET

FAIL_CLOSED = {
    "valid": (Own("private", True), Label(PRIVATE, True)),
    "valid and trusted": (Own("private", False), Label(PRIVATE, False)),
    "lowest": (Own("public", False), LOW),
    "class missing": (Own(UNSET, False), KEY),
    "class null": (Own(None, False), KEY),
    "class in other case": (Own("Public", False), KEY),
    "class with a space": (Own("public ", False), KEY),
    "class empty": (Own("", False), KEY),
    "class unknown": (Own("topsecret", False), KEY),
    "class a number": (Own(0, False), KEY),
    "class a bool": (Own(False, False), KEY),
    "class a list": (Own(["public"], False), KEY),
    "class an object": (Own({"name": "public"}, False), KEY),
    "flag missing": (Own("public", UNSET), Label(PUBLIC, True)),
    "flag null": (Own("public", None), Label(PUBLIC, True)),
    "flag 0": (Own("public", 0), Label(PUBLIC, True)),
    "flag 0.0": (Own("public", 0.0), Label(PUBLIC, True)),
    "flag the word false": (Own("public", "false"), Label(PUBLIC, True)),
    "flag empty": (Own("public", ""), Label(PUBLIC, True)),
    "flag a list": (Own("public", []), Label(PUBLIC, True)),
    "both missing": (Own(), UNKNOWN),
    "no fields at all": (None, UNKNOWN),
}


@pytest.mark.parametrize("case", FAIL_CLOSED)
def test_06_07_a_stated_label_counts_only_as_far_as_it_is_valid(case):
    own, expected = FAIL_CLOSED[case]
    assert final(called("Read", "A"), Returned(0, "A", own=own), trusted=True) == expected
    if own is not None:
        assert final(Brought(0, "memory_block", own), trusted=True) == expected


DOUBTS = {
    "result of no call": [Returned(0, "A")],
    "result that names no call": [called("Read", "A"), Returned(0, None)],
    "result that names only its tool": [called("Read", "A"), Returned(0, None, "Read")],
    "result before its call": [Returned(0, "A"), called("Read", "A")],
    "result of another call": [called("Read", "A"), Returned(0, "B")],
    "orphan after an answered call": [called("Read", "A"), Returned(0, "A"), Returned(0, "B")],
    "call without a name": [called("", "A"), Returned(0, "A")],
    "unreadable line": [Unreadable("no JSON")],
    "unknown kind with text": [Brought(0, "record:news")],
}


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("doubt", DOUBTS)
def test_08_10_doubt_raises_to_the_top_and_makes_untrusted(doubt, trusted):
    items = [
        msgspec.structs.replace(item, own=FORGED)
        if isinstance(item, Returned) and doubt != "call without a name"
        else item
        for item in DOUBTS[doubt]
    ]
    assert labels(said(), *items, said(), trusted=trusted)[-1] == UNKNOWN


def test_08_a_second_answer_joins():
    first = [called("Read", "A"), Returned(0, "A", own=Own("internal", False))]
    assert final(*first, Returned(0, "A")) == TRUSTED
    assert final(*first, Returned(0, "A", own=Own("private", True)), trusted=True) == Label(
        PRIVATE, True
    )
    assert final(*first, Returned(0, "A", own=FORGED), trusted=True) == TRUSTED


def test_08_a_call_id_used_again_counts_for_both_calls():
    again: list[Item] = [called("Read", "A"), called("WebFetch", "A")]
    for both in (again, again[::-1]):
        assert final(*both, Returned(0, "A")) == UNTRUSTED
    later = [called("Read", "A"), Returned(0, "A"), called("Mystery", "A"), Returned(0, "A")]
    assert labels(*later, said()) == [LOW, TRUSTED, UNKNOWN]


def test_a_call_that_never_returns_raises_nothing():
    assert (
        labels(called("Mystery", "A"), called("Read", None, file_path=".env"), said()) == [LOW] * 3
    )


def test_in_a_trusted_log_the_stated_label_is_the_whole_but_for_path_rules():
    low = Own("public", False)
    assert final(called("Mystery", "A"), Returned(0, "A", own=low), trusted=True) == LOW
    assert final(called("WebFetch", "A"), Returned(0, "A", own=low), trusted=True) == LOW
    keyed = called("Read", "A", file_path="/w/.env")
    assert final(keyed, Returned(0, "A", own=low), trusted=True) == KEY
    code = called("Bash", "A", command="cat node_modules/x")
    assert final(code, Returned(0, "A", own=low), trusted=True) == Label(PUBLIC, True)


# ---------------------------------------------------------------- order, hosted calls, compaction, links


@pytest.mark.parametrize("order", ["A1 A2 R1 R2", "A1 R1 A2 R2", "A1 A2 R2 R1"])
def test_14_parallel_calls_each_count_and_texts_after_carry_both(order):
    parts: dict[str, Item] = {
        "A1": called("Read", "1", file_path=".env"),
        "A2": called("WebFetch", "2", url="https://x"),
        "R1": Returned(0, "1"),
        "R2": Returned(0, "2"),
    }
    found, state = run(*[parts[name] for name in order.split()], said())
    assert found[-1] == UNKNOWN
    assert found[0] == LOW
    assert state.calls == {}


def test_15_a_hosted_search_raises_right_after_itself():
    items: list[Item] = [
        said("before", Kind.ASSISTANT),
        called("web_search", "s", 1, hosted=True, query="x"),
        said("after", Kind.ASSISTANT, 2),
    ]
    assert labels(items) == [LOW, LOW, Label(PUBLIC, True)]
    assert labels(called("web_search_call", None, hosted=True), said()) == [
        LOW,
        Label(PUBLIC, True),
    ]


def test_15_the_result_block_of_a_hosted_call_belongs_to_it():
    items: list[Item] = [called("web_search", "s", hosted=True), Returned(1, "s"), said(block=2)]
    assert labels(items) == [LOW, Label(PUBLIC, True)]


def test_16_a_summary_is_a_row_with_the_label_of_what_it_sums_up_and_lowers_nothing():
    items = [called("Read", "A", file_path=".env"), Returned(0, "A")]
    found = labels(*items, said("sum", Kind.SUMMARY), Brought(0, "compaction"), said())
    assert found == [LOW, KEY, KEY]


def test_17_18_neither_a_rewind_nor_times_lower_anything():
    state = begin(RULES)
    records = [
        Record(0, 5_000, [called("Read", "A", file_path=".env")], uuid="u0"),
        Record(1, 9_000, [Returned(0, "A")], uuid="u1"),
        Record(2, 1_000, [said()], uuid="u0"),
    ]
    rows = [row for record in records for row in fold(state, record, RULES, False)]
    assert [label for _, label in rows] == [LOW, KEY]


@pytest.mark.parametrize("how", ["parent", "fork", "resume", "subagent"])
@pytest.mark.parametrize("trusted", [False, True])
def test_case_20_a_log_that_comes_from_one_that_nobody_knows_starts_at_the_top(how, trusted):
    state = begin(RULES)
    record = Record(0, 0, [said()], About(session="s", link=Link(how, n=0)))
    assert fold(state, record, RULES, trusted)[0][1] == UNKNOWN
    whole = Record(0, 0, [said()], About(session="s", link=Link(how, whole=True)))
    assert fold(begin(RULES), whole, RULES, trusted)[0][1] == LOW
    plain = Record(0, 0, [said()], About(session="s"))
    assert fold(begin(RULES), plain, RULES, trusted)[0][1] == LOW


def test_24_25_hooks_attachments_and_commands_raise_before_any_result():
    assert labels(Brought(0, "attachment:nested_memory"), said()) == [TRUSTED]
    assert labels(Brought(0, "hook"), said()) == [TRUSTED]
    assert labels(Brought(0, "task-notification"), said()) == [UNTRUSTED]
    assert labels(Brought(0, "meta"), Brought(0, "progress:x"), said()) == [LOW]
    assert labels(Brought(0, "attachment:file", args={"path": "/w/.env"}), said()) == [KEY]


def test_the_start_is_the_configurations_or_the_sources_joined_with_a_floor():
    assert begin(RULES).label == LOW
    assert begin(RULES, "private").label == Label(PRIVATE, False)
    assert begin(compiled('[labels]\nstart = "internal"')).label == TRUSTED
    assert begin(RULES, "internal", Label(PUBLIC, True)).label == UNTRUSTED
    assert begin(RULES, None, UNKNOWN).label == UNKNOWN
    with pytest.raises(LabelError):
        begin(RULES, "Private")


# ---------------------------------------------------------------- state


def test_13_a_result_finds_its_call_in_a_state_that_was_kept_in_between():
    _, state = run(called("Read", "A", file_path=".env"), called("Bash", "B"), Returned(0, "B"))
    assert state.calls == {"A": KEY}
    assert state.answered == {call_hash("B")}
    kept = State(state.label, dict(state.calls), set(state.answered))
    assert run(Returned(0, "B"), state=kept)[1].label == TRUSTED
    assert run(Returned(0, "A"), said(), state=kept)[0] == [KEY]
    assert kept.calls == {}


def test_a_stored_call_and_a_new_one_of_the_same_id_count_both():
    state = State(LOW, {call_hash("A"): KEY})
    assert run(called("Bash", "A"), Returned(0, "A"), said(), state=state)[0][-1] == KEY.join(
        TRUSTED
    )
    assert run(Returned(0, "A"), said(), state=State(LOW, {call_hash("A"): TRUSTED, "A": KEY}))[
        0
    ] == [KEY]


def test_two_states_share_nothing():
    run(called("Read", "A"), Returned(0, "A"))
    fresh = begin(RULES)
    assert (fresh.calls, fresh.answered, fresh.trail) == ({}, set(), [])


def test_the_trail_tells_every_event_that_raises_with_its_own_label():
    items: list[Item | list[Item]] = [
        [said(), called("Read", "A", 1, file_path=".env")],
        [Returned(0, "A", ok=True), Returned(3, "Z", ok=False)],
        [Brought(2, "hook"), Brought(3, "meta")],
        [called("web_search", None, 5, hosted=True)],
        [Unreadable("x")],
    ]
    _, state = run(*items)
    assert state.trail == [
        (1, 0, (0, 1), None, True, SECRET, False, None),
        (1, 3, None, None, False, SECRET, True, None),
        (2, 2, None, ":hook", None, INTERNAL, False, None),
        (3, 5, None, None, None, PUBLIC, True, None),
        (4, 0, None, None, None, SECRET, True, None),
    ]


def test_an_event_names_the_call_that_was_the_last_of_its_id_when_it_was_answered():
    """Within one batch too: an id that is used again belongs to its first call until then."""
    records = log(
        called("Read", "A", 1, file_path=".env"),
        Returned(0, "A"),
        called("Bash", "A", 2),
        Returned(0, "A"),
        Returned(0, "A"),
        called("web_search", "W", 3, hosted=True),
    )
    state = begin(RULES)
    fold_all(state, records, RULES, False)
    assert [event.of for event in state.trail] == [(0, 1), (2, 2), (2, 2), (5, 3)]
    assert [event.level for event in state.trail] == [SECRET, INTERNAL, 0, PUBLIC]


def test_records_that_are_folded_together_tell_the_label_before_each():
    records = log(said(), called("Read", "A"), [Returned(0, "A"), said()], [], said())
    found = fold_all(begin(RULES), records, RULES, False)
    assert found.before == [LOW, LOW, LOW, TRUSTED, TRUSTED]
    assert [(row[0].n, row[2]) for row in found.rows] == [
        *((0, LOW), (1, LOW), (2, TRUSTED), (4, TRUSTED)),
    ]


def test_records_that_are_folded_together_hand_over_their_results_in_order():
    records = log(
        called("Read", "A"), [Returned(0, "A"), said(), Returned(1, "B")], Returned(0, None)
    )
    found = fold_all(begin(RULES), records, RULES, False)
    assert found.results == [(1, Returned(0, "A")), (1, Returned(1, "B")), (2, Returned(0, None))]


def test_a_step_is_noted_only_where_the_join_of_a_logs_own_events_rises():
    records = log(
        *(called("Read", "A"), Returned(0, "A")),
        *(called("Read", "B"), Returned(0, "B")),
        *(called("WebFetch", "C", url="https://a.example"), Returned(0, "C")),
        *(called("Read", "D", file_path=".env"), Returned(0, "D")),
        *(called("Read", "E"), Returned(0, "E")),
    )
    state = begin(RULES)
    fold_all(state, records, RULES, False)
    assert state.steps == [
        (1, TRUSTED.level, False),
        (5, TRUSTED.level, True),
        (7, SECRET, True),
    ]


def test_a_call_whose_stored_id_comes_again_is_worth_what_both_are():
    state = begin(RULES)
    state.calls[call_hash("A")] = Label(SECRET, False)
    fold_all(state, log(called("Read", "A"), Returned(0, "A")), RULES, False)
    assert state.label.level == SECRET
    state = begin(RULES)
    state.calls[call_hash("A")] = Label(SECRET, False)
    fold_all(state, log(Returned(0, "A")), RULES, False)
    assert state.label == Label(SECRET, False)


def test_an_id_of_any_letters_is_remembered_by_eight_bytes():
    assert len(call_hash("a\ud800")) == 8 == len(call_hash("A"))
    assert call_hash("a\ud800") != call_hash("a?")


def test_what_may_be_kept_of_a_forgotten_event_names_nothing():
    event = Event(1, 2, (0, 0), ":x", True, 3, True, ("/a",))
    assert event.bare() == Event(1, 2, None, None, True, 3, True)


def test_the_trail_puts_a_link_before_the_records_items():
    state = begin(RULES)
    fold(state, Record(7, 0, [said()], About(link=Link("fork"))), RULES, False)
    assert state.trail == [(7, -1, None, None, None, SECRET, True, None)]


class Kin:
    """Other logs that say one thing."""

    def __init__(self, label):
        self.label, self.asked = label, []

    def met(self, n, about, before):
        self.asked.append((n, about.link.how, before))

    def linked(self, n, link):
        self.asked.append((n, link.how))
        return self.label

    def called(self, n, call):
        self.asked.append((n, call.tool))

    def answered(self, n, result):
        self.asked.append((n, result.call))
        return self.label


def test_what_other_logs_say_raises_and_is_no_event_of_the_log():
    state, kin = begin(RULES), Kin(KEY)
    rows = fold(state, Record(0, 0, [said()], About(link=Link("fork"))), RULES, False, kin)
    assert rows[0][1] == state.label == KEY
    assert (state.trail, state.steps) == ([], [])
    state = begin(RULES)
    items = [called("Read", "A"), Returned(0, "A"), said()]
    rows = fold(state, Record(1, 0, items), RULES, False, kin)
    assert [label for _, label in rows] == [LOW, KEY]
    assert state.steps == [(1, *TRUSTED)]
    assert kin.asked == [(0, "fork", LOW), (0, "fork"), (1, "Read"), (1, "A")]
