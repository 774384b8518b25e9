from hypothesis import given
from hypothesis import strategies as st

from memoryd.index.pages import START, Place
from memoryd.index.search import Match
from memoryd.recall.rank import Dealing, Merged, deal, merge, settled, tied

BY_LOG = Dealing(lambda match: match.log, most=3, rounds=True)
BY_SESSION = Dealing(lambda match: match.log, most=1)
UNLIMITED = Dealing(lambda match: match.log)


def match(first: float, log: int = 0, *, id: int = 0, level: int = 0, n: int = 0) -> Match:
    return Match(first, 0, log, n, 0, id, level)


def ids(page) -> list[int]:
    return [found.id for found in page.matches]


def many(*logs: int) -> Merged:
    """The matches of these logs, best first."""
    return Merged([match(at, log, id=at) for at, log in enumerate(logs)], all=True)


def test_classes_merge_by_their_keys():
    low = [match(-9, id=1), match(-3, id=2)]
    high = [match(-5, id=3, level=1)]
    merged = merge([*low, *high], depth=10)
    assert [found.id for found in merged.matches] == [1, 3, 2]
    assert merged.all


def test_what_is_not_better_than_the_last_of_a_full_look_is_uncertain():
    found = [match(-5, id=2), match(-9, id=1), match(-7, id=3, level=1), match(-5, id=4, level=1)]
    merged = merge(found, depth=4)
    assert [found.id for found in merged.matches] == [1, 3]
    assert not merged.all
    assert merge(found, depth=5).all


@given(st.lists(st.integers(-20, 0), max_size=60), st.integers(1, 9))
def test_a_shallow_look_is_the_start_of_a_deep_one(keys, depth):
    found = sorted(match(first, id=at, level=at % 4) for at, first in enumerate(keys))
    whole = merge(found, depth=1_000).matches
    part = merge(found[:depth], depth=depth).matches
    assert part == whole[: len(part)]


def test_only_ties_between_logs_need_their_names():
    assert tied([match(-2, 1), match(-2, 1, n=1), match(-1, 2), match(-1, 3)]) == {2, 3}
    assert tied([]) == set()


def test_ties_are_settled_by_the_names_of_logs_and_places():
    given = [match(-1, 1, n=2), match(-1, 1, n=0), match(-1, 2), match(-9, 3)]
    order = settled(given, {1: ("x", "b"), 2: ("x", "a")})
    assert [(found.log, found.n) for found in order] == [(3, 0), (2, 0), (1, 0), (1, 2)]


def test_a_log_has_three_hits_in_an_answer_and_the_next_three_in_the_next_round():
    merged = many(1, 1, 1, 1, 2, 1, 1, 1, 3)
    first = deal(merged, BY_LOG, START, 10)
    assert ids(first) == [0, 1, 2, 4, 8]
    assert first.next == Place(0, 1)
    second = deal(merged, BY_LOG, first.next, 10)
    assert ids(second) == [3, 5, 6]
    third = deal(merged, BY_LOG, second.next, 10)
    assert ids(third) == [7]
    assert third.next is None


def test_a_page_is_full_or_the_last_of_its_round():
    merged = many(1, 2, 3, 4, 5)
    first = deal(merged, BY_LOG, START, 2)
    assert (ids(first), first.next) == ([0, 1], Place(2, 0))
    second = deal(merged, BY_LOG, first.next, 2)
    assert (ids(second), second.next) == ([2, 3], Place(4, 0))
    third = deal(merged, BY_LOG, second.next, 2)
    assert (ids(third), third.next) == ([4], None)


def test_sessions_are_shown_once_and_in_no_later_round():
    page = deal(many(1, 1, 2, 1, 2), BY_SESSION, START, 10)
    assert (ids(page), page.next) == ([0, 2], None)


def test_one_session_asked_for_is_told_whole():
    assert ids(deal(many(*[1] * 8), UNLIMITED, START, 10)) == list(range(8))


def test_a_page_that_more_depth_could_change_is_not_told():
    partial = Merged(many(1, 1, 1, 1).matches, all=False)
    assert deal(partial, BY_LOG, START, 3) is None
    assert ids(deal(partial, BY_LOG, START, 2)) == [0, 1]


@given(
    st.lists(st.integers(0, 4), max_size=60),
    st.integers(1, 7),
    st.sampled_from((BY_LOG, UNLIMITED)),
)
def test_going_on_by_cursor_tells_every_match_once(logs, limit, dealing):
    merged, place, told = many(*logs), START, []
    while place is not None:
        page = deal(merged, dealing, place, limit)
        told += ids(page)
        if dealing.most:
            found = [found.log for found in page.matches]
            assert all(found.count(log) <= dealing.most for log in found)
        place = page.next
    assert sorted(told) == list(range(len(logs)))
