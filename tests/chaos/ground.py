"""The ground that every part of chaos stands on: a home with two fields of logs, and what must hold of it.

In: a seed. Out: `Ground`, whose fields change, and `Violation` when memoryd and the oracle disagree. Everything
drawn comes from the seed, so that a round that failed is the same round again.
"""

import random
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos import oracle
from tests.chaos.field import CANARY, CONFIG, UNIQUE, Field
from tests.support.indexing import World


class Violation(AssertionError):
    """A promise that did not hold; its words say where."""


def seeded(seed: int, part: str, number: int) -> random.Random:
    """Return the random source of one round: the same for the same three."""
    return random.Random(f"{seed}/{part}/{number}")


class Ground:
    """Two fields of logs in a home of their own. `steps` tells what was done, for whoever repeats it."""

    def __init__(self, home: Path, rng: random.Random, *, vanished: str = "drop") -> None:
        self.home, self.rng = home, rng
        self.state, self.logs = home / "state", home / "logs"
        self.most = rng.choice([2, 2, 3, 1])
        toml = CONFIG.replace("{vanished}", vanished)
        self.toml = toml.replace("{most}", oracle.CLASSES[self.most])
        self.world = World(home, self.toml)
        deletes = vanished == "drop"
        self.fields = [
            Field("native", self.state / "sessions", self._source(), deletes=deletes),
            Field("claude-code", self.logs, self._source(), deletes=deletes),
        ]
        self.steps: list[str] = []

    def _source(self) -> random.Random:
        return random.Random(self.rng.random())

    def config(self) -> str:
        """Return the configuration of a daemon here."""
        return self.toml.replace("{logs}", str(self.logs))

    def change(self, times: int = 1) -> None:
        """Do so many things to logs of either field."""
        for _ in range(times):
            self.note(self.rng.choice(self.fields).change())

    def note(self, step: str) -> None:
        """Remember a step."""
        self.steps.append(step)

    def expected(self) -> list[bytes]:
        """Return what `dump` must give now, notes aside. Raises: Violation where a label fell."""
        logs = {place: data for field in self.fields for place, data in field.logs().items()}
        overrides = self.state / "overrides.jsonl"
        floors, graves = oracle.floors(overrides), oracle.graves(overrides)
        lines, ends = oracle.dump(logs, floors, self.most, graves)
        for field in self.fields:
            for place, peak in field.peaks.items():
                if place in ends and not oracle.covers(ends[place], peak):
                    raise Violation(f"{place[2]} fell from {peak} to {ends[place]}")
            field.peaks = {place: ends[place] for place in field.logs() if place in ends}
        return lines

    def forget_peaks(self) -> None:
        """Let labels fall: what knew of them is gone."""
        for field in self.fields:
            field.peaks.clear()

    def compare(self, dumped: list[bytes]) -> None:
        """Hold a dump against the oracle. Raises: Violation naming the first line that differs."""
        expected = self.expected()
        told = [line for line in dumped if b'"source":"notes"' not in line]
        if told == expected:
            return
        mine, theirs = set(expected), set(told)
        missing, more = sorted(mine - theirs)[:2], sorted(theirs - mine)[:2]
        raise Violation(f"dump is not what the logs say; missing {missing}, more {more}")

    def forgotten_words(self) -> list[bytes]:
        """Return a word of each forgotten row that stands in no other row."""
        graves = oracle.graves(self.state / "overrides.jsonl")
        found: list[bytes] = []
        for field in self.fields:
            for place, data in field.logs().items():
                rows = oracle.read(field.source, place[2], data, (0, False), oracle.TOP).rows
                gone = [row for row in rows if oracle.is_forgotten(graves.get(place, []), row)]
                found += [match[0].encode() for row in gone if (match := UNIQUE.search(row.text))]
        return found

    def private(self, *words: bytes) -> None:
        """Look at modes and at every byte under the state, the logs themselves aside.

        Raises: Violation for what others may read, and for a canary or one of `words` in a file.
        """
        for path in (self.state, *sorted(self.state.rglob("*"))):
            try:
                status = path.lstat()
                mode = stat.S_IMODE(status.st_mode)
                if mode & 0o077 and not stat.S_ISLNK(status.st_mode):
                    raise Violation(f"{path.relative_to(self.home)} has mode {mode:04o}")
                ours = stat.S_ISREG(status.st_mode) and self.fields[0].root not in path.parents
                data = path.read_bytes() if ours else b""
                for word in (CANARY.encode(), *words):
                    if word in data:
                        raise Violation(f"{word!r} stands in {path.relative_to(self.home)}")
            except FileNotFoundError:
                continue  # a sidecar that went while we looked


@contextmanager
def room(part: str, seed: int, number: int) -> Iterator[Ground]:
    """Give a round its ground, in a folder of its own; of one that fails the folder is kept.

    Raises: Violation, with the last steps and the folder, for whatever goes wrong inside.
    """
    rng = seeded(seed, part, number)
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        ground = Ground(Path(folder), rng, vanished=rng.choice(["drop", "drop", "keep"]))
        try:
            yield ground
        except Exception as error:
            kept = Path(tempfile.mkdtemp(prefix=f"memoryd-chaos-{part}-{seed}-{number}-"))
            shutil.copytree(folder, kept / "home", ignore=_sockets, symlinks=True)
            raise Violation(f"{error!r}; last steps: {ground.steps[-12:]}; kept: {kept}") from error


def _sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if stat.S_ISSOCK((Path(folder) / name).lstat().st_mode)]
