"""Forget what was learned from records that their owner wants gone.

In: a log, or some of its records. Out: nothing of them in any table: their calls, the lessons that they taught,
patterns made of those, and what was told and thought of them. A log that was rewritten has several names here
(`name`, `name.1`, ...); all of them are meant.
"""

from collections.abc import Callable
from pathlib import Path

import apsw

from memoryd import db
from memoryd.labels import Label
from memoryd.lessons import calls as called
from memoryd.lessons import causal, row, words
from memoryd.lessons.retrospective import FOLDER, file_name

Covers = Callable[[int, int, int], bool]
"""Says of a call, by its record, block and time (ms), whether it goes."""
_OF_LESSON = ("injection", "feedback", "charge", "refusal")


def forget(
    connection: apsw.Connection,
    log: str,
    covers: Covers | None = None,
    *,
    home: Path | None = None,
    session: str | None = None,
) -> dict[str, int]:
    """Delete all that came of a log, or of the calls that `covers` names; return how many went.

    `log` is its key as twelve hexadecimal digits. Its progress stays, so that it is not learned from again.
    A fix goes where it may tell of a call that does; a pattern where a fix or the lesson behind it does. `home`:
    the state folder, in which the pages of these sessions are deleted too. `session`: the one whose log it is,
    where all of it goes: what its calls left behind is found by it once they are too old to be kept.
    """
    with db.transaction(connection):
        return gone(connection, log, covers, home=home, session=session)


def gone(
    connection: apsw.Connection,
    log: str,
    covers: Covers | None,
    *,
    home: Path | None,
    session: str | None = None,
) -> dict[str, int]:
    """Do the same in the caller's transaction."""
    calls = _calls(connection, log, covers)
    lessons = _taught(connection, calls)
    whole = {session} if session and covers is None else set[str]()
    fixes = _fixes(connection, {call[3:] for call in calls} | _mended(connection, whole))
    lessons += _patterns(
        connection, fixes | {(one.fingerprint, one.project, one.label) for one in lessons}
    )
    deleted = delete(connection, {one.row: one.id for one in lessons})
    places = [call[:3] for call in calls]
    called.delete(connection, places)
    for table in ("charge", "waiting"):
        connection.executemany(f"DELETE FROM {table} WHERE log = ? AND n = ? AND block = ?", places)
    if covers is None:
        connection.execute("DELETE FROM waiting WHERE log = ? OR log GLOB ?", _names(log))
    for name in whole | {call[3] for call in calls}:
        connection.execute("DELETE FROM retrospective WHERE session = ?", (name,))
        if home is not None:
            (home / FOLDER / file_name(name)).unlink(missing_ok=True)
    return {"calls": len(calls), "lessons": deleted, "fixes": len({one[:2] for one in fixes})}


def delete(connection: apsw.Connection, lessons: dict[int, str]) -> int:
    """Delete lessons, by row and id, with their words and all that was told and thought of them."""
    for number, name in lessons.items():
        words.erase(connection, number)
        connection.execute("DELETE FROM lesson WHERE row = ?", (number,))
        for table in _OF_LESSON:
            connection.execute(f"DELETE FROM {table} WHERE lesson = ?", (name,))
        connection.execute("UPDATE session SET suggestion = NULL WHERE suggestion = ?", (name,))
        connection.execute(
            "UPDATE lesson SET superseded_by = NULL WHERE superseded_by = ?", (name,)
        )
    return len(lessons)


def _names(log: str) -> tuple[str, str]:
    return log, f"{log}.*"


_Call = tuple[str, int, int, str, str, int]


def _calls(connection: apsw.Connection, log: str, covers: Covers | None) -> list[_Call]:
    """Return the calls of a log that go: those that are kept, and those of which a lesson tells."""
    found: list[_Call] = list(
        connection.execute(
            "SELECT log, n, block, session, project, at FROM call WHERE log = ? OR log GLOB ?",
            _names(log),
        )
    )
    kept = {call[:3] for call in found}
    found += [call for call in _told(connection, log) if call[:3] not in kept]
    return [call for call in found if covers is None or covers(call[1], call[2], call[5])]


def _told(connection: apsw.Connection, log: str) -> list[_Call]:
    """Return the calls of a log that taught something: a lesson outlives the call (`retention`)."""
    found = connection.execute(
        "SELECT call, session, project, created_at FROM lesson "
        "WHERE origin = 'reflector' AND call >= ? AND call < ?",
        (log, f"{log}/"),  # "/" comes after all that may follow a log's name: NUL and "."
    )
    told = []
    for key, session, project, at in found:
        name, n, block = str(key).split("\0")
        if name == log or name.startswith(f"{log}."):
            told.append((name, int(n), int(block), str(session), str(project), int(at)))
    return told


def _taught(connection: apsw.Connection, calls: list[_Call]) -> list[row.Lesson]:
    taught: list[row.Lesson] = []
    for name, n, block, *_ in calls:
        key = f"{name}\0{n}\0{block}"
        taught += row.select(connection, "call = ? AND origin = 'reflector'", (key,))
    return taught


_Since = tuple[str, str, int]
"""A session, a project, and a time (ms)."""


def _mended(connection: apsw.Connection, sessions: set[str]) -> set[_Since]:
    """Return where these sessions have fixes."""
    return {
        (session, str(project), 0)
        for session in sessions
        for (project,) in connection.execute(
            "SELECT project FROM fix WHERE session = ?", (session,)
        )
    }


_Mended = tuple[str, str, Label]
"""The fingerprint of an error, its project, and the label of what mended it, or of the lesson."""


def _fixes(connection: apsw.Connection, since: set[_Since]) -> set[_Mended]:
    """Delete the fixes that may tell of calls `since` then; return what they mended.

    A fix tells the steps before its success and names none of them: it may tell of each earlier call of its
    session. Lessons are credited with what is left; one that never counted a fix, as it is above it, is as it was.
    """
    found: set[_Mended] = set()
    for session, project, at in since:
        for number, error, level, untrusted in list(
            connection.execute(
                "SELECT row, fingerprint, level, untrusted FROM fix "
                "WHERE project = ? AND session = ? AND at >= ?",
                (project, session, at),
            )
        ):
            connection.execute("DELETE FROM fix WHERE row = ?", (number,))
            found.add((str(error), project, Label(int(level), bool(untrusted))))
    for error, project in sorted({one[:2] for one in found}):
        for lesson in row.select(
            connection,
            "type = 'error' AND origin = 'reflector' AND fingerprint = ? AND project = ?",
            (error, project),
        ):
            causal.recount(connection, lesson)
    return found


def _patterns(connection: apsw.Connection, gone: set[_Mended]) -> list[row.Lesson]:
    """Return the patterns that may be made of what is gone: those of its error at its label or above.

    One below was made without it, and would tell its readers that something above them was forgotten.
    """
    return [
        one
        for error, project, label in gone
        for one in row.select(
            connection,
            "type = 'pattern' AND origin = 'causal' AND fingerprint = ? AND project = ?",
            (error, project),
        )
        if one.label.covers(label)
    ]
