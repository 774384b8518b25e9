"""Why something fails here: the surest pattern, and each failure and fix that stands behind it.

In: words and a reader. Out: what was seen, in order of time; nothing that was only concluded.
"""

import apsw

from memoryd.clock import rfc3339
from memoryd.labels import Label
from memoryd.lessons import row, words
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson


def why(connection: apsw.Connection, reader: Reader, query: str) -> dict[str, object]:
    """Return the surest pattern that holds all the words, and what was seen of it."""
    best = surest(connection, reader, query)
    return (
        {"message": "no causal patterns"} if best is None else _explained(connection, reader, best)
    )


def surest(connection: apsw.Connection, reader: Reader, query: str) -> Lesson | None:
    """Return the surest pattern that holds all the words."""
    terms = words.query_terms(connection, query)
    found = words.scores(connection, terms, reader, every=True)
    marks = ",".join(map(str, found))
    best = row.visible(
        connection,
        reader,
        f"type = 'pattern' AND origin IN ('causal', 'pattern') AND status = 'active' AND ignored = 0 "
        f"AND lesson.row IN ({marks})",
        order="evidence DESC, created_at DESC, row LIMIT 1",
    )
    return best[0] if best else None


def label(connection: apsw.Connection, reader: Reader, lesson: Lesson) -> Label:
    """Return the join of a pattern and of each failure and fix that its explanation tells."""
    found = connection.execute(
        "SELECT level, untrusted FROM call WHERE ok = 0 AND error = ?1 AND project = ?2 "
        f"AND {reader.where('call')} UNION SELECT level, untrusted FROM fix "
        f"WHERE fingerprint = ?1 AND project = ?2 AND {reader.where('fix')} "
        "UNION SELECT level, untrusted FROM lesson WHERE type = 'error' AND origin = 'reflector' "
        f"AND fingerprint = ?1 AND project = ?2 AND {reader.where('lesson')}",
        (lesson.fingerprint, lesson.project),
    )
    joined = lesson.label
    for level, untrusted in found:
        joined = joined.join(Label(int(level), bool(untrusted)))
    return joined


def _seen(connection: apsw.Connection, reader: Reader, lesson: Lesson) -> apsw.Cursor:
    """Return each failure and fix of an error, with session and time, in their order.

    Calls are let go after a year; the failure that taught a lesson is known from the lesson then.
    """
    return connection.execute(
        "SELECT 'failure', session, at FROM call WHERE ok = 0 AND error = ?1 AND project = ?2 "
        f"AND {reader.where('call')} UNION ALL SELECT 'fix', session, at FROM fix "
        f"WHERE fingerprint = ?1 AND project = ?2 AND {reader.where('fix')} "
        "UNION ALL SELECT 'failure', session, created_at FROM lesson "
        "WHERE type = 'error' AND origin = 'reflector' AND fingerprint = ?1 AND project = ?2 "
        f"AND {reader.where('lesson')} AND NOT EXISTS (SELECT 1 FROM call c WHERE c.ok = 0 "
        "AND c.error = ?1 AND c.at = lesson.created_at AND c.session = lesson.session "
        f"AND {reader.where('c')}) ORDER BY 3, 1",
        (lesson.fingerprint, lesson.project),
    )


def _explained(connection: apsw.Connection, reader: Reader, lesson: Lesson) -> dict[str, object]:
    seen = _seen(connection, reader, lesson)
    verified = None if lesson.verified_at is None else rfc3339(lesson.verified_at)
    often = "consistently" if lesson.confidence >= 0.7 else "often"
    tries = lesson.evidence + lesson.recurrence
    how = lesson.fix_args or lesson.hint or "what the trace shows"
    resolved = f"{often} resolved"
    if lesson.recurrence:
        resolved = f"resolved in {lesson.evidence} of {tries} attempts"
    return {
        "summary": f"{lesson.content.splitlines()[0]}: {resolved} by {how}",
        "confidence": lesson.confidence,
        "evidence_count": lesson.evidence,
        "recurrence_count": lesson.recurrence,
        "fix_args": lesson.fix_args,
        "last_verified": verified,
        "trace": [
            {
                "event": event,
                "fingerprint": lesson.fingerprint,
                "session": session,
                "ts": rfc3339(at),
            }
            for event, session, at in seen
        ],
        "related_rules": [] if lesson.hint is None else [lesson.hint],
    }
