"""Times as people say them: what each form means, and what is refused."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bxctl.times import Edge, lasted, moment, said
from memoryd.clock import parse_rfc3339

NOW = parse_rfc3339("2026-03-10T12:00:00Z") or 0
HOUR, DAY = 3_600_000, 86_400_000


def at(text: str) -> int:
    found = parse_rfc3339(text)
    assert found is not None
    return found


@pytest.fixture(params=["UTC", "Asia/Kolkata", "America/New_York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("3d", 3 * DAY),
        ("2h", 2 * HOUR),
        ("2h ago", 2 * HOUR),
        ("90m", 90 * 60_000),
        ("1 week ago", 7 * DAY),
        ("5 minutes", 5 * 60_000),
        ("10s", 10_000),
        ("now", 0),
        ("  3D ", 3 * DAY),
    ],
)
def test_a_span_counts_back_from_now(text, ago):
    assert moment(text, NOW, Edge.START) == moment(text, NOW, Edge.END) == NOW - ago


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-01-31", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("today", "2026-03-10T00:00:00Z", "2026-03-11T00:00:00Z"),
        ("yesterday", "2026-03-09T00:00:00Z", "2026-03-10T00:00:00Z"),
        ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
        ("2026-01-31t10:00:00.5z", "2026-01-31T10:00:00.500Z", "2026-01-31T10:00:00.500Z"),
        ("2026-01-31T10:00:00+02:00", "2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
        ("2026-01-31T10:00", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
    ],
)
def test_a_day_has_two_ends_and_a_time_one(utc, text, start, end):
    assert moment(text, NOW, Edge.START) == at(start)
    assert moment(text, NOW, Edge.END) == at(end)


@pytest.mark.parametrize(
    "text",
    ["", " ", "soon", "3", "3x", "d", "-3d", "3d4h", "12345d", "2026-13-01", "2026-02-30", "T10",
     "9999999999", "ago", "３d", "2026-01-31T25:00:00Z", "\udcff", "x" * 5_000],
)  # fmt: skip
def test_what_names_no_time_is_none(text):
    assert moment(text, NOW, Edge.START) is None


def test_a_day_is_the_local_one_in_every_zone(zone):
    start, end = moment("2026-01-31", NOW, Edge.START), moment("2026-01-31", NOW, Edge.END)
    assert start is not None
    assert end is not None
    assert end - start == DAY
    offset = {"UTC": 0, "Asia/Kolkata": 5.5, "America/New_York": -5}[zone]
    assert start == at("2026-01-31T00:00:00Z") - offset * HOUR


def test_the_day_the_clocks_change_has_23_hours(monkeypatch, zone):
    if zone == "America/New_York":
        start, end = moment("2026-03-08", NOW, Edge.START), moment("2026-03-08", NOW, Edge.END)
        assert (end or 0) - (start or 0) == 23 * HOUR


@given(st.text())
def test_no_text_breaks_it(text):
    found = moment(text, NOW, Edge.START)
    assert found is None or isinstance(found, int)


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (0, "just now"),
        (44_000, "just now"),
        (45_000, "1 min ago"),
        (89 * 60_000, "89 min ago"),
        (3 * HOUR, "today 09:00"),
        (13 * HOUR, "yesterday 23:00"),
        (3 * DAY, "3 days ago"),
        (20 * DAY, "18 Feb"),
        (400 * DAY, "3 Feb 2025"),
        (-DAY, "2026-03-11 12:00"),
    ],
)
def test_a_time_is_said_as_people_do(utc, ago, words):
    assert said(NOW - ago, NOW) == words


def test_a_record_without_time_says_so():
    assert said(None, NOW) == "no time"


def test_a_time_that_no_calendar_holds_is_still_said():
    assert said(2**62, NOW) == "no time"
    assert said(-(2**62), NOW) == "no time"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.44, "0.4 s"), (12, "12 s"), (185, "3 min 5 s"), (180, "3 min"), (7_800, "2 h 10 min"),
     (97 * 3_600, "4 d 1 h")],
)  # fmt: skip
def test_a_duration_has_two_units(seconds, words):
    assert lasted(seconds) == words
