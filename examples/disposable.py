"""A real memoryd on a home that is deleted afterwards, however the program ends.

In: nothing, or the text of a configuration. Out: a folder, a running daemon in a process of its own,
clients of its sockets, and timings. Used by `demo.py` and `device_check.py`.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Self

from memoryd.client import Client, connect
from memoryd.errors import MemorydError

READY_S, STOP_S = 120.0, 60.0
"""However slow the machine is; one that is quick waits no longer than it must."""


class NotStarted(Exception):
    """The daemon ended, or did not answer in time; its last words are the message."""


@contextmanager
def throwaway_home(prefix: str) -> Iterator[Path]:
    """Yield a private folder and delete it at the end, also on Ctrl-C and SIGTERM."""
    signal.signal(signal.SIGTERM, _leave)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class Daemon:
    """One daemon on the state folder `home`, configured by `config` (TOML); stopped by `with`."""

    umask = 0o077
    command: tuple[str, ...] = (sys.executable, "-m", "memoryd")

    def __init__(self, home: Path, config: str = "", user_home: Path | None = None) -> None:
        """Write the configuration beside the state; nothing is started yet."""
        self.home, self.state = home, home / "state"
        self.state.mkdir(mode=0o700, exist_ok=True)
        file = home / "memoryd.toml"
        file.write_text(config, "utf-8")
        file.chmod(0o600)
        self.env = os.environ | {"MEMORYD_HOME": str(self.state), "MEMORYD_CONFIG": str(file)}
        if user_home is not None:
            self.env["HOME"] = str(user_home)
        self.process: subprocess.Popen[bytes] | None = None
        self._log = home / "daemon.log"

    def start(self, within: float = READY_S) -> float:
        """Start the daemon and return the seconds until it was ready. Raises: NotStarted."""
        began = time.monotonic()
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=self.env,
                stdout=log,
                stderr=log,
                umask=self.umask,
            )
        while time.monotonic() < began + within:
            if self.process.poll() is not None:
                raise NotStarted(self.last_words())
            if self.ready():
                return time.monotonic() - began
            time.sleep(0.01)
        self.stop()
        raise NotStarted(self.last_words())

    def ready(self) -> bool:
        """Say whether the daemon answers, and from an index."""
        try:
            with self.client(timeout=1.0) as memory:
                return bool(memory.call("status")["ready"])
        except MemorydError:
            return False

    @property
    def pid(self) -> int:
        """Return the daemon's process id, 0 before the first start."""
        return self.process.pid if self.process else 0

    def client(self, socket: str = "memoryd", timeout: float = 60.0) -> Client:
        """Return a connection to the socket called `socket`."""
        return connect(socket, timeout=timeout, env=self.env)

    def bxctl(self, *args: str) -> tuple[subprocess.CompletedProcess[str], float]:
        """Run `bxctl` with `args`; return what it printed and the seconds it took."""
        began = time.monotonic()
        done = subprocess.run(
            [Path(sys.executable).with_name("bxctl"), *args],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        return done, time.monotonic() - began

    def stop(self) -> float:
        """Send SIGTERM and return the seconds until the process was gone; SIGKILL after STOP_S."""
        began = time.monotonic()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
        return time.monotonic() - began

    def kill(self) -> None:
        """Send SIGKILL and wait until the process is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def last_words(self, lines: int = 10) -> str:
        """Return the end of what the daemon printed."""
        said = self._log.read_text("utf-8", "replace").splitlines()
        return "\n".join(said[-lines:]) or "the daemon said nothing"

    def __enter__(self) -> Self:
        """Return itself, not yet started."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the daemon."""
        self.stop()
