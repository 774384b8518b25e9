"""From a line appended to a log to a hit over the socket, on a real daemon.

In: the corpus (one of its logs is appended to). Out: rows for the median and the 99th percentile in ms.
Each step appends one record with a word of its own and asks for that word until it is found.
"""

import json
import tempfile
import time
from pathlib import Path

from bench.row import Row, percentile
from examples.disposable import Daemon

STEPS = 200


def rows(corpus: Path) -> list[Row]:
    """Return the rows of append → searchable."""
    del (
        corpus
    )  # the daemon's own small home: the path from the file to the socket is what is measured
    with tempfile.TemporaryDirectory(prefix="md-late-") as folder:
        home = Path(folder)
        log = home / "state" / "sessions" / "live.jsonl"
        log.parent.mkdir(parents=True, mode=0o700)
        log.write_text('{"kind":"session","session":"live","project":"bench"}\n')
        with Daemon(home, user_home=home) as daemon:
            daemon.start()
            taken = [_one(daemon, log, number) for number in range(STEPS)]
    figures = [1_000 * seconds for seconds in taken[20:]]
    detail = f"{len(figures)} appends, one at a time"
    against = "250 ms poll (p50 about 130 ms)"
    return [
        Row(
            "append → searchable, p50",
            against,
            percentile(figures, 0.5),
            5,
            unit="ms",
            detail=detail,
        ),
        Row(
            "append → searchable, p99",
            against,
            percentile(figures, 0.99),
            25,
            unit="ms",
            detail=detail,
        ),
    ]


def _one(daemon: Daemon, log: Path, number: int) -> float:
    word = f"zq{number}xv"
    line = json.dumps({"kind": "owner", "text": f"the word is {word}"}) + "\n"
    with daemon.client() as memory, log.open("a") as file:
        memory.call("hello", client="bench")
        file.write(line)
        file.flush()
        began = time.perf_counter()
        while not memory.call("recall", query=word)["hits"]:
            if time.perf_counter() - began > 10:
                raise TimeoutError(f"append {number} was not found within 10 s")
        return time.perf_counter() - began
