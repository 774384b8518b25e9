"""What was shown to whom, and what came of it.

In: a plan that is being shown. Out: one row a lesson, in the transaction of the showing, and rates over the
rows that a reader may see: null where there is nothing to divide by, with the counts beside them.
"""

from collections import Counter

import apsw
import msgspec

from memoryd import db
from memoryd.lessons import plan as planning
from memoryd.lessons import rank, settings, suggest
from memoryd.lessons.outcome import Injection, outcome
from memoryd.lessons.plan import Ask, Plan
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson

_COUNTED = {"seen_this_session": "seen", "weak": "weak", "recurrence": "recurrence", "stale": "stale",
            "ignored": "ignored"}  # fmt: skip


class Rates(msgspec.Struct, frozen=True):
    """Outcomes and what they come to. `prevented` stands beside the outcomes and in none of the rates."""

    total: int
    effective: int
    ineffective: int
    inconclusive: int
    unmeasured: int
    prevented: int

    @property
    def precision_rate(self) -> float | None:
        """Return effective / (effective + ineffective); None where neither was seen."""
        measured = self.effective + self.ineffective
        return self.effective / measured if measured else None

    @property
    def coverage_rate(self) -> float | None:
        """Return (effective + ineffective) / total; None where nothing was shown."""
        return (self.effective + self.ineffective) / self.total if self.total else None


def block(connection: apsw.Connection, reader: Reader, ask: Ask) -> Plan:
    """Plan and show: write the ledger, the counters and the refusals in one transaction."""
    with db.transaction(connection):
        planned = planning.plan(connection, reader, ask)
        show(connection, planned)
    return planned


def show(connection: apsw.Connection, planned: Plan) -> None:
    """Write down that a plan was shown; in the caller's transaction."""
    for one in planned.shown:
        inject(connection, one.lesson, planned.ask, one.tokens)
    settings.count(connection, f"tokens_injected_{_tokens_of(planned.ask.hook)}", planned.tokens)
    for refused in planned.refused:
        # What lies above a lesson's readers counts for the owner alone, under no lesson's name.
        known = refused.lesson.label.covers(planned.ask.label)
        connection.execute(
            "INSERT INTO refusal VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
            (refused.lesson.id if known else "", refused.reason),
        )
        if refused.reason in _COUNTED:
            settings.count(connection, f"injections_blocked_{_COUNTED[refused.reason]}")
    told = [one.lesson for one in planned.shown]
    rank.bump(connection, [one for one in told if one.label.covers(planned.ask.label)])
    if planned.suggestion:
        suggest.clear(connection, planned.ask.session)


def inject(connection: apsw.Connection, lesson: Lesson, ask: Ask, tokens: int) -> None:
    """Write one row of the ledger. The lesson's last time shown never goes back.

    The row is worth what the lesson and the session are worth together.
    """
    connection.execute(
        "INSERT INTO session(id, project, last_at) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET last_at = max(last_at, excluded.last_at)",
        (ask.session, ask.project, ask.now),
    )
    connection.execute(
        "INSERT INTO injection(lesson, fingerprint, project, session, hook, tokens, at, level, untrusted) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (lesson.id, lesson.fingerprint, lesson.project, ask.session, ask.hook, tokens, ask.now,
         *lesson.label.join(ask.label)),
    )  # fmt: skip
    connection.execute(
        "UPDATE lesson SET injected_at = max(coalesce(injected_at, 0), ?) WHERE row = ?",
        (ask.now, lesson.row),
    )
    settings.count(connection, "injections_total")


def rates(connection: apsw.Connection, reader: Reader, session: str | None = None) -> Rates:
    """Return the outcomes of what `reader` may see.

    The owner's are those that were settled. For anybody else a settled row's outcome is computed again over
    the calls and fixes that it may see: what came of a lesson in a session that rose above it is not told.
    """
    where = reader.where("injection") + (" AND injection.session = ?" if session else "")
    rows = list(
        connection.execute(
            "SELECT injection.lesson, fingerprint, project, session, at, outcome, prevented "
            f"FROM injection WHERE {where}",
            (session,) if session else (),
        )
    )
    found: Counter[str] = Counter()
    prevented = 0
    for lesson, fingerprint, project, session_, at, settled, kept in rows:
        if reader.owner or settled == "unmeasured":
            found[str(settled)] += 1
            prevented += int(kept)
            continue
        given = Injection(str(lesson), str(fingerprint), str(project), str(session_), int(at))
        word, kept_here = outcome(connection, given, reader)
        found[word] += 1
        prevented += int(kept_here)
    return Rates(
        len(rows),
        found["effective"],
        found["ineffective"],
        found["inconclusive"],
        found["unmeasured"],
        prevented,
    )


def blocked(connection: apsw.Connection, reader: Reader) -> dict[str, int]:
    """Return how often each reason refused lessons that `reader` may see, as far as it may know of it."""
    visible = f"lesson IN (SELECT id FROM lesson WHERE {reader.where('lesson')})"
    found = connection.execute(
        f"SELECT reason, sum(count) FROM refusal WHERE {'1' if reader.owner else visible} GROUP BY reason"
    )
    return {str(reason): int(number) for reason, number in found}


def _tokens_of(hook: str) -> str:
    return "compacting" if hook == "compacting" else "pre_prompt"
