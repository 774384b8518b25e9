"""A kept log of a vanished file, indexed again: its rows under today's rules, less what is forgotten.

In: a file of `vanished`, an index's writer. Out: rows and the row of its log, in the caller's transaction.
"""

from pathlib import Path

from memoryd.index import kept_kin, table, vanished
from memoryd.index.judging import Judge
from memoryd.index.rows import Source
from memoryd.index.settings import Settings
from memoryd.index.table import Log
from memoryd.index.writer import Writer, excluded
from memoryd.labels import Label
from memoryd.records import KIND_WORDS
from memoryd.sources import discover


def index_kept(writer: Writer, path: Path) -> Log | None:
    """Index a kept log again, under today's rules; None where it is in no source any more.

    Raises: OSError, vanished.Unusable, apsw.Error.
    """
    settings = writer.settings
    about = vanished.head(path)
    if unwanted(settings, about.root, about.log, about.project):
        return None
    log = vanished.log_of(about, settings, table.next_number(writer.connection))
    tomb = writer.tombs.of(log.key)
    log.forgot = writer.tombs.mark(log.key)
    judge = Judge(about, settings)
    for kept in vanished.kept(path):
        if kept is None:
            log.unreadable += 1
        elif kept.kind == vanished.RAISED:
            judge.raised(kept)
        elif kept.kind in KIND_WORDS:
            label = judge.row(kept)
            if tomb is None or not tomb.covers(kept.n, kept.block, kept.ts):
                _add_kept(writer, log, kept, label)
    writer.rows.flush()
    log.label = log.peak = judge.label
    judged = None if about.rules == settings.rules.fingerprint else judge.label
    kept_kin.restore(writer.connection, log, about.kin, settings.classes, judged)
    table.store(writer.connection, log)
    writer.kin.put(log)
    return log


def _add_kept(writer: Writer, log: Log, kept: vanished.Kept, label: Label) -> None:
    if label.level > writer.settings.max_level:
        log.left_out += 1
        return
    log.indexed += 1
    kind = KIND_WORDS[kept.kind]
    source = Source(log.id, kept.n, kept.block, kind, kept.ts, kept.tool)
    writer.rows.add(source, label, kept.text or "")


def unwanted(settings: Settings, folder: str, log: str, project: str | None) -> bool:
    """Say whether the owner wants no such log read now; what is kept of it stays, unread."""
    for root in settings.roots:
        if str(root.path) == folder:
            return discover.excluded(root, log) or excluded(root.exclude, project)
    return True
