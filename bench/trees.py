"""What tree-form sessions cost: 5,000 of them unchanged, and one message of one of them changed.

In: nothing but sessions made here as OpenCode keeps them, a folder a session and a file a message and a part. Out:
the daemon's CPU over some seconds of silence against that of looking at every file four times a second; what it is
more than that of a daemon without any session, over the same seconds, against how much that one's own figure differs
from window to window; what a look through all of them costs, spread over the time to the next; and the time from a
changed part to a hit over the socket.
"""

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from bench.idle import _poll
from bench.row import Row, percentile
from examples.disposable import Daemon
from memoryd.serve.keeper import SURE_S

SESSIONS, MESSAGES, PARTS = 5_000, 2, 2
SECONDS, WINDOWS = 70.0, 4
"""The windows are longer together than the watcher rests between two looks at its roots."""

STEPS = 40
LONG_AGO = time.time() - 10 * 24 * 3600
"""When they were last changed: most sessions are older than a day."""


def rows(corpus: Path) -> list[Row]:
    """Return the rows of idle CPU and of a change."""
    del corpus
    with tempfile.TemporaryDirectory(prefix="md-trees-") as folder:
        home = Path(folder)
        data = home / ".local" / "share"
        data.mkdir(parents=True)
        made = [path.relative_to(home / "made") for path in _sessions(home / "made" / "storage")]
        paths = [data / "opencode" / path for path in made]
        (home / "empty").mkdir()
        with (
            Daemon(home, user_home=home) as daemon,
            Daemon(home / "empty", user_home=home / "empty") as empty,
        ):
            daemon.start()
            empty.start()
            (home / "made").rename(data / "opencode")
            for other in (daemon, empty):
                with other.client() as memory:
                    for _ in range(3):  # read; known; at rest
                        memory.call("sync", deadline_ms=300_000)
            windows = [_window(daemon.pid, empty.pid) for _ in range(WINDOWS)]
            sweep = _sweep(daemon)
            taken = [_change(daemon, paths[-1], number) for number in range(STEPS)]
        poll = _poll(paths)
    figures = [1_000 * seconds for seconds in taken[5:]]
    files = f"{SESSIONS} sessions, {len(paths)} files"
    ours, bare = (statistics.median(side) for side in zip(*windows, strict=True))
    more = statistics.median(one - other for one, other in windows)
    noise = max(other for _, other in windows) - min(other for _, other in windows)
    detail = f"{100 * ours:.3f} % of a core against {100 * poll:.2f} %, {files}"
    beside = f"{100 * ours:.4f} % against {100 * bare:.4f} %, {WINDOWS} windows of {SECONDS:.0f} s"
    return [
        Row("idle CPU, tree-form sessions", "stat of every file each 250 ms", ours / poll, 0.05,
            detail=detail),
        Row("the same, more than without any session", "how much an empty daemon's windows differ",
            100 * more, 100 * noise, unit="%", detail=beside),
        Row("a look through all of them, spread", f"one in {SURE_S:.0f} s", 100 * sweep / SURE_S, 0.05,
            unit="%", detail=f"{sweep:.2f} s of CPU"),
        Row("changed part → searchable, p50", "promised: 1 s", percentile(figures, 0.5), 100, unit="ms",
            detail=f"{len(figures)} changes, one at a time, beside {files}"),
        Row("changed part → searchable, p99", "promised: 1 s", percentile(figures, 0.99), 1_000,
            unit="ms", detail=f"{len(figures)} changes"),
    ]  # fmt: skip


def _window(*pids: int) -> tuple[float, ...]:
    """Return the CPU of processes over `SECONDS`, as shares of a core."""
    before = [_cpu(pid) for pid in pids]
    time.sleep(SECONDS)
    return tuple((_cpu(pid) - was) / SECONDS for pid, was in zip(pids, before, strict=True))


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process, to the nanosecond: its own clock (clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | 2)


def _sweep(daemon: Daemon) -> float:
    """Return the CPU seconds of one look at every folder, which `sync` asks for."""
    before = _cpu(daemon.pid)
    with daemon.client() as memory:
        memory.call("sync", deadline_ms=300_000)
    return _cpu(daemon.pid) - before


def _sessions(store: Path) -> list[Path]:
    made = []
    for number in range(SESSIONS):
        session = f"s{number}"
        told = {
            "id": session,
            "projectID": "p",
            "directory": "/w",
            "time": {"created": 1, "updated": 2},
        }
        made.append(_write(store / "session" / "p" / f"{session}.json", told))
        for place in range(MESSAGES):
            message = f"{session}m{place}"
            told = {"id": message, "sessionID": session, "role": "user", "time": {"created": place}}
            made.append(_write(store / "message" / session / f"{message}.json", told))
            for part in range(PARTS):
                words = {"type": "text", "text": f"session {number} message {place} part {part}"}
                told = {"id": f"{message}p{part}", "sessionID": session, **words}
                made.append(_write(store / "part" / message / f"{message}p{part}.json", told))
    return made


def _write(path: Path, told: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(json.dumps(told))
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def _change(daemon: Daemon, part: Path, number: int) -> float:
    word = f"zq{number}xv"
    told = json.loads(part.read_text()) | {"text": f"the word is {word}"}
    with daemon.client() as memory:
        memory.call("hello", client="bench")
        part.write_text(json.dumps(told))
        began = time.perf_counter()
        while not memory.call("recall", query=word)["hits"]:
            if time.perf_counter() - began > 10:
                raise TimeoutError(f"change {number} was not found within 10 s")
        return time.perf_counter() - began
