"""Figures over the lessons that a reader may see: counted from tables, each time anew.

In: a reader. Out: plain numbers. Tokens and the lifetime counters are the owner's alone: no table can tell
whose rows they came from.
"""

import apsw

from memoryd.lessons import ledger, settings
from memoryd.lessons.feedback import VERDICTS
from memoryd.lessons.gate import REASONS
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import TYPES

STATUSES = ("active", "superseded", "stale", "archived")
ORIGINS = ("reflector", "agent", "pattern", "retrospective", "causal", "imported")
_SHORT = {"seen_this_session": "seen"}


def audit(
    connection: apsw.Connection, reader: Reader, *, verbose: bool = False
) -> dict[str, object]:
    """Return the whole account. Changes nothing; asked twice it says the same."""
    rates = ledger.rates(connection, reader)
    by_verdict = verdicts(connection, reader)
    told: dict[str, object] = {
        "memories": memories(connection, reader),
        "injections": injections(rates),
        "blocked": blocked(connection, reader),
        "feedback": {
            "positive": by_verdict["useful"],
            "negative": by_verdict["wrong"] + by_verdict["outdated"],
            "by_verdict": by_verdict,
        },
        "tokens": tokens(connection, reader),
        "partial": False,
    }
    if verbose:
        told["settings"] = settings.every(connection) if reader.owner else {}
    return told


def memories(connection: apsw.Connection, reader: Reader) -> dict[str, object]:
    """Return how many visible lessons there are, by what they are."""
    where = reader.where("lesson")
    total, ignored, judged, led = connection.execute(
        "SELECT count(*), coalesce(sum(ignored), 0), coalesce(sum(useful + against > 0), 0), "
        "coalesce(sum(status = 'superseded' AND superseded_by IS NOT NULL), 0) "
        f"FROM lesson WHERE {where}"
    ).get
    by_status = _by(connection, "status", where, STATUSES)
    return {
        "total": total,
        "by_status": by_status,
        "by_origin": _by(connection, "origin", where, ORIGINS),
        "by_type": _by(connection, "type", where, TYPES),
        "ignored": ignored,
        "archived": by_status["archived"],
        "with_feedback": judged,
        "superseded_with_target": led,
    }


def injections(rates: ledger.Rates) -> dict[str, object]:
    """Return outcomes and rates; a rate is null where there is nothing to divide by."""
    return {
        "total": rates.total,
        "effective": rates.effective,
        "ineffective": rates.ineffective,
        "inconclusive": rates.inconclusive,
        "unmeasured": rates.unmeasured,
        "prevented": rates.prevented,
        "precision_rate": rates.precision_rate,
        "coverage_rate": rates.coverage_rate,
    }


def blocked(connection: apsw.Connection, reader: Reader) -> dict[str, int]:
    """Return how often each reason refused a visible lesson, budget included."""
    found = ledger.blocked(connection, reader)
    return {_SHORT.get(reason, reason): found.get(reason, 0) for reason in (*REASONS, "budget")}


def verdicts(connection: apsw.Connection, reader: Reader) -> dict[str, int]:
    """Return how often each verdict was given on visible lessons."""
    found = connection.execute(
        "SELECT verdict, count(*) FROM feedback JOIN lesson ON lesson.id = feedback.lesson "
        f"WHERE {reader.where('lesson')} GROUP BY verdict"
    )
    given = {str(verdict): int(number) for verdict, number in found}
    return {verdict: given.get(verdict, 0) for verdict in VERDICTS}


def tokens(connection: apsw.Connection, reader: Reader) -> dict[str, int]:
    """Return the tokens of the ledger's visible rows, by hook."""
    found = connection.execute(
        f"SELECT hook, sum(tokens) FROM injection WHERE {reader.where('injection')} GROUP BY hook"
    )
    by_hook = {str(hook): int(number) for hook, number in found}
    return {hook: by_hook.get(hook, 0) for hook in ("pre_prompt", "compacting", "pull")}


def _by(
    connection: apsw.Connection, column: str, where: str, known: tuple[str, ...]
) -> dict[str, int]:
    found = connection.execute(f"SELECT {column}, count(*) FROM lesson WHERE {where} GROUP BY 1")
    counts = {str(word): int(number) for word, number in found}
    return {word: counts.get(word, 0) for word in known}
