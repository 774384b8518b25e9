"""What was shown to whom, and what came of it.

In: a plan that is being shown. Out: one row a lesson, in the transaction of the showing, and rates over the
rows that a reader may see: null where there is nothing to divide by, with the counts beside them.
"""

from collections import Counter
from collections.abc import Sequence

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
    """Plan and show: write the ledger, the counters and the refusals in one transaction.

    It does not wait for the disk: a telling that a power cut takes back counts for nothing anywhere, and no
    figure is false for it; a prompt that waits for a slow disk is felt every time.
    """
    with db.unsynced(connection):
        planned = planning.plan(connection, reader, ask)
        show(connection, planned)
    return planned


def show(connection: apsw.Connection, planned: Plan) -> None:
    """Write down that a plan was shown; in the caller's transaction."""
    inject_many(connection, [(one.lesson, one.tokens) for one in planned.shown], planned.ask)
    settings.count(connection, f"tokens_injected_{_tokens_of(planned.ask.hook)}", planned.tokens)
    connection.executemany(
        "INSERT INTO refusal VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
        sorted(
            (_known_as(refused.lesson, planned.ask), refused.reason) for refused in planned.refused
        ),
    )
    reasons = Counter(refused.reason for refused in planned.refused)
    for reason, short in _COUNTED.items():
        settings.count(connection, f"injections_blocked_{short}", reasons[reason])
    told = [one.lesson for one in planned.shown]
    rank.bump(connection, [one for one in told if one.label.covers(planned.ask.label)])
    if planned.suggestion:
        suggest.clear(connection, planned.ask.session)


def inject(connection: apsw.Connection, lesson: Lesson, ask: Ask, tokens: int) -> None:
    """Write one row of the ledger. The lesson's last time shown never goes back."""
    inject_many(connection, [(lesson, tokens)], ask)


def inject_many(connection: apsw.Connection, told: Sequence[tuple[Lesson, int]], ask: Ask) -> None:
    """Write a row of the ledger for each lesson, with the tokens that it took.

    A row is worth what the lesson and the question are worth together.
    """
    if not told:
        return
    connection.execute(
        "INSERT INTO session(id, project, last_at) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET last_at = max(last_at, excluded.last_at)",
        (ask.session, ask.project, ask.now),
    )
    connection.executemany(
        "INSERT INTO injection(lesson, fingerprint, project, session, hook, tokens, at, level, untrusted) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (one.id, one.fingerprint, one.project, ask.session, ask.hook, tokens, ask.now,
             *one.label.join(ask.label))
            for one, tokens in told
        ],
    )  # fmt: skip
    connection.executemany(
        "UPDATE lesson SET injected_at = max(coalesce(injected_at, 0), ?) WHERE row = ?",
        [(ask.now, one.row) for one, _ in told],
    )
    settings.count(connection, "injections_total", len(told))


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


def _known_as(lesson: Lesson, ask: Ask) -> str:
    """Return under which name a refusal counts: above a lesson's readers for the owner alone, under none."""
    return lesson.id if lesson.label.covers(ask.label) else ""


def _tokens_of(hook: str) -> str:
    return "compacting" if hook == "compacting" else "pre_prompt"
