"""At idle: what the session's injections came to, what is held against its lessons, and what follows.

In: a session, its idle or its end, the time. Out: outcomes, which stay open until the session ends; charges,
each failing call at most once a lesson; relevance, patterns, stale lessons, archived ones. A row's order of
events decides, by milliseconds.
"""

from collections.abc import Iterable, Sequence

import apsw

from memoryd import db
from memoryd.lessons import archive, promote, retention, row, settings, suggest
from memoryd.lessons.outcome import Injection, outcome
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import STALE_AFTER, Lesson

EVERYTHING = Reader(7, "include", ("*",), owner=True)
_STEP = 0.05
_CHARGEABLE = (
    "type = 'error' AND origin = 'reflector' AND status IN ('active', 'stale') AND "
    "(lesson.session IS NOT {session} OR EXISTS (SELECT 1 FROM injection i WHERE i.session = {session} "
    "AND i.fingerprint = lesson.fingerprint AND i.project = lesson.project))"
)


def idle(connection: apsw.Connection, session: str, now: int, *, ended: bool = False) -> None:
    """Do all that a session's idle asks for, in one transaction, where nobody else sees to `retention`.

    `now`: by the caller's clock. `ended`: the outcomes become final.
    """
    with db.transaction(connection):
        rest(connection, session, now, ended=ended)
        retention.expire(connection, now)


def rest(connection: apsw.Connection, session: str, now: int, *, ended: bool = False) -> None:
    """Do what concerns the session in the caller's transaction; `now` may be a time that stands in its log."""
    rest_many(connection, ((session, now),), ended=ended)


def rest_many(
    connection: apsw.Connection, rests: Sequence[tuple[str, int]], *, ended: bool = False
) -> None:
    """Do the same for sessions with their times, each session once, in order.

    Of most sessions nothing was told, nothing is held against what others taught, and nothing was mended in them:
    what there is to do is asked at once. A lesson that gains is charged by nobody (its error never came back), so
    that all can gain first.
    """
    if not rests:
        return
    boost(connection, [session for session, _ in rests])
    connection.executemany(
        "UPDATE session SET idle_at = ?, ended = max(ended, ?) WHERE id = ?",
        [(now, ended, session) for session, now in rests],
    )
    todo = _todo(connection, [session for session, _ in rests])
    mines = settings.on(connection, "patternminer_enabled")
    stale = connection.execute("SELECT EXISTS (SELECT 1 FROM lesson WHERE status = 'stale')").get
    for session, now in rests:
        told, charges, mended = todo[session]
        if told:
            settle(connection, session, now, ended=ended)
        charged = charge(connection, session, now) if charges else []
        suggest.leave(connection, session, charged)
        stale = stale or charged
        if mended:
            promote.promote(connection, session, now)
        for project in _projects(connection, session) if mines else ():
            promote.mine(connection, project, now)
        if stale:
            archive.archive(connection, now)


def _todo(
    connection: apsw.Connection, sessions: Sequence[str]
) -> dict[str, tuple[bool, bool, bool]]:
    """Return of each session whether an outcome is open, a lesson may be charged, something was mended."""
    found = connection.execute(
        f"WITH s(id) AS (VALUES {_rows(sessions)}) SELECT s.id, "
        "EXISTS (SELECT 1 FROM injection WHERE session = s.id AND final = 0), "
        "EXISTS (SELECT 1 FROM failed f CROSS JOIN lesson USING (project) WHERE f.session = s.id "
        f"AND lesson.fingerprint = f.error AND {_CHARGEABLE.format(session='s.id')}), "
        "EXISTS (SELECT 1 FROM fix WHERE session = s.id) FROM s",
        sessions,
    )
    return {str(name): (bool(a), bool(b), bool(c)) for name, a, b, c in found}


def _rows(sessions: Sequence[str]) -> str:
    """Return a row a session as SQL: bound one by one, since JSON cannot hold each of their names."""
    return ",".join(["(?)"] * len(sessions))


def settle(connection: apsw.Connection, session: str, now: int, *, ended: bool = False) -> None:
    """Write the outcome of each injection of the session that is not final, whatever it was before."""
    rows = list(
        connection.execute(
            "SELECT row, lesson, fingerprint, project, at, outcome FROM injection "
            "WHERE session = ? AND final = 0 ORDER BY at, row",
            (session,),
        )
    )
    for number, lesson, fingerprint, project, at, before in rows:
        given = Injection(str(lesson), str(fingerprint), str(project), session, int(at))
        word, prevented = outcome(connection, given, EVERYTHING)
        connection.execute(
            "UPDATE injection SET outcome = ?, prevented = ?, final = ? WHERE row = ?",
            (word, prevented, ended, number),
        )
        if word != before:
            settings.count(connection, f"injections_{word}")
            settings.count(connection, f"injections_{before}", -(before != "unmeasured"))
    _idle(connection, session, now, ended=ended)


def _idle(connection: apsw.Connection, session: str, now: int, *, ended: bool) -> None:
    connection.execute(
        "UPDATE session SET idle_at = ?, ended = max(ended, ?) WHERE id = ?", (now, ended, session)
    )


def charge(connection: apsw.Connection, session: str, now: int) -> list[Lesson]:
    """Hold failing calls of the session against the lessons of their errors; return who was charged.

    After a lesson was shown here, each further failure counts. Where it was not shown, a session counts once,
    and the session that taught it not at all: nobody had been told. At three it goes stale.
    """
    charged: list[Lesson] = []
    for lesson in _recurring(connection, session):
        if not (calls := _chargeable(connection, session, lesson)):
            continue
        before = connection.total_changes()
        connection.executemany(
            "INSERT OR IGNORE INTO charge VALUES (?, ?, ?, ?)", [(lesson.id, *c) for c in calls]
        )
        if added := connection.total_changes() - before:
            charged.append(_charged(connection, lesson, added, now, session))
    return charged


def _recurring(connection: apsw.Connection, session: str) -> Iterable[Lesson]:
    """Return the lessons of the session's errors, but for those that it taught and was not told."""
    return row.select(
        connection,
        "(project, fingerprint) IN (SELECT project, error FROM failed WHERE session = ?1) AND "
        + _CHARGEABLE.format(session="?1"),
        (session,),
    )


def _chargeable(
    connection: apsw.Connection, session: str, lesson: Lesson
) -> list[tuple[str, int, int]]:
    """Return the failing calls that count against a lesson, of those that its own readers may see."""
    found = list(
        connection.execute(
            "SELECT log, n, block, at FROM failed WHERE session = ? AND error = ? "
            "AND project = ? AND level <= ? AND untrusted <= ? "
            "AND log || char(0) || n || char(0) || block <> ? ORDER BY at, log, n, block",
            (session, lesson.fingerprint, lesson.project, *lesson.label, lesson.call or ""),
        )
    )
    shown = connection.execute(
        "SELECT min(at) FROM injection WHERE session = ? AND fingerprint = ? AND project = ?",
        (session, lesson.fingerprint, lesson.project),
    ).get
    after = [
        (str(log), int(n), int(block))
        for log, n, block, at in found
        if shown is not None and at >= shown
    ]
    if session == lesson.session or not found:
        return after
    log, n, block, _ = found[0]
    return after or [(str(log), int(n), int(block))]


def _charged(
    connection: apsw.Connection, lesson: Lesson, added: int, now: int, session: str
) -> Lesson:
    row.update(
        connection,
        lesson.row,
        recurrence=lesson.recurrence + added,
        relevance=max(0.0, round(lesson.relevance - _STEP, 4)),
        verified_at=now,
    )
    fresh = row.select(connection, "row = ?", (lesson.row,))[0]
    if fresh.recurrence - fresh.forgiven >= STALE_AFTER:
        row.stale(connection, fresh, now, session)
    return fresh


def boost(connection: apsw.Connection, sessions: Sequence[str]) -> None:
    """Raise the relevance of the sessions' own lessons whose error never came back, as far as they can see.

    Before it is written down that they are idle. Where a lesson's readers have seen nothing of its session since it
    was idle last, nothing is raised: what made it idle again is above them.
    """
    connection.execute(
        f"WITH s(id) AS (VALUES {_rows(sessions)}) "
        "UPDATE lesson SET relevance = min(1.0, round(relevance + ?, 4)) WHERE row IN ("
        "SELECT l.row FROM s CROSS JOIN failed f ON f.session = s.id "
        "CROSS JOIN lesson l ON l.fingerprint = f.error AND l.session = s.id "
        "LEFT JOIN session ON session.id = s.id "
        "WHERE l.type = 'error' AND l.origin = 'reflector' AND l.status = 'active' "
        "AND NOT EXISTS (SELECT 1 FROM failed c WHERE c.error = l.fingerprint "
        "AND c.project = l.project AND c.level <= l.level AND c.untrusted <= l.untrusted "
        "AND c.log || char(0) || c.n || char(0) || c.block <> coalesce(l.call, '')) "
        "AND (EXISTS (SELECT 1 FROM failed n WHERE n.session = s.id AND n.at > coalesce(idle_at, -1) "
        "AND n.level <= l.level AND n.untrusted <= l.untrusted) "
        "OR EXISTS (SELECT 1 FROM well n WHERE n.session = s.id AND n.until > coalesce(idle_at, -1) "
        "AND n.level <= l.level AND n.untrusted <= l.untrusted)))",
        (*sessions, _STEP),
    )


def _projects(connection: apsw.Connection, session: str) -> list[str]:
    found = connection.execute("SELECT DISTINCT project FROM call WHERE session = ?", (session,))
    return [str(project) for (project,) in found]
