"""How an index stands: what its owner is told of it, and whether a new one may take its place.

In: two indexes that follow their logs. Out: what the new one lacks; `Status`, a value.
"""

import msgspec

from memoryd.index.following import Following
from memoryd.index.sums import Folder, Sums, total
from memoryd.index.table import Known


class Status(msgspec.Struct, frozen=True):
    """What the owner is told.

    `why`: why there is nothing to serve. `fault`: the code of what the last try to write met. `lag_*`: what
    is not read yet; `held`: how many logs of it wait for the logs that they start from. `faults`: logs that
    cannot be read, with the system's word. `missing`: folders that are configured and not there. `skipped`:
    paths of what looks like a log and is not read, with the reason. `purging`: words of deleted rows are
    still being taken out of the file. `wal_bytes`: what the write-ahead log takes. `read_bytes`: how much was
    read since the index was opened. `folders`: what the logs of each come to; `gone`: those without their files.
    """

    ready: bool
    why: str
    generation: str
    fault: str = ""
    folders: dict[Folder, Sums] = {}
    lag_logs: int = 0
    lag_bytes: int = 0
    faults: dict[str, str] = {}
    missing: list[str] = []
    skipped: dict[str, str] = {}
    held: int = 0
    overrides_unreadable: int = 0
    purging: bool = False
    wal_bytes: int = 0
    read_bytes: int = 0
    gone: list[Known] = []

    @property
    def sums(self) -> Sums:
        """Return what all logs come to."""
        return total(self.folders)


def lacks(old: Following, new: Following) -> str:
    """Say what a new index lacks of the old one: logs that it could not read, or half of the rows; or ""."""
    before, after = old.catalogue.known, new.catalogue.known
    unread = [
        known
        for key, known in before.items()
        if known.indexed and key not in after and key not in old.pending.faults
    ]
    if unread:
        return f"the new index lacks {len(unread)} logs that cannot be read now"
    both = [(before[key].indexed, after[key].indexed) for key in before if key in after]
    had, has = sum(rows for rows, _ in both), sum(rows for _, rows in both)
    if has * 2 < had:
        return f"the new index has {has} rows of the same logs, the old one {had}"
    return ""
