"""Soak: a daemon that lives for hours beside chaos, and must not grow.

``python -m tests.chaos.soak HOURS``: one daemon stays up while its logs grow and clients ask; after each quarter
of an hour its memory, descriptors and write-ahead log are measured, then the parts of chaos are played with a
seed of their own. Exit code 1 if a part had a violation or something grew beyond its bound.
"""

import random
import secrets
import sys
import tempfile
from pathlib import Path

from memoryd.clock import monotonic
from memoryd.errors import MemorydError
from tests.chaos.__main__ import main as chaos
from tests.chaos.ground import Ground
from tests.chaos.kills import SOCKETS, check_answer, dump
from tests.support.daemon import Daemon

QUARTER_S = 900.0
WARM = 2
"""Quarters after which memory is taken as the measure of the later ones."""
MOST_MIB_AN_HOUR = 4.0
MOST_WAL = 64 << 20
MOST_FDS = 40


def soak(hours: float) -> int:
    """Run so long and return the exit code."""
    ends, bad = monotonic() + hours * 3600, 0
    rng = random.Random(secrets.randbits(64))
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        ground = Ground(Path(folder), rng)
        with Daemon(ground.home, ground.config() + SOCKETS) as daemon:
            daemon.start()
            sizes: list[float] = []
            while monotonic() < ends:
                quarter = min(monotonic() + QUARTER_S / 2, ends)
                while monotonic() < quarter:
                    work(ground, daemon)
                sizes.append(measured(ground, daemon))
                bad += grown(sizes, daemon)
                seconds = max(1.0, min(QUARTER_S / 2, ends - monotonic()))
                bad += chaos(["--seconds", str(seconds)])
            bad += daemon.stop() != 0
    return 1 if bad else 0


def work(ground: Ground, daemon: Daemon) -> None:
    """Let logs grow, ask, and sometimes rebuild and compare."""
    ground.change(ground.rng.randrange(1, 20))
    with daemon.client() as memory:
        check_answer(memory.call("recall", query="amber"), 3)
        if ground.rng.random() < 0.02:
            memory.call("reindex")
        if ground.rng.random() < 0.05:
            memory.call("sync", deadline_ms=60_000)
            ground.compare(dump(memory))


def measured(ground: Ground, daemon: Daemon) -> float:
    """Print what the daemon uses, and return its memory in MiB."""
    proc = Path(f"/proc/{daemon.process.pid}")
    status = dict(
        line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line
    )
    mib = int(status["VmRSS"].split()[0]) / 1024
    fds = len(list((proc / "fd").iterdir()))
    wal = ground.state / "index" / "memory.sqlite3-wal"
    size = wal.stat().st_size if wal.exists() else 0
    print(f"soak: {mib:.1f} MiB, {fds} descriptors, WAL {size >> 20} MiB", flush=True)
    if fds > MOST_FDS or size > MOST_WAL:
        raise MemorydError(f"{fds} descriptors, a write-ahead log of {size} bytes")
    return mib


def grown(sizes: list[float], daemon: Daemon) -> bool:
    """Say whether memory has grown since the daemon was warm."""
    if len(sizes) <= WARM:
        return False
    hours = (len(sizes) - WARM) * QUARTER_S / 3600
    slope = (sizes[-1] - sizes[WARM - 1]) / hours
    if slope > MOST_MIB_AN_HOUR + 16 / hours:
        print(f"soak: VIOLATION: memory grows by {slope:.1f} MiB an hour", flush=True)
        return True
    return False


if __name__ == "__main__":
    sys.exit(soak(float(sys.argv[1])))
