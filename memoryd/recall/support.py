"""What a session adds to its best row, so that words which stand apart in it find it too.

In: the matches of an answer in order, and of the best of them how often each word of the question stands in
each, as counted while they were scored. Out: the same matches, in the order of row and session together.
Pure; a function of rows that the reader may see, as their scores are.

A session's part is BM25 of the session as one document, of which only its rows among the best `POOL` are
read. Measured (docs/performance.md): more sessions come first than by their best row alone, of every kind of
question; counting words that stand anywhere in a session prefers long sessions and loses.
Beside that a newer row counts a little more, unless the question says otherwise: of what fits equally well the
later session is more often the one that is meant. And so does a row whose project or day the question names: people say
"the parser in shop on 12 March", and none of that need stand in the session.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import exp2, expm1

import msgspec

from memoryd.clock import rfc3339
from memoryd.index.score import Counts, saturation, weight
from memoryd.index.search import LogName, Match
from memoryd.recall.rank import Merged

POOL = 128
"""Matches whose sessions are weighed; behind them rows keep their order."""
SHARE = 2.0
"""What a session's own score is worth beside that of its best row."""
NEWER = 0.1
"""What a row counts more while it is new, of which half is left after `HALVED_MS`."""
HALVED_MS = 30 * 24 * 3_600 * 1_000
NAMED = 0.1
"""What each word that names a row's project or day is worth, as a share of the best score."""
_WORD = re.compile(r"\w+")
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_ROWS = 20
"""Rows of a session within which a word comes again and again, as frequencies are turned into sessions."""


class Seen(msgspec.Struct, frozen=True):
    """What is known of the pool's rows.

    `names` and `lengths` (visible rows) by log; `counts` by row, a number for each of the `weights`, which
    say what it is worth that a session holds a term. `now`: the moment (ms) from which ages count; None: age
    does not matter. `words`: those of the question, in small letters.
    """

    names: Mapping[int, LogName]
    lengths: Mapping[int, int]
    counts: Counts
    weights: Sequence[float]
    now: int | None = None
    words: frozenset[str] = frozenset()


Session = tuple[str, str]
"""Source and name."""


def worth(rows: int, frequency: int) -> float:
    """Return what it is worth that a session holds a term of `frequency` among `rows` visible rows.

    Its idf among sessions, of which nobody keeps count: `frequency` rows thrown at random into stretches
    of `_ROWS` rows fall into so many different ones.
    """
    stretches = rows / _ROWS
    return weight(stretches, stretches * -expm1(-frequency / stretches)) if rows else 0.0


def lifted(merged: Merged, seen: Seen) -> Merged:
    """Return the matches with those of the pool scored, and sorted, by row and session together."""
    pool, behind = merged.matches[:POOL], merged.matches[POOL:]
    scores = _scores(pool, seen)
    raised = [
        m._replace(first=(m.first - SHARE * scores[_session(m, seen)]) * newer(m.ts, seen.now))
        for m in pool
    ]
    best = min((match.first for match in raised), default=0.0)
    raised = [m._replace(first=m.first + NAMED * best * named(m, seen)) for m in raised]
    order = sorted(range(len(pool)), key=lambda at: (raised[at].first, at))
    return Merged([*(raised[at] for at in order), *behind], merged.all)


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in small letters."""
    return frozenset(_WORD.findall(text.lower()))


def named(match: Match, seen: Seen) -> int:
    """Return how many words of the question name the row's project (its folder's last part) or its day.

    The number of a day counts only beside its month or its year.
    """
    project = seen.names[match.log].project.replace("\\", "/").rstrip("/")
    said = words_of(project.rpartition("/")[2])
    if match.ts is not None:
        year, month, day = rfc3339(match.ts)[:10].split("-")
        date = frozenset((year, _MONTHS[int(month) - 1], *((month,) if year in seen.words else ())))
        said |= date | ({day, day.lstrip("0")} if date & seen.words else frozenset())
    return len(said & seen.words)


def newer(ts: int | None, now: int | None) -> float:
    """Return what a row's score is multiplied by for its age."""
    if ts is None or now is None:
        return 1.0
    return 1.0 + NEWER * exp2(-max(0, now - ts) / HALVED_MS)


def _scores(pool: Sequence[Match], seen: Seen) -> dict[Session, float]:
    """Return the BM25 of each session of the pool."""
    held: dict[Session, list[int]] = {}
    logs: dict[Session, set[int]] = defaultdict(set)
    for match in pool:
        session = _session(match, seen)
        before = held.get(session, [0] * len(seen.weights))
        held[session] = [a + b for a, b in zip(before, seen.counts[match.id], strict=True)]
        logs[session].add(match.log)
    lengths = {name: sum(seen.lengths[log] for log in found) for name, found in logs.items()}
    average = sum(lengths.values()) / max(1, len(lengths))
    return {
        name: _bm25(counts, seen.weights, saturation(lengths[name], average))
        for name, counts in held.items()
    }


def _bm25(counts: Sequence[int], weights: Sequence[float], below: float) -> float:
    pairs = zip(counts, weights, strict=True)
    return sum(weight_ * count / (count + below) for count, weight_ in pairs if count)


def _session(match: Match, seen: Seen) -> Session:
    name = seen.names[match.log]
    return name.source, name.session
