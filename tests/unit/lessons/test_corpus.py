"""On real logs: the observer agrees with every flag, learns without a fault, and twice the same."""

import os
import re
from pathlib import Path

import pytest

from memoryd import db, replay
from memoryd.fold import begin, fold
from memoryd.lessons import codes, store
from memoryd.lessons.failure import failed
from memoryd.lessons.observe import load, observe, observe_many, save
from memoryd.lessons.pairing import Gathering, Pairing
from memoryd.lessons.passage import Around, passage
from memoryd.records import Returned
from memoryd.sources import lines
from memoryd.sources.telling import tell


def logs(folder: Path):
    """Yield each readable log, open, with its adapter."""
    for path in sorted(folder.rglob("*.jsonl")):
        handle = os.open(path, os.O_RDONLY)
        try:
            adapter = tell(handle)
            if adapter is not None and not isinstance(adapter, str):
                yield path.relative_to(folder).as_posix(), handle, adapter
        finally:
            os.close(handle)


def learn(connection, name, handle, adapter, rules, *, most=None):
    """Learn from a log, in transactions of `most` records; return the calls that were seen."""
    state, pairing, found, done = begin(rules), Pairing(name, name), [], 0
    known = load(connection, pairing)
    for batch in lines.read(handle, lines.Position(), adapter, log=name):
        for record in batch.records:
            rows = fold(state, record, rules, trusted=False)
            if record.n < known:
                pairing.hear(record)
                continue
            with db.transaction(connection):
                seen = pairing.feed(record, rows, state.label, record.ts or 0)
                for one in seen:
                    observe(connection, one)
                save(connection, [(pairing, record.n + 1)])
            found += seen
            done += 1
            if done == most:
                return found
    return found


@pytest.fixture
def rules(tmp_path):
    return replay.default_rules(tmp_path)


def test_failures_agree_with_the_logs_own_flags_on_every_call_that_has_one(corpus, rules):
    flagged = looked = 0
    for name, handle, adapter in logs(corpus / "sessions"):
        for one in learn(store.memory(), name, handle, adapter, rules):
            if one.outcome.ok is not None:
                flagged += 1
                assert failed(one.tool, one.outcome, one.text) is not one.outcome.ok
            if one.text:  # looking for words first changes no code
                looked += 1
                found = codes.dispatch(one.text)
                rule = next(
                    (r for r in codes.RULES if re.search(r.pattern, one.text, re.MULTILINE)), None
                )
                assert (found is None) is (rule is None)
                assert found is None or found.hint in rule.hints.values()
    assert flagged > 100
    assert looked > 50


def test_what_is_kept_of_a_real_result_is_one_short_line(corpus, rules):
    connection = store.memory()
    for name, handle, adapter in logs(corpus / "sessions"):
        learn(connection, name, handle, adapter, rules)
    held = [str(line) for (line,) in connection.execute("SELECT first_line FROM lesson")]
    assert held
    assert all(len(line.encode()) <= 200 and "\n" not in line for line in held)


def test_a_restart_between_any_two_records_learns_the_same_and_nothing_twice(corpus, rules):
    chosen = [log for log in logs(corpus / "sessions") if "claude" in log[0]]
    assert chosen
    for name, handle, adapter in logs(corpus / "sessions"):
        if os.fstat(handle).st_size > 300_000:
            continue
        whole, cut = store.memory(), store.memory()
        learn(whole, name, handle, adapter, rules)
        while learn(cut, name, handle, adapter, rules, most=37) or _left(cut, whole, name):
            pass
        learn(cut, name, handle, adapter, rules)
        for table in ("call", "lesson", "fix"):
            same = f"SELECT * FROM {table} ORDER BY 1, 2"
            assert list(cut.execute(same)) == list(whole.execute(same)), name


def _left(cut, whole, name) -> bool:
    progress = "SELECT max(n) FROM progress WHERE log = ?"
    return cut.execute(progress, (name,)).get != whole.execute(progress, (name,)).get


def test_a_batch_of_real_calls_gives_what_they_give_one_by_one(corpus, rules):
    for name, handle, adapter in logs(corpus / "sessions" / "codex"):
        apart, together = store.memory(), store.memory()
        learn(apart, name, handle, adapter, rules)
        state, pairing = begin(rules), Pairing(name, name)
        for batch in lines.read(handle, lines.Position(), adapter, log=name):
            calls, results, times, after = [], [], {}, {}
            for record in batch.records:
                pairing.hear(record)
                rows = fold(state, record, rules, trusted=False)
                times[record.n], after[record.n] = record.ts or 0, state.label
                calls += [(record, *row) for row in rows]
                results += [(record.n, one) for one in record.items if isinstance(one, Returned)]
            with db.transaction(together):
                gathering = Gathering()
                whose = pairing.session, pairing.project
                pairing.gather(gathering, passage(whose, calls, results, Around(times, after)))
                observe_many(together, gathering.seen())
        for table in ("call", "lesson", "fix", "posting", "metric"):
            same = f"SELECT * FROM {table}"
            found = [
                [row[1:] if table == "fix" else row for row in c.execute(same)]
                for c in (apart, together)
            ]
            assert sorted(map(str, found[0])) == sorted(map(str, found[1])), (name, table)
