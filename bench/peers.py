"""`make bench-peers`: memoryd beside the tools that people use for the same, on the same sessions.

In: nothing. Each peer is installed from PyPI into a folder that is thrown away and gets a home of its own with the
corpus of `bench.peer_corpus` (20,001 records, 24 needles); what cannot be had is named with the reason. Out: a
table, and bench/results/peers.json.

`index CPU`: user and system seconds of the process that indexes everything from nothing, its start included.
`size`: all bytes that it keeps. `found`: needles whose session is among the first ten told. `cold`: wall ms of one
question by a process of its own, its files dropped from the page cache. `warm`: the same, not dropped. `served`: by
a server that is already running, where there is one. `torn`: a log whose last line is half written when it is
indexed, and completed later. `secrets`: how many of ten keys in calls' arguments stand in its files; `results`,
`thinking`: how many of ten words that only those hold. `modes`: the widest of its files, and of the folder of the
largest, under a umask of 022. Exit 1 when memoryd misses a limit.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from bench import peer_corpus
from bench.peer_corpus import HOUR_MS, Made, Needle
from bench.peer_table import Figures, behind, missed, table
from bench.peer_tools import PEERS, Peer, Ran, Server, install, run
from bench.row import machine
from examples.disposable import Daemon
from memoryd import config
from memoryd.clock import now_ms, rfc3339
from memoryd.index import Rebuild, from_config

ROUNDS, SERVED_ROUNDS = 3, 21
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LOGS = ".claude"
_KEY = b"benchmark key of thirty-two byte"

Ask = Callable[[str], str]
"""From a question to all that was answered, as text."""


class Tool:
    """A tool in a home of its own. What a peer does is told by its `Peer`; `Memoryd` overrides it."""

    def __init__(self, name: str, home: Path, peer: Peer | None, program: Path | None) -> None:
        """Take a home that holds the sessions already."""
        self.name, self.home, self._peer, self._program = name, home, peer, program

    @property
    def peer(self) -> Peer:
        """Return how it is run."""
        assert self._peer is not None  # noqa: S101 (only `Memoryd` has none)
        return self._peer

    def command(self, *arguments: str) -> Ran:
        """Run its program."""
        return run([str(self._program), *arguments], self.home)

    def index(self) -> float | None:
        """Read all that is new; return the CPU seconds; None: it keeps no index."""
        return self.command(*self.peer.index).cpu if self.peer.index else None

    def forget(self) -> None:
        """Delete all that it keeps."""
        for entry in self.home.iterdir():
            if entry.name != _LOGS:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def ask(self, query: str) -> str:
        """Ask by a process of its own."""
        if self.peer.ask:
            return self.command(*self.peer.ask, query).said
        files = ["--files-with-matches", "--ignore-case", "--fixed-strings", "--"]
        logs = str(self.home / _LOGS)
        told = self.command(*files, query, logs).said
        if told:
            return told
        held = [set(self.command(*files, w, logs).said.split("\n")) for w in query.split()]
        return "\n".join(set.intersection(*held))

    @contextlib.contextmanager
    def served(self) -> Iterator[Ask | None]:
        """Yield how a running server of it is asked; None: it has none."""
        if not self.peer.serve or self._program is None:
            yield None
            return
        with Server(self._program, self.peer, self.home) as server:
            yield server.ask

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """Have nothing of it run meanwhile."""
        yield

    def files(self) -> list[Path]:
        """Return all files that it keeps."""
        mine = (path for path in self.home.rglob("*") if path.is_file())
        return [path for path in mine if path.relative_to(self.home).parts[0] != _LOGS]


class Memoryd(Tool):
    """memoryd on the same home, with its daemon."""

    def __init__(self, home: Path) -> None:
        """Make the state folder; nothing is started."""
        super().__init__("memoryd", home, None, None)
        (home / "memoryd").mkdir(mode=0o700)
        self.daemon = Daemon(home / "memoryd", user_home=home)

    def index(self) -> float:
        """Have the daemon read all that is new; return what a rebuild's process takes for it."""
        if not self.daemon.pid:
            self.daemon.start()
        with self.daemon.client() as memory:
            memory.call("sync", deadline_ms=300_000)
        return self.rebuilt()

    def rebuilt(self) -> float:
        """Return the CPU seconds of a process that makes a whole index."""
        with tempfile.TemporaryDirectory(prefix="md-peers-") as folder:
            state = Path(folder)
            (state / "index").mkdir(mode=0o700)
            source = f'[[source]]\nkind = "claude-code"\npath = "{self.home}/{_LOGS}/projects"\n'
            loaded = config.parse(source, state / "memoryd.toml")
            settings = from_config(loaded.config, state, _KEY, {"HOME": folder})
            return Rebuild(settings).run(lambda progress: None).cpu_seconds

    def forget(self) -> None:
        """Keep what the daemon has: a rebuild is always from nothing."""

    def ask(self, query: str) -> str:
        """Ask with `bxctl`, which reads the index by itself where no daemon runs."""
        done, _ = self.daemon.bxctl("memory", "search", "--json", "--limit", "10", "--", query)
        return done.stdout

    @contextlib.contextmanager
    def served(self) -> Iterator[Ask | None]:
        """Yield a client's connection to the socket."""
        with self.daemon.client() as memory:
            yield lambda query: json.dumps(memory.call("recall", query=query))

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """Stop the daemon meanwhile."""
        self.daemon.stop()
        yield
        self.daemon.start()

    def files(self) -> list[Path]:
        """Return the files of the index, its journals among them."""
        return [path for path in (self.home / "memoryd" / "state").rglob("*") if path.is_file()]


# ------------------------------------------------------------------ what is measured


def measured(tool: Tool, made: Made, version: str) -> Figures:
    """Return all figures of a tool but `torn`; its home holds the corpus."""
    taken = []
    for _ in range(ROUNDS if isinstance(tool, Memoryd) else 1):  # a peer takes up to a minute
        tool.forget()
        taken.append(tool.index())
    figures = Figures(version=version)
    needles = made.needles
    with tool.resting():
        files = tool.files()
        if taken[0] is not None:
            figures.cpu = statistics.median(one for one in taken if one is not None)
            figures.size = sum(path.stat().st_size for path in files) / 2**20
            figures.modes = modes(files)
            figures.probes = {kind: at_rest(files, words) for kind, words in made.probes.items()}
        figures.cold, _ = p50(tool.ask, needles, before=lambda: dropped(tool))
    figures.warm, figures.missed = p50(tool.ask, needles)
    figures.found = len(needles) - len(figures.missed)
    with tool.served() as ask:
        if ask is not None:
            figures.served, _ = p50(ask, needles, rounds=SERVED_ROUNDS)
    return figures


def told(said: str) -> list[str]:
    """Return the first ten sessions that an answer names."""
    return list(dict.fromkeys(_UUID.findall(said)))[:10]


def p50(
    ask: Ask,
    needles: Sequence[Needle],
    *,
    before: Callable[[], None] | None = None,
    rounds: int = 1,
) -> tuple[float, list[str]]:
    """Return the median over the questions of the median ms over the rounds, and the kinds not found."""
    missed = []
    taken: dict[Needle, list[float]] = {needle: [] for needle in needles}
    for _ in range(rounds):
        for needle in needles:
            if before is not None:
                before()
            began = time.perf_counter()
            said = ask(needle.query)
            taken[needle].append(1_000 * (time.perf_counter() - began))
            missed += [needle.kind] if needle.session not in told(said) else []
    return statistics.median(statistics.median(one) for one in taken.values()), missed


def dropped(tool: Tool) -> None:
    """Drop what a tool reads from the page cache: its files, or the logs where it keeps none."""
    for path in tool.files() or (tool.home / _LOGS).rglob("*.jsonl"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def at_rest(files: Sequence[Path], words: Sequence[str]) -> int:
    """Return how many of the words stand in any of the files."""
    held = [path.read_bytes() for path in files]
    return sum(any(word.encode() in content for content in held) for word in words)


def modes(files: Sequence[Path]) -> str:
    """Return the widest permissions of the files, and those of the folder of the largest."""
    widest = 0
    for path in files:
        widest |= path.stat().st_mode & 0o777
    largest = max(files, key=lambda path: path.stat().st_size)
    return f"{widest:04o} in {largest.parent.stat().st_mode & 0o777:04o}"


def torn(tool: Tool) -> str:
    """Return what becomes of a line that was half written when the log was indexed.

    Its home holds one small log: whole lines, half a line; then the rest of it, and another.
    """
    if tool.index() is None:
        return "reads the logs"
    log = next((tool.home / _LOGS).rglob("*.jsonl"))
    draft = log.with_suffix(".draft")
    with log.open("ab") as file:
        file.write(draft.read_bytes())
    tool.index()
    lost = [word for word in TORN if not told(tool.ask(word))]
    return f"loses {', '.join(lost)}" if lost else "whole"


TORN: Mapping[str, str] = {
    "zqbefore": "the line before",
    "zqtorn": "the torn line",
    "zqafter": "the next line",
}


def tear(home: Path) -> None:
    """Write a log into `home` whose last line is half there, and the rest of it beside it."""
    peer_corpus.write(home, sessions=1, records=40, began_ms=now_ms() - HOUR_MS)
    log = next((home / _LOGS).rglob("*.jsonl"))
    lines = log.read_text("utf-8").split("\n")
    pattern = next(line for line in lines if '"type": "user", "message"' in line)
    record = json.loads(pattern)
    added = []
    for number, word in enumerate(TORN):
        record["message"]["content"] = f"a line with the word {word} and nothing more of interest"
        record["uuid"] = f"{number:08d}-0000-4000-8000-000000000000"
        added.append(json.dumps(record))
    before, half, after = added
    log.write_text("\n".join([*lines[:-1], before, half[: len(half) - 30]]), "utf-8")
    log.with_suffix(".draft").write_text(half[len(half) - 30 :] + "\n" + after + "\n", "utf-8")


def main(argv: list[str]) -> int:
    """Measure every tool; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    names = [peer.name for peer in PEERS]
    parser.add_argument("--peer", action="append", choices=[*names, "none"], help="only these")
    parser.add_argument("--sessions", type=int, default=peer_corpus.SESSIONS)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args(argv)
    found: dict[str, Figures] = {}
    absent: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="md-peers-") as scratch, ExitStack() as stack:
        folder = Path(scratch)
        began = now_ms() - (options.sessions + 1) * HOUR_MS  # some look only at the last weeks
        made = peer_corpus.write(folder / "corpus", sessions=options.sessions, began_ms=began)
        print(f"{made.records} records, {len(made.needles)} needles", flush=True)
        for peer in (None, *PEERS):
            name = peer.name if peer else "memoryd"
            if peer and options.peer and name not in options.peer:
                continue
            homes = _homes(folder, name)
            program, version = install(peer, folder / "tools", homes[0]) if peer else (None, "")
            if peer and program is None:
                absent[name] = version
                print(f"{name}: not run: {version}", flush=True)
                continue
            tools = [Memoryd(h) if not peer else Tool(name, h, peer, program) for h in homes]
            for tool in tools:
                if isinstance(tool, Memoryd):
                    stack.enter_context(tool.daemon)
            found[name] = measured(tools[0], made, version)
            found[name].torn = torn(tools[1])
            print(f"{name}: {msgspec.json.encode(found[name]).decode()}", flush=True)
    print(f"\n{table(found)}\n")
    ahead = behind(found)
    print("memoryd is behind in " + "; ".join(ahead) if ahead else "memoryd is behind in no column")
    short = missed(found["memoryd"], len(made.needles))
    print(f"missed: {', '.join(short)}" if short else "every limit is met")
    options.out.mkdir(parents=True, exist_ok=True)
    report = {
        "when": rfc3339(now_ms()),
        "machine": machine(),
        "records": made.records,
        "found": {name: msgspec.to_builtins(one) for name, one in found.items()},
        "not run": absent,
        "behind": ahead,
        "missed": short,
    }
    target = options.out / "peers.json"
    target.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    print(f"written to {target}")
    return 1 if short else 0


def _homes(folder: Path, name: str) -> tuple[Path, Path]:
    """Return two homes: one with the corpus, one with a torn log."""
    whole, half = folder / name / "whole", folder / name / "torn"
    shutil.copytree(folder / "corpus", whole)
    tear(half)
    return whole, half


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
