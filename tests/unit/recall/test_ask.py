import pytest

from memoryd.errors import BadRequest
from memoryd.index.where import Filters
from memoryd.recall.ask import Ask, Get, Listing, read
from memoryd.records import Kind


def test_a_question_needs_nothing_but_words():
    ask = read({"query": "retry"}, Ask)
    assert (ask.mode, ask.order, ask.group, ask.limit, ask.text) == (
        "smart",
        "relevance",
        "record",
        10,
        False,
    )
    assert ask.filters() == Filters()


def test_filters_are_told_to_the_index_in_its_own_values():
    ask = read(
        {
            "kinds": ["tool_call", "owner", "owner"],
            "session": "s",
            "project": "w*",
            "source": "codex",
            "tool": "mcp__*",
            "since": "1970-01-01T00:00:01Z",
            "until": 2_000,
        },
        Listing,
    )
    assert ask.filters() == Filters(
        kinds=(Kind.OWNER, Kind.TOOL_CALL),
        session="s",
        project="w*",
        source="codex",
        tool="mcp__*",
        since=1_000,
        until=2_000,
    )


def test_a_day_is_a_time():
    assert read({"since": "1970-01-02"}, Listing).filters().since == 86_400_000


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "query"),
        ({"query": 5}, "query"),
        ({"query": "q", "mode": "fuzzy"}, "mode"),
        ({"query": "q", "order": "best"}, "order"),
        ({"query": "q", "group": "log"}, "group"),
        ({"query": "q", "limit": 0}, "limit"),
        ({"query": "q", "limit": 101}, "limit"),
        ({"query": "q", "limit": True}, "limit"),
        ({"query": "q", "limit": "10"}, "limit"),
        ({"query": "q", "kinds": "owner"}, "kinds"),
        ({"query": "q", "untrusted": "maybe"}, "untrusted"),
        ({"query": "q", "snippet_tokens": 7}, "snippet_tokens"),
        ({"query": "q", "snippet_tokens": 65}, "snippet_tokens"),
        ({"query": "q", "budget_tokens": 49}, "budget_tokens"),
        ({"query": "q", "cursor": "c" * 257}, "cursor"),
        ({"query": "q", "session": "s" * 1_025}, "session"),
        ({"query": "q", "text": 1}, "text"),
        ({"query": "q", "sort": "newest"}, "sort"),
        ({"query": "q", "session": "half \ud800"}, "session"),
    ],
)
def test_a_wrong_argument_is_named(arguments, named):
    with pytest.raises(BadRequest, match=named) as caught:
        read(arguments, Ask)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"kinds": ["owners"]}, "kinds"),
        ({"since": "yesterday"}, "since"),
        ({"until": 1 << 63}, "until"),
        ({"tool": "*a*a*a*a*a"}, "tool"),
    ],
)
def test_a_filter_that_means_nothing_is_named_with_what_would(arguments, named):
    with pytest.raises(BadRequest, match=named) as caught:
        read(arguments, Listing).filters()
    assert caught.value.remedy
    assert caught.value.data == {"field": named}


def test_neighbours_are_counted_and_bounded():
    assert read({"id": "a" * 20, "before": 50}, Get).before == 50
    with pytest.raises(BadRequest, match="after"):
        read({"id": "a" * 20, "after": 51}, Get)


def test_pages_of_one_question_are_the_same_question():
    one, other = (
        read({"query": "q\0", "limit": limit, "budget_tokens": 50 * limit}, Ask) for limit in (1, 2)
    )
    assert one.question() == other.question()
    assert read({"query": "q", "session": "s"}, Ask).question() != one.question()
