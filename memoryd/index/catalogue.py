"""The table of logs as it is kept in memory, so that a sweep over thousands of files asks no database.

In: rows of `log` at the start, then each one that a committed transaction changed. Out: what is known of a
log, by its key or by its name, and the sums that `status` shows.
"""

from collections.abc import Iterable, Iterator

from memoryd.index.identity import Seen
from memoryd.index.naming import Keys
from memoryd.index.sums import Folder, Sums
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
        self._sums: dict[Folder, Sums] = {}
        self._gone: set[int] = set()
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
        else:
            self._sums[before.place[:2]].add(before, -1)
            if before.seen.ino != known.seen.ino:
                self._by_inode.discard(before.seen.ino, key)
        self._by_inode.add(known.seen.ino, key)
        self._sums.setdefault(known.place[:2], Sums()).add(known)
        (self._gone.add if known.state == GONE else self._gone.discard)(key)
        self.known[key] = known

    def drop(self, key: int) -> None:
        """Forget a log that is no longer in the index."""
        known = self.known.pop(key, None)
        if known is not None:
            self._by_name.discard(known.place.log, key)
            self._by_inode.discard(known.seen.ino, key)
            self._sums[known.place[:2]].add(known, -1)
            self._gone.discard(key)

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

    def sums(self) -> dict[Folder, Sums]:
        """Return what the logs of each folder and format come to. Safe from any thread."""
        return {folder: sums for folder, sums in list(self._sums.items()) if sums.logs}

    def gone(self) -> list[Known]:
        """Return the logs that are kept without their files. Safe from any thread."""
        return [known for key in list(self._gone) if (known := self.known.get(key)) is not None]
