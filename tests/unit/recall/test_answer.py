"""Recall end to end over small indexes: what is found, in which order, and how it is told."""

import math
import random
import re

import pytest

from memoryd import recall
from memoryd.db import Deadline
from memoryd.errors import BadRequest, Cancelled, Conflict, NotFound, TimedOut
from memoryd.recall import Scope, plan
from memoryd.records import Kind
from tests.support.shelf import CLASSES, NEVER, Line, place_id, shelf

ALL = Scope(CLASSES.top)
OWNER = Scope(CLASSES.top, owner=True)


def ask(reader, query="word", scope=ALL, **arguments):
    return recall.recall(reader, scope, {"query": query, **arguments}, NEVER)


def texts(answer) -> list[str]:
    return [hit["snippet"] for hit in answer["hits"]]


def spread(*lines: str, **fields) -> list[Line]:
    """Lines, each in a log of its own."""
    return [Line(text, log=f"l{at:03}", ts=at, **fields) for at, text in enumerate(lines)]


def oracle(rows: dict[str, str], words: list[str]) -> list[tuple[str, float]]:
    """Okapi BM25 in ten lines: every row scored by every word over one collection."""
    split = {name: re.findall(r"\w+", text) for name, text in rows.items()}
    average = sum(map(len, split.values())) / len(split)
    scores = {}
    for name, tokens in split.items():
        total = 0.0
        for word in words:
            held = sum(word in other for other in split.values())
            idf = math.log((len(rows) - held + 0.5) / (held + 0.5))
            tf = tokens.count(word)
            length = len(tokens)
            total += max(idf, 1e-6) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / average))
        if any(word in tokens for word in words):
            scores[name] = total
    return sorted(scores.items(), key=lambda item: -item[1])


def test_an_answer_is_capped_where_no_class_alone_fills_the_look(monkeypatch):
    monkeypatch.setattr(plan, "driven", lambda rows, wide: 1)
    monkeypatch.setattr(plan, "NEWEST", 400)
    lines = [Line("common said", log=f"l{at:03}", level=at % 4, ts=at) for at in range(800)]
    with shelf(lines) as reader:
        assert ask(reader, "common", limit=3)["capped"]


@pytest.mark.parametrize("group", ["record", "session"])
def test_words_that_come_late_score_as_if_their_lists_were_walked(monkeypatch, group):
    rng = random.Random(7)
    words = ["deploys", "token", "caching", "queue"]
    lines = [
        Line(
            " ".join(rng.choices(words, (1, 4, 9, 20), k=rng.randint(2, 30))),
            log=f"l{at % 40}",
            n=at,
            level=at % 3,
        )
        for at in range(120)
    ]
    told = []
    with shelf(lines) as reader:
        monkeypatch.setattr(plan, "driven", lambda rows, wide: 60)
        for walked in (0, 1_000):
            monkeypatch.setattr(plan, "WALKED", walked)
            hits = ask(reader, " ".join(words), group=group, limit=20)["hits"]
            told.append([(hit["id"], pytest.approx(hit["score"], abs=1e-3)) for hit in hits])
    assert told[0] == told[1]
    assert len(told[0]) == 20


@pytest.mark.parametrize("seed", range(5))
def test_the_order_and_the_scores_are_those_of_bm25_over_all_that_is_visible(seed):
    rng = random.Random(seed)
    vocabulary = [f"w{number}" for number in range(60)]
    chances = [1 / (rank + 2) for rank in range(60)]
    rows = {
        f"l{at}": " ".join(rng.choices(vocabulary, chances, k=rng.randint(3, 120)))
        for at in range(150)
    }
    # A subject of its own in the smallest class is what ranking each class alone ruins.
    rows |= {f"t{at}": f"{rows[f'l{at}']} w7 w7 topic" for at in range(4)}
    lines = [
        Line(text, log=log, level=3 if log.startswith("t") else at % 3)
        for at, (log, text) in enumerate(rows.items())
    ]
    words = ["topic", *rng.sample(vocabulary, 4)]
    expected = oracle(rows, words)[:20]
    with shelf(lines) as reader:
        hits = ask(reader, " ".join(words), limit=20)["hits"]
    assert [hit["score"] for hit in hits] == pytest.approx(
        [score for _, score in expected], abs=1e-3
    )
    different = {round(score, 6) for _, score in expected}
    if len(different) == len(expected):
        assert [hit["session"] for hit in hits] == [log for log, _ in expected]


def test_a_reader_below_ranks_as_if_nothing_were_above():
    lines = spread("alpha beta", "alpha", *["filler"] * 20)
    above = [Line("alpha gamma", level=2, log=f"h{number}") for number in range(30)]
    with shelf(lines) as alone, shelf(above + lines) as among:
        assert ask(alone, "alpha beta", Scope(1)) == ask(among, "alpha beta", Scope(1))
        assert ask(alone, "alpha beta", ALL) != ask(among, "alpha beta", ALL)


def test_a_hit_tells_what_it_is_and_only_the_owner_its_number():
    line = Line(
        "word to the wise",
        level=2,
        log="a.jsonl",
        n=7,
        kind=Kind.TOOL_CALL,
        untrusted=True,
        ts=1_500,
        tool="Bash",
        session="s1",
        project="/home/me/web",
        source="codex",
    )
    with shelf([line]) as reader:
        (hit,) = ask(reader)["hits"]
        (owned,) = ask(reader, scope=OWNER)["hits"]
    assert hit == {
        "id": place_id(line),
        "kind": "tool_call",
        "session": "s1",
        "project": "/home/me/web",
        "source": "codex",
        "ts": "1970-01-01T00:00:01.500Z",
        "tool": "Bash",
        "class": "private",
        "untrusted": True,
        "score": 0.0,
        "snippet": "word to the wise",
    }
    assert owned == hit | {"n": 7}


def test_text_comes_on_request_and_whole():
    with shelf([Line("word\x1b[31m " * 50)]) as reader:
        (short,) = ask(reader)["hits"]
        (whole,) = ask(reader, text=True)["hits"]
    assert "text" not in short
    assert whole["text"] == "word\x1b[31m " * 50
    assert short["snippet"].startswith("word\x1b[31m")


def test_the_label_is_the_join_of_what_is_told_and_of_nothing_the_lowest():
    lines = [*spread("word one", level=1), Line("word two", log="b", untrusted=True)]
    with shelf(lines) as reader:
        assert ask(reader)["label"] == {"class": "internal", "untrusted": True}
        assert ask(reader, "one")["label"] == {"class": "internal", "untrusted": False}
        assert ask(reader, "absent")["label"] == {"class": "public", "untrusted": False}


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("include", ["word a", "word b", "word c", "word d"]),
        ("owner-only", ["word a", "word b", "word c"]),
        ("exclude", ["word a", "word b"]),
    ],
)
def test_untrusted_rows_are_told_as_the_socket_and_the_request_allow(policy, told):
    lines = [
        Line("word a", log="a"),
        Line("word b", log="b", kind=Kind.ASSISTANT),
        Line("word c", log="c", untrusted=True),
        Line("word d", log="d", untrusted=True, kind=Kind.ASSISTANT),
    ]
    with shelf(lines) as reader:
        assert sorted(texts(ask(reader, scope=Scope(0, policy)))) == told
        assert sorted(texts(ask(reader, untrusted=policy))) == told
        assert sorted(texts(ask(reader, scope=Scope(0, "exclude"), untrusted=policy))) == [
            "word a",
            "word b",
        ]


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        ({"kinds": ["owner"]}, "ab"),
        ({"kinds": ["tool_call", "summary"]}, "cd"),
        ({"session": "s0"}, "ab"),
        ({"project": "web"}, "ab"),
        ({"project": "site"}, "c"),
        ({"project": "/home/*"}, "c"),
        ({"project": "*"}, "abcd"),
        ({"source": "codex"}, "d"),
        ({"tool": "Bash"}, "c"),
        ({"tool": "B*"}, "c"),
        ({"since": 1}, "bcd"),
        ({"until": 1}, "a"),
        ({"since": "1970-01-01T00:00:00.001Z", "until": "1970-01-01T00:00:00.003Z"}, "bc"),
        ({"kinds": ["owner"], "since": 1}, "b"),
        ({"session": "none"}, ""),
    ],
)
def test_filters_narrow_what_is_told(filters, told):
    lines = [
        Line("word a", log="0", session="s0", ts=0),
        Line("word b", log="1", session="s0", ts=1),
        Line("word c", log="2", ts=2, kind=Kind.TOOL_CALL, tool="Bash", project="/home/me/site"),
        Line("word d", log="3", ts=3, kind=Kind.SUMMARY, project=None, source="codex"),
    ]
    with shelf(lines) as reader:
        assert sorted(texts(ask(reader, **filters))) == [f"word {letter}" for letter in told]


def test_rows_without_a_time_come_last_by_time_and_are_outside_every_bound():
    lines = [Line(f"word {ts}", log=str(ts), ts=ts) for ts in (5, None, 3)]
    with shelf(lines) as reader:
        assert texts(ask(reader, order="newest")) == ["word 5", "word 3", "word None"]
        assert texts(ask(reader, order="oldest")) == ["word 3", "word 5", "word None"]
        assert texts(ask(reader, since=0, order="oldest")) == ["word 3", "word 5"]


def test_an_order_by_time_still_tells_scores():
    with shelf(spread("word", "word other", *["filler"] * 8)) as reader:
        by_time = ask(reader, "word other", order="newest")["hits"]
        by_score = ask(reader, "word other")["hits"]
    assert sorted(by_time, key=lambda hit: -hit["score"]) == by_score


def test_equal_scores_are_ordered_by_time_then_source_log_and_place():
    lines = [
        Line("word", log="b", n=1, ts=5),
        Line("word", log="b", n=0, ts=5),
        Line("word", log="a", n=9, ts=5, source="codex"),
        Line("word", log="c", n=0, ts=6),
        Line("word", log="a", n=3, block=1, ts=5),
        Line("word", log="a", n=3, block=0, ts=5),
    ]
    expected = [place_id(lines[at]) for at in (3, 2, 5, 4, 1, 0)]
    for read_in_order in (lines, lines[::-1]):
        with shelf(read_in_order) as reader:
            assert [hit["id"] for hit in ask(reader)["hits"]] == expected


def test_many_equal_rows_page_in_the_same_order_however_deep_the_look():
    lines = [Line("word", log=f"l{number:03}", ts=None) for number in range(120)]
    for read_in_order in (lines, lines[::-1]):
        with shelf(read_in_order) as reader:
            assert [hit["session"] for hit in ask(reader, limit=60)["hits"]] == [
                f"l{number:03}" for number in range(60)
            ]


def test_a_log_has_three_hits_in_an_answer_and_goes_on_by_cursor():
    lines = [Line(f"word {number}", log="spam", ts=number) for number in range(40)]
    with shelf([*lines, Line("word", log="other", ts=0)]) as reader:
        first = ask(reader)
        second = ask(reader, cursor=first["cursor"])
    assert [hit["session"] for hit in first["hits"]].count("spam") == 3
    assert len(first["hits"]) == 4
    assert [hit["session"] for hit in second["hits"]] == ["spam"] * 3
    assert not {hit["id"] for hit in first["hits"]} & {hit["id"] for hit in second["hits"]}


def test_a_session_asked_for_is_told_without_that_limit():
    lines = [Line(f"word {number}", log="spam") for number in range(40)]
    with shelf(lines) as reader:
        assert len(ask(reader, session="spam", limit=30)["hits"]) == 30


def test_case_67_ten_thousand_rows_of_one_log_do_not_hide_the_others():
    spam = [Line("word word word", log="spam", untrusted=True) for _ in range(10_000)]
    with shelf([*spam, *spread(*["word filler"] * 9)]) as reader:
        sessions = [hit["session"] for hit in ask(reader)["hits"]]
    assert sessions.count("spam") == 3
    assert len(sessions) == 10


def test_grouped_by_session_each_is_told_once_by_its_best_row():
    lines = [
        Line("word filler filler", log="a1", session="a"),
        Line("word word", log="a2", session="a"),
        Line("word", log="b", session="b"),
        Line("word", log="b", session="b", source="codex"),
        *spread(*["other"] * 10),
    ]
    with shelf(lines) as reader:
        hits = ask(reader, group="session")["hits"]
    assert [(hit["source"], hit["session"]) for hit in hits] == [
        ("native", "a"),
        ("codex", "b"),
        ("native", "b"),
    ]
    assert hits[0]["snippet"] == "word word"


def test_of_sessions_that_fit_alike_the_newer_comes_first_unless_asked_otherwise():
    day = 24 * 3_600 * 1_000
    lines = [
        Line("word word said", log="old", session="old", ts=1),
        Line("word was said", log="new", session="new", ts=400 * day),
        Line("word was said", log="timeless", session="timeless", ts=None),
        *spread(*["other row here"] * 40),
    ]
    close = [lines[0]._replace(text="word was said so"), *lines[1:]]
    with shelf(close) as reader:
        told = {
            (recency, until): [
                hit["session"]
                for hit in ask(reader, group="session", recency=recency, until=until)["hits"]
            ]
            for recency in (True, False)
            for until in (None, 500 * day)
        }
        scores = [hit["score"] for hit in ask(reader, group="session")["hits"]]
    assert told[True, None] == ["new", "timeless", "old"]
    assert told[True, 500 * day] == ["new", "old"]
    assert scores[0] == pytest.approx(1.1 * scores[1], abs=1e-3)
    with shelf(lines) as reader:  # mild: what fits better stays first
        assert ask(reader, group="session")["hits"][0]["session"] == "old"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("parser fix", "other"),
        ("parser fix shop", "shop"),
        ("parser fix march", "march"),
        ("parser fix 12 March", "march"),
        ("parser fix 2026-03-12", "march"),
        ("parser fix 12", "other"),
    ],
)
def test_a_question_that_names_a_project_or_a_day_finds_its_session(query, first):
    march = 1_773_273_600_000  # 2026-03-12
    april = march + 40 * 24 * 3_600_000
    lines = [
        Line("parser fix it", log="other", session="other", ts=april, project="/w/site"),
        Line("parser fix so", log="shop", session="shop", ts=april, project="/home/ada/shop/"),
        Line("parser fix so", log="march", session="march", ts=march, project="/w/site"),
        *spread(*["other row here"] * 40),
    ]
    with shelf(lines) as reader:
        assert ask(reader, query, group="session")["hits"][0]["session"] == first


def test_words_that_stand_apart_in_one_session_find_it():
    rows = [("alpha seen", "together"), ("beta seen", "together"), ("alpha", "apart")]
    lines = [Line(text, log=session, session=session) for text, session in rows]
    lines += spread(*["filler that says nothing"] * 200)
    with shelf(lines) as reader:
        found = ask(reader, "alpha beta", group="session")["hits"]
        lone = ask(reader, "alpha", group="session")["hits"]
    assert [hit["session"] for hit in found] == ["together", "apart"]
    assert found[0]["score"] > found[1]["score"]
    assert {hit["session"] for hit in lone} == {"together", "apart"}


@pytest.mark.parametrize("group", ["record", "session"])
@pytest.mark.parametrize("query", ["zxqv blorf", "zxqv-blorf", '"zxqv blorf"', "zxqv*", "犬猫"])
def test_a_question_without_any_word_of_the_memory_finds_nothing(query, group):
    with shelf(spread(*["word other"] * 5)) as reader:
        answer = ask(reader, query, group=group)
    assert (answer["hits"], answer["cursor"], answer["capped"]) == ([], None, False)
    assert answer["label"] == {"class": "public", "untrusted": False}


def test_a_long_session_gains_nothing_by_its_length_alone():
    lines = [Line("alpha beta", log="short", session="short")]
    lines += [Line("alpha beta", log="long", session="long")]
    lines += [Line("something else", log="long", session="long") for _ in range(300)]
    lines += spread(*["filler that says nothing"] * 100)
    with shelf(lines) as reader:
        found = ask(reader, "alpha beta", group="session")["hits"]
    assert [hit["session"] for hit in found] == ["short", "long"]


@pytest.mark.parametrize("limit", [7, 100])
def test_pages_of_sessions_tell_each_once_beyond_those_that_are_weighed(limit):
    rng = random.Random(limit)
    lines = [
        Line(" ".join(rng.choices(["word", "other", "third", "filler"], k=6)), log=f"l{at:03}")
        for at in [*range(300), *range(300)]
    ]
    with shelf(lines) as reader:
        told, cursor = [], None
        while True:
            going_on = {"cursor": cursor} if cursor else {}
            answer = ask(reader, "word other", group="session", limit=limit, **going_on)
            told += [(hit["session"], hit["score"]) for hit in answer["hits"]]
            cursor = answer["cursor"]
            if cursor is None:
                break
        one_page = ask(reader, "word other", group="session", limit=100)["hits"]
    asked = {line.log for line in lines if {"word", "other"} & set(line.text.split())}
    assert sorted(session for session, _ in told) == sorted(asked)
    assert [hit["session"] for hit in one_page] == [session for session, _ in told[:100]]
    scores = [score for _, score in told]
    assert scores == sorted(scores, reverse=True)


def test_cursors_tell_every_hit_once():
    lines = spread(*[f"word {number}" for number in range(25)])
    with shelf(lines) as reader:
        told, cursor = [], None
        while True:
            answer = ask(reader, limit=4, **({"cursor": cursor} if cursor else {}))
            told += texts(answer)
            cursor = answer["cursor"]
            if cursor is None:
                break
    assert sorted(told) == sorted(line.text for line in lines)


def test_a_cursor_fits_no_other_question_reader_or_index():
    lines = spread(*["word"] * 9)
    with shelf(lines) as reader, shelf(lines, generation="g2") as rebuilt:
        cursor = ask(reader, limit=2)["cursor"]
        ask(reader, limit=5, snippet_tokens=8, cursor=cursor)
        for other in (
            lambda: ask(reader, "words", cursor=cursor),
            lambda: ask(reader, kinds=["owner"], cursor=cursor),
            lambda: ask(reader, order="newest", cursor=cursor),
            lambda: ask(reader, recency=False, cursor=cursor),
            lambda: ask(reader, scope=Scope(1), cursor=cursor),
            lambda: ask(reader, scope=Scope(3, projects=("web",)), cursor=cursor),
            lambda: ask(reader, scope=Scope(3, "exclude"), cursor=cursor),
            lambda: ask(rebuilt, cursor=cursor),
            lambda: ask(reader, cursor=("A" if cursor[0] != "A" else "B") + cursor[1:]),
            lambda: ask(reader, cursor="not one of ours"),
            lambda: ask(reader, cursor=""),
            lambda: recall.sessions(reader, ALL, {"cursor": cursor}, NEVER),
        ):
            with pytest.raises(Conflict) as caught:
                other()
            assert caught.value.remedy


def test_hits_stop_where_the_budget_does_and_go_on_by_cursor():
    lines = spread(*["word " + "x" * 30] * 6)  # 35 bytes, 10 tokens
    with shelf(lines) as reader:
        first = ask(reader, budget_tokens=50)
        assert len(first["hits"]) == 5
        second = ask(reader, budget_tokens=50, cursor=first["cursor"])
    assert len(second["hits"]) == 1
    assert second["cursor"] is None


def test_a_text_beyond_the_budget_is_cut_and_says_so():
    with shelf([Line("word " * 2_000)]) as reader:
        (hit,) = ask(reader, text=True, budget_tokens=100)["hits"]
    assert hit["cut"] is True
    assert len(hit["snippet"]) + len(hit["text"]) <= 350


def test_a_snippet_shows_the_words_and_no_endless_run():
    text = "start " * 200 + "the needle here " + "A" * 10_000 + " end" * 200
    with shelf([Line(text)]) as reader:
        (hit,) = ask(reader, "needle", snippet_tokens=16)["hits"]
    assert "needle" in hit["snippet"]
    assert len(hit["snippet"]) < 300
    assert hit["snippet"].startswith("…")


def test_a_snippet_is_cut_around_the_letters_asked_for():
    with shelf([Line("前" * 400 + "接続エラー" + "後" * 400)]) as reader:
        (hit,) = ask(reader, "接続エラー", snippet_tokens=8)["hits"]
    assert "接続エラー" in hit["snippet"]
    assert len(hit["snippet"]) < 30


def test_an_identifier_nobody_wrote_is_looked_for_by_its_words():
    with shelf(spread("the main module", "other")) as reader:
        assert texts(ask(reader, "src/main.rs")) == ["the main module"]
        assert texts(ask(reader, '"src/main.rs"')) == []
        assert texts(ask(reader, "src/main.rs", mode="all")) == []


def test_modes_ask_for_any_for_all_and_for_the_phrase():
    rows = ("quick fox", "fox quick", "quick", "slow")
    with shelf(spread(*rows)) as reader:
        assert set(texts(ask(reader, "quick fox"))) == {"quick fox", "fox quick", "quick"}
        assert set(texts(ask(reader, "quick fox", mode="all"))) == {"quick fox", "fox quick"}
        assert texts(ask(reader, "quick fox", mode="phrase")) == ["quick fox"]
        assert texts(ask(reader, "quick absent", mode="all")) == []


@pytest.mark.parametrize("mode", ["smart", "all", "phrase"])
@pytest.mark.parametrize("order", ["relevance", "newest", "oldest"])
@pytest.mark.parametrize(
    "query",
    [
        "kebab-case",
        "a:b",
        'open "quote',
        "NEAR(a b)",
        "foo(",
        "AND",
        "w " * 1_000,
        "a\0b",
        "\ud800 a",
    ],
)
def test_every_text_with_a_word_is_answered(query, mode, order):
    with shelf([Line("a b foo and kebab case open quote near w")]) as reader:
        if mode == "phrase" and len(query) > 500:
            with pytest.raises(BadRequest):
                ask(reader, query, mode=mode, order=order)
        else:
            assert set(ask(reader, query, mode=mode, order=order)) == {
                "hits",
                "label",
                "cursor",
                "capped",
            }


@pytest.mark.parametrize("query", ["", "*", "🎉", " \n", '"', "()"])
def test_a_text_without_a_word_is_refused_with_a_remedy(query):
    with shelf([Line("word")]) as reader, pytest.raises(BadRequest, match="no word") as caught:
        ask(reader, query)
    assert caught.value.remedy


def test_an_empty_index_answers_nothing():
    with shelf([]) as reader:
        assert ask(reader) == {
            "hits": [],
            "label": {"class": "public", "untrusted": False},
            "cursor": None,
            "capped": False,
        }


@pytest.fixture
def small_budget(monkeypatch):
    monkeypatch.setattr(plan, "LEAST_DRIVEN", 4)
    monkeypatch.setattr(plan, "NEWEST", 20)


def test_rows_with_only_common_words_are_not_looked_at_where_a_rarer_one_drives(small_budget):
    rows = ["common rare", "so rare it is", *["common common"] * 50]
    with shelf(spread(*rows)) as reader:
        answer = ask(reader, "common rare", limit=50)
    assert texts(answer) == ["common rare", "so rare it is"]
    assert not answer["capped"]


def test_a_common_word_alone_ranks_the_rows_read_last_and_says_so(small_budget):
    rows = ["common " * 9, *["common"] * 60, "filler", "common " * 3, "common"]
    with shelf(spread(*rows)) as reader:
        answer = ask(reader, "common", limit=100)
        newest = ask(reader, "common", order="oldest", limit=1)
    assert answer["capped"]
    assert len(answer["hits"]) == 20
    assert texts(answer)[0] == "common common common"
    assert texts(newest) == [rows[0].strip()]
    assert not newest["capped"]


def test_common_words_together_come_before_any_of_them(small_budget):
    rows = [*["one two three"] * 15, *["one", "two", "three"] * 30]
    with shelf(spread(*rows)) as reader:
        answer = ask(reader, "one two three", limit=100)
    assert set(texts(answer)) == {"one two three"}
    assert answer["capped"]


def test_common_words_that_rarely_meet_are_taken_one_by_one(small_budget):
    rows = [*["one", "two"] * 30, *["one two"] * 3]
    with shelf(spread(*rows)) as reader:
        answer = ask(reader, "one two", limit=100)
    assert texts(answer)[:3] == ["one two"] * 3
    assert len(answer["hits"]) == 20
    assert answer["capped"]


def test_a_filter_that_leaves_few_rows_of_a_common_word_caps_nothing(small_budget):
    lines = [*spread(*["common"] * 60), Line("common", log="mine", session="mine")]
    with shelf(lines) as reader:
        answer = ask(reader, "common", session="mine")
    assert (len(answer["hits"]), answer["capped"]) == (1, False)


def test_a_deadline_that_has_passed_and_a_request_taken_back_end_the_question():
    with shelf([Line("word")]) as reader:
        with pytest.raises(TimedOut):
            recall.recall(reader, ALL, {"query": "word"}, Deadline(0))
        taken_back = Deadline(60)
        taken_back.cancel()
        with pytest.raises(Cancelled):
            recall.recall(reader, ALL, {"query": "word"}, taken_back)
        assert len(ask(reader)["hits"]) == 1


def test_a_question_is_ended_in_the_middle():
    class Later(Deadline):
        """Passes at the second look."""

        looks = 0

        def over(self) -> bool:
            self.looks += 1
            return self.looks > 2

    lines = spread(*["word " * 20] * 400)
    with shelf(lines) as reader:
        with pytest.raises(TimedOut):
            recall.recall(reader, ALL, {"query": "word"}, Later())
        assert len(ask(reader)["hits"]) == 10


def test_rows_written_meanwhile_are_found_by_the_next_question(tmp_path):
    from memoryd import db
    from memoryd.index.search import Reader
    from tests.support.shelf import IDS, add, fill

    path = tmp_path / "index.sqlite3"
    fill(path, spread("word one", *["filler"] * 5))
    reader = Reader(db.reader(path), IDS, CLASSES)
    before = ask(reader)
    writer = db.writer(path)
    add(writer, [Line("word two", log="new")])
    writer.close()
    fresh = Reader(db.reader(path), IDS, CLASSES)
    assert set(texts(ask(reader))) == {"word one", "word two"}
    assert ask(reader) == ask(fresh) != before
    fresh.connection.close()
    assert recall.visible_rows(reader, ALL, NEVER) == 7
    reader.connection.close()


def test_get_knows_hidden_and_absent_records_by_one_answer():
    hidden, outside = Line("word", level=3, n=0), Line("word", log="o", n=0, project="other")
    scope = Scope(1, projects=("web",))
    with shelf([hidden, outside, Line("word", log="seen")]) as reader:
        refusals = []
        for name in (
            place_id(hidden),
            place_id(outside),
            place_id(Line("", log="no", n=3)),
            "x",
            "a" * 20,
        ):
            with pytest.raises(NotFound) as caught:
                recall.get(reader, scope, {"id": name}, NEVER)
            refusals.append((caught.value.message, caught.value.remedy, caught.value.data))
    assert len(set(map(repr, refusals))) == 1


def test_an_identifier_among_words_finds_its_row_first_and_its_words_help():
    rows = ("run src/main.ts now", "the main entry of ts", "it is now", *["filler"] * 9)
    with shelf(spread(*rows)) as reader:
        assert texts(ask(reader, "src/main.ts now"))[:2] == [
            "run src/main.ts now",
            "the main entry of ts",
        ]
        assert texts(ask(reader, "src/main.ts")) == ["run src/main.ts now"]
