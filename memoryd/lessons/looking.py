"""The owner's view of lessons: a list of them with what came of each, every telling, and rates day by day.

In: a reader. Out: plain values, newest first, and the join of the labels of all that is told. A rate is null where
there is nothing to divide by. What a telling came to is told as it was settled, and so is fit for the owner alone:
a reader below would learn of calls that it may not see (`ledger.rates`).
"""

from collections import defaultdict
from collections.abc import Iterable

import apsw
import msgspec

from memoryd.clock import rfc3339
from memoryd.labels import LOWEST, Label
from memoryd.lessons import row, tools, words
from memoryd.lessons.ledger import Rates
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson

OUTCOMES = ("effective", "ineffective", "inconclusive", "unmeasured")
_DAY_MS = 86_400_000


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Which lessons: one, words that must all be there, a status, and the id behind which the page begins."""

    id: str | None = None
    query: str = ""
    status: str | None = None
    after: str | None = None
    limit: int = 50


def lessons(
    connection: apsw.Connection, reader: Reader, page: Page
) -> tuple[list[dict[str, object]], Label]:
    """Return a page of lessons in the order of their ids, which begin with the time: newest first."""
    parts, bound = ["1"], []
    if page.id is not None:
        parts.append("id = ?")
        bound.append(page.id)
    if page.status is not None:
        parts.append("status = ?")
        bound.append(page.status)
    if page.after is not None:
        parts.append("id < ?")
        bound.append(page.after)
    if page.query.strip():
        terms = words.query_terms(connection, page.query)
        found = words.scores(connection, terms, reader, every=True)
        parts.append(f"lesson.row IN ({','.join(map(str, found))})")
    order = f"id DESC LIMIT {int(page.limit)}"
    found_lessons = row.visible(connection, reader, " AND ".join(parts), tuple(bound), order=order)
    told, refused = _told(connection, reader), _refused(connection)
    listed = [
        _whole(one) | {"told": told.get(one.id, _counts(())), "refused": refused.get(one.id, {})}
        for one in found_lessons
    ]
    return listed, _joined(one.label for one in found_lessons)


def _whole(lesson: Lesson) -> dict[str, object]:
    return tools.whole(lesson) | {
        "first_line": lesson.first_line,
        "error_type": lesson.error_type,
        "suggestion": lesson.suggestion,
        "useful": lesson.useful,
        "against": lesson.against,
        "level": lesson.level,
        "untrusted": lesson.untrusted,
    }


def _told(connection: apsw.Connection, reader: Reader) -> dict[str, dict[str, int]]:
    """Return of each lesson how its tellings came out."""
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for lesson, outcome, number in connection.execute(
        "SELECT lesson, outcome, count(*) FROM injection "
        f"WHERE {reader.where('injection')} GROUP BY lesson, outcome"
    ):
        found[str(lesson)].append((str(outcome), int(number)))
    return {lesson: _counts(counts) for lesson, counts in found.items()}


def _counts(found: Iterable[tuple[str, int]]) -> dict[str, int]:
    return dict.fromkeys(OUTCOMES, 0) | dict(found)


def _refused(connection: apsw.Connection) -> dict[str, dict[str, int]]:
    """Return of each lesson how often each reason kept it back; under "" stand those of higher questions."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for lesson, reason, number in connection.execute("SELECT lesson, reason, count FROM refusal"):
        found[str(lesson)][str(reason)] = int(number)
    return found


def tellings(
    connection: apsw.Connection,
    reader: Reader,
    *,
    lesson: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> tuple[list[dict[str, object]], Label]:
    """Return rows of the ledger, newest first; `number` names one, and `before` goes on behind it."""
    found = list(
        connection.execute(
            "SELECT row, lesson, session, project, hook, tokens, at, outcome, prevented, final, level, "
            f"untrusted FROM injection WHERE {reader.where('injection')} "
            "AND (?1 IS NULL OR lesson = ?1) AND (?2 IS NULL OR row < ?2) ORDER BY row DESC LIMIT ?3",
            (lesson, before, limit),
        )
    )
    listed: list[dict[str, object]] = [
        {
            "number": number,
            "lesson": lesson_,
            "session": session,
            "project": project or None,
            "hook": hook,
            "tokens": tokens,
            "ts": rfc3339(at),
            "outcome": outcome,
            "prevented": bool(prevented),
            "final": bool(final),
            "level": level,
            "untrusted": bool(untrusted),
        }
        for number, lesson_, session, project, hook, tokens, at, outcome, prevented, final, level,
        untrusted in found
    ]  # fmt: skip
    return listed, _joined(Label(int(values[10]), bool(values[11])) for values in found)


def days(
    connection: apsw.Connection, reader: Reader, *, most: int = 366
) -> tuple[list[dict[str, object]], Label]:
    """Return counts and rates of each day (UTC) on which something was told, oldest first.

    `so_far`: precision and coverage over that day and all before it, those before the first day listed too.
    """
    by_day: dict[int, dict[str, int]] = defaultdict(lambda: _counts(()) | {"prevented": 0})
    label = LOWEST
    for day, outcome, number, prevented, level, untrusted in connection.execute(
        f"SELECT at / {_DAY_MS}, outcome, count(*), sum(prevented), max(level), max(untrusted) "
        f"FROM injection WHERE {reader.where('injection')} GROUP BY 1, 2"
    ):
        by_day[int(day)][str(outcome)] += int(number)
        by_day[int(day)]["prevented"] += int(prevented)
        label = label.join(Label(int(level), bool(untrusted)))
    listed: list[dict[str, object]] = []
    running = dict.fromkeys((*OUTCOMES, "prevented"), 0)
    for day in sorted(by_day):
        counts = by_day[day]
        running = {name: running[name] + counts[name] for name in running}
        here, so_far = _rates(counts), _rates(running)
        told = {"day": rfc3339(day * _DAY_MS)[:10], **counts, "total": here.total}
        listed.append(told | _shares(here) | {"so_far": _shares(so_far) | {"total": so_far.total}})
    return listed[-most:], label


def _rates(counts: dict[str, int]) -> Rates:
    return Rates(total=sum(counts[name] for name in OUTCOMES), **counts)


def _shares(rates: Rates) -> dict[str, object]:
    return {"precision_rate": rates.precision_rate, "coverage_rate": rates.coverage_rate}


def _joined(labels: Iterable[Label]) -> Label:
    joined = LOWEST
    for label in labels:
        joined = joined.join(label)
    return joined
