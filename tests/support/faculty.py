"""The methods of lessons over a database that a small world has filled; no daemon, no index.

::

    async with faculty(user_home, AGENT) as here:
        here.world.fail("s1")
        told = await here.ask("lessons.query", query="build fails")
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from memoryd.config import Socket
from memoryd.errors import Behind
from memoryd.labels import Classes, Label
from memoryd.recall.block import Offered, Question
from memoryd.serve import lesson_looks, lessoning
from memoryd.serve.asking import Caller
from memoryd.serve.lesson_block import BlockLessons
from memoryd.serve.peers import capability
from memoryd.serve.reads import Reads
from memoryd.serve.tutor import Tutor
from tests.support.indexing import World as Logs
from tests.support.peer import TalkingPeer, talking
from tests.support.teaching import World

CLASSES = Classes(("public", "internal", "private", "secret"))
OWNER = Socket("memoryd", "secret", ["*"])
TOOLS = [
    f"lesson_{tool}"
    for tool in (
        "save",
        "query",
        "get",
        "recall",
        "status",
        "why",
        "config",
        "feedback",
        "trace",
        "audit",
    )
]
AGENT = Socket("agent", "internal", TOOLS)


class Log(msgspec.Struct, frozen=True):
    """What the index knows of a log, as far as lessons ask."""

    session: str
    project: str | None


class Kept:
    """A keeper that knows each session's log, ``SESSION.jsonl``, and its label."""

    def __init__(self) -> None:
        self.labels: dict[str, Label] = {}

    async def label_of(self, caller: Caller) -> Label:
        if caller.n > 1_000:
            raise Behind("not read that far", remedy="ask again")
        return self.labels.get(caller.log, Label(0, False))

    def named(self, log: str) -> list[tuple[int, Log]]:
        return [(1, Log(log.removesuffix(".jsonl"), "/w/app"))]

    def known(self) -> dict[int, Log]:
        return {
            number: Log(name.removesuffix(".jsonl"), "/w/app")
            for number, name in enumerate(self.labels)
        }


class Faculty:
    """A peer that asks, and the world behind what it asks; `owner` is another at the owner's socket."""

    owner: "Faculty"
    file: Path
    """Where proposals are to go."""
    known_id = "none"
    """An id that somebody may have heard of."""

    def __init__(
        self, peer: TalkingPeer, world: World, keeper: Kept, tutor: Tutor, told: Path
    ) -> None:
        self.peer, self.world, self.keeper, self.tutor = peer, world, keeper, tutor
        self._told = told

    async def answer(self, method: str, /, **args: Any) -> tuple[Any, Any]:
        await self.peer.send(self.peer.request(method, **args))
        _, _, error, result = await self.peer.answer()
        return error, result

    async def ask(self, method: str, /, **args: Any) -> Any:
        error, result = await self.answer(method, **args)
        assert error is None, error
        return result

    async def refused(self, method: str, /, **args: Any) -> str:
        error, result = await self.answer(method, **args)
        assert result is None, result
        return str(error[1])

    def block(self, **question: Any) -> Offered:
        """What a memory block would be offered; call it in a worker thread."""
        blocks = BlockLessons(self.tutor, self.keeper, CLASSES)
        asked = {"query": "the build fails", "hook": "pre_prompt", "level": 3, "projects": ("*",),
                 "owner": True, "cap": 900, **question}  # fmt: skip
        return blocks.offered(Question(**asked))

    @property
    def noted(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._told.read_text().splitlines()]


@asynccontextmanager
async def faculty(user: Path, setting: Socket = OWNER) -> AsyncIterator[Faculty]:
    settings = Logs(user).settings()
    tutor = Tutor(settings, dict, idle_after_s=900)
    keeper, told = Kept(), user / "reads.jsonl"
    reads = Reads(told)
    room = lessoning.Room(tutor, CLASSES, keeper, reads)
    world = World(tutor._learner.connection)
    methods = lessoning.table(room) | lesson_looks.table(room)
    async with (
        talking(methods, capability(setting, CLASSES)) as peer,
        talking(methods, capability(OWNER, CLASSES)) as owner,
    ):
        here = Faculty(peer, world, keeper, tutor, told)
        here.owner = Faculty(owner, world, keeper, tutor, told)
        yield here
    tutor._close(tutor._learner)
    reads.close()


def learned(world: World) -> World:
    """Let a lesson be learned, mended and proven, told to another session, and settled."""
    world.fail("s1")
    world.edit("s1")
    world.succeed("s1")
    world.idle("s1")
    world.block("s2")
    world.idle("s2")
    return world
