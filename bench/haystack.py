"""`make bench-haystack`: does the planner find in a million rows of real text what looking at all of them finds?

In: `--corpus DIR` or MEMORYD_CORPUS, with `recall/*.json` (`bench.questions`) and perhaps `sessions/`; how many rows.
Out: a table, and JSON in bench/results/. The real sessions lie among made ones, whose rows are walks through the
real text from each word to one that follows it somewhere (a bigram model), as long as real rows are. So words are
as common as in real text, and stand beside each other as there. A word that only one real session has stands for
`TURNS` words, of which each made session uses one: so many that the vocabulary grows with the text as it does among
the real sessions (Heaps' law, whose exponent there is 0.51). `--flat`: for itself alone; then what is rare among the
real rows is 34 times as common in a million, which is harder than real text. Deterministic; nothing of it is kept
but under MEMORYD_BENCH_KEEP.

Each question is asked through the planner and with every row scored that holds any of its words, once for sessions
and once for records. `more`: what the planner's MRR is more than the other's, paired, with 95 % of 2,000 bootstrap
samples. Of the questions that sessions tell of themselves a sample is asked: each costs seconds where every row is
scored.
"""

import argparse
import itertools
import json
import os
import random
import re
import sys
import tempfile
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import msgspec

from bench import query, recall, sets
from bench.questions import Line, Question, read, told_by_themselves, write
from bench.recall import Scores
from bench.row import machine, percentile
from bench.sets import Index
from memoryd import config, db
from memoryd.clock import now_ms, rfc3339
from memoryd.ids import Ids
from memoryd.index import building, from_config
from memoryd.index.search import Reader
from memoryd.labels import Classes

RECORDS = 1_000_000
SAMPLE = 40
"""Questions of each kind that sessions tell of themselves."""
A_SESSION = 200
TURNS = 11
KEEP = "MEMORYD_BENCH_KEEP"
AIM = 0.01
"""How much MRR the planner may lose."""
GROUPS = ("session", "record")
Sets = Iterator[tuple[str, Index, list[Question]]]
_WORD = re.compile(r"\w+")
_MARK = "\0"


class Options(msgspec.Struct, frozen=True):
    """How many records, how many questions of a kind, how many words one of a single session stands for.

    `intents`: only what people asked.
    """

    records: int = RECORDS
    sample: int = SAMPLE
    turns: int = TURNS
    intents: bool = False


class Walk:
    """A bigram model of real rows."""

    def __init__(self, rows: Sequence[Line], seed: int, *, turns: int) -> None:
        """Learn which words follow which; those of one session alone stand for `turns` words each."""
        self._rng = random.Random(seed)
        self._turns, alone = turns, _alone(rows)
        numbers: dict[str, int] = {}
        after: dict[int, array[int]] = defaultdict(lambda: array("i"))
        self._firsts, self._lengths = array("i"), array("i")
        for row in rows:
            told = [numbers.setdefault(word, len(numbers)) for word in row.text.split()]
            if told:
                self._firsts.append(told[0])
                self._lengths.append(len(told))
            for one, other in itertools.pairwise(told):
                after[one].append(other)
        self._words = [_WORD.sub(partial(_marked, alone), word) for word in numbers]
        self._after = dict(after)

    def row(self, session: int) -> str:
        """Return a row: as long as a real one, begun as a real one; a word that nothing follows begins anew."""
        draw, after, firsts = self._rng.random, self._after, self._firsts
        at = firsts[int(draw() * len(firsts))]
        path = [at]
        for _ in range(self._lengths[int(draw() * len(self._lengths))] - 1):
            following = after.get(at, firsts)
            at = following[int(draw() * len(following))]
            path.append(at)
        turn = session % self._turns
        mark = f"{chr(ord('a') + turn)}q" if turn else ""
        return " ".join([self._words[number] for number in path]).replace(_MARK, mark)


def _alone(rows: Sequence[Line]) -> frozenset[str]:
    """Return the words that stand in one session only."""
    sessions: dict[str, str] = {}
    for row in rows:
        for word in _WORD.findall(row.text.lower()):
            if sessions.setdefault(word, row.id) != row.id:
                sessions[word] = ""
    return frozenset(word for word, session in sessions.items() if session)


def _marked(alone: frozenset[str], word: re.Match[str]) -> str:
    """Return a word with the place for a mark behind it, if it is one of those `alone`."""
    return word[0] + _MARK if word[0].lower() in alone else word[0]


def made(rows: Sequence[Line], count: int, folder: Path, *, turns: int) -> None:
    """Write sessions of `count` made rows into `folder`."""
    walk = Walk(rows, 11, turns=turns)
    folder.mkdir(parents=True)
    for number, start in enumerate(range(0, count, A_SESSION)):
        several = range(min(A_SESSION, count - start))
        write([Line(f"made-{number:05}", walk.row(number)) for _ in several], folder)


def indexed(folder: Path, real: Sequence[Line], hay: Path) -> Index:
    """Return an index of the real rows among the made ones; made once."""
    text = "".join(
        f'[[source]]\nkind = "auto"\npath = "{path}"\n' for path in (folder / "logs", hay)
    )
    loaded = config.parse(text + '[index]\nmax_class = "secret"\n', folder / "memoryd.toml")
    settings = from_config(loaded.config, folder / "state", sets.KEY, {"HOME": str(folder)})
    path = folder / "state" / "memory.sqlite3"
    if not path.exists():
        for one in (folder / "logs", folder / "state"):
            one.mkdir(parents=True)
        write(real, folder / "logs")
        temp = path.with_suffix(".part")
        db.create(temp)
        building.build(temp, settings)
        temp.rename(path)
    return Index(
        Reader(db.reader(path), Ids(sets.KEY), Classes(settings.classes.names)), plain=None
    )


def sets_of(corpus: Path, folder: Path, options: Options) -> Sets:
    """Yield every set of questions, and what it is asked of."""
    rows, questions = read(corpus / "recall")
    if not questions:
        raise SystemExit(f"bench-haystack: no questions in {corpus}/recall; say --corpus DIR")
    others: list[Line] = []
    if (corpus / "sessions").is_dir():
        with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as scratch:
            others = sets.logged(corpus / "sessions", Path(scratch) / "logged")
    hay = folder / "hay"
    if not hay.exists():
        part = folder / "hay.part"
        count = max(0, options.records - len(rows) - len(others))
        made([*rows, *others], count, part, turns=options.turns)
        part.rename(hay)
    yield "intents", indexed(folder / "whole", [*rows, *others], hay), questions
    if options.intents:
        return
    own, kept = told_by_themselves(rows)
    of_others, kept_others = told_by_themselves(others)
    less = indexed(folder / "less", [*kept, *kept_others], hay)
    named = {**own, **{f"others, {name}": several for name, several in of_others.items()}}
    for name, several in named.items():
        if several:
            yield name, less, random.Random(3).sample(several, min(options.sample, len(several)))


def asked(
    index: Index, questions: Sequence[Question], group: str, *, all_rows: bool
) -> tuple[Scores, float]:
    """Return where the answers come, and the median CPU seconds of a question."""
    setting: AbstractContextManager[None] = query.everything_drives() if all_rows else nullcontext()
    places, taken = [], []
    with setting:
        for one in questions:
            began = time.process_time()
            found = recall.ours(index, one, group=group)
            taken.append(time.process_time() - began)
            places.append(next((at for at, s in enumerate(found, 1) if s in one.sessions), 0))
    return Scores(places), percentile(taken, 0.5)


def compared(name: str, index: Index, questions: Sequence[Question]) -> dict[str, object]:
    """Return, and print, what one set gives in each form of asking."""
    figures: dict[str, object] = {}
    for group in GROUPS:
        planned, quick = asked(index, questions, group, all_rows=False)
        exhaustive, slow = asked(index, questions, group, all_rows=True)
        figures[group] = {
            "planner": recall.told(planned, exhaustive) | {"cpu p50 ms": 1e3 * quick},
            "every row": recall.told(exhaustive, exhaustive) | {"cpu p50 ms": 1e3 * slow},
        }
        more = recall.paired(planned, exhaustive)
        low, high = recall.interval(more)
        both = "   ".join(
            " ".join(f"{figure:.3f}" for figure in one.row()) + f" {1e3 * taken:7.0f} ms"
            for one, taken in ((planned, quick), (exhaustive, slow))
        )
        change = f"{sum(more) / len(more):+.4f} [{low:+.3f} {high:+.3f}]"
        print(f"{name:<18}{len(questions):>4} {group:<8} {both}   {change}", flush=True)
    return figures


def worst(report: Mapping[str, Mapping[str, object]]) -> float:
    """Return the least `mrr more` of the planner over the whole sets that people asked."""
    said = msgspec.convert(report["intents"], dict[str, dict[str, dict[str, object]]])
    return min(float(str(one["planner"]["mrr more"])) for one in said.values())


def main(argv: list[str]) -> int:
    """Ask every set; see the module's docstring. Exit 1 when the planner loses more than `AIM` on the intents."""
    parser = argparse.ArgumentParser(prog="python -m bench.haystack", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=os.environ.get("MEMORYD_CORPUS"))
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--flat", action="store_true", help="the vocabulary does not grow")
    parser.add_argument("--intents", action="store_true", help="only what people asked")
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args(argv)
    if options.corpus is None:
        parser.error("say --corpus DIR, or set MEMORYD_CORPUS")
    found: dict[str, dict[str, object]] = {}
    print(f"{'set':<18}{'':>4} {'asked':<8} planner: hit@1 hit@5 MRR, every row: the same   more")
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as scratch:
        kept, called = os.environ.get(KEEP), f"{options.records}{'-flat' * options.flat}"
        folder = Path(kept, f"haystack-{called}") if kept else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        turns = 1 if options.flat else TURNS
        size = Options(options.records, options.sample, turns, options.intents)
        for name, index, questions in sets_of(options.corpus, folder, size):
            found[name] = compared(name, index, questions)
    report = {
        "when": rfc3339(now_ms()),
        "records": options.records,
        "machine": machine(),
        "sets": found,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / f"{called}-haystack.json"
    target.write_bytes(json.dumps(report, indent=1).encode())
    print(f"written to {target}")
    return 0 if worst(found) >= -AIM else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
