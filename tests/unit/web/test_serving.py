"""Sockets of the page: loopback alone, its owner alone, and what is said when they cannot be had."""

import socket
import stat
from pathlib import Path

import pytest

from memoryd import __main__ as program
from memoryd.errors import BadRequest, IOFailed
from memoryd.web import serving
from memoryd.web.app import Door
from memoryd.web.guard import Keys

KEYS = Keys("the-token", "the-cookie", "the-key")


def test_it_listens_on_loopback_alone() -> None:
    with serving.on_loopback(0) as made:
        assert made.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    with serving.on_loopback(0) as made, pytest.raises(IOFailed) as refused:
        serving.on_loopback(made.getsockname()[1])
    assert "cannot be had: Address already in use" in refused.value.message
    assert "--port" in refused.value.remedy
    assert refused.value.exit_code == 74


def test_a_unix_socket_is_its_owner_s_alone(user_home: Path) -> None:
    path = user_home / "web.sock"
    with serving.on_path(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_one_that_nobody_listens_on_is_replaced_and_one_in_use_is_not(user_home: Path) -> None:
    path = user_home / "web.sock"
    serving.on_path(path).close()
    with serving.on_path(path), pytest.raises(IOFailed):
        serving.on_path(path)


def test_a_file_in_its_place_is_left_alone(user_home: Path) -> None:
    path = user_home / "web.sock"
    path.write_text("mine")
    with pytest.raises(IOFailed):
        serving.on_path(path)
    assert path.read_text() == "mine"
    with pytest.raises(IOFailed):
        serving.on_path(user_home / "nowhere" / "web.sock")


def test_the_link_carries_the_token_where_no_server_sees_it() -> None:
    assert serving.told(Door(KEYS, 7707), None) == "http://127.0.0.1:7707/#token=the-token"
    forwarded = serving.told(Door(KEYS, None), Path("/run/web.sock"))
    assert "ssh -N -L 7707:/run/web.sock" in forwarded
    assert forwarded.endswith("http://localhost:7707/#token=the-token")


def test_the_server_says_nothing_of_itself() -> None:
    made = socket.socket()
    config = serving.configured(made)
    assert not config.include_server_header
    assert config.accesslog is None
    assert config.errorlog is None
    socket.socket(fileno=int(config.bind[0].removeprefix("fd://"))).close()


def test_a_socket_is_asked_by_name_by_path_or_the_owner_s(
    user_home: Path, memoryd_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"HOME": str(user_home), "MEMORYD_HOME": str(memoryd_home)}
    assert program.socket_of(env, None) == memoryd_home / "run" / "memoryd.sock"
    assert program.socket_of(env, "agent") == memoryd_home / "run" / "agent.sock"
    assert program.socket_of(env, "/x/y.sock") == Path("/x/y.sock")
    with pytest.raises(BadRequest, match="memoryd, agent"):
        program.socket_of(env, "nobody")
    file = user_home / "memoryd.toml"
    file.write_text(
        '[[socket]]\nname = "mine"\npath = "/x/mine.sock"\nclearance = "secret"\ntools = ["*"]\n'
    )
    file.chmod(0o600)
    assert program.socket_of(env | {"MEMORYD_CONFIG": str(file)}, None) == Path("/x/mine.sock")


def test_without_a_daemon_it_ends_with_one_line_and_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert program.main(["web", "--port", "0"]) == 69
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("memoryd: memoryd is not running")
    assert "start it with `memoryd`" in told.err


def test_without_the_extra_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = program.importlib.util.find_spec
    monkeypatch.setattr(
        program.importlib.util,
        "find_spec",
        lambda name: None if name == "hypercorn" else found(name),
    )
    assert program.main(["web"]) == 69
    assert capsys.readouterr().err == (
        "memoryd: memoryd web needs hypercorn, not installed here; pip install 'memoryd[web]'\n"
    )


@pytest.mark.parametrize(
    "argv", [["--port", "70000"], ["--port", "x"], ["--port", "-1"], ["--nonsense"]]
)
def test_a_slip_on_the_command_line_is_usage(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        program.main(["web", *argv])
    assert left.value.code == 2
    assert "usage: memoryd" in capsys.readouterr().err


def test_a_port_and_a_path_are_not_both_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["web", "--port", "1", "--unix", "x"]) == 2
    assert "not both" in capsys.readouterr().err
