"""A call turns out to be worth more than it was: what was learned from it is raised as well, never lowered.

In: a call as it is seen a second time, under the label that it has now. Out: the call, the lesson that it taught,
the fixes that may tell of it and the patterns made of them, at the join of both labels. What readers below had
seen until then they had seen; from now on it is not there for them.
"""

import apsw

from memoryd.labels import Label
from memoryd.lessons import causal, row
from memoryd.lessons.pairing import Seen
from memoryd.lessons.row import Lesson


def to(connection: apsw.Connection, seen: Seen) -> bool:
    """Raise a known call to the label of `seen`, in the caller's transaction; say whether that changed anything."""
    found = connection.execute(
        "SELECT level, untrusted, error FROM call WHERE log = ? AND n = ? AND block = ?",
        (seen.log, seen.n, seen.block),
    ).get
    if found is None:
        return False
    old = Label(int(found[0]), bool(found[1]))
    if old.covers(seen.label):
        return False
    label = old.join(seen.label)
    connection.execute(
        "UPDATE call SET level = ?, untrusted = ? WHERE log = ? AND n = ? AND block = ?",
        (*label, seen.log, seen.n, seen.block),
    )
    for lesson in row.select(connection, "call = ?", (seen.key,)):
        _lesson(connection, lesson, label)
    if found[2] is None:
        _fixes(connection, seen, label)
    return True


def _fixes(connection: apsw.Connection, seen: Seen, label: Label) -> None:
    """Raise the fixes of the session that may tell of the call as one of their steps."""
    where = "session = ? AND project = ? AND at >= ?"
    bound = (seen.session, seen.project, seen.at)
    told = {
        str(error)
        for (error,) in connection.execute(f"SELECT fingerprint FROM fix WHERE {where}", bound)
    }
    connection.execute(
        f"UPDATE fix SET level = max(level, ?), untrusted = max(untrusted, ?) WHERE {where}",
        (*label, *bound),
    )
    for error in told:
        for lesson in row.select(
            connection, "fingerprint = ? AND project = ?", (error, seen.project)
        ):
            if lesson.type == "pattern" and lesson.origin == "causal":
                _lesson(connection, lesson, label)
            elif lesson.origin == "reflector":
                causal.recount(connection, lesson)


def _lesson(connection: apsw.Connection, lesson: Lesson, label: Label) -> None:
    """Raise one lesson; where its error has one at that label already, that one takes its place."""
    label = lesson.label.join(label)
    if label == lesson.label:
        return
    there = row.select(
        connection,
        "type = 'error' AND origin = 'reflector' AND status <> 'superseded' AND fingerprint = ? "
        "AND project = ? AND level = ? AND untrusted = ? AND row <> ?",
        (lesson.fingerprint, lesson.project, *label, lesson.row),
    )
    changes: dict[str, str | float | None] = {"level": label.level, "untrusted": label.untrusted}
    if there and lesson.type == "error" and lesson.origin == "reflector":
        changes |= {"status": "superseded", "superseded_by": there[0].id}
    row.update(connection, lesson.row, **changes)
    connection.execute(
        "UPDATE injection SET level = max(level, ?), untrusted = max(untrusted, ?) WHERE lesson = ?",
        (*label, lesson.id),
    )
