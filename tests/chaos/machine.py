"""Part 4: Hypothesis plays a daemon's life step by step, and shrinks what goes wrong to its shortest form.

The rules are what happens to logs and to the one who indexes them; after each step that reads, the index is
what the oracle says. A failing run prints its steps as a program.
"""

import random
import tempfile
from contextlib import suppress
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memoryd import db
from memoryd.errors import Conflict, NotFound
from memoryd.index import Budget, Index, Wanted, catch_up
from memoryd.index.search import Reader
from tests.chaos import oracle
from tests.chaos.field import CANARY, Field
from tests.chaos.ground import Ground, Violation
from tests.support.indexing import dumped, publish

SEEDS = st.integers(0, 1 << 30)
FIELDS = st.sampled_from([0, 1])


class Life(RuleBasedStateMachine):
    """Logs, an index over them, and what the index must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="md-")
        self.ground = Ground(Path(self.folder.name), random.Random(0))
        self.index = Index(self.ground.world.settings())
        self.settled = True

    def teardown(self) -> None:
        """Close and remove everything."""
        self.index.close()
        self.folder.cleanup()

    def _do(self, number: int, seed: int, act: str) -> None:
        field: Field = self.ground.fields[number]
        field.rng = random.Random(seed)
        self.settled = False
        paths = sorted(field.root.rglob("*.jsonl"))
        if act == "begin" or not paths:
            field.begin()
        else:
            getattr(field, act)(field.rng.choice(paths))

    @rule(number=FIELDS, seed=SEEDS)
    def begin(self, number: int, seed: int) -> None:
        """A session begins."""
        self._do(number, seed, "begin")

    @rule(
        number=FIELDS,
        seed=SEEDS,
        act=st.sampled_from(["append", "append", "cut", "blank", "nul", "garbage"]),
    )
    def grow(self, number: int, seed: int, act: str) -> None:
        """A log grows, well or badly."""
        self._do(number, seed, act)

    @rule(
        number=FIELDS,
        seed=SEEDS,
        act=st.sampled_from(["truncate", "rewrite", "replace", "rotate", "delete"]),
    )
    def change(self, number: int, seed: int, act: str) -> None:
        """A log is not what it was."""
        self._do(number, seed, act)

    @rule(size=st.integers(1, 5_000))
    def read_some(self, size: int) -> None:
        """The index reads a little."""
        self.index.sweep()
        self.index.catch_up(Budget(bytes=size, seconds=0.0))

    @rule()
    def read_all(self) -> None:
        """The index reads everything."""
        catch_up(self.index)
        self.settled = True

    @rule()
    def restart(self) -> None:
        """The process ends and another starts."""
        self.index.close()
        self.index = Index(self.ground.world.settings())

    @rule()
    def rebuild(self) -> None:
        """The index is made again and takes the old one's place, unless it has lost half the rows."""
        with suppress(Conflict):
            publish(self.index, self.index.settings)

    @rule(seed=SEEDS, back=st.booleans())
    def forget(self, seed: int, back: bool) -> None:
        """The owner has a session forgotten, and may take that back."""
        catch_up(self.index)
        logs = sorted(known.session for known in self.index.logs() if known.state == "live")
        if logs:
            wanted = Wanted(session=random.Random(seed).choice(logs))
            done = self.index.forget(wanted, dry=False, delete_logs=False, hooks=())
            if back:
                with suppress(NotFound):  # what was forgotten already has an older name
                    self.index.remember(done.act)
        catch_up(self.index)
        self.settled = True

    @rule(most=st.integers(0, oracle.TOP))
    def configure(self, most: int) -> None:
        """The owner changes what may be indexed; another epoch is rebuilt before it is served."""
        self.index.close()
        old = f'max_class = "{oracle.CLASSES[self.ground.most]}"'
        new = f'max_class = "{oracle.CLASSES[most]}"'
        self.ground.toml = self.ground.world.toml = self.ground.toml.replace(old, new)
        self.ground.most = most
        self.index = Index(self.ground.world.settings())
        if not self.index.ready:
            publish(self.index, self.index.settings)

    @rule(word=st.sampled_from(["amber", "cedar", CANARY]), level=st.integers(0, oracle.TOP))
    def ask(self, word: str, level: int) -> None:
        """Somebody with a clearance looks for a word."""
        settings = self.index.settings
        connection = db.reader(settings.path)
        try:
            reader = Reader(connection, settings.ids, settings.classes)
            rows = [
                str(text)
                for c in range(level + 1)
                for (text,) in reader.connection.execute(
                    f"SELECT text FROM ft_{c} WHERE ft_{c} MATCH ?", (f'"{word}"',)
                )
            ]
        finally:
            connection.close()
        for text in rows:
            sealed = text.partition("seal")[2][:1]
            if CANARY in text or (sealed and int(sealed) > level):
                raise Violation(f"a table up to {level} holds {text!r}")

    @invariant()
    def holds(self) -> None:
        """What was read to its end is what the oracle says."""
        if self.settled and self.index.ready:
            catch_up(self.index)
            self.ground.compare(dumped(self.index))
            self.ground.private()


def play(seed: int, number: int, *, small: bool = False) -> int:
    """Play some lives of up to 30 steps and return how many. Raises: Violation."""
    examples = 2 if small else 5
    bounded = settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        database=None,
        print_blob=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seeded = hypothesis.seed(seed * 1_000_003 + number)(Life)
    try:
        run_state_machine_as_test(seeded, settings=bounded)
    except Exception as error:
        told = "\n".join(getattr(error, "__notes__", []))
        raise Violation(f"{error!r}\n{told}") from error
    return examples
