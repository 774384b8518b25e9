"""The blocking client: answers, typed errors, and a bound on everything it waits for."""

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest

from memoryd import client, clock, errors
from memoryd.client import connect

Talk = Callable[[socket.socket], None]
HELLO = {"server": "memoryd", "classes": ["public"]}


@contextmanager
def listening(home: Path, talk: Talk | None, backlog: int = 8) -> Iterator[socket.socket]:
    """Listen as the owner's socket; `talk` has each accepted connection, None: nobody accepts."""
    path = home / "run" / "memoryd.sock"
    path.parent.mkdir(parents=True)
    done = threading.Event()

    def accept(talk: Talk) -> None:
        while not done.is_set():
            try:
                peer, _ = sock.accept()
            except TimeoutError:
                continue
            with peer:
                peer.settimeout(5)
                with contextlib.suppress(ConnectionError):
                    talk(peer)

    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        sock.listen(backlog)
        sock.settimeout(0.05)
        threads = [threading.Thread(target=accept, args=[talk])] if talk is not None else []
        for thread in threads:
            thread.start()
        try:
            yield sock
        finally:
            done.set()
            for thread in threads:
                thread.join()


def answering(reply: Callable[[int, str, dict[str, Any]], list[Any]]) -> Talk:
    """Answer `hello`, and everything else with the messages that `reply` gives."""

    def talk(peer: socket.socket) -> None:
        unpacker = msgpack.Unpacker()
        while chunk := peer.recv(65_536):
            unpacker.feed(chunk)
            for _, msgid, method, (args,) in unpacker:
                if method == "hello":
                    assert args == {"client": "memoryd.client", "protocol": 1, "errors": "map"}
                    messages: list[Any] = [[1, msgid, None, HELLO]]
                else:
                    messages = reply(msgid, method, args)
                peer.sendall(b"".join(map(msgpack.packb, messages)))

    return talk


def test_an_answer_is_returned_and_hello_is_kept(memoryd_home: Path) -> None:
    talk = answering(lambda msgid, method, args: [[1, msgid, None, [method, args]]])
    with listening(memoryd_home, talk), connect() as memory:
        assert memory.server == HELLO
        assert memory.call("recall", query="é") == ["recall", {"query": "é", "deadline_ms": 5_000}]
        assert memory.call("get", deadline_ms=70) == ["get", {"deadline_ms": 70}]


DEEP: list[Any] = []
for _ in range(2_000):
    DEEP = [DEEP]
UNSENDABLE = pytest.mark.parametrize(
    ("value", "why"),
    [
        ("kept \ud800", "surrogate"),
        (1 << 70, "64 bits"),
        ({"in": [1 << 63]}, "sign"),
        (-1 << 70, "64 bits"),
        ({"kept"}, "lists"),
        (DEEP, "500 deep"),
    ],
    ids=["surrogate", "large", "unsigned", "small", "set", "deep"],
)


@UNSENDABLE
def test_what_cannot_be_sent_is_a_bad_request_and_the_connection_stays(
    memoryd_home: Path, value: object, why: str
) -> None:
    talk = answering(lambda msgid, method, args: [[1, msgid, None, args["query"]]])
    with listening(memoryd_home, talk), connect() as memory:
        with pytest.raises(errors.BadRequest, match="cannot be sent") as caught:
            memory.call("recall", query=value)
        assert why in caught.value.remedy
        assert "kept" not in str(caught.value)
        assert memory.call("recall", query="next") == "next"


def test_a_path_names_a_socket_as_well(memoryd_home: Path) -> None:
    talk = answering(lambda msgid, method, args: [[1, msgid, None, "x"]])
    with listening(memoryd_home, talk):
        for where in (memoryd_home / "run/memoryd.sock", f"{memoryd_home}/run/memoryd.sock"):
            with connect(where) as memory:
                assert memory.call("status") == "x"


def test_pages_follow_the_cursor_to_its_end(memoryd_home: Path) -> None:
    cursors = {None: "a", "a": "b", "b": None}

    def reply(msgid: int, method: str, args: dict[str, Any]) -> list[Any]:
        at = args.get("cursor")
        return [[1, msgid, None, {"at": at, "cursor": cursors[at]}]]

    with listening(memoryd_home, answering(reply)), connect() as memory:
        assert [page["at"] for page in memory.pages("dump")] == [None, "a", "b"]


@pytest.mark.parametrize("error", errors.ALL)
def test_an_error_comes_back_as_its_own_class(
    memoryd_home: Path, error: type[errors.MemorydError]
) -> None:
    sent = {"code": error.code, "message": "m", "data": {"remedy": "r", "check": 7}}
    talk = answering(lambda msgid, method, args: [[1, msgid, sent, None]])
    with listening(memoryd_home, talk), connect() as memory:
        with pytest.raises(error) as raised:
            memory.call("recall")
        assert (raised.value.message, raised.value.remedy) == ("m", "r")
        assert raised.value.data == {"check": 7}


@pytest.mark.parametrize(
    ("sent", "kind", "message"),
    [
        ([0, "not_found: no such record"], errors.NotFound, "no such record"),
        ("busy: later", errors.Busy, "later"),
        ({"code": "brand_new", "message": "m"}, errors.Internal, "m"),
        ({"code": "busy", "message": "m", "data": 7}, errors.Busy, "m"),
        ({"code": "busy", "message": "m", "data": {"message": "x"}}, errors.Busy, "m"),
        ([0, 1, 2], errors.Internal, "[0, 1, 2]"),
    ],
)
def test_other_renderings_and_newer_codes_are_understood(
    memoryd_home: Path, sent: Any, kind: type[errors.MemorydError], message: str
) -> None:
    talk = answering(lambda msgid, method, args: [[1, msgid, sent, None]])
    with listening(memoryd_home, talk), connect() as memory:
        with pytest.raises(kind) as raised:
            memory.call("recall")
        assert raised.value.message == message


def test_what_nobody_waits_for_is_passed_over(memoryd_home: Path) -> None:
    talk = answering(
        lambda msgid, method, args: [
            [2, "progress", [{}]],
            [1, msgid - 1, None, "late"],
            [1, msgid + 1, None, "early"],
            [1, msgid, None, "mine"],
        ]
    )
    with listening(memoryd_home, talk), connect() as memory:
        assert memory.call("recall") == "mine"


def test_nobody_there_is_unavailable_with_a_remedy(memoryd_home: Path) -> None:
    with pytest.raises(errors.Unavailable) as raised:
        connect()
    assert "memoryd" in raised.value.remedy
    assert raised.value.exit_code == 69
    with listening(memoryd_home, None):
        pass
    with pytest.raises(errors.Unavailable):
        connect()
    (memoryd_home / "run" / "file.sock").write_text("")
    with pytest.raises(errors.Unavailable):
        connect("file")


def test_a_path_that_no_socket_can_have_is_refused() -> None:
    with pytest.raises(errors.ConfigError):
        connect("/tmp/" + "x" * 103)
    with pytest.raises(errors.ConfigError):
        connect(Path("/tmp/" + "x" * 103))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begun = clock.monotonic()
    yield
    assert clock.monotonic() - begun < seconds


def test_a_daemon_that_hangs_costs_the_budget_and_no_more(memoryd_home: Path) -> None:
    with listening(memoryd_home, None), within(1.0), pytest.raises(errors.TimedOut):
        connect(budget=0.1)


def test_timeout_bounds_connecting_with_its_hello(memoryd_home: Path) -> None:
    with listening(memoryd_home, None), within(1.0), pytest.raises(errors.TimedOut):
        connect(timeout=0.1)


def test_a_full_queue_is_tried_again_and_then_busy_p23(memoryd_home: Path) -> None:
    with listening(memoryd_home, None, backlog=0) as sock:
        first = socket.socket(socket.AF_UNIX)
        with first:
            first.connect(sock.getsockname())
            with within(1.0), pytest.raises(errors.Busy):
                connect(timeout=0.1)


def test_a_slow_answer_costs_the_timeout_and_the_next_call_works(memoryd_home: Path) -> None:
    held: list[Any] = []

    def reply(msgid: int, method: str, args: dict[str, Any]) -> list[Any]:
        if method == "slow":
            held.append([1, msgid, None, "late"])
            return []
        return [*held, [1, msgid, None, "mine"]]

    with listening(memoryd_home, answering(reply)), connect(timeout=0.1) as memory:
        with within(1.0), pytest.raises(errors.TimedOut):
            memory.call("slow")
        assert memory.call("quick") == "mine"


def test_a_budget_bounds_calls_whatever_they_allow_themselves(memoryd_home: Path) -> None:
    talk = answering(lambda msgid, method, args: [])
    with listening(memoryd_home, talk), within(1.0), connect(budget=0.1) as memory:
        with pytest.raises(errors.TimedOut):
            memory.call("slow", deadline_ms=60_000)
        with pytest.raises(errors.TimedOut):
            memory.call("slow")


def test_a_connection_that_ends_is_unavailable(memoryd_home: Path) -> None:
    def talk(peer: socket.socket) -> None:
        peer.recv(65_536)

    with listening(memoryd_home, talk), pytest.raises(errors.Unavailable):
        connect()


def test_an_answer_beyond_the_limit_is_too_large(
    memoryd_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER", 100_000)
    talk = answering(lambda msgid, method, args: [[1, msgid, None, "x" * 500_000]])
    with (
        listening(memoryd_home, talk),
        connect() as memory,
        pytest.raises((errors.TooLarge, errors.Unavailable)) as raised,
    ):
        memory.call("recall")
    assert isinstance(raised.value, errors.TooLarge)


def test_the_client_imports_nothing_heavy() -> None:
    code = "import sys, memoryd.client; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"trio", "apsw", "msgspec", "structlog", "click", "rich", "asyncio"} & set(loaded)
