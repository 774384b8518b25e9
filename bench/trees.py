"""What tree-form sessions cost: 5,000 of them unchanged, and one message of one of them changed.

In: nothing but sessions made here as OpenCode keeps them, a folder a session and a file a message and a part. Out:
the daemon's CPU over some seconds of silence against that of looking at every file four times a second, and the
time from a changed part to a hit over the socket.
"""

import json
import os
import tempfile
import time
from pathlib import Path

from bench.idle import _cpu, _poll
from bench.row import Row, percentile
from examples.disposable import Daemon

SESSIONS, MESSAGES, PARTS = 5_000, 2, 2
SECONDS = 70.0
"""Long enough to hold two of the daemon's sweeps."""

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
        with Daemon(home, user_home=home) as daemon:
            daemon.start()
            (home / "made").rename(data / "opencode")
            with daemon.client() as memory:
                for _ in range(3):  # read; known; at rest
                    memory.call("sync", deadline_ms=300_000)
            before = _cpu(daemon.pid)
            time.sleep(SECONDS)
            ours = (_cpu(daemon.pid) - before) / SECONDS
            taken = [_change(daemon, paths[-1], number) for number in range(STEPS)]
        poll = _poll(paths)
    figures = [1_000 * seconds for seconds in taken[5:]]
    files = f"{SESSIONS} sessions, {len(paths)} files"
    detail = f"{100 * ours:.3f} % of a core against {100 * poll:.2f} %, {files}, {SECONDS:.0f} s"
    return [
        Row("idle CPU, tree-form sessions", "stat of every file each 250 ms", ours / poll, 0.05,
            detail=detail),
        Row("changed part → searchable, p50", "promised: 1 s", percentile(figures, 0.5), 100, unit="ms",
            detail=f"{len(figures)} changes, one at a time, beside {files}"),
        Row("changed part → searchable, p99", "promised: 1 s", percentile(figures, 0.99), 1_000,
            unit="ms", detail=f"{len(figures)} changes"),
    ]  # fmt: skip


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
