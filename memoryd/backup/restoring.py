"""An empty state folder filled from a backup: whole, or not at all.

In: a backup, the path of a state folder that is absent or empty, and of the configuration. Out: the state folder
as it was. Every file is held against the manifest before anything is written, and again while it is copied; the
copy is made beside the state folder and takes its name in one step.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from memoryd import state
from memoryd.backup import manifest
from memoryd.backup.manifest import CONFIG, HOME, Manifest
from memoryd.backup.taking import failed
from memoryd.errors import BadRequest, Conflict, IOFailed
from memoryd.lessons import store
from memoryd.migrations import newer
from memoryd.points import reached


def restore(folder: Path, home: Path, config: Path | None) -> tuple[Manifest, bool]:
    """Fill `home` from the backup in `folder`; return its manifest and whether `config` was written.

    A configuration that is there stays. Raises: Busy while memoryd runs on `home`, Conflict when something lies
    there, BadRequest for what is no folder or a mount point, IOFailed naming a file of the backup that is missing
    or damaged, ConfigError for a newer one, DiskFull.
    """
    _check_empty(home)
    found = manifest.read(folder)
    if found.lessons > store.latest():
        raise newer(found.lessons, store.latest())
    try:
        _check_files(folder, found)
        home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged = _staged(folder, home, found)
        reached("restore: copied")
        try:
            staged.rename(home)
        except OSError:
            shutil.rmtree(staged, ignore_errors=True)
            raise
        manifest.sync_folder(home.parent)
        reached("restore: in place")
        return found, _configured(folder, found, config)
    except OSError as error:
        raise failed(error) from error


def _check_empty(home: Path) -> None:
    if (home / state.LOCK).exists():
        with state.held(home):
            pass
    if home.is_symlink() or (home.exists() and not home.is_dir()):
        raise BadRequest(f"{home} is no folder", remedy="set MEMORYD_HOME to a new folder")
    if home.is_mount():
        raise BadRequest(
            f"{home} is a mount point, which no folder can take the place of",
            remedy="set MEMORYD_HOME to a folder below it, for the daemon too",
        )
    if home.is_dir() and any(home.iterdir()):
        raise Conflict(
            f"{home} is not empty; nothing was restored",
            remedy="move it away, or set MEMORYD_HOME to a new folder",
        )


def _check_files(folder: Path, found: Manifest) -> None:
    """Hold every file against the manifest. Raises: IOFailed naming the first that differs, OSError."""
    there = set(manifest.files_below(folder))
    for name, entry in found.files.items():
        if name not in there:
            raise IOFailed(
                f"{name} of the backup is missing; nothing was restored", remedy=manifest.REMEDY
            )
        if not entry.holds(manifest.hashed(folder / name)):
            raise manifest.damaged(name)
        if name != CONFIG and not name.startswith(f"{HOME}/"):
            raise manifest.damaged(manifest.FILE)


def _staged(folder: Path, home: Path, found: Manifest) -> Path:
    """Return a copy beside `home`, on the disk; what an earlier try left there goes first."""
    staged = home.with_name(f".{home.name}.restoring")
    if staged.is_symlink():
        raise BadRequest(f"{staged} is a link", remedy="move it away")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(mode=0o700)
    try:
        for name, entry in found.files.items():
            if name == CONFIG:
                continue
            target = staged / name.removeprefix(f"{HOME}/")
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not entry.holds(manifest.put(target, _content(folder / name), entry.mtime_ns)):
                raise manifest.damaged(name)
        manifest.sync_folders(staged)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return staged


def _content(path: Path) -> Iterator[bytes]:
    handle = manifest.opened(path)
    try:
        yield from manifest.pieces(handle)
    finally:
        os.close(handle)


def _configured(folder: Path, found: Manifest, config: Path | None) -> bool:
    """Put the configuration where it belongs, if nothing lies there."""
    if CONFIG not in found.files or config is None or config.exists():
        return False
    config.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    manifest.put(config, _content(folder / CONFIG))
    return True
