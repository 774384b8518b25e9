"""What a session came to, as a page: written once it had failures, and again when it goes on.

In: a session and a reader. Out: `retrospectives/<session>.md`, replaced atomically, and its row. A session's
name becomes a file name that can lead nowhere else.
"""

import hashlib
import re
from pathlib import Path

import apsw

from memoryd.clock import rfc3339
from memoryd.lessons import ledger, row, writing
from memoryd.lessons.plan import escaped
from memoryd.lessons.reader import Reader
from memoryd.state import private_folder

FOLDER = "retrospectives"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def file_name(session: str) -> str:
    """Return a session's file name; what is no plain name is replaced by its hash."""
    if _SAFE.fullmatch(session):
        return f"{session}.md"
    return f"session-{hashlib.blake2b(session.encode(), digest_size=8).hexdigest()}.md"


def page(connection: apsw.Connection, reader: Reader, session: str) -> str | None:
    """Return the page of a session, as far as `reader` may see it; None where it had no failure."""
    where = reader.where("call")
    failures = list(
        connection.execute(
            "SELECT tool, error_type, summary, at, error FROM call "
            f"WHERE session = ? AND ok = 0 AND {where} ORDER BY at, n, block",
            (session,),
        )
    )
    if not failures:
        return None
    went_well = connection.execute(
        f"SELECT count(*) FROM call WHERE session = ? AND ok = 1 AND {where}", (session,)
    ).get
    rates = ledger.rates(connection, reader, session)
    lines = [
        f"# Session {escaped(session)}",
        "",
        f"{len(failures)} calls failed, {went_well} went well.",
        "",
        "## What failed",
        *(f"- {rfc3339(at)} {escaped(f'{tool} ({kind}): {said}')}" for tool, kind, said, at, _ in failures),
        "",
        "## Lessons of this session",
        *_lessons(connection, reader, session),
        "",
        "## Came back although it was known",
        *_again(connection, reader, session),
        "",
        "## What was told here, and what came of it",
        (
            f"- told: {rates.total}; it helped: {rates.effective}; it did not: {rates.ineffective}; "
            f"nobody can say: {rates.inconclusive + rates.unmeasured}; prevented: {rates.prevented}"
        ),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def write(
    connection: apsw.Connection, reader: Reader, session: str, home: Path, now: int
) -> Path | None:
    """Write the page of a session anew and return its path; None where it had no failure."""
    text = page(connection, reader, session)
    if text is None:
        return None
    path = private_folder(home / FOLDER) / file_name(session)
    writing.replace(path, text.encode("utf-8", "replace"))
    failed, well = connection.execute(
        "SELECT coalesce(sum(ok = 0), 0), coalesce(sum(ok), 0) FROM call "
        f"WHERE session = ? AND {reader.where('call')}",
        (session,),
    ).get
    lessons = connection.execute(
        f"SELECT count(*) FROM lesson WHERE session = ? AND {reader.where('lesson')}", (session,)
    ).get
    connection.execute(
        "INSERT INTO retrospective VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at, "
        "failures = excluded.failures, successes = excluded.successes, lessons = excluded.lessons, "
        "file = excluded.file",
        (session, now, failed, well, lessons, str(path)),
    )
    return path


def _lessons(connection: apsw.Connection, reader: Reader, session: str) -> list[str]:
    found = row.visible(connection, reader, "session = ?", (session,))
    told = [f"- [{one.origin}] {escaped(one.content.splitlines()[0])}" for one in found]
    return told or ["- none"]


def _again(connection: apsw.Connection, reader: Reader, session: str) -> list[str]:
    """Return the lessons whose error came in this session, the call that taught each left out."""
    found = row.visible(
        connection,
        reader,
        "origin = 'reflector' AND EXISTS (SELECT 1 FROM call c WHERE c.session = ? AND c.ok = 0 "
        "AND c.error = lesson.fingerprint AND c.project = lesson.project "
        f"AND {reader.where('c')} "
        "AND c.log || char(0) || c.n || char(0) || c.block <> coalesce(lesson.call, ''))",
        (session,),
    )
    return [f"- {escaped(one.content.splitlines()[0])}" for one in found] or ["- none"]
