"""The machine: engine, kernel, clock, limits, and what could give the daemon's memory away."""

import os
import resource
import socket
import sys
from pathlib import Path

import apsw

from bxctl.doctor.finding import Finding, Scene, fail, ok, skip, some, warn
from memoryd import clock, db, redact
from memoryd.errors import ConfigError

_FILES = 1_024
_LAST_YEAR = 4_102_444_800_000
"""2100 in ms: a clock beyond it is not set."""
_BUILT = 1_767_225_600_000
"""2026 in ms: a clock before it is not set."""
_AHEAD_MS = 60_000
_SO_PEERPIDFD = 77


def engine(scene: Scene) -> Finding:
    """Look at Python, SQLite, full-text search and its secure deletion (D1)."""
    python = ".".join(map(str, sys.version_info[:3]))
    try:
        db.check_engine()
        connection = apsw.Connection(":memory:")
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
        connection.execute("INSERT INTO t(t, rank) VALUES ('secure-delete', 1)")
        connection.close()
    except ConfigError as error:
        return fail(error.message, error.remedy)
    except apsw.Error:
        return fail("this SQLite does not delete words securely", "install apsw from PyPI")
    return ok(f"Python {python}, SQLite {apsw.sqlite_lib_version()} with FTS5 and secure deletion")


def peers(scene: Scene) -> Finding:
    """Look whether the kernel tells who connects (D10)."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            ours.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:
            return fail("the kernel does not tell who connects", "use Linux: sockets check the uid")
        try:
            handle = ours.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, 4)
        except OSError:
            return warn(
                "the kernel tells the uid of a peer, but has no handle on its process",
                "Linux 6.5 has; process ids in reads.jsonl may be of a later process",
            )
        os.close(int.from_bytes(handle, sys.byteorder))
    return ok("the kernel tells the uid of each peer")


def time(scene: Scene) -> Finding:
    """Look whether the clock is set, and has not gone back behind what is written (D12)."""
    now = clock.now_ms()
    if not _BUILT <= now < _LAST_YEAR:
        return fail(f"the clock says {clock.rfc3339(now)[:10]}", "set the clock")
    ahead = [
        path.name
        for path in (scene.home / name for name in ("reads.jsonl", "memoryd.lock", "key"))
        if path.exists() and path.stat().st_mtime_ns // 1_000_000 > now + _AHEAD_MS
    ]
    if ahead:
        return warn(
            f"{some(ahead)} was written later than now: the clock has gone back",
            "look at the clock; labels and order do not depend on it, ages and expiry do",
        )
    return ok(f"it is {clock.rfc3339(now)}")


def limits(scene: Scene) -> Finding:
    """Look at open files, and at how many folders can be watched (D13)."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if scene.process is not None:
        files = _limit(scene.process, "Max open files", files)
    if 0 <= files < _FILES:
        return warn(
            f"{files} files can be open at once", "raise `ulimit -n` (LimitNOFILE=) to 1024 or more"
        )
    watches = _number(scene.proc / "sys/fs/inotify/max_user_watches")
    folders = _folders(scene)
    if watches is not None and folders * 2 > watches:
        return warn(
            f"{folders:,} folders are to be watched, of {watches:,} that the kernel allows",
            "raise fs.inotify.max_user_watches; without it changes are found by looking",
        )
    allowed = f"{files:,}" if files >= 0 else "any number of"
    return ok(f"{allowed} open files, {folders:,} folders to watch")


def privacy(scene: Scene) -> Finding:
    """Look at the daemon's umask and core files, and for secrets in its environment (D15)."""
    if scene.process is None:
        return skip(scene.down)
    try:
        told = (scene.process / "status").read_text()
        environ = (scene.process / "environ").read_bytes()
        argv = (scene.process / "cmdline").read_bytes()
    except OSError as error:
        return skip(f"the process cannot be looked at: {error.strerror}")
    umask = next((line.split()[1] for line in told.splitlines() if line.startswith("Umask:")), "")
    if umask and int(umask, 8) & 0o077 != 0o077:
        return fail(f"the daemon's umask is {umask}", "restart memoryd; it sets 0077 itself")
    if _limit(scene.process, "Max core file size", 0) != 0:
        return fail(
            "a core file of the daemon could be written", "restart memoryd; it forbids them"
        )
    names = [
        entry.partition("=")[0]
        for entry in environ.decode(errors="replace").split("\0")
        if entry and redact.secrets(entry) != entry
    ]
    if names:
        return warn(
            f"the daemon's environment holds what looks like a secret: {some(sorted(names))}",
            "start memoryd without it, for instance by systemd",
        )
    words = argv.decode(errors="replace").replace("\0", " ")
    if redact.secrets(words) != words:
        return warn("the daemon's command line holds what looks like a secret", "start it without")
    return ok("umask 0077, no core files, no secret in its environment")


def swap(scene: Scene) -> Finding:
    """Tell whether memory can be written to a disk (D16)."""
    try:
        used = [line.split()[0] for line in (scene.proc / "swaps").read_text().splitlines()[1:]]
    except OSError:
        return skip("the kernel does not tell of swap")
    disks = [name for name in used if "zram" not in name]
    return ok(
        f"swap on {some(disks)} may hold what was read; encrypt it"
        if disks
        else "no swap on a disk"
    )


def _limit(process: Path, name: str, otherwise: int) -> int:
    """Return a soft limit of a process; -1 for none."""
    try:
        lines = (process / "limits").read_text().splitlines()
    except OSError:
        return otherwise
    for line in lines:
        if line.startswith(name):
            soft = line[len(name) :].split()[0]
            return -1 if soft == "unlimited" else int(soft)
    return otherwise


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _folders(scene: Scene) -> int:
    """Return how many folders the daemon watches: those of logs and of notes."""
    if scene.settings is None:
        return 0
    tops = [*(root.path for root in scene.settings.roots), scene.home / "notes"]
    return sum(1 for top in tops for _ in os.walk(top))
