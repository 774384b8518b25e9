"""What an index does on a disk that fills, under a quota, or read-only; in a process of its own.

``python -m tests.support.disks JOB FOLDER`` does one job in a `World` below FOLDER and prints what it saw as JSON.
Jobs: ``fill`` (the index lies on a small disk, which the job makes larger), ``quota`` (a limit on the size of
files, which it takes away).
"""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from memoryd import db
from memoryd.errors import MemorydError
from memoryd.index import Index, Rebuild, catch_up, live
from tests.support.indexing import World, dumped, lines
from tests.support.logs import append, claude_user, dated, write

SMALL = 1_000_000
"""Bytes of the small disk, and of the quota."""


def job(name: str, folder: str) -> dict[str, Any]:
    """Fill an index until there is no room, ask it, try a rebuild, make room, and look again."""
    world = World(Path(folder))
    log = write(world.logs / "a.jsonl", *_words("first", 200))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    seen: dict[str, Any] = {}
    with world.index() as index:
        _clockless()
        catch_up(index)
        before = dumped(index)
        append(log, *_words("second", 1_500))
        if name == "quota":
            resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, hard))
        catch_up(index)
        seen["fault"], seen["ready"] = index.status().fault, index.ready
        seen["kept"] = dumped(index)[: len(before)] == before
        seen["served"] = _asked(index) == dumped(index)
        seen["rebuild"], seen["left"] = _rebuilt(index), _names(index)
        if name == "quota":
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
        else:
            where = str(index.settings.path.parent)
            subprocess.run(["mount", "-o", "remount,size=64m", where], check=True)
        catch_up(index)
        catch_up(index)
        seen["after"], seen["rows"] = index.status().fault, len(dumped(index))
        seen["as_rebuilt"] = dumped(index) == world.fresh()
    return seen


def _words(word: str, count: int) -> list[Any]:
    return dated(*(claude_user(f"{word} {number} " * 60) for number in range(count)))


def _clockless() -> None:
    """Let the next try follow at once, however long the last one said to wait."""
    ticks = iter(range(0, 1 << 40, 1_000))
    live.monotonic = lambda: float(next(ticks))  # type: ignore[attr-defined]  # the job's own clock


def _asked(index: Index) -> list[bytes]:
    reader = db.reader(index.settings.path)
    try:
        return lines(reader)
    finally:
        reader.close()


def _rebuilt(index: Index) -> str:
    try:
        Rebuild(index.settings).run()
    except MemorydError as error:
        return error.code
    return ""


def _names(index: Index) -> list[str]:
    folder = index.settings.path.parent
    return sorted(path.name for path in folder.iterdir() if "rebuild" in path.name)


if __name__ == "__main__":
    print(json.dumps(job(*sys.argv[1:])))  # noqa: T201 - the test reads it
