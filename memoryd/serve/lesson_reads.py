"""What is asked of lessons and changes nothing: the same for a daemon's client and for a database alone.

In: a connection, for whom, checked arguments, the time. Out: an answer, the ids that it tells of, and the join of
the labels of all that it tells. What lies above the reader is absent: from rows, from counts, from errors.
"""

from collections.abc import Callable, Mapping
from typing import Any

import apsw
import msgspec

from memoryd import clock
from memoryd.labels import LOWEST, Classes, Label
from memoryd.lessons import explain, row, suggest, tools
from memoryd.lessons.plan import Ask
from memoryd.lessons.reader import Reader
from memoryd.serve import lesson_forms as forms
from memoryd.serve.asking import scope_of
from memoryd.serve.calls import fitting
from memoryd.serve.peers import Capability

Answer = dict[str, Any]


class Who(msgspec.Struct, frozen=True):
    """For whom a method acts: what may be told, the session and its project, the session's label."""

    reader: Reader
    session: str
    project: str
    label: Label

    def ask(self, query: str, hook: str, now: int, *, cap: int | None = None) -> Ask:
        """Return a question of theirs. What is told depends on all that the reader sees, so it is worth that.

        Untrusted lessons take part in a recall, and never in a block.
        """
        reach = Label(self.reader.level, hook == "pull" and self.reader.sees_untrusted)
        return Ask(
            query=query, session=self.session, project=self.project, now=now, hook=hook, cap=cap,
            label=self.label.join(reach),
        )  # fmt: skip


Told = tuple[Answer, list[str], Label]
"""An answer, the ids that it tells of, and the join of the labels of all that it tells."""
Read = Callable[[apsw.Connection, Who, Any, int], Told]


def named(args: object) -> tuple[str | None, str | None]:
    """Return the session and the project that a request names; a session by either of its two names."""
    session = getattr(args, "session_id", None) or getattr(args, "session", None)
    return session, getattr(args, "project", None)


def answered(
    connection: apsw.Connection, name: str, args: Mapping[str, object], allowed: Capability,
    classes: Classes,
) -> Answer:  # fmt: skip
    """Answer a reading method without a daemon, as the socket `allowed` would. Raises: what it raises."""
    form, read = READS[name]
    asked: Any = fitting(form)(dict(args))
    scope = scope_of(allowed, classes, asked.max_class, None)
    owner = scope.owner and scope.level == classes.top
    reader = Reader(scope.level, scope.untrusted, scope.projects, owner=owner)
    session, project = named(asked)
    label = LOWEST if allowed.owner else classes.highest
    given = Who(reader, session or "", project or "", label)
    answer, _, told = read(connection, given, asked, clock.now_ms())
    return answer | {"label": {"class": classes.name(told.level), "untrusted": told.untrusted}}


def _query(connection: apsw.Connection, given: Who, args: forms.Query, now: int) -> Told:
    asked = tools.Question(
        query=args.query,
        now=now,
        type=args.type,
        limit=args.limit,
        full=args.full,
        evidence=args.evidence,
        include_superseded=args.include_superseded,
        include_archived=args.include_archived,
    )
    found = tools.query(connection, given.reader, asked)
    ids = [str(one["id"]) for one in found]
    return {"lessons": found}, ids, joined(connection, given.reader, ids)


def _get(connection: apsw.Connection, given: Who, args: forms.Get, now: int) -> Told:
    found = tools.get(connection, given.reader, args.id)
    return found, [args.id], joined(connection, given.reader, [args.id])


def _status(connection: apsw.Connection, given: Who, args: forms.Looking, now: int) -> Told:
    return tools.status(connection, given.reader), [], everything(connection, given.reader)


def _audit(connection: apsw.Connection, given: Who, args: forms.Audit, now: int) -> Told:
    told = tools.audit(connection, given.reader, verbose=args.verbose)
    return told, [], everything(connection, given.reader)


def _why(connection: apsw.Connection, given: Who, args: forms.Why, now: int) -> Told:
    found = explain.surest(connection, given.reader, args.query)
    answer = tools.why(connection, given.reader, args.query)
    if found is None:
        return answer, [], LOWEST
    return answer, [found.id], explain.label(connection, given.reader, found)


def _trace(connection: apsw.Connection, given: Who, args: forms.Trace, now: int) -> Told:
    hook = "compacting" if args.tag == "memory" else "pre_prompt"
    asked = given.ask(args.query, hook, now, cap=args.cap)
    answer = tools.trace(connection, given.reader, asked)
    told = [*answer.get("admitted", ()), *answer.get("blocked", ())]  # type: ignore[misc]  # a map of lists
    ids = [str(one["id"]) for one in told]
    label = joined(connection, given.reader, ids)
    if answer.get("suggestion"):
        label = label.join(suggest.label(connection, given.reader, given.session))
    return answer, ids, label


def joined(connection: apsw.Connection, reader: Reader, ids: list[str]) -> Label:
    """Return the join of the labels of lessons that a reader was told of."""
    found = LOWEST
    for name in ids:
        lesson = row.get(connection, name, reader)
        found = found if lesson is None else found.join(lesson.label)
    return found


def of_session(connection: apsw.Connection, reader: Reader, session: str) -> Label:
    """Return the join of what a reader may see of a session's calls and lessons."""
    found = LOWEST
    for name in ("lesson", "call"):
        for level, untrusted in connection.execute(
            f"SELECT DISTINCT level, untrusted FROM {name} WHERE session = ? AND {reader.where(name)}",
            (session,),
        ):
            found = found.join(Label(int(level), bool(untrusted)))
    return found


def everything(connection: apsw.Connection, reader: Reader) -> Label:
    """Return the join of all that a reader's figures are counted from."""
    found = LOWEST
    for name in ("lesson", "call", "injection", "fix"):
        for level, untrusted in connection.execute(
            f"SELECT DISTINCT level, untrusted FROM {name} WHERE {reader.where(name)}"
        ):
            found = found.join(Label(int(level), bool(untrusted)))
    return found


READS: dict[str, tuple[type[forms.Looking], Read]] = {
    "query": (forms.Query, _query),
    "get": (forms.Get, _get),
    "status": (forms.Looking, _status),
    "why": (forms.Why, _why),
    "trace": (forms.Trace, _trace),
    "audit": (forms.Audit, _audit),
}
"""The methods that only read: what each takes and what it does."""
