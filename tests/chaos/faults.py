"""Part 1: reads, writes and syncs of SQLite that fail while an index follows changing logs.

A round: logs change, a fault is armed, the index catches up (or is replaced by a rebuilt one), the disk is well
again. Whatever failed, the index then catches up to what the oracle says, and its file is sound.
"""

from memoryd.errors import MemorydError
from memoryd.index import Index, catch_up, live, schema
from tests.chaos.disk import FAULTS, Faults, failing
from tests.chaos.ground import Ground, Violation, room
from tests.support.indexing import dumped, publish


class Clock:
    """Time that goes on only when it is told to: waiting costs nothing."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def play(seed: int, number: int, *, small: bool = False) -> int:
    """Play one round and return how many faults fired. Raises: Violation."""
    clock, real = Clock(), live.monotonic
    live.monotonic = clock
    try:
        with room("faults", seed, number) as ground, failing() as faults:
            return _play(ground, faults, clock)
    finally:
        live.monotonic = real


def _play(ground: Ground, faults: Faults, clock: Clock) -> int:
    rng, fired = ground.rng, 0
    index = Index(ground.world.settings())
    try:
        for _ in range(12):
            ground.change(rng.randrange(1, 6))
            fault, sticky = rng.choice([*FAULTS]), rng.random() < 0.4
            faults.arm(fault, rng.randrange(1, 30), sticky=sticky)
            ground.note(f"{fault} {faults.left} {'for good' if sticky else 'once'}")
            rebuilding = rng.random() < 0.2
            try:
                if rebuilding:
                    publish(index, index.settings)
                index.sweep()
                catch_up(index)
            except MemorydError as error:
                ground.note(error.code)
            faults.rest()
            fired += faults.fired
            if faults.fired:
                _distrust(ground, index)
            index = _well_again(ground, index, clock)
    finally:
        index.close()
    return fired


def _distrust(ground: Ground, index: Index) -> None:
    """Do as the daemon does after a fault: a short read is a lie, and what was made of it may be in the file.

    An index that is set aside takes with it what it alone knew: the labels of logs that were rewritten
    since it was last read.
    """
    if index._following is not None:
        try:
            schema.check_health(index._following.connection, 4, words=True)
        except MemorydError:
            index.distrust()
    if not index.ready:
        ground.forget_peaks()


def _well_again(ground: Ground, index: Index, clock: Clock) -> Index:
    """Give the index some time on a good disk, and hold it against the oracle."""
    for _ in range(3):
        clock.now += 100.0
        if not index.ready:
            publish(index, index.settings)
        index.sweep()
        if index._following is not None:
            index._following.pending.faults.clear()
        catch_up(index)
        if index.ready and index.fault == "":
            break
    if not index.ready or index.status().fault or index.status().faults:
        raise Violation(f"not well again: {index.why} {index.status()}")
    ground.compare(dumped(index))
    ground.private()
    schema.check_health(index._following.connection, 4, words=True)
    if ground.rng.random() < 0.2:
        index.close()
        index = Index(index.settings)
        ground.note("restart")
    return index
