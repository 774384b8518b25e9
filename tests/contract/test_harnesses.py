"""The harnesses that came later keep the contract too, each in its own layout, found and told as in life."""

import copy
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd import config
from memoryd.index.writer import opened
from memoryd.records import Brought, Called, Record, Returned, Said, Unreadable, call_text
from memoryd.records import Kind as Spoken
from memoryd.rules import Rules
from memoryd.sources import ADAPTERS, LogFile, Root, discover
from memoryd.sources.lines import Position, read
from tests.support.harnesses import HARNESSES, Kind
from tests.support.logs import claude_user, codex_meta, codex_user, native_owner

WORD = "zebrafinch"
RULES = Rules(config.parse("", Path("/x.toml")).config, state=Path("/s"), home=Path("/h"))
NO_DEFAULT_PLACE = {"aider", "swe-agent"}
NO_NAMES = {"swe-agent": "bash", "cline": "execute_command"}
"""Harnesses whose commands have no tool's name: the one that they are given."""

names = pytest.mark.parametrize("name", HARNESSES)


def logs_in(folder: Path) -> list[LogFile]:
    return discover.discover([Root("auto", folder)]).logs


def records(kind: Kind, folder: Path, entries: list[object]) -> list[Record]:
    if folder.exists():
        shutil.rmtree(folder)
    kind.put(folder, entries)
    [log] = logs_in(folder)
    assert log.adapter.id == kind.adapter
    with opened(log) as (handle, _):
        found = read(handle, Position(), log.adapter, log=log.log)
        return [record for batch in found for record in batch.records]


def items(kind: Kind, folder: Path, entries: list[object], sort: type) -> list:
    found = [item for record in records(kind, folder, entries) for item in record.items]
    return [item for item in found if isinstance(item, sort)]


def said(kind: Kind, folder: Path, *entries: object) -> list[tuple[str, str]]:
    """Who said what, the sentences that lead every session aside."""
    spoken = items(kind, folder, [kind.owner("hello"), *entries], Said)
    return [(item.kind.word, item.text) for item in spoken if item.text not in ("hello", "task")]


@pytest.mark.parametrize("adapter", sorted({kind.adapter for kind in HARNESSES.values()}))
def test_has_a_name_that_the_configuration_knows_and_places_of_its_own(adapter, tmp_path):
    assert adapter in config.SOURCE_KINDS
    found = ADAPTERS[adapter].find(tmp_path / "state", {"HOME": str(tmp_path)})
    assert bool(found) != (adapter in NO_DEFAULT_PLACE)
    assert all(path.is_relative_to(tmp_path) and not path.exists() for path in found)
    assert ADAPTERS[adapter].find(tmp_path / "state", {}) == []


@names
def test_tells_who_spoke(name, tmp_path):
    kind = HARNESSES[name]
    last = "assistant" if name == "swe-agent" else "owner"
    assert said(kind, tmp_path, kind.assistant("Done"))[0] == ("assistant", "Done")
    if name != "swe-agent":  # which has one task and no other words of the owner
        assert said(kind, tmp_path, kind.assistant("Done"), kind.owner("Fix it"))[1] == (
            last,
            "Fix it",
        )
    if kind.summary is not None:
        assert said(kind, tmp_path, kind.summary("We fixed it")) == [("summary", "We fixed it")]


@names
def test_says_nothing_for_blank_words(name, tmp_path):
    kind = HARNESSES[name]
    assert said(kind, tmp_path, kind.owner(" \n"), kind.assistant(" \n")) == []


@names
def test_hands_on_words_as_they_are(name, tmp_path):
    kind = HARNESSES[name]
    words = 'a\tb "q" \\n é 🎉 <div> &amp; \x1b[1m'
    assert said(kind, tmp_path, kind.assistant(words)) == [("assistant", words)]
    if name != "swe-agent":
        assert said(kind, tmp_path, kind.owner(words)) == [("owner", words)]


@names
def test_a_call_has_its_decoded_arguments_and_its_result_no_word(name, tmp_path):
    kind = HARNESSES[name]
    if name == "aider":  # which keeps no calls
        return
    args = {"command": 'echo "ä"\nls'}
    entries = [kind.owner("hello"), *kind.call("bash", args, "c1", WORD)]
    [call] = items(kind, tmp_path, entries, Called)
    assert (call.tool, call.args) == (NO_NAMES.get(name, "bash"), args)
    results = items(kind, tmp_path, entries, Returned)
    assert [result.call for result in results] == [call.call]
    assert call.call is not None
    assert WORD not in call_text(call.tool, call.args)


@names
def test_tells_session_project_and_agent(name, tmp_path):
    kind = HARNESSES[name]
    told = [
        record.about for record in records(kind, tmp_path, [kind.owner("hello")]) if record.about
    ]
    assert told[0].agent == kind.adapter
    assert {about.project for about in told} - {None} == {kind.project} - {None}
    if kind.session is not None and any(about.session for about in told):
        assert {about.session for about in told} - {None} == {kind.session}
    assert all(about.link is None for about in told)


OUTSIDE = [(name, place) for name, kind in HARNESSES.items() for place in kind.outside]


@pytest.mark.parametrize(("name", "place"), OUTSIDE)
def test_no_word_from_outside_is_read_and_its_record_raises(name, place, tmp_path):
    kind = HARNESSES[name]
    known = [kind.owner("hello"), kind.assistant("b"), kind.assistant("c")]
    before = records(kind, tmp_path / "a", known)
    after = records(kind, tmp_path / "b", [*known, kind.outside[place](WORD)])
    added = [item for record in after for item in record.items]
    assert WORD not in "".join(
        item.text if isinstance(item, Said) else call_text(item.tool, item.args)
        for item in added
        if isinstance(item, Said | Called)
    )
    raising = [item for item in added if isinstance(item, Returned | Brought | Unreadable)]
    assert len(raising) > sum(isinstance(i, Returned | Brought) for r in before for i in r.items)


SILENT = [(name, place) for name, kind in HARNESSES.items() for place in kind.silent]


@pytest.mark.parametrize(("name", "place"), SILENT)
def test_thinking_is_neither_read_nor_raises(name, place, tmp_path):
    kind = HARNESSES[name]
    before = records(kind, tmp_path / "a", [kind.owner("hello")])
    after = records(kind, tmp_path / "b", [kind.owner("hello"), kind.silent[place](WORD)])
    assert [i for r in after for i in r.items] == [i for r in before for i in r.items]


UNKNOWN = [name for name, kind in HARNESSES.items() if kind.unknown is not None]


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_kind_with_text_raises_as_an_unknown_tool_does_and_without_does_not(
    name, tmp_path
):
    kind = HARNESSES[name]
    assert kind.unknown is not None
    known = [kind.owner("a"), kind.assistant("b"), kind.owner("c")]
    [*_, item] = items(kind, tmp_path, [*known, kind.unknown({"content": "x"})], Brought)
    assert RULES.brought(item.name) == RULES.unknown
    fields = {"count": 3, "flag": True, "none": None, "empty": "", "list": []}
    entries = [*known, kind.unknown(fields)]
    brought = items(kind, tmp_path, entries, Brought)
    assert [item for item in brought if item.name.startswith("record:")] == []


@names
def test_no_other_format_claims_its_records(name, tmp_path):
    kind = HARNESSES[name]
    kind.put(
        tmp_path,
        [kind.owner("a"), kind.assistant("b"), *kind.call("bash", {"command": "c"}, "d", "e")],
    )
    [log] = logs_in(tmp_path)
    with opened(log) as (handle, _):
        lines = Path(f"/proc/self/fd/{handle}").read_text("utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    assert log.adapter.claims(told[0]) is not False
    for other in ADAPTERS.values():
        if other is not log.adapter:
            assert not any(other.claims(line) is True for line in told)
    for line in (claude_user("x"), codex_meta(), codex_user("x"), native_owner("x")):
        assert log.adapter.claims(line) is not True


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "text", "content", "id"]), inner, max_size=3)
    ),
)


@names
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_survives_any_value_in_any_field(name, data):
    kind = HARNESSES[name]
    if kind.adapter == "aider":  # which has no fields
        return
    entries = [
        kind.owner("x"),
        kind.assistant("x"),
        *kind.call("bash", {"command": "x"}, "c", "x"),
        *(made("x") for made in kind.outside.values()),
    ]
    entry = copy.deepcopy(data.draw(st.sampled_from(entries)))
    spots = list(_objects(entry))
    if not spots:
        return
    spot = data.draw(st.sampled_from(spots))
    spot[data.draw(st.sampled_from(sorted(spot)))] = data.draw(VALUES)
    adapter = ADAPTERS[kind.adapter]
    with tempfile.TemporaryDirectory() as folder:
        put = Path(folder)
        try:
            kind.put(put, [kind.owner("hello"), entry])
        except (TypeError, ValueError, KeyError, sqlite3.Error):
            return  # not even its harness could write that
        for log in logs_in(put):
            assert log.adapter is adapter
            try:
                with opened(log) as (handle, _):
                    found = [r for b in read(handle, Position(), adapter) for r in b.records]
            except OSError:
                return  # a document that does not hold together: told, and tried again
            assert not any(isinstance(i, Unreadable) for r in found for i in r.items)
            heard = [i for r in found for i in r.items if isinstance(i, Said)]
            assert all(item.kind in Spoken for item in heard)


@pytest.mark.slow
@names
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_survives_any_of_many_values_in_any_field(name, data):
    test_survives_any_value_in_any_field.hypothesis.inner_test(name, data)


def _objects(value):
    if isinstance(value, dict):
        if value:
            yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _objects(inner)
