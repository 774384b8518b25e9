"""What a question waits for while a long history is read for the first time: three policies of the reading thread.

In: the corpus. Out: two rows of wall time (p95 of `recall` over the socket): the policy that memoryd has (batch work,
`memoryd.serve.pace`) over a thread that is left alone, and over one that is niced to 10. Two other processes keep both
cores busy, as agents do. Each policy has a daemon of its own on an empty state folder; the rounds alternate.
"""

import itertools
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench.corpus import text
from bench.row import Row, percentile
from examples.disposable import Daemon
from memoryd.errors import MemorydError

ROUNDS = 3
ASKED = 200
"""Questions a round, at most: fewer where the history is read sooner."""
LARGE = 1 << 20
_ALONE = "pace.politely = lambda wanted: nullcontext()"
_NICED = """
def niced(wanted):
    if wanted:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    return nullcontext()
pace.politely = niced"""
POLICIES = {"batch": "", "left alone": _ALONE, "niced": _NICED}
_START = """
import os, threading
from contextlib import nullcontext
from memoryd.serve import pace
pace.LARGE = {large}
{policy}
from memoryd.__main__ import main
main()
"""


class Policed(Daemon):
    """A daemon whose reading thread is under one of the policies."""

    def __init__(self, home: Path, corpus: Path, policy: str) -> None:
        """Take the name of a policy."""
        super().__init__(home, text(corpus), user_home=home)
        self.command = (sys.executable, "-c", _START.format(large=LARGE, policy=POLICIES[policy]))


def rows(corpus: Path) -> list[Row]:
    """Return the rows of asking while a history is read."""
    waits: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    reads: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    with busy():
        for _ in range(ROUNDS):
            for policy in POLICIES:
                asked, seconds = _asked(corpus, policy)
                waits[policy].append(percentile(asked, 0.95))
                reads[policy].append(seconds)
    late = {policy: 1e3 * median(figures) for policy, figures in waits.items()}
    return [
        Row(
            f"p95 of recall while a history is read, against a thread {other}",
            f"thread {other}",
            late["batch"] / late[other],
            1.0,
            detail=f"{late['batch']:.0f} ms against {late[other]:.0f}, read after "
            f"{median(reads['batch']):.1f} s against {median(reads[other]):.1f}",
        )
        for other in ("left alone", "niced")
    ]


@contextmanager
def busy() -> Iterator[None]:
    """Keep every core busy with processes that memoryd knows nothing of."""
    spinning = [
        multiprocessing.Process(target=_spin, args=(cpu,), daemon=True)
        for cpu in os.sched_getaffinity(0)
    ]
    for process in spinning:
        process.start()
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.join()


def _spin(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    for number in itertools.count():
        hash(number)


def _asked(corpus: Path, policy: str) -> tuple[list[float], float]:
    """Ask until all is read. Returns: how long each answer took, and the reading; both in seconds."""
    taken: list[float] = []
    with tempfile.TemporaryDirectory(prefix="md-pace-") as folder:
        home = Path(folder)
        with Policed(home, corpus, policy) as daemon:
            began = time.perf_counter()
            daemon.start()
            with daemon.client() as memory:
                words = itertools.cycle(json.loads((corpus / "queries.json").read_text())["common"])
                while len(taken) < ASKED and (
                    not taken or memory.call("status")["behind"]["bytes"]
                ):
                    asked = time.perf_counter()
                    try:
                        memory.call("recall", query=next(words), deadline_ms=60_000)
                    except MemorydError:
                        continue  # nothing is indexed yet
                    taken.append(time.perf_counter() - asked)
                memory.call("sync", deadline_ms=120_000)
            return taken, time.perf_counter() - began
