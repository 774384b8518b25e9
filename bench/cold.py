"""Cold start: what one `bxctl memory search` costs beyond starting Python at all.

In: nothing but the running interpreter. Out: rows of CPU milliseconds (user and system, waited-for
children), medians of commands run in turn in one go, this process and its children on one core. The
daemon is a real one on a home of its own; its CPU is not counted. Bytecode is cached, as pip leaves it.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.row import Row, command_cpu, interleaved, pinned, wall_seconds
from examples.disposable import Daemon

ROUNDS = 41
HOOK_ROUNDS = 21
TARGET_MS = 60.0
HOOK_TARGET_MS = 30.0
HOOK_LIMIT_MS = 200.0
SESSION = (
    {"kind": "session", "session": "shop", "project": "/home/ada/shop"},
    {"kind": "owner", "text": "cap the retry backoff at thirty seconds"},
    {"kind": "assistant", "text": "the backoff now ends at thirty seconds"},
)


def rows(corpus: Path) -> list[Row]:
    """Return the cost of a search, plain and as JSON, and of what a person gets less often."""
    del corpus  # a cold start does not depend on how much is remembered
    with tempfile.TemporaryDirectory(prefix="md-cold-") as folder:
        home = Path(folder)
        log = home / "state" / "sessions" / "shop.jsonl"
        log.parent.mkdir(parents=True, mode=0o700)
        log.write_text("".join(f"{json.dumps(line)}\n" for line in SESSION), "utf-8")
        with Daemon(home, user_home=home) as daemon, pinned(1):
            daemon.start()
            with daemon.client() as memory:
                memory.call("sync")
            return _measured(_as_installed(daemon.env, home / "bytecode"))


def _as_installed(env: dict[str, str], cache: Path) -> dict[str, str]:
    """Return `env` with bytecode kept: a source tree may have none, or PYTHONDONTWRITEBYTECODE forbid it."""
    kept = {name: value for name, value in env.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(cache)}


def _measured(env: dict[str, str]) -> list[Row]:
    bxctl = str(Path(sys.executable).with_name("bxctl"))
    search = [bxctl, "memory", "search", "retry", "backoff"]
    commands = {
        "pass": [sys.executable, "-c", "pass"],
        "search": search,
        "search --json": [*search, "--json", "--limit", "5"],
        "client": [sys.executable, "-c", "import memoryd.client"],
        "click": [sys.executable, "-c", "import memoryd.client, json, click"],
        "help": [bxctl, "memory", "search", "--help"],
        "hook": [bxctl, "hook", "claude-code", "SessionStart"],
    }
    taken = interleaved(
        {name: lambda argv=argv: command_cpu(argv, env) for name, argv in commands.items()},
        rounds=ROUNDS,
        measure=lambda work: work(),
    )
    base = taken["pass"]
    more = {name: (seconds - base) * 1_000 for name, seconds in taken.items()}
    detail = f"client {more['client']:.0f}, client and click {more['click']:.0f}, help {more['help']:.0f} ms"
    against = f"python -c pass ({base * 1_000:.0f} ms)"
    return [
        Row(
            "bxctl memory search, cold, CPU",
            against,
            more["search"],
            TARGET_MS,
            unit="ms",
            detail=detail,
        ),
        Row("the same with --json", against, more["search --json"], TARGET_MS, unit="ms"),
        Row("bxctl hook, cold, CPU", against, more["hook"], HOOK_TARGET_MS, unit="ms"),
        _held_up(env),
    ]


def _held_up(env: dict[str, str]) -> Row:
    """Return how long a hook takes from start to exit where the daemon accepts and says nothing."""
    bxctl = str(Path(sys.executable).with_name("bxctl"))
    with tempfile.TemporaryDirectory(prefix="md-hook-") as folder:
        path = Path(folder, "hung.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as hung:
            hung.bind(str(path))
            hung.listen(ROUNDS)
            argv = [bxctl, "hook", "claude-code", "SessionStart", "--socket", str(path)]

            def run() -> None:
                subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, check=True)

            taken = sorted(wall_seconds(run) * 1_000 for _ in range(HOOK_ROUNDS))
    return Row(
        "bxctl hook, daemon hangs, start to exit",
        f"{HOOK_ROUNDS} runs, the longest",
        taken[-1],
        HOOK_LIMIT_MS,
        unit="ms",
        detail=f"median {taken[len(taken) // 2]:.0f} ms",
    )


if __name__ == "__main__":
    for row in rows(Path(os.devnull)):
        print(row)
