"""Whatever a log holds: the fold agrees with an oracle of ten lines, and a cut anywhere changes nothing."""

from functools import reduce
from itertools import pairwise
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from memoryd import config
from memoryd.fold import State, begin, fold
from memoryd.labels import Label
from memoryd.records import (
    About,
    Brought,
    Called,
    Kind,
    Link,
    Own,
    Record,
    Returned,
    Said,
    Unreadable,
)
from memoryd.rules import Rules

OWNER = """
[labels]
start = "public"
[[labels.tool]]
match = "Mystery*"
args = "known"
class = "private"
untrusted = false
"""
RULES = Rules(
    config.parse(OWNER, Path("/x.toml")).config,
    state=Path("/home/ada/.local/state/memoryd"),
    home=Path("/home/ada"),
)

tools = st.sampled_from(
    ["Read", "Bash", "WebFetch", "mcp__x__y", "Mystery", "TodoWrite", "", "meta"]
)
arguments = st.sampled_from([
    {}, None, "cat .env", {"command": "ls"}, {"command": "curl x"}, {"file_path": "/w/.env"},
    {"file_path": "node_modules/x"}, {"q": "known"}, {"command": "bxctl status"}, ["a", {"b": ".ssh/x"}],
])  # fmt: skip
calls = st.sampled_from([None, "a", "b", "c"])
names = st.sampled_from(
    ["hook", "meta", "task-notification", "record:x", "attachment:file", "block:y"]
)
owns = st.none() | st.builds(
    Own,
    st.sampled_from(["public", "internal", "secret", "Public", "", 1, None, msgspec.UNSET]),
    st.sampled_from([True, False, 0, "false", None, msgspec.UNSET]),
)
block = st.integers(0, 9)
items = st.one_of(
    st.builds(
        Said, block, st.sampled_from([Kind.OWNER, Kind.ASSISTANT, Kind.SUMMARY]), st.just("x")
    ),
    st.builds(Called, block, calls, tools, arguments, st.booleans()),
    st.builds(Returned, block, calls, st.none() | tools, st.none() | st.booleans(), owns),
    st.builds(Brought, block, names, owns, st.just(None)),
    st.builds(Unreadable, st.just("no JSON")),
)
links = st.none() | st.builds(Link, st.sampled_from(["parent", "fork", "resume", "subagent"]))
# nearly every record is of a log that names no origin, or every label would be the same
abouts = st.one_of(st.none(), st.none(), st.none(), st.builds(About, link=links))
logs = st.lists(st.tuples(st.lists(items, max_size=5), abouts), max_size=12).map(
    lambda drawn: [Record(n, -n, held, about) for n, (held, about) in enumerate(drawn)]
)


Stored = tuple[Label, dict[str, Label], set[bytes], dict[str, tuple[int, int]]]


def stated(own: Own | None) -> Label:
    classes = RULES.classes
    name = None if own is None else own.cls
    level = classes.names.index(name) if name in classes.names else classes.top
    return Label(level, own is None or own.untrusted is not False)


def oracle(log: list[Record], trusted: bool) -> list[Label]:
    """Every row's label, worked out from the start of the log for each row anew."""
    flat = [x for r in log for x in ([r.about.link] if r.about and r.about.link else []) + r.items]
    made = [
        (x, RULES.paths(x.tool, x.args) if trusted and not x.hosted else RULES.hosted(x.tool, x.args)
         if x.hosted else RULES.result(x.tool, x.args))
        if isinstance(x, Called) else (x, None) for x in flat
    ]  # fmt: skip

    def event(at: int) -> Label | None:
        match made[at][0]:
            case Called(hosted=True):
                return made[at][1]
            case Said() | Called():
                return None
            case Link():
                return RULES.unknown
            case Brought(own=own, name=name):
                return stated(own) if trusted and own is not None else RULES.brought(name)
            case Returned(call=call, own=own) if call is not None:
                before = [
                    label for x, label in made[:at] if isinstance(x, Called) and x.call == call
                ]
                return reduce(Label.join, before, stated(own) if trusted else Label(0, False)) \
                    if before else RULES.unknown  # fmt: skip
            case _:
                return RULES.unknown

    events = [event(at) for at in range(len(made))]
    return [
        reduce(Label.join, filter(None, events[:at]), RULES.start)
        for at, (x, _) in enumerate(made)
        if isinstance(x, Said | Called)
    ]


def folded(log: list[Record], trusted: bool, state: State) -> list[Label]:
    return [label for record in log for _, label in fold(state, record, RULES, trusted)]


@given(logs, st.booleans())
def test_every_row_carries_what_the_oracle_says_t33(log: list[Record], trusted: bool) -> None:
    assert folded(log, trusted, begin(RULES)) == oracle(log, trusted)


@given(logs, st.booleans(), st.lists(st.integers(0, 12), max_size=3))
def test_12_a_cut_anywhere_with_the_state_kept_changes_nothing(
    log: list[Record], trusted: bool, cuts: list[int]
) -> None:
    whole = begin(RULES)
    expected = folded(log, trusted, whole)
    state, found, trail = begin(RULES), [], []
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(log)], strict=True):
        found += folded(log[start:end], trusted, state)
        trail += state.trail
        kept = msgspec.msgpack.encode(
            (state.label, state.calls, sorted(state.answered), state.places)
        )
        label, calls, answered, places = msgspec.msgpack.decode(kept, type=Stored)
        state = State(label, calls, answered, places=places)
    assert (found, trail) == (expected, whole.trail)
    assert (state.label, state.calls, state.answered) == (whole.label, whole.calls, whole.answered)


@given(logs, st.booleans())
def test_labels_never_fall_and_every_rise_is_in_the_trail(log: list[Record], trusted: bool) -> None:
    state = begin(RULES)
    found = [RULES.start, *folded(log, trusted, state), state.label]
    assert all(after.covers(before) for before, after in pairwise(found))
    told = [Label(event.level, event.untrusted) for event in state.trail]
    assert reduce(Label.join, told, RULES.start) == state.label


@given(logs)
def test_a_foreign_log_cannot_state_a_label(log: list[Record]) -> None:
    silent = [
        msgspec.structs.replace(
            record,
            items=[
                msgspec.structs.replace(item, own=None)
                if isinstance(item, Returned | Brought)
                else item
                for item in record.items
            ],
        )
        for record in log
    ]
    assert folded(log, False, begin(RULES)) == folded(silent, False, begin(RULES))
