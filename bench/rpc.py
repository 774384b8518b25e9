"""Round trips over a Unix socket: memoryd's server against a bare echo on trio's own streams.

Both decode each request and encode an answer with the same content; memoryd's also keeps its limits,
checks grants and arguments, and logs. Server and client are processes of their own, both on one core
(waking a second core costs more than either server does), interleaved round by round. A row is the
median over the rounds of memoryd's rate divided by the bare echo's of the same round.

Loads: one client asking and waiting; 64 clients doing so; one client with 64 requests in flight (32
where each is a task, memoryd's limit). `echo` is answered on the spot, `task` by a task of its own.
"""

import contextlib
import functools
import itertools
import json
import multiprocessing
import os
import selectors
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgpack
import trio

from bench.corpus import text
from bench.row import Row, pinned, wall_seconds
from examples.disposable import Daemon
from memoryd import db, log, recall
from memoryd.db import Deadline
from memoryd.ids import Ids
from memoryd.index.search import Reader
from memoryd.labels import Classes
from memoryd.serve.calls import Common, Quick, Slow, fitting
from memoryd.serve.connection import IN_FLIGHT, Traffic
from memoryd.serve.listening import Listening
from memoryd.serve.peers import Asker, Capability
from memoryd.serve.server import Server

QUESTION = {"query": "socket timeout retry", "limit": 10, "order": "relevance"}
HITS = [
    {
        "id": f"{number:020}", "kind": "assistant", "session": "s", "project": "memoryd",
        "class": "internal", "untrusted": False, "score": 3.25 + number, "snippet": "x" * 120,
    }
    for number in range(10)
]  # fmt: skip
ROUNDS, SECONDS = 15, 0.3


class Load(NamedTuple):
    """How many clients ask, each with how many requests in flight."""

    name: str
    clients: int
    flight: int


LOADS = (
    Load("1 client", 1, 1),
    Load("64 clients", 64, 1),
    Load("64 in flight", 1, 64),
)


class Echo(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The arguments of the method under measurement."""

    query: str
    limit: int = 10
    order: str = "relevance"


def listener(path: str) -> socket.socket:
    """Return a listening socket."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    sock.bind(path)
    sock.listen(128)
    return sock


def serve_bare(path: str) -> None:
    """Echo as plainly as trio and msgpack allow: no limits, no grants, no checks, no log."""

    async def talk(stream: trio.SocketStream) -> None:
        unpacker = msgpack.Unpacker()
        packer = msgpack.Packer(autoreset=True)
        with contextlib.suppress(trio.BrokenResourceError):
            while chunk := await stream.receive_some(65536):
                unpacker.feed(chunk)
                out = [
                    packer.pack([1, msgid, None, {"hits": HITS, "limit": params[0]["limit"]}])
                    for _, msgid, _, params in unpacker
                ]
                await stream.send_all(b"".join(out))

    async def main() -> None:
        sock = trio.socket.from_stdlib_socket(listener(path))
        await trio.serve_listeners(talk, [trio.SocketListener(sock)])

    trio.run(main)


def serve_memoryd(path: str) -> None:
    """Serve the same answer through memoryd's server."""

    def answer(asker: Asker, args: Echo) -> object:
        return {"hits": HITS, "limit": args.limit}

    async def later(asker: Asker, args: Echo, deadline: Deadline) -> object:
        return answer(asker, args)

    names = frozenset({"echo", "task"})
    allowed = Capability(
        "bench", 3, True, names, ("*",), "include", ("*",), frozenset({os.geteuid()})
    )
    log.configure()
    server = Server(
        {"echo": Quick(fitting(Echo), answer), "task": Slow(fitting(Echo), later)}, Traffic()
    )
    trio.run(server.run, [Listening(allowed, Path(path), listener(path), (0, 0))])


def dial(path: str) -> socket.socket:
    """Connect, waiting for a server that is just starting."""
    for _ in range(500):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path)
        except OSError:
            sock.close()
            time.sleep(0.02)
        else:
            return sock
    raise SystemExit("the server did not start")


def rate(path: str, method: str, clients: int, flight: int, seconds: float) -> float:
    """Return answers a second with `clients` connections, each with `flight` requests in flight."""
    frame = msgpack.packb([0, 7, method, [QUESTION]])
    socks = [dial(path) for _ in range(clients)]
    socks[0].sendall(frame)
    size = len(socks[0].recv(1 << 16))
    selector = selectors.EpollSelector()
    for sock in socks:
        selector.register(sock, selectors.EVENT_READ, (sock, [0]))
        sock.sendall(frames(frame, flight))
    done, begun = 0, time.perf_counter()
    while (spent := time.perf_counter() - begun) < seconds:
        for key, _ in selector.select(1):
            sock, held = key.data
            held[0] += len(sock.recv(1 << 18))
            whole, held[0] = divmod(held[0], size)
            done += whole
            if whole:
                sock.sendall(frames(frame, whole))
    for sock in socks:
        sock.close()
    return done / spent


def frames(frame: bytes, count: int) -> bytes:
    """Return `count` requests with different ids, since one connection may not use one twice."""
    at = 3 if frame[2] == 0xCC else 2
    return b"".join(
        frame[:at] + bytes((number % 128,)) + frame[at + 1 :] for number in range(count)
    )


def rows(corpus: Path) -> list[Row]:
    """Return the ratio of each load, and of a recall over the socket, measured in this run."""
    found = measured(ROUNDS, SECONDS)
    echoes = [
        Row(
            f"RPC echo, {load.name}",
            "a bare trio SocketStream echo",
            found["echo", load.name].rate,
            0.9,
            ">=",
            detail=f"in the server's CPU an answer {found['echo', load.name].cpu:.2f}; as a task of its own "
            f"{found['task', load.name].rate:.2f}, in CPU {found['task', load.name].cpu:.2f}",
        )
        for load in LOADS
    ]
    return [*echoes, recall_row(corpus)]


def recall_row(corpus: Path) -> Row:
    """Compare a recall over the socket with its parts: the query, one hop to a thread, a bare echo."""
    queries = json.loads((corpus / "queries.json").read_text())
    asked = [*queries["rare"], *queries["mid"]]
    with tempfile.TemporaryDirectory(prefix="md-rpc-") as folder:
        with Daemon(Path(folder), text(corpus), user_home=Path(folder)) as daemon, pinned(0):
            daemon.start()
            with daemon.client(timeout=600) as memory:
                memory.call("sync", deadline_ms=600_000)
                ids, classes = Ids((daemon.state / "key").read_bytes()), memory.server["classes"]
                reader = Reader(
                    db.reader(daemon.state / "index" / "memory.sqlite3"), ids, Classes(classes)
                )
                ends = db.Deadline()
                scope = recall.Scope(reader.classes.top, owner=True)
                taken = medians(
                    {
                        "socket": lambda query: memory.call("recall", query=query),
                        "query": lambda query: recall.recall(reader, scope, {"query": query}, ends),
                    },
                    asked,
                )
                reader.connection.close()
        with pinned(0):
            hop, echo = hop_seconds(), echo_seconds(f"{folder}/echo")
    parts = taken["query"] + hop + echo
    told = f"{1e3 * taken['socket']:.2f} ms; query {1e3 * taken['query']:.2f}"
    return Row(
        "recall over the socket, warm",
        "query + one hop to a thread + bare echo",
        round(taken["socket"] / parts, 3),
        1.3,
        detail=f"{told}, hop {1e3 * hop:.2f}, echo {1e3 * echo:.2f} ms",
    )


def medians(works: dict[str, Callable[[str], object]], asked: list[str]) -> dict[str, float]:
    """Return the seconds that each way takes for the median question, asked in turn.

    Of several tries at a question the quickest counts: a busy machine adds to a round trip between two
    processes what it does not add to a query inside one.
    """
    taken: dict[str, list[float]] = {name: [] for name in works}
    for query in asked:
        tries: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(9):
            for name, work in works.items():
                tries[name].append(wall_seconds(functools.partial(work, query)))
        for name, seconds in tries.items():
            taken[name].append(min(seconds))
    return {name: statistics.median(found) for name, found in taken.items()}


def hop_seconds() -> float:
    """Return what it takes to have a worker thread do nothing."""

    async def main() -> float:
        taken = []
        for _ in range(500):
            begun = time.perf_counter()
            await trio.to_thread.run_sync(int)
            taken.append(time.perf_counter() - begun)
        return statistics.median(taken)

    return trio.run(main)


def echo_seconds(path: str) -> float:
    """Return what a round trip to the bare echo takes."""
    process = start(serve_bare, path)
    try:
        return 1 / rate(path, "echo", 1, 1, SECONDS)
    finally:
        process.terminate()
        process.join()


class Ratio(NamedTuple):
    """How many times the bare echo's answers memoryd gives: in a second, and for as much CPU of the server."""

    rate: float
    cpu: float


def measured(rounds: int, seconds: float) -> dict[tuple[str, str], Ratio]:
    """Return (method, load) to the median ratios; `seconds` is how long each side runs each round."""
    ratios: dict[tuple[str, str], list[Ratio]] = {}
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    with tempfile.TemporaryDirectory() as folder:
        bare, ours = f"{folder}/bare", f"{folder}/ours"
        started = [start(serve_bare, bare), start(serve_memoryd, ours)]
        try:
            for _ in range(rounds):
                for load, method in itertools.product(LOADS, ("echo", "task")):
                    flight = load.flight if method == "echo" else min(load.flight, IN_FLIGHT)
                    sides = []
                    for process, path in zip(started, (bare, ours), strict=True):
                        before = cpu_of(process)
                        found = rate(path, method, load.clients, flight, seconds)
                        sides.append((found, found * seconds / (cpu_of(process) - before)))
                    (base, base_cpu), (mine, mine_cpu) = sides
                    one = Ratio(mine / base, mine_cpu / base_cpu)
                    ratios.setdefault((method, load.name), []).append(one)
        finally:
            os.sched_setaffinity(0, cores)
            for process in started:
                process.terminate()
                process.join()
    return {
        key: Ratio(*(round(statistics.median(part), 3) for part in zip(*found, strict=True)))
        for key, found in ratios.items()
    }


def cpu_of(process: multiprocessing.process.BaseProcess) -> float:
    """Return the seconds of CPU that a process has used, by its clock (clock_getcpuclockid(3))."""
    return time.clock_gettime((~(process.pid or 0) << 3) | 2)


def start(serve: Callable[[str], None], path: str) -> multiprocessing.process.BaseProcess:
    """Start a server in a fresh process on the core of this one."""
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(path,), daemon=True)
    process.start()
    return process


if __name__ == "__main__":
    for row in rows(Path(sys.argv[1])):
        print(f"{row.metric}: {row.value} {row.better} {row.target}; {row.detail}")
