"""Recall finds what people write to the letter, and any part of what is written without spaces."""

import re
from collections.abc import Iterator

import pytest

from memoryd import recall
from memoryd.index.search import Reader
from memoryd.recall import Scope
from tests.support.shelf import CLASSES, NEVER, Line, shelf

ALL = Scope(CLASSES.top)


def found_by(reader: Reader, query: str, **arguments: object) -> list[str]:
    """Return the rows that answer, best first."""
    answer = recall.recall(reader, ALL, {"query": query, **arguments}, NEVER)
    return [str(hit["snippet"]) for hit in answer["hits"]]


def spread(*lines: str) -> list[Line]:
    """Lines, each in a log of its own."""
    return [Line(text, log=f"l{at:03}", ts=at) for at, text in enumerate(lines)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("a_b_c", "call a_b_c() now"),
        ("fooBar", "let fooBar = 1"),
        ("foobar", "let fooBar = 1"),
        ("src/main.ts", "edit src/main.ts please"),
        ("main.ts", "edit src/main.ts please"),
        ("KeyError: 'x'", "it says KeyError: 'x' again"),
        ("kebab-case", "in kebab-case style"),
        ("kebab case", "in kebab-case style"),
        ("Ubersicht", "die Übersicht zeigt"),
        ("Übersicht", "die Übersicht zeigt"),
        ("zeig*", "die Übersicht zeigt"),
        ('"now call"', None),
        ('"call a_b_c"', "call a_b_c() now"),
    ],
)
def test_identifiers_accents_prefixes_and_phrases_find_their_row(query, found):
    rows = (
        "call a_b_c() now",
        "let fooBar = 1",
        "edit src/main.ts please",
        "it says KeyError: 'x' again",
        "in kebab-case style",
        "die Übersicht zeigt",
        *(f"filler {number} c b a src ts x in case now" for number in range(8)),
    )
    with shelf(spread(*rows)) as reader:
        hits = found_by(reader, query)
    assert hits[:1] == ([found] if found else [])


UUID = "6513270e-269e-4d37-b2a7-4de452e6b438"
IDENTIFIERS = {
    "a_b_c": "calls a_b_c() twice",
    "fooBar": "where fooBar is set",
    "src/main.ts": "then src/main.ts changed",
    "KeyError: 'x'": "it says KeyError: 'x' again",
    "error[E0502]": "rustc gives error[E0502] there",
    "TS2304": "tsc gives TS2304 there",
    "ERR_CONNECTION_RESET": "curl gives ERR_CONNECTION_RESET there",
    "ECONNREFUSED 127.0.0.1:5432": "node gives ECONNREFUSED 127.0.0.1:5432 there",
    UUID: f"the session {UUID} went",
    "v1.22.3": "since v1.22.3 it works",
    "std::sync::Arc": "wrap it in std::sync::Arc first",
    "--no-verify": "push it with --no-verify now",
    "9f3c2e1": "revert 9f3c2e1 please",
    "$HOME/.config/x.toml": "look into $HOME/.config/x.toml first",
}
"""What people look for to the letter, and the one row that has it."""


@pytest.fixture(scope="module")
def identifiers() -> Iterator[Reader]:
    """An index of each, of rows that hold only its pieces, and of common words."""
    decoys = []
    for query in IDENTIFIERS:
        pieces = re.findall(r"\w+", query.replace("_", " "))
        decoys += [
            " ".join(reversed(pieces[len(pieces) > 2 :])),
            f"{pieces[0]} there please again {pieces[-1]}",
        ]
    decoys = [text for text in decoys if not any(q.lower() in text.lower() for q in IDENTIFIERS)]
    common = ["it stands there please again"] * 60
    with shelf(spread(*decoys, *IDENTIFIERS.values(), *common)) as reader:
        yield reader


@pytest.mark.parametrize("beside", ["", " there please again"])
@pytest.mark.parametrize("group", ["record", "session"])
@pytest.mark.parametrize("query", list(IDENTIFIERS))
def test_an_identifier_comes_before_rows_that_hold_only_its_pieces(
    identifiers, query, group, beside
):
    assert found_by(identifiers, query + beside, group=group)[0] == IDENTIFIERS[query]


@pytest.mark.parametrize("part", ["6513270e", "6513*", "4de452e6b438", "269e-4d37", UUID.upper()])
def test_a_part_of_a_uuid_finds_it(part):
    with shelf(spread(f"the session {UUID} went", "269e and 4d37", *["filler"] * 9)) as reader:
        assert found_by(reader, part)[0] == f"the session {UUID} went"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("日本語", "彼は日本語を話す"),
        ("語", "彼は日本語を話す"),
        ("す", "彼は日本語を話す"),
        ("ログイン", "ユーザーがﾛｸﾞｲﾝできない"),
        ("数据库连接", "修复数据库连接超时的问题"),
        ("如何修复数据库连接超时", "修复数据库连接超时的问题"),
        ("ไทย", "ฉันพูดภาษาไทยได้"),
        ("ภาษา", "ฉันพูดภาษาไทยได้"),
        ("한국어", "저는 한국어를 공부합니다"),
        ("ПРИВЕТ", "скажи привет миру"),
        ("приве*", "скажи привет миру"),
        ("ВЕЧЕРОМ", "наряди елку вечером"),
        ("naïve", "a naive cafe"),
        ("café", "a naive cafe"),
        ("v2日本", "部署v2日本节点"),
        ("ไม่ได้", "เซิร์ฟเวอร์เชื่อมต่อไม่ได้"),
        ("ошибка", "Ошибка при запуске"),
        ("Ñandú", "el nandu corre"),
        ("resume", "the résumé is late"),
        ("本日", None),
    ],
)
def test_any_part_of_a_sentence_is_found_in_scripts_without_spaces(query, found):
    rows = (
        "彼は日本語を話す",
        "ユーザーがﾛｸﾞｲﾝできない",
        "修复数据库连接超时的问题",
        "ฉันพูดภาษาไทยได้",
        "저는 한국어를 공부합니다",
        "скажи привет миру",
        "наряди елку вечером",
        "a naive cafe",
        "部署v2日本节点",
        "เซิร์ฟเวอร์เชื่อมต่อไม่ได้",
        "Ошибка при запуске",
        "el nandu corre",
        "the résumé is late",
        *["filler"] * 9,
    )
    with shelf(spread(*rows)) as reader:
        mode = "smart" if found else "all"
        assert found_by(reader, query, mode=mode)[:1] == ([found] if found else [])
