"""Bytes on the wire as each version wrote them: what an older peer sends and expects stays understood.

A file of `tests/golden/wire` is written once, when its version is released, and never again.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from memoryd import protocol
from memoryd.client import error_of
from memoryd.errors import BY_CODE
from memoryd.protocol import Decoder, Request

GOLDEN = Path(__file__).parents[1] / "golden" / "wire"
FILES = sorted(GOLDEN.glob("*.json"))


def golden(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def test_there_are_bytes_of_every_version_that_is_spoken_u06() -> None:
    assert [golden(path)["protocol"] for path in FILES] == [*range(1, protocol.VERSION + 1)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_an_older_client_sent_is_understood_as_it_was_u06(path: Path) -> None:
    for one in golden(path)["requests"]:
        decoder = Decoder()
        assert decoder.feed(bytes.fromhex(one["bytes"])) == (
            [Request(one["msgid"], one["method"], one["args"])],
            None,
        )
        assert not decoder.partial


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_an_older_client_was_answered_it_is_answered_still_u06(path: Path) -> None:
    found = golden(path)
    for one in found["answers"]:
        assert protocol.answer(one["msgid"], one["result"]).hex() == one["bytes"]
    for one in found["refusals"]:
        error = BY_CODE[one["code"]](one["message"], remedy=one["remedy"], **one["data"])
        assert protocol.refusal(3, error, as_map=False).hex() == one["pair"]
        assert protocol.refusal(3, error, as_map=True).hex() == one["map"]
    for one in found["notifications"]:
        assert protocol.notification(one["name"], one["args"]).hex() == one["bytes"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_an_older_daemon_refuses_a_newer_client_understands_u06(path: Path) -> None:
    import msgpack

    for one in golden(path)["refusals"]:
        for form in ("pair", "map"):
            told = error_of(msgpack.unpackb(bytes.fromhex(one[form]))[2])
            assert (told.code, one["message"] in told.message) == (one["code"], True)
