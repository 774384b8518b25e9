"""What a call was about, in one line, and which call a result answers when passages follow each other."""

import pytest
from msgspec import Raw

from memoryd.labels import Label
from memoryd.lessons.pairing import Gathering, Pairing, short, told
from memoryd.lessons.passage import Around, Mark, about, passage
from memoryd.records import About, Called, Record, Returned

PLAIN = Label(0, False)


@pytest.mark.parametrize(
    ("tool", "args", "found"),
    [
        ("Bash", {"command": "make x", "description": "Make it"}, "make x"),
        ("exec_command", {"cmd": "ls -l", "workdir": "/w"}, "ls -l"),
        ("shell", {"command": ["bash", "-lc", "make x"]}, "make x"),
        ("shell", {"command": ["sh", "-c", "make"]}, "make"),
        ("shell", {"command": ["sh", "-c"]}, "sh -c"),
        ("shell", {"command": ["git", "status"]}, "git status"),
        ("shell", {"command": ["make", "-x", "all"]}, "make -x all"),
        ("shell", {"command": ["make", 3]}, "make 3"),
        ("shell", {"command": 5, "note": "d"}, "5 d"),
        ("shell", {"command": ""}, ""),
        ("shell", "raw words", "raw words"),
        ("Edit", {"command": "make", "path": "b"}, "make b"),
        ("Edit", {"a": "x", "n": 3}, "x 3"),
        ("Edit", {"a": ["x", {"k": "y"}], "b": True}, "x y"),
        ("Edit", {"a": "x", "b": True}, "x"),
        ("Edit", ["x", "y"], "x y"),
        ("Edit", ["x", 2], "x 2"),
        ("Edit", None, ""),
        ("Login", {"user": "ada", "password": "correct-horse-9"}, "ada <redacted>"),
    ],
)
def test_a_call_was_about_what_it_runs_or_about_all_its_values(tool, args, found):
    assert about(tool, args) == found


def test_of_a_very_long_value_only_the_beginning_is_looked_at():
    assert about("Write", {"content": "x" * 5_000}) == "x" * 4_000


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a b", "a b"),
        ("x" * 199, "x" * 199),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        ("a  b", "a b"),
        (" a", "a"),
        ("a ", "a"),
        ("a\nb\tc", "a b c"),
        ("é" * 200, "é" * 200),
        ("é" * 201, "é" * 199 + "…"),
        ("a\n" * 100, ("a " * 100).strip()),
        ("a\n" * 101, "a " * 99 + "a…"),
        (" " * 499 + "a b", "a b"),
        (" " * 500, ""),
        (" " * 600 + "\n" + "a b", "a b"),
        ("a b\ud800", "a b?"),
        ("x" * 200 + "\n" + " " * 299 + "y", "x" * 199 + "…"),
        ("x" * 190 + "\n" + " " * 400 + "y" * 20, "x" * 190 + " " + "y" * 8 + "…"),
    ],
)
def test_a_text_becomes_one_line_of_at_most_two_hundred_characters(text, found):
    assert short(text) == found


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"stderr":"e","stdout":"o","odd":"x"}', "e\no"),
        (b'{"content":[{"text":"a"},{"text":"b"}]}', "a\nb"),
        (b'{"odd":"x"}', ""),
        (b"7", ""),
        (b"", ""),
        (b'{"output":{"output":{"output":{"output":{"output":"deep"}}}}}', ""),
        (b'{"output":{"output":{"output":{"output":"deep"}}}}', "deep"),
        (b'[[{"text":"x"}]]', "x"),
        (b'[[[[{"text":"x"}]]]]', ""),
        (b"{bad", ""),
        (b'"{\\"output\\":\\"\\\\ud800\\"}"', '{"output":"\\ud800"}'),
        (b'"{\\"output\\":{\\"output\\":{\\"output\\":\\"x\\"}}}"', "x"),
        (b'"{\\"output\\": 1"', '{"output": 1'),
        (b'"{\\"odd\\": 1}"', '{"odd": 1}'),
        (b'{"output":"{\\"output\\":\\"x\\"}"}', '{"output":"x"}'),
    ],
)
def test_what_a_result_told_is_found_in_every_form_that_tells_it(raw, found):
    assert told(Raw(raw)) == found


def of(*entries, first=0):
    """Return a passage of records from `first`: a name is a call of it, a name after a minus its answer."""
    calls, results, times, after = [], [], {}, {}
    for n, entry in enumerate(entries, first):
        times[n], after[n] = 1_000 + n, PLAIN
        if entry.startswith("-"):
            results.append((n, Returned(0, entry[1:], ok=True)))
        else:
            item = Called(0, entry, "Bash", {"command": f"run {n}"})
            calls.append((Record(n, times[n], [item]), item, PLAIN))
    return passage(("s", "/p"), calls, results, Around(times, after))


def pairs(*passages, apart=False):
    """Return of each answered call its record and what it was about; `apart`: each passage by itself."""
    pairing, together, found = Pairing("log", "s"), Gathering(), []
    for one in passages:
        pairing.gather(together, one)
        if apart:
            found += together.seen()
            together = Gathering()
    found += together.seen()
    return [(seen.n, seen.summary) for seen in found]


@pytest.mark.parametrize("apart", [False, True])
def test_a_result_answers_the_last_call_of_its_id_and_no_second_one(apart):
    first, again = of("b", "a"), of("a", "-a", first=2)
    late = of("-a", "-b", first=4)
    assert pairs(first, again, late, apart=apart) == [(2, "run 2"), (0, "run 0")]


@pytest.mark.parametrize("apart", [False, True])
def test_a_call_that_waits_is_forgotten_when_another_one_takes_its_id(apart):
    assert pairs(of("a"), of("a", first=1), of("-a", "-a", first=2), apart=apart) == [(1, "run 1")]


def test_calls_of_many_passages_keep_what_they_were_about_apart():
    one, other = Pairing("one", "s"), Pairing("other", "s")
    together = Gathering()
    one.gather(together, of("x", "a"))
    other.gather(together, of("y", "a", "b"))
    one.gather(together, of("-a", first=2))
    other.gather(together, of("-b", "-y", first=3))
    assert together.answers == 3
    assert [(seen.log, seen.summary) for seen in together.seen()] == [
        ("one", "run 1"),
        ("other", "run 2"),
        ("other", "run 0"),
    ]
    assert {call: open_.summary for call, open_ in one.waiting.items()} == {"x": "run 0"}
    assert {call: open_.summary for call, open_ in other.waiting.items()} == {"a": "run 1"}


def test_a_result_that_tells_nothing_answers_its_call_and_is_not_seen():
    silent = [(1, Returned(0, "a", ok=None))]
    call = Called(0, "a", "Bash", {"command": "x"})
    around = Around({0: 1, 1: 2}, {0: PLAIN, 1: PLAIN})
    calls = [(Record(0, 1, [call]), call, PLAIN)]
    whole = passage(("s", ""), calls, silent, around)
    assert pairs(whole, of("-a", first=2)) == []
    assert (
        pairs(passage(("s", ""), calls, [], around), passage(("s", ""), [], silent, around)) == []
    )


@pytest.mark.parametrize(
    ("told_of", "whose"),
    [
        ([About(session="one", project="/a"), About(session="two", project="/b")], ("one", "/a")),
        ([About(session="one"), About(session="two", project="/b")], ("two", "/b")),
        ([About(project="/a"), About(session="two")], ("two", "/a")),
        ([None, About(agent="x")], ("log", "/p")),
    ],
)
def test_the_first_records_that_tell_say_whose_log_it_is(told_of, whose):
    pairing = Pairing("log", "log", "/p")
    for n, one in enumerate(told_of):
        pairing.feed(Record(n, None, [], one), [], PLAIN, 0)
    assert (pairing.session, pairing.project) == whose


def test_a_call_of_which_nothing_is_read_later_keeps_nothing():
    calls = [Called(0, name, "Read", {"path": name}) for name in ("a", "b", "c")]
    records = [Record(n, None, [call]) for n, call in enumerate(calls)]
    found = passage(
        ("s", ""),
        [(record, call, PLAIN) for record, call in zip(records, calls, strict=True)],
        [(3, Returned(0, "a", ok=True)), (4, Returned(0, "b", ok=False, told=Raw(b'"no"')))],
        Around(dict.fromkeys(range(5)), dict.fromkeys(range(5), PLAIN)),
    )
    assert found.given == ["", "b", "c"]
    assert found.open == [2]
    assert [one[3] for one in found.answers] == [None, Raw(b'"no"')]


def test_what_waits_is_cleaned_and_found_again_by_its_odd_id():
    pairing, together = Pairing("log", "s"), Gathering()
    pairing.gather(together, of("a\ud800"))
    together.seen()
    assert list(pairing.waiting) == ["a?"]
    pairing.gather(together := Gathering(), of("-a\ud800", first=1))
    assert [seen.n for seen in together.seen()] == [0]


def test_a_passage_tells_how_much_it_holds_and_where_it_begins():
    marks = [Mark(1, "quiet", 5)]
    empty = passage(("s", ""), [], [], Around({}, {}), (marks, None))
    assert (empty.size, empty.first) == (1, 1)
    assert (of("a", "-a", "b", first=4).size, of("a", first=4).first) == (3, 4)
    assert of("-a", "b", first=4).first == 4
    assert empty.between(0, 1).marks == []
    assert empty.between(1, 2).marks == marks


def test_a_part_of_a_passage_answers_calls_that_stand_before_it():
    whole = of("a", "-a", "b", "-b")
    assert pairs(of("a"), whole.between(1, 4)) == [(0, "run 0"), (2, "run 2")]
    assert pairs(whole.between(0, 1), whole.between(1, 3), whole.between(3, 9), apart=True) == [
        (0, "run 0"),
        (2, "run 2"),
    ]
    assert of("-x", "a", "-a", "b", "c").between(0, 4) == of("-x", "a", "-a", "b")
    assert of("a", "b", "c").between(0, 2).open == [0, 1]
    assert whole.between(1, 4).plain is False
    assert whole.between(2, 4).plain is True


def test_of_what_went_well_no_text_is_kept_and_no_project_is_no_name():
    call = Called(0, "a", "Edit", {})
    back = [(1, Returned(0, "a", ok=True, told=Raw(b'"x"')))]
    around = Around({0: 1, 1: 2}, {0: PLAIN, 1: PLAIN})
    found = passage(("s", None), [(Record(0, 1, [call]), call, PLAIN)], back, around)
    assert (found.answers[0][3], found.project) == (None, "")


SAID = Raw(b'"make: *** Error 2"')


def seen_of(tool, args, ok, *, called_at=5, answered_at=7, told_of=SAID):
    """Return what is seen of a call that stands in one passage and its result that stands in the next."""
    pairing, together = Pairing("log", "s"), Gathering()
    call = Called(3, "a", tool, args)
    around = Around({1: called_at, 2: answered_at}, {1: PLAIN, 2: Label(1, False)}, {2: 9})
    pairing.gather(
        together, passage(("s", "/p"), [(Record(1, 5, [call]), call, PLAIN)], [], around)
    )
    back = [(2, Returned(0, "a", ok=ok, told=told_of))]
    pairing.gather(together, passage(("s", "/p"), [], back, around), 1_000)
    (found,) = together.seen()
    return found


@pytest.mark.parametrize(
    ("tool", "args", "ok", "text"),
    [
        ("Edit", {"a": "x"}, False, "make: *** Error 2"),
        ("Bash", {"command": "cat x"}, False, "make: *** Error 2"),
        ("Bash", {"command": "make"}, None, "make: *** Error 2"),
        ("Bash", {"command": "cat x"}, None, ""),
        ("Edit", {"a": "x"}, None, ""),
        ("Bash", {"command": "make"}, True, ""),
    ],
)
def test_a_result_is_read_where_it_failed_or_a_command_may_have(tool, args, ok, text):
    assert seen_of(tool, args, ok).text == text


def test_a_call_is_told_in_short_under_its_tools_clean_name():
    assert seen_of("Bash", {"command": "x" * 300}, True).summary == "x" * 199 + "…"
    assert seen_of("B\ud800", {"a": "x"}, True).tool == "B?"
    pairing, together = Pairing("log", "s"), Gathering()
    call = Called(0, "a", "B\ud800", {})
    around = Around({0: 1}, {0: PLAIN})
    calls = [(Record(0, 1, [call]), call, PLAIN)]
    pairing.gather(together, passage(("s", ""), calls, [(0, Returned(1, "a", ok=True))], around))
    assert [seen.tool for seen in together.seen()] == ["B?"]
    assert seen_of("Read", {"path": "x"}, True).summary == ""
    assert seen_of("Read", {"path": "x"}, False).summary == "x"


def test_a_call_has_the_time_of_its_result_else_its_own_else_the_newest_before():
    assert seen_of("Bash", {}, True).at == 7
    assert seen_of("Bash", {}, True, answered_at=None).at == 5
    assert seen_of("Bash", {}, True, answered_at=None, called_at=None).at == 9
