"""How a block is read: each line in one step where nothing is odd in it, and what is told of the bytes it took."""

from functools import partial
from types import SimpleNamespace

import pytest

from memoryd.records import About, Link, Record, Unreadable
from memoryd.sources import ADAPTERS, Adapter, lines
from memoryd.sources.lines import Position, read

NATIVE = ADAPTERS["native"]
LIMIT = 100


def owner(size):
    """One object of so many bytes."""
    empty = b'{"kind":"owner","text":""}'
    made = empty.replace(b'""', b'"' + b"x" * (size - len(empty)) + b'"')
    assert len(made) == size
    return made


def reading(adapter=NATIVE):
    return lines._Reading(Position(), adapter)


def batches(path, position=Position(), **how):  # noqa: B008 - a frozen value
    with path.open("rb") as file:
        return list(read(file, position, NATIVE, **how))


@pytest.fixture
def log(tmp_path):
    return tmp_path / "a.jsonl"


@pytest.fixture
def limit(monkeypatch):
    monkeypatch.setattr(lines, "LINE_LIMIT", LIMIT)


def test_lines_of_one_object_each_are_read_in_one_step():
    block = reading()
    lines_there = iter([owner(40) + b"\n", b" " + owner(50) + b"\r\n"])
    assert block.plainly(lines_there) is None
    assert [record.n for record in block.records] == [0, 1]
    assert block.n == 2


@pytest.mark.parametrize(
    "odd",
    [
        b"\n",  # a blank line
        owner(40) + owner(40) + b"\n",  # two objects in a line
        owner(40)[:-2] + b"}\n",  # one that cannot be decoded
        b"42\n",  # no object
        b'{"kind":"tool_result","class":"a","class":"b"}\n',  # one that must not be believed
    ],
)
def test_a_line_with_something_odd_in_it_is_given_back_and_the_rest_is_not_lost(odd):
    block = reading()
    rest = iter([owner(40) + b"\n", odd, owner(50) + b"\n"])
    assert block.plainly(rest) == odd
    assert (block.n, len(block.records)) == (1, 1)
    assert list(rest) == [owner(50) + b"\n"]


def test_what_is_odd_costs_its_line_and_no_other_one_step_more(monkeypatch):
    apart = []
    monkeypatch.setattr(lines._Reading, "line", lambda self, line: apart.append(line))
    reading().block(owner(40) + b"\n[1]\n" + owner(50) + b"\n\n" + owner(60) + b"\n")
    assert apart == [b"[1]", b""]


@pytest.mark.parametrize("odd", [b"\xff", b"[" * 201 + b"]" * 201])
def test_a_block_that_is_no_utf_8_or_deep_is_taken_apart_whole(odd, monkeypatch):
    apart = []
    monkeypatch.setattr(lines._Reading, "line", lambda self, line: apart.append(line))
    reading().block(owner(40) + b"\n" + odd + b"\n")
    assert apart == [owner(40), odd]


def test_a_later_line_is_decoded_without_what_its_log_has_told():
    asked = []

    def decoder(name):
        return SimpleNamespace(decode=lambda line: asked.append(name))

    def parse(line, n, begun, raw):
        return Record(n, None, [], uuid="u" if n else None)

    adapter = SimpleNamespace(
        decoder=decoder("first"), later=decoder("later"), told_by=3, begins=True, parse=parse
    )
    adapter.decoder_of = partial(Adapter.decoder_of, adapter)
    block = reading(adapter)
    assert block.plainly(iter([b"{}\n"] * 5)) is None
    assert asked == ["first"] * 3 + ["later"] * 2
    assert (block.n, block.begun) == (5, True)


def test_where_the_objects_of_a_line_end_and_what_stands_there():
    assert reading().objects(owner(40), 0) == (40, "")
    assert reading().objects(owner(40) + owner(40), 0) == (80, "")
    assert reading().objects(owner(40) + owner(40) + b"  x", 0) == (82, "no object")
    assert reading().objects(b"", 0) == (0, "")


@pytest.mark.parametrize(
    ("record", "begun"),
    [
        (Record(0, None, []), False),
        (Record(0, None, [], about=About()), False),
        (Record(0, None, [], about=About(link=Link("resume", "x"))), False),
        (Record(0, None, [], about=About(link=Link("subagent", "x"))), True),
        (Record(0, None, [], uuid="u"), True),
    ],
)
def test_a_log_has_begun_once_it_named_itself_or_said_that_it_is_a_sub_agent_s(record, begun):
    block = reading()
    block.keep(record)
    assert (block.n, block.begun, block.records) == (1, begun, [record])


def test_a_budget_counts_from_where_reading_goes_on(log):
    log.write_bytes(b"".join(owner(50) + b"\n" for _ in range(6)))
    how = {"block_bytes": 60, "budget_bytes": 100}
    (first, second) = batches(log, **how)
    assert [batch.position.offset for batch in (first, second)] == [51, 102]
    rest = batches(log, second.position, **how)
    assert [batch.position.offset for batch in rest] == [153, 204]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_ends_of_what_a_batch_took_are_its_bytes_and_no_others(log, monkeypatch, mark):
    monkeypatch.setattr(lines, "ENDS", 20)
    content = mark + owner(50) + b"\n" + owner(60) + b"\n"
    log.write_bytes(content + b'{"cut')
    (batch,) = batches(log)
    assert (batch.first, batch.last) == (content[:20], (mark + content[-20:])[-20:])
    assert batch.position.offset == len(content)


def test_the_ends_of_a_line_that_is_skipped_are_those_of_what_was_skipped(log, monkeypatch, limit):
    monkeypatch.setattr(lines, "ENDS", 20)
    monkeypatch.setattr(lines, "BLOCK", 70)
    long = b"a" * 101 + b"b" * 80 + b"\n"
    log.write_bytes(long + owner(50) + b"\n")
    told, on, end, last = batches(log, block_bytes=70)
    assert [type(record.items[0]) for record in told.records] == [Unreadable]
    assert [one.position.offset for one in (told, on, end, last)] == [101, 171, 182, 233]
    assert [one.position.discarding for one in (told, on, end, last)] == [True, True, False, False]
    assert (on.first, on.last) == (b"b" * 20, b"b" * 20)
    assert (end.first, end.last) == (b"b" * 10 + b"\n", b"b" * 10 + b"\n")


def test_a_last_line_as_long_as_the_limit_may_still_be_whole_by_its_end(log, limit):
    log.write_bytes(owner(LIMIT + 1)[:LIMIT])
    assert batches(log) == []


@pytest.mark.parametrize("block", [LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 2, 10 * LIMIT])
@pytest.mark.parametrize("more", [0, 1])
def test_however_much_is_read_at_once_the_limit_is_the_last_size_that_is_read(
    log, limit, block, more
):
    log.write_bytes(b"y" * (LIMIT + more) + b"\n" + owner(40) + b"\n")
    found = [record for batch in batches(log, block_bytes=block) for record in batch.records]
    said = f"longer than {LIMIT} bytes" if more else "no object"
    assert [record.n for record in found] == [0, 1]
    assert found[0].items == [Unreadable(said)]
