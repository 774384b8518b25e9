"""Whatever bytes a peer sends: no fault of ours, the connection ends or goes on, others are served."""

from typing import Any

import msgpack
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from memoryd.db import Deadline
from memoryd.errors import BadMessage
from memoryd.protocol import Decoder, Message, Request
from memoryd.serve.calls import Common, Quick, Slow, fitting
from memoryd.serve.peers import Asker
from tests.support.peer import TalkingPeer, talking


class Echo(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Any string and a number."""

    text: str = ""
    number: int = 0


def now(asker: Asker, args: Echo) -> object:
    return {"text": args.text, "number": args.number}


async def later(asker: Asker, args: Echo, deadline: Deadline) -> object:
    await trio.sleep(args.number % 3)
    return now(asker, args)


METHODS = {"now": Quick(fitting(Echo), now), "later": Slow(fitting(Echo), later)}

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4) | st.integers(0, 9), inner, max_size=4)
    ),
    max_leaves=12,
)
messages = st.one_of(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 40),
        st.sampled_from(["now", "later", "recall", "cancel"]),
        st.lists(values, max_size=2),
    ),
    st.tuples(st.just(2), st.sampled_from(["cancel", "nvim_error_event"]), st.lists(values)),
    st.builds(
        lambda msgid, method, number: (0, msgid, method, ({"text": "x", "number": number},)),
        st.integers(0, 5),
        st.sampled_from(["now", "later"]),
        st.integers(0, 9),
    ),
    values,
).map(msgpack.packb)
streams = st.lists(messages | st.binary(max_size=40), max_size=8).map(b"".join)


def taken(content: bytes, sizes: list[int]) -> tuple[list[Message], str | None]:
    """Return all messages of `content` fed in pieces, and the fault."""
    decoder, found, at = Decoder(), list[Message](), 0
    for size in [*sizes, len(content)]:
        read, fault = decoder.feed(content[at : at + size])
        at += size
        found += read
        if fault is not None:
            return found, type(fault).__name__
    return found, None


@given(streams, st.lists(st.integers(1, 30), max_size=6))
def test_how_bytes_are_cut_changes_nothing(content: bytes, sizes: list[int]) -> None:
    whole, fault = taken(content, [])
    pieces, same = taken(content, sizes)
    assert pieces == whole
    assert same == fault


@given(st.dictionaries(st.text(min_size=1, max_size=9), st.text() | st.integers(-9, 9), max_size=9))
def test_what_a_client_packs_is_what_the_method_gets(args: dict[str, Any]) -> None:
    content = msgpack.packb([0, 1, "now", [args]])
    assert Decoder().feed(content) == ([Request(1, "now", args)], None)


@given(st.binary(max_size=300))
def test_any_bytes_are_messages_or_a_bad_message(content: bytes) -> None:
    fault = Decoder().feed(content)[1]
    assert fault is None or isinstance(fault, BadMessage)


async def served(peer: TalkingPeer) -> Any:
    await peer.send(peer.request("now", text="still here"))
    return await peer.answer()


@given(streams, st.lists(st.integers(1, 60), max_size=4))
def test_a_hostile_peer_gets_no_internal_error_and_harms_nobody(
    content: bytes, sizes: list[int]
) -> None:
    async def main() -> None:
        async with talking(METHODS) as other, talking(METHODS) as hostile:
            with trio.move_on_after(60):
                at = 0
                for size in [*sizes, len(content)]:
                    if hostile.ended.is_set():
                        break
                    await hostile.send(content[at : at + size])
                    at += size
                await trio.testing.wait_all_tasks_blocked()
                assert (await served(other))[3] == {"text": "still here", "number": 0}
                await hostile.leave()
                await hostile.ended.wait()
            assert hostile.traffic.internal_errors == 0
            assert hostile.traffic.in_flight == 0
            assert hostile.ended.is_set()
            while (answer := await hostile.answer()) is not None:
                assert answer[0] == 1
                assert answer[2] is None or not answer[2][1].startswith("internal")

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
