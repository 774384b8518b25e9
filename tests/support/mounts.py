"""Commands in a mount namespace of their own: small disks and read-only ones, without touching this machine's.

In: shell lines that mount, a command. Out: how the command ended. Root needs only `unshare`; others need user
namespaces, and where those are forbidden the tests are skipped.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def inside(
    mounts: str, command: Sequence[str], env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `command` after the shell lines `mounts`, in a namespace that ends with it."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    shell = ["sh", "-c", f'set -e\n{mounts}\nexec "$@"', "sh"]
    return subprocess.run(
        ["unshare", "--mount", *user, *shell, *command],
        cwd=ROOT,
        env=None if env is None else dict(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@functools.cache
def _can() -> bool:
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        return False
    return inside("mount -t tmpfs -o size=64k tmpfs /mnt", ["true"]).returncode == 0


needs_mounts = pytest.mark.skipif(not _can(), reason="no mount namespace can be made here")
