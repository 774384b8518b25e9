"""One log is read from where reading stopped; what cannot be read is told, and nothing is read twice."""

import os
from pathlib import Path

import pytest

from memoryd.records import Brought, Called, Link, Record, Returned, Said, Unreadable
from memoryd.sources import ADAPTERS, lines
from memoryd.sources.lines import Batch, Position, read
from tests.support import logs

NATIVE = ADAPTERS["native"]
OWNER = b'{"kind":"owner","text":"%s"}'


START = Position()


def reading(path: Path, position: Position = START, **how) -> list[Batch]:
    with path.open("rb") as file:
        return list(read(file, position, how.pop("adapter", NATIVE), **how))


def records(content: bytes, path: Path, **how) -> list[Record]:
    path.write_bytes(content)
    return [record for batch in reading(path, **how) for record in batch.records]


def told(found: list[Record]) -> list[str]:
    """What the records say, one word or reason each."""
    said = []
    for record in found:
        for item in record.items:
            if isinstance(item, Said):
                said.append(item.text)
            elif isinstance(item, Unreadable):
                said.append(f"!{item.reason}")
            elif isinstance(item, Brought):
                said.append(f":{item.name}")
            else:
                said.append(type(item).__name__)
    return said


@pytest.fixture
def log(tmp_path) -> Path:
    return tmp_path / "a.jsonl"


def test_records_are_numbered_from_zero_and_blank_lines_do_not_count(log):
    content = b"\n  \n" + OWNER % b"a" + b"\r\n\r\n\t\n" + OWNER % b"b" + b" \n\n"
    found = records(content, log)
    assert [record.n for record in found] == [0, 1]
    assert told(found) == ["a", "b"]
    assert reading(log)[-1].position == Position(offset=len(content), records=2)


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\x1e", "\x0b"])
def test_only_a_newline_ends_a_line_t05(char, log):
    text = f"a{char}b" if char > "\x1f" else f"a\\u{ord(char):04x}b"
    assert told(records(OWNER % text.encode() + b"\n", log)) == [f"a{char}b"]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_byte_order_mark_may_come_in_pieces_and_counts_for_no_limit(size, log, monkeypatch):
    monkeypatch.setattr(lines, "LINE_LIMIT", 30)
    content = b"\xef\xbb\xbf" + OWNER % b"aaaa" + b"\n"
    log.write_bytes(content[:size])
    batches = reading(log)
    position = batches[-1].position if batches else START
    assert position.records == 0
    log.write_bytes(content)
    assert told(reading(log, position)[0].records) == ["aaaa"]
    assert told(records(content, log)) == ["aaaa"]


def test_half_a_line_is_not_read_until_the_rest_comes_t01(log):
    line = OWNER % "grün 🎉".encode()
    for size in range(len(line)):
        log.write_bytes(line[:size])
        assert reading(log) == []
    log.write_bytes(line)
    assert told(reading(log)[0].records) == ["grün 🎉"]


def test_a_last_line_without_newline_is_read_once(log):
    log.write_bytes(OWNER % b"a")
    first = reading(log)
    assert first[-1].position == Position(offset=len(OWNER % b"a"), records=1)
    assert reading(log, first[-1].position) == []
    log.write_bytes(OWNER % b"a" + b"\n" + OWNER % b"b")
    again = reading(log, first[-1].position)
    assert [told(batch.records) for batch in again] == [[], ["b"]]
    assert again[-1].position.records == 2


def test_a_last_line_is_left_alone_when_told_so(log):
    log.write_bytes(OWNER % b"a")
    assert reading(log, at_end=False) == []


def test_what_is_glued_to_a_line_already_read_is_neither_lost_nor_doubled(log):
    log.write_bytes(OWNER % b"a")
    position = reading(log)[-1].position
    log.write_bytes(OWNER % b"a" + OWNER % b"b" + b'{"kind":"own\n' + OWNER % b"c" + b"\n")
    assert told(reading(log, position)[0].records) == ["b", "!a cut object", "c"]
    assert told(records(log.read_bytes(), log)) == ["a", "b", "!a cut object", "c"]


def test_glued_objects_are_a_record_each(log):
    found = records(
        (OWNER % b"a") * 3 + b" " + OWNER % b"{d" + b"\n" + OWNER % b"e\\\\" + b"\n", log
    )
    assert told(found) == ["a", "a", "a", "{d", "e\\"]
    assert [record.n for record in found] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"a":"x{"type":"user"}', ["!a cut object"]),
        (b"\0" * 700, ["!NUL bytes"]),
        (b"\0" * 700 + OWNER % b"a", ["a"]),
        (OWNER % b"a" + b"\0\0 \0" + OWNER % b"b", ["a", "b"]),
        (OWNER % b"a" + b"\0\0", ["a", "!NUL bytes"]),
        (b"garbage", ["!no object"]),
        (OWNER % b"a" + b" rest", ["a", "!no object"]),
        (b'"words"', ["!no object"]),
        (b"42", ["!no object"]),
        (b"[1]", ["!no object"]),
        (b"null", ["!no object"]),
        (b"{}", []),
        (OWNER % b"\xff", ["!no UTF-8"]),
        (b'{"kind":"end","x":"\xff"}', ["!no UTF-8"]),
        (b'{"kind":"end","x":"\xed\xa0\x80"}', ["!no UTF-8"]),
        (OWNER % b"a" + b"\xff", ["a", "!no object"]),
        (b'{"kind":"end","x":NaN}', ["!no JSON"]),
        (b'{"kind":"end","x":-Infinity}', ["!no JSON"]),
        (b'{"kind":"tool_call","tool":"x","args":{"n":1e999}}', ["!no JSON value"]),
        (b'{"kind":"tool_call","tool":"x","args":{"n":' + b"9" * 5000 + b"}}", ["!no JSON value"]),
        (b'{"kind":"owner","text":"a\tb"}', ["!no JSON"]),
        (b'{"kind":"owner","text":"a",}', ["!no JSON"]),
        (b'{"kind":"owner"\n,"text":"a"}', ["!a cut object", "!no object"]),
    ],
)
def test_damage_costs_its_line_and_no_other_t03_t04_t07_t10_t12(line, expected, log):
    content = OWNER % b"before" + b"\n" + line + b"\n" + OWNER % b"after" + b"\n"
    assert told(records(content, log)) == ["before", *expected, "after"]


@pytest.mark.parametrize(
    "halves",
    [
        (b'{"kind":"owner","text":', b'"a"}'),
        (b'{"kind":"owner","text":"a","x":{}', b',"y":1}'),
        (b'{"kind":"owner","text":"a","x":', b"{}}"),
    ],
)
def test_two_halves_of_an_object_beside_two_glued_ones_are_not_taken_for_three_lines(halves, log):
    content = b"\n".join((*halves, (OWNER % b"b") * 2)) + b"\n"
    assert told(records(content, log)) == ["!a cut object", "!no object", "b", "b"]


def test_a_byte_order_mark_is_taken_off_at_the_start_of_the_file_alone_t08(log):
    mark = b"\xef\xbb\xbf"
    assert told(records(mark + OWNER % b"a", log)) == ["a"]
    assert told(records(mark + OWNER % b"a" + b"\n" + mark + OWNER % b"b\n", log)) == [
        "a",
        "!no object",
    ]


@pytest.mark.parametrize(
    ("escaped", "meant"),
    [
        (b"\\ud83d", "\ufffd"),
        (b"\\udc00", "\ufffd"),
        (b"\\ud83d\\ude00", "😀"),
        (b"\\uD83D\\uDE00", "😀"),
        (b"\\ud83d\\ud83d\\ude00", "\ufffd😀"),
        (b"\\ude00\\ud83d", "\ufffd\ufffd"),
        (b"\\ud83d \\\\ud83d", "\ufffd \\ud83d"),
        (b"\\\\\\ud83d", "\\\ufffd"),
        (b"\\ud83d\\u0041", "\ufffdA"),
    ],
)
def test_half_a_surrogate_pair_is_replaced_and_nothing_else_t09(escaped, meant, log):
    assert told(records(OWNER % escaped + b"\n", log)) == [meant]


def test_a_result_with_half_a_pair_still_counts_as_a_result(log):
    line = b'{"kind":"tool_result","call":"c","class":"secret","untrusted":true,"text":"\\ud83d"}\n'
    [record] = records(line, log)
    assert isinstance(record.items[0], Returned)
    assert record.items[0].own.cls == "secret"


@pytest.mark.parametrize(("depth", "readable"), [(200, True), (201, False), (10_000, False)])
@pytest.mark.parametrize("form", ["arrays", "objects", "both"])
@pytest.mark.parametrize("field", ["args", "unknown"])
def test_depth_over_200_is_not_read_t11(depth, readable, form, field, log):
    opened, closed = {
        "arrays": (b"[", b"]"),
        "objects": (b'{"a":', b"}"),
        "both": (b'[{"a":', b"}]"),
    }[form]
    levels = (depth - 1) // len(closed)  # the line itself is a level
    core = b"1" if (depth - 1) % len(closed) == 0 else b"[1]"
    nested = opened * levels + core + closed * levels
    line = b'{"kind":"tool_call","tool":"x","call":"c","args":{},"%s":%s}\n' % (
        field.encode(),
        nested,
    )
    [record] = records(line, log)
    assert isinstance(record.items[0], Called if readable else Unreadable)


def test_wide_arguments_are_not_deep(log):
    args = b"[" + b",".join([b'[{"a":[]}]'] * 300) + b"]"
    [record] = records(b'{"kind":"tool_call","tool":"x","args":%s}\n' % args, log)
    assert isinstance(record.items[0], Called)


# ---------------------------------------------------------------- long lines


@pytest.fixture
def limit(monkeypatch) -> int:
    monkeypatch.setattr(lines, "LINE_LIMIT", 1000)
    return 1000


def long_owner(size: int) -> bytes:
    return OWNER % (b"y" * (size - len(OWNER % b"")))


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_limit_is_the_last_size_that_is_read(end, limit, log):
    assert told(records(long_owner(limit) + end, log)) == ["y" * (limit - 26 + 0)]
    assert told(records(long_owner(limit + 1) + end, log)) == ["!longer than 1000 bytes"]


def test_a_line_over_the_limit_is_one_record_and_the_next_is_read_t13(limit, log):
    content = OWNER % b"a" + b"\n" + b"x" * 5 * limit + b"\n" + OWNER % b"b" + b"\n"
    found = records(content, log, block_bytes=64)
    assert told(found) == ["a", "!longer than 1000 bytes", "b"]
    assert [record.n for record in found] == [0, 1, 2]


def test_an_endless_line_is_told_once_and_skipped_across_stops_t14(limit, log):
    position, told_so_far = Position(), []
    log.write_bytes(b"")
    for _ in range(5):
        with log.open("ab") as file:
            file.write(b"z" * 700)
        for batch in reading(log, position):
            position = batch.position
            told_so_far += told(batch.records)
    assert told_so_far == ["!longer than 1000 bytes"]
    assert position == Position(offset=3500, records=1, discarding=True)
    with log.open("ab") as file:
        file.write(b"z\n" + OWNER % b"a" + b"\n")
    assert [told(batch.records) for batch in reading(log, position)] == [[], ["a"]]


def test_whole_objects_at_the_start_of_a_line_over_the_limit_are_read(limit, log):
    content = (OWNER % b"a") * 100 + b"\n" + OWNER % b"b" + b"\n"
    assert len(content) > 2 * limit
    assert told(records(content, log)) == ["a"] * 100 + ["b"]


def test_blanks_over_the_limit_are_no_record(limit, log):
    assert told(records(b" " * 5 * limit + b"\n" + OWNER % b"a", log)) == ["a"]


@pytest.mark.slow
def test_a_line_of_200_mib_takes_the_memory_of_the_limit_t13(log):
    import tracemalloc

    with log.open("wb") as file:
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + OWNER % b"a")
    tracemalloc.start()
    said = [word for batch in reading(log) for word in told(batch.records)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert said == [f"!longer than {lines.LINE_LIMIT} bytes", "a"]
    assert peak < 5 * lines.LINE_LIMIT


# ---------------------------------------------------------------- batches, budgets, files


def test_a_batch_is_about_a_block_and_its_position_is_that_after_its_records(log):
    log.write_bytes(b"".join(OWNER % b"a%d" % number + b"\n" for number in range(100)))
    batches = reading(log, block_bytes=300)
    assert len(batches) > 5
    for batch in batches:
        rest = reading(log, batch.position)
        after = [record.n for more in rest for record in more.records]
        assert after == list(range(batch.position.records, 100))


def test_the_budget_stops_after_the_batch_that_uses_it_up(log):
    log.write_bytes((OWNER % b"a" + b"\n") * 100)
    [batch] = reading(log, block_bytes=300, budget_bytes=1)
    assert 0 < batch.position.offset <= 300
    used = reading(log, block_bytes=300, budget_bytes=900)[-1].position.offset
    assert 900 <= used <= 1200
    assert reading(log, block_bytes=300, budget_bytes=used)[-1].position.offset == used


def test_the_files_own_position_is_neither_used_nor_moved(log):
    log.write_bytes(OWNER % b"a" + b"\n")
    with log.open("rb") as file:
        file.seek(7)
        assert told(next(read(file, START, NATIVE)).records) == ["a"]
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 7
        assert told(next(read(file.fileno(), START, NATIVE)).records) == ["a"]


def test_an_empty_file_has_nothing_and_moves_nothing(log):
    log.write_bytes(b"")
    assert reading(log) == []


def test_an_error_of_the_disk_is_the_callers(log):
    log.write_bytes(b"")
    descriptor = os.open(log, os.O_WRONLY)
    try:
        with pytest.raises(OSError, match="descriptor"):
            list(read(descriptor, Position(), NATIVE))
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------- links


CLAUDE = ADAPTERS["claude-code"]


def links(found: list[Record]) -> list[Link | None]:
    return [record.about.link if record.about else None for record in found]


def test_only_the_first_named_record_of_a_claude_log_tells_of_a_parent(log):
    log_records = logs.dated(
        logs.claude_user("a"), logs.claude_assistant("b"), logs.claude_user("c")
    )
    found = records(logs.encoded(*log_records), log, adapter=CLAUDE)
    assert links(found) == [None, None, None]
    resumed = records(logs.encoded(*log_records[1:]), log, adapter=CLAUDE)
    assert links(resumed) == [Link("resume", uuid=log_records[0]["uuid"]), None]


def test_whether_a_log_has_named_itself_is_part_of_the_position(log):
    snapshot = {"type": "file-history-snapshot", "snapshot": {}}
    first, second = logs.dated(logs.claude_user("a"), logs.claude_assistant("b"))
    log.write_bytes(logs.encoded(snapshot))
    before = reading(log, adapter=CLAUDE)[-1].position
    assert not before.begun
    log.write_bytes(logs.encoded(snapshot, first))
    after = reading(log, before, adapter=CLAUDE)[-1].position
    assert after.begun
    log.write_bytes(logs.encoded(snapshot, first, second))
    assert links(reading(log, after, adapter=CLAUDE)[0].records) == [None]


@pytest.mark.parametrize(
    "name", ["s1/subagents/agent-x.jsonl", "p/agent-x.jsonl", "a/subagents/x/y.jsonl"]
)
def test_the_path_of_a_sub_agents_log_tells_its_origin_in_the_first_record(name, log):
    content = b"broken\n" + logs.encoded(*logs.dated(logs.claude_user("a")))
    found = records(content, log, adapter=CLAUDE, log=name)
    assert links(found) == [Link("subagent"), None]
    assert links(records(content, log, adapter=CLAUDE, log=name, block_bytes=8)) == links(found)
    assert links(records(content, log, adapter=CLAUDE, log="p/s1.jsonl")) == [None, None]


def test_a_link_in_the_first_record_itself_is_kept_before_that_of_the_path(log):
    line = logs.claude_user("a", isSidechain=True, uuid="u", parentUuid=None)
    found = records(logs.encoded(line), log, adapter=CLAUDE, log="agent-x.jsonl")
    assert links(found) == [Link("subagent", session="s1")]
