"""The state folder: owners and modes, its file system, the sockets, and what lies among the notes."""

import os
import shutil
import socket
import stat
from pathlib import Path

from bxctl.doctor.finding import Finding, Scene, fail, ok, skip, some, warn
from memoryd import paths, state
from memoryd.config import Socket
from memoryd.errors import ConfigError, MemorydError, NotFound
from memoryd.notes import names
from memoryd.notes.store import Store

_ELSEWHERE = frozenset(
    ("9p", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "nfs", "nfs4", "smb3", "smbfs")
)
"""File systems where locks or renames are not what SQLite and the journal need."""


def modes(scene: Scene) -> Finding:
    """Look at owners, modes, room and file systems (D2)."""
    if not scene.home.is_dir():
        return skip(f"{scene.home} is not there yet: memoryd makes it")
    strange, open_to_others = _wrong(scene)
    if strange:
        return fail(f"not yours: {some(strange)}", "give them back: `chown -R` to your user")
    if open_to_others:
        remedy = f"close them: `chmod -R go= {scene.home}`"
        return fail(f"others may read or write {some(open_to_others)}", remedy)
    notes = scene.home / "notes"
    if notes.exists() and notes.stat().st_dev != scene.home.stat().st_dev:
        return fail("notes/ lies on another file system than the journal", "move it back")
    kind = _file_system(scene.home)
    if kind in _ELSEWHERE:
        return warn(f"the state lies on {kind}", "set MEMORYD_HOME to a folder on a local disk")
    index = scene.home / "index" / "memory.sqlite3"
    size = index.stat().st_size if index.exists() else 0
    free = shutil.disk_usage(scene.home).free
    if free < 2 * size:
        return warn(
            f"{free >> 20} MiB are free, and the index has {size >> 20}",
            "free some space: a rebuild writes a second index beside the first",
        )
    return ok(f"{scene.home} is yours alone, {free >> 30} GiB free on {kind or 'its disk'}")


def _wrong(scene: Scene) -> tuple[list[str], list[str]]:
    """Return what belongs to others, and what others may get at; a socket for another uid may be wider."""
    wider = _wider(scene)
    strange, open_to_others = [], []
    for top, folders, files in os.walk(scene.home):
        for path in (Path(top), *(Path(top, name) for name in files)):
            try:
                found = path.lstat()
            except OSError:
                continue
            if found.st_uid != os.geteuid():
                strange.append(str(path))
            elif found.st_mode & wider.get(path, 0o077) and not stat.S_ISLNK(found.st_mode):
                open_to_others.append(str(path))
        folders.sort()
    return strange, open_to_others


def _wider(scene: Scene) -> dict[Path, int]:
    """Return which bits are wrong for the sockets that a group may use, and for their folders."""
    found: dict[Path, int] = {}
    for setting in scene.loaded.config.socket if scene.loaded else ():
        if setting.group is not None:
            path = _path(scene, setting)
            found |= {path: 0o007, path.parent: 0o067}
            found |= {above: 0o067 for above in path.parents if above.is_relative_to(scene.home)}
    return found


def sockets(scene: Scene) -> Finding:
    """Look whether each socket is there, takes connections, and belongs to us (D4)."""
    if scene.loaded is None:
        return skip("the configuration cannot be read")
    held = _holder(scene.home)
    try:
        places = [_path(scene, setting) for setting in scene.loaded.config.socket]
    except ConfigError as error:
        return fail(error.message, error.remedy)
    dead = [path for path in places if not _answers(path)]
    if not dead:
        return ok(
            f"{len(places)} {'socket takes' if len(places) == 1 else 'sockets take'} connections"
        )
    names_of = some([str(path) for path in dead])
    if held is None:
        return fail(f"memoryd is not running ({names_of})", "start it: `memoryd`")
    return fail(
        f"process {held} runs, and nobody answers at {names_of}",
        "restart memoryd: its sockets were taken away, or are those of another configuration",
    )


def _path(scene: Scene, setting: Socket) -> Path:
    if setting.path is not None:
        return paths.checked_socket(Path(setting.path))
    return paths.socket_path(scene.env, setting.name)


def _answers(path: Path) -> bool:
    """Say whether somebody listens at `path`, and it is we."""
    try:
        if path.lstat().st_uid != os.geteuid():
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(2.0)
            probe.connect(str(path))
    except OSError:
        return False
    return True


def _holder(home: Path) -> str | None:
    """Return the process id that the lock's file names, if that process holds the lock (locks are not taken)."""
    lock = home / state.LOCK
    try:
        inode, said = lock.stat().st_ino, lock.read_text().strip()
        locks = Path("/proc/locks").read_text()
    except OSError:
        return None
    return (said or "?") if f":{inode} " in locks else None


def notes(scene: Scene) -> Finding:
    """Look for links, foreign files and other oddities among the notes (D9)."""
    if scene.settings is None:
        return skip("there is no state yet")
    classes = scene.settings.classes
    try:
        store = Store(scene.home / "notes", classes, make=False)
    except NotFound:
        return skip("there are no notes yet")
    except MemorydError as error:
        return fail(error.message, error.remedy or "move it away")
    try:
        odd = [names.stored(classes, found.place) for found in store.notes() if found.odd]
        count = sum(not found.odd for found in store.notes())
    finally:
        store.close()
    if odd:
        return fail(f"no notes of yours: {some(odd)}", "look at them and move them out of notes/")
    return ok(f"{count:,} notes, and nothing else among them")


def _file_system(folder: Path) -> str:
    """Return the type of the file system that holds `folder` (proc_pid_mountinfo(5)); "" if untold."""
    best, kind = -1, ""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        left, _, right = line.partition(" - ")
        mount = left.split()[4].encode().decode("unicode_escape", "replace")
        if folder.resolve().is_relative_to(mount) and len(mount) >= best:
            best, kind = len(mount), right.split()[0]
    return kind
