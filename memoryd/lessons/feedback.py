"""What people think of a lesson: kept apart from what was observed.

In: a verdict. Out: a row of the trail, sums derived from it, and at most one change of status. Neither evidence
nor recurrence moves. `ignore` is an action, not an opinion: it hides the lesson and counts in no sum.
"""

import apsw

from memoryd import db, redact
from memoryd.errors import BadRequest, NotFound
from memoryd.lessons import row, settings
from memoryd.lessons.reader import Reader

VERDICTS = ("useful", "wrong", "outdated", "ignore")
_WRONG_TWICE = 2


def give(
    connection: apsw.Connection,
    reader: Reader,
    id: str,
    verdict: str,
    *,
    now: int,
    session: str | None = None,
    note: str | None = None,
) -> dict[str, object]:
    """Take a verdict on a visible lesson and return what it came to. Raises: NotFound, BadRequest.

    The owner's `useful` also vouches for an untrusted lesson, which may then be shown.
    """  # fmt: skip
    if verdict not in VERDICTS:
        raise BadRequest(f"there is no verdict {verdict}", remedy=f"one of {', '.join(VERDICTS)}")
    with db.transaction(connection):
        lesson = row.get(connection, id, reader)
        if lesson is None:
            raise NotFound("no such lesson", remedy="`query` lists those you may see")
        kept = None if note is None else redact.secrets(note)
        connection.execute(
            "INSERT INTO feedback(lesson, verdict, session, note, at) VALUES (?, ?, ?, ?, ?)",
            (id, verdict, session, kept, now),
        )
        sums = trail(connection, id)
        useful, against = sums["useful"], sums["wrong"] + sums["outdated"]
        changes: dict[str, str | float | None] = {"useful": useful, "against": against}
        if verdict == "useful":
            changes["verified_at"] = now
            if reader.owner and lesson.untrusted:
                changes["untrusted"] = 0
        elif verdict == "ignore":
            changes["ignored"] = 1
        row.update(connection, lesson.row, **changes)
        if verdict == "outdated" or (verdict == "wrong" and sums["wrong"] >= _WRONG_TWICE):
            row.stale(connection, lesson, now, session)
        _count(connection, verdict)
        after = row.select(connection, "row = ?", (lesson.row,))[0]
    return {
        "ok": True,
        # No row number: it would count opinions on lessons that the reader may not see.
        "feedback_id": row.new_id(now, "feedback", id, verdict, sum(sums.values())),
        "memory_id": id,
        "verdict": verdict,
        "counters": {"positive": useful, "negative": against},
        "by_verdict": sums,
        "ignored": after.ignored,
        "status": after.status,
        "confidence": after.confidence,
    }


def trail(connection: apsw.Connection, id: str) -> dict[str, int]:
    """Return how often each verdict was given on a lesson."""
    found = connection.execute(
        "SELECT verdict, count(*) FROM feedback WHERE lesson = ? GROUP BY verdict", (id,)
    )
    given = {str(verdict): int(number) for verdict, number in found}
    return {verdict: given.get(verdict, 0) for verdict in VERDICTS}


def _count(connection: apsw.Connection, verdict: str) -> None:
    if verdict == "useful":
        settings.count(connection, "feedback_positive_total")
    elif verdict != "ignore":
        settings.count(connection, "feedback_negative_total")
