"""Part 2: a process that ends between two steps, or whose power is cut between two writes.

A round: a process of its own keeps an index and edits notes, telling which edits it has acknowledged; it is
killed at a named point (`memoryd.points`), or its disk loses what was not synced. The next start must find
every acknowledged edit and sound notes, and the index must come to what the oracle says.
"""

import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memoryd import db, points
from memoryd.errors import MemorydError
from memoryd.index import Budget, Index, Wanted, catch_up, schema
from tests.chaos import disk
from tests.chaos.ground import Ground, Violation, room
from tests.support.indexing import dumped, publish
from tests.support.notes import Desk

ROOT = Path(__file__).parents[2] / "memoryd"
SELDOM = {"notes: rotate written", "notes: rotated"}
"""Points that a short life reaches only with the journal's limit lowered; tests/unit/notes does that."""


def named() -> list[str]:
    """Return every point that memoryd's source names."""
    found: set[str] = set()
    for path in ROOT.rglob("*.py"):
        found.update(re.findall(r'reached\("([^"]+)"\)', path.read_text("utf-8")))
    return sorted(found - SELDOM)


def play(seed: int, number: int, *, small: bool = False) -> int:
    """Play one round and return how often its process was killed. Raises: Violation."""
    with room("points", seed, number) as ground:
        return _play(ground)


def _play(ground: Ground) -> int:
    notes: dict[str, tuple[str, ...]] = {}
    ground.change(8)
    killed = 0
    for life in range(3):
        ground.change(ground.rng.randrange(6))
        killed += _live(ground, life, notes)
        _recover(ground, notes)
    return killed


def _live(ground: Ground, life: int, notes: dict[str, tuple[str, ...]]) -> bool:
    """Let a process live until it is killed or ends by itself; take over what it acknowledged."""
    rng = ground.rng
    power = rng.random() < 0.4
    point = rng.choice(named())
    count = rng.randrange(1, 120) if power else rng.choice([1, 1, 2, 3])
    ground.note(f"life {life}: {'power cut at write' if power else point} {count}")
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        code = 1
        try:
            code = _child(ground, tell, point="" if power else point, count=count)
        finally:
            os._exit(code)
    os.close(tell)
    with os.fdopen(told, "rb") as heard:
        for line in heard:
            _hear(notes, *line.decode().rstrip("\n").split("\t"))
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise Violation(f"the process ended with {os.WEXITSTATUS(status)}")
    return os.WIFSIGNALED(status)


def _hear(notes: dict[str, tuple[str, ...]], what: str, path: str, text: str) -> None:
    """Take over that an edit begins (then both contents may be there) or was acknowledged ("-": no note)."""
    notes[path] = (text,) if what == "done" else (*notes.get(path, ("-",)), text)


def _child(ground: Ground, tell: int, *, point: str, count: int) -> int:
    """Live; the process ends here."""
    left = [count]

    def reached(name: str) -> None:
        left[0] -= name == point
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    if point:
        points.observe(reached)
        _acts(ground, tell)
        return 0
    with disk.failing() as faults:
        folder = ground.state / "index"
        points.observe(
            lambda name: disk.forget_synced(faults, folder) if name == "rebuild: synced" else None
        )
        faults.cut = ground.rng
        faults.arm(ground.rng.choice(["write", "sync"]), count, sticky=False)
        _acts(ground, tell)
    return 0


def _acts(ground: Ground, tell: int) -> None:
    """Do what a daemon does, in an order that the seed decides."""
    rng = ground.rng
    db.BUSY_MS = 50
    with Desk(ground.state) as desk:
        index = Index(ground.world.settings())
        acts: list[tuple[Callable[[], object], int]] = [
            (lambda: _follow(index, rng.randrange(500, 4_000)), 6),
            (lambda: _edit(ground, desk, tell), 6),
            (lambda: _rebuild(index), 2),
            (lambda: _forget(ground, index), 1),
        ]
        for _ in range(12):
            (act,) = rng.choices([act for act, _ in acts], [weight for _, weight in acts])
            with suppress(MemorydError):
                act()
        index.close()


def _follow(index: Index, size: int) -> None:
    if not index.ready:
        _rebuild(index)
    index.sweep()
    while index.catch_up(Budget(bytes=size, seconds=0.0))[1]:
        pass


def _rebuild(index: Index) -> None:
    publish(index, index.settings)


def _forget(ground: Ground, index: Index) -> None:
    catch_up(index)
    logs = [known for known in index.logs() if known.state == "live"]
    if logs:
        chosen = ground.rng.choice(sorted(logs, key=lambda known: known.place))
        done = index.forget(Wanted(session=chosen.session), dry=False, delete_logs=False, hooks=())
        if ground.rng.random() < 0.5:
            index.remember(done.act)
    catch_up(index)


def _edit(ground: Ground, desk: Desk, tell: int) -> None:
    """Edit one note, telling before and after."""
    rng = ground.rng
    path = f"/memories/{rng.choice(['public', 'internal'])}/{rng.choice('abc')}.md"
    there = desk.file(path)
    text = f"text {rng.randrange(1 << 30):x}\n"
    shown = text.strip()
    if not there.exists():
        _tell(tell, "begin", path, shown)
        desk.create(path, text)
    elif rng.random() < 0.2:
        shown = "-"
        _tell(tell, "begin", path, shown)
        desk.edit("delete", path)
    else:
        _tell(tell, "begin", path, shown)
        desk.replace(path, there.read_text(), text)
    _tell(tell, "done", path, shown)


def _tell(tell: int, *what: str) -> None:
    os.write(tell, ("\t".join(what) + "\n").encode())


def _recover(ground: Ground, notes: dict[str, tuple[str, ...]]) -> None:
    """Start again, and hold everything against what must be there."""
    with Desk(ground.state) as desk:
        desk.check_sound()
        for path, allowed in notes.items():
            there = desk.file(path)
            now = there.read_text().strip() if there.exists() else "-"
            if now not in allowed:
                raise Violation(f"{path} says {now!r}, and one of {allowed} was acknowledged")
            notes[path] = (now,)
    index = Index(ground.world.settings())
    try:
        if not index.ready:
            raise Violation(f"the index is lost: {index.why}")
        schema.check_health(index._following.connection, 4, words=True)
        catch_up(index)
        while index.purging:
            index.catch_up()
        if index.status().fault or index.status().faults:
            raise Violation(f"not well after a kill: {index.status()}")
        ground.compare(dumped(index))
    finally:
        index.close()
    ground.private(*ground.forgotten_words())
