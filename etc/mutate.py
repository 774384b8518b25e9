"""Do the tests notice? Change one thing at a time in the modules that decide, and run their tests.

In: the modules below with the tests that must notice; `docs/mutation.md`, which explains what may live. Out: a line a
mutant that lives and is not explained, a table, and exit code 1 where fewer than `LEAST` of the mutants of a module
were noticed or one lives without an explanation. ``python etc/mutate.py [MODULE...]``, or ``make mutate``;
SAMPLE=50 SEED=1 in the environment run fifty of each module's, drawn evenly.

The tests are collected once a module, in a process of its own. They run once as they are, which says which lines of
the module each of them reaches and how long it takes. Then each mutant is a fork whose function has other code and
which runs the tests that reach the changed line, those that noticed others first; the dear ones only once all
mutants have met the rest. So constants of modules, defaults of arguments and decorators are not changed. A test
that takes five times as long has noticed.
"""

import gc
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from mutants import Mutant, mutants  # beside this file, whose folder Python has put first

if TYPE_CHECKING:
    from _typeshed import TraceFunction

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "mutation.md"
LEAST = 0.9
TESTS = {
    "memoryd.labels": ["unit/test_labels.py", "unit/test_fold.py"],
    "memoryd.fold": ["unit/test_fold.py", "property/test_fold.py"],
    "memoryd.sources.lines": ["unit/sources/test_reading_blocks.py", "unit/sources/test_lines.py"],
    "memoryd.index.building": ["unit/index/test_building.py", "unit/index/test_lineage.py"],
    "memoryd.index.swap": ["unit/index/test_swap.py"],
    "memoryd.index.identity": ["unit/index/test_identity.py", "unit/index/test_rewriting.py"],
    "memoryd.protocol": ["unit/test_protocol.py"],
    "memoryd.notes.check": ["unit/notes/test_each_check.py", "unit/notes/test_check.py"],
    "memoryd.broker.grants": ["unit/broker", "unit/serve/test_gate.py"],
    "memoryd.index.retelling": [
        "unit/index/test_trail.py",
        "unit/serve/test_learning.py",
        "unit/index/test_deciding.py",
        "unit/index/test_lineage.py",
    ],
    "memoryd.lessons.passage": [
        "property/test_passages.py",
        "unit/lessons/test_pairing.py",
        "unit/index/test_trail.py",
        "unit/lessons/test_observing.py",
        "unit/serve/test_learning.py",
    ],
    "memoryd.lessons.pairing": [
        "property/test_passages.py",
        "unit/lessons/test_pairing.py",
        "unit/lessons/test_observing.py",
        "unit/serve/test_learning.py",
    ],
    "memoryd.lessons.gate": ["unit/lessons/test_gate.py", "unit/lessons/test_verdicts.py"],
    "memoryd.lessons.settlement": [
        "unit/lessons/test_settling.py",
        "unit/lessons/test_lifecycle.py",
        "property/test_lessons.py",
    ],
}
AT_IMPORT = {"memoryd.broker.grants": {"_row", "_of_notes"}}
"""Functions that make a module's constants and have run before a mutant of them could be put in their place."""
_DEAR = 0.5
"""Seconds from which a test is run only for what the others did not notice."""
_Made = tuple[Mutant, list[FunctionType]]
_EXPLAINED = re.compile(r"^\| `(memoryd[\w.]+)` \| `(.+?)` \| (.+?) \|$", re.MULTILINE)
_OPTIONS = [
    f"-pno:{name}" for name in ("terminal", "randomly", "xdist", "cacheprovider", "warnings")
]


class Child(NamedTuple):
    """A fork that runs the tests: its mutant, and the end of the pipe that names the test that failed."""

    number: int
    said: int


class Reach(NamedTuple):
    """What a test came to as it is: the lines of the module that it runs, and the seconds that it takes."""

    lines: frozenset[int]
    took: float


def main() -> int:
    """Run the modules that are named, or all, and return the exit code."""
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--one"]:
        return _one(sys.argv[2])
    worst = 0
    for name in sys.argv[1:] or TESTS:
        env = {**os.environ, "CI": "1", "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [sys.executable, __file__, "--one", name], cwd=ROOT, env=env, check=False
        )
        worst = max(worst, done.returncode)
    return worst


def explained() -> dict[tuple[str, str], str]:
    """Return why mutants may live, by module and title."""
    text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    return {(module, title): why for module, title, why in _EXPLAINED.findall(text)}


def _one(name: str) -> int:
    """Run one module's mutants in this process's forks."""
    plugin = Mutating(name, int(os.environ.get("SAMPLE", "0")), os.environ.get("SEED", "1"))
    paths = [str(ROOT / "tests" / path) for path in TESTS[name]]
    code = pytest.main([*_OPTIONS, *paths], plugins=[plugin])
    if plugin.made is None:
        print(f"mutate: {name}: its tests do not pass as they are (exit {code})")
        return 1
    told = explained()
    fresh = [title for title in plugin.alive if (name, title) not in told]
    killed = plugin.ran - len(plugin.alive)
    share = killed / plugin.ran if plugin.ran else 1.0
    for title in fresh:
        print(f"| `{name}` | `{title}` |  |")
    print(
        f"mutate: {name}: {killed} of {plugin.ran} noticed ({share:.1%}; {plugin.ran} of "
        f"{plugin.made} run, {plugin.late} noticed by their time), {len(fresh)} unexplained"
    )
    return int(bool(fresh) or share < LEAST)


class Mutating:
    """A plugin that runs the collected tests once as they are, then once a mutant, in forks."""

    def __init__(self, name: str, sample: int, seed: str) -> None:
        self.name = name
        self.made: int | None = None
        self.ran = 0
        self.late = 0
        self.alive: list[str] = []
        self._sample, self._seed = sample, seed
        self._failed = ""
        self._reach: dict[str, Reach] = {}
        self._items: list[pytest.Item] = []

    def pytest_sessionstart(self) -> None:
        """Have a property test end at its first failure, instead of making it small and explaining it."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutate", settings.get_profile("gate"), phases=phases)
        settings.load_profile("mutate")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test failed."""
        if report.failed:
            self._failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests in forks, instead of here."""
        self._items = list(session.items)
        if not self._as_they_are():
            return True
        self._items.sort(key=lambda item: self._reach[item.nodeid].took)
        made = list(self._mutants())
        drawn = self._drawn(made)
        cheap = {test for test, reach in self._reach.items() if reach.took < _DEAR}
        left = self._pass(drawn, cheap)
        left = self._pass(left, self._reach.keys() - cheap)
        self.alive = [mutant.title for mutant, _ in left]
        self.made, self.ran = len(made), len(drawn)
        return True

    def _pass(self, line: list[_Made], tests: AbstractSet[str]) -> list[_Made]:
        """Run some of the tests once a mutant; return the mutants that they did not notice."""
        children: dict[int, Child] = {}
        alive: set[int] = set()
        began = time.monotonic()
        for at, (mutant, functions) in enumerate(line):
            lines = set(range(mutant.first, mutant.last + 1))
            mine = [
                item
                for item in self._items
                if item.nodeid in tests and lines & self._reach[item.nodeid].lines
            ]
            if not mine:
                alive.add(at)
                continue
            if len(children) >= (os.cpu_count() or 1):
                self._reap(children, alive)
            pid, said = self._fork(partial(self._notice, mutant, functions, mine))
            children[pid] = Child(at, said)
        while children:
            self._reap(children, alive)
        took = time.monotonic() - began
        print(
            f"mutate: {self.name}: {len(line)} run with {len(tests)} tests in {took:.0f} s, left:"
        )
        for at in sorted(alive):
            print(f"    {line[at][0].title}", flush=True)
        return [line[at] for at in sorted(alive)]

    def _drawn(self, made: list[_Made]) -> list[_Made]:
        """Return the mutants to run, in the order of the source: all, or as many as were asked for."""
        if not self._sample or self._sample >= len(made):
            return made
        drawn = random.Random(self._seed).sample(range(len(made)), self._sample)
        print(f"mutate: {self.name}: {self._sample} of {len(made)}, seed {self._seed}", flush=True)
        return [made[at] for at in sorted(drawn)]

    def _mutants(self) -> Iterator[_Made]:
        """Yield the mutants of functions that are there, with all the functions whose code it is."""
        module = sys.modules[self.name]
        path = str(module.__file__)
        there: dict[str, list[FunctionType]] = {}
        for found in gc.get_objects():
            if type(found) is FunctionType and found.__code__.co_filename == path:
                there.setdefault(found.__code__.co_qualname, []).append(found)
        for mutant in mutants(Path(path).read_text("utf-8"), path):
            if mutant.name not in AT_IMPORT.get(self.name, ()) and mutant.name in there:
                yield mutant, there[mutant.name]

    def _as_they_are(self) -> bool:
        """Run all tests unchanged and learn what they reach; say whether they passed."""
        pid, said = self._fork(self._look)
        with os.fdopen(said, "rb") as pipe:
            told = pipe.read()
        os.waitpid(pid, 0)
        failed, reach = pickle.loads(told) if told else ("a test ended the process", {})  # noqa: S301 - our own fork's
        if failed:
            print(f"mutate: {self.name}: {failed} fails as it is")
        self._reach = reach
        return not failed

    def _look(self, into: int) -> None:
        """In a fork: run every test, and write which lines each reached."""
        path = sys.modules[self.name].__file__
        seen: set[int] = set()

        def follow(frame: FrameType, _event: str, _arg: Any) -> "TraceFunction | None":
            if frame.f_code.co_filename != path:
                return None
            seen.add(frame.f_lineno)
            return follow

        threading.settrace(follow)
        for at, item in enumerate(self._items):
            seen.clear()
            began = time.process_time()
            sys.settrace(follow)
            self._run(at)
            sys.settrace(None)
            self._reach[item.nodeid] = Reach(frozenset(seen), time.process_time() - began)
            if self._failed:
                break
        with os.fdopen(into, "wb") as pipe:
            pickle.dump((self._failed, self._reach), pipe)

    def _notice(
        self, mutant: Mutant, functions: list[FunctionType], tests: list[pytest.Item], into: int
    ) -> None:
        """In a fork: run the tests that reach the changed lines until one fails, and write its name."""
        for function in functions:
            function.__code__ = mutant.code
        self._items = tests
        for at, item in enumerate(self._items):
            took = self._reach[item.nodeid].took
            signal.setitimer(
                signal.ITIMER_PROF, 5 * took + 2
            )  # of its own time: others may be busy
            signal.alarm(int(10 * took) + 60)  # and one that waits for ever
            self._run(at)
            if self._failed:
                break
        os.write(into, self._failed.encode())

    def _run(self, at: int) -> None:
        """Run one test."""
        after = self._items[at + 1] if at + 1 < len(self._items) else None
        item = self._items[at]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)

    def _fork(self, work: Callable[[int], None]) -> tuple[int, int]:
        """Start a fork that does some work, quietly; return it and the end of the pipe that it writes to."""
        out, into = os.pipe()
        if pid := os.fork():
            os.close(into)
            return pid, out
        os.close(out)
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            work(into)
        except BaseException:  # noqa: BLE001 - whatever a mutant does, it was noticed
            os._exit(1)
        os._exit(bool(self._failed))

    def _reap(self, children: dict[int, Child], alive: set[int]) -> None:
        """Wait for one fork to end, and remember what it came to."""
        pid, status = os.wait()
        child = children.pop(pid)
        killer = os.read(child.said, 4_096).decode()
        os.close(child.said)
        self.late += os.WIFSIGNALED(status)
        if status == 0:
            alive.add(child.number)
        elif killer:
            self._to_front(killer)

    def _to_front(self, killer: str) -> None:
        """Run the test that noticed this one first: it may notice the next one too."""
        for at, item in enumerate(self._items):
            if item.nodeid == killer:
                self._items.insert(0, self._items.pop(at))
                return


if __name__ == "__main__":
    sys.exit(main())
