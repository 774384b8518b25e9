"""One line of the benchmark table, and the few ways in which a figure is taken.

In: callables or commands. Out: medians of interleaved rounds, in CPU or wall seconds.
"""

import importlib.metadata
import os
import platform
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

LIBRARIES = ("trio", "apsw", "msgpack", "msgspec", "structlog", "click")


class Row(msgspec.Struct, frozen=True):
    """A measured metric: `value` and `target` in `unit`; `better` is ``<=`` or ``>=``."""

    metric: str
    against: str
    value: float
    target: float
    better: str = "<="
    unit: str = "x"
    detail: str = ""

    @property
    def met(self) -> bool:
        """Say whether the target is reached."""
        return self.value <= self.target if self.better == "<=" else self.value >= self.target

    @property
    def badly(self) -> bool:
        """Say whether the figure is worse than twice its target: a design fault."""
        if self.better == "<=":
            return self.value > 2 * self.target
        return self.value < self.target / 2


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds (user and system, this process) that `work` takes."""
    before = time.process_time()
    work()
    return time.process_time() - before


def wall_seconds(work: Callable[[], object]) -> float:
    """Return the wall seconds that `work` takes."""
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


def interleaved(
    works: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    measure: Callable[[Callable[[], object]], float] = cpu_seconds,
) -> dict[str, float]:
    """Return the median of `rounds` rounds for each work, taken in turn A B A B, after one warm-up."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            seconds = measure(work)
            if number:
                taken[name].append(seconds)
    return {name: statistics.median(figures) for name, figures in taken.items()}


def command_cpu(argv: Sequence[str], env: Mapping[str, str]) -> float:
    """Return user and system seconds of one finished child process (its own children included)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, env=dict(env), check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def percentile(figures: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of the sorted figures lie."""
    ordered = sorted(figures)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@contextmanager
def pinned(cpu: int) -> Iterator[None]:
    """Keep this process on one core meanwhile; where the kernel refuses, run unpinned."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {sorted(before)[cpu % len(before)]})
        yield
    finally:
        os.sched_setaffinity(0, before)


def machine() -> dict[str, object]:
    """Return what the figures were taken on."""
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "processor": platform.machine(),
        "load": os.getloadavg(),
        "cores": len(os.sched_getaffinity(0)),
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES},
    }
