import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import BadRequest, TooLarge
from memoryd.index.search import TOKENIZER
from memoryd.recall.query import MOST_BYTES, MOST_PHRASE, MOST_TERMS, MOST_WEIGHED, parse

_TABLE = apsw.Connection(":memory:")
_TABLE.execute(
    f"CREATE VIRTUAL TABLE t USING fts5(text, grams, tokenize = '{' '.join(TOKENIZER)}')"
)
_TOKENIZER = _TABLE.fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))


def tokens(text: bytes) -> list[tuple[int, int, str]]:
    return _TOKENIZER(text, apsw.FTS5_TOKENIZE_QUERY, None, include_colocated=False)


def strings(text: str, mode: str = "smart") -> list[str]:
    return [term.match for term in parse(text, mode, tokens)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("retry backoff", ['"retry"', '"backoff"']),
        ("kebab-case", ['"kebab-case"']),
        ("a:b", ['"a:b"']),
        ('an open "quote', ['"an"', '"open"', '"quote"']),
        ('an "exact phrase" here', ['"an"', '"exact phrase"', '"here"']),
        ("“typographic quotes”", ['"typographic quotes"']),
        ('""', None),
        ("*", None),
        ("***", None),
        ("NEAR(a b)", ['"NEAR(a"', '"b"']),
        ("foo(", ['"foo"']),
        ("AND", ['"AND"']),
        ("a AND NOT b OR c", ['"a"', '"AND"', '"NOT"', '"b"', '"OR"', '"c"']),
        ("", None),
        (" \n\t ", None),
        ("🎉", None),
        ("ship 🎉 it", ['"ship"', '"it"']),
        ("nul\0byte", ['"nul"', '"byte"']),
        ("half \ud83d pair", ['"half"', '"pair"']),
        ("line\nfeed", ['"line"', '"feed"']),
        ("a_b_c", ['"a_b_c"']),
        ("fooBar", ['"fooBar"']),
        ("src/main.ts", ['"src/main.ts"']),
        ("KeyError: 'x'", ['"KeyError: \'x"']),
        ("note: it is 'x'", ['"note"', '"it"', '"is"', '"x"']),
        ("^first", ['"first"']),
        ("text:word", ['"text:word"']),
        ("-not +plus", ['"not"', '"plus"']),
        ("{a b}: c", ['"a"', '"b"', '"c"']),
        ("it's", ['"it\'s"']),
        ('say""twice', ['"say"', '"twice"']),
        ("deploy*", ['"deploy" *']),
        ("src/ma*", ['"src/ma"']),
        ("src/mai*", ['"src/mai" *']),
        ("de*", ['"de"']),
        ("*deploy", ['"deploy"']),
        ("de*ploy", ['"de*ploy"']),
        ("retry Retry retrying", ['"retry"']),
        ("Überprüfung uberprufung", ['"Überprüfung"']),
        ("日本語", ['grams : "日本 本語"']),
        ("'; DROP TABLE ft_0; --", ['"DROP"', '"TABLE"', '"ft_0"']),
    ],
)
def test_text_is_words_and_never_syntax(text, expected):
    if expected is None:
        with pytest.raises(BadRequest, match="no word"):
            parse(text, "smart", tokens)
    else:
        assert strings(text) == expected
        _TABLE.execute("SELECT * FROM t WHERE t MATCH ?", (" OR ".join(expected),))


def test_words_become_the_tokens_of_the_index():
    (term,) = parse("Überprüfungen", "smart", tokens)
    assert term.tokens == ("uberprufungen",)
    assert [term.tokens for term in parse("running flies", "smart", tokens)] == [("run",), ("fli",)]


def test_what_is_written_in_one_piece_falls_back_to_its_words_and_a_quoted_phrase_does_not():
    written, quoted = parse('src/main.ts "src main rs"', "smart", tokens)
    assert written.tokens == ("src", "main", "ts")
    assert [part.match for part in written.parts] == ['"src"', '"main"', '"ts"']
    assert quoted.parts == ()


def test_what_is_written_without_spaces_is_a_phrase_of_pairs_and_falls_back_to_them():
    (term,) = parse("接続エラー", "smart", tokens)
    assert (term.match, term.column) == ('grams : "接続 続エ エラ ラー"', 1)
    assert [part.match for part in term.parts] == [f'grams : "{pair}"' for pair in term.tokens]
    assert strings("犬") == ['grams : "犬" *']
    assert strings("テストrun") == ['grams : "テス スト ト run"']
    assert strings("src/日本.ts") == ['grams : "日本"', '"src"', '"ts"']
    assert strings('"接続エラー"', "phrase") == ['grams : "接続 続エ エラ ラー"']
    (quoted,) = parse('"接続エラー"', "smart", tokens)
    assert quoted.parts == ()


def test_mode_phrase_makes_one_phrase_of_everything():
    assert strings('the "quick" fox: jumps', "phrase") == ['"the  quick  fox: jumps"']
    assert strings("quick fox*", "phrase") == ['"quick fox" *']


def test_a_phrase_too_long_is_refused_with_a_remedy():
    strings(" ".join(["w"] * MOST_PHRASE), "phrase")
    with pytest.raises(BadRequest, match=f"{MOST_PHRASE} words") as caught:
        strings(" ".join(["w"] * (MOST_PHRASE + 1)), "phrase")
    assert caught.value.remedy


def test_mode_all_takes_as_many_words_as_it_can_ask_for():
    words = [f"w{number}" for number in range(MOST_TERMS + 1)]
    assert len(strings(" ".join(words[:-1]), "all")) == MOST_TERMS
    with pytest.raises(BadRequest, match=f"{MOST_TERMS + 1} words") as caught:
        strings(" ".join(words), "all")
    assert "smart" in caught.value.remedy


def test_two_kilobytes_of_prose_are_a_question_in_mode_smart():
    text = " ".join(f"w{number}" for number in range(400))[:2_048]
    assert len(strings(text)) == MOST_WEIGHED


def test_four_kilobytes_are_the_most_s19():
    assert len(strings("x" * MOST_BYTES)) == 1
    for text in ("x" * (MOST_BYTES + 1), "é" * (MOST_BYTES // 2 + 1), "w " * MOST_BYTES):
        with pytest.raises(TooLarge, match=str(MOST_BYTES)) as caught:
            strings(text)
        assert caught.value.remedy


def test_one_endless_piece_becomes_several_phrases():
    lengths = [len(term.tokens) for term in parse("a." * 1_000 + "z", "smart", tokens)]
    assert max(lengths) == MOST_PHRASE


@given(
    st.text(st.characters(exclude_categories=()), max_size=300), st.sampled_from(("smart", "all"))
)
def test_no_text_at_all_becomes_an_error_of_sqlite_s19(text, mode):
    try:
        terms = parse(text, mode, tokens)
    except BadRequest:
        return
    for term in terms:
        assert term.tokens
        _TABLE.execute("SELECT * FROM t WHERE t MATCH ?", (term.match,)).fetchall()
        inside = term.match.removesuffix(" *").removeprefix("grams : ")
        assert tuple(word for _, _, word in tokens(inside.encode())) == term.tokens


@given(st.text(st.sampled_from("ab*\"()'-: ^{}[]+~&|!AND OR NOT NEAR"), max_size=60))
def test_operators_of_fts5_are_never_read_as_such_s17(text):
    try:
        terms = parse(text, "smart", tokens)
    except BadRequest:
        return
    joined = " OR ".join(term.match for term in terms)
    _TABLE.execute("SELECT * FROM t WHERE t MATCH ?", (joined,)).fetchall()
