"""Part 5: a peer that sends anything, on memory streams and in virtual time.

A round: some hundred connections to the real methods. Each sends good requests, good requests with bytes changed,
bombs of nested or empty values, half messages and noise, cut into pieces at random, with pauses of virtual
seconds. Nothing may be `internal`, a good request that stands before the noise is answered, every connection
ends, memory stays within a bound, and whoever asks afterwards is answered as before.
"""

import random
import resource
from collections.abc import Callable
from pathlib import Path

import msgpack
import trio
import trio.testing

from memoryd import db
from memoryd.config import Socket
from memoryd.errors import NotFound
from memoryd.index import Index, catch_up
from memoryd.index.search import Reader
from memoryd.labels import Classes
from memoryd.serve.calls import Methods
from memoryd.serve.methods import METHODS, Memory, table
from memoryd.serve.peers import capability
from memoryd.serve.readers import Readers
from memoryd.serve.reads import Reads
from tests.chaos import oracle
from tests.chaos.field import CANARY
from tests.chaos.ground import Ground, Violation, room
from tests.support.peer import TalkingPeer, talking

CONNECTIONS = 60
GROWTH_KIB = 100 << 10
OWNER = Socket(name="memoryd", clearance="secret", tools=["*"])


class Kept:
    """Who keeps the index, for a fuzz of the wire: asked, it does nothing."""

    rebuilding = None
    generation = "g"

    async def refuse(self, *_: object, **__: object) -> None:
        """Know no log. Raises: NotFound."""
        raise NotFound("no such log")

    label_of = forget = remember = explain = relabel = refuse

    async def synced(self, caller: object) -> None:
        """Have read everything."""

    def reindex(self) -> str:
        """Start nothing."""
        return "rebuild-0"

    def named(self, _log: str) -> list[object]:
        """Know no log."""
        return []

    def known(self) -> dict[int, object]:
        """Know no log."""
        return {}

    def changed(self, paths: list[Path]) -> None:
        """Take no hint."""


def play(seed: int, number: int, *, small: bool = False) -> int:
    """Play one round and return how many messages were sent. Raises: Violation."""
    with room("fuzz", seed, number) as ground:
        ground.change(30)
        index = Index(ground.world.settings())
        catch_up(index)
        index.close()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        clock, threads = trio.testing.MockClock(autojump_threshold=0.0), trio.to_thread.run_sync
        trio.to_thread.run_sync = _inline  # virtual time would not wait for a thread
        try:
            sent = trio.run(_run, ground, 10 if small else CONNECTIONS, clock=clock)
        except BaseExceptionGroup as group:
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise Violation(repr(error)) from group
        finally:
            trio.to_thread.run_sync = threads
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if grown > GROWTH_KIB:
            raise Violation(f"memory grew by {grown} KiB")
        ground.private()
        return sent


async def _inline(work: Callable[..., object], *args: object, **_: object) -> object:
    """Do what a thread would, here and now."""
    await trio.lowlevel.checkpoint()
    return work(*args)


async def _run(ground: Ground, connections: int) -> int:
    rng, settings = ground.rng, ground.world.settings()
    readers = Readers(lambda: Reader(db.reader(settings.path), settings.ids, settings.classes))
    readers.open()
    reads = Reads(ground.state / "reads.jsonl")
    classes = Classes(oracle.CLASSES)
    made = Memory(classes, readers, reads, Kept(), "9.9", lambda: 7, dict)  # type: ignore[arg-type]  # all that the wire asks of it
    methods = table(made)
    sent = 0
    try:
        for _ in range(connections):
            sent += await _connection(methods, classes, rng)
    finally:
        await trio.to_thread.run_sync(readers.shut)
        reads.close()
    return sent


async def _connection(methods: Methods, classes: Classes, rng: random.Random) -> int:
    """Send noise on one connection and see that it ends well; then ask on a good one."""
    async with talking(methods, capability(OWNER, classes)) as peer:
        await peer.send(peer.request("recall", query="amber"))
        with trio.fail_after(60):
            first = await peer.answer()
        if first is None or first[2] is not None:
            raise Violation(f"a good request was answered {first}")
        number = rng.randrange(1, 12)
        try:
            for _ in range(number):
                await _send(peer, _message(peer, rng), rng)
        except trio.BrokenResourceError:
            pass  # it has given us up, as it may
        await peer.leave()
        with trio.fail_after(700):
            while (answer := await peer.answer()) is not None:
                _check(answer)
            await peer.ended.wait()
        if peer.traffic.internal_errors:
            raise Violation("an internal error")
        return number


async def _send(peer: TalkingPeer, content: bytes, rng: random.Random) -> None:
    """Send bytes in pieces, sometimes slowly."""
    while content and not peer.wire.closed:
        cut = len(content) if rng.random() < 0.6 else rng.randrange(1, len(content) + 1)
        await peer.send(content[:cut])
        content = content[cut:]
        if rng.random() < 0.1:
            await trio.sleep(rng.choice([0.1, 3.0, 11.0]))
        else:
            await trio.lowlevel.checkpoint()


def _check(answer: object) -> None:
    if not (isinstance(answer, list) and len(answer) in (3, 4)):
        raise Violation(f"no message: {str(answer)[:200]}")
    if CANARY in str(answer) or "internal:" in str(answer[2])[:40]:
        raise Violation(f"answered {str(answer)[:300]}")


def _message(peer: TalkingPeer, rng: random.Random) -> bytes:
    """Return a message, good or bad."""
    dice = rng.random()
    if dice < 0.25:
        return peer.request(rng.choice(METHODS), **_args(rng))
    if dice < 0.6:
        return _changed(peer.request(rng.choice(METHODS), **_args(rng)), rng)
    if dice < 0.7:
        return rng.randbytes(rng.randrange(1, 400))
    if dice < 0.8:
        return b"\x91" * rng.randrange(1, 3_000) + b"\xc0"
    if dice < 0.9:
        body = rng.choice([b"\x80", b"\x90", b"\xc0", b"\xa0"]) * rng.randrange(1, 1 << 18)
        return b"\x94\x00\x00\xa1x\xdd" + len(body).to_bytes(4) + body
    return rng.choice(
        [
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"\xc6\xff\xff\xff\xff",
            b"\xc1",
            b"\xd4\x00\x00",
            msgpack.packb([2, "cancel", [{"msgid": rng.randrange(4)}]]),
            msgpack.packb([1, 3, None, None]),
            msgpack.packb({"a": 1}),
        ]
    )


def _args(rng: random.Random) -> dict[str, object]:
    """Return arguments, some of which a method may even take."""
    odd: list[object] = [
        None,
        -1,
        1 << 62,
        "",
        "a\0b",
        "\ud7ff",
        [],
        {},
        [[]],
        1.5,
        True,
        "x" * 5_000,
    ]
    made: dict[str, object] = {}
    for name in rng.sample(["query", "limit", "cursor", "id", "path", "max_class", "caller"], 2):
        made[name] = rng.choice([*odd, "amber", 3, {"log": "../x", "n": 2}, '"a OR b*', "NEAR("])
    return made


def _changed(content: bytes, rng: random.Random) -> bytes:
    """Return a message with bytes changed, lost, doubled or put in."""
    data = bytearray(content)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randrange(1, 4)]
            case 2:
                data[at:at] = data[at : at + rng.randrange(1, 9)]
            case _:
                data[at:at] = rng.randbytes(rng.randrange(1, 5))
        if not data:
            return b"\xc1"
    return bytes(data)
