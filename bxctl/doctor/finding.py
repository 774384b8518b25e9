"""What a check looks at, and what it finds.

In: the environment, the configuration if it can be read, the daemon's own account if it answers. Out: a
`Scene`, made once for all checks; each check returns a `Finding`, one line with its remedy. Looking changes
nothing: no file is written, no lock taken, no log's text read.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memoryd.config import Loaded
from memoryd.index.settings import Settings

OK, WARN, FAIL, SKIP = "ok", "warn", "fail", "skip"


class Finding(msgspec.Struct, frozen=True):
    """How one thing is: `status` is ok, warn, fail or skip; `remedy` says what to do where there is something."""

    status: str
    detail: str
    remedy: str = ""


class Scene(msgspec.Struct, frozen=True):
    """What all checks look at. None: it could not be had, and `down` or `wrong` says why."""

    env: Mapping[str, str]
    home: Path
    loaded: Loaded | None = None
    wrong: Finding | None = None
    """Why there is no `loaded`."""
    settings: Settings | None = None
    status: dict[str, Any] | None = None
    """The owner's `status`."""
    down: str = ""
    """Why there is no `status`."""
    proc: Path = Path("/proc")
    call: Callable[..., Any] | None = None
    """Asks the daemon at the owner's socket; raises MemorydError."""

    @property
    def pid(self) -> int | None:
        """Return the daemon's process, where it answers."""
        return None if self.status is None else int(self.status["pid"])

    @property
    def process(self) -> Path | None:
        """Return where the kernel tells of the daemon's process (proc(5))."""
        return None if self.pid is None else self.proc / str(self.pid)


class Check(NamedTuple):
    """A check: its number, a short name, and the look."""

    id: str
    name: str
    look: Callable[[Scene], Finding]


def ok(detail: str) -> Finding:
    """Return that all is well."""
    return Finding(OK, detail)


def warn(detail: str, remedy: str) -> Finding:
    """Return that something should be looked at."""
    return Finding(WARN, detail, remedy)


def fail(detail: str, remedy: str) -> Finding:
    """Return that a promise cannot be kept as things are."""
    return Finding(FAIL, detail, remedy)


def skip(detail: str) -> Finding:
    """Return that there was nothing to look at."""
    return Finding(SKIP, detail)


def some(names: list[str]) -> str:
    """Return the first three of some names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
