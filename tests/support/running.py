"""A real daemon over a few planted logs, and `bxctl` as a person's shell would run it.

In: records for native logs. Out: `Running`, whose daemon has read them all; it ends with the `with` block.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from examples.disposable import Daemon, throwaway_home
from tests.support.logs import Line, write

BXCTL = Path(sys.executable).with_name("bxctl")
LIMIT_S = 180


class Running:
    """One daemon on a throw-away home: `daemon` itself, its `home`, and `bxctl` on it."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon, self.home, self.state = daemon, daemon.home, daemon.state

    def log(self, name: str, *records: Line | bytes) -> Path:
        """Write a native log."""
        return write(self.state / "sessions" / f"{name}.jsonl", *records)

    def bxctl(
        self, *argv: str, env: Mapping[str, str] | None = None, **more: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with its output in pipes; `env` is added to the daemon's."""
        options: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.run(
            [BXCTL, *argv],
            env={**self.daemon.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=LIMIT_S,
            **options,
        )


@contextmanager
def running(logs: Mapping[str, list[Line | bytes]], config: str = "") -> Iterator[Running]:
    """Start a daemon over native `logs` by name, wait until it has read them, stop it at the end."""
    with throwaway_home("md-e2e-") as home, Daemon(home, config, user_home=home) as daemon:
        made = Running(daemon)
        for name, records in logs.items():
            made.log(name, *records)
        daemon.start()
        with daemon.client() as memory:
            memory.call("sync", deadline_ms=30_000)
        yield made
