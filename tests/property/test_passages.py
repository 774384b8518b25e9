"""Passages of a log, cut anywhere, gathered or not, pair its calls as one walk over its records does."""

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from memoryd.labels import Label
from memoryd.lessons.pairing import Gathering, Pairing
from memoryd.lessons.passage import Around, passage
from memoryd.records import Called, Record, Returned

PLAIN, RAISED = Label(0, False), Label(2, True)
TOOLS = ("Bash", "Read", "Edit")
IDS = st.sampled_from(["a", "b", "c\ud800"])
TOLD = st.sampled_from([None, msgspec.Raw(b'"make: *** Error 2"')])
ITEMS = st.one_of(
    st.builds(Called, st.just(0), st.none() | IDS, st.sampled_from(TOOLS),
              st.just({"command": "make x"}), st.booleans()),
    st.builds(Returned, st.just(1), st.none() | IDS, ok=st.sampled_from([True, False, None]), told=TOLD),
)  # fmt: skip
RECORDS = st.lists(
    st.tuples(st.lists(ITEMS, max_size=3), st.none() | st.integers(1, 9), st.booleans()),
    max_size=12,
)


def walk(records):
    """Return record of call, record of result, time and label of each answered call, by one dictionary."""
    open_, found, newest = {}, [], None
    for n, (items, at, raised) in enumerate(records):
        for item in items:
            if isinstance(item, Called) and item.call is not None and not item.hosted:
                open_[item.call] = (n, at)
        for item in items:
            if isinstance(item, Returned) and item.call in open_:
                called_n, called_at = open_.pop(item.call)
                when = next((t for t in (at, called_at, newest) if t is not None), 1_000 + n)
                if item.ok is not None or item.told is not None:
                    found.append((called_n, n, when, RAISED if raised else PLAIN, item.ok))
        if at is not None and (newest is None or at > newest):
            newest = at
    return found, {name.encode("utf-8", "replace").decode(): n for name, (n, _) in open_.items()}


def passages(records, cuts):
    """Return the passages of records that begin at 0 and at each cut."""
    calls, results, newest, times, after, before = [], [], None, {}, {}, {}
    for n, (items, at, raised) in enumerate(records):
        times[n], after[n], before[n] = at, RAISED if raised else PLAIN, newest
        whose = Record(n, at, items)
        calls += [(whose, item, PLAIN) for item in items if isinstance(item, Called)]
        results += [(n, one) for one in items if isinstance(one, Returned)]
        if at is not None and (newest is None or at > newest):
            newest = at
    bounds = [0, *sorted(cuts), len(records)]
    return [
        passage(
            ("s", "/p"),
            [call for call in calls if first <= call[0].n < end],
            [result for result in results if first <= result[0] < end],
            Around(times, after, before),
        )
        for first, end in pairwise(bounds)
    ]


def brief(seens):
    return [(seen.n, seen.at, seen.label, seen.outcome.ok) for seen in seens]


@given(RECORDS, st.sets(st.integers(0, 12), max_size=4), st.sets(st.integers(0, 4)))
def test_passages_cut_anywhere_pair_as_one_walk_does(records, cuts, ends):
    expected, open_ = walk(records)
    pairing, together, found = Pairing("log", "s"), Gathering(), []
    for number, each in enumerate(passages(records, {cut for cut in cuts if cut < len(records)})):
        pairing.gather(together, each, 1_000)
        if number in ends:
            found += together.seen()
            together = Gathering()
    found += together.seen()
    assert brief(found) == [(n, at, label, ok) for n, _, at, label, ok in expected]
    assert {name: one.n for name, one in pairing.waiting.items()} == open_


def paired(each):
    pairing, together = Pairing("log", "s"), Gathering()
    pairing.gather(together, each, 1_000)
    return brief(together.seen()), pairing.waiting


@given(RECORDS, st.integers(0, 12), st.integers(0, 12))
def test_the_middle_of_a_passage_says_what_its_records_say(records, first, end):
    (whole,) = passages(records, set())
    first, end = min(first, len(records)), min(end, len(records))
    bare = [(items if first <= n < end else [], at, raised)
            for n, (items, at, raised) in enumerate(records)]  # fmt: skip
    (alone,) = passages(bare, set())
    assert paired(whole.between(first, end)) == paired(alone)
