"""What a socket's settings grant, and who is at the other end."""

import os
import socket

import pytest

from memoryd.config import Socket
from memoryd.labels import Classes, Label
from memoryd.serve.asking import unnamed
from memoryd.serve.peers import ALL, ALWAYS, NOTES, OWNER, RECALL, Peer, capability, peer_of

CLASSES = Classes(("public", "internal", "private", "secret"))
EVERYTHING = {"name": "s", "clearance": "secret", "tools": ["*"]}


def test_the_owner_s_socket_grants_everything() -> None:
    found = capability(Socket(**EVERYTHING), CLASSES)
    assert found.owner
    assert found.level == CLASSES.top
    assert found.methods == ALL
    assert found.uids == {os.geteuid()}


@pytest.mark.parametrize(
    "less",
    [
        {"clearance": "private"},
        {"projects": ["web"]},
        {"untrusted": "owner-only"},
        {"untrusted": "exclude"},
    ],
)
def test_a_star_with_any_limit_is_not_the_owner_s(less: dict[str, object]) -> None:
    found = capability(Socket(**EVERYTHING | less), CLASSES)
    assert not found.owner
    assert found.methods == ALL - OWNER


def test_recall_grants_the_reading_methods() -> None:
    found = capability(Socket("a", "internal", ["recall", "memory_view"], uids=[12]), CLASSES)
    assert found.methods == ALWAYS | RECALL | NOTES["memory_view"]
    assert found.level == 1
    assert found.uids == {os.geteuid(), 12}


@pytest.mark.parametrize(("named", "level"), [(None, 3), ("internal", 1), ("secret", 3)])
def test_an_unnamed_session_is_of_the_class_that_the_owner_gives_it_and_untrusted(
    named: str | None, level: int
) -> None:
    found = capability(Socket("a", "internal", ["recall"], unnamed=named), CLASSES)
    assert unnamed(found, CLASSES) == Label(level, True)


def test_without_a_grant_only_hello_and_status_answer() -> None:
    found = capability(Socket("a", "secret", []), CLASSES)
    assert found.methods == ALWAYS
    assert found.grants("hello")
    assert not found.grants("recall")


@pytest.mark.parametrize(
    ("tool", "methods"),
    [
        ("memory_view", {"notes.view", "notes.list", "block", "lessons.idle"}),
        ("memory_create", {"notes.create"}),
        ("memory_str_replace", {"notes.str_replace"}),
        ("memory_insert", {"notes.insert"}),
        ("memory_delete", {"notes.delete"}),
        ("memory_rename", {"notes.rename"}),
        ("recall_open", {"get"}),
    ],
)
def test_each_tool_of_notes_grants_its_methods(tool: str, methods: set[str]) -> None:
    found = capability(Socket("a", "secret", [tool]), CLASSES)
    assert found.methods == ALWAYS | methods


def test_the_owner_s_acts_on_notes_are_in_no_tool() -> None:
    acts = {
        f"notes.{act}" for act in ("log", "undo", "verify", "pending", "accept", "reject", "redact")
    }
    assert acts <= OWNER
    assert not acts & frozenset().union(*NOTES.values())


def test_the_kernel_tells_who_connected() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_of(ours) == Peer(os.getpid(), os.geteuid())
