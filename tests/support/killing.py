"""Processes for kill tests: one that keeps an index, one that opens it from outside.

``python -m tests.support.killing follow FOLDER [POINT [NUMBER]]`` reads what has changed again and again,
telling each round; ``rebuild`` does the same and rebuilds in every round. With POINT it kills itself when that
point is reached for the NUMBERth time. ``look FOLDER`` opens the index read-only again and again, as
`bxctl` does when the daemon is down, and holds it for a moment. All end when their input ends.
"""

import os
import select
import signal
import sys
from pathlib import Path

import apsw

from memoryd import db, points
from memoryd.errors import Conflict, IndexBusy, MemorydError
from memoryd.index import Budget, Index, NoGate, building, opening
from tests.support.indexing import World


def follow(world: World, *, rebuilding: bool) -> None:
    """Keep the index of `world` until the input ends."""
    db.BUSY_MS = 50
    index = Index(world.settings())
    while True:
        if index.ready:
            index.sweep()
            while index.catch_up(Budget(bytes=2_000, seconds=0.0))[1]:
                pass
        if rebuilding or not index.ready:
            settings = world.settings()
            built = building.build(opening.new_temp(settings.path), settings)
            try:
                index.publish(built, NoGate())
            except (IndexBusy, Conflict):
                _say("refused")
        _say("round")
        if _ended():
            index.close()
            return


def look(world: World) -> None:
    """Open, read, hold and close the index until the input ends."""
    path = world.settings().path
    while not _ended():
        try:
            connection = db.reader(path)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM log").fetchall()
            select.select([], [], [], 0.002)
            connection.close()
        except (apsw.Error, MemorydError) as error:  # whoever looks from outside may be turned away
            _say(type(error).__name__)


def _say(what: str) -> None:
    """Tell the test, which waits for it."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _ended() -> bool:
    readable, _, _ = select.select([0], [], [], 0)
    return bool(readable) and os.read(0, 1) == b""


def _kill_at(point: str, number: int) -> None:
    left = [number]

    def observe(reached: str) -> None:
        left[0] -= reached == point
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    points.observe(observe)


def main(job: str, folder: str, toml: str, point: str = "", number: str = "1") -> None:
    """Do the job that the command line names."""
    if point:
        _kill_at(point, int(number))
    world = World(Path(folder), toml)
    if job == "look":
        look(world)
    else:
        follow(world, rebuilding=job == "rebuild")


if __name__ == "__main__":
    main(*sys.argv[1:])
