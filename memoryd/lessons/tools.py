"""The thirteen tools: plain arguments and a reader in, plain values out.

`save`, `query`, `get`, `recall`, `status`, `retrospective`, `why`, `export`, `import_`, `config`, `feedback`,
`trace`, `audit`. Each takes the connection and the reader first; what a reader may not see is absent, in
rows, counts and errors alike. What is asked changes nothing, but for `recall`, which writes the ledger.
"""

from pathlib import Path

import apsw
import msgspec

from memoryd import db, redact
from memoryd.clock import rfc3339
from memoryd.errors import BadRequest, NotFound
from memoryd.labels import Label
from memoryd.lessons import audit as auditing
from memoryd.lessons import (
    exchange,
    fingerprint,
    ledger,
    plan,
    rank,
    row,
    settings,
    words,
)
from memoryd.lessons import explain as explaining
from memoryd.lessons import feedback as judging
from memoryd.lessons import retrospective as looking_back
from memoryd.lessons.plan import Ask
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson

MOST_CONTENT = 4_096
_SNIPPET = 200
_DAY = 86_400_000
_TOKENS_A_ROW = 500


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to keep. `label` is the writer's; a lesson without a fingerprint gets one."""

    type: str
    content: str
    label: Label
    now: int
    scope: str = "project"
    project: str = ""
    session: str | None = None
    tool: str | None = None
    relevance: float = 0.5
    metadata: dict[str, object] | None = None
    fingerprint: str | None = None


def save(connection: apsw.Connection, reader: Reader, given: Saved) -> dict[str, object]:
    """Keep a lesson and return its id. Raises: BadRequest that names what is wrong."""
    content = redact.secrets(given.content.replace("\r\n", "\n").strip())
    if given.type not in row.TYPES:
        raise BadRequest(f"there is no type {given.type}", remedy=f"one of {', '.join(row.TYPES)}")
    if not content or len(content.encode("utf-8", "replace")) > MOST_CONTENT:
        raise BadRequest(f"a lesson has 1 to {MOST_CONTENT} bytes", remedy="shorten it")
    if given.scope not in ("project", "session") or not 0 <= given.relevance <= 1:
        raise BadRequest(
            "scope or relevance is out of range",
            remedy="scope is project or session, relevance 0 to 1",
        )
    made = Lesson(
        id=row.new_id(
            given.now, "saved", given.type, content, given.session, given.project, *given.label
        ),
        type=given.type,
        content=content,
        scope=given.scope,
        project=given.project,
        fingerprint=given.fingerprint or fingerprint.of_text(given.type, content, given.project),
        origin="agent",
        level=given.label.level,
        untrusted=given.label.untrusted,
        relevance=given.relevance,
        tool=given.tool,
        session=given.session,
        metadata=None if given.metadata is None else _metadata(given.metadata),
        created_at=given.now,
        updated_at=given.now,
        expires_at=given.now + _DAY if given.scope == "session" else None,
    )
    with db.transaction(connection):
        if connection.execute("SELECT 1 FROM lesson WHERE id = ?", (made.id,)).get is None:
            kept = row.insert(connection, made)
            exchange.supersede(connection, kept, given.now)
    return {"id": made.id}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What `query` is asked. All of the words must be there."""

    query: str
    now: int
    type: str | None = None
    limit: int = 10
    full: bool = False
    evidence: bool = False
    include_superseded: bool = False
    include_archived: bool = False


def query(connection: apsw.Connection, reader: Reader, given: Question) -> list[dict[str, object]]:
    """Return the visible lessons that hold all the words of a query, best first."""
    statuses = {"active"}
    statuses |= {"superseded"} if given.include_superseded else set()
    statuses |= {"archived", "stale"} if given.include_archived else set()
    terms = words.query_terms(connection, given.query)
    found = words.scores(connection, terms, reader, every=True)
    cross = settings.on(connection, "cross_project_enabled")
    marks = ",".join(map(str, found))
    told = [
        one
        for one in row.visible(connection, reader, f"lesson.row IN ({marks})")
        if one.status in statuses and not one.ignored and given.type in (None, one.type)
        if one.expires_at is None or one.expires_at > given.now
        if cross or one.origin != "imported" or one.project
    ]
    told.sort(key=lambda one: (-found[one.row], one.row))
    return [_hit(one, found[one.row], given) for one in told[: max(1, given.limit)]]


def get(connection: apsw.Connection, reader: Reader, id: str) -> dict[str, object]:
    """Return everything about one lesson, whatever its status. Raises: NotFound, also for a hidden one."""
    lesson = row.get(connection, id, reader)
    if lesson is None:
        raise NotFound("no such lesson", remedy="`query` lists those you may see", id=id)
    return whole(lesson)


def recall(
    connection: apsw.Connection, reader: Reader, ask: Ask, *, limit: int = 5, scope: str = "all"
) -> list[dict[str, object]]:
    """Return what fits a question, at most `limit` × 500 tokens of it; what is told is measured too.

    A lesson that is told here gets a row of the ledger with the hook `pull`.
    """
    with db.transaction(connection):
        told = _recalled(connection, reader, ask, limit * _TOKENS_A_ROW, scope)
        for lesson in told:
            ledger.inject(connection, lesson, _pulled(ask), plan.estimate(lesson.content))
        rank.bump(connection, [one for one in told if one.label.covers(ask.label)])
    return [
        {"id": one.id, "type": one.type, "content": one.content, "scope": one.scope} for one in told
    ]


def _recalled(
    connection: apsw.Connection, reader: Reader, ask: Ask, tokens: int, scope: str
) -> list[Lesson]:
    if ask.query:
        found = rank.candidates(connection, reader, ask.query, ask.now)
        lessons = [one.lesson for one in found]
    else:
        lessons = row.visible(connection, reader, order="relevance DESC, created_at DESC, row")
    cross = settings.on(connection, "cross_project_enabled")
    kept: list[Lesson] = []
    for one in lessons:
        hidden = one.status != "active" or one.ignored
        hidden = hidden or (one.expires_at is not None and one.expires_at <= ask.now)
        foreign = one.origin == "imported" and not one.project and not cross
        if hidden or foreign or scope not in ("all", one.scope):
            continue
        tokens -= plan.estimate(one.content)
        if tokens < 0:
            break
        kept.append(one)
    return kept


def _pulled(ask: Ask) -> Ask:
    return msgspec.structs.replace(ask, hook="pull")


def status(connection: apsw.Connection, reader: Reader) -> dict[str, object]:
    """Return the figures at a glance; lifetime counters are the owner's."""
    rates = ledger.rates(connection, reader)
    held = auditing.memories(connection, reader)
    by_origin = msgspec.convert(held["by_origin"], dict[str, int])
    verdicts = auditing.verdicts(connection, reader)
    calls, retrospectives = _counts(connection, reader)
    return {
        "memories": held["total"],
        **{f"memories_{name}": by_origin[name] for name in ("reflector", "agent", "pattern", "causal")},
        "tool_calls": calls,
        "retrospectives": retrospectives,
        "metrics": settings.counters(connection) if reader.owner else {},
        "precision_rate": rates.precision_rate,
        "coverage_rate": rates.coverage_rate,
        "injections_total": rates.total,
        "injections_effective": rates.effective,
        "injections_ineffective": rates.ineffective,
        "injections_inconclusive": rates.inconclusive,
        "injections_unmeasured": rates.unmeasured,
        "injections_prevented": rates.prevented,
        "patterns_promoted_new": by_origin["causal"],
        "recurrence_by_origin": _recurrence(connection, reader),
        "blocked": auditing.blocked(connection, reader),
        "memories_ignored": held["ignored"],
        "memories_archived": held["archived"],
        "feedback": {
            "positive": verdicts["useful"],
            "negative": verdicts["wrong"] + verdicts["outdated"],
        },
    }  # fmt: skip


def _counts(connection: apsw.Connection, reader: Reader) -> tuple[int, int]:
    calls = connection.execute(f"SELECT count(*) FROM call WHERE {reader.where('call')}").get
    if not reader.owner:
        return int(calls), 0
    return int(calls), int(connection.execute("SELECT count(*) FROM retrospective").get)


def _recurrence(connection: apsw.Connection, reader: Reader) -> dict[str, int]:
    found = connection.execute(
        f"SELECT origin, sum(recurrence) FROM lesson WHERE {reader.where('lesson')} "
        "GROUP BY origin HAVING sum(recurrence) > 0 ORDER BY origin"
    )
    return {str(origin): int(number) for origin, number in found}


def retrospective(
    connection: apsw.Connection, reader: Reader, session: str, *, home: Path, now: int
) -> dict[str, object]:
    """Write a session's page anew and return where it lies, or a message that there is none."""
    with db.transaction(connection):
        path = looking_back.write(connection, reader, session, home, now)
    if path is None:
        return {"message": "nothing failed in that session"}
    return {"file_path": str(path)}


def why(connection: apsw.Connection, reader: Reader, query: str) -> dict[str, object]:
    """Return the surest pattern that holds all the words, and what was seen of it."""
    return explaining.why(connection, reader, query)


def export(
    connection: apsw.Connection, reader: Reader, form: str = "okf", *, untrusted: bool = False
) -> str:
    """Return a bundle of what may be given away. Raises: BadRequest."""
    return exchange.export(connection, reader, form, untrusted=untrusted)


def import_(
    connection: apsw.Connection, reader: Reader, bundle: str, label: Label, *, now: int
) -> dict[str, object]:
    """Take a bundle in at the label of whoever brings it. Raises: BadRequest."""
    return exchange.bring_in(connection, bundle, label, now=now)


def config(
    connection: apsw.Connection,
    reader: Reader,
    action: str = "list",
    key: str | None = None,
    value: str = "1",
) -> dict[str, object]:
    """List the settings or set one. Raises: BadRequest that names an unknown key or a junk value."""
    if action == "list":
        return dict(settings.every(connection))
    if action != "set":
        raise BadRequest(f"there is no action {action}", remedy="list or set")
    if key is None:
        raise BadRequest("set needs a key", remedy="`list` shows them")
    with db.transaction(connection):
        settings.put(connection, key, value)
    return {"ok": True, "key": key, "value": value}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody thinks of a lesson."""

    memory_id: str
    verdict: str
    now: int
    note: str | None = None
    session: str | None = None


def feedback(connection: apsw.Connection, reader: Reader, given: Verdict) -> dict[str, object]:
    """Take a verdict. Raises: NotFound, BadRequest."""
    return judging.give(
        connection,
        reader,
        given.memory_id,
        given.verdict,
        now=given.now,
        session=given.session,
        note=given.note,
    )


def trace(connection: apsw.Connection, reader: Reader, ask: Ask) -> dict[str, object]:
    """Return exactly what the next block would hold, and what it would not and why. Changes nothing."""
    if not ask.query.strip():
        return {"message": "no query to trace"}
    return plan.as_value(plan.plan(connection, reader, ask), reader)


def audit(
    connection: apsw.Connection, reader: Reader, *, verbose: bool = False
) -> dict[str, object]:
    """Return the whole account over what the reader may see."""
    return auditing.audit(connection, reader, verbose=verbose)


def _hit(lesson: Lesson, score: float, given: Question) -> dict[str, object]:
    if given.full:
        return {
            "id": lesson.id,
            "type": lesson.type,
            "content": lesson.content,
            "scope": lesson.scope,
        }
    told: dict[str, object] = {
        "id": lesson.id,
        "type": lesson.type,
        "scope": lesson.scope,
        "score": round(score, 6),
        "snippet": lesson.content[:_SNIPPET],
    }
    if given.evidence:
        told |= {
            "confidence": lesson.confidence,
            "evidence_count": lesson.evidence,
            "last_verified_at": _time(lesson.verified_at),
        }
    return told


def whole(lesson: Lesson) -> dict[str, object]:
    """Return all that is told of one lesson, to a reader who was found to be cleared for it."""
    return {
        "id": lesson.id,
        "type": lesson.type,
        "content": lesson.content,
        "scope": lesson.scope,
        "relevance_score": lesson.relevance,
        "source_tool": lesson.tool,
        "source_session": lesson.session,
        "created_at": _time(lesson.created_at),
        "updated_at": _time(lesson.updated_at),
        "expires_at": _time(lesson.expires_at),
        "project_id": lesson.project or None,
        "fingerprint": lesson.fingerprint,
        "origin": lesson.origin,
        "metadata": None if lesson.metadata is None else msgspec.json.decode(lesson.metadata),
        "confidence": lesson.confidence,
        "evidence_count": lesson.evidence,
        "recurrence_count": lesson.recurrence,
        "last_verified_at": _time(lesson.verified_at),
        "status": lesson.status,
        "fix_args": lesson.fix_args,
        "code": lesson.code,
        "hint": lesson.hint,
        "ignored": lesson.ignored,
        "superseded_by": lesson.superseded_by,
    }


def _time(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)


def _metadata(given: dict[str, object]) -> str:
    return msgspec.json.encode(redact.arguments(given)).decode()
