"""A daemon on an index that stands: how soon it answers, what it holds in memory, how it fares under other work.

In: the corpus. Out: rows. `ready` is the daemon's CPU from its start to an answer from the index, against a Python
that imports the same libraries, interleaved medians; CPU, since wall time hangs on what else the machine does.
Resident memory is the daemon's highest after a question of each kind. `while a rebuild runs`: the median question
over the socket with a rebuild in its own process, against without.
"""

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import idle
from bench.cold import _as_installed
from bench.row import Row, command_cpu, percentile, wall_seconds
from bench.standing import Standing, standing
from examples.disposable import Daemon
from memoryd.errors import MemorydError

ROUNDS = 3
SECONDS = 4.0
LIBRARIES = "import trio, structlog, msgspec, apsw, msgpack"


def rows(corpus: Path) -> Iterator[Row]:
    """Yield every row of this measure."""
    with standing(corpus) as stands:
        queries = json.loads((corpus / "queries.json").read_text())
        asked = [text for kind in ("rare", "mid", "mid_common") for text in queries[kind]]
        yield from with_daemon(stands, asked)
        built = stands.built
        yield Row("rebuild, resident memory", "limit", built.peak_kib / 1024, 200, unit="MiB")


class _Asked(Daemon):
    """A daemon that counts as ready once it has answered a question; refusing one costs it next to nothing."""

    def ready(self) -> bool:
        """Say whether a question is answered from the index."""
        try:
            with self.client(timeout=1.0) as memory:
                return memory.call("recall", query="nobody_has_this_word") is not None
        except MemorydError:
            return False


def with_daemon(stands: Standing, asked: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a real daemon."""
    with _Asked(stands.home, stands.config, user_home=stands.home / "user") as daemon:
        daemon.env = _as_installed(daemon.env, stands.home / "bytecode")
        started, imported = [], []
        for number in range(ROUNDS + 1):
            seconds = daemon.start(120)
            cpu = idle._cpu(daemon.pid)  # noqa: SLF001 - the same look at another daemon
            if number < ROUNDS:
                daemon.stop()
            imports = command_cpu([sys.executable, "-c", LIBRARIES], daemon.env)
            if number:
                started.append((cpu, seconds))
                imported.append(imports)
        ready, base = percentile([cpu for cpu, _ in started], 0.5), percentile(imported, 0.5)
        felt = percentile([seconds for _, seconds in started], 0.5)
        yield Row(
            "daemon ready, beyond its imports, CPU",
            "importing trio, structlog, msgspec, apsw, msgpack",
            1e3 * (ready - base),
            300,
            unit="ms",
            detail=f"{1e3 * ready:.0f} ms against {1e3 * base:.0f}; from start to answer {1e3 * felt:.0f} ms",
        )
        with daemon.client(timeout=600) as memory:
            memory.call("sync", deadline_ms=600_000)
            before = asking(lambda text: memory.call("recall", query=text), asked)
            yield Row("daemon, resident memory", "limit", resident(daemon.pid), 120, unit="MiB")
            memory.call("reindex")
            during = asking(lambda text: memory.call("recall", query=text), asked)
        yield Row(
            "recall p50 while a rebuild runs",
            "without one",
            during / before,
            1.5,
            detail=f"{1e3 * during:.2f} ms against {1e3 * before:.2f}",
        )


def asking(ask: Callable[[str], object], asked: Sequence[str]) -> float:
    """Return the seconds of the median question, asked one after the other for a while."""
    taken, ends = [], time.monotonic() + SECONDS
    for text in itertools.cycle(asked):
        taken.append(wall_seconds(lambda text=text: ask(text)))
        if time.monotonic() > ends and len(taken) >= len(asked):
            return percentile(taken, 0.5)
    raise AssertionError("there is nothing to ask")


def resident(pid: int) -> float:
    """Return the highest resident memory of a process in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
