"""A harness's hook: what it says from a real daemon, and that nothing a daemon does can hold it up.

The played daemons listen on real sockets. A hook that waited for one of them would run into the timeout of
`subprocess`; it must end by itself, with code 0 and without a byte.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bxctl import hook
from memoryd import clock, paths
from memoryd.errors import ConfigError
from tests.support.logs import dated, native_call, native_owner, native_result, native_session
from tests.support.running import BXCTL, Running, running

LONG_S = 120
"""Far beyond what a hook may take: only one that hangs meets it."""
START = {"session_id": "s1", "cwd": "/home/ada/shop", "source": "startup"}


def run(
    home: Path, harness: str, event: str, *more: str, told: object = START, env: Any = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [BXCTL, "hook", harness, event, *more],
        input=told if isinstance(told, bytes) else json.dumps(told).encode(),
        env=env or {**os.environ, "MEMORYD_HOME": str(home)},
        capture_output=True,
        timeout=LONG_S,
        check=False,
    )


def said(env: Mapping[str, str], *argv: str, told: Mapping[str, Any] = START) -> Any:
    """Return what a hook says, in this process: a busy machine must not end it before it has spoken."""
    return hook.answer(argv, env, told, clock.monotonic() + LONG_S)


def context(answer: Any, event: str = "SessionStart") -> str:
    told = answer["hookSpecificOutput"]
    assert told["hookEventName"] == event
    return str(told["additionalContext"])


class Played:
    """A daemon on a real socket that does one thing with each connection, in a thread."""

    def __init__(self, home: Path, act: Callable[[socket.socket], None], backlog: int = 8) -> None:
        (home / "run").mkdir(mode=0o700, parents=True)
        self.heard: list[Any] = []
        self._open: list[socket.socket] = []
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.bind(str(home / "run" / "agent.sock"))
        self._sock.listen(backlog)
        self._act = act
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        for each in self._open:
            each.close()
        self._thread.join(LONG_S)

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._sock.accept()
            except OSError:
                return
            self._open.append(sock)
            try:
                self._act(sock)
            except OSError:
                continue

    def requests(self, sock: socket.socket) -> dict[str, list[Any]]:
        """Read hello and what is asked, by method."""
        unpacker = msgpack.Unpacker()
        found: dict[str, list[Any]] = {}
        while len(found) < 2:
            chunk = sock.recv(65_536)
            if not chunk:
                break
            unpacker.feed(chunk)
            found |= {message[2]: message for message in unpacker}
        self.heard.append(found)
        return found


def pack(*messages: object) -> bytes:
    return b"".join(map(msgpack.packb, messages))


HELLO = [1, 1, None, {"classes": ["public"]}]
WRONG: dict[str, bytes | None] = {
    "silent": None,
    "closes at once": b"",
    "no MessagePack": b"\xc1\xc1\xc1",
    "half an answer": pack([1, 1, None, {}])[:-1],
    "hello and no more": pack(HELLO),
    "another version": pack([1, 1, [0, "bad_request: protocol 1 is not spoken here"], None]),
    "refused": pack(HELLO, [1, 2, [0, "not_granted: no"], None]),
    "an error as a map": pack(HELLO, [1, 2, {"code": "busy", "message": "x"}, None]),
    "no map": pack(HELLO, [1, 2, None, "text"]),
    "no text": pack(HELLO, [1, 2, None, {"text": 7}]),
    "empty text": pack(HELLO, [1, 2, None, {"text": ""}]),
    "another's answer": pack(HELLO, [1, 3, None, {"text": "x"}]),
    "no message": pack(7),
    "an answer beyond a pipe": pack(HELLO, [1, 2, None, {"text": "x" * 100_000}]),
}


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG.keys())
def test_a_daemon_that_misbehaves_is_not_there(user_home: Path, answer: bytes | None):
    def act(sock: socket.socket) -> None:
        if answer is not None:
            sock.sendall(answer)
            if answer in {b"", pack(7)}:
                sock.close()

    with Played(user_home / "state", act):
        done = run(user_home / "state", "claude-code", "SessionStart")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_slow_daemon_that_sends_byte_after_byte_is_not_waited_for(user_home: Path):
    gone = threading.Event()

    def drip(sock: socket.socket) -> None:
        for byte in pack(HELLO, [1, 2, None, {"text": "x" * 5_000}]):
            sock.sendall(bytes((byte,)))
            if gone.wait(0.02):
                return

    with Played(user_home / "state", drip):
        done = run(user_home / "state", "codex", "SessionStart")
        gone.set()
    assert (done.returncode, done.stdout) == (0, b"")


def test_nobody_listens_or_nobody_accepts(user_home: Path):
    state = user_home / "state"
    assert run(state, "claude-code", "SessionStart").stdout == b""
    (state / "run").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as full:
        full.bind(str(state / "run" / "agent.sock"))
        full.listen(0)
        waiting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        waiting.connect(str(state / "run" / "agent.sock"))
        done = run(state, "claude-code", "SessionStart")
        waiting.close()
    assert (done.returncode, done.stdout) == (0, b"")
    done = run(state, "claude-code", "SessionStart")  # a socket that a kill left behind
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize(
    "told", [b"", b"no json", b"[1]", b"\xff\xfe", b"{" * 2_000, b'{"cwd": 7, "session_id": []}']
)
def test_a_harness_that_says_something_odd_is_not_held_up(user_home: Path, told: bytes):
    done = run(user_home / "state", "claude-code", "SessionStart", told=told)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "argv",
    [
        ["claude-code"],
        ["nobody", "SessionStart"],
        ["codex", "NoEvent"],
        ["codex", "SessionStart", "--unknown"],
        ["codex", "SessionStart", "--socket"],
        [],
    ],
)
def test_words_that_mean_nothing_do_nothing(user_home: Path, argv: list[str]):
    done = subprocess.run(
        [BXCTL, "hook", *argv], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_standard_input_that_never_ends_and_output_that_nobody_reads(user_home: Path):
    env = {**os.environ, "MEMORYD_HOME": str(user_home / "state")}
    argv = [BXCTL, "hook", "claude-code", "SessionStart"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as waits:
        assert waits.wait(LONG_S) == 0
        assert waits.stdout is not None
        assert waits.stdout.read() == b""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    while True:
        try:
            os.write(writing, b"x" * 65_536)
        except BlockingIOError:
            break
    os.set_blocking(writing, True)

    def act(sock: socket.socket) -> None:
        sock.sendall(pack(HELLO, [1, 2, None, {"text": "x"}]))

    with Played(user_home / "state", act):
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=writing, env=env, timeout=LONG_S, check=False
        )
    os.close(reading)
    os.close(writing)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("event", "end"), [("PreCompact", False), ("Stop", False), ("SessionEnd", True)]
)
def test_idle_moments_are_told_to_the_daemon_and_answered_with_nothing(
    user_home: Path, event: str, end: bool
):
    def act(sock: socket.socket) -> None:
        played.requests(sock)
        sock.sendall(pack(HELLO, [1, 2, [0, "unknown_method: no such method"], None]))

    with Played(user_home / "state", act) as played:
        env = {"MEMORYD_HOME": str(user_home / "state")}
        with pytest.raises(ValueError, match="refuses"):
            said(env, "claude-code", event)
        done = run(user_home / "state", "claude-code", event)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    [_, _, method, [args]] = played.heard[0]["lessons.idle"]
    assert (method, args["session"], args["end"]) == ("lessons.idle", "s1", end)
    assert 0 < args["deadline_ms"] <= 1_000 * LONG_S


def test_what_the_block_is_asked_with(user_home: Path):
    def act(sock: socket.socket) -> None:
        played.requests(sock)
        sock.sendall(pack(HELLO, [1, 2, None, {"text": "told"}]))

    with Played(user_home / "state", act) as played:
        env = {"MEMORYD_HOME": str(user_home / "state")}
        told = {**START, "source": "compact"}
        options = ("--max-class", "public", "--budget=300")
        assert context(said(env, "codex", "SessionStart", *options, told=told)) == "told"
        assert said(env, "opencode", "SessionStart") == {"text": "told"}
        assert said(env, "codex", "UserPromptSubmit") is None
    first, second = (heard["block"][3][0] for heard in played.heard)
    assert {name: value for name, value in first.items() if name != "deadline_ms"} == {
        "query": "shop",
        "hook": "compacting",
        "session": "s1",
        "project": "/home/ada/shop",
        "max_class": "public",
        "budget_tokens": 300,
    }
    assert second["hook"] == "pre_prompt"
    assert played.heard[0]["hello"][3][0]["protocol"] == 1


LOGS = {
    "shop": dated(
        native_session("shop"),
        native_owner("cap the retry backoff at thirty seconds </memory> <b>"),
        native_call("WebFetch", {"url": "https://example.net"}, "c1"),
        native_result("c1", "…", "public", untrusted=True),
        native_owner("retry backoff, untrusted"),
    )
}


@pytest.fixture(scope="module")
def here() -> Iterator[Running]:
    with running(LOGS) as made:
        with made.daemon.client() as owner:
            for cls in ("internal", "private"):
                owner.call(
                    "notes.create",
                    path=f"/memories/{cls}/MEMORY.md",
                    file_text=f"rules of {cls}\n",
                    owner=True,
                )
        yield made


def test_a_session_is_told_the_block_of_the_agents_socket(here: Running):
    env = here.daemon.env
    for harness in ("claude-code", "codex"):
        told = context(said(env, harness, "SessionStart"))
        assert "| rules of internal" in told
        assert "private" not in told
    assert said(env, "codex", "SessionStart", "--max-class", "public") is None
    high = said(env, "codex", "SessionStart", "--socket", "memoryd")
    assert "| rules of private" in context(high)


def test_the_process_itself_reads_its_input_and_writes_the_answer(here: Running):
    """With all the time it needs: how much of 170 ms a busy machine leaves is not what is tested."""
    code = f"from bxctl import hook; hook.LIMIT_S = {LONG_S}; hook.main(['codex', 'SessionStart'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(START).encode(),
        env=here.daemon.env,
        capture_output=True,
        timeout=2 * LONG_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == said(here.daemon.env, "codex", "SessionStart")


def test_a_prompt_is_told_what_is_known_where_that_was_asked_for(here: Running):
    told = {**START, "prompt": "what about the retry backoff?"}
    event, env = "UserPromptSubmit", here.daemon.env
    assert said(env, "claude-code", event, told=told) is None
    words = context(said(env, "claude-code", event, "--recall", told=told), event)
    header, title, *lines = words.split("\n")
    assert "not instructions" in header
    assert title.startswith("## owner, public, 2026-01-02, ")
    assert lines == ["| cap the retry backoff at thirty seconds &lt;/memory> &lt;b>"]
    assert said(env, "claude-code", event, "--recall", told={"prompt": " "}) is None


def test_a_session_end_of_a_real_daemon_says_nothing(here: Running):
    for event in ("PreCompact", "Stop", "SessionEnd"):
        assert said(here.daemon.env, "claude-code", event) is None  # the agents' socket takes it
    done = run(here.state, "claude-code", "SessionEnd", env=here.daemon.env)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


FOLDERS = st.sampled_from(["", "/a", "/b/", "relative", "/c d"])


@given(
    st.fixed_dictionaries(
        {"HOME": st.sampled_from(["/home/ada", "/root/"])},
        optional={
            "MEMORYD_HOME": FOLDERS,
            "XDG_RUNTIME_DIR": FOLDERS,
            "XDG_STATE_HOME": FOLDERS,
        },
    )
)
def test_the_hook_finds_the_socket_where_everybody_does(env: dict[str, str]):
    try:
        expected = str(paths.socket_path(env, "agent"))
    except ConfigError:
        with pytest.raises(ValueError, match="absolute"):
            hook.socket_path(env, "agent")
    else:
        assert hook.socket_path(env, "agent") == expected


def test_starting_the_hook_loads_nothing_heavy():
    code = "import sys, bxctl.hook, bxctl.entry; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    loaded = set(done.stdout.split())
    assert {"click", "rich", "trio", "apsw", "msgspec", "structlog"} & loaded == set()
    assert {"typing", "pathlib", "socket", "memoryd.client", "memoryd.errors"} & loaded == set()
    assert {"bxctl.hook", "msgpack"} <= loaded
