"""From a fix that was proven to a pattern, and from habits to patterns.

In: at a session's idle, what was mended in it. Out: causal patterns, one an error and a label, made or
refreshed; and with `patternminer_enabled` n-grams of tools that many sessions share. A pattern's label is the
join of the lesson's and of each fix that it counts.
"""

from collections import defaultdict
from itertools import pairwise

import apsw

from memoryd.labels import Label
from memoryd.lessons import row, settings
from memoryd.lessons.confidence import confidence
from memoryd.lessons.fingerprint import of_text
from memoryd.lessons.row import Lesson

MINED_FROM = 5
"""Different sessions in which an n-gram must stand."""

_MOST_FIRST, _MOST_ORIGINAL = 200, 1_000


def promote(connection: apsw.Connection, session: str, now: int) -> int:
    """Make or refresh the patterns of errors that were mended in `session`; return how many are new."""
    mended = connection.execute(
        "SELECT DISTINCT fingerprint, project, level, untrusted FROM fix WHERE session = ?",
        (session,),
    )
    new = 0
    for error, project, level, untrusted in list(mended):
        for lesson in row.select(
            connection,
            "type = 'error' AND origin = 'reflector' AND status IN ('active', 'stale') "
            "AND fingerprint = ? AND project = ?",
            (error, project),
        ):
            label = lesson.label.join(Label(level, bool(untrusted)))
            new += _promote_one(connection, lesson, label, now)
            for above in _made_above(connection, lesson, label):
                _promote_one(connection, lesson, above, now)
    settings.count(connection, "patterns_promoted_new", new)
    return new


def _made_above(connection: apsw.Connection, lesson: Lesson, label: Label) -> list[Label]:
    """Return the labels above `label` at which the lesson has patterns: their readers see this fix as well."""
    made = row.select(
        connection,
        "type = 'pattern' AND origin = 'causal' AND fingerprint = ? AND project = ? AND call = ? "
        "ORDER BY level, untrusted",
        (lesson.fingerprint, lesson.project, lesson.call),
    )
    return [one.label for one in made if one.label != label and one.label.covers(label)]


def _promote_one(connection: apsw.Connection, lesson: Lesson, label: Label, now: int) -> bool:
    evidence, newest, args = connection.execute(
        "SELECT count(*), max(at), (SELECT args FROM fix WHERE fingerprint = ?1 AND project = ?2 "
        "AND level <= ?3 AND untrusted <= ?4 ORDER BY at DESC, row DESC LIMIT 1) FROM fix "
        "WHERE fingerprint = ?1 AND project = ?2 AND level <= ?3 AND untrusted <= ?4",
        (lesson.fingerprint, lesson.project, *label),
    ).get
    known = row.select(
        connection,
        "type = 'pattern' AND origin = 'causal' AND status = 'active' AND fingerprint = ? "
        "AND project = ? AND level = ? AND untrusted = ?",
        (lesson.fingerprint, lesson.project, *label),
    )
    words = _content(lesson, int(evidence), str(args))
    if known:
        if int(newest) >= known[0].updated_at:
            row.update(
                connection,
                known[0].row,
                content=words,
                evidence=evidence,
                recurrence=lesson.recurrence,
                fix_args=args,
                verified_at=newest,
                updated_at=max(known[0].updated_at, int(newest)),
            )
        return False
    told = (words, int(evidence), str(args), int(newest))
    row.insert(connection, _pattern(lesson, label, told, now))
    return True


def _pattern(lesson: Lesson, label: Label, told: tuple[str, int, str, int], now: int) -> Lesson:
    """Return a new pattern; it is as old as its newest fix, so that it is refreshed until something else changes it."""
    words, evidence, args, newest = told
    return Lesson(
        id=row.new_id(now, "causal", lesson.fingerprint, lesson.project, *label),
        type="pattern",
        content=words,
        project=lesson.project,
        fingerprint=lesson.fingerprint,
        origin="causal",
        level=label.level,
        untrusted=label.untrusted,
        tool=lesson.tool,
        session=lesson.session,
        call=lesson.call,
        call_fingerprint=lesson.call_fingerprint,
        code=lesson.code,
        hint=lesson.hint,
        fix_args=args,
        evidence=evidence,
        recurrence=lesson.recurrence,
        created_at=now,
        updated_at=newest,
        verified_at=newest,
    )


def _content(lesson: Lesson, evidence: int, args: str) -> str:
    first = lesson.content.split("\n", 1)[0][:_MOST_FIRST]
    sure = confidence(evidence, lesson.recurrence, 0, 0)
    return (
        f"Causal pattern: {first}\nFixed by: {args}\n"
        f"Evidence: {evidence} proven fixes, confidence {sure:.2f}\n"
        f"Original: {lesson.content[:_MOST_ORIGINAL]}"
    )


def mine(connection: apsw.Connection, project: str, now: int) -> int:
    """Write a pattern for each tool n-gram of five sessions or more; return how many are new.

    2-grams of any calls, and 3-grams whose middle call failed. Counted a label at a time, each with all
    below it, so that a pattern shows only what its readers may see.
    """
    if not settings.on(connection, "patternminer_enabled"):
        return 0
    labels = connection.execute(
        "SELECT DISTINCT level, untrusted FROM call WHERE project = ?", (project,)
    )
    new = 0
    for level, untrusted in sorted(labels):
        label = Label(int(level), bool(untrusted))
        for gram, count in sorted(_grams(connection, project, label).items()):
            new += _mined(connection, project, (gram, count), label, now)
    settings.count(connection, "patterns_mined", new)
    return new


def _grams(connection: apsw.Connection, project: str, label: Label) -> dict[str, int]:
    calls = connection.execute(
        "SELECT session, tool, ok FROM call WHERE project = ? AND level <= ? AND untrusted <= ? "
        "ORDER BY session, at, n, block",
        (project, *label),
    )
    sessions: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for session, tool, ok in calls:
        sessions[str(session)].append((str(tool), bool(ok)))
    found: dict[str, set[str]] = defaultdict(set)
    for session, run in sessions.items():
        for (one, _), (two, _) in pairwise(run):
            found[f"{one} → {two}"].add(session)
        for (one, _), (two, ok), (three, _) in zip(run, run[1:], run[2:], strict=False):
            if not ok:
                found[f"{one} → {two} (fails) → {three}"].add(session)
    return {gram: len(held) for gram, held in found.items() if len(held) >= MINED_FROM}


def _mined(
    connection: apsw.Connection, project: str, gram: tuple[str, int], label: Label, now: int
) -> bool:
    words, count = gram
    fingerprint = of_text("ngram", words, project)
    known = row.select(
        connection,
        "type = 'pattern' AND origin = 'pattern' AND fingerprint = ? AND project = ?",
        (fingerprint, project),
    )
    if any(label.covers(lesson.label) for lesson in known):
        return False
    row.insert(
        connection,
        Lesson(
            id=row.new_id(now, "ngram", fingerprint, *label),
            type="pattern",
            content=f"Tool pattern: {words}\nSeen in {count} sessions of this project.",
            project=project,
            fingerprint=fingerprint,
            origin="pattern",
            level=label.level,
            untrusted=label.untrusted,
            created_at=now,
            updated_at=now,
        ),
    )
    return True
