"""However a log grew and wherever reading stopped, its records are those of one read of the whole file."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.records import Item, Record, Unreadable
from memoryd.sources import ADAPTERS, Adapter, lines
from memoryd.sources.base import too_deep
from memoryd.sources.lines import Position, read
from memoryd.sources.mend import mend_surrogates
from tests.support import logs

LIMIT = 600
"""The longest line here, in bytes, so that lines on either side of it are quickly made."""


@contextmanager
def short_lines() -> Iterator[None]:
    with mock.patch.object(lines, "LINE_LIMIT", LIMIT):
        yield


def fresh(path: Path, adapter: Adapter, log: str = "", block_bytes: int = 1 << 20) -> list[Record]:
    with path.open("rb") as file:
        batches = list(read(file, Position(), adapter, log=log, block_bytes=block_bytes))
    return [record for batch in batches for record in batch.records]


# ---------------------------------------------------------------- logs to cut

words = st.text(st.sampled_from('ab{}[]\\"/u0dé😀\n\r\t\0 \u2028'), max_size=12)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), words)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
)

native_records = st.one_of(
    words.map(logs.native_owner),
    words.map(logs.native_assistant),
    st.builds(logs.native_call, words, trees, words),
    st.builds(logs.native_result, words, words, trees, trees),
    st.builds(logs.native_block, words, st.booleans()),
    st.builds(lambda kind, text: {"kind": kind, "text": text}, words, words),
    st.just(logs.native_session("s")),
)
claude_records = st.one_of(
    words.map(logs.claude_user),
    words.map(logs.claude_assistant),
    words.map(logs.claude_thinking),
    words.map(logs.claude_summary),
    st.builds(logs.claude_call, words, trees, words),
    st.builds(logs.claude_result, words, words),
    st.builds(logs.claude_attachment, st.sampled_from(["file", "queued_command"]), words),
    st.builds(lambda kind, uuid: {"type": kind, "uuid": uuid, "parentUuid": uuid}, words, words),
    trees.map(lambda content: logs.claude("user", content)),
)
codex_records = st.one_of(
    words.map(logs.codex_user),
    words.map(logs.codex_assistant),
    words.map(logs.codex_search),
    st.builds(logs.codex_call, words, trees, words),
    st.builds(logs.codex_result, words, words),
    st.just(logs.codex_meta()),
    st.just(logs.codex_meta(source={"subagent": "review"})),
    trees.map(lambda payload: {"type": "response_item", "payload": payload}),
)
RECORDS = {"native": native_records, "claude-code": claude_records, "codex": codex_records}


def encodings(records: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[bytes]:
    compact = records.map(
        lambda record: json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    )
    spaced = records.map(json.dumps)
    pretty = records.map(lambda record: json.dumps(record, indent=1))
    return st.one_of(compact, spaced, pretty).map(lambda text: text.encode())


DAMAGE = st.sampled_from(
    [
        b"\0" * 7,
        b"\xef\xbb\xbf",
        b"\xff",
        b"}",
        b"{",
        b'"',
        b'{"a":',
        b"\n{",
        b"}\n",
        b"[1,2]",
        b"NaN",
        b'{"kind":"owner","text":"\\ud83d"}',
        b'{"type":"user","message":{"role":"user","content":"\\udc00 \\\\ud83d"}}',
        b'{"kind":"tool_result","class":"public","class":"secret","text":"x"}',
        b'{"kind":"tool_result","cl\\u0061ss":"public","class":"secret","text":"x"}',
        b'{"kind":"owner","text":1e999}',
        b'{"kind":"owner","text":"deep","more":' + b"[" * 199 + b"]" * 199 + b"}",
        b'{"kind":"owner","text":"deep","more":' + b"[" * 200 + b"]" * 200 + b"}",
        b"x" * LIMIT,
        b"x" * (LIMIT + 1),
        b" " * LIMIT,
        b'{"kind":"owner","text":"' + b"y" * (LIMIT - 26) + b'"}',
        b'{"kind":"owner","text":"' + b"y" * (LIMIT - 25) + b'"}',
        "\u2028\x85".encode(),
        b'{"kind":"tool_result","call":"c","text":"\xff"}',
        b'{"type":"user","message":{"role":"user","content":"x"},"toolUseResult":"\xed\xa0\x80"}',
        b'{"kind":\n"end"}\n{"kind":"end"}{"kind":"end"}',
    ]
)
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\n", b"", b"\r\n", b" \n", b"\n\n", b"\0\n"])


@st.composite
def whole_logs(draw: st.DrawFn) -> tuple[str, bytes]:
    """A format, and a log in it that may be damaged anywhere."""
    kind = draw(st.sampled_from(sorted(RECORDS)))
    pieces = st.one_of(encodings(RECORDS[kind]), encodings(RECORDS[kind]), DAMAGE)
    made = draw(st.lists(st.tuples(pieces, ENDS), max_size=8))
    return kind, draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + b"".join(map(b"".join, made))


@st.composite
def cuts(draw: st.DrawFn, size: int) -> list[int]:
    """Sizes that a file of `size` bytes had while it grew, the last of them its own."""
    return [*sorted(draw(st.lists(st.integers(0, size), max_size=6))), size]


def grown(path: Path, content: bytes, sizes: list[int], adapter: Adapter, draw) -> list[Record]:
    """Read a log each time it grew, from where reading stopped, with whatever budget and block."""
    records: list[Record] = []
    position = Position()
    path.write_bytes(b"")
    for size in sizes:
        with path.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(content[file.tell() : size])
            file.flush()
            budget = draw(st.sampled_from([None, 1, 100, 5000]))
            block = draw(st.sampled_from([16, 200, LIMIT, 1 << 20]))
            last = size == len(content)
            at_end = last or draw(st.booleans())
            while True:
                before = position
                for batch in read(
                    file,
                    position,
                    adapter,
                    budget_bytes=budget,
                    at_end=at_end,
                    block_bytes=block,
                ):
                    assert [record.n for record in batch.records] == list(
                        range(position.records, batch.position.records)
                    )
                    records += batch.records
                    position = batch.position
                if position == before:
                    break
    return records


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def check_growth(folder: Path, log: tuple[str, bytes], data: st.DataObject) -> None:
    kind, content = log
    path = folder / "log.jsonl"
    sizes = data.draw(cuts(len(content)))
    with short_lines():
        pieces = grown(path, content, sizes, ADAPTERS[kind], data.draw)
        assert pieces == fresh(path, ADAPTERS[kind])


@settings(max_examples=80)
@given(log=whole_logs(), data=st.data())
def test_a_log_grown_in_random_cuts_gives_the_records_of_one_read(folder, log, data):
    check_growth(folder, log, data)


@pytest.mark.slow
@settings(max_examples=3000)
@given(log=whole_logs(), data=st.data())
def test_three_thousand_logs_grown_in_random_cuts_give_the_records_of_one_read(folder, log, data):
    check_growth(folder, log, data)


@settings(max_examples=60)
@given(log=whole_logs(), block=st.sampled_from([1, 50, 300, LIMIT, 100_000]))
def test_how_much_is_read_at_once_changes_nothing(folder, log, block):
    kind, content = log
    path = folder / "block.jsonl"
    path.write_bytes(content)
    with short_lines():
        assert fresh(path, ADAPTERS[kind], block_bytes=block) == fresh(path, ADAPTERS[kind])


FIRST = logs.encoded(*logs.dated(*(logs.claude_user(f"word {n}") for n in range(16))))
"""So many records that a log has told who it is, and later lines are decoded without that."""


def told(records: list[Record]) -> list[tuple[object, ...]]:
    """Return all that records say, also what does not make two results differ."""
    return [
        (record.n, record.ts, *msgspec.structs.astuple(record)[3:], *map(said, record.items))
        for record in records
    ]


def said(item: Item) -> tuple[object, ...]:
    fields = msgspec.structs.astuple(item)
    return (
        type(item),
        *(bytes(field) if isinstance(field, msgspec.Raw) else field for field in fields),
    )


FIELDS = [
    *("kind", "ts", "text", "call", "tool", "args", "ok", "class", "untrusted", "session", "agent"),
    *("project", "parent", "type", "message", "uuid", "parentUuid", "sessionId", "timestamp"),
    *("cwd", "isSidechain", "isMeta", "isCompactSummary", "origin", "toolUseResult", "subtype"),
    *("content", "attachment", "data", "hookErrors", "hasOutput", "logicalParentUuid", "input"),
    *("forkedFrom", "id", "name", "tool_use_id", "payload", "cl\u0061ss", "other"),
]
VALUES = st.one_of(
    trees,
    st.sampled_from(["owner", "tool_result", "user", "system", "attachment", "public", "\ud83d"]),
    st.sampled_from(["2026-01-02T03:04:05.678901+01:00", "2026-01-02T03:04:05", 10**30, -0.0, 1.5]),
    st.integers(1, 9).map(lambda depth: json.loads('{"a":[' * depth + "]}" * depth)),
    st.builds(lambda kind, text: [{"type": kind, "text": text}], words, words),
)


@st.composite
def odd_lines(draw: st.DrawFn, kind: str) -> bytes:
    """A line whose fields are left out, of another shape, given twice or in another order."""
    members = [*draw(RECORDS[kind]).items()]
    more = draw(st.lists(st.tuples(st.sampled_from(FIELDS), VALUES), max_size=3))
    left_out = draw(st.sets(st.sampled_from(FIELDS), max_size=2))
    mixed = draw(st.permutations([one for one in members if one[0] not in left_out] + more))
    told = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in mixed)
    return f"{{{told}}}".encode()


def check_steps(folder: Path, data: st.DataObject, kind: str, late: bool) -> None:
    pieces = st.one_of(odd_lines(kind), encodings(RECORDS[kind]), DAMAGE)
    made = data.draw(st.lists(st.tuples(pieces, ENDS), max_size=6))
    path = folder / "both.jsonl"
    first = FIRST if late and kind == "claude-code" else b""
    path.write_bytes(first + b"".join(map(b"".join, made)))
    with short_lines():
        at_once = told(fresh(path, ADAPTERS[kind]))
        with mock.patch("memoryd.sources.objects.suspicious", return_value=True):
            assert told(fresh(path, ADAPTERS[kind])) == at_once


def check_shapes(folder: Path, data: st.DataObject, kind: str) -> None:
    adapter = ADAPTERS[kind]
    shape = adapter.gathered or adapter.decoder.type
    loose = msgspec.structs.replace(adapter, decoder=msgspec.json.Decoder(shape), later=None)
    lines_there = data.draw(st.lists(odd_lines(kind), max_size=6))
    path = folder / "shapes.jsonl"
    path.write_bytes(FIRST * (kind == "claude-code") + b"\n".join([*lines_there, b""]))
    assert told(fresh(path, adapter)) == told(fresh(path, loose))


@settings(max_examples=50)
@given(data=st.data(), kind=st.sampled_from(sorted(RECORDS)), late=st.booleans())
def test_one_step_for_a_line_gives_what_taking_it_apart_gives(folder, data, kind, late):
    check_steps(folder, data, kind, late)


@settings(max_examples=50)
@given(data=st.data(), kind=st.sampled_from(["native", "claude-code"]))
def test_a_shape_for_each_kind_gives_what_the_shape_of_all_lines_gives(folder, data, kind):
    check_shapes(folder, data, kind)


@pytest.mark.slow
@settings(max_examples=2000)
@given(data=st.data(), kind=st.sampled_from(sorted(RECORDS)), late=st.booleans())
def test_two_thousand_logs_read_in_one_step_a_line_and_taken_apart(folder, data, kind, late):
    check_steps(folder, data, kind, late)


@pytest.mark.slow
@settings(max_examples=2000)
@given(data=st.data(), kind=st.sampled_from(["native", "claude-code"]))
def test_two_thousand_logs_in_a_shape_for_each_kind_and_in_one_for_all(folder, data, kind):
    check_shapes(folder, data, kind)


@settings(max_examples=60)
@given(st.lists(native_records, max_size=10))
def test_every_well_formed_record_is_read_once_and_in_order(folder, records):
    path = folder / "plain.jsonl"
    logs.write(path, *records)
    found = fresh(path, ADAPTERS["native"])
    assert [record.n for record in found] == list(range(len(records)))
    assert not any(isinstance(item, Unreadable) for record in found for item in record.items)


def real_logs(corpus: Path) -> list[tuple[Path, str]]:
    folders = {"claude": "claude-code", "codex": "codex", "_series": "claude-code"}
    return [
        (path, kind)
        for name, kind in folders.items()
        for path in sorted((corpus / "sessions" / name).rglob("*.jsonl"))
    ]


@settings(max_examples=20)
@given(data=st.data())
def test_a_real_log_grown_in_random_cuts_gives_the_records_of_one_read(corpus, folder, data):
    path, kind = data.draw(st.sampled_from(real_logs(corpus)))
    content = path.read_bytes()
    grows = folder / "real.jsonl"
    sizes = data.draw(cuts(len(content)))
    assert grown(grows, content, sizes, ADAPTERS[kind], data.draw) == fresh(grows, ADAPTERS[kind])


# ---------------------------------------------------------------- the parts


any_text = st.text(st.characters(exclude_categories=()), max_size=40)


@settings(max_examples=100)
@given(trees, st.booleans())
def test_mending_harms_no_pair_and_no_literal_backslash(tree, ascii_only):
    encoded = json.dumps(tree, ensure_ascii=ascii_only).encode()
    assert json.loads(mend_surrogates(encoded)) == tree


@settings(max_examples=100)
@given(any_text)
def test_mending_replaces_exactly_the_halves(text):
    expected = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert json.loads(mend_surrogates(json.dumps(text).encode())) == expected


@settings(max_examples=100)
@given(trees, st.integers(0, 4))
def test_depth_is_counted_outside_of_strings(tree, limit):
    def depth(value: object) -> int:
        if isinstance(value, dict):
            return 1 + max(map(depth, value.values()), default=0)
        return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

    assert too_deep(json.dumps(tree).encode(), limit) == (depth(tree) > limit)
