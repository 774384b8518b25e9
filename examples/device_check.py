"""Does memoryd keep its promises on this machine? A disposable store, a real daemon, real signals.

In: nothing. Out: one line a check, ``ok|fail|skip NAME: detail``; exit code 0, or 1 when one failed,
or 2 when the checks could not be run. Nothing of the owner's is read: HOME is a folder that is deleted
at the end. The daemon runs under the locale C and umask 000, where careless programs leak. What needs
another user, or a disk of its own, is skipped where that cannot be had.
"""

import socket
import subprocess
import sys
from collections.abc import Callable

from device import hostile, lasting
from device.store import Failed, Skipped
from disposable import Daemon, NotStarted, throwaway_home

from memoryd.errors import MemorydError

CONFIG = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
[[socket]]
name = "agent"
clearance = "internal"
tools = ["recall", "memory_view", "memory_create"]
[[socket]]
name = "loop"
clearance = "private"
tools = ["recall", "memory_view", "memory_create"]
"""

CHECKS: tuple[tuple[str, Callable[[Daemon], str]], ...] = (
    ("C1 start", lasting.c1_start),
    ("C2 append", lasting.c2_searchable),
    ("C3 kill in edit", hostile.c3_kill_in_edit),
    ("C4 kill in rebuild", lasting.c4_kill_in_rebuild),
    ("C5 full disk", hostile.c5_full_disk),
    ("C6 another uid", hostile.c6_another_uid),
    ("C7 links", hostile.c7_links),
    ("C8 leak probe", hostile.c8_leak_probe),
    ("C9 rebuild", lasting.c9_rebuild_equal),
    ("C10 rewritten logs", hostile.c10_rewritten),
    ("C12 many clients", hostile.c12_many_clients),
    ("C14 modes", lasting.c14_modes),
    ("C15 tainted session", hostile.c15_tainted),
    ("C11 stop", lasting.c11_stop),
)
"""C13, a clock that jumps, is not tried here: this machine's clock is not ours to set. A test moves its own."""


def main() -> int:
    """Run every check on one store and return the exit code."""
    if not hasattr(socket, "AF_UNIX"):
        print("fail device-check: this system has no Unix sockets")
        return 2
    failed = 0
    with throwaway_home("memoryd-check-") as home, Daemon(home, CONFIG, user_home=home) as daemon:
        daemon.env |= {"LC_ALL": "C"}
        daemon.umask = 0
        for name, check in CHECKS:
            try:
                print(f"ok {name}: {check(daemon)}", flush=True)
            except Skipped as reason:
                print(f"skip {name}: {reason}", flush=True)
            except (Failed, MemorydError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"fail {name}: {error}", flush=True)
            except NotStarted as error:
                print(f"fail {name}: memoryd does not start, the rest is not tried\n{error}")
                return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
