"""Part 3: a real daemon that is killed again and again, with everybody at work around it.

Two writers change logs, a reader asks on two sockets, an editor edits notes and asks for rebuilds, and another
process opens the index from outside. The daemon is killed at a random moment, or kills itself at a named
point. After every start: the dump is what the oracle says, acknowledged edits are there, the journal is
sound, modes are private, and no canary stands in a file or an answer.
"""

import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from memoryd.client import Client
from memoryd.errors import MemorydError
from tests.chaos import dying, oracle
from tests.chaos.field import CANARY
from tests.chaos.ground import Ground, Violation, room
from tests.chaos.points import named
from tests.support.daemon import Daemon

SOCKETS = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
[[socket]]
name = "agent"
clearance = "internal"
tools = ["recall", "memory_view"]
"""
SEAL = re.compile(r"seal(\d)")
LIVES = 4
STARTED_S = 300.0


class Dying(Daemon):
    """A daemon that may kill itself; it starts as `tests.chaos.dying` says."""

    point: tuple[str, int] = ("", 0)

    def launch(self, *, before: Callable[[], None] | None = None) -> None:
        """Start it and wait for nothing."""
        assert before is None
        point, number = self.point
        more = [dying.ME, point, str(number)] if point else ["memoryd"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *more],
                env=self.env,
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[2],
                umask=0,
            )


class Crowd:
    """Threads that work until they are told to stop; the first violation of any is kept."""

    def __init__(self, *works: Callable[[], None]) -> None:
        self.stop = threading.Event()
        self.fault: Exception | None = None
        self._threads = [threading.Thread(target=self._work, args=(work,)) for work in works]

    def _work(self, work: Callable[[], None]) -> None:
        try:
            while not self.stop.is_set():
                work()
                self.stop.wait(0.004)
        except Exception as error:  # noqa: BLE001 - it is raised again where the crowd is waited for
            self.fault = error

    def __enter__(self) -> Self:
        """Start everybody."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for everybody. Raises: what the first of them met."""
        self.stop.set()
        for thread in self._threads:
            thread.join(STARTED_S)
        if self.fault is not None:
            raise self.fault


class Round:
    """One home with its daemon, and what is known of it."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.rng = ground, ground.rng
        self.daemon = Dying(ground.home, ground.config() + SOCKETS)
        self.notes: dict[str, tuple[str, ...]] = {}
        self.kills = self.asked = self.edits = self.rebuilds = 0

    def run(self, lives: int) -> None:
        """Kill, start and compare, some times. Raises: Violation."""
        with self.daemon, self._looker():
            self.ground.change(12)
            self._start("", 0)
            for life in range(lives):
                self._until_killed()
                self._start("", 0)
                self._compare()
                if life + 1 < lives:
                    self._arm()
            if (code := self.daemon.stop()) not in (0, -9):
                raise Violation(f"stopped with {code}: {self.daemon.said()[-500:]}")

    def _arm(self) -> None:
        """Let the next life end at a named point, or not."""
        if self.rng.random() < 0.6:
            point, number = self.rng.choice(named()), self.rng.randrange(1, 4)
            self.ground.note(f"dies at {point} {number}")
            self.daemon.kill()
            self.kills += 1
            self._start(point, number, may_die=True)

    def _start(self, point: str, number: int, *, may_die: bool = False) -> None:
        self.daemon.point = (point, number)
        try:
            self.daemon.start()
        except AssertionError:
            if not may_die or self.daemon.process.poll() != -9:
                raise Violation(f"it does not start: {self.daemon.said()[-1500:]}") from None

    def _until_killed(self) -> None:
        seeds = [random.Random(self.rng.random()) for _ in range(2)]
        native, claude = self.ground.fields
        with Crowd(
            lambda: self.ground.note(native.change()),
            lambda: self.ground.note(claude.change()),
            lambda: self._ask(seeds[0]),
            lambda: self._edit(seeds[1]),
        ) as crowd:
            crowd.stop.wait(0.1 + self.rng.random() * 0.7)
            self.daemon.process.kill()
            self.daemon.process.wait(STARTED_S)
            self.kills += 1
        self.ground.note("killed")

    def _ask(self, rng: random.Random) -> None:
        """Ask on either socket; whatever is answered must be allowed there."""
        name, level = rng.choice([("memoryd", oracle.TOP), ("agent", 1)])
        try:
            with self.daemon.client(name, timeout=5.0) as memory:
                for _ in range(5):
                    told = memory.call(
                        "recall", query=rng.choice(["amber", "cedar", "maple", CANARY])
                    )
                    self.asked += 1
                    check_answer(told, level)
        except (MemorydError, OSError):
            return

    def _edit(self, rng: random.Random) -> None:
        """Edit a note as the owner, or ask for a rebuild."""
        path = f"/memories/{rng.choice(['public', 'internal'])}/{rng.choice('abc')}.md"
        text = f"text {rng.randrange(1 << 30):x}\n"
        try:
            with self.daemon.client(timeout=5.0) as memory:
                if rng.random() < 0.05:
                    memory.call("reindex")
                    self.rebuilds += 1
                    return
                now = self.notes.get(path, ("-",))[-1]
                self.notes[path] = (*self.notes.get(path, ("-",)), text.strip())
                if now == "-":
                    memory.call("notes.create", path=path, file_text=text, owner=True)
                else:
                    edit = {"old_str": now, "new_str": text.strip(), "owner": True}
                    memory.call("notes.str_replace", path=path, **edit)
                self.notes[path] = (text.strip(),)
                self.edits += 1
        except (MemorydError, OSError):
            self._look(path)

    def _look(self, path: str) -> None:
        """Learn what an edit came to that got no answer; while the daemon is down nobody can say."""
        file = self.daemon.state / "notes" / path.removeprefix("/memories/")
        now = file.read_text().strip() if file.exists() else "-"
        allowed = self.notes.get(path, ("-",))
        if now not in allowed:
            raise Violation(f"{path} says {now!r}, none of {allowed}")
        self.notes[path] = tuple(dict.fromkeys((*allowed, now)))

    def _compare(self) -> None:
        """Hold everything against what must be there, while nobody writes. Raises: Violation."""
        with self.daemon.client(timeout=STARTED_S) as memory:
            memory.call("sync", deadline_ms=int(STARTED_S * 1000))
            self.ground.compare(dump(memory))
            told = memory.call("status")
            if faults := memory.call("notes.verify")["faults"]:
                raise Violation(f"the journal: {faults[:2]}")
        for path in self.notes:
            file = self.daemon.state / "notes" / path.removeprefix("/memories/")
            now = file.read_text().strip() if file.exists() else "-"
            if now not in self.notes[path]:
                raise Violation(f"{path} says {now!r}, and {self.notes[path]} was acknowledged")
            self.notes[path] = (now,)
        if wrong := [
            fault["what"] for fault in told["faults"] if "cut short" not in fault["remedy"]
        ]:
            raise Violation(f"status: {wrong[:3]}")
        if CANARY in self.daemon.said() or "Traceback" in self.daemon.said():
            raise Violation(f"in the daemon's log: {self.daemon.said()[-2000:]}")
        self.ground.private()

    def _looker(self) -> subprocess.Popen[bytes]:
        """Return a process that opens the index from outside again and again; it ends with its input."""
        command = ["-m", "tests.support.killing", "look", str(self.ground.home), self.ground.toml]
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def dump(memory: Client) -> list[bytes]:
    """Return every line of the owner's dump."""
    lines: list[bytes] = []
    cursor: str | None = None
    while True:
        told = memory.call("dump", **({} if cursor is None else {"cursor": cursor}))
        lines += [line.encode() + b"\n" for line in told["lines"]]
        cursor = told["cursor"]
        if cursor is None:
            return lines


def check_answer(told: dict[str, Any], level: int) -> None:
    """Hold an answer against what its socket may be told. Raises: Violation."""
    if CANARY in str(told):
        raise Violation("a canary was told")
    for hit in told["hits"]:
        seal = SEAL.search(str(hit))
        if oracle.CLASSES.index(hit["class"]) > level or (seal and int(seal[1]) > level):
            raise Violation(f"a socket up to {level} was told of {hit['class']} ({hit['id']})")


def play(seed: int, number: int, *, small: bool = False) -> int:
    """Play one round and return how often the daemon was killed. Raises: Violation."""
    with room("kills", seed, number) as ground:
        made = Round(ground)
        made.run(1 if small else LIVES)
        return made.kills
