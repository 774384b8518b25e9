"""An index grown in any way holds what a rebuild of the same logs holds, byte for byte (promise P3).

Logs are cut at random places and grow piece by piece, in any order and with restarts between; they are
truncated, rewritten, replaced, renamed and removed. After each step the index is compared with a rebuild.
"""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.index import Budget, Index, catch_up
from tests.support.indexing import World, dumped
from tests.support.logs import (
    claude_assistant,
    claude_attachment,
    claude_call,
    claude_result,
    claude_user,
    codex_call,
    codex_meta,
    codex_result,
    codex_search,
    codex_user,
    dated,
    encoded,
    native_assistant,
    native_block,
    native_call,
    native_owner,
    native_result,
    native_session,
)

CLAUDE = encoded(*dated(
    claude_user("find the invoice of März"),
    claude_call("Bash", {"command": "curl http://x/\ncat a"}, "t1"),
    claude_call("Read", {"file_path": "/srv/app/notes.md"}, "t2"),
    claude_result("t2", "resulttext"),
    claude_assistant("found it"),
    claude_result("t1", "resulttext"),
    claude_assistant("untrusted now"),
    claude_attachment("file", "attachedtext"),
    b'{"cut": "li',
    claude_user("after a bad line"),
    claude_call("Odd", {"a": ["b", 1.5, True]}, "t3"),
    claude_result("t3", "x"),
    claude_result("t3", "second answer"),
    claude_user("above"),
))  # fmt: skip
CODEX = encoded(*dated(
    codex_meta("c1"),
    codex_user("do it"),
    codex_call("shell", {"command": ["bash", "-lc", "git clone http://x"]}, "k1"),
    codex_result("k1", "out"),
    codex_search("words of a search"),
    codex_user("and more"),
))  # fmt: skip
NATIVE = encoded(*dated(
    native_session("n1"),
    native_owner("hello"),
    native_call("Look", {"path": "/etc/x"}, "c1"),
    native_result("c1", "text", "internal"),
    native_assistant("said"),
    native_block("private", untrusted=True),
    native_assistant("after the block"),
    native_result("c9", "orphan"),
    native_assistant("top"),
))  # fmt: skip
LOGS = {"a.jsonl": CLAUDE, "deep/b.jsonl": CODEX, "c.jsonl": CLAUDE[: len(CLAUDE) // 2]}
SAID = {
    "a.jsonl": claude_user,
    "deep/b.jsonl": codex_user,
    "c.jsonl": claude_user,
    "n.jsonl": native_owner,
}
TOMLS = (
    '[index]\nmax_class = "secret"\n[[source]]\npath = "{logs}"\n',
    '[index]\nmax_class = "internal"\n[[source]]\npath = "{logs}"\n',
)


class Growing:
    """A world whose logs change step by step, with an index that follows."""

    def __init__(self, toml):
        self.folder = tempfile.TemporaryDirectory(prefix="md-")
        self.world = World(Path(self.folder.name), toml)
        self.index = Index(self.world.settings())

    def close(self):
        self.index.close()
        self.folder.cleanup()

    def restart(self):
        self.index.close()
        self.index = Index(self.world.settings())

    def path(self, name):
        root = self.world.sessions if name == "n.jsonl" else self.world.logs
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def check(self):
        catch_up(self.index)
        assert dumped(self.index) == self.world.fresh()


pieces = st.lists(st.integers(0, 400), min_size=1, max_size=12)


def content(name):
    return NATIVE if name == "n.jsonl" else LOGS[name]


names = st.sampled_from([*LOGS, "n.jsonl"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), names, st.integers(1, 700)),
        st.tuples(st.just("turn"), names, st.integers(1, 700)),
        st.tuples(st.just("truncate"), names, st.integers(0, 900)),
        st.tuples(st.just("rewrite"), names, st.integers(0, 900)),
        st.tuples(st.just("replace"), names, st.integers(0, 900)),
        st.tuples(st.just("rename"), names, st.integers(0, 3)),
        st.tuples(st.just("remove"), names, st.just(0)),
        st.tuples(st.just("restart"), st.just("a.jsonl"), st.just(0)),
    ),
    min_size=1,
    max_size=14,
)


def apply(growing, step):
    """Do one step to the logs; growing goes on where the file ends, whatever is in it."""
    do, name, number = step
    path = growing.path(name)
    there = path.read_bytes() if path.exists() else b""
    whole = content(name)
    match do:
        case "grow" | "turn":
            with path.open("ab") as file:
                file.write(whole[len(there) : len(there) + number])
            if do == "turn":
                growing.index.changed([path])
                growing.index.catch_up(Budget(bytes=1, seconds=0.0))
        case "truncate":
            path.write_bytes(there[:number])
        case "rewrite":
            path.write_bytes(encoded(*dated(SAID[name]("rewritten"))) + whole[:number])
        case "replace":
            path.unlink(missing_ok=True)
            path.write_bytes(whole[:number])
        case "rename":
            if path.exists():
                path.rename(path.with_name(f"moved-{number}.jsonl"))
        case "remove":
            path.unlink(missing_ok=True)
        case "restart":
            growing.restart()


@settings(max_examples=20, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(toml=st.sampled_from(TOMLS), steps=steps)
def test_after_any_steps_the_index_is_what_a_rebuild_makes(toml, steps):
    growing = Growing(toml)
    try:
        for step in steps:
            apply(growing, step)
        growing.check()
        growing.restart()
        growing.check()
    finally:
        growing.close()


@settings(max_examples=12)
@given(cuts=pieces, name=st.sampled_from(["a.jsonl", "deep/b.jsonl", "n.jsonl"]), data=st.data())
def test_a_log_read_in_random_pieces_is_read_as_a_whole(cuts, name, data):
    growing = Growing(TOMLS[0])
    try:
        path, whole, at = growing.path(name), content(name), 0
        for cut in cuts:
            with path.open("ab") as file:
                file.write(whole[at : at + cut])
            at += cut
            catch_up(growing.index)
            if data.draw(st.booleans()):
                growing.restart()
        with path.open("ab") as file:
            file.write(whole[at:])
        growing.check()
        assert growing.world.overrides == b""
    finally:
        growing.close()


@pytest.mark.slow
@settings(
    max_examples=400, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow]
)
@given(toml=st.sampled_from(TOMLS), steps=steps)
def test_after_any_of_many_steps_the_index_is_what_a_rebuild_makes_r16(toml, steps):
    test_after_any_steps_the_index_is_what_a_rebuild_makes.hypothesis.inner_test(toml, steps)


def real_logs(corpus, at_most):
    """Return the real logs that are small enough to be cut many times, smallest first."""
    folders = [corpus / "sessions" / name for name in ("claude", "codex")]
    found = [path for folder in folders for path in sorted(folder.rglob("*.jsonl"))]
    return sorted(
        (path for path in found if path.stat().st_size <= at_most), key=lambda p: p.stat().st_size
    )


@settings(max_examples=12)
@given(data=st.data())
def test_real_logs_grown_in_random_cuts_hold_what_a_rebuild_holds(corpus, data):
    path = data.draw(st.sampled_from(real_logs(corpus, 200_000)))
    whole = path.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), min_size=1, max_size=6)))
    growing = Growing(TOMLS[0])
    try:
        log, at = growing.path("a.jsonl"), 0
        for cut in [*cuts, len(whole)]:
            with log.open("ab") as file:
                file.write(whole[at:cut])
            at = cut
            catch_up(growing.index)
        growing.check()
    finally:
        growing.close()


def test_all_real_logs_at_once_grown_in_three_pieces_hold_what_a_rebuild_holds(corpus):
    growing = Growing(TOMLS[0])
    try:
        paths = real_logs(corpus, 1 << 20)
        for part in range(3):
            for number, path in enumerate(paths):
                whole = path.read_bytes()
                start, end = len(whole) * part // 3, len(whole) * (part + 1) // 3
                with growing.path("a.jsonl").with_name(f"{number}.jsonl").open("ab") as file:
                    file.write(whole[start:end])
            catch_up(growing.index)
        growing.check()
        assert len(dumped(growing.index)) > 1000
    finally:
        growing.close()


def test_the_saved_growth_of_one_session_is_followed(corpus):
    """Each save is a byte prefix of the next, but for one that is another slice and shorter."""
    saves = sorted((corpus / "sessions" / "_series").rglob("*.jsonl"))
    assert saves
    growing = Growing(TOMLS[0])
    try:
        for save in saves:
            growing.path("a.jsonl").write_bytes(save.read_bytes())
            growing.check()
    finally:
        growing.close()
