"""kill -9 at any moment loses no record and leaves no half index (promises P1, P3 and P4; R01, S11, L08).

A process keeps an index while logs grow; it is killed at each named point and at random times, with another
process that opens the index from outside. After every kill the index must open, be whole, and after reading
on hold what a rebuild of the logs holds.
"""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.index import Index, catch_up, schema
from tests.support.indexing import World, dumped
from tests.support.logs import (
    claude_assistant,
    claude_call,
    claude_result,
    claude_user,
    dated,
    encoded,
)

ROOT = Path(__file__).parents[2]
TOML = '[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n'
CATCH_UP = ("catch-up: rows added", "catch-up: progress set", "catch-up: committed")
REBUILD = (
    "rebuild: temp created",
    "rebuild: half built",
    "rebuild: closed",
    "rebuild: synced",
    "swap: drained",
    "swap: alone",
    "swap: old closed",
    "swap: renamed",
    "swap: folder synced",
    "swap: reopened",
)


def talk(number):
    """Return the records of a session whose label rises in the middle, `number` telling it from others."""
    return encoded(*dated(
        claude_user(f"question {number}"),
        claude_call("WebFetch", {"url": f"http://x/{number}"}, f"w{number}"),
        claude_assistant(f"before the result {number}"),
        claude_result(f"w{number}", "text"),
        claude_assistant(f"after the result {number}"),
    ))  # fmt: skip


class Process:
    """A process of `tests.support.killing`; killed at the end, if not before."""

    def __init__(self, job, world, *more):
        command = [sys.executable, "-m", "tests.support.killing", job, str(world.user), TOML, *more]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()

    def round(self):
        """Wait until the process has gone round once more; say whether it is still there."""
        return bool(self.process.stdout.readline())

    def kill_after(self, seconds):
        """Kill the process after a while; an end before that is only right if it killed itself."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.returncode == -signal.SIGKILL, self.process.stderr.read().decode()

    def killed(self):
        """Say whether the process has killed itself."""
        return self.process.wait(180) == -signal.SIGKILL

    def ended(self):
        """Return the exit code of a process that is to end by itself, and what it said of errors."""
        _, said = self.process.communicate(timeout=180)
        return self.process.returncode, said.decode()


@pytest.fixture
def world(user_home):
    world = World(user_home, TOML)
    for number in range(4):
        (world.logs / f"{number}.jsonl").write_bytes(talk(number) * 3)
    return world


def whole(world):
    """Open the index as the next start would; it must be whole and come to what a rebuild makes."""
    index = Index(world.settings())
    try:
        assert index.ready, index.why
        schema.check_health(index._following.connection, 4, words=True)
        catch_up(index)
        assert index.status().fault == ""
        lines = dumped(index)
        assert lines == world.fresh()
        assert len(lines) == len(set(lines))
    finally:
        index.close()
    left = {path.name for path in (world.state / "index").iterdir()}
    assert left == {"memory.sqlite3"}


@pytest.mark.parametrize("number", ["1", "3"])
@pytest.mark.parametrize("point", CATCH_UP)
def test_killed_while_it_catches_up_t34_s11(world, point, number):
    with Process("follow", world, point, number) as process:
        assert process.killed()
    with (world.logs / "1.jsonl").open("ab") as file:
        file.write(talk(9))
    whole(world)


@pytest.mark.parametrize("point", REBUILD)
def test_killed_while_it_rebuilds_and_swaps_r01(world, point):
    whole(world)  # an old index is there, and served
    with (world.logs / "0.jsonl").open("ab") as file:
        file.write(talk(8))
    with Process("rebuild", world, point) as process:
        assert process.killed()
    with (world.logs / "1.jsonl").open("ab") as file:
        file.write(talk(9))
    whole(world)


@pytest.mark.parametrize("point", ["swap: old closed", "swap: renamed", "swap: folder synced"])
def test_killed_around_the_rename_the_index_says_which_one_it_is_r19(world, point):
    whole(world)
    before, path = generation(world), world.settings().path
    inode = path.stat().st_ino
    with Process("rebuild", world, point) as process:
        assert process.killed()
    renamed = path.stat().st_ino != inode
    assert renamed == (point != "swap: old closed")
    assert (generation(world) != before) == renamed
    whole(world)


def generation(world):
    index = Index(world.settings())
    try:
        return index.generation
    finally:
        index.close()


def test_killed_between_a_floor_and_its_rows_t35(world):
    whole(world)
    (world.logs / "2.jsonl").write_bytes(encoded(*dated(claude_user("laundered"))))
    with Process("follow", world, "catch-up: floor written") as process:
        assert process.killed()
    whole(world)
    index = Index(world.settings())
    (line,) = [line for line in dumped(index) if b"laundered" in line]
    index.close()
    assert b'"untrusted":true' in line


@pytest.mark.parametrize("point", ["vanished: written", "vanished: committed"])
def test_killed_while_it_keeps_a_vanished_log(world, point):
    whole(world)
    with Process("follow", world, point, "1" if "written" in point else "2") as process:
        assert process.round()
        (world.logs / "3.jsonl").unlink()
        assert process.killed()
    whole(world)
    index = Index(world.settings())
    assert any(b"question 3" in line for line in dumped(index))
    index.close()


def killed_at_random(world, seed, kills, job):
    """Kill a keeper again and again while logs grow, are cut and rewritten and somebody looks on."""
    rng = random.Random(seed)
    number = 100
    whole(world)
    with Process("look", world):
        for _ in range(kills):
            with Process(job, world) as keeper:
                if rng.random() < 0.7:
                    assert keeper.round(), keeper.ended()
                for _ in range(rng.randrange(1, 6)):
                    number += 1
                    change(world, rng, number)
                keeper.kill_after(rng.random() * 0.2)
    # A rebuild beside which logs were cut or moved may lack half of the rows: it is refused, and kept to be looked at.
    world.settings().path.with_name("memory.sqlite3.rejected").unlink(missing_ok=True)
    whole(world)


def change(world, rng, number):
    """Change one log in a way that a harness, a rotation or a person would."""
    path = world.logs / f"{rng.randrange(5)}.jsonl"
    there = path.read_bytes() if path.exists() else b""
    dice = rng.random()
    if dice < 0.75:
        text = talk(number) * rng.randrange(1, 8)
        with path.open("ab") as file:
            file.write(text[: rng.randrange(len(text))] if rng.random() < 0.3 else text)
    elif dice < 0.85:
        path.write_bytes(there[: rng.randrange(len(there) + 1)])
    elif dice < 0.95:
        path.write_bytes(talk(number))
    elif path.exists():
        Path(path).rename(path.with_name(f"{number}-moved.jsonl"))


@pytest.mark.parametrize("job", ["follow", "rebuild"])
def test_killed_at_random_times_with_somebody_looking_on(world, job):
    killed_at_random(world, random.randrange(1 << 30), 3, job)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["follow", "rebuild"])
def test_killed_at_many_random_times_with_somebody_looking_on(world, job):
    killed_at_random(world, random.randrange(1 << 30), 60, job)


def test_real_logs_grown_in_random_cuts_with_kills_between_hold_what_a_rebuild_holds(world, corpus):
    grown_with_kills(world, corpus, random.randrange(1 << 30))


def grown_with_kills(world, corpus, seed):
    rng = random.Random(seed)
    real = sorted((corpus / "sessions" / "claude").rglob("*.jsonl"))
    real += sorted((corpus / "sessions" / "codex").rglob("*.jsonl"))
    chosen = rng.sample([path for path in real if path.stat().st_size < 400_000], 6)
    wholes = {f"{number}-real.jsonl": path.read_bytes() for number, path in enumerate(chosen)}
    for part in range(4):
        with Process("follow", world) as keeper:
            for name, whole_log in wholes.items():
                path = world.logs / name
                at = path.stat().st_size if path.exists() else 0
                end = len(whole_log) if part == 3 else rng.randrange(at, len(whole_log) + 1)
                with path.open("ab") as file:
                    file.write(whole_log[at:end])
            keeper.kill_after(rng.random() * 0.5)
    whole(world)


def test_a_keeper_that_is_let_go_ends_cleanly_with_nothing_beside_its_index(world):
    with Process("rebuild", world) as process:
        assert process.round()
        assert process.ended() == (0, "")
    assert {path.name for path in (world.state / "index").iterdir()} == {"memory.sqlite3"}
    whole(world)
