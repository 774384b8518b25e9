"""A lesson as it lies in its table: one struct, one mapper, and the few ways to write one.

In: a connection. Out: `Lesson`. Nothing else maps a row, so that confidence never forgets a column.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from memoryd.labels import Label
from memoryd.lessons import rows, words
from memoryd.lessons.confidence import confidence
from memoryd.lessons.reader import Reader

TYPES = ("error", "pattern", "decision", "context", "rule", "solution")
STALE_AFTER = 3


class Lesson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One lesson. Times in milliseconds since 1970 UTC; `project` "" is no project in particular."""

    row: int = 0
    id: str
    type: str
    content: str
    scope: str = "project"
    project: str = ""
    fingerprint: str
    origin: str
    status: str = "active"
    level: int
    untrusted: bool
    relevance: float = 0.5
    tool: str | None = None
    session: str | None = None
    call: str | None = None
    call_fingerprint: str | None = None
    error_type: str | None = None
    first_line: str | None = None
    code: str | None = None
    hint: str | None = None
    suggestion: str | None = None
    fix_args: str | None = None
    metadata: str | None = None
    evidence: int = 0
    recurrence: int = 0
    forgiven: int = 0
    useful: int = 0
    against: int = 0
    ignored: bool = False
    created_at: int
    updated_at: int
    expires_at: int | None = None
    verified_at: int | None = None
    injected_at: int | None = None
    staled_at: int | None = None
    staled_session: str | None = None
    archived_at: int | None = None
    superseded_by: str | None = None

    @property
    def label(self) -> Label:
        """Return what a reader must be cleared for."""
        return Label(self.level, self.untrusted)

    @property
    def confidence(self) -> float:
        """Return how far to believe it (`memoryd.lessons.confidence`)."""
        return confidence(self.evidence, self.recurrence, self.useful, self.against)


COLUMNS = Lesson.__struct_fields__
_SELECT = "SELECT " + ", ".join(f"lesson.{name}" for name in COLUMNS) + " FROM lesson "
_INSERT = f"INSERT INTO lesson({', '.join((*COLUMNS[1:], 'words'))}) VALUES ({', '.join('?' * len(COLUMNS))})"
_INTO = f"INSERT INTO lesson({', '.join((*COLUMNS, 'words'))})"


def _given(lesson: Lesson) -> tuple[Any, ...]:
    """Return the columns of a lesson, but for its row."""
    return msgspec.structs.astuple(lesson)[1:]


def of(values: tuple[Any, ...]) -> Lesson:
    """Return the lesson of one row of `COLUMNS`."""
    told = dict(zip(COLUMNS, values, strict=True))
    told["untrusted"], told["ignored"] = bool(told["untrusted"]), bool(told["ignored"])
    return Lesson(**told)


def select(
    connection: apsw.Connection, where: str, bound: tuple[str | float | None, ...] = ()
) -> list[Lesson]:
    """Return the lessons for which `where` holds; not for readers, who ask through `visible`."""
    return [of(found) for found in connection.execute(f"{_SELECT}WHERE {where}", bound)]


def visible(
    connection: apsw.Connection,
    reader: Reader,
    where: str = "1",
    bound: tuple[str | float | None, ...] = (),
    *,
    order: str = "row",
) -> list[Lesson]:
    """Return the lessons that `reader` may see and for which `where` holds, in order."""
    return select(connection, f"{reader.where('lesson')} AND ({where}) ORDER BY {order}", bound)


def get(connection: apsw.Connection, id: str, reader: Reader) -> Lesson | None:
    """Return the lesson of `id`; None where it is absent or hidden: one answer for both."""
    found = visible(connection, reader, "lesson.id = ?", (id,))
    return found[0] if found else None


def insert_silent(connection: apsw.Connection, lesson: Lesson) -> Lesson:
    """Write a lesson that nobody finds by its words before `words.write_missing`, in the same transaction.

    Raises: apsw.ConstraintError.
    """
    connection.execute(_INSERT, (*_given(lesson), 0))
    return msgspec.structs.replace(lesson, row=connection.last_insert_rowid())


def insert_many(connection: apsw.Connection, lessons: Sequence[Lesson]) -> None:
    """Write lessons and their words, in order. Raises: apsw.ConstraintError."""
    if not lessons:
        return
    first = 1 + int(connection.execute("SELECT coalesce(max(row), 0) FROM lesson").get)
    places = [
        (row, one.content, (one.project, one.level, int(one.untrusted)))
        for row, one in enumerate(lessons, first)
    ]
    lengths = words.put_many(connection, places)
    values: list[rows.Value] = []
    for (row, _, _), one, length in zip(places, lessons, lengths, strict=True):
        values += row, *_given(one), length
    rows.insert(connection, _INTO, len(COLUMNS) + 1, values)


def insert(connection: apsw.Connection, lesson: Lesson) -> Lesson:
    """Write a lesson and its words; return it with its row number. Raises: apsw.ConstraintError."""
    counts = words.counted(connection, lesson.content)
    connection.execute(_INSERT, (*_given(lesson), max(1, counts.total())))
    row = connection.last_insert_rowid()
    words.put(connection, row, counts, (lesson.project, lesson.level, lesson.untrusted))
    return msgspec.structs.replace(lesson, row=row)


def update(connection: apsw.Connection, row: int, **changes: str | float | None) -> None:
    """Change columns of one lesson; its words follow where its text, label or project changes."""
    names = ", ".join(f"{name} = ?" for name in changes)
    moved = bool(changes.keys() & {"content", "level", "untrusted", "project"})
    if moved:
        words.erase(connection, row)
    connection.execute(f"UPDATE lesson SET {names} WHERE row = ?", (*changes.values(), row))
    if moved:
        words.write(connection, row)


def stale(connection: apsw.Connection, lesson: Lesson, now: int, session: str | None) -> None:
    """Turn an active lesson stale; of any other status it stays what it is."""
    if lesson.status == "active":
        update(
            connection,
            lesson.row,
            status="stale",
            staled_at=now,
            staled_session=session,
            updated_at=now,
        )


def new_id(at: int, *parts: object) -> str:
    """Return an id in the form of a UUID of version 7: the time, then a hash of what it names.

    Derived, not drawn, so that reading the same logs again, or replaying them, gives the same ids.
    """
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=10).hexdigest()
    stamp = f"{max(0, at) & (1 << 48) - 1:012x}"
    variant = "89ab"[int(digest[3], 16) & 3]
    return f"{stamp[:8]}-{stamp[8:]}-7{digest[:3]}-{variant}{digest[4:7]}-{digest[7:19]}"
