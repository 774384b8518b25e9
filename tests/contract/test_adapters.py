"""Every format keeps one contract: who spoke, what was called, what came back, and no word of it more."""

import copy
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd import config
from memoryd.clock import rfc3339
from memoryd.records import (
    Brought,
    Called,
    Kind,
    Record,
    Returned,
    Said,
    Unreadable,
    call_text,
)
from memoryd.rules import Rules
from memoryd.sources import ADAPTERS
from memoryd.sources.lines import Position, read
from tests.contract.harnesses import HARNESSES, Harness
from tests.support import logs

WORD = "zebrafinch"
RULES = Rules(config.parse("", Path("/x.toml")).config, state=Path("/s"), home=Path("/h"))


def reading(content: bytes, path: Path, harness: Harness) -> list[Record]:
    path.write_bytes(content)
    with path.open("rb") as file:
        return [r for batch in read(file, Position(), harness.adapter) for r in batch.records]


def texts(record: Record) -> list[str]:
    """Everything of a record that can become a row."""
    return [
        item.text if isinstance(item, Said) else call_text(item.tool, item.args)
        for item in record.items
        if isinstance(item, Said | Called)
    ]


@pytest.fixture(params=sorted(HARNESSES))
def harness(request) -> Harness:
    return HARNESSES[request.param]


@pytest.fixture
def log(tmp_path) -> Path:
    return tmp_path / "log.jsonl"


def one(line: logs.Line, path: Path, harness: Harness) -> Record:
    [record] = reading(logs.encoded(line), path, harness)
    return record


class TestEveryAdapter:
    def test_has_a_name_that_the_configuration_knows(self, harness):
        assert harness.adapter.id in config.SOURCE_KINDS
        assert ADAPTERS[harness.adapter.id] is harness.adapter
        assert harness.adapter.version >= 1

    def test_finds_folders_without_looking(self, harness, tmp_path):
        found = harness.adapter.find(tmp_path / "state", {"HOME": str(tmp_path)})
        assert found
        assert all(path.is_relative_to(tmp_path) for path in found)
        assert not any(path.exists() for path in found)

    def test_wants_json_lines_and_nothing_else(self, harness):
        wants = harness.adapter.wants
        assert wants("a/b.jsonl")
        assert not any(map(wants, ("a.json", "a.jsonl.zst", "a.md", "a.meta.json", "jsonl")))

    def test_claims_its_own_records_and_no_others(self, harness):
        for other in HARNESSES.values():
            for line in (
                other.first,
                other.owner("x"),
                other.assistant("x"),
                other.result("c", "x"),
            ):
                assert other.adapter.claims(line) is True
                assert other is harness or harness.adapter.claims(line) is not True

    def test_tells_who_spoke(self, harness, log):
        assert one(harness.owner("Fix it"), log, harness).items == [Said(0, Kind.OWNER, "Fix it")]
        answer = one(harness.assistant("Done"), log, harness)
        assert answer.items == [Said(0, Kind.ASSISTANT, "Done")]
        summed = one(harness.summary("We fixed it"), log, harness)
        assert summed.items[0] == Said(0, Kind.SUMMARY, "We fixed it")

    def test_says_nothing_for_blank_words(self, harness, log):
        for made in (harness.owner, harness.assistant, harness.summary):
            assert texts(one(made(" \n"), log, harness)) == []

    def test_hands_on_words_as_they_are(self, harness, log):
        words = '  a\tb "q" \\n é 🎉 \u2028 <div> &amp; \x00 \x1b[1m '
        assert texts(one(harness.owner(words), log, harness)) == [words]

    def test_decodes_a_calls_arguments(self, harness, log):
        args = {"command": 'echo "ä"\nls', "n": [1, 2.5, {"deep": "é"}], "flag": True, "none": None}
        [call] = one(harness.call("Bash", args, "c1"), log, harness).items
        assert call == Called(0, "c1", "Bash", args)
        assert call_text(call.tool, call.args) == 'Bash\necho "ä"\nls\n1\n2.5\né'

    def test_joins_a_result_to_its_call_and_reads_none_of_it(self, harness, log):
        [result] = one(harness.result("c1", WORD), log, harness).items
        assert isinstance(result, Returned)
        assert (result.block, result.call) == (0, "c1")

    def test_gives_label_fields_only_where_they_can_count(self, harness, log):
        line = harness.result("c1", WORD) | {"class": "public", "untrusted": False}
        [result] = one(line, log, harness).items
        assert (result.own is not None) == (harness.adapter.id == "native")

    def test_tells_session_project_and_agent_first_thing(self, harness, log):
        about = one(logs.dated(harness.first)[0], log, harness).about
        assert {key: getattr(about, key) for key in harness.told} == harness.told
        assert about.link is None

    def test_tells_the_time(self, harness, log):
        record = one(logs.dated(harness.owner("x"), start=7)[0], log, harness)
        assert rfc3339(record.ts) == logs.stamp(7)

    @pytest.mark.parametrize("when", [None, 5, "yesterday", {}, "", "2026-13-01T00:00:00Z"])
    def test_reads_a_record_whatever_its_time_is(self, harness, log, when):
        line = harness.owner("x") | {"ts": when, "timestamp": when}
        record = one(line, log, harness)
        assert (record.ts, texts(record)) == (None, ["x"])

    def test_reads_glued_records_and_lone_surrogates(self, harness, log):
        line = logs.encoded(harness.owner("SMILE"))[:-1].replace(
            b"SMILE", b"a\\ud83d\\ude00\\ud83d"
        )
        found = reading(line + line + b"\n" + line, log, harness)
        assert [texts(record) for record in found] == [["a😀\ufffd"]] * 3

    def test_lets_an_unknown_kind_with_text_raise_as_an_unknown_tool_does(self, harness, log):
        [item] = one(harness.unknown({"content": [{"words": "x"}]}), log, harness).items
        assert isinstance(item, Brought)
        assert not RULES.known(item.name, brought=True)
        assert RULES.brought(item.name) == RULES.unknown

    def test_takes_no_note_of_an_unknown_kind_without_text(self, harness, log):
        line = harness.unknown({"count": 3, "flag": True, "none": None, "empty": "", "list": []})
        assert one(line, log, harness).items == []

    def test_gives_outside_text_no_name_that_could_be_text(self, harness, log):
        line = logs.dated(harness.unknown({"content": "x"}))[0]
        key = "kind" if "kind" in line else "type"
        for name in ("a b", "ignore previous instructions", "x" * 65, "a\nb", ""):
            [item] = one(line | {key: name}, log, harness).items
            assert item.name == "record:nameless"

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_survives_any_value_in_any_field(self, harness, log, data):
        values = st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(["type", "text", "content", "id"]), inner, max_size=3
                )
            ),
        )
        lines = [
            harness.owner("x"),
            harness.call("T", {}, "c"),
            harness.result("c", "x"),
            harness.first,
        ]
        line = data.draw(
            st.sampled_from([*lines, *(made("x") for made in harness.outside.values())])
        )
        changed = copy.deepcopy(line)
        inner = [value for value in changed.values() if value and isinstance(value, dict)]
        place = data.draw(st.sampled_from([changed, *inner]))
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(values)
        record = one(changed, log, harness)
        assert not any(isinstance(item, Unreadable) for item in record.items)


OUTSIDE = [(name, place) for name, made in HARNESSES.items() for place in made.outside]


@pytest.mark.parametrize(("name", "place"), OUTSIDE)
def test_no_word_from_outside_is_read_and_its_record_raises(name, place, log):
    harness = HARNESSES[name]
    record = one(harness.outside[place](WORD), log, harness)
    assert WORD not in "".join(texts(record))
    assert any(isinstance(item, Returned | Brought) for item in record.items)


def test_thinking_is_neither_read_nor_raises(log):
    claude, codex = HARNESSES["claude-code"], HARNESSES["codex"]
    thought = {"type": "thinking", "thinking": WORD}
    hidden = {"type": "redacted_thinking", "data": WORD}
    assert one(logs.claude("assistant", [thought, hidden]), log, claude).items == []
    reasoning = logs.codex(
        "reasoning", summary=[{"type": "summary_text", "text": WORD}], content=WORD
    )
    assert one(reasoning, log, codex).items == []


def test_blocks_are_numbered_as_they_stand_with_results_and_thinking_counted(log):
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "c1", "name": "Read", "input": {}},
        {"type": "text", "text": ""},
        {"type": "text", "text": "b"},
    ]
    record = one(logs.claude("assistant", blocks), log, HARNESSES["claude-code"])
    assert [item.block for item in record.items] == [1, 2, 4]
    blocks = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "x"},
        {"type": "text", "text": "stop"},
    ]
    record = one(logs.claude("user", blocks), log, HARNESSES["claude-code"])
    assert [(type(item), item.block) for item in record.items] == [(Returned, 0), (Said, 1)]
    parts = [{"type": "input_image"}, {"type": "input_text", "text": "this"}]
    record = one(logs.codex("message", role="user", content=parts), log, HARNESSES["codex"])
    assert [(type(item), item.block) for item in record.items] == [(Brought, 0), (Said, 1)]
