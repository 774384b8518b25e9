"""The codec: what is accepted, what each limit refuses, and what goes out."""

import tracemalloc
from typing import Any

import msgpack
import pytest

from memoryd import protocol
from memoryd.errors import BadMessage, Internal, NotFound
from memoryd.protocol import Decoder, Notification, Request, Response


def request(args: Any, msgid: int = 7) -> bytes:
    packed: bytes = msgpack.packb([0, msgid, "recall", [args]])
    return packed


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def decode(content: bytes) -> list[protocol.Message]:
    messages, fault = Decoder().feed(content)
    assert fault is None, fault
    return messages


def fault_of(content: bytes) -> str:
    messages, fault = Decoder().feed(content)
    assert messages == []
    assert isinstance(fault, BadMessage)
    return fault.message


@pytest.mark.parametrize(
    ("params", "args"),
    [
        ([], {}),
        ([{}], {}),
        ([[]], {}),
        ([{"query": "x", "limit": 1}], {"query": "x", "limit": 1}),
        ([1], None),
        ([[1]], None),
        ([{}, {}], None),
        ({"query": "x"}, None),
        (None, None),
        ("query", None),
    ],
)
def test_params_are_nothing_or_one_map_and_lua_s_empty_table_is_nothing(
    params: Any, args: Any
) -> None:
    assert decode(msgpack.packb([0, 1, "recall", params])) == [Request(1, "recall", args)]


def test_responses_and_notifications_are_told_apart() -> None:
    content = b"".join(
        map(
            msgpack.packb, ([1, 5, None, "x"], [2, "cancel", [{"msgid": 3}]], [2, "nvim_x", [0, 1]])
        )
    )
    assert decode(content) == [
        Response(5),
        Notification("cancel", {"msgid": 3}),
        Notification("nvim_x", None),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_bytes_may_come_in_pieces_of_any_size(size: int) -> None:
    content = request({"query": "é" * 9}) + request({}, 8) + request({"a": [1, 2]}, 9)
    decoder, found = Decoder(), []
    for at in range(0, len(content), size):
        messages, fault = decoder.feed(content[at : at + size])
        assert fault is None
        found += messages
    assert [message.msgid for message in found if isinstance(message, Request)] == [7, 8, 9]
    assert not decoder.partial


def test_a_message_that_has_begun_is_known_to_be_partial() -> None:
    decoder = Decoder()
    assert not decoder.partial
    assert decoder.feed(request({"query": "x"})[:-1]) == ([], None)
    assert decoder.partial


AT_THE_LIMIT = {
    "an array of 10,000": {"a": [0] * 10_000},
    "a map of 256": {str(number): number for number in range(256)},
    "depth 16": {"a": nested(13)},
    "the greatest and the least integer": {"a": 2**63 - 1, "b": [2**63 - 1, -(2**63)]},
    "20,000 values": {"a": [0] * 9_000, "b": [0] * 9_000, "c": [0] * (2_000 - 8)},
    "a long string": {"a": "x" * 1_000_000},
    "floats": {"a": 1.5},
}


@pytest.mark.parametrize("args", AT_THE_LIMIT.values(), ids=AT_THE_LIMIT)
def test_the_limits_themselves_are_allowed(args: dict[str, Any]) -> None:
    whole = request(args)
    decoder, messages, fault = Decoder(), [], None
    for at in range(0, len(whole), 65_536):
        messages, fault = decoder.feed(whole[at : at + 65_536])
    assert fault is None
    assert messages == [Request(7, "recall", args)]


BEYOND = {
    "an array of 10,001": request({"a": [0] * 10_001}),
    "a map of 257": request({str(number): 0 for number in range(257)}),
    "depth 17": request({"a": nested(14)}),
    "depth 17 of maps": request({"a": {"b": nested(13)}}),
    "depth 1,100": b"\x91" * 1_100,
    "20,001 values": request({"a": [0] * 9_000, "b": [0] * 9_000, "c": [0] * (2_001 - 8)}),
    "20,001 empty maps": request({"a": [[{}] * 5_000] * 5}),
    "an integer beyond int64": request({"a": 2**63}),
    "an integer beyond int64 in an array": request({"a": [1, 2**64 - 1]}),
    "an empty key": request({"": 1}),
    "a number as key": request({1: 1}),
    "bytes as key": request({b"a": 1}),
    "nil as key": request({None: 1}),
    "a key given twice": b"\x94\x00\x07\xa1m\x91\x82\xa1a\x01\xa1a\x02",
    "an extension": request({"a": msgpack.ExtType(4, b"x")}),
    "an empty extension": request({"a": msgpack.ExtType(4, b"")}),
    "a timestamp": request({"a": msgpack.Timestamp(1, 1)}),
    "no UTF-8": b"\x94\x00\x07\xa1m\x91\x81\xa1a\xa2\xff\xfe",
    "the byte that is no type": b"\xc1",
    "a string": msgpack.packb("hello"),
    "a number": b"\x00",
    "an empty array": b"\x90",
    "a map": b"\x80",
    "a fourth kind": msgpack.packb([3, 1, "m", []]),
    "too few elements": msgpack.packb([0, 1]),
    "too many elements": msgpack.packb([0, 1, "m", [], 1]),
    "a negative id": msgpack.packb([0, -1, "m", []]),
    "an id of 33 bits": msgpack.packb([0, 2**32, "m", []]),
    "a boolean id": msgpack.packb([0, True, "m", []]),
    "a boolean kind": msgpack.packb([False, 1, "m", []]),
    "a float kind": msgpack.packb([0.0, 1, "m", []]),
    "a float kind of notification": msgpack.packb([2.0, "m", []]),
    "a method that is no string": msgpack.packb([0, 1, 7, []]),
    "a text protocol": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("content", BEYOND.values(), ids=BEYOND)
def test_each_limit_and_every_other_form_is_a_bad_message_p02_p08_p09_p10_p11(
    content: bytes,
) -> None:
    assert fault_of(content)


@pytest.mark.parametrize("claimed", [b"\xc6", b"\xdb"], ids=["bytes", "a string"])
def test_a_megabyte_is_the_most_that_a_request_may_have_p01(claimed: bytes) -> None:
    decoder = Decoder()
    piece = claimed + (2**31).to_bytes(4) + b"x" * 65_000
    fed = 0
    for _ in range(20):
        messages, fault = decoder.feed(piece)
        assert messages == []
        fed += len(piece)
        if fault is not None:
            break
        piece = b"x" * 65_000
    assert fault is not None
    assert fed <= protocol.MAX_REQUEST + 65_536


def test_a_whole_message_over_a_megabyte_is_refused_too_p01() -> None:
    whole = request({"a": "x" * protocol.MAX_REQUEST})
    decoder = Decoder()
    faults = [decoder.feed(whole[at : at + 65_536])[1] for at in range(0, len(whole), 65_536)]
    assert isinstance(faults[-1], BadMessage)


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True)])
def test_a_message_of_exactly_a_megabyte_is_allowed(more: int, refused: bool) -> None:
    room = protocol.MAX_REQUEST - len(request({"a": "x" * 70_000})) + 70_000
    whole = request({"a": "x" * (room + more)})
    assert len(whole) == protocol.MAX_REQUEST + more
    decoder = Decoder()
    fed = [decoder.feed(whole[at : at + 65_536]) for at in range(0, len(whole), 65_536)]
    assert (fed[-1][1] is not None) == refused
    assert len(fed[-1][0]) == (not refused)


def test_a_message_that_has_not_ended_within_a_megabyte_is_refused_at_the_next_byte() -> None:
    decoder = Decoder()
    claimed = b"\x94\x00\x07\xa1m\xc6" + (2**20).to_bytes(4)
    piece = claimed + b"x" * (65_536 - len(claimed))
    for _ in range(16):
        assert decoder.feed(piece) == ([], None)
        piece = b"x" * 65_536
    messages, fault = decoder.feed(b"x")
    assert messages == []
    assert fault is not None
    assert fault.message == f"a message over {protocol.MAX_REQUEST} bytes"


def test_each_message_has_a_megabyte_of_its_own() -> None:
    whole = request({"a": "x" * 700_000}) * 3
    decoder, found = Decoder(), 0
    for at in range(0, len(whole), 65_536):
        messages, fault = decoder.feed(whole[at : at + 65_536])
        assert fault is None
        found += len(messages)
    assert found == 3


def test_a_message_that_has_begun_behind_others_is_partial() -> None:
    decoder = Decoder()
    assert decoder.feed(request({})) == ([Request(7, "recall", {})], None)
    begun = request({"a": 1}, 8)
    assert decoder.feed(request({}) + begun[:3])[1] is None
    assert decoder.partial
    assert decoder.feed(begun[3:]) == ([Request(8, "recall", {"a": 1})], None)
    assert not decoder.partial


def test_many_containers_side_by_side_are_not_deep() -> None:
    args = {"a": [[]] * 100, "b": [{}] * 100}
    assert decode(request(args)) == [Request(7, "recall", args)]


def test_the_most_values_are_allowed_in_each_message() -> None:
    most = AT_THE_LIMIT["20,000 values"]
    decoder = Decoder()
    for _ in range(2):
        assert decoder.feed(request(most)) == ([Request(7, "recall", most)], None)


def test_the_least_and_the_greatest_id_are_ids() -> None:
    ids = [0, 1, 2**32 - 1]
    requests = b"".join(request({}, msgid) for msgid in ids)
    assert decode(requests) == [Request(msgid, "recall", {}) for msgid in ids]
    responses = b"".join(msgpack.packb([1, msgid, None, None]) for msgid in ids)
    assert decode(responses) == [Response(msgid) for msgid in ids]


def test_an_extension_with_content_is_not_even_read() -> None:
    beyond = "bytes that are no MessagePack, or beyond a limit"
    assert fault_of(request({"a": msgpack.ExtType(4, b"x")})) == beyond
    assert fault_of(b"\xc1") == beyond
    assert fault_of(request({"a": msgpack.ExtType(4, b"")})) == "an extension type"


def test_the_limits_are_the_documented_ones() -> None:
    assert protocol.VERSION == 1
    assert (protocol.MAX_REQUEST, protocol.MAX_ANSWER) == (1_048_576, 8_388_608)
    assert (protocol.MAX_VALUES, protocol.MAX_ARRAY, protocol.MAX_MAP) == (20_000, 10_000, 256)
    assert (protocol.MAX_DEPTH, protocol.MAX_INT, protocol.MAX_MSGID) == (16, 2**63 - 1, 2**32 - 1)


def test_messages_before_the_fault_are_delivered() -> None:
    messages, fault = Decoder().feed(request({}) + b"\xc1")
    assert messages == [Request(7, "recall", {})]
    assert fault is not None
    messages, fault = Decoder().feed(request({}) + request({"": 1}) + request({}))
    assert messages == [Request(7, "recall", {})]
    assert fault is not None


def test_counting_starts_anew_with_each_message() -> None:
    many = request({"a": [0] * 9_000})
    assert len(decode(many * 7)) == 7
    deep = request({"a": nested(13)})
    assert len(decode(deep * 7)) == 7


def test_claims_without_content_take_no_memory_p07() -> None:
    tracemalloc.start()
    try:
        decoder = Decoder()
        before = tracemalloc.get_traced_memory()[0]
        assert decoder.feed(b"\xdc\x27\x10" * 1_000) == ([], None)
        assert tracemalloc.get_traced_memory()[1] - before < 100_000
    finally:
        tracemalloc.stop()


def test_a_bomb_of_empty_containers_ends_before_it_is_built_p12() -> None:
    bomb = msgpack.packb([0, 1, "m", [{"a": [[{}] * 10_000] * 100}]])
    tracemalloc.start()
    try:
        decoder = Decoder()
        faults = [decoder.feed(bomb[at : at + 65_536])[1] for at in range(0, len(bomb), 65_536)]
        assert faults[-1] is not None
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_bomb_of_maps_ends_before_it_is_built_p12() -> None:
    keys = [str(number) for number in range(256)]
    bomb = msgpack.packb([0, 1, "m", [{key: dict.fromkeys(keys, 0) for key in keys}]])
    decoder = Decoder()
    tracemalloc.start()
    try:
        faults = [decoder.feed(bomb[at : at + 65_536])[1] for at in range(0, len(bomb), 65_536)]
        assert faults[-1] is not None
        assert tracemalloc.get_traced_memory()[1] < len(bomb) * 3 + 1_500_000
    finally:
        tracemalloc.stop()


def test_an_answer_is_a_response_without_error() -> None:
    assert msgpack.unpackb(protocol.answer(7, {"hits": []})) == [1, 7, None, {"hits": []}]


def test_an_answer_over_8_mib_is_refused_as_too_large_p26() -> None:
    most = "x" * (protocol.MAX_ANSWER - 9)
    assert len(protocol.answer(7, most)) == protocol.MAX_ANSWER
    kind, msgid, error, result = msgpack.unpackb(protocol.answer(7, most + "x"))
    assert (kind, msgid, result) == (1, 7, None)
    assert error[0] == 0
    assert error[1] == "too_large: the answer is over 8 MiB; ask for fewer, with `limit`"
    frame = protocol.answer(7, most + "x", as_map=True)
    assert msgpack.unpackb(frame)[2]["code"] == "too_large"


def test_an_error_is_a_pair_that_neovim_shows() -> None:
    frame = protocol.refusal(7, NotFound("no such record", remedy="ask again"), as_map=False)
    assert msgpack.unpackb(frame) == [1, 7, [0, "not_found: no such record; ask again"], None]


def test_an_error_as_a_map_has_code_message_and_data() -> None:
    error = Internal("a fault", remedy="look", error_id="ab12")
    assert msgpack.unpackb(protocol.refusal(7, error, as_map=True)) == [
        1,
        7,
        {
            "code": "internal",
            "message": "a fault",
            "data": {"error_id": "ab12", "remedy": "look"},
        },
        None,
    ]


def test_an_error_without_a_remedy_has_none_in_its_data() -> None:
    frame = protocol.refusal(7, Internal("a fault", remedy=""), as_map=True)
    assert msgpack.unpackb(frame)[2] == {"code": "internal", "message": "a fault", "data": {}}


def test_a_notification_holds_its_arguments_in_an_array() -> None:
    assert msgpack.unpackb(protocol.notification("progress", {"done": 1})) == [
        2,
        "progress",
        [{"done": 1}],
    ]
