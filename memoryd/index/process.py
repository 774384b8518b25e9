"""A new index beside the old one, built by a process of its own.

In: the settings. Out: `Built`: a file beside the index, not yet in its place (`swap`), and what was counted.
The process is ``python -m memoryd.index``: a `Ticket` on its standard input, lines of JSON on its standard
output. A thread of the daemon would do the same three times slower, since every row it writes would wait for
the interpreter (measured).
"""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from memoryd.config import Config
from memoryd.errors import BY_CODE, Cancelled, Internal
from memoryd.index import opening, swap
from memoryd.index.rows import Counts
from memoryd.index.settings import Settings

COMMAND = (sys.executable, "-P", "-m", "memoryd.index")


class Ticket(msgspec.Struct, frozen=True):
    """What the process is asked to do: enough to make the same settings again."""

    config: Config
    home: str
    key: bytes
    env: dict[str, str]
    temp: str


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How far a rebuild is, in logs and in bytes of them."""

    logs: int
    all_logs: int
    bytes: int
    all_bytes: int


class Built(msgspec.Struct, frozen=True, tag="built"):
    """A whole new index, closed. `unreadable`: logs that could not be opened, by key, with the reason."""

    temp: str
    counts: Counts
    logs: int
    seconds: float
    cpu_seconds: float
    peak_kib: int
    unreadable: dict[str, str] = {}


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Why there is no new index."""

    code: str
    message: str
    remedy: str = ""


Said = Progress | Built | Failed
_decode = msgspec.json.Decoder(Said).decode


class Rebuild:
    """One rebuild: `run` it in a thread, `cancel` it from another."""

    def __init__(self, settings: Settings, command: tuple[str, ...] = COMMAND) -> None:
        """Prepare to build the index of `settings`; `command` starts the process."""
        self._settings = settings
        self._command = command
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """End the rebuild; `run` then raises Cancelled."""
        with self._lock:
            self._cancelled = True
            if self._process is not None:
                self._process.terminate()

    def run(self, tell: Callable[[Progress], None] | None = None) -> Built:
        """Build, telling how far it is some times a second, and return the new file; it blocks.

        Nothing is left on a failure. Raises: what the process met, as an error of memoryd; Cancelled.
        """
        temp = opening.new_temp(self._settings.path)
        try:
            return self._run(temp, tell)
        except BaseException:
            swap.remove(temp)
            raise

    def _run(self, temp: Path, tell: Callable[[Progress], None] | None) -> Built:
        last: Said | None = None
        with self._start() as process:
            try:
                _give(process, self._ticket(temp))
                for line in process.stdout or ():
                    last = _decode(line)
                    if isinstance(last, Progress) and tell is not None:
                        tell(last)
            except BaseException:
                process.kill()
                raise
        if self._cancelled:
            raise Cancelled("the rebuild was cancelled")
        if isinstance(last, Failed):
            raise BY_CODE.get(last.code, Internal)(last.message, remedy=last.remedy)
        if not isinstance(last, Built) or process.returncode != 0:
            raise Internal(f"the rebuild ended by itself (exit {process.returncode})")
        return last

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._cancelled:
                raise Cancelled("the rebuild was cancelled")
            self._process = subprocess.Popen(  # noqa: S603 - the interpreter that runs already
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,  # a terminal's Ctrl-C is for whoever started it, who ends it then
            )
            return self._process

    def _ticket(self, temp: Path) -> bytes:
        settings = self._settings
        return msgspec.msgpack.encode(
            Ticket(settings.config, str(settings.home), settings.key, settings.env, str(temp))
        )


def _give(process: "subprocess.Popen[bytes]", ticket: bytes) -> None:
    if process.stdin is not None:
        process.stdin.write(ticket)
        process.stdin.close()
