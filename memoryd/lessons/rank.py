"""Which lessons fit a question, best first.

In: a query and a reader. Out: `Candidate`s, at most 50 that may be told. Score = words × origin ×
(0.7 + 0.3 · 0.95^(age in days)): what was observed here counts more than what somebody said, what is new more
than what is old.
"""

import apsw
import msgspec

from memoryd.lessons import row, settings, words
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson

MOST = 50
_BOOST = {"reflector": 2.0, "causal": 2.0, "pattern": 1.5}
_TYPE = {"error": 0, "pattern": 1, "rule": 1, "solution": 1, "decision": 2, "context": 3}
_RECENCY, _OLD = 0.95, 0.7
"""Age takes three tenths of a weight at most: enough to put the newer of two like ones first (decision 0012)."""
_DAY = 86_400_000


class Candidate(msgspec.Struct, frozen=True):
    """A lesson and how well it fits; higher is better."""

    lesson: Lesson
    score: float


def candidates(
    connection: apsw.Connection,
    reader: Reader,
    query: str,
    now: int,
    *,
    project: str | None = None,
    sees: Reader | None = None,
) -> list[Candidate]:
    """Return what fits `query`, whatever its status: the gate decides, and counts what it refuses.

    First the best fifty that `reader` sees of `project`; after them some that `sees`, a wider reader, adds,
    so that its owner is told what is refused. What is added moves neither the scores nor the choice of the
    first, and stands behind them.
    """
    terms = words.query_terms(connection, query)
    found = _best(words.scores(connection, terms, reader, project=project))
    if sees is not None and project is not None:
        found |= dict.fromkeys(words.outside(connection, terms, reader, sees, project), 0.0)
    frozen = settings.on(connection, "deterministic_retrieval")
    rows = msgspec.json.encode(list(found)).decode()
    lessons = row.select(connection, "lesson.row IN (SELECT value FROM json_each(?))", (rows,))
    made = [
        Candidate(lesson, ranked(lesson, found[lesson.row], None if frozen else now))
        for lesson in lessons
        if lesson.expires_at is None or lesson.expires_at > now
    ]
    return sorted(made, key=_order)


def _best(found: dict[int, float]) -> dict[int, float]:
    best = sorted([(-score, number) for number, score in found.items()])[:MOST]
    return {number: -score for score, number in best}


def ranked(lesson: Lesson, score: float, now: int | None) -> float:
    """Return `score` weighed by origin and age; `now` None: age plays no part."""
    age = 0.0 if now is None else max(0, now - lesson.created_at) / _DAY
    return float(score * _BOOST.get(lesson.origin, 1.0) * (_OLD + (1 - _OLD) * _RECENCY**age))


def _order(candidate: Candidate) -> tuple[float, int, int, int]:
    lesson = candidate.lesson
    return (-candidate.score, _TYPE[lesson.type], -lesson.created_at, lesson.row)


def bump(connection: apsw.Connection, lessons: list[Lesson]) -> None:
    """Raise the relevance of what was shown by 0.05, to 1 at most; nothing under the frozen setting."""
    if not settings.on(connection, "deterministic_retrieval"):
        connection.executemany(
            "UPDATE lesson SET relevance = min(1.0, relevance + 0.05) WHERE row = ?",
            [(lesson.row,) for lesson in lessons],
        )
