"""What a daemon costs that has nothing to do, with 5,000 logs to watch.

In: nothing but a number of small logs made here. Out: one row: the daemon's CPU over some seconds of
silence against that of looking at every log four times a second, which is what a polling reader does.
"""

import os
import tempfile
import time
from pathlib import Path

from bench.row import Row
from examples.disposable import Daemon

LOGS = 5_000
SECONDS = 150.0
"""Long enough to hold more than one of the daemon's sweeps, which are rarer the longer they take."""
POLL_S = 0.25


def rows(corpus: Path) -> list[Row]:
    """Return the row of idle CPU."""
    del corpus
    with tempfile.TemporaryDirectory(prefix="md-idle-") as folder:
        home = Path(folder)
        paths = _logs(home / "state" / "sessions")
        with Daemon(home, user_home=home) as daemon:
            daemon.start()
            with daemon.client() as memory:
                memory.call("sync", deadline_ms=120_000, lessons=True)
            before = _cpu(daemon.pid)
            time.sleep(SECONDS)
            ours = (_cpu(daemon.pid) - before) / SECONDS
            peak = _resident(daemon.pid)
        poll = _poll(paths)
    detail = (
        f"{100 * ours:.3f} % of a core against {100 * poll:.2f} %, {LOGS} logs, {SECONDS:.0f} s"
    )
    return [
        Row(
            "idle CPU, 5,000 logs",
            "stat of every log each 250 ms",
            ours / poll,
            0.05,
            detail=detail,
        ),
        Row("daemon, resident memory", "limit", peak, 120, unit="MiB", detail=f"{LOGS} small logs"),
    ]


def _logs(folder: Path) -> list[Path]:
    made = []
    for number in range(LOGS):
        path = folder / f"p{number % 24}" / f"s{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(f'{{"kind":"owner","text":"log number {number}"}}\n')
        made.append(path)
    return made


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _poll(paths: list[Path]) -> float:
    """Return the CPU seconds a second of looking at every path each POLL_S, from some rounds of it."""
    rounds = 20
    before = time.process_time()
    for _ in range(rounds):
        for path in paths:
            path.stat()
    return (time.process_time() - before) / rounds / POLL_S
