"""The gate: each cell of the grants as a call meets it, and what becomes of calls that wait."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memoryd.broker import grants
from memoryd.config import Socket
from memoryd.db import Deadline
from memoryd.errors import BadRequest, MemorydError, NotFound
from memoryd.labels import Label
from memoryd.notes import history, waiting
from memoryd.serve import gate
from memoryd.serve.asking import Caller, reading
from memoryd.serve.calls import Common, Slow, fitting
from memoryd.serve.methods import Memory
from memoryd.serve.note_args import Claimed
from memoryd.serve.peers import Asker, capability
from memoryd.serve.readers import Readers
from memoryd.serve.reads import Reads
from tests.support.notes import CLASSES, OWNER
from tests.support.notes import Desk as Notes
from tests.support.peer import HERE

AGENT = Socket("agent", "private", ["*"])
OWNERS = Socket("memoryd", "secret", ["*"])
LESSON_LEVEL = 1


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: str = ""


class Acting(Common, frozen=True, kw_only=True):
    """What a method of lessons may take."""

    caller: Caller | None = None
    memory_id: str | None = None
    verdict: str | None = None
    action: str | None = None
    content: str | None = None
    label: Claimed | None = None
    id: str | None = None


class Saving(Acting, frozen=True, kw_only=True):
    """What a method takes that asks whether a person acts."""

    owner: bool = False


class Editing(Common, frozen=True, kw_only=True):
    """What an edit of a note takes, as far as the gate looks."""

    caller: Caller | None = None
    path: str
    owner: bool = False


class Renaming(Common, frozen=True, kw_only=True):
    """The same of a rename."""

    caller: Caller | None = None
    old_path: str
    owner: bool = False


class Kept:
    """A keeper that knows one label."""

    def __init__(self) -> None:
        self.label = Label(1, False)

    async def label_of(self, _caller: Caller) -> Label:
        return self.label

    def changed(self, _paths: list[Path]) -> None:
        pass


class Here:
    """Methods behind the gate, which only say that they were reached; notes are real."""

    def __init__(self, notes: Notes, folder: Path, setting: Socket) -> None:
        self.notes, self.keeper, self.reached = notes, Kept(), list[tuple[str, Any]]()
        readers = Readers(lambda: pytest.fail("nothing is read"))
        self.memory = Memory(
            CLASSES, readers, Reads(folder / "reads.jsonl"), self.keeper, "9.9", lambda: 7, dict,
            notes=notes.notes,
        )  # fmt: skip
        self.asker = Asker(HERE, capability(setting, CLASSES))
        looks = {"notes.str_replace", "notes.insert", "notes.delete", "notes.rename"}
        observed = (
            {name for name in grants.TOOLS if grants.observes(name)} - {"lessons.get"} - looks
        )
        acting = {name for name in grants.TOOLS if not grants.observes(name)}
        self.methods = {
            **{name: self._method(name, reading(Query)) for name in observed},
            **{name: self._method(name, fitting(Acting)) for name in acting},
            "lessons.get": self._method("lessons.get", fitting(Acting)),
            "lessons.save": self._method("lessons.save", fitting(Saving)),
            **{name: self._method(name, fitting(Editing)) for name in looks},
            "notes.rename": self._method("notes.rename", fitting(Renaming)),
            "notes.accept": Slow(fitting(Common), self._accept),
        }

    def _method(self, name: str, check: Any) -> Slow:
        async def run(asker: Asker, args: Any, deadline: Deadline) -> object:
            if name == "lessons.get" and getattr(args, "id", None) == "hidden":
                raise NotFound("no such lesson")
            self.reached.append((name, args))
            return {"label": {"class": CLASSES.name(LESSON_LEVEL), "untrusted": False}}

        return Slow(check, run)

    async def _accept(self, *_: object) -> object:
        return history.accept(self.notes.notes, OWNER, txn=self.txn())

    def txn(self) -> str:
        return str(waiting.pending(self.notes.notes)[0]["txn"])

    async def call(self, name: str, **args: Any) -> Any:
        method = gate.gated(self.methods, self.memory.desk())[name]
        assert isinstance(method, Slow)
        return await method.run(self.asker, method.check(args), Deadline())

    async def said(self, name: str, **args: Any) -> tuple[str, str]:
        """Make a call as session ``s``; return the cell that decided and the rule it names."""
        self.reached.clear()
        named = {"caller": {"log": "s.jsonl", "n": 3}, **args}
        error = None
        try:
            await self.call(name, **{k: v for k, v in named.items() if v is not None})
        except MemorydError as met:
            error = met
        assert (name in [each for each, _ in self.reached]) == (error is None)
        if error is None:
            return "allow", ""
        rule = str(error.data["rule"])
        assert error.code == ("not_granted" if rule.endswith(": deny") else "pending")
        return rule.rsplit(": ", 1)[1], rule


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is durable is a matter of the notes' own tests."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@asynccontextmanager
async def here(home: Path, setting: Socket = AGENT) -> AsyncIterator[Here]:
    with Notes(home) as notes:
        yield Here(notes, home, setting)


LOOKS = ("notes.str_replace", "notes.insert", "notes.delete", "notes.rename")
OBSERVERS = sorted(
    name for name in grants.TOOLS if grants.observes(name) and name not in {"lessons.get", *LOOKS}
)
LABELS = {"trusted": Label(1, False), "untrusted": Label(1, True), "above": Label(2, False)}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "lesson_save": ("lessons.save", {"content": "x"}),
    "lesson_feedback": ("lessons.feedback", {"memory_id": "x", "verdict": "useful"}),
    "lesson_feedback ignore": ("lessons.feedback", {"memory_id": "x", "verdict": "ignore"}),
    "lesson_config list": ("lessons.config", {"action": "list"}),
    "lesson_config set": ("lessons.config", {"action": "set"}),
    **{f"lesson_{name}": (f"lessons.{name}", {}) for name in ("import", "export", "retrospective", "propose")},
}  # fmt: skip
CELLS = [
    (act, who)
    for act in CALLS
    for who in grants.STANDINGS
    if (act, who) != ("lesson_save", "above")
]
"""A lesson is saved at its session's own label, so that no session stands above it."""


@pytest.mark.parametrize("name", OBSERVERS)
@pytest.mark.parametrize("who", ["trusted", "untrusted"])
@pytest.mark.parametrize("wanted", [None, "public", "internal", "private"])
async def test_case_68_reading_above_the_session_is_an_untrusted_one_s_to_ask_for(
    user_home: Path, name: str, who: str, wanted: str | None
) -> None:
    async with here(user_home) as at:
        at.keeper.label = LABELS[who]
        above = wanted == "private"
        expected = "ask" if above and who == "untrusted" else "allow"
        assert (await at.said(name, max_class=wanted))[0] == expected


@pytest.mark.parametrize("name", OBSERVERS)
@pytest.mark.parametrize("who", ["trusted", "untrusted"])
async def test_case_68_a_change_of_any_observing_cell_is_noticed(
    user_home: Path, monkeypatch: pytest.MonkeyPatch, name: str, who: str
) -> None:
    act = f"{grants.TOOLS[name]} above the session's class"
    async with here(user_home) as at:
        at.keeper.label = LABELS[who]
        for wrong in {"allow", "ask", "pend", "deny"} - {grants.TABLE[act, who]}:
            with monkeypatch.context() as changed:
                changed.setitem(grants.TABLE, (act, who), wrong)
                said, rule = await at.said(name, max_class="private", query=wrong)
            assert said == wrong
            assert rule == "" or rule.startswith(f"{act}, {who} session")


@pytest.mark.parametrize(("act", "who"), CELLS, ids=str)
async def test_case_68_every_cell_of_lessons_decides_its_call(
    user_home: Path, monkeypatch: pytest.MonkeyPatch, act: str, who: str
) -> None:
    name, args = CALLS[act]
    async with here(user_home) as at:
        at.keeper.label = LABELS[who]
        stands = who if "memory_id" in args or who != "above" else "trusted"
        right = grants.TABLE[act, stands]
        assert (await at.said(name, **args))[0] == right
        for number, wrong in enumerate(sorted({"allow", "ask", "pend", "deny"} - {right})):
            with monkeypatch.context() as changed:
                changed.setitem(grants.TABLE, (act, stands), wrong)
                caller = {"log": f"{number}.jsonl", "n": 3}
                assert (await at.said(name, **args, caller=caller))[0] == wrong


async def test_a_session_without_a_name_is_untrusted_and_reads_what_its_socket_may(
    user_home: Path,
) -> None:
    async with here(user_home) as at:
        assert (await at.said("recall", caller=None, max_class="private"))[0] == "allow"
        assert (await at.said("lessons.save", caller=None, content="x"))[0] == "pend"


@pytest.mark.parametrize(
    ("setting", "caller", "said"),
    [(OWNERS, None, "allow"), (OWNERS, {"log": "s.jsonl", "n": 3}, "deny"), (AGENT, None, "deny")],
    ids=["a person", "a session", "another socket"],
)
async def test_only_a_person_at_the_owner_s_socket_is_asked_nothing(
    user_home: Path, setting: Socket, caller: Any, said: str
) -> None:
    async with here(user_home, setting) as at:
        assert (await at.said("lessons.import", caller=caller))[0] == said


@pytest.mark.parametrize(("owner", "said"), [(True, "allow"), (False, "pend")])
async def test_where_a_person_has_to_say_so_nobody_else_counts_as_one(
    user_home: Path, owner: bool, said: str
) -> None:
    async with here(user_home, OWNERS) as at:
        assert (await at.said("lessons.save", caller=None, owner=owner, content="x"))[0] == said


@pytest.mark.parametrize("name", OBSERVERS)
@pytest.mark.parametrize(
    ("level", "said"), [(0, "ask"), (1, "ask"), (2, "allow"), (3, "allow")], ids=str
)
async def test_case_30_a_class_above_the_clearance_asks_for_the_clearance_at_the_gate_too(
    user_home: Path, name: str, level: int, said: str
) -> None:
    async with here(user_home) as at:
        at.keeper.label = Label(level, True)
        assert (await at.said(name, max_class="secret"))[0] == said


async def test_a_name_that_is_no_class_is_refused_before_anything_is_asked(
    user_home: Path,
) -> None:
    async with here(user_home) as at:
        at.keeper.label = Label(0, True)
        with pytest.raises(BadRequest, match="max_class: no such class"):
            await at.call("recall", caller={"log": "s.jsonl", "n": 3}, max_class="nonsense")
        assert waiting.pending(at.notes.notes) == []


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("who", ["trusted", "untrusted"])
@pytest.mark.parametrize("cls", ["public", "internal", "private", "secret", "nonsense"])
async def test_case_68_an_edit_above_the_session_is_a_look_above_it(
    user_home: Path, name: str, who: str, cls: str
) -> None:
    async with here(user_home) as at:
        at.keeper.label = LABELS[who]
        path = {"old_path" if name == "notes.rename" else "path": f"/memories/{cls}/inbox/a.md"}
        said, rule = await at.said(name, **path)
        asks = cls == "private" and who == "untrusted"
        assert said == ("ask" if asks else "allow")
        assert rule.startswith("memory_view above the session's class" if asks else "")


async def test_an_approved_reading_is_made_once_and_only_so(user_home: Path) -> None:
    async with here(user_home) as at:
        at.keeper.label = Label(0, True)
        assert (await at.said("recall", max_class="private", query="a"))[0] == "ask"
        await at.call("notes.accept")
        assert (await at.said("recall", max_class="private", query="b"))[0] == "ask"
        assert (await at.said("recall", max_class="private", query="a"))[0] == "allow"
        assert (await at.said("recall", max_class="private", query="a"))[0] == "ask"


async def test_an_approved_act_is_done_by_its_acceptance_as_its_session(user_home: Path) -> None:
    async with here(user_home) as at:
        at.keeper.label = Label(1, True)
        await at.said("lessons.feedback", memory_id="x", verdict="wrong")
        told = await at.call("notes.accept")
        assert (told["status"], told["method"]) == ("approved", "lessons.feedback")
        name, args = at.reached[-1]
        assert name == "lessons.feedback"
        assert (args.memory_id, args.verdict, args.caller) == ("x", "wrong", Caller("s.jsonl", 3))
        assert waiting.pending(at.notes.notes) == []


async def test_a_claimed_label_is_part_of_what_is_approved_and_done(user_home: Path) -> None:
    async with here(user_home) as at:
        label = {"class": "private", "untrusted": True}
        assert (await at.said("lessons.save", content="x", label=label))[0] == "pend"
        [told] = waiting.pending(at.notes.notes)
        assert told["session_label"] == label
        assert told["args"] == {"content": "x", "label": label}
        await at.call("notes.accept")
        assert at.reached[-1][1].label == Claimed("private", True)


async def test_a_lesson_that_the_session_does_not_see_is_not_found_rather_than_asked_for(
    user_home: Path,
) -> None:
    async with here(user_home) as at:
        at.keeper.label = Label(1, True)
        with pytest.raises(NotFound):
            await at.call(
                "lessons.feedback",
                memory_id="hidden",
                verdict="wrong",
                caller={"log": "s.jsonl", "n": 3},
            )
        assert waiting.pending(at.notes.notes) == []
