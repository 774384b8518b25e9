"""An index of sessions that are rewritten in any way holds what a rebuild holds, byte for byte (promise P3).

Sessions in documents, in folders of small files and in databases gain messages, lose them, have them changed, are
removed and come back, in any order and with restarts between. Whatever their labels had been, they hold.
"""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.index import Index, catch_up
from memoryd.labels import Label
from tests.support.harnesses import GEMINI, GEMINI_LINES, GOOSE, OPENCODE, OPENCODE_DB, OPENHANDS
from tests.support.indexing import World, bump, dumped

KINDS = {
    "gemini": GEMINI,
    "gemini lines": GEMINI_LINES,
    "opencode": OPENCODE,
    "opencode database": OPENCODE_DB,
    "openhands": OPENHANDS,
    "goose": GOOSE,
}
TOMLS = (
    '[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n',
    '[index]\nmax_class = "internal"\n[[source]]\npath = "{logs}"\n',
)


def entry(kind, number):
    """Return one of a few entries: words, calls whose results raise, and what came in without a call."""
    return [
        [kind.owner("first words")],
        [kind.assistant("other words")],
        kind.call("bash", {"command": "ls"}, "c1", "x"),
        kind.call("bash", {"command": "curl x"}, "c2", "x"),
        kind.call("bash", {"command": "cat /home/ada/.netrc"}, "c3", "x"),
        kind.call("news", {"command": "x"}, "c4", "x"),
        [next(iter(kind.outside.values()))("x")],
    ][number]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 6), st.just(0)),
        st.tuples(st.just("change"), st.integers(0, 6), st.integers(0, 5)),
        st.tuples(st.just("drop"), st.just(0), st.integers(0, 5)),
        st.tuples(st.just("remove"), st.just(0), st.just(0)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
        st.tuples(st.just("read"), st.just(0), st.just(0)),
    ),
    min_size=2,
    max_size=10,
)


class Rewriting:
    """A session that is put down again after each step, and an index that follows it."""

    def __init__(self, kind, toml):
        self.folder = tempfile.TemporaryDirectory(prefix="md-")
        self.world, self.kind = World(Path(self.folder.name), toml), kind
        self.index = Index(self.world.settings())
        self.parts = [[kind.owner("hello")]]
        self.written = 0

    def step(self, do, which, place):
        """Do one step to the session."""
        match do:
            case "add":
                self.parts.append(entry(self.kind, which))
            case "change":
                self.parts[place % len(self.parts)] = entry(self.kind, which)
            case "drop" if len(self.parts) > 1:
                del self.parts[place % len(self.parts)]
            case "restart":
                self.index.close()
                self.index = Index(self.world.settings())
            case "read":
                self.read()
        if do == "remove":
            shutil.rmtree(self.world.logs)
            self.world.logs.mkdir()
        else:
            self.put()

    def put(self):
        """Write the session as it is now, a moment later than before."""
        self.kind.put(self.world.logs, [one for part in self.parts for one in part])
        self.written += 1
        for path in self.world.logs.rglob("*"):
            if path.is_file():
                bump(path, self.written)

    def read(self):
        """Read what there is; no label ever falls."""
        before = self.label()
        catch_up(self.index)
        assert self.label().covers(before)

    def label(self):
        """Return the highest label that a session of this place is held to now."""
        labels = [known.label for known in self.index._following.catalogue.known.values()]
        return labels[0] if labels else Label(0, False)

    def check(self):
        """Hold the index against a rebuild."""
        self.read()
        assert dumped(self.index) == self.world.fresh()

    def close(self):
        """Leave nothing behind."""
        self.index.close()
        self.folder.cleanup()


@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(kind=st.sampled_from(sorted(KINDS)), toml=st.sampled_from(TOMLS), steps=steps)
def test_after_any_steps_the_index_of_rewritten_sessions_is_what_a_rebuild_makes(kind, toml, steps):
    rewriting = Rewriting(KINDS[kind], toml)
    try:
        rewriting.put()
        for step in steps:
            rewriting.step(*step)
        rewriting.check()
    finally:
        rewriting.close()


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(kind=st.sampled_from(sorted(KINDS)), toml=st.sampled_from(TOMLS), steps=steps)
def test_after_any_of_many_steps_rewritten_sessions_are_what_a_rebuild_makes(kind, toml, steps):
    rewritten = test_after_any_steps_the_index_of_rewritten_sessions_is_what_a_rebuild_makes
    rewritten.hypothesis.inner_test(kind, toml, steps)
