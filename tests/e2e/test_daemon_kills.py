"""Logs grow while the daemon is killed again and again; in the end it holds what a rebuild would."""

import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from memoryd import clock
from tests.support.daemon import Daemon
from tests.support.modes import too_wide
from tests.support.samples import LOGS

pytestmark = pytest.mark.slow
KILLS = 8
PATIENCE_S = 300.0


def real_logs() -> list[Path]:
    """Return some real logs if there are any, of middling size; else the invented ones."""
    named = os.environ.get("MEMORYD_CORPUS")
    if not named:
        return LOGS
    found = sorted(
        path
        for harness in ("claude", "codex")
        for path in Path(named, "sessions", harness).rglob("*.jsonl")
        if 20_000 < path.stat().st_size < 2_000_000
    )
    return found[::3]


def grown(logs: Iterable[tuple[Path, bytes]], chance: random.Random) -> None:
    """Append a piece of random length to each log, cut anywhere."""
    for path, content in logs:
        size = path.stat().st_size if path.exists() else 0
        piece = content[size : size + chance.randrange(1, 2 + len(content) // 4)]
        with path.open("ab") as file:
            file.write(piece)


def dumped(daemon: Daemon) -> list[str]:
    with daemon.client(timeout=PATIENCE_S) as memory:
        memory.call("sync", deadline_ms=240_000)
        return [line for page in memory.pages("dump") for line in page["lines"]]


@pytest.mark.parametrize("seed", [1, 2])
def test_after_kills_between_random_cuts_the_dump_is_that_of_a_rebuild(
    user_home: Path, seed: int
) -> None:
    chance = random.Random(seed)
    folder = user_home / "logs"
    folder.mkdir()
    logs = [
        (folder / f"{number:03}.jsonl", path.read_bytes())
        for number, path in enumerate(real_logs())
    ]
    config = f'[[source]]\nkind = "auto"\npath = "{folder}"\n'
    with Daemon(user_home, config) as daemon:
        for _ in range(KILLS):
            daemon.start()
            for _ in range(3):
                grown(logs, chance)
            daemon.kill()
        for path, content in logs:
            path.write_bytes(content)
        daemon.start()
        before = dumped(daemon)
        assert before
        with daemon.client(timeout=PATIENCE_S) as memory:
            memory.call("reindex")
            ends = clock.monotonic() + PATIENCE_S
            while (found := memory.call("status")["rebuild"])["state"] == "running":
                assert clock.monotonic() < ends
                memory.call("sync", deadline_ms=240_000)
        assert found["state"] == "done", found
        assert dumped(daemon) == before
        assert too_wide(daemon.state) == []
