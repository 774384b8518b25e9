"""`bxctl backup` and `bxctl restore`: a copy of what only memoryd has, and an empty state filled from one.

In: a folder. Out: what was copied or restored. A backup needs no pause of a running daemon; a restore needs
one that is stopped, and a state folder that is empty. Neither asks the daemon anything.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bxctl import output, safe
from bxctl.context import Context
from bxctl.grammar import Argument, Command
from bxctl.layout import Para, Span

if TYPE_CHECKING:
    from memoryd.backup import Manifest

VERSION = 1


def backup(context: Context, *, folder: str) -> int:
    """Copy the state to a new folder. Raises: what the copy met, as an error of memoryd."""
    from importlib.metadata import version

    from memoryd import paths
    from memoryd.backup.taking import Source, take

    os.umask(0o077)
    source = Source(paths.home(context.env), paths.config_path(context.env), version("memoryd"))
    target = Path(folder).absolute()
    found = take(source, target)
    if context.out.json:
        context.out.value("backup", VERSION, _value(target, found))
        return 0
    _show(context, f"{len(found.files):,} files,", f"{found.size:,} bytes are in {target}")
    output.say("it holds what was not forgotten until now; older backups still hold more")
    return 0


def restore(context: Context, *, folder: str) -> int:
    """Fill the empty state folder from a backup. Raises: what stands in the way, as an error of memoryd."""
    from memoryd import paths
    from memoryd.backup import restore as restored

    os.umask(0o077)
    home, config = paths.home(context.env), paths.config_path(context.env)
    found, configured = restored(Path(folder).absolute(), home, config)
    if context.out.json:
        told = {**_value(home, found), "configured": configured}
        context.out.value("restored", VERSION, told)
        return 0
    _show(context, f"{len(found.files):,} files", f"of {found.made} are in {home}")
    if not configured and "memoryd.toml" in found.files:
        output.say("the configuration that is there was left as it is; the backup has its own")
    output.say("start `memoryd`: it builds the index anew from the logs")
    return 0


def _value(where: Path, found: "Manifest") -> dict[str, Any]:
    return {
        "path": str(where),
        "made": found.made,
        "memoryd": found.memoryd,
        "files": len(found.files),
        "bytes": found.size,
    }


def _show(context: Context, head: str, more: str) -> None:
    context.out.show([Para((Span(head, "head"), Span(f" {safe.line(more)}")))])


COMMANDS = (
    Command(
        "backup",
        backup,
        """Copy what only memoryd has into a new folder, while it runs or not.

Notes, their journal, lessons, keys, what you decided about labels and forgetting, kept logs, the read log and
the configuration, each with its hash in manifest.json. Not the index, which is made from the logs, nor the logs
of the harnesses. The folder must be new or empty; it is yours alone, as is each file in it.""",
        (
            ("bxctl backup /mnt/disk/memoryd-2026-11-30", "a copy that `bxctl restore` takes"),
            ("bxctl backup ~/copy --json | jq .bytes", "how much it is"),
        ),
        argument=Argument("FOLDER"),
    ),
    Command(
        "restore",
        restore,
        """Fill an empty state folder from a backup; stop memoryd first.

Each file is held against the backup's own list before anything is written. One that is missing or damaged is
named, and nothing is restored. A configuration that is there stays. What was forgotten when the backup was
taken stays forgotten; what was forgotten after it comes back with it.""",
        (
            ("bxctl restore /mnt/disk/memoryd-2026-11-30", "into the usual place"),
            ("MEMORYD_HOME=/tmp/try bxctl restore ~/copy", "somewhere else, to look at it"),
        ),
        argument=Argument("FOLDER"),
    ),
)
