"""Calls turn out to be worth more than they were: what was learned from them is raised as well, never lowered.

In: calls of a log as they are seen a second time, under the labels that they have now. Out: the calls, the lessons
that they taught, the fixes that may tell of them and the patterns made of them, at the join of both labels. What
readers below had seen until then they had seen; from now on it is not there for them.
"""

from collections.abc import Sequence

import apsw
import msgspec

from memoryd.labels import Label
from memoryd.lessons import calls, causal, row
from memoryd.lessons.pairing import OUTCOMES, Seen
from memoryd.lessons.row import Lesson


def to(connection: apsw.Connection, log: str, seens: Sequence[Seen]) -> int:
    """Raise known calls of `log` to the labels of `seens`, in the caller's transaction; return how many rose.

    All of them at once: what lies together in a batch is taken apart once, however many calls of it rise.
    """
    higher = {(seen.n, seen.block): seen.label for seen in seens}
    if not higher:
        return 0
    failed: list[Seen] = []
    well: list[Seen] = []
    for ok, old, seen in _known(connection, log, min(n for n, _ in higher)):
        told = higher.get((seen.n, seen.block))
        if told is not None and not old.covers(told):
            raised = msgspec.structs.replace(seen, label=old.join(told))
            (well if ok else failed).append(raised)
    connection.executemany(
        "UPDATE failed SET level = ?, untrusted = ? WHERE log = ? AND n = ? AND block = ?",
        [(*one.label, log, one.n, one.block) for one in failed],
    )
    calls.delete(connection, [(log, one.n, one.block) for one in well])
    calls.put(connection, well, {})
    for one in failed:
        for lesson in row.select(connection, "call = ?", (one.key,)):
            _lesson(connection, lesson, one.label)
    _fixes(connection, well)
    return len(failed) + len(well)


def _known(connection: apsw.Connection, log: str, least: int) -> list[tuple[bool, Label, Seen]]:
    """Return the calls of `log` from record `least` on: whether each went well, its label, and what is kept of it."""
    found = connection.execute(
        "SELECT ok, level, untrusted, n, block, session, project, tool, summary, fingerprint, at "
        "FROM call WHERE log = ? AND n >= ? ORDER BY n, block",
        (log, least),
    )
    known: list[tuple[bool, Label, Seen]] = []
    for ok, level, untrusted, n, block, session, project, tool, summary, same, at in found:
        label = Label(int(level), bool(untrusted))
        outcome = OUTCOMES[bool(ok)]
        seen = Seen(log, n, block, session, project, tool, summary, same, at, outcome, "", label)
        known.append((bool(ok), label, seen))
    return known


def _fixes(connection: apsw.Connection, seens: Sequence[Seen]) -> None:
    """Raise the fixes of their sessions that may tell of these calls as one of their steps."""
    since: dict[tuple[str, str, Label], int] = {}
    for seen in seens:
        whose = seen.session, seen.project, seen.label
        since[whose] = min(seen.at, since.get(whose, seen.at))
    for (session, project, label), at in since.items():
        _fixes_since(connection, (session, project, at), label)


def _fixes_since(connection: apsw.Connection, bound: tuple[str, str, int], label: Label) -> None:
    where = "session = ? AND project = ? AND at >= ?"
    told = {
        str(error)
        for (error,) in connection.execute(f"SELECT fingerprint FROM fix WHERE {where}", bound)
    }
    connection.execute(
        f"UPDATE fix SET level = max(level, ?), untrusted = max(untrusted, ?) WHERE {where}",
        (*label, *bound),
    )
    for error in told:
        for lesson in row.select(connection, "fingerprint = ? AND project = ?", (error, bound[1])):
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
