"""Do the tests notice? Change one thing at a time in the modules that decide, and run their tests.

In: the modules below with the tests that must notice; `docs/mutation.md`, which explains what may live. Out: a line a
mutant that lives and is not explained, a table, and exit code 1 where fewer than `LEAST` of the mutants of a module
were noticed or one lives without an explanation. ``python etc/mutate.py [MODULE...]``, or ``make mutate``.

The tests are collected once a module, in a process of its own; each mutant is a fork of it whose function has other
code. So constants of modules, defaults of arguments and decorators are not changed. A test that hangs has noticed.
"""

import gc
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

import pytest
from mutants import mutants  # beside this file, whose folder Python has put first

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "mutation.md"
LEAST = 0.9
TESTS = {
    "memoryd.labels": ["unit/test_labels.py", "unit/test_fold.py"],
    "memoryd.sources.lines": ["unit/sources/test_lines.py", "property/test_lines.py"],
    "memoryd.index.building": ["unit/index/test_publish.py", "unit/index/test_faults.py"],
    "memoryd.index.swap": ["unit/index/test_publish.py", "unit/index/test_disks.py"],
    "memoryd.index.identity": ["unit/index/test_rewriting.py", "unit/index/test_whole.py"],
    "memoryd.protocol": ["unit/test_protocol.py", "property/test_protocol.py"],
    "memoryd.notes.check": ["unit/notes", "property/test_notes.py"],
    "memoryd.broker.grants": ["unit/broker", "unit/serve/test_gate.py"],
    "memoryd.lessons.gate": ["unit/lessons", "property/test_lessons.py"],
    "memoryd.lessons.settlement": ["unit/lessons", "property/test_lessons.py"],
}
AT_IMPORT = {"memoryd.broker.grants": {"_row", "_of_notes"}}
"""Functions that make a module's constants and have run before a mutant of them could be put in their place."""
_EXPLAINED = re.compile(r"^\| `(memoryd[\w.]+)` \| `(.+?)` \| (.+?) \|$", re.MULTILINE)
_OPTIONS = [
    f"-pno:{name}" for name in ("terminal", "randomly", "xdist", "cacheprovider", "warnings")
]


class Child(NamedTuple):
    """A fork that runs the tests: its mutant, and the end of the pipe that names the test that failed."""

    title: str
    said: int


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
    plugin = Mutating(name)
    paths = [str(ROOT / "tests" / path) for path in TESTS[name]]
    code = pytest.main([*_OPTIONS, *paths], plugins=[plugin])
    if plugin.made is None:
        print(f"mutate: {name}: its tests do not pass as they are (exit {code})")
        return 1
    told = explained()
    fresh = [title for title in plugin.alive if (name, title) not in told]
    killed = plugin.made - len(plugin.alive)
    share = killed / plugin.made if plugin.made else 1.0
    for title in fresh:
        print(f"| `{name}` | `{title}` |  |")
    print(
        f"mutate: {name}: {killed} of {plugin.made} noticed ({share:.1%}), {len(fresh)} unexplained"
    )
    return int(bool(fresh) or share < LEAST)


class Mutating:
    """A plugin that runs the collected tests once as they are, then once a mutant, in forks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made: int | None = None
        self.alive: list[str] = []
        self._failed = ""
        self._items: list[pytest.Item] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test failed."""
        if report.failed:
            self._failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests in forks, instead of here."""
        self._items = list(session.items)
        began = time.monotonic()
        if self._wait(self._fork(None, 600)):
            return True
        limit = int(5 * (time.monotonic() - began)) + 5
        children: dict[int, Child] = {}
        titles = 0
        for title, function, code in self._mutants():
            titles += 1
            if len(children) >= (os.cpu_count() or 1):
                self._reap(children)
            pid, said = self._fork((function, code), limit)
            children[pid] = Child(title, said)
            if titles % 50 == 0:
                print(f"mutate: {self.name}: {titles} so far, {len(self.alive)} alive", flush=True)
        while children:
            self._reap(children)
        self.made = titles
        return True

    def _mutants(self) -> Iterator[tuple[str, list[FunctionType], object]]:
        """Yield the mutants of functions that are there, with all the functions whose code it is."""
        module = sys.modules[self.name]
        there: dict[tuple[str, str], list[FunctionType]] = {}
        for found in gc.get_objects():
            if type(found) is FunctionType and found.__code__.co_filename == module.__file__:
                there.setdefault((found.__code__.co_qualname, self.name), []).append(found)
        path = str(module.__file__)
        for mutant in mutants(Path(path).read_text("utf-8"), path):
            if mutant.name in AT_IMPORT.get(self.name, ()):
                continue
            if functions := there.get((mutant.name, self.name)):
                yield mutant.title, functions, mutant.code

    def _fork(self, change: object, limit: int) -> tuple[int, int]:
        """Start a fork that runs the tests under a change; it ends at the first that fails."""
        out, into = os.pipe()
        pid = os.fork()
        if pid:
            os.close(into)
            return pid, out
        signal.alarm(limit)
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        if change is not None:
            functions, code = change  # type: ignore[misc]  # what `_mutants` yields
            for function in functions:
                function.__code__ = code
        try:
            for at, item in enumerate(self._items):
                after = self._items[at + 1] if at + 1 < len(self._items) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if self._failed:
                    break
        except BaseException:  # noqa: BLE001 - whatever a mutant does, it was noticed
            self._failed = self._failed or "?"
        os.write(into, self._failed.encode())
        os._exit(bool(self._failed))

    def _reap(self, children: dict[int, Child]) -> None:
        """Wait for one fork to end, and remember what it came to."""
        pid, status = os.wait()
        child = children.pop(pid)
        killer = os.read(child.said, 4_096).decode()
        os.close(child.said)
        if status == 0:
            self.alive.append(child.title)
        else:
            self._to_front(killer)

    def _wait(self, started: tuple[int, int]) -> bool:
        """Wait for a fork; say whether a test failed in it."""
        pid, said = started
        _, status = os.waitpid(pid, 0)
        failed = os.read(said, 4_096).decode()
        os.close(said)
        if failed:
            print(f"mutate: {self.name}: {failed} fails as it is")
        return status != 0

    def _to_front(self, killer: str) -> None:
        """Run the test that noticed this one first: it may notice the next one too."""
        for at, item in enumerate(self._items):
            if item.nodeid == killer:
                self._items.insert(0, self._items.pop(at))
                return


if __name__ == "__main__":
    sys.exit(main())
