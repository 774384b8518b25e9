"""From a request to checked arguments: each refusal names what would be right."""

import msgspec
import pytest

from memoryd.errors import BadRequest, NotGranted, UnknownMethod
from memoryd.protocol import Request
from memoryd.serve.calls import Common, Quick, admit, fitting
from tests.support.peer import allowing


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """A nested argument."""

    log: str
    n: int


class Args(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Some arguments."""

    query: str
    inner: Inner | None = None


METHODS = {"ask": Quick(fitting(Args), lambda asker, args: None)}


def asked(args: dict[str, object] | None) -> Common:
    return admit(METHODS, allowing("ask"), Request(1, "ask", args))[1]


def test_arguments_are_checked_and_filled_in() -> None:
    found = asked({"query": "x", "inner": {"log": "a", "n": 1}})
    assert isinstance(found, Args)
    assert (found.query, found.deadline_ms, found.inner) == ("x", 5_000, Inner("a", 1))


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({}, "query"),
        ({"query": "x", "more": 1}, "more"),
        ({"query": 1}, "query"),
        ({"query": "x", "inner": {"log": "a"}}, "inner.n"),
        ({"query": "x", "inner": {"log": "a", "n": 1, "m": 2}}, "inner.m"),
        ({"query": "x", "inner": {"log": 1, "n": 1}}, "inner.log"),
        ({"query": "x", "inner": []}, "inner"),
        ({"query": "x", "deadline_ms": True}, "deadline_ms"),
    ],
)
def test_the_wrong_argument_is_named(args: dict[str, object], field: str) -> None:
    with pytest.raises(BadRequest) as raised:
        asked(args)
    assert raised.value.data["field"] == field
    assert field in raised.value.message
    assert raised.value.remedy


def test_other_forms_are_refused() -> None:
    with pytest.raises(BadRequest):
        asked(None)
    with pytest.raises(UnknownMethod):
        admit(METHODS, allowing("ask"), Request(1, "tell", {}))
    with pytest.raises(NotGranted):
        admit(METHODS, allowing("tell"), Request(1, "ask", {"query": "x"}))
