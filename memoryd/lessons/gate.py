"""What may not be shown, and for which one reason.

In: candidates in order, and what the session has seen. Out: a reason each, or None. The first rule that matches
counts, so that each refusal is counted once, under its own name. Pure.
"""

from collections.abc import Iterable, Iterator

import msgspec

from memoryd.lessons.reader import Reader
from memoryd.lessons.reflect import quality
from memoryd.lessons.row import Lesson

REASONS = (
    *("seen_this_session", "ignored", "stale", "recurrence", "weak"),
    *("above_clearance", "untrusted", "other_project", "duplicate"),
)
BUDGET = "budget"


class Circumstances(msgspec.Struct, frozen=True):
    """What the verdict depends on beside the lesson.

    `seen`: ids that this session was shown. `recurred`: fingerprints that failed in it after they were shown.
    `gate`: rule `weak` applies. `cross`: imported lessons of no project are wanted.
    """

    reader: Reader
    project: str
    seen: frozenset[str]
    recurred: frozenset[str]
    gate: bool = True
    cross: bool = False


def verdict(lesson: Lesson, here: Circumstances) -> str | None:
    """Return why a lesson is refused, or None."""
    return next(_against(lesson, here), None)


def _against(lesson: Lesson, here: Circumstances) -> Iterator[str]:
    """Yield every reason that holds, in their order."""
    if lesson.id in here.seen:
        yield "seen_this_session"
    if lesson.ignored:
        yield "ignored"
    if lesson.status != "active":
        yield "stale"
    if lesson.type != "pattern" and lesson.fingerprint in here.recurred:
        yield "recurrence"
    if here.gate and low_confidence(lesson):
        yield "weak"
    if lesson.level > here.reader.level:
        yield "above_clearance"
    if lesson.untrusted:
        yield "untrusted"
    if not _belongs(lesson, here):
        yield "other_project"


def judge(lessons: Iterable[Lesson], here: Circumstances) -> list[tuple[Lesson, str | None]]:
    """Return each lesson with its verdict; of one fingerprint only the first is let through."""
    taken: set[str] = set()
    judged: list[tuple[Lesson, str | None]] = []
    for lesson in lessons:
        reason = verdict(lesson, here)
        if reason is None and lesson.fingerprint in taken:
            reason = "duplicate"
        if reason is None:
            taken.add(lesson.fingerprint)
        judged.append((lesson, reason))
    return judged


def low_confidence(lesson: Lesson) -> bool:
    """Say whether a lesson is weak: shown, if at all, only because the gate is off."""
    worth = quality(lesson)
    return not (worth.strong and worth.actionable)


def _belongs(lesson: Lesson, here: Circumstances) -> bool:
    if lesson.project:
        return lesson.project == here.project and here.reader.covers(lesson.label, lesson.project)
    return lesson.origin != "imported" or here.cross
