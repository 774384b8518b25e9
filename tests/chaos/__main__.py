"""Run the parts of chaos: ``python -m tests.chaos [--seed N] [--seconds N] [--part NAME] [--round N]``.

In: a seed (else a random one, printed), and how long. Out: a line a part: rounds, what was done in them,
violations; exit code 1 if there were any. Each violation prints the command that plays its round again.
"""

import argparse
import os
import secrets
import sys
import tempfile
from collections.abc import Callable

from memoryd.clock import monotonic
from tests.chaos import faults, fuzz, kills, limits, machine, points
from tests.chaos.ground import Violation

Play = Callable[..., int]
PARTS: dict[str, tuple[Play, float, str]] = {
    "faults": (faults.play, 0.15, "faults fired"),
    "points": (points.play, 0.2, "processes killed or cut off"),
    "kills": (kills.play, 0.3, "daemons killed"),
    "machine": (machine.play, 0.15, "lives of up to 30 steps"),
    "fuzz": (fuzz.play, 0.1, "messages"),
    "limits": (limits.play, 0.1, "limits"),
}
"""A part: what plays a round, its share of the time, and what its rounds count."""
SECONDS = 240.0


def main(arguments: list[str] | None = None) -> int:
    """Play what the command line says and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all parts together")
    parser.add_argument("--part", choices=[*PARTS], action="append", help="only this one")
    parser.add_argument("--round", type=int, default=None, help="only this round")
    parser.add_argument("--small", action="store_true", help="one small round of each part")
    given = parser.parse_args(arguments)
    seed = secrets.randbelow(1 << 31) if given.seed is None else given.seed
    print(f"chaos: seed {seed}", flush=True)
    chosen = given.part or [*PARTS]
    whole = sum(PARTS[name][1] for name in chosen)
    violations = 0
    for name in chosen:
        rounds = [given.round] if given.round is not None else [0] if given.small else None
        seconds = given.seconds * PARTS[name][1] / whole
        violations += part(name, seed, seconds, rounds, small=given.small)
    print(f"chaos: seed {seed}: {violations} violations", flush=True)
    return 1 if violations else 0


def part(name: str, seed: int, seconds: float, rounds: list[int] | None, *, small: bool) -> int:
    """Play rounds of one part for so long (at least one), or the rounds given; return its violations."""
    play, _, what = PARTS[name]
    ends = monotonic() + seconds
    done = counted = violations = 0
    while done == 0 or (rounds is None and monotonic() < ends):
        number = done if rounds is None else rounds[0]
        try:
            counted += play(seed, number, small=small)
        except Violation as error:
            violations += 1
            print(f"chaos: VIOLATION in {name}, seed {seed}, round {number}: {error}", flush=True)
            print(f"chaos: again: make chaos SEED={seed} PART={name} ROUND={number}", flush=True)
        done += 1
    print(
        f"chaos: {name}: {done} rounds, {counted} {what}, {violations} violations, seed {seed}",
        flush=True,
    )
    return violations


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="md-chaos-") as home:
        os.environ["HOME"] = home
        sys.exit(main())
