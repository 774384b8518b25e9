"""The methods: a name, what it takes, what it does. Adding one is adding a row to `table`.

In: a checked request and who asks. Out: the map that travels. Reading methods make a `Scope` of the
socket's capability and the request, run in a reader's thread, and leave a line in the read log; the
others ask the `Keeper`, which alone writes the index.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import msgspec
import trio

from memoryd import clock, protocol, recall
from memoryd.db import Deadline
from memoryd.errors import BadRequest, Busy, Unavailable
from memoryd.index import Known
from memoryd.index.choosing import Wanted
from memoryd.index.deciding import Relabelled, Wish
from memoryd.index.explaining import Explained
from memoryd.index.forgetting import Forgotten, Hook
from memoryd.index.search import Reader
from memoryd.labels import Classes, Label
from memoryd.notes.desk import Notes
from memoryd.recall.ask import Ask, Get, Listing, Records
from memoryd.serve import (
    blocking,
    brokering,
    dumping,
    forgetting,
    gate,
    lesson_looks,
    lessoning,
    noting,
    relabelling,
)
from memoryd.serve.asking import Caller, Reading, reading, scope_of
from memoryd.serve.calls import Common, Methods, Quick, Slow, fitting
from memoryd.serve.connection import IN_FLIGHT
from memoryd.serve.lesson_block import BlockLessons
from memoryd.serve.noting import Desk
from memoryd.serve.peers import ALL, Asker
from memoryd.serve.readers import Readers
from memoryd.serve.reads import Reads
from memoryd.serve.topics import Topics
from memoryd.serve.topics import table as following
from memoryd.serve.tutor import Tutor

METHODS = tuple(sorted(ALL))
"""The name of every method."""

Answer = dict[str, object]
Read = Callable[[Reader, recall.Scope, Mapping[str, object], Deadline], Answer]


class Hello(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Who speaks, in which version, and how it wants errors: as a pair of number and string, or maps."""

    client: Annotated[str, msgspec.Meta(max_length=200)] = ""
    protocol: int = protocol.VERSION
    errors: Literal["pair", "map"] = "pair"


class Nothing(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """No arguments but how long the asker waits."""


class Sync(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What to wait for: everything, or the log of the caller. A `session` is waited for with the rest.

    `lessons`: until they have learned from it, too.
    """

    session: Annotated[str, msgspec.Meta(max_length=1_024)] | None = None
    caller: Caller | None = None
    lessons: bool = False


class Dump(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Where to go on."""

    cursor: Annotated[str, msgspec.Meta(max_length=8_192)] | None = None


class Keeper(Protocol):
    """Who writes the index, as the methods see it."""

    async def label_of(self, caller: Caller) -> Label:
        """Return the label of the asking session. Raises: Behind."""

    async def synced(self, caller: Caller | None) -> None:
        """Return when all that was on disk at the call is indexed."""

    def named(self, log: str) -> list[tuple[int, Known]]:
        """Return the logs at this path below any folder of logs, each with its key."""

    def known(self) -> dict[int, Known]:
        """Return what the index knows of every log, by key."""

    def reindex(self) -> str:
        """Start a rebuild, or join the one that runs; return its job id."""

    def changed(self, paths: list[Path]) -> None:
        """Take the hint that these files may have changed."""

    async def explain(self, log: str) -> Explained:
        """Return why the rows of a log have their labels."""

    async def relabel(self, log: str, wish: Wish) -> Relabelled:
        """Give rows of a log the owner's own label."""

    async def forget(
        self, wanted: Wanted, *, dry: bool, delete_logs: bool, hooks: Sequence[Hook]
    ) -> Forgotten:
        """Forget, or tell what that comes to."""

    async def remember(self, act: str) -> tuple[int, int]:
        """Take an act of forgetting back."""

    async def purged(self) -> None:
        """Return when no word of a deleted row is left in the index's files."""


class Memory(msgspec.Struct, frozen=True):
    """What the methods answer from."""

    classes: Classes
    readers: Readers
    reads: Reads
    keeper: Keeper
    version: str
    uptime: Callable[[], int]
    overview: Callable[[], Answer]
    """What `status` tells the owner beside; called in a worker thread."""
    notes: Notes | None = None
    notes_fault: str = ""
    derived: Sequence[Hook] = ()
    """Who takes away what was derived from records that are forgotten."""
    key: bytes = b""
    """Seals the memory block."""
    tutor: Tutor | None = None
    """Who keeps the lessons."""
    topics: Topics | None = None
    """Who is told of what happens; None: nobody but those who ask these methods."""

    def followed(self) -> Topics:
        """Return who is told of what happens."""
        return self.topics or Topics(self.classes)

    def room(self) -> lessoning.Room:
        """Return what the methods of lessons act on."""
        return lessoning.Room(self.tutor, self.classes, self.keeper, self.reads)

    def told_lessons(self) -> BlockLessons | None:
        """Return what lessons the memory block tells."""
        if self.tutor is None:
            return None
        return BlockLessons(self.tutor, self.keeper, self.classes)

    def desk(self) -> Desk:
        """Return what the methods of notes act on."""
        return Desk(
            self.notes,
            self.notes_fault,
            self.classes,
            self.keeper,
            self.reads,
            self.followed(),
        )


def table(memory: Memory) -> Methods:
    """Return every method by name, behind the gate; which socket grants which is in `peers`."""
    gated = gate.gated(_bare(memory), memory.desk())
    return {**gated, **brokering.table(gated, memory.classes)}


def _bare(memory: Memory) -> Methods:
    return {
        "hello": Quick(fitting(Hello), lambda asker, args: hello(memory, asker, args)),
        "status": Slow(fitting(Nothing), lambda *given: status(memory, *given)),
        "recall": _reads(memory, "recall", Ask, recall.recall, "hits"),
        "get": _reads(memory, "get", Get, recall.get, "before", "record", "after"),
        "sessions": _reads(memory, "sessions", Listing, recall.sessions, "sessions"),
        "projects": _reads(memory, "projects", Listing, recall.projects, "projects"),
        "records": _reads(memory, "records", Records, recall.records, "records"),
        "sync": Slow(fitting(Sync), lambda *given: sync(memory, *given)),
        "reindex": Quick(fitting(Nothing), lambda asker, args: {"job": memory.keeper.reindex()}),
        "dump": Slow(fitting(Dump), lambda *given: dump(memory, *given)),
        **relabelling.table(memory.keeper),
        **forgetting.table(memory.keeper, (memory.reads.forget, *memory.derived)),
        **noting.table(memory.desk()),
        **lessoning.table(memory.room()),
        **lesson_looks.table(memory.room()),
        **following(memory.followed(), memory.classes),
        **blocking.table(memory.desk(), memory.key, memory.told_lessons()),
    }


def hello(memory: Memory, asker: Asker, args: Hello) -> Answer:
    """Tell what this socket is; from here on errors have the form asked for."""
    if args.protocol != protocol.VERSION:
        raise BadRequest(
            f"protocol {args.protocol} is not spoken here",
            remedy=f"speak {protocol.VERSION}",
            field="protocol",
            supported=[protocol.VERSION],
        )
    asker.as_map = args.errors == "map"
    allowed = asker.capability
    return {
        "server": "memoryd",
        "versions": {"memoryd": memory.version, "protocol": protocol.VERSION},
        "classes": memory.classes.upto(allowed.level),
        "clearance": memory.classes.name(allowed.level),
        "tools": allowed.tools,
        "methods": sorted(allowed.methods),
        "limits": {
            "request_bytes": protocol.MAX_REQUEST,
            "answer_bytes": protocol.MAX_ANSWER,
            "in_flight": IN_FLIGHT,
        },
    }


async def status(memory: Memory, asker: Asker, args: Nothing, deadline: Deadline) -> Answer:
    """Tell whether the memory can be asked and how much of it this socket sees; the owner all of it."""
    scope = scope_of(asker.capability, memory.classes, None, None)
    told: Answer = {"ready": False, "uptime": memory.uptime(), "generation": None, "rows": None}

    def seen(reader: Reader) -> Answer:
        rows = recall.visible_rows(reader, scope, deadline)
        return {"ready": True, "generation": reader.generation, "rows": rows}

    with suppress(Busy, Unavailable):
        told |= await memory.readers.read(seen, deadline)
    if asker.capability.owner:
        told |= await trio.to_thread.run_sync(memory.overview)
    return told


def _reads(memory: Memory, name: str, form: type[msgspec.Struct], read: Read, *told: str) -> Slow:
    """Return the reading method `name`; `told` are the parts of its answer that name what was told."""
    desk = memory.desk()

    async def run(asker: Asker, args: Reading, deadline: Deadline) -> Answer:
        label = None
        if args.caller is not None:
            label = await memory.keeper.label_of(args.caller)
        scope = scope_of(asker.capability, memory.classes, args.max_class, label)

        def work(reader: Reader) -> Answer:
            answer = read(reader, scope, args.asked, deadline)
            noting.mark(desk, scope, _items(answer, told))
            memory.reads.note(
                asker,
                name,
                _named(answer, told),
                answer["label"],
                caller=None if args.caller is None else args.caller.log,
                sessions=[item["session"] for item in _items(answer, told) if "id" in item],
            )
            return answer

        return await memory.readers.read(work, deadline)

    return Slow(reading(form), run)


def _named(answer: Answer, parts: tuple[str, ...]) -> list[object]:
    """Return the ids of the records told, or the names of the sessions or projects listed."""
    kind = parts[0].removesuffix("s")
    return [item.get("id", item.get(kind)) for item in _items(answer, parts)]


def _items(answer: Answer, parts: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return what an answer tells of, in order."""
    items: list[dict[str, Any]] = []
    for part in parts:
        told: Any = answer[part]
        items.extend(told if isinstance(told, list) else [told])
    return items


async def sync(memory: Memory, asker: Asker, args: Sync, deadline: Deadline) -> Answer:
    """Return when all that was on disk at the call is indexed; below the owner, of the caller's log."""
    if not asker.capability.owner and args.caller is None:
        raise BadRequest(
            "this socket can wait for the caller's own log only",
            remedy="name it: caller = {log, n}",
            field="caller",
        )
    begun = clock.monotonic()
    await memory.keeper.synced(args.caller)
    if args.lessons and memory.tutor is not None:
        await memory.tutor.caught_up()
    waited = int(1_000 * (clock.monotonic() - begun))
    return {"waited_ms": waited} if asker.capability.owner else {}


async def dump(memory: Memory, asker: Asker, args: Dump, deadline: Deadline) -> Answer:
    """Tell every indexed record, a page of canonical JSON lines at a time."""

    def work(reader: Reader) -> Answer:
        page = dumping.page(reader, args.cursor, deadline)
        memory.reads.note(asker, "dump", (), page["label"])
        return page

    return await memory.readers.read(work, deadline)
