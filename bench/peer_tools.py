"""How each peer is installed, made to index and asked, in a home folder of its own.

In: a folder for its environment, a home with sessions. Out: what it printed, the seconds it took. A peer is a
package of PyPI in a virtual environment that is thrown away; one that needs a newer Python gets it where the
machine has one. Nothing of a peer is imported here, and no peer sees another home than the one it is given.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, Self

import msgspec

MOST_S = 600
"""Seconds that one command of a peer may take."""


class Peer(msgspec.Struct, frozen=True):
    """A peer: its package, what makes it index, and how it is asked (the question is put last).

    `index` is empty where it has none; `serve` starts a server that answers the MCP tool `tool`.
    """

    name: str
    package: str
    command: str
    index: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    serve: tuple[str, ...] = ()
    tool: str = ""
    least: tuple[int, int] = (3, 11)


QUIET = "--skip-release-notification"
PEERS = (
    Peer(
        "claude-recall",
        "claude-recall",
        "claude-recall",
        ("index", "--no-embed"),
        ("search", "--format", "json", "--limit", "10"),
    ),
    Peer(
        "threadlens",
        "threadlens",
        "threadlens",
        ("refresh", "--source", "claude"),
        ("search", "--no-bootstrap", "--json", "--limit", "10"),
    ),
    Peer(
        "ai-session-search",
        "ai-session-search>=1.0.0rc1",
        "aise",
        ("reindex", QUIET),
        ("search", QUIET, "--index-refresh", "existing-only", "--format", "json", "--limit", "10"),
        ("mcp", "serve"),
        "search_sessions",
        (3, 12),
    ),
    Peer(
        "convo-recall",
        "convo-recall",
        "recall",
        ("ingest",),
        ("search", "--json", "--all-projects", "-n", "10"),
    ),
    Peer("ripgrep", "ripgrep", "rg"),
)


class Ran(NamedTuple):
    """What a command printed, whether it ended well, and the wall and CPU seconds it took."""

    said: str
    ok: bool
    wall: float
    cpu: float


def environment(home: Path) -> dict[str, str]:
    """Return the variables that a peer gets: its home, and nothing else of the user's."""
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LANG": "C.UTF-8"}


def run(argv: Sequence[str], home: Path) -> Ran:
    """Run a command to its end, with files as open as a login shell makes them."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        done = subprocess.run(
            argv,
            env=environment(home),
            cwd=home,
            umask=0o022,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=MOST_S,
        )
        said, ok = done.stdout.decode("utf-8", "replace"), done.returncode == 0
    except subprocess.TimeoutExpired:
        said, ok = "", False
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Ran(said, ok, wall, cpu)


def install(peer: Peer, folder: Path, home: Path) -> tuple[Path | None, str]:
    """Return the peer's program and its version, or None and why it cannot be had."""
    python = next(_pythons(peer.least), None)
    if python is None:
        return None, f"needs Python {peer.least[0]}.{peer.least[1]}, which is not here"
    place = folder / peer.name
    made = run([python, "-m", "venv", str(place)], home)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", peer.package]
    # pip's own settings are the user's: a mirror is one of them.
    mine = {k: v for k, v in os.environ.items() if k.lower().startswith(("pip_", "http", "no_pr"))}
    done = subprocess.run(
        pip, env=environment(home) | mine, capture_output=True, text=True, check=False
    )
    program = place / "bin" / peer.command
    if made.ok and done.returncode == 0 and program.exists():
        return program, _version(place, peer)
    there = shutil.which(peer.command)
    if there is not None and peer.name == "ripgrep":
        return Path(there), run([there, "--version"], home).said.split("\n")[0].split()[1]
    words = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return None, words[-1][:200] if words else "pip gave no program of that name"


def _version(place: Path, peer: Peer) -> str:
    name = peer.package.split(">")[0]
    ask = f"import importlib.metadata as m; print(m.version({name!r}))"
    python = [str(place / "bin" / "python"), "-c", ask]
    return subprocess.run(python, capture_output=True, text=True, check=False).stdout.strip()


def _pythons(least: tuple[int, int]) -> Iterator[str]:
    """Yield interpreters of at least a version: this one, those on the path, those that pyenv keeps."""
    if sys.version_info >= least:
        yield sys.executable
    shims = [Path(part) for part in os.get_exec_path() if part.endswith("/shims")]
    kept = [path for shim in shims for path in shim.parent.glob("versions/*/bin/python3")]
    named = [shutil.which(f"python3.{minor}") for minor in range(least[1], 20)]
    check = f"import sys, venv, ensurepip; sys.exit(sys.version_info < {least})"
    for python in (*filter(None, named), *map(str, sorted(kept))):
        if subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0:
            yield python


class Server:
    """A peer's MCP server, started and asked over its pipes; stopped by ``with``."""

    def __init__(self, program: Path, peer: Peer, home: Path) -> None:
        """Start it and shake hands. Raises: OSError, ValueError."""
        self._tool, self._number = peer.tool, 0
        self._process = subprocess.Popen(
            [program, *peer.serve],
            env=environment(home),
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        me = {"name": "bench", "version": "1"}
        hello = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": me}
        self._call("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def ask(self, query: str) -> str:
        """Return what the tool answers. Raises: OSError, ValueError."""
        arguments = {"query": query, "limit": 10, "index_refresh": "existing-only"}
        return json.dumps(self._call("tools/call", {"name": self._tool, "arguments": arguments}))

    def _call(self, method: str, params: Mapping[str, object]) -> object:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            answer = json.loads(_pipe(self._process.stdout).readline())
            if answer.get("id") == self._number:
                return answer

    def _send(self, message: Mapping[str, object]) -> None:
        pipe = _pipe(self._process.stdin)
        pipe.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        pipe.flush()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            _pipe(pipe).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # noqa: S101 (opened as a pipe)
    return pipe
