"""What labels over linked logs cost: the fold of a record, and a rebuild of 1,000 logs that refer to each other.

In: the corpus. Out: rows for CPU. The fold is measured over decoded records. The linked logs are made of the
corpus's own Claude Code logs, cut to `RECORDS` records: of each four, a session, its sub-agent, a fork with its
history copied, and one that was resumed without it; against them the same logs without a word of each other.
"""

import json
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import corpus as made
from bench.row import Row, cpu_seconds
from memoryd import config
from memoryd.fold import begin, fold
from memoryd.index import Built, Rebuild, Settings, from_config
from memoryd.sources import LogFile, discover, lines

FAMILIES, RECORDS, ROUNDS = 250, 60, 3

Line = dict[str, Any]


def rows(corpus: Path) -> list[Row]:
    """Return both rows."""
    return [_fold(corpus), _rebuild(corpus)]


def _fold(corpus: Path) -> Row:
    with tempfile.TemporaryDirectory(prefix="md-fold-") as folder:
        settings = made.settings(corpus, Path(folder))
        logs = discover.logs(settings.roots)[:200]
        records = [(log, list(_records(log))) for log in logs]
    count = sum(len(found) for _, found in records)

    def work() -> None:
        for log, found in records:
            state = begin(settings.rules)
            for record in found:
                fold(state, record, settings.rules, log.root.trusted)
            state.trail.clear()

    taken = sorted(cpu_seconds(work) for _ in range(ROUNDS))[ROUNDS // 2]
    detail = f"{count} records of {len(logs)} logs in {taken:.2f} s"
    return Row("fold cost a record", "limit", 1e6 * taken / count, 5.0, unit="us", detail=detail)


def _records(log: LogFile) -> Iterator[Any]:
    with log.path.open("rb") as file:
        for batch in lines.read(file, lines.Position(), log.adapter, log=log.log):
            yield from batch.records


def _rebuild(corpus: Path) -> Row:
    with tempfile.TemporaryDirectory(prefix="md-linked-") as folder:
        linked, apart = _made(corpus, Path(folder) / "linked"), Path(folder) / "apart"
        _part(linked, apart)
        seconds: dict[str, list[tuple[float, Built]]] = {"linked": [], "apart": []}
        for number in range(ROUNDS):
            for name, taken in seconds.items():
                state = Path(folder) / f"state-{name}-{number}"
                built = Rebuild(_settings(Path(folder) / name, state)).run()
                Path(built.temp).unlink()
                taken.append((built.cpu_seconds, built))
    ours, theirs = (sorted(seconds[name], key=lambda one: one[0])[ROUNDS // 2] for name in seconds)
    detail = (
        f"{ours[0]:.2f} s for {ours[1].logs} logs, {ours[1].counts.indexed} rows; apart "
        f"{theirs[0]:.2f} s, {theirs[1].counts.indexed} rows"
    )
    return Row("a rebuild with 1,000 linked logs", "the same logs apart", ours[0] / theirs[0], 1.5,
               detail=detail)  # fmt: skip


def _settings(logs: Path, state: Path) -> Settings:
    """Return settings with `logs` as the only folder of others' logs."""
    (state / "index").mkdir(parents=True, exist_ok=True, mode=0o700)
    loaded = config.parse(f'[[source]]\nkind = "claude-code"\npath = "{logs}"\n', state / "toml")
    return from_config(loaded.config, state, made.KEY, {"HOME": str(state)})


def _made(corpus: Path, target: Path) -> Path:
    """Write the linked logs and return their folder."""
    found = sorted(corpus.rglob("claude/**/*.jsonl"))
    for number in range(FAMILIES):
        path = found[number % len(found)]
        raw = path.read_bytes().splitlines()[:RECORDS]
        main = [_own(json.loads(line), f"s{number}", f"{number}/{n}") for n, line in enumerate(raw)]
        half = main[: len(main) // 2]
        agent = [{**_own(r, f"s{number}", f"a{number}/{n}"), "isSidechain": True, "agentId": f"a{number}"}
                 for n, r in enumerate(half)]  # fmt: skip
        copied = [{**r, "sessionId": f"f{number}"} for r in half]
        fork = [*copied, *(_own(r, f"f{number}", f"f{number}/{n}") for n, r in enumerate(half))]
        resumed = [_own(r, f"r{number}", f"r{number}/{n}") for n, r in enumerate(half)]
        resumed[0]["parentUuid"] = half[-1]["uuid"]
        for name, records in (
            (f"s{number}.jsonl", main),
            (f"s{number}/subagents/agent-a{number}.jsonl", agent),
            (f"f{number}.jsonl", fork),
            (f"r{number}.jsonl", resumed),
        ):
            _write(target / "p" / name, records)
    return target


def _own(record: Line, session: str, name: str) -> Line:
    own = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
    return {**record, "sessionId": session, "uuid": own, "parentUuid": None}


def _part(linked: Path, apart: Path) -> None:
    """Write the same logs so that none refers to another."""
    for number, path in enumerate(sorted(linked.rglob("*.jsonl"))):
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        alone = [{**_own(r, f"x{number}", f"x{number}/{n}"), "isSidechain": False}
                 for n, r in enumerate(records)]  # fmt: skip
        _write(apart / "p" / f"x{number}.jsonl", alone)


def _write(path: Path, records: list[Line]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
