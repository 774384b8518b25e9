"""What a reader is told is a function of what it may see: hidden rows change no byte of any answer.

Each example builds the same index with 0, 1 and 500 hidden rows that hold the same words, in the same logs
and in others, and compares everything that can be asked. Hidden by class, or by the projects of a socket.
"""

from collections.abc import Callable, Iterator

import msgpack
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from memoryd import recall
from memoryd.errors import MemorydError
from memoryd.index import search
from memoryd.index.search import Reader
from memoryd.recall import Scope
from memoryd.recall.scope import POLICIES
from memoryd.records import Kind
from tests.support.shelf import CLASSES, NEVER, Line, place_id, shelf

WORDS = (
    "merger",
    "alpha",
    "deploy",
    "token",
    "src/main.ts",
    "retry_limit",
    "merging",
    "Überprüfung",
    "接続エラー",
)
PROJECTS = ("web", "site", None)
HIDDEN_PROJECTS = ("outside", "web2")
GAP = 1_000
FEW = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
times = st.none() | st.sampled_from((0, 1, 2, 3, 1_500)).map(lambda hour: 3_600_000 * hour)


@st.composite
def lines(draw: st.DrawFn, levels: range, projects: tuple[str | None, ...], prefix: str) -> Line:
    number = draw(st.integers(0, 3))
    return Line(
        text=draw(texts),
        level=draw(st.sampled_from(levels)),
        log=f"{prefix}{number}.jsonl",
        kind=draw(st.sampled_from(Kind)),
        untrusted=draw(st.booleans()),
        ts=draw(times),
        tool=draw(st.sampled_from((None, "Bash", "Read"))),
        session=f"{prefix}{number // 2}",
        project=projects[number % len(projects)],
    )


def numbered(found: list[Line]) -> list[Line]:
    """Number lines with room between them, so that hidden ones find a place inside the same logs."""
    return [line._replace(n=GAP * (at + 1)) for at, line in enumerate(found)]


def among(seen: list[Line], hidden: list[Line], count: int, places: list[int]) -> list[Line]:
    """Return `seen` in its order with `count` hidden lines, over and over, read in between."""
    mixed = list(seen)
    for at in range(count):
        line = hidden[at % len(hidden)]
        place = places[at % len(places)] % (len(mixed) + 1)
        mixed.insert(place, line._replace(n=at + 1 + GAP * (at % 3)))
    return mixed


QUESTIONS = (
    *(
        {"query": query, "mode": mode, "order": order, "group": group, "limit": 3}
        for query in (
            "merger OR alpha",
            "merg* token",
            '"alpha deploy"',
            "src/main.ts retry_limit nothing",
        )
        for mode in ("smart", "all")
        for order in ("relevance", "newest", "oldest")
        for group in ("record", "session")
    ),
    {"query": "uberprufung", "mode": "phrase"},
    *({"query": "続エラ alpha", "group": group} for group in ("record", "session")),
    {"query": "merger", "kinds": ["owner", "note"], "text": True},
    {"query": "merger alpha", "project": "w*", "budget_tokens": 60},
    {"query": "token", "session": "s0", "snippet_tokens": 8},
    {"query": "token", "tool": "B*", "source": "native"},
    {"query": "alpha", "since": 1, "until": "1970-01-01T02:00:00Z"},
    {"query": "alpha", "untrusted": "owner-only"},
    {"query": "alpha", "untrusted": "exclude"},
    {"query": "*"},
    {"query": "alpha", "cursor": "forged"},
    {"query": "alpha", "kinds": ["secret"]},
)
LISTINGS = (
    {},
    {"limit": 1},
    {"project": "web*"},
    {"kinds": ["owner"]},
    {"since": 1},
    {"cursor": "x"},
)


def everything(reader: Reader, scope: Scope, ids: list[str]) -> Iterator[object]:
    """Yield every answer and refusal that this reader can get."""
    for question in QUESTIONS:
        yield from pages(recall.recall, reader, scope, question)
    for listing in LISTINGS:
        yield from pages(recall.sessions, reader, scope, listing)
        yield from pages(recall.projects, reader, scope, listing)
    for name in (*ids, "a" * 20, "no id"):
        yield from pages(recall.get, reader, scope, {"id": name, "before": 2, "after": 2})
    yield recall.visible_rows(reader, scope, NEVER)


def pages(method: Callable, reader: Reader, scope: Scope, asked: dict) -> Iterator[object]:
    while True:
        try:
            answer = method(reader, scope, asked, NEVER)
        except MemorydError as error:
            yield (error.code, error.message, error.remedy, error.data)
            return
        yield answer
        if answer.get("cursor") is None:
            return
        asked = asked | {"cursor": answer["cursor"]}


def told(lines: list[Line], scope: Scope, ids: list[str]) -> bytes:
    with shelf(lines) as reader:
        return b"".join(map(msgpack.packb, everything(reader, scope, ids)))


def check(data: st.DataObject, scope: Scope, hidden: st.SearchStrategy[Line]) -> None:
    seen = numbered(
        data.draw(st.lists(lines(range(scope.level + 1), PROJECTS, "s"), min_size=12, max_size=40))
    )
    unseen = data.draw(st.lists(hidden, min_size=1, max_size=6))
    places = data.draw(st.lists(st.integers(0, 600), min_size=1, max_size=6))
    many = among(seen, unseen, 500, places)
    ids = [place_id(line) for line in (*seen[:4], *[line for line in many if line not in seen][:3])]
    alone = told(seen, scope, ids)
    assert told(among(seen, unseen, 1, places), scope, ids) == alone
    assert told(many, scope, ids) == alone


def check_level(data: st.DataObject, level: int) -> None:
    above = range(level + 1, len(CLASSES))
    scope = Scope(level, data.draw(st.sampled_from(POLICIES)), owner=data.draw(st.booleans()))
    check(data, scope, lines(above, PROJECTS, "s") | lines(above, PROJECTS, "t"))


@pytest.mark.parametrize("level", range(CLASSES.top))
@settings(FEW, max_examples=4)
@given(data=st.data())
def test_rows_above_a_reader_change_no_byte_of_what_it_is_told(data, level):
    check_level(data, level)


@pytest.mark.slow
@pytest.mark.parametrize("level", range(CLASSES.top))
@settings(FEW, max_examples=100)
@given(data=st.data())
def test_rows_above_a_reader_change_no_byte_in_many_examples(data, level):
    check_level(data, level)


@settings(FEW, max_examples=4)
@given(data=st.data())
def test_projects_outside_a_socket_change_no_byte_of_what_it_tells(data):
    scope = Scope(1, projects=("web", "si*", ""))
    check(data, scope, lines(range(2), HIDDEN_PROJECTS, "t"))


@settings(FEW, max_examples=4)
@given(data=st.data())
def test_what_is_hidden_by_class_and_by_project_together_changes_no_byte(data):
    scope = Scope(1, projects=("web", "si*", ""))
    hidden = lines(range(2), HIDDEN_PROJECTS, "t") | lines(range(2, 4), PROJECTS, "s")
    check(data, scope, hidden)


SEEN = numbered([Line("merger alpha", log="s0"), Line("merger beta", level=1, log="s1")])
HIDDEN = Line("merger gamma", level=2, log="s0", n=7)


def test_the_comparison_notices_a_clearance_off_by_one(monkeypatch):
    exact = search.levels
    monkeypatch.setattr(
        search, "levels", lambda reader, scope: range(exact(reader, scope).stop + 1)
    )
    assert told([*SEEN, HIDDEN], Scope(1), []) != told(SEEN, Scope(1), [])


def test_the_comparison_notices_frequencies_of_too_many_tables(monkeypatch):
    exact = search.Figures.size
    monkeypatch.setattr(
        search.Figures,
        "size",
        lambda figures, level, inside: exact(figures, level + (level == 1), inside),
    )
    assert told([*SEEN, HIDDEN], Scope(1), []) != told(SEEN, Scope(1), [])


def test_the_comparison_notices_a_project_too_many(monkeypatch):
    scope, outside = (
        Scope(1, projects=("web",)),
        HIDDEN._replace(level=0, project="outside", log="o"),
    )
    monkeypatch.setattr(Scope, "covers_project", lambda scope, project: True)
    assert told([*SEEN, outside], scope, []) != told(SEEN, scope, [])


def test_a_higher_reader_is_told_more():
    assert told([*SEEN, HIDDEN], Scope(2), []) != told(SEEN, Scope(2), [])
