"""tool.list and tool.call: a tool is a method's call, and what a model can act on is a result."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memoryd import errors
from memoryd.broker import tools
from memoryd.config import Socket
from memoryd.db import Deadline
from memoryd.labels import Label
from memoryd.serve import brokering, methods
from memoryd.serve.asking import Caller
from memoryd.serve.calls import Common, Methods, Slow
from memoryd.serve.methods import Memory
from memoryd.serve.peers import Asker, capability
from memoryd.serve.readers import Readers
from memoryd.serve.reads import Reads
from tests.support.notes import CLASSES
from tests.support.notes import Desk as Notes
from tests.support.peer import HERE, talking
from tests.support.tools import FULL

AGENT = Socket("agent", "private", ["*"])


class Kept:
    def __init__(self) -> None:
        self.label = Label(1, False)

    async def label_of(self, _caller: Caller) -> Label:
        return self.label

    def changed(self, _paths: list[Path]) -> None:
        pass


def memory(notes: Notes, folder: Path) -> Memory:
    readers = Readers(lambda: pytest.fail("nothing is read"))
    reads = Reads(folder / "reads.jsonl")
    return Memory(CLASSES, readers, reads, Kept(), "9.9", lambda: 7, dict, notes=notes.notes)


@asynccontextmanager
async def asking(home: Path, setting: Socket = AGENT) -> AsyncIterator[Any]:
    """Give a function that asks over a connection and returns (error, result)."""
    with Notes(home) as notes:
        allowed = capability(setting, CLASSES)
        async with talking(methods.table(memory(notes, home)), allowed) as peer:
            await peer.send(peer.request("hello", errors="map"))
            await peer.answer()

            async def ask(name: str, /, **args: Any) -> tuple[Any, Any]:
                await peer.send(peer.request("tool.call", name=name, **args))
                _, _, error, result = await peer.answer()
                return error, result

            yield ask


def test_the_method_of_every_tool_takes_what_the_tool_gives(user_home: Path) -> None:
    with Notes(user_home) as notes:
        table = methods.table(memory(notes, user_home))
    here = [tool for tool in tools.TOOLS.values() if tool.method in table]
    assert {tool.name for tool in here} >= {f"memory_{name}" for name in tools.COMMANDS}
    who = {"caller": {"log": "a.jsonl", "n": 1}, "deadline_ms": 100}
    for tool in here:
        table[tool.method].check({**FULL[tool.name], **who})


async def test_a_call_is_done_under_the_caller_s_label(user_home: Path) -> None:
    async with asking(user_home) as ask:
        caller = {"log": "s.jsonl", "n": 3}
        args = {"path": "/memories/internal/a.md", "file_text": "x\n"}
        error, told = await ask("memory_create", args=args, caller=caller)
        assert (error, told["ok"], told["label"]["class"]) == (None, True, "public")
        error, told = await ask("memory_view", args={"path": "/memories/internal/a.md"})
        assert told["text"].endswith("\n     1\tx")
        claimed = {"class": "internal", "untrusted": True}
        error, told = await ask(
            "memory_create",
            args={"path": "/memories/internal/b.md", "file_text": "x\n"},
            caller=caller,
            label=claimed,
        )
        assert told["rule"] == "create, untrusted session: pend"


@pytest.mark.parametrize(
    ("name", "setting", "code"),
    [
        ("no_such_tool", AGENT, "bad_request"),
        ("lesson_forget", AGENT, "bad_request"),
        ("memory_delete", Socket("s", "private", ["memory_view"]), "not_granted"),
        ("recall", Socket("s", "private", ["memory_view"]), "not_granted"),
    ],
)
async def test_a_tool_that_is_not_there_or_not_granted_is_an_error_of_the_request(
    user_home: Path, name: str, setting: Socket, code: str
) -> None:
    async with asking(user_home, setting) as ask:
        error, told = await ask(name)
    assert (error["code"], told) == (code, None)
    if code == "not_granted":
        assert error["data"]["rule"] == "tools of the socket s"


@pytest.mark.parametrize("args", [{}, {"command": "undo"}, {"command": "view"}])
async def test_wrong_arguments_are_the_model_s_to_mend(
    user_home: Path, args: dict[str, Any]
) -> None:
    async with asking(user_home) as ask:
        for name, given in (("memory", args), ("memory_view", {"path": 7}), ("recall", {"x": 1})):
            error, told = await ask(name, args=given)
            assert (error, told["is_error"], told["code"]) == (None, True, "bad_request")
            assert told["label"] == {"class": "public", "untrusted": False}


async def test_a_refusal_has_the_label_of_a_note_only_where_it_tells_of_it(user_home: Path) -> None:
    caller = {"log": "s.jsonl", "n": 3}
    path = "/memories/private/inbox/a.md"
    async with asking(user_home) as ask:
        lowest = {"class": "public", "untrusted": False}
        _, made = await ask("memory_create", args={"path": path, "file_text": "x\n"}, caller=caller)
        assert (made["ok"], made["label"], made["structured"]["label"]) == (True, lowest, lowest)
        _, again = await ask(
            "memory_create", args={"path": path, "file_text": "y\n"}, caller=caller
        )
        assert (again["check"], again["label"]) == ("exists", lowest)
        for where, check, label in (
            (path, "no_match", {"class": "private", "untrusted": True}),
            ("/memories/private/none.md", "not_found", lowest),
            ("/memories/secret/a.md", "not_found", lowest),
        ):
            args = {"path": where, "old_str": "q", "new_str": "y"}
            _, told = await ask("memory_str_replace", args=args, caller=caller)
            assert (told.get("check", told["code"]), told["label"]) == (check, label)


def failing(error: errors.MemorydError) -> Methods:
    async def run(asker: Asker, args: Common, deadline: Deadline) -> object:
        raise error

    return {"recall": Slow(lambda args: Common(), run)}


@pytest.mark.parametrize("kind", sorted(set(errors.BY_CODE.values()), key=lambda kind: kind.code))
async def test_what_a_model_cannot_mend_ends_the_request(kind: type[errors.MemorydError]) -> None:
    ends = {"timeout", "cancelled", "shutting_down", "internal", "bad_message"}
    asker = Asker(HERE, capability(AGENT, CLASSES))
    method = brokering.table(failing(kind("no")), CLASSES)["tool.call"]
    assert isinstance(method, Slow)
    args = method.check({"name": "recall", "args": {"query": "x"}})
    if kind.code in ends:
        with pytest.raises(kind):
            await method.run(asker, args, Deadline())
    else:
        told: Any = await method.run(asker, args, Deadline())
        assert (told["ok"], told["code"]) == (False, kind.code)
        assert told["is_error"] is (kind.code != "pending")


def test_no_more_hashes_are_remembered_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokering.Seen, "_MOST", 2)
    seen, asker = brokering.Seen(), Asker(HERE, capability(AGENT, CLASSES))
    for name in "abc":
        seen.note(asker, None, name, "hash")
    seen.note(asker, None, "c", None)
    assert [seen.of(asker, None, name) for name in "abc"] == [None, "hash", None]
    assert seen.of(asker, Caller("other.jsonl", 0), "b") is None
