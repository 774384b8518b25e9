"""Every method of a socket, asked over the wire: what lies above its clearance changes no byte of any answer.

Each example serves the same index and notes twice, once with hidden rows and notes among the visible ones, and
holds the bytes that a peer receives against each other. Nothing is left out but what the world fixes: the
uptime, the generation, the clock, the random part of a transaction's name.
"""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import pytest
import structlog
import trio
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from memoryd import db
from memoryd.config import Socket
from memoryd.errors import Behind
from memoryd.index import search
from memoryd.index.search import Reader
from memoryd.labels import Label
from memoryd.notes import ids as txns
from memoryd.notes.desk import Notes
from memoryd.notes.reading import View
from memoryd.serve import methods, noting
from memoryd.serve.asking import Caller
from memoryd.serve.methods import METHODS, Memory
from memoryd.serve.peers import RECALL, capability
from memoryd.serve.readers import Readers
from memoryd.serve.reads import Reads
from tests.property.test_clearance import (
    HIDDEN_PROJECTS,
    LISTINGS,
    PROJECTS,
    QUESTIONS,
    among,
    lines,
    numbered,
    texts,
)
from tests.support.notes import START_MS
from tests.support.notes import Desk as NoteDesk
from tests.support.peer import talking
from tests.support.shelf import CLASSES, IDS, Line, fill, place_id

FEW = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
CALLERS = (Label(0, False), Label(1, True), Label(3, False))


class Note(NamedTuple):
    """A note to be: its class's level, its path below the class, its text."""

    level: int
    path: str
    text: str


class World(NamedTuple):
    """What a socket is served from."""

    lines: list[Line]
    notes: list[Note]


class Numbers:
    """Random numbers that are the same in each world from the moment it is served."""

    def __init__(self) -> None:
        self.last = 0

    def restart(self) -> None:
        self.last = 0

    def __next__(self) -> int:
        self.last += 1
        return self.last


RANDOM = Numbers()


class Kept:
    """A keeper that knows the label of one asking session."""

    async def label_of(self, caller: Caller) -> Label:
        if not caller.log.isdigit() or int(caller.log) >= len(CALLERS):
            raise Behind("not read that far", remedy="ask again")
        return CALLERS[int(caller.log)]

    async def synced(self, _caller: Caller | None) -> None:
        return

    def reindex(self) -> str:
        return "job"

    def changed(self, _paths: list[Path]) -> None:
        return


names = st.sampled_from(("plan.md", "build.md", "sub/plan.md", "inbox/plan.md", "Plan.md"))


def notes(levels: range) -> st.SearchStrategy[list[Note]]:
    """Notes of these classes, no two at one place, whatever the case of its letters."""
    one = st.builds(Note, st.sampled_from(levels), names, texts.map(lambda text: text + "\n"))
    return st.lists(one, max_size=6, unique_by=lambda note: (note.level, note.path.lower()))


def blocks() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests for the memory block, as high as they may ask, in a small room and a large one."""
    for budget in (60, 4_000):
        yield "block", {"query": "merger alpha", "budget_tokens": budget}
    for name in CLASSES.names:
        yield "block", {"query": "plan deploy", "max_class": name, "hook": "session_start"}
    for number in range(len(CALLERS)):
        yield "block", {"query": "alpha", "caller": {"log": str(number), "n": 1}}


def tools(ids: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls of every tool, as a model makes them."""
    for number in range(len(CALLERS)):
        caller = {"log": str(number), "n": 1}
        for name, args in (
            ("recall", {"query": "merger alpha"}),
            ("recall", {"query": "merger alpha", "max_class": "secret"}),
            *(("recall_open", {"id": id_}) for id_ in ids),
            ("memory_view", {"path": "/memories"}),
            ("memory_view", {"path": "/memories/private/plan.md"}),
            ("memory_create", {"path": "/memories/private/new.md", "file_text": "alpha\n"}),
            ("memory_delete", {"path": "/memories/secret/plan.md"}),
        ):
            yield "tool.call", {"name": name, "args": args, "caller": caller}


def edits(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an edit of every kind below the class `name`, its path maybe free, maybe taken."""
    path = f"/memories/{name}/plan.md"
    caller: dict[str, Any] = {"log": "0", "n": 1}
    for more in ({}, {"caller": caller}):
        yield "notes.create", {"path": path, "file_text": "alpha\n", **more}
        yield "notes.str_replace", {"path": path, "old_str": "alpha", "new_str": "beta", **more}
        yield "notes.insert", {"path": path, "insert_line": 0, "insert_text": "x\n", **more}
        yield "notes.rename", {"old_path": path, "new_path": f"/memories/{name}/b.md", **more}
        yield "notes.delete", {"path": f"/memories/{name}/build.md", **more}
        yield "notes.delete", {"path": f"/memories/{name}/sub", "recursive": True, **more}
    for other in CLASSES.names:
        move = {"old_path": path, "new_path": f"/memories/{other}/plan.md", "caller": caller}
        yield "notes.rename", move


def requests(ids: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every method's requests; those that only look come first."""
    for name in sorted(METHODS):
        yield name, {}
    yield "no.such", {}
    for question in QUESTIONS:
        yield "recall", question
    for name in (*CLASSES.names, "none"):
        yield "recall", {"query": "merger alpha", "max_class": name}
        yield "sessions", {"max_class": name}
        yield "notes.list", {"max_class": name}
    for number in range(len(CALLERS) + 1):
        caller = {"log": str(number), "n": 1}
        yield "recall", {"query": "merger alpha", "caller": caller}
        yield "sync", {"caller": caller}
        yield "notes.view", {"path": "/memories", "caller": caller, "depth": 3}
    for listing in LISTINGS:
        yield "sessions", listing
        yield "projects", listing
    for id_ in (*ids, "a" * 20, "no id"):
        yield "get", {"id": id_, "before": 3, "after": 3}
    for limit in (1, 500):
        yield "notes.list", {"limit": limit}
    for name in CLASSES.names:
        yield "notes.list", {"path": f"/memories/{name}"}
        yield "notes.view", {"path": f"/memories/{name}", "depth": 3}
        for file in ("plan.md", "sub/plan.md", "inbox/plan.md", "none.md"):
            yield "notes.view", {"path": f"/memories/{name}/{file}"}
    yield from blocks()
    yield from tools(ids)
    for name in CLASSES.names:
        yield from edits(name)
    yield "notes.view", {"path": "/memories", "depth": 3}


def pages(answer: object, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the request for the next page, None when there is none."""
    if isinstance(answer, dict) and answer.get("cursor"):
        return {**asked, "cursor": answer["cursor"]}
    return None


async def heard(socket: Socket, world: World, ids: list[str], folder: Path) -> list[bytes]:
    """Return every message that a peer of `socket` receives, each request after the other's answer."""
    path = folder / "memory.sqlite3"
    fill(path, world.lines)
    with NoteDesk(folder / "state") as made:
        for note in world.notes:
            made.create(f"/memories/{CLASSES.name(note.level)}/{note.path}", note.text)
    notes = Notes(folder / "state", CLASSES, clock=lambda: START_MS)
    RANDOM.restart()
    readers = Readers(lambda: Reader(db.reader(path), IDS, CLASSES))
    readers.open()
    reads = Reads(folder / "reads.jsonl")
    memory = Memory(CLASSES, readers, reads, Kept(), "9", lambda: 7, dict, notes, key=b"k" * 32)
    found: list[bytes] = []
    async with talking(methods.table(memory), capability(socket, CLASSES)) as peer:
        waiting = [("hello", {"errors": "map"}), *requests(ids)]
        for method, args in waiting:
            more: dict[str, Any] | None = args
            while more is not None:
                await peer.send(peer.request(method, **more))
                message = await peer.answer()
                found.append(msgpack.packb([method, message]))
                more = pages(message[3], more)
    readers.shut()
    reads.close()
    notes.close()
    return found


def told(socket: Socket, world: World, ids: list[str]) -> list[bytes]:
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        return trio.run(heard, socket, world, ids, Path(folder))


@pytest.fixture(autouse=True)
def nothing_is_random(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Transactions are named by the clock alone, and what is refused is logged to nobody."""
    monkeypatch.setattr(txns.secrets, "randbits", lambda bits: next(RANDOM) % (1 << bits))
    structlog.configure(processors=[lambda *_: (_ for _ in ()).throw(structlog.DropEvent)])
    yield
    structlog.reset_defaults()


@st.composite
def sockets(draw: st.DrawFn, level: int, projects: list[str]) -> Socket:
    """A socket that grants every method but the owner's."""
    policy = draw(st.sampled_from(("include", "owner-only", "exclude")))
    return Socket("s", CLASSES.name(level), ["*"], policy, projects)


def check(data: st.DataObject, socket: Socket, hidden: st.SearchStrategy[Line], many: int) -> None:
    level = CLASSES.level(socket.clearance)
    visible = lines(range(level + 1), PROJECTS, "s")
    seen = numbered(data.draw(st.lists(visible, min_size=8, max_size=24)))
    seen_notes = data.draw(notes(range(level + 1)))
    unseen = data.draw(st.lists(hidden, min_size=1, max_size=6))
    unseen_notes = data.draw(notes(range(level + 1, len(CLASSES)))) if level < CLASSES.top else []
    places = data.draw(st.lists(st.integers(0, 100), min_size=1, max_size=6))
    mixed = among(seen, unseen, many, places)
    ids = [
        place_id(line) for line in (*seen[:3], *[line for line in mixed if line not in seen][:3])
    ]
    alone = told(socket, World(seen, seen_notes), ids)
    assert told(socket, World(mixed, [*unseen_notes, *seen_notes]), ids) == alone


@pytest.mark.parametrize("level", range(CLASSES.top))
@settings(FEW, max_examples=1)
@given(data=st.data())
def test_no_method_tells_of_what_lies_above_its_socket(data, level):
    above = range(level + 1, len(CLASSES))
    hidden = lines(above, PROJECTS, "s") | lines(above, HIDDEN_PROJECTS, "t")
    check(data, data.draw(sockets(level, ["*"])), hidden, 40)


@settings(FEW, max_examples=1)
@given(data=st.data())
def test_no_method_tells_of_projects_outside_its_socket(data):
    hidden = lines(range(2), HIDDEN_PROJECTS, "t") | lines(range(2, 4), PROJECTS, "s")
    check(data, data.draw(sockets(1, ["web", "si*", ""])), hidden, 40)


@pytest.mark.slow
@pytest.mark.parametrize("level", range(CLASSES.top))
@settings(FEW, max_examples=40)
@given(data=st.data())
def test_no_method_tells_of_what_lies_above_its_socket_in_many_examples(data, level):
    above = range(level + 1, len(CLASSES))
    hidden = lines(above, PROJECTS, "s") | lines(above, HIDDEN_PROJECTS, "t")
    check(data, data.draw(sockets(level, ["*"])), hidden, 500)


SOCKET = Socket("s", "internal", ["*"])
SEEN = World(numbered([Line("merger alpha", log="s0"), Line("merger beta", 1, log="s1")]), [])
MORE = World([*SEEN.lines, Line("merger gamma", 2, log="s0", n=7)], [Note(2, "plan.md", "alpha\n")])


def answered(found: list[bytes]) -> set[str]:
    """Return the methods that were granted and answered something at least once."""
    unpacked = [msgpack.unpackb(message) for message in found]
    return {method for method, (_, _, error, _) in unpacked if error is None}


def test_every_method_below_the_owner_s_is_answered_at_least_once_so_that_answers_are_compared():
    found = answered(told(SOCKET, World(SEEN.lines, [Note(0, "plan.md", "alpha\n")]), []))
    granted = capability(SOCKET, CLASSES).methods
    needs_more = {"get", "notes.delete", "notes.rename", "notes.str_replace"}
    known = {name for name in granted if name.startswith("notes.")} | {"hello", "status"} | RECALL
    assert known - found <= needs_more
    assert {"block", "tool.list", "tool.call"} <= found


def test_the_comparison_notices_a_clearance_off_by_one(monkeypatch):
    assert told(SOCKET, MORE, []) == told(SOCKET, SEEN, [])
    exact = search.levels
    monkeypatch.setattr(
        search, "levels", lambda reader, scope: range(exact(reader, scope).stop + 1)
    )
    assert told(SOCKET, MORE, []) != told(SOCKET, SEEN, [])


def test_the_comparison_notices_a_note_too_many(monkeypatch):
    monkeypatch.setattr(noting, "View", lambda level, *rest: View(level + 1, *rest))
    assert told(SOCKET, MORE, []) != told(SOCKET, SEEN, [])
