"""One suggestion after an idle that charged a recurrence, in that session's next block, once.

In: what the idle left pending for the session. Out: its text, for whoever may see the lesson that it is about.
"""

from collections.abc import Iterable

import apsw

from memoryd.labels import LOWEST, Label
from memoryd.lessons import row
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson


def leave(connection: apsw.Connection, session: str, charged: Iterable[Lesson]) -> None:
    """Let the session's next block begin with a word about the most recurred of the lessons charged.

    The lowest label comes first, and what waits already is replaced only by what all its readers may see too:
    a lesson above a reader takes no suggestion from it.
    """
    lowest = min((lesson.label for lesson in charged), default=None)
    if lowest is None:
        return
    held = connection.execute(
        "SELECT level, untrusted FROM lesson WHERE id = (SELECT suggestion FROM session WHERE id = ?)",
        (session,),
    ).get
    if held is not None and not Label(held[0], bool(held[1])).covers(lowest):
        return
    told = [lesson for lesson in charged if lesson.label == lowest]
    best = max(told, key=lambda lesson: (lesson.recurrence, -lesson.row))
    connection.execute("UPDATE session SET suggestion = ? WHERE id = ?", (best.id, session))


def clear(connection: apsw.Connection, session: str) -> None:
    """Take the pending suggestion away: it was shown."""
    connection.execute("UPDATE session SET suggestion = NULL WHERE id = ?", (session,))


def text(connection: apsw.Connection, reader: Reader, session: str) -> str:
    """Return the pending suggestion, not quoted yet; "" where there is none to show."""
    lesson = _pending(connection, reader, session)
    if lesson is None:
        return ""
    fixed = f"\nObserved fix: {lesson.fix_args}" if lesson.fix_args else ""
    return (
        f"It came back {lesson.recurrence} times: {lesson.content.splitlines()[0]}{fixed}\n"
        f"Draft for AGENTS.md: {lesson.suggestion or lesson.content.splitlines()[-1]} "
        f"(confidence {lesson.confidence:.0%})"
    )


def label(connection: apsw.Connection, reader: Reader, session: str) -> Label:
    """Return the label of the pending suggestion."""
    lesson = _pending(connection, reader, session)
    return LOWEST if lesson is None else lesson.label


def _pending(connection: apsw.Connection, reader: Reader, session: str) -> Lesson | None:
    named = connection.execute("SELECT suggestion FROM session WHERE id = ?", (session,)).get
    lesson = None if named is None else row.get(connection, str(named), reader)
    return None if lesson is None or lesson.untrusted else lesson
