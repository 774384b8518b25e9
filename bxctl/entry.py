"""Where `bxctl` begins: a harness's hook goes its own, shorter way; everything else is `bxctl.main`.

In: the command-line words. Out: what the chosen way does. A hook may cost 30 ms more than starting Python, and
the modules of `bxctl.main` alone cost more than that.
"""

import sys


def main() -> None:
    """Run the command that the process was started with, and exit."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and "--help" not in words:
        from bxctl import hook

        hook.main(words[1:])
    from bxctl.main import main as run

    run()
