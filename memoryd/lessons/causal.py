"""What mended it, with proof: the same tool with the same arguments that failed now succeeds.

In: successful calls. Out: `fix` rows, evidence on the lessons they mend, and the steps in between as
`fix_args`. A failure can be mended in its own session, or in one of the same project within 24 hours,
measured from the failure. An unrelated success proves nothing. A lesson is credited only by what its own
readers may see; a fix above it goes to a pattern at the label of both (`memoryd.lessons.promote`).
"""

from collections.abc import Iterable, Mapping

import apsw
import msgspec

from memoryd.labels import Label
from memoryd.lessons import row, settings
from memoryd.lessons.calls import DAY
from memoryd.lessons.failure import shell_like
from memoryd.lessons.pairing import Seen
from memoryd.lessons.passage import only_looks

WINDOW = 24 * 3_600_000
MOST_STEPS = 4
MOST_ARGS = 300
_STEP = 90

_LOOKING = frozenset(
    "ls cat head tail less more grep rg find fd tree pwd echo which wc file stat env printenv whoami date "
    "sleep true clear history strings open goto scroll_up scroll_down search_dir search_file find_file "
    "decompile".split()
)
_GIT_LOOKING = frozenset(("git", word) for word in "status log diff show branch".split())


class Success(msgspec.Struct, frozen=True, kw_only=True):
    """A call that went well."""

    log: str
    n: int
    session: str
    project: str
    tool: str
    summary: str
    fingerprint: str
    at: int
    label: Label

    @classmethod
    def of(cls, seen: Seen) -> "Success":
        """Return what is needed of a call that was seen."""
        return cls(
            log=seen.log,
            n=seen.n,
            session=seen.session,
            project=seen.project,
            tool=seen.tool,
            summary=seen.summary,
            fingerprint=seen.fingerprint,
            at=seen.at,
            label=seen.label,
        )


def link(connection: apsw.Connection, success: Success) -> int:
    """Credit a success with every error that the same call failed with before; return how many.

    The first success after a failure mends it; a later one finds the fix that is there. Failures of each label
    are looked at apart, the lowest first, so that one above a reader makes no fix that the reader sees.
    """
    failures = connection.execute(
        "SELECT error, level, untrusted, max(at), summary FROM failed "
        "WHERE fingerprint = ? AND project = ? AND at <= ? "
        "AND (session = ? OR at >= ?) AND NOT (log = ? AND n > ?) "
        "GROUP BY error, level, untrusted ORDER BY level, untrusted, error",
        (success.fingerprint, success.project, success.at, success.session, success.at - WINDOW,
         success.log, success.n),
    )  # fmt: skip
    done = 0
    for error, level, untrusted, at, said in list(failures):
        own = Label(int(level), bool(untrusted))
        label = success.label.join(own)
        failure = str(error), int(at)
        # Of a tool that only looks no summary is kept; what failed was the same call.
        about = success.summary or str(said)
        mended = msgspec.structs.replace(success, summary=about)
        known = _known(connection, mended, failure, label)
        if known is None:
            _fix(connection, mended, failure, label)
            done += 1
        elif known[1:] == (success.session, success.at):
            _tell_again(connection, known[0], mended, (failure[0], failure[1], own))
    settings.count(connection, "causal_links", done)
    return done


def mended(connection: apsw.Connection, failures: Mapping[int, Seen]) -> frozenset[int]:
    """Return the failures, by their place, that `link_later` may find a success for: most have none.

    Each batch of successes is looked at once for all failures of its project, not once for each.
    """
    times: dict[str, tuple[int, int]] = {}
    wanted: dict[str, list[int]] = {}
    for place, one in failures.items():
        wanted.setdefault(one.fingerprint, []).append(place)
        first, last = times.get(one.project, (one.at, one.at))
        times[one.project] = min(first, one.at), max(last, one.at)
    found: set[int] = set()
    for project, (first, last) in times.items():
        for log, until, prints in connection.execute(
            "SELECT log, until, prints FROM well WHERE project = ? AND at > ? AND at <= ?",
            (project, first - DAY, last + WINDOW),
        ):
            for same in wanted.keys() & str(prints).split():
                found |= {
                    n for n in wanted[same] if failures[n].log != log and failures[n].at < until
                }
    return frozenset(found)


def link_later(connection: apsw.Connection, seen: Seen) -> None:
    """Credit a success that was read before the failure it mends: logs are read in no order."""
    found = connection.execute(
        "SELECT log, c.value ->> 0, session, project, c.value ->> 3, c.value ->> 4, c.value ->> 5, "
        "c.value ->> 2 AS then_at, level, untrusted FROM well, json_each(well.calls) AS c "
        "WHERE project = ?1 AND at > ?2 - ?3 AND at <= ?2 + ?4 AND log <> ?5 AND instr(prints, ?6) "
        "AND c.value ->> 5 = ?6 AND then_at > ?2 AND then_at <= ?2 + ?4 ORDER BY then_at LIMIT 1",
        (seen.project, seen.at, DAY, WINDOW, seen.log, seen.fingerprint),
    )
    for *told, level, untrusted in list(found):
        names = ("log", "n", "session", "project", "tool", "summary", "fingerprint", "at")
        given = dict(zip(names, told, strict=True))
        link(
            connection,
            msgspec.convert({**given, "label": (level, bool(untrusted))}, Success, strict=False),
        )


def _known(
    connection: apsw.Connection, success: Success, failure: tuple[str, int], label: Label
) -> tuple[int, str, int] | None:
    """Return row, session and time of a fix by the same call since the failure that readers of `label` see too."""
    error, failed_at = failure
    found = connection.execute(
        "SELECT row, session, at FROM fix WHERE fingerprint = ? AND project = ? AND at >= ? AND at <= ? "
        "AND coalesce(call, ?) = ? AND level <= ? AND untrusted <= ? ORDER BY at DESC LIMIT 1",
        (error, success.project, failed_at, success.at, *[success.fingerprint] * 2, *label),
    )
    return next(((int(row), str(session), int(at)) for row, session, at in found), None)


def _tell_again(
    connection: apsw.Connection, number: int, success: Success, failure: tuple[str, int, Label]
) -> None:
    """Tell the steps of a fix anew: its failure was read after it. One above its readers changes nothing."""
    error, failed_at, own = failure
    level, untrusted = connection.execute(
        "SELECT level, untrusted FROM fix WHERE row = ?", (number,)
    ).get
    label = Label(int(level), bool(untrusted))
    if not label.covers(own):
        return
    args = steps(connection, success, failed_at, label)
    connection.execute("UPDATE fix SET args = ? WHERE row = ?", (args, number))
    _credit_all(connection, error, success.project, label)


def _fix(
    connection: apsw.Connection, success: Success, failure: tuple[str, int], label: Label
) -> None:
    error, failed_at = failure
    args = steps(connection, success, failed_at, label)
    connection.execute(
        "INSERT INTO fix(fingerprint, project, session, at, args, level, untrusted, call) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (error, success.project, success.session, success.at, args, *label, success.fingerprint),
    )
    _withdraw(connection, success, error, label)
    _credit_all(connection, error, success.project, label)


def _credit_all(connection: apsw.Connection, error: str, project: str, label: Label) -> None:
    """Credit every lesson of an error whose readers may see a fix of `label`."""
    for lesson in row.select(
        connection,
        "type = 'error' AND origin = 'reflector' AND status IN ('active', 'stale') "
        "AND fingerprint = ? AND project = ?",
        (error, project),
    ):
        if lesson.label.covers(label):
            _credit(connection, lesson)


def _withdraw(connection: apsw.Connection, success: Success, error: str, label: Label) -> None:
    """Take back what was credited to a later success of this call, read before it, without a failure in between."""
    connection.execute(
        "DELETE FROM fix WHERE fingerprint = ?1 AND project = ?2 AND at > ?3 "
        "AND level >= ?4 AND untrusted >= ?5 AND coalesce(call, ?6) = ?6 AND NOT EXISTS (SELECT 1 "
        "FROM failed WHERE error = ?1 AND failed.project = ?2 AND failed.at > ?3 "
        "AND failed.at <= fix.at AND (fix.call IS NULL OR failed.fingerprint = ?6))",
        (error, success.project, success.at, *label, success.fingerprint),
    )


def _credit(connection: apsw.Connection, lesson: row.Lesson) -> None:
    """Count the fixes that a lesson's readers may see, and tell the newest."""
    found = list(
        connection.execute(
            "SELECT at, args FROM fix WHERE fingerprint = ? AND project = ? AND level <= ? "
            "AND untrusted <= ? ORDER BY at, row",
            (lesson.fingerprint, lesson.project, *lesson.label),
        )
    )
    at, args = found[-1]
    row.update(
        connection,
        lesson.row,
        evidence=len(found),
        verified_at=max(int(at), lesson.verified_at or 0),
        fix_args=str(args),
    )


def recount(connection: apsw.Connection, lesson: row.Lesson) -> None:
    """Count the fixes that a lesson's readers may still see, and tell the newest of them, if there is one."""
    count, args = connection.execute(
        "SELECT count(*), (SELECT args FROM fix WHERE fingerprint = ?1 AND project = ?2 AND level <= ?3 "
        "AND untrusted <= ?4 ORDER BY at DESC, row DESC LIMIT 1) FROM fix WHERE fingerprint = ?1 "
        "AND project = ?2 AND level <= ?3 AND untrusted <= ?4",
        (lesson.fingerprint, lesson.project, *lesson.label),
    ).get
    row.update(connection, lesson.row, evidence=int(count), fix_args=args)


def steps(connection: apsw.Connection, success: Success, failed_at: int, label: Label) -> str:
    """Return in words what was done between a failure and the success that proves the fix.

    Only what can have changed something: edits and commands, at most four, the last ones; none above `label`.
    """
    found = connection.execute(
        "SELECT tool, summary FROM call WHERE session = ? AND ok = 1 AND at >= ? AND at <= ? "
        "AND fingerprint <> ? AND NOT (log = ? AND n > ?) AND level <= ? AND untrusted <= ? "
        "ORDER BY at, n, block",
        (
            success.session,
            failed_at,
            success.at,
            success.fingerprint,
            success.log,
            success.n,
            *label,
        ),
    )
    done = [_step(str(tool), str(said)) for tool, said in found if changes(str(tool), str(said))]
    again = f"{_step(success.tool, success.summary)} went well"
    kept = [*_last_different(done), again] if done else [f"trying again: {again}"]
    text = "; ".join(kept)
    return text if len(text) <= MOST_ARGS else text[: MOST_ARGS - 1] + "…"


def changes(tool: str, said: str) -> bool:
    """Say whether a call can have changed anything: not one that only looks."""
    if shell_like(tool):
        words = said.split()
        return bool(words) and words[0] not in _LOOKING and tuple(words[:2]) not in _GIT_LOOKING
    return not only_looks(tool)


def _last_different(done: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(reversed(list(done))))[:MOST_STEPS][::-1]


def _step(tool: str, said: str) -> str:
    told = said if len(said) <= _STEP else said[: _STEP - 1] + "…"
    return f"{tool} `{told}`" if told else tool
