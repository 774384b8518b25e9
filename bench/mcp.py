"""How long a harness waits for its list of tools, from the start of `bxctl mcp` to the answer.

In: nothing of the corpus: the daemon is an empty one. Out: the CPU seconds of a whole server, started, asked for its
tools and ended; on an idle machine they are what a harness waits. Beside it what importing the SDK alone costs.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.row import Row, command_cpu, interleaved
from examples.disposable import Daemon, throwaway_home

BXCTL = Path(sys.executable).with_name("bxctl")
ROUNDS = 5
MESSAGES = (
    {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                   "clientInfo": {"name": "bench", "version": "1"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)  # fmt: skip


def rows(corpus: Path) -> list[Row]:
    """Return the row of the start."""
    del corpus  # a start does not depend on how much is remembered
    with throwaway_home("md-bench-") as home, Daemon(home, "", user_home=home) as daemon:
        daemon.start()
        alone = [sys.executable, "-c", "import trio, mcp.server.lowlevel, mcp.server.stdio"]
        taken = interleaved(
            {
                "mcp": lambda: listed(daemon.env),
                "sdk": lambda: command_cpu(alone, daemon.env),
            },
            rounds=ROUNDS,
            measure=lambda work: work(),
        )
    return [
        Row(
            "bxctl mcp: start to list of tools, CPU",
            "a harness's patience",
            taken["mcp"],
            2.0,
            unit="s",
            detail=f"importing the SDK alone takes {taken['sdk']:.2f} s",
        )
    ]


def listed(env: Mapping[str, str]) -> float:
    """Return the CPU seconds of a server that lists its tools and ends with its input."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pipe = subprocess.PIPE
    with subprocess.Popen([BXCTL, "mcp"], env=dict(env), stdin=pipe, stdout=pipe) as server:
        to, answers = server.stdin, server.stdout
        if to is None or answers is None:
            raise RuntimeError("pipes were asked for")
        to.write(b"".join(json.dumps(one).encode() + b"\n" for one in MESSAGES))
        to.flush()
        while b'"tools":[' not in answers.readline():
            pass
        to.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
