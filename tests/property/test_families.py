"""However the files of a linked family appear, with kills in between, the dump is the same."""

import random
import tempfile
from pathlib import Path

import pytest

from memoryd import points
from memoryd.index import Budget, Index, catch_up
from tests.support.families import FAMILIES, from_real, put
from tests.support.indexing import World, dumped

TOML = '[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n'
PERMUTATIONS = 42
"""Of each of the five families: 210."""


class Killed(BaseException):
    """What a kill is to the code it meets."""


class Arrival:
    """A family that arrives file by file, in two pieces each, under an index that follows and is killed."""

    def __init__(self, family, seed):
        self.draw = random.Random(seed)
        self.folder = tempfile.TemporaryDirectory(prefix="md-")
        self.world = World(Path(self.folder.name), TOML)
        self.index = Index(self.world.settings())
        self.pieces = self.cut(family)

    def cut(self, family):
        """Return the pieces of all files in a random order, each file's own in their order."""
        line = [name for name in family for _ in range(self.draw.choice((1, 1, 2)))]
        self.draw.shuffle(line)
        left = dict(family)
        for at, name in enumerate(line):
            whole = left[name]
            cut = self.draw.randrange(len(whole) + 1) if name in line[at + 1 :] else len(whole)
            yield name, whole[:cut]
            left[name] = whole[cut:]

    def run(self):
        """Let everything arrive, and return the dump at the end."""
        for name, piece in self.pieces:
            path = put(self.world.logs, self.world.sessions, name, piece)
            match self.draw.randrange(5):
                case 0:
                    pass  # the next turn sees several files at once
                case 1:
                    self.index.changed([path])
                    self.index.catch_up(Budget(bytes=self.draw.randrange(1, 900), seconds=0.0))
                case 2:
                    self.killed()
                case _:
                    catch_up(self.index)
        catch_up(self.index)
        return dumped(self.index)

    def killed(self):
        """Kill the index at one of the points of a turn, if it gets there, and start it again."""
        left = self.draw.randrange(1, 12)

        def observe(point):
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed(point)

        points.observe(observe)
        try:
            catch_up(self.index)
        except Killed:
            pass
        finally:
            points.observe(None)
        self.index.close()
        self.index = Index(self.world.settings())

    def close(self):
        self.index.close()
        self.folder.cleanup()


def whole(family):
    """Return what a rebuild makes of a family, all of it there at once."""
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        world = World(Path(folder), TOML)
        for name, content in family.items():
            put(world.logs, world.sessions, name, content)
        return world.fresh()


@pytest.mark.parametrize("name", FAMILIES)
def test_any_order_of_a_familys_files_gives_the_same_dump(name):
    family = FAMILIES[name]()
    expected = whole(family)
    assert expected
    for seed in range(PERMUTATIONS):
        arrival = Arrival(family, seed)
        try:
            assert arrival.run() == expected, seed
        finally:
            arrival.close()


@pytest.mark.slow
def test_any_order_of_a_family_made_of_real_logs_gives_the_same_dump(corpus):
    found = [
        p
        for p in sorted((corpus / "sessions" / "claude").rglob("*.jsonl"))
        if 20_000 < p.stat().st_size < 200_000
    ]
    whole_lines = [path.read_bytes().splitlines(keepends=True) for path in found]
    usable = [lines for lines in whole_lines if sum(b'"uuid"' in line for line in lines) > 8]
    assert len(usable) >= 8
    for lines in usable[:12]:
        family = from_real(lines)
        expected = whole(family)
        for seed in range(6):
            arrival = Arrival(family, seed)
            try:
                assert arrival.run() == expected, (list(family), seed)
            finally:
                arrival.close()
