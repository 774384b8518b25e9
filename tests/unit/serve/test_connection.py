"""One connection: pipelining, deadlines, cancelling, limits, slow and silent peers."""

from typing import Any

import msgpack
import pytest
import structlog
import trio
import trio.testing

from memoryd import protocol
from memoryd.db import Deadline
from memoryd.errors import Internal, NotFound
from memoryd.serve import connection
from memoryd.serve.calls import Common, Quick, Slow, fitting
from memoryd.serve.peers import Asker
from tests.support import peer as peer_support
from tests.support.peer import MemoryWire, TalkingPeer, allowing, talking


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


def broken(asker: Asker, args: Text) -> object:
    raise RuntimeError("the owner's words")


async def broken_later(asker: Asker, args: Text, deadline: Deadline) -> object:
    raise ExceptionGroup("several", [ValueError("the owner's words"), KeyError("more")])


async def refused_later(asker: Asker, args: Text, deadline: Deadline) -> object:
    raise ExceptionGroup("one", [NotFound("no such record")])


def unencodable(asker: Asker, args: Text) -> object:
    return object()


def maps(asker: Asker, args: Text) -> object:
    asker.as_map = True
    return None


METHODS = {
    "echo": Quick(fitting(Text), echo),
    "wait": Slow(fitting(Text), wait),
    "broken": Quick(fitting(Text), broken),
    "broken_later": Slow(fitting(Text), broken_later),
    "refused_later": Slow(fitting(Text), refused_later),
    "unencodable": Quick(fitting(Text), unencodable),
    "maps": Quick(fitting(Text), maps),
}


async def refusal(peer: TalkingPeer, content: bytes) -> str:
    """Send `content` and return the words of the error that is answered."""
    await peer.send(content)
    kind, _, error, result = await peer.answer()
    assert (kind, error[0], result) == (1, 0, None)
    return str(error[1])


async def test_a_request_is_answered_under_its_msgid() -> None:
    async with talking(METHODS) as peer:
        await peer.send(peer.request("echo", text="hello"))
        assert await peer.answer() == [1, 0, None, "hello"]


async def test_requests_are_answered_as_they_finish(autojump_clock: trio.testing.MockClock) -> None:
    async with talking(METHODS) as peer:
        await peer.send(
            peer.request("wait", text="slow", seconds=2)
            + peer.request("wait", text="quick", seconds=1)
            + peer.request("echo", text="at once")
        )
        answers = [await peer.answer() for _ in range(3)]
        assert [(answer[1], answer[3]) for answer in answers] == [
            (2, "at once"),
            (1, "quick"),
            (0, "slow"),
        ]


async def test_errors_are_pairs_until_the_peer_asks_for_maps() -> None:
    async with talking(METHODS) as peer:
        assert (await refusal(peer, peer.request("nothing"))).startswith("unknown_method: ")
        await peer.send(peer.request("maps"))
        assert await peer.answer() == [1, 1, None, None]
        await peer.send(peer.request("nothing"))
        error = (await peer.answer())[2]
        assert error["code"] == "unknown_method"
        assert error["data"]["remedy"]


async def test_a_method_that_the_socket_does_not_grant_is_refused() -> None:
    async with talking(METHODS, allowing("echo")) as peer:
        assert (await refusal(peer, peer.request("wait"))).startswith("not_granted: ")


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ({"txt": 1}, "'txt'"),
        ({"text": 1}, "text: expected str, got int"),
        ({"deadline_ms": 0}, "deadline_ms: expected int >= 1"),
        ({"deadline_ms": 600_001}, "deadline_ms: expected int <= 600000"),
        ({"deadline_ms": "soon"}, "deadline_ms: expected int, got str"),
    ],
)
async def test_a_wrong_argument_is_named_p13(args: dict[str, Any], names: str) -> None:
    async with talking(METHODS) as peer:
        said = await refusal(peer, peer.request("echo", **args))
        assert said.startswith("bad_request: ")
        assert names in said


async def test_params_of_another_form_are_a_bad_request_and_the_connection_goes_on() -> None:
    async with talking(METHODS) as peer:
        said = await refusal(peer, msgpack.packb([0, 9, "echo", ["hello"]]))
        assert said.startswith("bad_request: ")
        assert await refusal(peer, peer.request("echo", text=1))
        await peer.send(peer.request("echo", text="x"))
        assert (await peer.answer())[3] == "x"


async def test_a_deadline_ends_the_request_and_nothing_else(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS) as peer:
        await peer.send(
            peer.request("wait", seconds=9, deadline_ms=1_000)
            + peer.request("wait", text="done", seconds=2)
        )
        late = await peer.answer()
        assert late[1] == 0
        assert late[2][1].startswith("timeout: ")
        assert trio.current_time() == 1.0
        assert await peer.answer() == [1, 1, None, "done"]


async def test_without_a_deadline_five_seconds_are_the_limit(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS) as peer:
        assert (await refusal(peer, peer.request("wait", seconds=60))).startswith("timeout: ")
        assert trio.current_time() == 5.0


async def test_cancel_ends_the_request_it_names(autojump_clock: trio.testing.MockClock) -> None:
    async with talking(METHODS) as peer:
        await peer.send(peer.request("wait", seconds=3) + peer.request("wait", text="b", seconds=4))
        await peer.send(msgpack.packb([2, "cancel", [{"msgid": 0}]]))
        answer = await peer.answer()
        assert (answer[1], answer[2][1]) == (0, "cancelled: the request was cancelled")
        assert trio.current_time() == 0.0
        assert await peer.answer() == [1, 1, None, "b"]


@pytest.mark.parametrize("params", [[], [{}], [{"msgid": 9}], [{"msgid": [1]}], [{"msgid": "0"}]])
async def test_cancelling_what_is_not_in_flight_does_nothing_p16(params: list[Any]) -> None:
    async with talking(METHODS) as peer:
        await peer.send(msgpack.packb([2, "cancel", params]))
        await peer.send(peer.request("echo", text="x"))
        assert (await peer.answer())[3] == "x"


async def test_a_peer_that_leaves_cancels_what_it_asked_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    deadlines: list[Deadline] = []

    async def note(asker: Asker, args: Text, deadline: Deadline) -> object:
        deadlines.append(deadline)
        await trio.sleep(60)
        return None

    async with talking({"note": Slow(fitting(Text), note)}) as peer:
        await peer.send(peer.request("note", deadline_ms=60_000))
        await trio.testing.wait_all_tasks_blocked()
        await peer.leave()
        await peer.ended.wait()
        assert [deadline.cancelled for deadline in deadlines] == [True]
        assert trio.current_time() == 0.0
        assert peer.traffic.in_flight == 0
        assert peer.traffic.connections == 0


async def test_a_msgid_in_flight_is_refused_and_its_first_request_goes_on_p15(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS) as peer:
        await peer.send(msgpack.packb([0, 5, "wait", [{"text": "first", "seconds": 1}]]))
        said = await refusal(peer, msgpack.packb([0, 5, "echo", [{"text": "second"}]]))
        assert said.startswith("bad_request: ")
        assert await peer.answer() == [1, 5, None, "first"]


async def test_thirty_two_requests_may_be_in_flight_p17(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS) as peer:
        await peer.send(b"".join(peer.request("wait", seconds=1) for _ in range(33)))
        busy = await peer.answer()
        assert busy[1] == 32
        assert busy[2][1].startswith("busy: ")
        answers = [await peer.answer() for _ in range(32)]
        assert {answer[1] for answer in answers} == set(range(32))
        await peer.send(peer.request("echo", text="x"))
        assert (await peer.answer())[3] == "x"


async def test_unknown_notifications_and_unasked_responses_are_counted_and_ignored() -> None:
    async with talking(METHODS) as peer:
        await peer.send(msgpack.packb([2, "nvim_error_event", [0, "what"]]))
        await peer.send(msgpack.packb([1, 3, None, None]))
        await peer.send(peer.request("echo", text="x"))
        assert (await peer.answer())[3] == "x"
        assert peer.traffic.unknown_notifications == 1
        assert peer.traffic.unasked_responses == 1


async def test_after_bytes_that_nobody_can_decode_each_pending_request_is_told_why_p06(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS) as peer:
        await peer.send(peer.request("wait", seconds=3) + peer.request("wait", seconds=3) + b"\xc1")
        answers = [await peer.answer(), await peer.answer()]
        assert [answer[1] for answer in answers] == [0, 1]
        assert all(answer[2][1].startswith("bad_message: ") for answer in answers)
        assert trio.current_time() == 0.0
        assert await peer.answer() is None
        assert trio.current_time() == connection.LINGER_S
        assert peer.traffic.bad_messages == 1
        assert peer.traffic.in_flight == 0


async def test_requests_before_the_bad_bytes_are_answered() -> None:
    async with talking(METHODS) as peer:
        await peer.send(peer.request("echo", text="x") + b"\xc1" + peer.request("echo", text="y"))
        assert await peer.answer() == [1, 0, None, "x"]
        assert await peer.answer() is None


@pytest.mark.parametrize("method", ["broken", "broken_later", "unencodable"])
async def test_a_fault_of_ours_has_an_id_no_words_and_costs_no_connection_p24(method: str) -> None:
    async with talking(METHODS) as peer:
        with structlog.testing.capture_logs() as logged:
            said = await refusal(peer, peer.request(method))
        assert said.startswith("internal: ")
        assert "words" not in said
        (entry,) = logged
        assert entry["error_id"] in said
        assert entry["log_level"] == "error"
        assert peer.traffic.internal_errors == 1
        await peer.send(peer.request("echo", text="x"))
        assert (await peer.answer())[3] == "x"


async def test_a_refusal_inside_a_group_keeps_its_code_p25() -> None:
    async with talking(METHODS) as peer:
        said = await refusal(peer, peer.request("refused_later"))
        assert said == "not_found: no such record"


async def test_an_internal_error_that_was_raised_is_logged_too() -> None:
    def raised(asker: Asker, args: Text) -> object:
        raise Internal("what went wrong")

    async with talking({"raised": Quick(fitting(Text), raised)}) as peer:
        with structlog.testing.capture_logs() as logged:
            said = await refusal(peer, peer.request("raised"))
        assert logged[0]["error_id"] in said
        assert "what went wrong" not in said


async def test_an_answer_over_8_mib_is_refused_p26() -> None:
    async with talking(METHODS) as peer:
        size = protocol.MAX_ANSWER
        assert (await refusal(peer, peer.request("echo", size=size))).startswith("too_large: ")


async def test_an_idle_peer_is_closed_after_ten_minutes_p05(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS) as peer:
        await trio.sleep(599)
        await peer.send(peer.request("echo", text="x"))
        assert (await peer.answer())[3] == "x"
        await peer.ended.wait()
        assert trio.current_time() == pytest.approx(1_199.0)


async def test_a_peer_whose_request_is_under_way_is_not_idle_p05(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_S", 10.0)
    async with talking(METHODS) as peer:
        await peer.send(peer.request("wait", text="x", seconds=25, deadline_ms=30_000))
        assert (await peer.answer())[3] == "x"
        await peer.ended.wait()
        assert trio.current_time() == 35.0


async def test_a_message_must_arrive_within_ten_seconds_p04(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS) as peer:
        await peer.send(peer.request("wait", seconds=60, deadline_ms=60_000))
        await trio.sleep(5)
        for byte in peer.request("echo", text="a byte every two seconds"):
            if peer.ended.is_set():
                break
            await peer.send(bytes((byte,)))
            await trio.sleep(2)
        assert 15.0 <= trio.current_time() <= 19.0
        answer = await peer.answer()
        assert answer[1] == 0
        assert answer[2][1].startswith("bad_message: ")
        assert await peer.answer() is None


async def test_whole_messages_may_take_any_time_between_them(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS) as peer:
        for _ in range(4):
            content = peer.request("echo", text="x")
            await peer.send(content[:5])
            await trio.sleep(8)
            await peer.send(content[5:])
            assert (await peer.answer())[3] == "x"


async def test_a_peer_that_does_not_read_is_closed_after_ten_seconds_p18(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS, takes=100_000) as peer:
        await peer.send(peer.request("echo", size=200_000))
        await peer.ended.wait()
        assert trio.current_time() == 10.0
        assert peer.traffic.slow_readers == 1


async def test_a_peer_that_reads_slowly_gets_everything_in_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with talking(METHODS, takes=1_000) as peer:
        await peer.send(b"".join(peer.request("echo", size=300) for _ in range(20)))
        await trio.sleep(5)
        answers = [await peer.answer() for _ in range(20)]
        assert [answer[1] for answer in answers] == list(range(20))
        assert not peer.ended.is_set()


async def test_nothing_more_is_read_from_a_peer_with_8_mib_unread_p18(
    autojump_clock: trio.testing.MockClock,
) -> None:
    asked = 0

    def large(asker: Asker, args: Text) -> object:
        nonlocal asked
        asked += 1
        return "x" * 1_000_000

    async with talking({"large": Quick(fitting(Text), large)}, takes=1_000) as peer:
        for _ in range(30):
            await peer.send(peer.request("large"))
            await trio.testing.wait_all_tasks_blocked()
        assert asked <= 10


async def test_a_stopping_server_takes_nothing_new(autojump_clock: trio.testing.MockClock) -> None:
    async with talking(METHODS) as peer:
        await peer.send(peer.request("wait", text="x", seconds=1))
        await trio.testing.wait_all_tasks_blocked()
        peer.traffic.stopping = True
        said = await refusal(peer, peer.request("echo", text="y"))
        assert said.startswith("shutting_down: ")
        assert await peer.answer() == [1, 0, None, "x"]


async def test_many_requests_at_once_leave_others_their_turn_q04() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with talking(METHODS) as peer, trio.open_nursery() as nursery:
        nursery.start_soon(other)
        before = turns
        await peer.send(b"".join(peer.request("echo", text="x") for _ in range(640)))
        answers = [await peer.answer() for _ in range(640)]
        assert [answer[1] for answer in answers] == list(range(640))
        assert turns - before >= 9
        assert peer.traffic.requests == 640
        nursery.cancel_scope.cancel()


class HalfSentWire(MemoryWire):
    """Takes ten bytes at first; then what is sent by waiting waits for `go_on`, the rest is taken."""

    def __init__(self, stream: trio.testing.MemoryReceiveStream, takes: int) -> None:
        super().__init__(stream, takes)
        self.full, self.go_on = True, trio.Event()

    def send_nowait(self, content: bytes | bytearray | memoryview) -> int:
        if self.full:
            self.full = False
            return super().send_nowait(content[:10])
        return super().send_nowait(content)

    async def send(self, content: bytes | bytearray) -> None:
        await self.go_on.wait()
        await super().send(content)


async def test_an_answer_never_gets_into_the_middle_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer_support, "MemoryWire", HalfSentWire)
    async with talking(METHODS) as peer:
        wire = peer.wire
        assert isinstance(wire, HalfSentWire)
        await peer.send(peer.request("echo", size=5_000))
        await trio.testing.wait_all_tasks_blocked()
        await peer.send(peer.request("echo", text="short"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(wire.out) == 10
        wire.go_on.set()
        assert (await peer.answer())[3] == "x" * 5_000
        assert (await peer.answer())[3] == "short"
