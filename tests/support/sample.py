"""Every lesson that the logs below a folder teach, in one database, as the daemon would have them after all is read."""

from pathlib import Path
from typing import NamedTuple

from memoryd import db, replay
from memoryd.lessons import settlement, store
from memoryd.lessons.observe import observe
from tests.support.observing import logs_below, seen_in


class Taught(NamedTuple):
    """A lesson: where its failure stands (log and record), its tool, its code or else type, its fix, its text."""

    type: str
    log: str
    record: int
    tool: str
    code: str
    untrusted: bool
    fix: str
    content: str


def lessons_of(folder: Path, home: Path) -> list[Taught]:
    rules, connection = replay.default_rules(home), store.memory()
    for log in logs_below(folder):
        last: dict[str, int] = {}
        for seen in seen_in(log, rules):
            with db.transaction(connection):
                observe(connection, seen)
            last[seen.session] = max(seen.at, last.get(seen.session, 0))
        for session, at in last.items():
            settlement.idle(connection, session, at, ended=True)
    found = connection.execute(
        "SELECT l.type, coalesce(l.call, o.call), l.tool, coalesce(l.code, l.error_type, o.code, o.error_type), "
        "l.untrusted, l.fix_args, l.content FROM lesson l LEFT JOIN lesson o ON l.type = 'pattern' "
        "AND o.type = 'error' AND o.fingerprint = l.fingerprint AND o.project = l.project "
        "ORDER BY l.type, 2, l.untrusted"
    )
    taught = []
    for kind, call, tool, code, untrusted, fix, content in found:
        log, record, _ = str(call).split("\0")
        taught.append(
            Taught(kind, log, int(record), tool, code, bool(untrusted), fix or "", content)
        )
    return taught
