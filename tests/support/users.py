"""Other users: programs that run as somebody else, so that modes, owners and user ids prove something.

In: a user id and a program. Out: how it ended. Root may do everything, so a test that runs as root shows nothing by
itself; these programs are started by `setpriv`, with the system's own Python, which every user can run. Where one
of these is missing, `missing` says so and the tests are skipped.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon

OWNER, STRANGER = 4_711, 65_534
"""Whose memory it is, and anybody else; neither needs an entry in /etc/passwd."""
PYTHON = "/usr/bin/python3"
LIMIT_S = 180
_ROOT = Path(__file__).parents[2]
_ASK = """
import json, sys
from memoryd.client import connect
from memoryd.errors import MemorydError
with connect(sys.argv[1], timeout=120.0) as memory:
    try:
        print(json.dumps(memory.call(sys.argv[2], **json.loads(sys.argv[3]))))
    except MemorydError as error:
        print(json.dumps({"error": error.code, "message": error.message}))
"""


def prefix(uid: int, gid: int | None = None) -> list[str]:
    """Return the command that runs another as `uid`, in no other group than `gid`, for good."""
    group = uid if gid is None else gid
    ids = [f"--reuid={uid}", f"--regid={group}", "--clear-groups", "--no-new-privs"]
    return ["setpriv", *ids, "--inh-caps=-all", "--bounding-set=-all"]


def environment(home: Path) -> dict[str, str]:
    """Return what a program of ours needs to run with the system's Python and `home` as its home."""
    packages = sysconfig.get_paths()["purelib"]
    return {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{_ROOT}:{packages}",
    }


def run_as(
    uid: int, code: str, *arguments: object, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a Python program as `uid` and return how it ended."""
    return subprocess.run(
        [*prefix(uid), PYTHON, "-c", code, *map(str, arguments)],
        env={"PATH": "/usr/bin:/bin"} if env is None else dict(env),
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd="/",
    )


def ask_as(uid: int, path: Path, method: str, /, **args: Any) -> Any:
    """Return what the socket at `path` answers a client of `uid`; a refusal as ``{"error": code}``."""
    done = run_as(uid, _ASK, path, method, json.dumps(args), env=environment(path.parent))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def give(path: Path, uid: int) -> Path:
    """Make `path` and all below it the property of `uid`."""
    for each in (path, *path.rglob("*")):
        os.chown(each, uid, uid, follow_symlinks=False)
    return path


class OwnedDaemon(Daemon):
    """A daemon that runs as `OWNER`, over a home that strangers may pass through and not look into."""

    def __init__(self, home: Path, config: str = "") -> None:
        """Give the home and what is in it away; nothing is started yet."""
        super().__init__(home, config)
        self.env = environment(home) | {
            name: value
            for name, value in self.env.items()
            if name in {"MEMORYD_HOME", "MEMORYD_CONFIG", "NOTIFY_SOCKET"}
        }
        give(home, OWNER)
        home.chmod(0o711)
        (home / "notify").chmod(0o666)

    def launch(
        self,
        *,
        before: Callable[[], None] | None = None,
        program: Sequence[str] = (*prefix(OWNER), PYTHON, "-m", "memoryd"),
        close_fds: bool = True,
    ) -> None:
        """Start it as the owner and wait for nothing."""
        super().launch(before=before, program=program, close_fds=close_fds)

    def socket(self, name: str = "memoryd") -> Path:
        """Return where a socket lies."""
        return self.state / "run" / f"{name}.sock"

    def ask(self, method: str, /, **args: Any) -> Any:
        """Return one answer of the owner's socket to a client of the owner."""
        return ask_as(OWNER, self.socket(), method, **args)


@cache
def missing() -> str:
    """Return why there can be no other users here; "" where there can."""
    if os.geteuid() != 0:
        return "needs root, to be other users"
    if shutil.which("setpriv") is None or not Path(PYTHON).exists():
        return f"needs setpriv and {PYTHON}, to be other users"
    code = "import sys, apsw, msgspec, memoryd.errors; print(*sys.version_info[:2])"
    done = run_as(STRANGER, code, env=environment(Path("/")))
    if done.stdout.split() != [str(part) for part in sys.version_info[:2]]:
        return f"needs memoryd to run with {PYTHON} as another user"
    return ""
