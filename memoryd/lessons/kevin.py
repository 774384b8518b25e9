"""Take over what opencode-kevin had learned.

In: its database, of any version from 001 to 006, which is only read; a label that its owner gives what it holds.
Out: its lessons, calls, fixes, injections and opinions among ours. A row that is there already is left alone,
so that the same file twice adds nothing. Counters and settings stay ours.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import apsw

from memoryd import db
from memoryd.errors import NotFound
from memoryd.labels import Label
from memoryd.lessons import row, store, words

_LESSON = ", ".join(name for name in row.COLUMNS if name not in ("row", "level", "untrusted"))
_CALL = "log, n, block, session, project, tool, summary, fingerprint, ok, at, error, error_type"
_FIX = "fingerprint, project, session, at, args"
_INJECTION = "lesson, fingerprint, project, session, hook, tokens, at, outcome, prevented, final"
_FEEDBACK = "lesson, verdict, session, note, at"


def bring_over(connection: apsw.Connection, path: Path, label: Label) -> dict[str, int]:
    """Import the database at `path` and return how many rows of each kind were new.

    Raises: NotFound, BadRequest for what is no such database, ConfigError for a version that is not known.
    """
    if not path.is_file():
        raise NotFound(f"{path} is not there", remedy="name opencode-kevin's kevin.db")
    with TemporaryDirectory(prefix="memoryd-kevin-") as folder:
        copy = Path(folder) / "copy.sqlite3"
        store.adopt(path, copy).close()
        with db.translated():
            connection.execute("ATTACH ? AS kevin", (str(copy),))
            try:
                with db.transaction(connection):
                    return _merge(connection, label)
            finally:
                connection.execute("DETACH kevin")


def _merge(connection: apsw.Connection, label: Label) -> dict[str, int]:
    level, untrusted = label.level, int(label.untrusted)
    new = "lesson NOT IN (SELECT id FROM main.lesson)"
    # Opinions and injections first: they are new exactly where their lesson is.
    counts = {
        "feedback": _copy(connection, "feedback", _FEEDBACK, f"{new} AND {_no_such_feedback()}"),
        "injections": _copy(
            connection,
            "injection",
            _INJECTION,
            f"{new} AND {_no_such_injection()}",
            (level, untrusted),
        ),
        "calls": _copy(connection, "call", _CALL, _no_such_call(), (level, untrusted)),
        "fixes": _copy(connection, "fix", _FIX, _no_such_fix(), (level, untrusted)),
        "lessons": _copy(
            connection,
            "lesson",
            _LESSON,
            "id NOT IN (SELECT id FROM main.lesson)",
            (level, untrusted),
        ),
    }
    words.write_missing(connection)
    return counts


def _copy(
    connection: apsw.Connection, table: str, columns: str, where: str, label: tuple[int, int] | None = None
) -> int:  # fmt: skip
    more, given = (", level, untrusted", f", {label[0]}, {label[1]}") if label else ("", "")
    before = connection.total_changes()
    connection.execute(
        f"INSERT OR IGNORE INTO main.{table}({columns}{more}) "
        f"SELECT {columns}{given} FROM kevin.{table} WHERE {where}"
    )
    return connection.total_changes() - before


def _no_such_injection() -> str:
    # Of a lesson that is gone there, nothing here tells whether its row has come over already.
    return (
        "NOT EXISTS (SELECT 1 FROM main.injection m WHERE m.lesson = injection.lesson "
        "AND m.session = injection.session AND m.at = injection.at AND m.hook = injection.hook)"
    )


def _no_such_feedback() -> str:
    return (
        "NOT EXISTS (SELECT 1 FROM main.feedback m WHERE m.lesson = feedback.lesson "
        "AND m.verdict = feedback.verdict AND m.at = feedback.at)"
    )


def _no_such_call() -> str:
    return "NOT EXISTS (SELECT 1 FROM main.call m WHERE m.log = call.log AND m.n = call.n)"


def _no_such_fix() -> str:
    return (
        "NOT EXISTS (SELECT 1 FROM main.fix m WHERE m.fingerprint = fix.fingerprint "
        "AND m.at = fix.at AND m.session = fix.session)"
    )
