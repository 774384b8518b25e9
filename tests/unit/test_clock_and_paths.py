"""Times as text and back; where files and sockets lie."""

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd import clock, paths
from memoryd.errors import ConfigError


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_times_round_trip(ms: int) -> None:
    assert clock.parse_rfc3339(clock.rfc3339(ms)) == ms


def test_a_time_outside_of_what_text_can_say_is_the_nearest_that_it_can():
    early = clock.milliseconds(datetime.fromisoformat("0001-01-01T00:00:00+23:59"))
    late = clock.milliseconds(datetime.fromisoformat("9999-12-31T23:59:59-23:59"))
    assert clock.rfc3339(early) == "0001-01-01T00:00:00.000Z"
    assert clock.rfc3339(late) == "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00.006+01:00", 6),
        ("1970-01-01T00:00:01", 1000),
        ("yesterday", None),
        ("", None),
        (5, None),
        (None, None),
        ("2026-13-01T00:00:00Z", None),
        ("1" * 100, None),
    ],
)
def test_what_is_no_time_is_none(text: object, ms: int | None) -> None:
    assert clock.parse_rfc3339(text) == ms


def test_state_lies_where_the_variables_say() -> None:
    assert paths.home({"HOME": "/h"}) == Path("/h/.local/state/memoryd")
    assert paths.home({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == Path("/s/memoryd")
    assert paths.home({"HOME": "/h", "XDG_STATE_HOME": "rel"}) == Path("/h/.local/state/memoryd")
    assert paths.home({"HOME": "/h", "MEMORYD_HOME": "/m"}) == Path("/m")
    with pytest.raises(ConfigError):
        paths.home({"MEMORYD_HOME": "rel"})
    with pytest.raises(ConfigError):
        paths.home({"HOME": ""})


def test_sockets_lie_in_the_runtime_folder_only_for_the_default_home() -> None:
    env = {"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/1"}
    assert paths.socket_path(env, "agent") == Path("/run/user/1/memoryd/agent.sock")
    assert paths.socket_path(env | {"MEMORYD_HOME": "/m"}, "agent") == Path("/m/run/agent.sock")
    assert paths.socket_path({"HOME": "/h"}, "a") == Path("/h/.local/state/memoryd/run/a.sock")


def test_configuration_is_implied_only_for_the_default_home() -> None:
    env = {"HOME": "/h"}
    assert paths.config_path(env) == Path("/h/.config/memoryd/memoryd.toml")
    assert paths.config_path(env | {"XDG_CONFIG_HOME": "/c"}) == Path("/c/memoryd/memoryd.toml")
    assert paths.config_path(env | {"MEMORYD_HOME": "/m"}) is None
    assert paths.config_path(env | {"MEMORYD_HOME": "/m", "MEMORYD_CONFIG": "/x"}) == Path("/x")
    with pytest.raises(ConfigError):
        paths.config_path(env | {"MEMORYD_CONFIG": "x"})


def test_l20_a_socket_path_over_107_bytes_is_refused_with_a_remedy() -> None:
    fits = Path("/" + "é" * 53)
    assert paths.checked_socket(fits) == fits
    with pytest.raises(ConfigError, match="108 bytes; 107 are possible") as caught:
        paths.checked_socket(Path("/" + "é" * 53 + "x"))
    assert "shorter" in caught.value.remedy
