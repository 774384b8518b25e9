"""A store with something in it, and what every device check does with it.

In: a daemon of `disposable`. Out: native logs that grow, answers, and `Failed` where a promise is not kept.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from disposable import Daemon

from memoryd.client import Client

LIBRARIES = "import trio, structlog, msgspec, apsw, msgpack"
BARE_S, BARE_TIMES = 0.3, 3
"""What importing them takes on two cores of 2020, and how often it is tried."""


class Skipped(Exception):
    """The machine does not let this be tried; the message says why."""


class Failed(Exception):
    """A promise is not kept; the message says which, and by how much."""


def expect(kept: object, otherwise: str) -> None:
    """Raise Failed with `otherwise` unless `kept`."""
    if not kept:
        raise Failed(otherwise)


def records(count: int) -> Iterator[str]:
    """Yield native log lines: owner, call, result in turn, while the label climbs to private."""
    for n in range(count):
        ts = f"2026-01-02T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}.000Z"
        line: dict[str, object] = {"ts": ts, "kind": "owner", "text": f"what of crane {n}?"}
        if n % 3 == 1:
            line = {"ts": ts, "kind": "tool_call", "call": f"c{n}", "tool": "read_file"}
            line["args"] = {"path": f"harbour/crane{n}.txt", "lines": n}
        elif n % 3 == 2:
            cls = ("public", "internal", "private")[3 * n // count]
            line = {
                "ts": ts,
                "kind": "tool_result",
                "call": f"c{n - 1}",
                "ok": True,
                "text": "rust",
            }
            line |= {"class": cls, "untrusted": n > count // 2}
        yield json.dumps(line) + "\n"


def allowed(seconds: float) -> float:
    """Return `seconds`, or as much more as this machine is slower now than two cores with nothing else to do.

    How slow it is, is told by a Python that imports what memoryd imports: the least of some.
    """
    slowness = min(_bare() for _ in range(BARE_TIMES)) / BARE_S
    return seconds * max(1.0, slowness)


def in_time(what: str, took: float, limit: float) -> None:
    """Raise Failed where something took more seconds than it may on this machine as it is now."""
    expect(took <= limit or took <= allowed(limit), f"{what} after {took:.2f} s, {limit} s allowed")


def _bare() -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", LIBRARIES], check=True)
    return time.monotonic() - began


def append(log: Path, lines: Iterable[str]) -> None:
    """Add to a session log in one write, as an agent would."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with log.open("ab") as file:
        log.chmod(0o600)
        file.write("".join(lines).encode())


def sync(daemon: Daemon) -> None:
    """Wait until all that is on disk is indexed."""
    with daemon.client() as memory:
        memory.call("sync", deadline_ms=600_000)


def dump(daemon: Daemon) -> list[str]:
    """Return the synced index as canonical lines."""
    sync(daemon)
    return shell(daemon, "memory", "dump").splitlines()


def shell(daemon: Daemon, *args: str) -> str:
    """Return what `bxctl` printed. Raises: Failed when it did not exit with 0."""
    done, _ = daemon.bxctl(*args)
    said = done.stderr.strip()
    expect(done.returncode == 0, f"bxctl {' '.join(args)} exits {done.returncode}: {said}")
    return done.stdout


def found(memory: Client, word: str) -> int:
    """Return how many hits the owner gets for `word`."""
    return len(memory.call("recall", query=word)["hits"])
