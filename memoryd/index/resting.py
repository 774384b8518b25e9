"""Which of the sessions that are folders of small files a sweep need not look through file by file.

In: a log, what is known of it, and what a glance at it tells. Out: whether it may be passed over this time. A session
whose last change is a day old is rarely taken up again, and if it is, its first new message changes what a glance
sees. What could change without that (a file of an old message, written again in place) is told by the watcher at
once, and else found within `ROUNDS` sweeps, in which each such session has its turn.
"""

from memoryd.clock import now_ms
from memoryd.index.catalogue import Known
from memoryd.index.table import LIVE
from memoryd.sources import LogFile

REST_MS = 24 * 3600 * 1000
ROUNDS = 120
"""Sweeps in which every session is looked through once: hours, where the watcher cannot be trusted."""


class Resting:
    """What a glance told of each session when it was last looked through. One thread."""

    def __init__(self) -> None:
        """Start with nobody known to rest."""
        self._glances: dict[int, tuple[int, ...]] = {}
        self._round = 0

    def next_round(self) -> None:
        """Begin another sweep."""
        self._round += 1

    def rests(self, key: int, file: LogFile, known: Known | None) -> bool:
        """Say whether a log may be passed over; else it counts as looked through now."""
        whole = file.whole
        if whole is None or whole.glance is None:
            return False
        try:
            glance = whole.glance(file.root.path, file.log)
        except OSError:
            self._glances.pop(key, None)
            return False
        old = known is not None and known.state == LIVE and _old(known)
        if old and self._glances.get(key) == glance and (self._round + key) % ROUNDS:
            return True
        self._glances[key] = glance
        return False


def _old(known: Known) -> bool:
    return known.seen.mtime_ns // 1_000_000 < now_ms() - REST_MS
