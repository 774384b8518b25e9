"""`make bench-recall`: how often the session that answers a question comes first, device by device.

In: `--corpus DIR` or MEMORYD_CORPUS, a folder with `recall/*.json` (`bench.questions`). Out: a table, and
JSON in bench/results/. Nothing is fetched; no clock is read but for the date.
Each arm is asked every question; `hit@k`: the share of questions with an answering session among the first
k, `MRR`: the mean of 1/place. In brackets: 95 % of 2,000 bootstrap samples of the questions. `more`: what the
arm's MRR is more than `ours`, paired. Sets that the sessions tell of themselves are split by session. Where the
corpus has `sessions/`, the logs of other people's projects are asked for too: no setting was chosen by them.
"""

import argparse
import os
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from unittest import mock

import msgspec

from bench.devices import changing, folded
from bench.questions import Question
from bench.row import machine
from bench.sets import Index, sets_of
from memoryd import db, recall
from memoryd.clock import now_ms, rfc3339
from memoryd.index import search
from memoryd.recall import Scope, plan, query, question, support

LOOKED_AT = 50
"""Sessions in which the answer is looked for."""
SAMPLES = 2_000
TARGETS = (0.72, 0.90, 0.78)

Setting = Callable[[], AbstractContextManager[object]]


class Scores(msgspec.Struct, frozen=True):
    """The places of the answers to a set of questions, 0 where none was found."""

    places: list[int]

    def hit(self, most: int) -> float:
        """Return the share of questions whose answer is among the first `most`."""
        return statistics.fmean(0 < place <= most for place in self.places)

    @property
    def mrr(self) -> float:
        """Return the mean reciprocal rank."""
        return statistics.fmean(reciprocal(self.places))

    def row(self) -> tuple[float, float, float]:
        """Return hit@1, hit@5 and MRR."""
        return self.hit(1), self.hit(5), self.mrr


def reciprocal(places: Sequence[int]) -> list[float]:
    """Return one over each place, 0 where nothing was found."""
    return [1 / place if place else 0.0 for place in places]


def interval(figures: Sequence[float]) -> tuple[float, float]:
    """Return the bounds of 95 % of the means of samples with replacement (Efron, 1979)."""
    rng = random.Random(5)
    means = sorted(statistics.fmean(rng.choices(figures, k=len(figures))) for _ in range(SAMPLES))
    return means[SAMPLES // 40], means[-SAMPLES // 40 - 1]


# ------------------------------------------------------------------ what is asked


def ours(index: Index, asked: Question, *, group: str = "session") -> list[str]:
    """Return the sessions of the memory's own answer."""
    arguments: dict[str, object] = {"query": asked.text, "group": group, "limit": LOOKED_AT}
    arguments |= {"snippet_tokens": 8} | ({"until": asked.until} if asked.until else {})
    told = recall.recall(index.reader, Scope(index.reader.classes.top), arguments, db.Deadline())
    hits = told["hits"]
    assert isinstance(hits, list)  # noqa: S101 (as docs/protocol.md says)
    return list(dict.fromkeys(str(hit["session"]) for hit in hits))


def plain(index: Index, asked: Question, *, table: str) -> list[str]:
    """Return the sessions of the best rows by FTS5's own bm25() that hold any of the words."""
    words = dict.fromkeys(re.findall(r"\w+", asked.text.lower()))
    any_of_them = " OR ".join(f'"{word}"' for word in words)
    sql = f"SELECT session FROM {table} WHERE {table} MATCH ? ORDER BY bm25({table}) LIMIT 2000"
    assert index.plain is not None  # noqa: S101 (`main` asks no other)
    rows = index.plain.execute(sql, (any_of_them,))
    return list(dict.fromkeys(str(session) for (session,) in rows))[:LOOKED_AT]


@contextmanager
def common_words_dropped() -> Iterator[None]:
    """Ask without the words in more than a fifth of the rows, where others remain."""
    exact = plan.plan

    def dropping(
        weighed: Sequence[plan.Weighed], mode: query.Mode, rows: int, **how: bool
    ) -> plan.Plan | None:
        rarer = [one for one in weighed if one.frequency * 5 <= rows]
        kept = rarer if any(one.frequency for one in rarer) else weighed
        return exact(kept, mode, rows, **how)

    with mock.patch.object(question, "plan", dropping):
        yield


@contextmanager
def words_only() -> Iterator[None]:
    """Take identifiers for their words alone."""
    exact = query.parse

    def apart(text: str, mode: query.Mode, tokens: query.Tokens) -> tuple[object, ...]:
        terms = exact(text, mode, tokens)
        flat = [part for term in terms for part in (term.parts or (term,))]
        return tuple({term.tokens: term for term in flat}.values())

    with mock.patch.object(question, "parse", apart):
        yield


@contextmanager
def phrases_only() -> Iterator[None]:
    """Take identifiers as phrases alone."""
    with mock.patch.object(query, "_with_parts", lambda term, tokens: term):
        yield


@contextmanager
def records_lifted() -> Iterator[None]:
    """Add the session's part to hits that come as records too."""

    def lifting(asked: question.Asked, way: plan.Plan) -> bool:
        return asked.ask.order == "relevance" and not way.newest

    with mock.patch.object(question, "_lifting", lifting):
        yield


def patched(owner: object, name: str, value: object) -> Setting:
    """Return a setting in which one constant has another value."""
    return lambda: mock.patch.object(owner, name, value)


BEST_ROW = patched(support, "POOL", 0)
ARMS: Mapping[str, tuple[Callable[..., list[str]], Setting]] = {
    "ours": (ours, nullcontext),
    "plain bm25, porter, any word, best row": (partial(plain, table="stemmed"), nullcontext),
    "plain bm25, no stemming": (partial(plain, table="unstemmed"), nullcontext),
    "best row alone": (ours, BEST_ROW),
    "hits as records (group = record)": (partial(ours, group="record"), nullcontext),
    "with a length floor of 20 tokens": (ours, patched(search, "LENGTH", "max(r.dl, 20)")),
    "with a length floor of 50 tokens": (ours, patched(search, "LENGTH", "max(r.dl, 50)")),
    "without words of over a fifth of the rows": (ours, common_words_dropped),
    "identifiers as words alone": (ours, words_only),
    "identifiers as phrases alone": (ours, phrases_only),
    "session's part halved": (ours, patched(support, "SHARE", 1.0)),
    "session's part doubled": (ours, patched(support, "SHARE", 4.0)),
    "session's part from 64 rows": (ours, patched(support, "POOL", 64)),
    "session's part from 256 rows": (ours, patched(support, "POOL", 256)),
    "records, with the session's part": (partial(ours, group="record"), records_lifted),
    "age does not matter": (ours, patched(support, "NEWER", 0.0)),
    "newer counts three times as much": (ours, patched(support, "NEWER", 0.3)),
    "newer, halved after a week": (ours, patched(support, "HALVED_MS", 7 * 24 * 3_600 * 1_000)),
    "project and day do not matter": (ours, patched(support, "NAMED", 0.0)),
    "project and day count three times as much": (ours, patched(support, "NAMED", 0.3)),
    "near-duplicates folded (0.9)": (ours, lambda: changing(folded(0.9))),
    "near-duplicates folded (0.6)": (ours, lambda: changing(folded(0.6))),
}


def asked(index: Index, arm: str, questions: Sequence[Question]) -> Scores:
    """Return where an arm has the answers."""
    ask, setting = ARMS[arm]
    places = []
    with setting():
        for one in questions:
            found = ask(index, one)
            places.append(next((at for at, s in enumerate(found, 1) if s in one.sessions), 0))
    return Scores(places)


def main(argv: list[str]) -> int:
    """Ask every set of every arm; see the module's docstring. Exit 1 when `ours` misses a target."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=os.environ.get("MEMORYD_CORPUS"))
    parser.add_argument("--arm", action="append", choices=list(ARMS), help="only these, and ours")
    parser.add_argument("--set", action="append", help="only sets that begin so")
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args(argv)
    if options.corpus is None:
        parser.error("say --corpus DIR, or set MEMORYD_CORPUS")
    arms = [arm for arm in ARMS if not options.arm or arm == "ours" or arm in options.arm]
    report: dict[str, object] = {"when": rfc3339(now_ms()), "machine": machine()}
    met = True

    def wanted(name: str) -> bool:
        sets = options.set or [""]
        return any(name.startswith(one) or one.startswith(name) for one in sets)

    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as scratch:
        for name, index, questions in sets_of(Path(options.corpus), Path(scratch), wanted):
            if not wanted(name):
                continue
            fit = [arm for arm in arms if index.plain is not None or not arm.startswith("plain")]
            scores = {arm: asked(index, arm, questions) for arm in fit}
            report[name] = {arm: told(one, scores["ours"]) for arm, one in scores.items()}
            show(name, scores)
            if name == "intents":
                met = all(a >= b for a, b in zip(scores["ours"].row(), TARGETS, strict=True))
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / "recall.json"
    target.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    print(f"written to {target}")
    return 0 if met else 1


def told(scores: Scores, against: Scores) -> dict[str, object]:
    """Return an arm's figures, with what its MRR is more than that of `against`."""
    more = paired(scores, against)
    return {
        "questions": len(scores.places),
        "hit@1": scores.hit(1),
        "hit@5": scores.hit(5),
        "mrr": scores.mrr,
        "hit@1 interval": interval([float(place == 1) for place in scores.places]),
        "hit@5 interval": interval([float(0 < place <= 5) for place in scores.places]),
        "mrr interval": interval(reciprocal(scores.places)),
        "mrr more": statistics.fmean(more),
        "mrr more interval": interval(more),
    }


def paired(scores: Scores, against: Scores) -> list[float]:
    """Return, question by question, what one reciprocal rank is more than another."""
    pairs = zip(reciprocal(scores.places), reciprocal(against.places), strict=True)
    return [one - other for one, other in pairs]


def show(name: str, scores: Mapping[str, Scores]) -> None:
    """Print the table of one set."""
    print(f"\n{name}: {len(scores['ours'].places)} questions")
    print(f"{'arm':<44}{'hit@1':>7}{'hit@5':>7}{'MRR':>7}  {'95 %':<15}more")
    for arm, one in scores.items():
        low, high = interval(reciprocal(one.places))
        less, more = interval(paired(one, scores["ours"]))
        change = f"{one.mrr - scores['ours'].mrr:+.3f} [{less:+.3f} {more:+.3f}]"
        figures = "".join(f"{figure:7.3f}" for figure in one.row())
        print(f"{arm:<44}{figures}  [{low:.3f} {high:.3f}]  {change}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
