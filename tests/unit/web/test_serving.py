"""Sockets of the page: loopback alone, its owner alone, what is said when they cannot be had; and the server itself."""

import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import hypercorn.trio
import pytest
import trio

from memoryd import __main__ as program
from memoryd.errors import BadRequest, IOFailed
from memoryd.web import guard, serving
from memoryd.web.app import Door, application
from memoryd.web.guard import KEY_HEADER, Keys

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


class Slow:
    """A daemon that never answers; `left` is set once a question is taken back."""

    def __init__(self) -> None:
        self.server: dict[str, Any] = {}
        self.asked, self.left = trio.Event(), trio.Event()

    async def call(self, _method: str, /, **_args: Any) -> Any:
        self.asked.set()
        try:
            await trio.sleep_forever()
        finally:
            self.left.set()


@asynccontextmanager
async def served(memory: Slow) -> AsyncIterator[int]:
    """The real server on a free port."""
    listening = serving.on_loopback(0)
    port = int(listening.getsockname()[1])
    stop = trio.Event()
    app: Any = application(memory, Door(KEYS, port))
    async with trio.open_nursery() as nursery:
        config = serving.configured(listening)
        nursery.start_soon(
            lambda: hypercorn.trio.serve(app, config, shutdown_trigger=stop.wait, mode="asgi")
        )
        yield port
        stop.set()


async def test_the_real_server_sends_our_headers_and_no_name_of_its_own() -> None:
    with trio.fail_after(10):
        async with served(Slow()) as port:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            await stream.send_all(
                b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % port
            )
            told = b"".join([chunk async for chunk in stream]).decode().lower()
            await stream.aclose()
    head = told.partition("\r\n\r\n")[0]
    assert head.startswith("http/1.1 404")
    for name, value in guard.HEADERS.items():
        assert f"\r\n{name}: {value.lower()}" in head
    assert "\r\nserver:" not in head


async def test_a_browser_that_hangs_up_takes_its_question_back() -> None:
    memory = Slow()
    with trio.fail_after(10):
        async with served(memory) as port:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            lines = (
                "GET /api/status HTTP/1.1",
                f"Host: 127.0.0.1:{port}",
                f"Cookie: memoryd-{port}=the-cookie",
                f"{KEY_HEADER}: the-key",
            )
            await stream.send_all("\r\n".join((*lines, "", "")).encode())
            await memory.asked.wait()
            await stream.aclose()
            await memory.left.wait()


async def test_bytes_that_are_no_http_end_the_connection() -> None:
    with trio.fail_after(10):
        async with served(Slow()) as port:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            await stream.send_all(b"\x94\x00\x01\xa4nothing\r\n\r\n")
            told = b"".join([chunk async for chunk in stream])
            await stream.aclose()
    assert told.startswith(b"HTTP/1.1 400")
    assert told.endswith(b"\r\n\r\n")
