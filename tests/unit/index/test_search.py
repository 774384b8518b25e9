"""What is read of the index besides recall: records with neighbours, listings, counts."""

import json
import math

import msgspec
import pytest

from memoryd import recall
from memoryd.errors import NotFound
from memoryd.index import search
from memoryd.index.figures import MOST_COUNTED, Term, _varints
from memoryd.index.hits import fitting
from memoryd.index.score import saturation, weight
from memoryd.recall import Scope
from memoryd.records import Kind
from tests.support.shelf import CLASSES, NEVER, Line, place_id, shelf

ALL = Scope(CLASSES.top)


def get(reader, line, scope=ALL, **arguments):
    return recall.get(reader, scope, {"id": place_id(line), **arguments}, NEVER)


def listed(reader, scope=ALL, **arguments):
    return recall.sessions(reader, scope, arguments, NEVER)["sessions"]


TALK = [
    Line("owner asks", n=0, ts=10),
    Line("assistant says", n=2, block=0, kind=Kind.ASSISTANT, ts=20),
    Line("Bash\nls", n=2, block=1, kind=Kind.TOOL_CALL, tool="Bash", ts=20),
    Line("secret talk", n=4, level=3, ts=30),
    Line("untrusted talk", n=5, kind=Kind.ASSISTANT, untrusted=True, ts=40),
    Line("owner thanks", n=6, level=1, untrusted=True, ts=50),
    Line("another log", log="b", n=0, ts=0),
]


def told(answer, part):
    return [record["text"] for record in answer[part]]


def test_a_record_comes_with_its_text_and_its_neighbours_in_the_logs_order():
    with shelf(TALK) as reader:
        answer = get(reader, TALK[2], before=5, after=2)
    assert answer["record"]["text"] == "Bash\nls"
    assert told(answer, "before") == ["owner asks", "assistant says"]
    assert told(answer, "after") == ["secret talk", "untrusted talk"]
    assert answer["label"] == {"class": "secret", "untrusted": True}


def test_the_nearest_neighbours_are_told():
    with shelf(TALK) as reader:
        answer = get(reader, TALK[5], before=2, after=2)
    assert told(answer, "before") == ["secret talk", "untrusted talk"]
    assert told(answer, "after") == []


def test_without_neighbours_a_record_stands_alone_under_its_own_label():
    with shelf(TALK) as reader:
        answer = get(reader, TALK[2])
    assert (answer["before"], answer["after"]) == ([], [])
    assert answer["label"] == {"class": "public", "untrusted": False}
    assert answer["record"] == {
        "id": place_id(TALK[2]),
        "kind": "tool_call",
        "session": "a",
        "project": "web",
        "source": "native",
        "ts": "1970-01-01T00:00:00.020Z",
        "tool": "Bash",
        "class": "public",
        "untrusted": False,
        "text": "Bash\nls",
    }


def test_neighbours_are_counted_over_visible_rows_only():
    with shelf(TALK) as reader:
        low = get(reader, TALK[2], Scope(1), after=2)
        trusting = get(reader, TALK[2], Scope(1, "owner-only"), after=2)
    assert told(low, "after") == ["untrusted talk", "owner thanks"]
    assert told(trusting, "after") == ["owner thanks"]


@pytest.mark.parametrize(
    ("scope", "line"),
    [
        (Scope(2), TALK[3]),
        (Scope(3, "exclude"), TALK[4]),
        (Scope(3, "owner-only"), TALK[4]),
        (Scope(3, projects=("site",)), TALK[0]),
    ],
)
def test_what_a_scope_does_not_cover_is_not_found(scope, line):
    with shelf(TALK) as reader:
        with pytest.raises(NotFound):
            get(reader, line, scope)
        assert get(reader, line)


def test_only_the_owner_is_told_record_numbers():
    with shelf(TALK) as reader:
        assert "n" not in get(reader, TALK[2])["record"]
        assert get(reader, TALK[2], Scope(3, owner=True))["record"]["n"] == 2


def test_neighbours_that_do_not_fit_are_cut_and_left_out(monkeypatch):
    monkeypatch.setattr(search, "MOST_BYTES", 10)
    with shelf(TALK) as reader:
        answer = get(reader, TALK[4], before=3, after=1)
    assert answer["record"]["text"] == "untrusted "
    assert answer["record"]["cut"] is True
    assert told(answer, "before") == ["secret tal"]


SESSIONS = [
    Line("first words\n of the owner " + "x" * 200, log="1", session="s", ts=1_000),
    Line("reply", log="1", kind=Kind.ASSISTANT, session="s", level=2, untrusted=True, ts=2_000),
    Line("resumed", log="2", session="s", ts=9_000, project="site"),
    Line("no owner here", log="3", session="t", kind=Kind.ASSISTANT, ts=5_000, project=None),
    Line("timeless", log="4", session="u", ts=None, source="codex"),
    Line("all hidden", log="5", session="v", level=3, ts=9_999, project="hidden"),
]


def test_a_session_is_told_over_its_visible_rows():
    with shelf(SESSIONS) as reader:
        everything = recall.sessions(reader, Scope(2), {}, NEVER)
        low = listed(reader, Scope(1))
    assert everything["sessions"][0] == {
        "session": "s",
        "project": "site",
        "source": "native",
        "agent": None,
        "rows": 3,
        "first_ts": "1970-01-01T00:00:01.000Z",
        "last_ts": "1970-01-01T00:00:09.000Z",
        "title": ("first words of the owner " + "x" * 200)[:120],
        "class": "private",
        "untrusted": True,
    }
    assert everything["label"] == {"class": "private", "untrusted": True}
    assert (low[0]["rows"], low[0]["class"], low[0]["untrusted"]) == (2, "public", False)


def test_sessions_are_listed_by_their_last_touch_and_hidden_ones_not_at_all():
    with shelf(SESSIONS) as reader:
        assert [one["session"] for one in listed(reader, Scope(2))] == ["s", "t", "u"]
        assert [one["session"] for one in listed(reader)] == ["v", "s", "t", "u"]


def test_a_session_without_owners_words_has_no_title_and_one_without_times_none():
    with shelf(SESSIONS) as reader:
        by_name = {one["session"]: one for one in listed(reader)}
    assert by_name["t"]["title"] is None
    assert (by_name["u"]["first_ts"], by_name["u"]["last_ts"]) == (None, None)


def test_a_title_that_a_filter_leaves_out_still_counts_in_the_label():
    lines = [
        Line("private start", level=2, ts=1),
        Line("public end", ts=9),
    ]
    with shelf(lines) as reader:
        answer = recall.sessions(reader, ALL, {"since": 5}, NEVER)
    (one,) = answer["sessions"]
    assert (one["rows"], one["title"], one["class"]) == (1, "private start", "private")
    assert answer["label"]["class"] == "private"


@pytest.mark.parametrize(
    ("filters", "sessions"),
    [
        ({"project": "site"}, ["s"]),
        ({"source": "codex"}, ["u"]),
        ({"kinds": ["assistant"]}, ["t", "s"]),
        ({"since": 5_000}, ["s", "t"]),
        ({"until": 5_000}, ["s"]),
        ({"untrusted": "exclude"}, ["s", "t", "u"]),
        ({"session": "t"}, ["t"]),
    ],
)
def test_listings_take_filters(filters, sessions):
    with shelf(SESSIONS) as reader:
        assert [one["session"] for one in listed(reader, Scope(2), **filters)] == sessions


def test_projects_are_told_over_visible_rows():
    with shelf(SESSIONS) as reader:
        answer = recall.projects(reader, Scope(2), {}, NEVER)
    assert [(one["project"], one["sessions"], one["rows"]) for one in answer["projects"]] == [
        ("site", 1, 1),
        (None, 1, 1),
        ("web", 2, 3),
    ]
    assert answer["projects"][2] == {
        "project": "web",
        "sessions": 2,
        "rows": 3,
        "first_ts": "1970-01-01T00:00:01.000Z",
        "last_ts": "1970-01-01T00:00:02.000Z",
        "class": "private",
        "untrusted": True,
    }


def test_listings_go_on_by_cursor_and_a_page_has_the_label_of_that_page():
    with shelf(SESSIONS) as reader:
        first = recall.sessions(reader, Scope(2), {"limit": 1}, NEVER)
        second = recall.sessions(reader, Scope(2), {"limit": 2, "cursor": first["cursor"]}, NEVER)
    assert [one["session"] for one in second["sessions"]] == ["t", "u"]
    assert first["label"]["class"] == "private"
    assert (second["label"]["class"], second["cursor"]) == ("public", None)


@pytest.mark.parametrize(
    ("scope", "rows"),
    [
        (Scope(0), 4),
        (Scope(2), 5),
        (Scope(3), 6),
        (Scope(2, "exclude"), 4),
        (Scope(2, projects=("web",)), 3),
        (Scope(2, projects=("",)), 1),
        (Scope(2, projects=()), 0),
        (Scope(7), 6),
    ],
)
def test_visible_rows_are_counted(scope, rows):
    with shelf(SESSIONS) as reader:
        assert recall.visible_rows(reader, scope, NEVER) == rows


def test_a_reader_of_some_projects_searches_those_alone():
    with shelf([Line("word", log="1"), Line("word", log="2", project="other")]) as reader:
        answer = recall.recall(reader, Scope(3, projects=("w*",)), {"query": "word"}, NEVER)
        outside = recall.recall(
            reader, Scope(3, projects=("w*",)), {"query": "word", "project": "other"}, NEVER
        )
    assert [hit["project"] for hit in answer["hits"]] == ["web"]
    assert outside["hits"] == []


def test_answers_are_plain_values():
    with shelf(TALK) as reader:
        for answer in (get(reader, TALK[2], before=1), recall.sessions(reader, ALL, {}, NEVER)):
            assert msgspec.json.decode(msgspec.json.encode(answer)) == json.loads(
                json.dumps(answer)
            )


def test_words_phrases_and_prefixes_are_counted_in_rows_of_one_class():
    lines = [Line("red blue"), Line("blue red", log="b"), Line("red reds", log="c", level=1)]
    with shelf(lines) as reader, search.snapshot(reader, NEVER):
        count = reader.figures.frequency
        assert count(0, Term('"red"', ("red",)), None) == 2
        assert count(1, Term('"red"', ("red",)), None) == 1
        assert count(0, Term('"red blue"', ("red", "blue")), None) == 1
        assert count(0, Term('"blu" *', ("blu",), prefix=True), None) == 2
        assert count(2, Term('"red"', ("red",)), None) == 0


def test_a_phrase_in_too_many_rows_to_count_counts_as_its_rarest_word(monkeypatch):
    monkeypatch.setattr("memoryd.index.figures.MOST_COUNTED", 2)
    lines = [Line("red blue", log=str(number)) for number in range(4)] + [Line("blue")] * 3
    with shelf(lines) as reader, search.snapshot(reader, NEVER):
        assert reader.figures.frequency(0, Term('"red blue"', ("red", "blue")), None) == 4
    assert MOST_COUNTED > 2


@pytest.mark.parametrize(
    ("block", "numbers"),
    [
        (b"", []),
        (b"\x02\x0b", [2, 11]),
        (b"\x81\x00\x7f", [128, 127]),
        (b"\x81\x80\x00", [16_384]),
        (b"\xff" * 9, [(1 << 64) - 1]),
        (b"\x80" * 8 + b"\x05\x07", [5, 7]),
    ],
)
def test_variable_length_integers_are_those_of_sqlite(block, numbers):
    assert _varints(block) == numbers


def test_a_word_in_more_than_half_of_the_rows_is_worth_a_hair():
    assert weight(100, 50) == weight(100, 100) == pytest.approx(2.2e-6)
    assert weight(100, 1) == pytest.approx(2.2 * math.log(99.5 / 1.5))
    assert weight(100, 120) > 0


def test_a_longer_row_counts_for_less():
    assert saturation(50, 40.0) == pytest.approx(1.2 * (0.25 + 0.75 * 1.25))
    assert saturation(51, 40.0) > saturation(50, 40.0)


def test_fitting_keeps_whole_letters():
    with shelf([Line("ééé")]) as reader, search.snapshot(reader, NEVER):
        from memoryd.index.hits import Key, fetch

        (row,) = fitting(fetch(reader.connection, [Key(0, 1)]), 5)
    assert (row.text, row.cut) == ("éé", True)
