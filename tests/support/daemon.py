"""A real daemon for tests, over a throw-away home; it tells when it is ready, so nobody sleeps.

::

    with Daemon(user_home, CONFIG) as daemon:
        daemon.start()
        with daemon.client() as memory:
            memory.call("sync")
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memoryd import clock
from memoryd.client import Client, connect

READY_S = 180.0
"""A machine may be ten times slower than one with nothing else to do; nobody waits so long who need not."""


class Daemon:
    """One daemon on the state folder of the test's home; killed at the end of `with` if need be."""

    def __init__(self, home: Path, config: str = "") -> None:
        """Write the configuration; nothing is started yet. A home may be used again, one at a time."""
        self.home, self.state = home, home / "state"
        self.log = home / "daemon.log"
        self.env = {
            **os.environ,
            "HOME": str(home),
            "MEMORYD_HOME": str(self.state),
            "NOTIFY_SOCKET": str(home / "notify"),
        }
        if config:
            file = home / "memoryd.toml"
            file.write_text(config)
            file.chmod(0o600)
            self.env["MEMORYD_CONFIG"] = str(file)
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        (home / "notify").unlink(missing_ok=True)
        self._notify.bind(str(home / "notify"))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, before: Callable[[], None] | None = None) -> Self:
        """Start it and return once it has told that it is ready; `before` runs before its program."""
        self.launch(before=before)
        self.told("READY=1")
        return self

    def launch(
        self,
        *,
        before: Callable[[], None] | None = None,
        program: Sequence[str] = (sys.executable, "-m", "memoryd"),
        close_fds: bool = True,
    ) -> None:
        """Start it and wait for nothing."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                program,
                env=self.env,
                stdout=log,
                stderr=log,
                preexec_fn=before,  # noqa: PLW1509 - tests set a umask before exec
                close_fds=close_fds,
            )

    def told(self, what: str) -> None:
        """Return once the daemon has told its manager `what`. Raises: AssertionError with its log."""
        self._notify.settimeout(0.1)
        ends = clock.monotonic() + READY_S
        while clock.monotonic() < ends:
            try:
                if what.encode() in self._notify.recv(4_096).split(b"\n"):
                    return
            except TimeoutError:
                assert self.process.poll() is None, self.said()
        raise AssertionError(f"not {what} after {READY_S} s: {self.said()}")

    def heard(self, what: str) -> bool:
        """Say whether the next thing that it tells its manager now, if anything, is `what`."""
        self._notify.settimeout(0.0)
        try:
            return what.encode() in self._notify.recv(4_096).split(b"\n")
        except BlockingIOError:
            return False

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """Return the process; it must have been started."""
        assert self._process is not None
        return self._process

    def client(self, name: str = "memoryd", timeout: float = READY_S) -> Client:
        """Return a connection to one of its sockets."""
        return connect(name, timeout=timeout, env=self.env)

    def ask(self, method: str, /, **args: Any) -> Any:
        """Return one answer of the owner's socket."""
        with self.client() as memory:
            return memory.call(method, **args)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(READY_S)

    def kill(self) -> None:
        """Kill it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        """Return its log."""
        return self.log.read_text()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """See that nothing runs on."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._notify.close()
