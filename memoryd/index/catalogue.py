"""The table of logs as it is kept in memory, so that a sweep over thousands of files asks no database.

In: rows of `log` at the start, then each one that a committed transaction changed. Out: what is known of a
log, by its key or by its name, and the sums that `status` shows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from memoryd.index.identity import Seen
from memoryd.index.naming import Keys
from memoryd.index.table import GONE, LIVE, Known, Log
from memoryd.labels import Label

__all__ = ["Catalogue", "Known", "Sums"]


class Catalogue:
    """Every log of an index, by key. Written by one thread; single look-ups are safe from any."""

    def __init__(self, found: Iterable[tuple[int, Known]]) -> None:
        """Remember the logs of an index that was just opened (`table.known`)."""
        self.known: dict[int, Known] = {}
        self._by_name = Keys[str]()
        self._by_inode = Keys[int]()
        self._labels: dict[Label, Label] = {}  # few, and their logs many
        self._projects: dict[str, str] = {}
        for key, known in found:
            self._take(key, known)

    def put(self, log: Log) -> None:
        """Remember a log as a committed transaction left it."""
        at = log.position
        label, floor = map(self._labels.setdefault, (log.label, log.floor), (log.label, log.floor))
        project = log.project and self._projects.setdefault(log.project, log.project)
        self._take(log.key, Known(
            log.id, log.place, log.session, project, log.state, at.offset, at.records, label,
            floor, log.seen, log.indexed, log.left_out, log.unreadable, log.why, log.last_ts,
            log.first_ts, log.forgot, log.heard, log.decided,
        ))  # fmt: skip

    def _take(self, key: int, known: Known) -> None:
        before = self.known.get(key)
        if before is None:
            self._by_name.add(known.place.log, key)
        elif before.seen.ino != known.seen.ino:
            self._by_inode.discard(before.seen.ino, key)
        self._by_inode.add(known.seen.ino, key)
        self.known[key] = known

    def drop(self, key: int) -> None:
        """Forget a log that is no longer in the index."""
        known = self.known.pop(key, None)
        if known is not None:
            self._by_name.discard(known.place.log, key)
            self._by_inode.discard(known.seen.ino, key)

    def named(self, log: str) -> list[Known]:
        """Return the logs at this path below any root."""
        return [known for _, known in self.keyed(log)]

    def keyed(self, log: str) -> list[tuple[int, Known]]:
        """Return the same, each with its key."""
        keys = self._by_name.get(log)
        return [(key, known) for key in keys if (known := self.known.get(key))]

    def holds(self, seen: Seen) -> bool:
        """Say whether a file was read under another name; asked for names that are new only."""
        found = (self.known.get(key) for key in self._by_inode.get(seen.ino))
        return any(
            one is not None and one.state == LIVE and one.seen.dev == seen.dev for one in found
        )

    def live(self) -> Iterator[tuple[int, Known]]:
        """Yield the logs whose files are there, by key."""
        return ((key, known) for key, known in list(self.known.items()) if known.state == LIVE)

    def sums(self) -> "Sums":
        """Return what all logs come to."""
        sums = Sums()
        for known in list(self.known.values()):
            sums.logs += 1
            sums.gone += known.state == GONE
            sums.records += known.records
            sums.indexed += known.indexed
            sums.left_out += known.left_out
            sums.unreadable += known.unreadable
            if known.left_out:
                sums.why[known.why or "its first record"] += known.left_out
        return sums


class Sums(msgspec.Struct):
    """Totals over all logs; `why` counts rows left out by what first raised their logs."""

    logs: int = 0
    gone: int = 0
    records: int = 0
    indexed: int = 0
    left_out: int = 0
    unreadable: int = 0
    why: Counter[str] = msgspec.field(default_factory=Counter)
