"""The daemon, or its rebuild's process, that kills itself when a named point is reached.

``python -m tests.chaos.dying POINT NUMBER`` runs memoryd until POINT is reached for the NUMBERth time, in itself
or in the process that it starts for a rebuild.
"""

import os
import runpy
import signal
import sys

from memoryd import points
from memoryd.index import process

ME = "tests.chaos.dying"


def dies_at(point: str, number: int) -> None:
    """Kill this process when `point` is reached for the `number`th time."""
    left = [number]

    def reached(name: str) -> None:
        left[0] -= name == point
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    points.observe(reached)


def main(point: str, number: str, program: str = "memoryd") -> None:
    """Run the daemon, or as `memoryd.index` the process of a rebuild."""
    dies_at(point, int(number))
    command = (sys.executable, "-m", ME, point, number, "memoryd.index")
    process.Rebuild.__init__.__defaults__ = (command,)
    sys.argv = [program]
    runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
