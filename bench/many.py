"""One daemon over very many logs: what it costs to read them, to hold them, to look at them and to start on them.

In: nothing but small logs made here, native ones and Claude Code's in turns, five to two folders. Out: rows. That
reading is linear is held against a tenth as many logs, CPU a log in both; memory is what one more log adds to the
daemon between the two. The rest is told of the many: the first catch-up, a look at every folder (`sync`), status, a
page of sessions, a line appended until it is found, the start on the index that stands, a rebuild, and idleness.
`python -m bench many --logs 100000` sets how many; memory and time are the kernel's own count of the daemon.
"""

import itertools
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from bench.idle import _resident
from bench.row import Row, percentile, wall_seconds
from bench.serving import _Asked
from bench.trees import _cpu
from examples.disposable import Daemon
from memoryd.client import Client
from memoryd.errors import TimedOut

LOGS = 10_000
ASKED = 20
IDLE_S = 60.0
WITHIN_S, ANSWER_S = 3_600.0, 600.0
CONFIG = """
[[source]]
kind = "claude-code"
path = "{home}/projects"
"""


class Cost(msgspec.Struct, frozen=True):
    """CPU and wall seconds of something that a daemon did."""

    cpu: float
    wall: float


class Load(msgspec.Struct, frozen=True):
    """A daemon that has read `logs` logs: what that cost, and what it holds (MiB; watches by the kernel's count)."""

    logs: int
    read: Cost
    resident: float
    peak: float
    watches: int


def rows(corpus: Path) -> Iterator[Row]:
    """Yield the rows of many logs."""
    del corpus
    with tempfile.TemporaryDirectory(prefix="md-many-") as folder:
        few = _few(Path(folder, "few"))
        home = Path(folder, "many")
        live = make(home, LOGS)
        with _Asked(home, CONFIG.format(home=home), user_home=home) as daemon:
            many = _loaded(daemon, LOGS)
            yield from _reading(few, many)
            yield from _asking(daemon, live)
            yield from _idle(daemon)
            yield from _starting(daemon)
            yield from _rebuilding(daemon)
            peak = _resident(daemon.pid)
            yield Row("many logs: resident memory at most", "limit", peak, 256 if LOGS <= 100_000 else 512,
                      unit="MiB", detail=f"{LOGS} logs, the rebuild's process apart")  # fmt: skip


def _few(home: Path) -> Load:
    make(home, LOGS // 10)
    with _Asked(home, CONFIG.format(home=home), user_home=home) as daemon:
        return _loaded(daemon, LOGS // 10)


def make(home: Path, logs: int) -> Path:
    """Write `logs` logs below a home, two folders for five of them, and return the path of one."""
    live = Path()
    for number in range(logs):
        at = number * 2 // 5
        name = f"p{at}"
        if at % 2:
            live = home / "state" / "sessions" / name / f"s{number}.jsonl"
            lines = _native(number)
        else:
            live = home / "projects" / name / f"s{number}.jsonl"
            lines = _claude(number)
        live.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        live.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return live


def _native(number: int) -> list[dict[str, object]]:
    return [
        {"kind": "session", "session": f"s{number}", "project": f"/w/p{number % 977}"},
        {"kind": "owner", "text": f"please look at subject{number} in the shop"},
        {"kind": "tool_call", "call": "c", "tool": "Bash", "args": {"command": f"ls {number}"}},
        {"kind": "tool_result", "call": "c", "ok": True, "class": "internal", "untrusted": False,
         "text": "a.py"},
        {"kind": "assistant", "text": f"there is one file for subject{number}"},
    ]  # fmt: skip


def _claude(number: int) -> list[dict[str, object]]:
    said = (
        ("user", f"please look at subject{number} in the shop"),
        ("assistant", [{"type": "tool_use", "id": f"t{number}", "name": "Bash",
                        "input": {"command": f"ls {number}"}}]),
        ("user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "a.py"}]),
        ("assistant", [{"type": "text", "text": f"there is one file for subject{number}"}]),
    )  # fmt: skip
    return [
        {
            "type": role,
            "sessionId": f"s{number}",
            "uuid": f"{number}-{n}",
            "parentUuid": f"{number}-{n - 1}" if n else None,
            "timestamp": f"2026-01-02T03:{number // 60 % 60:02}:{number % 60:02}.{n:03}Z",
            "cwd": f"/w/p{number % 977}",
            "message": {"role": role, "content": content},
        }
        for n, (role, content) in enumerate(said)
    ]


def _loaded(daemon: Daemon, logs: int) -> Load:
    """Start a daemon on logs that it has never seen, and return what it has come to once all are read."""
    began = time.monotonic()
    daemon.start(WITHIN_S)
    with daemon.client(timeout=ANSWER_S) as memory:
        while not _synced(memory):
            pass
        read = Cost(_cpu(daemon.pid), time.monotonic() - began)
        found = sum(source["logs"] for source in memory.call("status")["sources"])
    if found != logs:
        raise AssertionError(f"{found} of {logs} logs were read")
    return Load(logs, read, resident(daemon.pid), _resident(daemon.pid), watches(daemon.pid))


def _synced(memory: Client) -> bool:
    """Wait for all to be read, as long as one request may; say whether it is."""
    try:
        memory.call("sync", deadline_ms=int(1e3 * ANSWER_S))
    except TimedOut:
        return False
    return True


def resident(pid: int) -> float:
    """Return the resident memory of a process now, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def watches(pid: int) -> int:
    """Return how many inotify watches a process holds (proc(5), fdinfo)."""
    total = 0
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            total += info.read_text().count("inotify wd:")
    return total


def _reading(few: Load, many: Load) -> Iterator[Row]:
    one, other = few.read.cpu / few.logs, many.read.cpu / many.logs
    yield Row("many logs: CPU a log, first catch-up", f"{few.logs} logs", other / one, 1.3,
              detail=f"{1e3 * other:.2f} ms a log against {1e3 * one:.2f}; {many.logs} logs in "
                     f"{many.read.wall:.0f} s, {many.watches} watches")  # fmt: skip
    more = (many.resident - few.resident) * (1 << 20) / (many.logs - few.logs)
    yield Row("many logs: memory a log", "limit", more, 2_048, unit="B",
              detail=f"{many.resident:.0f} MiB (at most {many.peak:.0f}), "
                     f"{few.resident:.0f} with {few.logs}")  # fmt: skip


def _asking(daemon: Daemon, live: Path) -> Iterator[Row]:
    with daemon.client(timeout=ANSWER_S) as memory:
        looked = _cost(daemon, lambda: memory.call("sync", deadline_ms=int(1e3 * ANSWER_S)))
        yield Row("many logs: a look at every folder, CPU", "limit", looked.cpu, 10, unit="s",
                  detail=f"{looked.wall:.1f} s by the clock")  # fmt: skip
        for name, (limit, ask) in _questions(memory).items():
            cpu, wall = _middle([_cost(daemon, ask) for _ in range(ASKED)])
            yield Row(f"many logs: {name}, CPU", "limit", cpu, limit, unit="ms",
                      detail=f"p50 of {ASKED}; {wall:.1f} ms by the clock")  # fmt: skip
        for new in (False, True):
            taken = [
                _appended(daemon, memory, _line(live, number, new=new)) for number in range(ASKED)
            ]
            name, (cpu, wall) = "new log" if new else "append", _middle(taken)
            most = 1e3 * max(one.wall for one in taken)
            yield Row(f"many logs: {name} → searchable, p50", "promised: 1 s", wall, 100, unit="ms",
                      detail=f"at most {most:.0f} ms, CPU {cpu:.1f} ms")  # fmt: skip


def _middle(taken: list[Cost]) -> tuple[float, float]:
    """Return the median CPU and wall milliseconds."""
    cpu, wall = [one.cpu for one in taken], [one.wall for one in taken]
    return 1e3 * percentile(cpu, 0.5), 1e3 * percentile(wall, 0.5)


def _questions(memory: Client) -> dict[str, tuple[float, Callable[[], object]]]:
    first = memory.call("sessions", limit=50)
    after = first["cursor"]
    return {
        "status": (100, lambda: memory.call("status")),
        "a page of sessions": (1_000, lambda: memory.call("sessions", limit=50)),
        "the page after it": (1_000, lambda: memory.call("sessions", limit=50, cursor=after)),
        "recall": (100, lambda: memory.call("recall", query="subject7")),
    }


def _line(live: Path, number: int, *, new: bool) -> tuple[Path, str]:
    word = f"zq{number}xv{'n' if new else 'a'}"
    path = live.with_name(f"new{number}.jsonl") if new else live
    if not new and live.parent.parent.name == "projects":
        raise AssertionError("the last log is a native one")
    return path, word


def _appended(daemon: Daemon, memory: Client, what: tuple[Path, str]) -> Cost:
    path, word = what
    line = json.dumps({"kind": "owner", "text": f"the word is {word}"}) + "\n"

    def found() -> None:
        with path.open("a") as file:
            file.write(line)
        while not memory.call("recall", query=word)["hits"]:
            pass

    return _cost(daemon, found)


def _idle(daemon: Daemon) -> Iterator[Row]:
    before = _cpu(daemon.pid)
    time.sleep(IDLE_S)
    share = (_cpu(daemon.pid) - before) / IDLE_S
    yield Row("many logs: idle CPU", "limit", 100 * share, 1, unit="%", detail=f"{IDLE_S:.0f} s")


def _starting(daemon: Daemon) -> Iterator[Row]:
    daemon.stop()
    began = time.monotonic()
    daemon.start(WITHIN_S)
    ready = Cost(_cpu(daemon.pid), time.monotonic() - began)
    yield Row("many logs: ready again, CPU", "limit", ready.cpu, 15, unit="s",
              detail=f"{ready.wall:.1f} s by the clock")  # fmt: skip
    with daemon.client(timeout=ANSWER_S) as memory:
        memory.call("sync", deadline_ms=int(1e3 * ANSWER_S))


def _rebuilding(daemon: Daemon) -> Iterator[Row]:
    with daemon.client(timeout=ANSWER_S) as memory:
        began, slowest = time.monotonic(), 0.0
        memory.call("reindex")
        for number in itertools.count():
            word = f"subject{number % LOGS}"
            slowest = max(
                slowest, wall_seconds(lambda word=word: memory.call("recall", query=word))
            )
            rebuild = memory.call("status")["rebuild"]
            if rebuild["state"] != "running":
                break
            time.sleep(0.2)
        if rebuild["state"] != "done":
            raise AssertionError(f"the rebuild failed: {rebuild}")
    took = time.monotonic() - began
    yield Row("many logs: a rebuild", "limit", 1e3 * took / LOGS, 20, unit="ms/log",
              detail=f"{took:.0f} s; the slowest question meanwhile took {slowest:.2f} s")  # fmt: skip


def _cost(daemon: Daemon, work: Callable[[], object]) -> Cost:
    cpu = _cpu(daemon.pid)
    wall = wall_seconds(work)
    return Cost(_cpu(daemon.pid) - cpu, wall)
