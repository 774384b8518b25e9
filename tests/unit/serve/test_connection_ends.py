"""How a connection ends, and what a peer or we ourselves may do wrong on it without harm."""

import socket
import time
from typing import Any

import msgpack
import pytest
import structlog
import trio
import trio.testing

from memoryd import db
from memoryd.db import Deadline
from memoryd.errors import NotFound
from memoryd.serve.calls import Common, Quick, Slow, fitting
from memoryd.serve.connection import IN_FLIGHT, Connection, Traffic
from memoryd.serve.peers import Asker
from memoryd.serve.wire import SocketWire
from tests.support.peer import HERE, TalkingPeer, allowing, talking

YEAR_NS = 365 * 86_400 * 10**9


class Text(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A string, and seconds to wait."""

    text: str = ""
    seconds: float = 0.0
    size: int = 0


def echo(asker: Asker, args: Text) -> object:
    return args.text or "x" * args.size


async def wait(asker: Asker, args: Text, deadline: Deadline) -> object:
    await trio.sleep(args.seconds)
    return args.text or "x" * args.size


def maps(asker: Asker, args: Text) -> object:
    asker.as_map = True
    return None


def no_memory(asker: Asker, args: Text) -> object:
    raise MemoryError


METHODS = {
    "echo": Quick(fitting(Text), echo),
    "wait": Slow(fitting(Text), wait),
    "hello": Quick(fitting(Text), maps),
    "large": Quick(fitting(Text), no_memory),
}


async def error_of(peer: TalkingPeer, content: bytes) -> dict[str, Any]:
    """Send `content` and return the error that is answered, as a map."""
    await peer.send(content)
    error = (await peer.answer())[2]
    assert isinstance(error, dict)
    return error


@pytest.mark.parametrize("cut", [1, 5, 20])
async def test_a_peer_that_leaves_in_the_middle_of_a_message_is_no_event_p03(cut: int) -> None:
    async with talking(METHODS) as peer:
        with structlog.testing.capture_logs() as logged:
            await peer.send(peer.request("echo", text="whole"))
            assert (await peer.answer())[3] == "whole"
            await peer.send(peer.request("echo", text="never to be whole")[:cut])
            await peer.leave()
            await peer.ended.wait()
        assert logged == []
        assert peer.nothing_came()
        assert (peer.traffic.connections, peer.traffic.bad_messages) == (0, 0)


async def test_what_is_not_there_or_does_not_fit_is_named_and_costs_no_connection_p13() -> None:
    async with talking(METHODS) as peer:
        await peer.send(peer.request("hello"))
        await peer.answer()
        error = await error_of(peer, peer.request("recal"))
        assert error["code"] == "unknown_method"
        for args, field in [({"size": "x"}, "size"), ({"sise": 1}, "sise")]:
            error = await error_of(peer, peer.request("echo", **args))
            assert (error["code"], error["data"]["field"]) == ("bad_request", field)
        await peer.send(peer.request("echo", text="x"))
        assert (await peer.answer())[3] == "x"


async def test_after_half_an_answer_nothing_more_is_sent_p20(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS, takes=1_000) as peer:
        await peer.send(peer.request("echo", size=5_000))
        await trio.sleep(5)
        await peer.send(peer.request("echo", text="later"))
        await peer.ended.wait()
        assert peer.wire.closed
        whole: bytes = msgpack.packb([1, 0, None, "x" * 5_000])
        assert bytes(peer.wire.out) == whole[:1_000]
        with pytest.raises(trio.BrokenResourceError):
            peer.wire.send_nowait(b"x")


async def test_requests_before_hello_is_answered_are_taken_within_the_same_bound_p28(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS) as peer:
        early = b"".join(peer.request("wait", seconds=1) for _ in range(IN_FLIGHT))
        await peer.send(early + peer.request("wait") + peer.request("hello"))
        busy = await peer.answer()
        assert (busy[1], busy[2][1].partition(":")[0]) == (IN_FLIGHT, "busy")
        assert (await peer.answer())[1] == IN_FLIGHT + 1
        assert {(await peer.answer())[1] for _ in range(IN_FLIGHT)} == set(range(IN_FLIGHT))


@pytest.mark.parametrize("size", [10, 500_000])
async def test_a_peer_that_is_gone_when_we_write_is_an_ordinary_end_p29(size: int) -> None:
    ours, theirs = socket.socketpair()
    traffic = Traffic()
    connection = Connection(SocketWire(ours), Asker(HERE, allowing(*METHODS)), METHODS, traffic)
    theirs.sendall(msgpack.packb([0, 1, "wait", [{"size": size, "seconds": 0.01}]]))
    theirs.sendall(msgpack.packb([0, 2, "echo", [{"size": size}]]))
    with structlog.testing.capture_logs() as logged, trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            while traffic.requests < 2:
                await trio.lowlevel.checkpoint()
            theirs.close()  # with an answer unread: the kernel resets the connection
    assert traffic.connections == 0
    assert logged == []
    assert (traffic.in_flight, traffic.internal_errors, traffic.slow_readers) == (0, 0, 0)


@pytest.mark.parametrize("order", [1, -1])
async def test_of_several_faults_the_one_of_ours_is_told_and_logged_p25(order: int) -> None:
    faults = [NotFound("no such record"), ExceptionGroup("", [RuntimeError("the owner's words")])]

    async def several(asker: Asker, args: Text, deadline: Deadline) -> object:
        raise ExceptionGroup("several", faults[::order])

    async with talking({"several": Slow(fitting(Text), several)}) as peer:
        with structlog.testing.capture_logs() as logged:
            await peer.send(peer.request("several"))
            said = (await peer.answer())[2][1]
        assert said.startswith("internal: ")
        assert "words" not in said
        assert [entry["error_id"] in said for entry in logged] == [True]


async def test_of_two_tasks_that_refuse_one_code_is_told_p25() -> None:
    async def refuses() -> None:
        raise NotFound("no such record")

    async def several(asker: Asker, args: Text, deadline: Deadline) -> object:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuses)
            nursery.start_soon(refuses)
        return None

    async with talking({"several": Slow(fitting(Text), several)}) as peer:
        await peer.send(peer.request("several"))
        assert (await peer.answer())[2] == [0, "not_found: no such record"]


async def test_no_memory_for_one_answer_is_busy_and_the_connection_lives_q03() -> None:
    async with talking(METHODS) as peer:
        await peer.send(peer.request("hello"))
        await peer.answer()
        error = await error_of(peer, peer.request("large"))
        assert (error["code"], error["data"]["retry_after_ms"]) == ("busy", 1_000)
        assert peer.traffic.internal_errors == 0
        await peer.send(peer.request("echo", text="x"))
        assert (await peer.answer())[3] == "x"


@pytest.mark.parametrize("jump", [-YEAR_NS, YEAR_NS])
async def test_a_clock_that_jumps_moves_no_deadline_l18(
    monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    deadline, over = Deadline(60.0), Deadline(0.0)
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + jump)
    monkeypatch.setattr(time, "time", lambda: (real() + jump) / 10**9)
    assert (deadline.over(), over.over()) == (False, True)
    async with talking(METHODS) as peer:
        await peer.send(peer.request("wait", text="done", seconds=0.01, deadline_ms=60_000))
        assert (await peer.answer())[3] == "done"
        assert not peer.ended.is_set()
    with db.within(db.apsw.Connection(":memory:"), deadline) as connection:
        assert connection.execute("SELECT 1").get == 1
