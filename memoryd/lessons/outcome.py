"""What came of telling: one of four words, never more than was seen.

In: a row of the ledger and the session's calls and fixes, as far as a reader may see them. Out: the word, and
beside it whether the command that once failed was run and never failed.

- ``ineffective``: the same error came again in the session after it (the call that taught the lesson aside).
- ``effective``: it did not, and a proven fix of it came after it, in a session that had the error itself.
  Where the session never had it, the same success is `prevented`, which stands apart.
- ``inconclusive``: neither. A session without the error proves nothing: it may never have come near it.
- ``unmeasured`` is what a row is before its session was idle for the first time.
"""

import apsw
import msgspec

from memoryd.lessons.reader import Reader


class Injection(msgspec.Struct, frozen=True):
    """Which lesson was shown to which session, and when (ms)."""

    lesson: str
    fingerprint: str
    project: str
    session: str
    at: int


def outcome(connection: apsw.Connection, given: Injection, reader: Reader) -> tuple[str, bool]:
    """Return the outcome by what `reader` may see, and whether a failure was prevented."""
    taught, command = _taught(connection, given.lesson)
    again = connection.execute(
        "SELECT 1 FROM failed WHERE session = ? AND error = ? AND at >= ? "
        "AND log || char(0) || n || char(0) || block <> ? "
        f"AND {reader.where('failed')} LIMIT 1",
        (given.session, given.fingerprint, given.at, taught),
    ).get
    if again is not None:
        return "ineffective", False
    mended = connection.execute(
        "SELECT 1 FROM fix WHERE session = ?1 AND fingerprint = ?2 AND at >= ?3 "
        f"AND {reader.where('fix')} AND EXISTS (SELECT 1 FROM failed WHERE session = ?1 "
        f"AND error = ?2 AND {reader.where('failed')}) LIMIT 1",
        (given.session, given.fingerprint, given.at),
    ).get
    word = "effective" if mended is not None else "inconclusive"
    return word, _prevented(connection, given, command, reader)


def _taught(connection: apsw.Connection, lesson: str) -> tuple[str, str | None]:
    found = connection.execute(
        "SELECT coalesce(call, ''), call_fingerprint FROM lesson WHERE id = ?", (lesson,)
    ).get
    return ("", None) if found is None else (str(found[0]), found[1])


def _prevented(
    connection: apsw.Connection, given: Injection, command: str | None, reader: Reader
) -> bool:
    """Say whether the command that taught the lesson ran after it and never failed in the session."""
    if command is None:
        return False
    ran, failed = connection.execute(
        "SELECT coalesce(sum(ok = 1 AND at >= ?), 0), coalesce(sum(ok = 0), 0) FROM call "
        f"WHERE session = ? AND fingerprint = ? AND {reader.where('call')}",
        (given.at, given.session, command),
    ).get
    return bool(ran) and not failed
