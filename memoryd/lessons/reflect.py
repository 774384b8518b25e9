"""What a failure teaches: one lesson an error, a project and a label.

In: a failed call with its first error line, code and hint. Out: a new lesson, or the one that is there; a
stale or archived one that its error wakes up, or one that replaces it. What reaches the text is redacted.
"""

from collections.abc import Collection

import apsw
import msgspec

from memoryd.lessons import row, settings
from memoryd.lessons.failure import Failure, shell_like
from memoryd.lessons.pairing import Seen
from memoryd.lessons.row import Lesson

GENERIC = {
    "typecheck": "check types and imports first",
    "lint": "run the linter and mend what it names",
    "test": "run the failing tests alone and mend them",
    "runtime": "read the message and the first own frame of the stack",
    "timeout": "look for an endless loop, a prompt that waits, or work that takes long",
    "unknown": "read the output again",
}
"""The suggestion of a coarse type; a lesson with no better one is not worth a place in a prompt."""

_OF_ITS_FAILURE = (
    "content", "tool", "session", "call", "call_fingerprint", "error_type", "first_line", "code", "hint",
    "suggestion", "created_at",
)  # fmt: skip
_NUL = rb"\u0000"
"""Where JSON holds it, SQLite reads no further."""
_AGAIN = 60_000
_MOST_COMMAND = 80


def reflect(connection: apsw.Connection, seen: Seen, failure: Failure, error: str) -> Lesson:
    """Return the lesson of a failure: found, revived, or new; the words of a new one wait (`row.insert_silent`)."""
    known = row.select(
        connection,
        "type = 'error' AND origin = 'reflector' AND status <> 'superseded' "
        "AND project = ? AND fingerprint = ? ORDER BY level, untrusted, row",
        (seen.project, error),
    )
    for lesson in known:
        if seen.label.covers(lesson.label) and lesson.status == "active":
            _count_again(connection, seen, error)
            return _retell(connection, lesson, taught(seen, failure, error))
    here = [lesson for lesson in known if lesson.label == seen.label]
    if not here:
        return row.insert_silent(connection, taught(seen, failure, error))
    if here[0].staled_session == seen.session:
        return here[0]  # it went stale over this very session; only another one can call it back
    if here[0].against:
        return _replace(connection, here[0], taught(seen, failure, error))
    return _revive(connection, here[0], seen)


def known(connection: apsw.Connection, errors: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of errors, each a project and a fingerprint, of which there may be a lesson at any label."""
    asked = msgspec.json.encode(list(errors))
    if _NUL in asked:
        return set(errors)
    found = connection.execute(
        "SELECT e.value ->> 0 AS project, e.value ->> 1 AS error FROM json_each(?) AS e WHERE EXISTS "
        "(SELECT 1 FROM lesson WHERE type = 'error' AND origin = 'reflector' AND status <> 'superseded' "
        "AND lesson.project = e.value ->> 0 AND fingerprint = e.value ->> 1)",
        (asked.decode(),),
    )
    return {(str(project), str(error)) for project, error in found}


def _count_again(connection: apsw.Connection, seen: Seen, error: str) -> None:
    recent = connection.execute(
        "SELECT 1 FROM failed WHERE error = ? AND at > ? AND at <= ? "
        "AND (at, log, n, block) < (?, ?, ?, ?) LIMIT 1",
        (error, seen.at - _AGAIN, seen.at, seen.at, seen.log, seen.n, seen.block),
    ).get
    settings.count(connection, "reflections_throttled" if recent else "duplicate_suppressions")


def _retell(connection: apsw.Connection, known: Lesson, told: Lesson) -> Lesson:
    """Let a lesson speak of the earliest failure that its own readers may see: logs are read in no order.

    Its id stays: somebody may have been told of it.
    """
    first = (known.created_at, known.call or "") <= (told.created_at, told.call or "")
    if first or told.label != known.label:
        return known
    row.update(connection, known.row, **{name: getattr(told, name) for name in _OF_ITS_FAILURE})
    return row.select(connection, "row = ?", (known.row,))[0]


def _revive(connection: apsw.Connection, lesson: Lesson, seen: Seen) -> Lesson:
    """Make a stale or archived lesson active again; what was held against it before weighs on."""
    row.update(
        connection,
        lesson.row,
        status="active",
        forgiven=lesson.recurrence,
        staled_at=None,
        staled_session=None,
        archived_at=None,
        updated_at=seen.at,
    )
    settings.count(connection, "duplicate_suppressions")
    return row.select(connection, "row = ?", (lesson.row,))[0]


def _replace(connection: apsw.Connection, old: Lesson, new: Lesson) -> Lesson:
    """Let a fresh lesson take the place of one that a person had called wrong or outdated."""
    row.update(
        connection, old.row, status="superseded", superseded_by=new.id, updated_at=new.created_at
    )
    settings.count(connection, "memories_superseded")
    return row.insert_silent(connection, new)


def taught(seen: Seen, failure: Failure, error: str) -> Lesson:
    """Return the lesson that a failure teaches where there is none of its error yet; it is not written down."""
    suggestion = failure.hint or GENERIC[failure.kind]
    return Lesson(
        id=row.new_id(seen.at, "error", seen.key, error),
        type="error",
        content=content(seen, failure, suggestion),
        project=seen.project,
        fingerprint=error,
        origin="reflector",
        level=seen.label.level,
        untrusted=seen.label.untrusted,
        tool=seen.tool,
        session=seen.session,
        call=seen.key,
        call_fingerprint=seen.fingerprint,
        error_type=failure.kind,
        first_line=failure.first_line,
        code=failure.code,
        hint=failure.hint,
        suggestion=suggestion,
        created_at=seen.at,
        updated_at=seen.at,
    )


def content(seen: Seen, failure: Failure, suggestion: str) -> str:
    """Return a lesson in words: that the tool fails, with what, and what may mend it."""
    command = seen.summary[:_MOST_COMMAND]
    what = f"{seen.tool} `{command}`" if command and shell_like(seen.tool) else seen.tool
    kind = failure.code or failure.kind
    line = f": {failure.first_line}" if failure.first_line else ""
    code = f" ({failure.code})" if failure.code else ""
    return f"{what} fails with {kind}{line}\nSuggestion: {suggestion}{code}"


class Quality(msgspec.Struct, frozen=True):
    """Whether a lesson says something (`strong`) and something to do (`actionable`)."""

    strong: bool
    actionable: bool


def quality(lesson: Lesson) -> Quality:
    """Return what a lesson is worth in a prompt, from its columns, never from its prose.

    Patterns and whatever a person or an agent wrote are strong and actionable. Of an observed error: a code,
    or a type other than ``unknown``, makes it strong; a code, or a suggestion that is not its type's generic
    one, makes it actionable.
    """
    if lesson.type == "pattern" or lesson.origin != "reflector":
        return Quality(True, True)
    strong = lesson.code is not None or lesson.error_type not in (None, "unknown")
    told = lesson.suggestion is not None and lesson.suggestion not in GENERIC.values()
    return Quality(strong, told or lesson.code is not None)
