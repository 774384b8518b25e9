"""overrides.jsonl: entries come back as written, cut lines are counted, foreign ones refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import ConfigError
from memoryd.index import overrides
from memoryd.index.overrides import FILE, Floor, Forget, Relabel

PLACE = ("claude-code", "/r", "a.jsonl")
FLOOR = Floor(*PLACE, "private", True, "the log was rewritten", "2026-01-02T03:04:05.006Z")
RELABEL = Relabel(
    *PLACE, 3, 9, "AAAA", "looked at it", "internal", True, "2026-01-02T03:04:05.006Z"
)
FORGET = Forget(*PLACE, 3, 9, act="forget-1", ts="2026-01-02T03:04:05.006Z")


def test_entries_come_back_in_their_order(tmp_path):
    overrides.append(tmp_path, FLOOR)
    overrides.append(tmp_path, RELABEL, FORGET)
    assert overrides.read(tmp_path) == overrides.Overrides([FLOOR, RELABEL, FORGET], 0)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    first, second, third = map(json.loads, (tmp_path / FILE).read_text().splitlines())
    assert list(first) == sorted(first)
    assert (first["kind"], second["kind"], third["kind"]) == ("floor", "relabel", "forget")
    assert (second["from"], second["to"], second["class"]) == (3, 9, "internal")


def test_an_entry_without_a_time_gets_one(tmp_path):
    overrides.append(tmp_path, Forget(*PLACE))
    (entry,) = overrides.read(tmp_path).entries
    assert entry.ts.endswith("Z")
    assert entry == Forget(*PLACE, ts=entry.ts)


def test_a_cut_line_is_counted_and_swallows_none(tmp_path):
    overrides.append(tmp_path, FLOOR)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"kind":"forget","sour')
    overrides.append(tmp_path, RELABEL)
    assert overrides.read(tmp_path) == overrides.Overrides([FLOOR, RELABEL], 1)


@pytest.mark.parametrize(
    "line",
    ['{"kind":"exile","log":"a"}', '{"kind":"relabel","log":7}', "[]", "7", '{"log":"a"}'],
)
def test_a_whole_line_that_is_not_understood_is_refused_by_its_number(tmp_path, line):
    overrides.append(tmp_path, FLOOR)
    with (tmp_path / FILE).open("a") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(ConfigError, match=r"line 3 of overrides\.jsonl"):
        overrides.read(tmp_path)


def test_no_file_is_no_entry(tmp_path):
    assert overrides.read(tmp_path) == overrides.Overrides([], 0)


@given(cut=st.integers(0, 400))
def test_however_a_write_is_cut_what_was_there_before_stays(tmp_path_factory, cut):
    home = tmp_path_factory.mktemp("home")
    overrides.append(home, FLOOR)
    before = (home / FILE).stat().st_size
    overrides.append(home, RELABEL)
    whole = (home / FILE).read_bytes()
    (home / FILE).write_bytes(whole[: before + cut])
    overrides.append(home, FORGET)
    entries = overrides.read(home).entries
    assert entries[0] == FLOOR
    assert entries[-1] == FORGET
    assert (RELABEL in entries) == (len(whole) - before - 1 <= cut)
