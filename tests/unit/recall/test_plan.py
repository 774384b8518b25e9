import pytest

from memoryd.index.figures import Term
from memoryd.recall import plan as planning
from memoryd.recall.plan import NEWEST, Weighed, driven, plan, shares

ROWS = 100_000
MOST = driven(ROWS, wide=False)


def word(name: str, *held: int) -> Weighed:
    return Weighed(Term(f'"{name}"', (name,)), held)


def test_rare_words_drive_and_all_words_score():
    made = plan([word("common", 20_000), word("rare", 10), word("mid", 900)], "smart", ROWS)
    assert made.match == '("rare" OR "mid") AND ("rare" OR "mid" OR "common")'
    assert (made.first, made.most, made.late) == (2, 910, 0)
    assert len(made.weights) == 3
    assert list(made.weights) == sorted(made.weights, reverse=True)
    assert (made.newest, made.partial, made.wider) == (0, False, None)


@pytest.mark.parametrize(
    ("rows", "terms", "most"),
    [
        (1_000_000, 3, 10_000),
        (1_000_000, 12, 10_000),
        (1_000_000, 24, 20_000),
        (1_000_000, 32, 26_666),
        (500_000, 32, 14_285),
        (100_000, 32, 2_857),
        (1_000, 32, 2_000),
    ],
)
def test_a_long_question_drives_more_rows_of_a_large_memory(rows, terms, most):
    words = [word(f"w{at:02}", most // terms) for at in range(terms)]
    made = plan([*words, word("last", most // terms + most % terms + 1)], "smart", rows)
    assert planning.stretched(driven(rows, wide=False), rows, terms) == most
    assert made.most <= most
    assert made.most + most // terms + most % terms + 1 > most


def test_the_commonest_words_are_not_walked_but_counted_in_the_best_rows():
    walked = planning.WALKED
    words = [word("rare", 10), word("near", walked), word("next", walked + 1), word("all", 10**6)]
    made = plan(words, "smart", 10 * ROWS)
    assert made.match == '("rare") AND ("rare" OR "near")'
    assert [term.tokens[0] for term in made.terms] == ["rare", "near", "next", "all"]
    assert (made.first, made.late, made.listed) == (1, 2, 2)
    assert len(made.weights) == 4


def test_all_words_can_be_asked_to_be_walked():
    made = plan([word("rare", 10), word("all", 900_000)], "smart", 10 * ROWS, walk_all=True)
    assert (made.match, made.late) == ('("rare") AND ("rare" OR "all")', 0)


def test_a_word_that_drives_beside_none_but_late_ones_needs_no_second_group():
    made = plan([word("rare", 10), word("all", 900_000)], "smart", 10 * ROWS)
    assert (made.match, made.first, made.late) == ('"rare"', 0, 1)


@pytest.mark.parametrize(
    "term",
    [
        Term('"two words"', ("two", "words")),
        Term('"begun" *', ("begun",), prefix=True),
        Term('grams : "ab"', ("ab",), column=1),
    ],
)
def test_what_is_not_one_word_of_the_text_is_always_walked(term):
    made = plan([word("rare", 10), Weighed(term, (900_000,))], "smart", 10 * ROWS)
    assert (made.late, made.match.count(term.match)) == (0, 1)


def test_words_that_are_all_rare_need_no_second_group():
    made = plan([word("one", 5), word("two", 7)], "smart", ROWS)
    assert (made.match, made.first) == ('"one" OR "two"', 0)


def test_words_drive_while_their_rows_together_are_few_enough():
    made = plan([word("a", MOST // 2), word("b", MOST // 2), word("c", MOST // 2)], "smart", ROWS)
    assert made.match.startswith('("a" OR "b") AND')


@pytest.mark.parametrize(("frequency", "drives"), [(2 * MOST, True), (2 * MOST + 1, False)])
def test_the_rarest_word_may_drive_twice_as_many_alone(frequency, drives):
    made = plan([word("a", frequency), word("b", 900_000)], "smart", ROWS)
    assert (made.match == '"a"') == drives
    assert bool(made.newest) != drives


def test_where_nothing_drives_the_three_rarest_together_are_tried_before_any():
    names = ("d", "a", "c", "b")
    frequencies = (90_000, 60_000, 80_000, 70_000)
    made = plan([word(n, f) for n, f in zip(names, frequencies, strict=True)], "smart", ROWS)
    assert made.match == '("a" AND "b" AND "c") AND ("a" OR "b" OR "c" OR "d")'
    assert (made.first, made.newest, made.partial) == (3, NEWEST, True)
    assert made.wider.match == '"a" OR "b" OR "c" OR "d"'
    assert (made.wider.newest, made.wider.partial) == (NEWEST, False)


def test_one_common_word_alone_is_ranked_among_the_newest():
    made = plan([word("a", 60_000)], "smart", ROWS)
    assert (made.match, made.newest, made.wider) == ('"a"', NEWEST, None)


def test_words_that_no_row_holds_are_left_out():
    made = plan([word("none", 0), word("a", 3)], "smart", ROWS)
    assert made.match == '"a"'
    assert plan([word("none", 0)], "smart", ROWS) is None


def test_of_many_words_the_rarest_are_looked_for():
    made = plan([word(f"w{number}", 1 + number) for number in range(100)], "smart", ROWS)
    assert made.match.count("OR") == planning.MOST_TERMS - 1
    assert '"w0"' in made.match
    assert '"w99"' not in made.match


def test_only_classes_where_a_row_can_match_are_looked_at():
    made = plan(
        [word("a", 3, 0, 0), word("b", 0, 0, 5), word("c", 9_999, 60_000, 1)], "smart", ROWS
    )
    assert made.levels == (0, 2)
    assert plan([word("a", 3, 1, 0), word("b", 0, 2, 5)], "all", ROWS).levels == (1,)


def test_mode_all_asks_for_every_word_and_gives_up_if_one_is_nowhere():
    made = plan([word("a", 5), word("b", 60_000)], "all", ROWS)
    assert (made.match, made.newest) == ('"a" AND "b"', 0)
    assert plan([word("a", 50_000), word("b", 60_000)], "all", ROWS).newest == NEWEST
    assert plan([word("a", 5), word("none", 0)], "all", ROWS) is None


def test_a_phrase_is_one_term_like_any_other():
    phrase = Weighed(Term('"two words"', ("two", "word")), (4,))
    assert plan([phrase], "phrase", ROWS).match == '"two words"'


@pytest.mark.parametrize(
    ("rows", "most", "wide"),
    [
        (0, 2_000, 9_000),
        (70_000, 2_000, 9_000),
        (140_000, 4_000, 9_000),
        (350_000, 10_000, 10_000),
        (10**7, 10_000, 20_000),
    ],
)
def test_the_budget_grows_with_the_memory_between_its_bounds(rows, most, wide):
    assert driven(rows, wide=False) == most
    assert driven(rows, wide=True) == wide


def test_more_rows_are_driven_where_many_of_them_are_not_told():
    words = [word("one", 1_500), word("two", 1_500), word("all", 40_000)]
    assert plan(words, "smart", 50_000).first == 1
    assert plan(words, "smart", 50_000, wide=True).first == 2


def test_newest_rows_are_shared_out_by_the_sizes_of_classes():
    assert shares([600, 300, 100], 2_000) == [1_200, 600, 200]
    assert shares([10**6, 1, 0], 2_000) == [1_999, 1, 1]
    assert shares([5, 5], 0) == [0, 0]
    assert shares([0, 0], 10) == [1, 1]
