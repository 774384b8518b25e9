"""Whom a command asks: the socket that is named, the one that is configured, or the index itself."""

import os
from pathlib import Path

import pytest

from bxctl.context import Context
from bxctl.output import Output
from memoryd import client
from memoryd.errors import BadRequest, ConfigError, Unavailable

CONFIG = """
[[socket]]
name = "sandbox"
clearance = "internal"
tools = ["recall"]
path = "/run/sandbox.sock"
[[socket]]
name = "mine"
clearance = "secret"
tools = ["*"]
path = "/run/mine.sock"
[[socket]]
name = "plain"
clearance = "public"
tools = ["recall"]
"""


@pytest.fixture
def dialled(monkeypatch):
    """What was connected to, in order; nobody listens anywhere but at what `listening` holds."""
    tried: list[str | Path] = []

    def connect(where, **_):
        tried.append(where)
        raise Unavailable(f"memoryd is not running: nobody listens at {where}", remedy="start it")

    monkeypatch.setattr(client, "connect", connect)
    return tried


@pytest.fixture
def asking(user_home, monkeypatch):
    def context(socket: str | None, config: str = "") -> Context:
        if config:
            file = user_home / "memoryd.toml"
            file.write_text(config)
            file.chmod(0o600)
            monkeypatch.setenv("MEMORYD_CONFIG", str(file))
        return Context(os.environ, Output(os.environ, json=False, color="auto"), socket)

    return context


@pytest.mark.parametrize(
    ("socket", "tried"),
    [
        (None, ["memoryd", Path("/run/mine.sock")]),
        ("mine", ["mine", Path("/run/mine.sock")]),
        ("sandbox", ["sandbox", Path("/run/sandbox.sock")]),
        ("plain", ["plain"]),
        ("/run/other.sock", ["/run/other.sock"]),
    ],
)
def test_a_socket_is_sought_where_it_is_configured(dialled, asking, socket, tried):
    with pytest.raises(Unavailable):
        asking(socket, CONFIG).daemon()
    assert dialled == tried


def test_without_configuration_the_owner_s_socket_is_asked_once(dialled, asking):
    with pytest.raises(Unavailable):
        asking(None).daemon()
    assert dialled == ["memoryd"]


def test_a_name_that_is_not_configured_is_refused_with_those_that_are(dialled, asking):
    with pytest.raises(BadRequest, match="there are sandbox, mine, plain"):
        asking("memoryd", CONFIG).daemon()


def test_a_broken_configuration_is_told_when_it_is_needed(dialled, asking):
    with pytest.raises(ConfigError, match=r"memoryd\.toml:1"):
        asking(None, "nonsense = 1\n").daemon()


def test_without_an_index_both_reasons_are_told(dialled, asking):
    with pytest.raises(
        Unavailable, match=r"not running.*, and there is no index yet; start `memoryd`"
    ):
        asking(None).anybody()


def test_a_path_is_never_answered_from_the_index(dialled, asking):
    with pytest.raises(Unavailable, match=r"/run/other\.sock; start it"):
        asking("/run/other.sock").anybody()
