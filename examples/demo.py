"""memoryd in one minute: a throw-away daemon over the logs of this machine, a few questions, gone.

In: the newest session logs of Claude Code and Codex found here (200 MB at most), else the invented
ones of `examples/sessions`. Out: a transcript of real `bxctl` commands with timings. Logs are linked
or copied into a private folder, which is deleted at the end; the logs themselves are only read.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from disposable import Daemon, NotStarted, throwaway_home

from memoryd.errors import MemorydError

SAMPLES = Path(__file__).parent / "sessions"
MOST_BYTES = 200 << 20
SAMPLE_QUESTIONS = ("missing cent rounding", "retry backoff jitter", "moisture sensor threshold")
SAMPLE_LOW = "customer inbox december"
PUDDING = "zabaglione"
WORD = re.compile(r"\b[^\W\d_]{5,24}\b")
ROWS_LOOKED_AT = 50_000


class Log(NamedTuple):
    """A session log as found: its harness, the folder it is relative to, its time and size."""

    kind: str
    root: Path
    path: Path
    mtime: float
    size: int


# ---------------------------------------------------------------- which logs


def folders(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield where the harnesses keep their logs, as their own variables say."""
    home = Path(env.get("HOME", "/nonexistent"))
    claude = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    codex = Path(env.get("CODEX_HOME") or home / ".codex")
    yield "claude-code", claude / "projects"
    yield "codex", codex / "sessions"


def found(env: Mapping[str, str]) -> list[Log]:
    """Return this machine's logs, newest first, as many as fit into MOST_BYTES."""
    logs: list[Log] = []
    for kind, root in folders(env):
        for path in root.rglob("*.jsonl"):
            if path.is_file() and not path.is_symlink():
                about = path.stat()
                logs.append(Log(kind, root, path, about.st_mtime, about.st_size))
    logs.sort(key=lambda log: log.mtime, reverse=True)
    room, newest = MOST_BYTES, []
    for log in logs:
        if log.size <= room:
            newest.append(log)
            room -= log.size
    return newest


def samples() -> list[Log]:
    """Return the invented logs of the foreign harnesses."""
    return [
        Log(kind, root, path, 0.0, path.stat().st_size)
        for kind, root in (
            ("claude-code", SAMPLES / "claude" / "projects"),
            ("codex", SAMPLES / "codex" / "sessions"),
        )
        for path in sorted(root.rglob("*.jsonl"))
    ]


def laid_out(logs: Iterable[Log], to: Path) -> str:
    """Link or copy the logs below `to`, in the order of their harnesses; return the configuration."""
    sources: dict[str, Path] = {}
    for log in logs:
        root = sources.setdefault(log.kind, to / log.kind)
        target = root / log.path.relative_to(log.root)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            os.link(log.path, target)
        except OSError:
            shutil.copy2(log.path, target)
    return "".join(
        f'[[source]]\nkind = "{kind}"\npath = "{root}"\n' for kind, root in sources.items()
    )


def native_samples(state: Path) -> None:
    """Copy the invented native logs to where their labels are believed."""
    folder = state / "sessions"
    folder.mkdir(mode=0o700)
    for path in (SAMPLES / "native").glob("*.jsonl"):
        Path(shutil.copy(path, folder)).chmod(0o600)


# ---------------------------------------------------------------- which questions


def questions(daemon: Daemon) -> list[str]:
    """Return up to four questions in the owner's own words: telling ones of the newest sessions."""
    said = sorted(_owner_rows(daemon), key=lambda row: row["ts"] or "", reverse=True)
    spread = Counter(word for row in said for word in set(_words(row["text"])))

    def telling(word: str) -> tuple[bool, int, int, str]:
        """Rank words: said more than once, then the rarer, then the longer."""
        return spread[word] == 1, spread[word], -len(word), word

    asked: dict[str, str] = {}
    for row in said:
        words = sorted(set(_words(row["text"])), key=telling)[:3]
        if len(words) > 1 and len(asked) < 4:
            asked.setdefault(row["session"], " ".join(words))
    return list(asked.values())


def _words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text[:2_000])]


def _owner_rows(daemon: Daemon) -> Iterator[dict[str, Any]]:
    seen = 0
    with daemon.client() as memory:
        for page in memory.pages("dump"):
            rows = [json.loads(line) for line in page["lines"]]
            yield from (row for row in rows if row["kind"] == "owner")
            seen += len(rows)
            if seen > ROWS_LOOKED_AT:
                return


# ---------------------------------------------------------------- the transcript


def bxctl(daemon: Daemon, *args: str, may_find_nothing: bool = False) -> None:
    """Show a command line, run it as a person would, and tell how long it took."""
    print(f"\n$ bxctl {shlex.join(args)}", flush=True)
    began = time.monotonic()
    program = Path(sys.executable).with_name("bxctl")
    code = subprocess.run([program, *args], env=daemon.env, check=False).returncode
    print(f"  ({1000 * (time.monotonic() - began):.0f} ms)", flush=True)
    if code and not (may_find_nothing and code == 1):
        raise MemorydError(f"bxctl {args[0]} exits {code}")


def over_the_socket(daemon: Daemon, asked: list[str]) -> None:
    """Ask the questions once more as a program would, and tell how long an answer took."""
    with daemon.client() as memory:
        began = time.monotonic()
        for question in asked:
            memory.call("recall", query=question, limit=3)
        took = 1000 * (time.monotonic() - began)
    if asked:
        print(
            f"\nOver an open socket, without a process each: {took / len(asked):.1f} ms an answer"
        )


def transcript(daemon: Daemon, asked: list[str], *, own: bool) -> None:
    """Ask the questions as the owner, one of them as an agent, then look around."""
    for question in asked:
        bxctl(daemon, "memory", "search", "--limit", "3", *question.split(), may_find_nothing=True)
    over_the_socket(daemon, asked)
    if not own:
        print("\nWhat a tool answered is never kept. This word stood only in a page from the web:")
        bxctl(daemon, "memory", "search", PUDDING, may_find_nothing=True)
    low = asked[0] if own else SAMPLE_LOW
    search = ("memory", "search", "--limit", "3", *low.split())
    print("\nThe owner's socket shows all that is indexed, an agent's what it is cleared for:")
    bxctl(daemon, *search, may_find_nothing=True)
    bxctl(daemon, "--socket", "agent", *search, may_find_nothing=True)
    bxctl(daemon, "memory", "sessions", "--limit", "8")
    bxctl(daemon, "status")


def demonstrate(home: Path) -> None:
    """Lay out the logs below `home`, serve them, ask, and stop. Raises: MemorydError, NotStarted."""
    logs = found(os.environ)
    with Daemon(home, laid_out(logs or samples(), home / "logs")) as daemon:
        if not logs:
            native_samples(daemon.state)
        print(f"logs    {described(logs)}")
        try:
            print(f"start   a real daemon, ready after {daemon.start():.2f} s")
            began = time.monotonic()
            with daemon.client() as memory:
                memory.call("sync", deadline_ms=600_000)
            print(f"read    all of it labelled and indexed {time.monotonic() - began:.2f} s later")
            asked = questions(daemon) if logs else []
            transcript(daemon, asked or list(SAMPLE_QUESTIONS), own=bool(logs))
        except MemorydError:
            print(daemon.last_words(), file=sys.stderr)
            raise
        print(f"\nstop    SIGTERM; gone after {daemon.stop():.2f} s")


def described(logs: list[Log]) -> str:
    """Return what was found here in a few words."""
    if not logs:
        return "none of Claude Code or Codex found; four invented sessions instead"
    kinds = Counter(log.kind for log in logs)
    counted = ", ".join(f"{kinds[kind]} of {kind}" for kind in sorted(kinds))
    return f"the newest of this machine: {counted}; {sum(log.size for log in logs) / 1e6:.2f} MB"


def main() -> int:
    """Run the demonstration and return the exit code."""
    sys.stdout.reconfigure(line_buffering=True)
    try:
        with throwaway_home("memoryd-demo-") as home:
            print(f"memoryd demo: everything goes to {home}, which is deleted at the end")
            demonstrate(home)
    except (MemorydError, NotStarted, subprocess.SubprocessError) as error:
        print(f"demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the throw-away folder is deleted", file=sys.stderr)
        return 130
    print("done    the throw-away folder is deleted. On your own logs, to stay: make run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
