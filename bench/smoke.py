"""`make bench-smoke`: every bench runs, on next to nothing. The figures mean nothing and are not judged.

In: nothing. Out: a line a bench with how many rows it gave; exit 1 when one does not run, or gives none. The
constants that make a bench long are set low meanwhile, by name, so that a name which is gone is noticed.
"""

import contextlib
import importlib
import io
import json
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from bench import haystack, peers, query, recall
from bench.__main__ import MEASURES
from bench.generate import generate

RECORDS = 600
SMALL: Mapping[str, Mapping[str, object]] = {
    "decode": {"ROUNDS": 1},
    "redact": {"TEXTS": 200, "AT_ONCE": 100, "HOSTILE": 1 << 10},
    "rebuild": {"ROUNDS": 1},
    "query": {"ROUNDS": 1, "KINDS": query.KINDS[:2]},
    "drivers": {"ROUNDS": 1, "ASKED": 2},
    "segments": {"ROUNDS": 1, "COMMITS": 5, "MANY": 3, "KINDS": ("rare",)},
    "askers": {"ROUNDS": 1, "SECONDS": 0.05, "KINDS": ("rare",)},
    "serving": {"ROUNDS": 1, "SECONDS": 0.05},
    "rpc": {"ROUNDS": 1, "SECONDS": 0.01},
    "latency": {"STEPS": 22},
    "pace": {"ROUNDS": 1, "ASKED": 3, "LARGE": 1},
    "cold": {"ROUNDS": 1, "HOOK_ROUNDS": 1},
    "idle": {"LOGS": 5, "SECONDS": 0.1},
    "notes": {"NOTES": 40, "EDITS": 3},
    "lessons": {"ROUNDS": 1, "LESSONS": 60, "BLOCKS": 2, "MOST_BYTES": 1 << 20},
    "linked": {"FAMILIES": 3, "RECORDS": 5, "ROUNDS": 1},
    "forget": {"LOGS": 1, "RUNS": 5, "VISIBLE": 100, "HIDDEN": 200},
    "trees": {"SESSIONS": 4, "SECONDS": 0.1, "WINDOWS": 2, "STEPS": 12},
    "many": {"LOGS": 40, "ASKED": 2, "IDLE_S": 0.1},
    "mcp": {"ROUNDS": 1},
}
WORDS = "retry socket index label class merge deploy parse cache token queue store".split()


def main() -> int:
    """Run every bench; see the module's docstring."""
    failed = []
    with tempfile.TemporaryDirectory(prefix="memoryd-smoke-") as folder:
        corpus = Path(folder)
        generate(corpus, RECORDS)
        questions(corpus)
        for name in (*MEASURES, "recall", "haystack", "peers"):
            began = time.perf_counter()
            try:
                count = found(name, corpus)
            except Exception:  # noqa: BLE001 (whatever it is, the others are run too)
                traceback.print_exc()
                count = 0
            failed += [name] if not count else []
            print(f"{name:<10} {count} rows, {time.perf_counter() - began:.1f} s", flush=True)
    if failed:
        print(f"bench-smoke: {', '.join(failed)} did not run")
    return 1 if failed else 0


def found(name: str, corpus: Path) -> int:
    """Return how many rows a bench gives."""
    if name == "recall":
        said = io.StringIO()
        with contextlib.redirect_stdout(said), small(recall, {"SAMPLES": 40}):
            recall.main(
                ["--corpus", str(corpus), "--set", "intents", "--out", str(corpus / "results")]
            )
        return len(json.loads((corpus / "results" / "recall.json").read_text())) - 2
    if name == "haystack":
        with contextlib.redirect_stdout(io.StringIO()), small(recall, {"SAMPLES": 40}):
            few = ["--records", "200", "--sample", "1", "--out", str(corpus / "results")]
            haystack.main(["--corpus", str(corpus), *few])
        return len(json.loads((corpus / "results" / "200-haystack.json").read_text())["sets"])
    if name == "peers":  # memoryd alone: nothing is installed
        said, ours = io.StringIO(), {"ROUNDS": 1, "SERVED_ROUNDS": 1}
        with contextlib.redirect_stdout(said), small(peers, ours):
            peers.main(["--peer", "none", "--sessions", "3", "--out", str(corpus / "results")])
        return len(json.loads((corpus / "results" / "peers.json").read_text())["found"])
    module = importlib.import_module(f"bench.{name}")
    with small(module, SMALL[name]):
        return len(list(module.rows(corpus)))


@contextmanager
def small(module: object, sizes: Mapping[str, object]) -> Iterator[None]:
    """Set constants of a bench low. Raises: AttributeError for one that it does not have."""
    with ExitStack() as stack:
        for constant, value in sizes.items():
            stack.enter_context(mock.patch.object(module, constant, value))
        yield


def questions(corpus: Path) -> None:
    """Write a made-up set of questions for the recall bench."""
    rng = random.Random(1)
    sessions = {f"s{number}": f"subject{number}" for number in range(12)}
    rows = [
        {"id": session, "text": " ".join([subject, str(at), *rng.choices(WORDS, k=18)])}
        for session, subject in sessions.items()
        for at in range(10)
    ]
    asked = [{"question": f"{subject} retry", "evidence": [s]} for s, subject in sessions.items()]
    (corpus / "recall").mkdir()
    (corpus / "recall" / "made.json").write_text(json.dumps({"rows": rows, "questions": asked}))


if __name__ == "__main__":
    sys.exit(main())
