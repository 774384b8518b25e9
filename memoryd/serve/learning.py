"""Learn from what the index reads: each record once, under the label that the index gave it.

In: an open `lessons.sqlite3`, records as they were read and committed (`Told`), now and then a look at how far
the index is. Out: calls, lessons, fixes, outcomes, each batch with its progress in one transaction. One thread
runs everything here but `hear` and `look`.

A log has a name: its key, and once its file was replaced by another, the key and a number. What was missed (a
kill, a full queue, a database that is new) is read again from the log, up to where the index is. When a session
comes to rest is told by times that stand in its log, so that a backlog and a live session come to the same.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain

import apsw
import structlog

from memoryd import db
from memoryd.errors import MemorydError
from memoryd.index import Known, Settings
from memoryd.index.forgetting import Erased
from memoryd.index.heard import Told
from memoryd.index.retelling import again
from memoryd.index.table import LIVE
from memoryd.labels import Label
from memoryd.lessons import forget as forgetting
from memoryd.lessons import raising, retention, settlement, store, words
from memoryd.lessons.pairing import Gathering, Pairing
from memoryd.lessons.passage import clean
from memoryd.serve import naming
from memoryd.serve.naming import Place
from memoryd.serve.quiet import Quiet
from memoryd.serve.together import Lesson, rest

MOST_HELD = 50_000
"""Records that wait to be learned from; more are dropped, and read again when there is time."""
_MOST_AT_ONCE, TOGETHER = 100, 4_000
"""Records in one transaction: some 50 ms, for which whoever wants to write may have to wait."""

log = structlog.get_logger()
Snapshot = dict[int, Known]


class Learner:
    """What is learned, and how far, in one database."""

    def __init__(
        self,
        settings: Settings,
        connection: apsw.Connection,
        logs: Callable[[], Snapshot],
        *,
        idle_after_s: float = 900,
    ) -> None:
        """Go on where `connection` says that learning stopped. `logs`: what the index knows, from any thread."""
        self._logs = logs
        self.settings, self.connection = settings, connection
        self.idle_after = int(idle_after_s * 1_000)
        self.held = self._alone = 0
        self._more = False
        self._queue: deque[Told | Snapshot] = deque()
        self._now: Iterator[Told] = iter(())
        self._places = naming.read(connection)
        self._lesson = Lesson(connection)
        self.quiet = Quiet(connection, self.idle_after)
        """Who may come to rest; to be told where others write into the database."""
        self._stumbled: set[int] = set()
        self._whole: Snapshot | None = None
        self._looked = self._missed = False
        self._newest = int(connection.execute("SELECT coalesce(max(row), 0) FROM lesson").get)
        self._twice: dict[str, Pairing] = {}

    def hear(self, told: list[Told]) -> None:
        """Take over what was read; safe from the thread that reads."""
        for one in told:
            self._more = True
            if self.held < MOST_HELD:
                self.held += one.size
                self._queue.append(one)
            self._missed |= self.held >= MOST_HELD

    def look(self, known: Snapshot, *, all_read: bool = False) -> None:
        """See, once all that was heard is learned from, that nothing up to `known` was missed.

        `all_read`: every log that there is stands in `known`; what is not there has gone.
        """
        self._queue.append(known)
        self._whole = known if all_read else self._whole
        self._more, self._missed = True, False

    @property
    def busy(self) -> bool:
        """Say whether `step` has something to do."""
        return self._more or bool(self._queue)

    def progress(self, key: int) -> int:
        """Return how many records of a log are learned from."""
        return place.n if (place := self._places.get(key)) is not None else 0

    def step(self) -> bool:
        """Learn from a batch and from some that wait behind it, in one transaction; say whether there is more.

        Raises: what `db.wrong` knows, with everything taken back; the next look finds what was missed.
        """
        told = self._take()
        more = told is not None and self._together(told)
        if not more and self._missed and not self._queue:
            self.look(self._logs())
        self._more = more or bool(self._queue)
        return self._more

    def due(self, now: int) -> float | None:
        """Let sessions that have been quiet for long come to rest; return the seconds until the next may."""
        if not self._looked:
            return None  # when a session's log was written last is not known before the first look
        self.quiet.touched(self._lesson.news)
        ripe = self.quiet.ripe(now, _MOST_AT_ONCE)
        left = self.quiet.due()
        done = left is None or left > now  # none goes before it has come to rest
        if ripe or (done and retention.due(self.connection, now)):
            try:
                with db.unsynced(self.connection):
                    rests = [(session, last + self.idle_after) for session, last in ripe]
                    settlement.rest_many(self.connection, rests)
                    if done:
                        retention.expire(self.connection, now)
            except BaseException:
                self.quiet.unsure()
                raise
        return None if left is None else max(0, left - now) / 1_000

    def news(self) -> list[tuple[str, str, str, Label]]:
        """Return the lessons that are new since the last call: id, type, project, label."""
        found = list(
            self.connection.execute(
                "SELECT row, id, type, project, level, untrusted FROM lesson WHERE row > ? ORDER BY row",
                (self._newest,),
            )
        )
        self._newest = max([self._newest, *(int(one[0]) for one in found)])
        return [
            (str(name), str(kind), str(project), Label(int(level), bool(untrusted)))
            for _, name, kind, project, level, untrusted in found
        ]

    def rest(self, session: str, now: int, *, ended: bool) -> None:
        """Let a session come to rest because somebody says so."""
        with db.transaction(self.connection):
            rest(self.connection, session, now, ended=ended)

    def forget(self, erased: Erased, *, dry: bool) -> dict[str, int]:
        """Delete what was learned from records that are forgotten, or (`dry`) count it; return how many went.

        What is heard of these logs and not learned yet is dropped: the next look reads it under the new entries.
        """
        keys = {self.settings.ids.log_key(*gone.place): gone for gone in erased.logs}
        counts = {"lessons": 0}
        home = None if dry else self.settings.home
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            for key, gone in keys.items():
                covers = None if gone.whole else gone.covers
                whose = clean(gone.session)
                done = forgetting.gone(
                    self.connection, f"{key:012x}", covers, home=home, session=whose
                )
                counts["lessons"] += done["lessons"]
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("ROLLBACK" if dry else "COMMIT")
        if not dry:
            queued = [one for one in self._queue if isinstance(one, dict) or one.key not in keys]
            self._queue.clear()
            self._queue.extend(queued)
            self.held = sum(one.size for one in queued if isinstance(one, Told))
            self._forget()
            self._clean()
        return counts

    def _clean(self) -> None:
        """Leave no word of what was deleted in the log of the database, in its old copies, or in drafts."""
        home = self.settings.home
        for path in (*home.glob(f"{store.NAME}.before-*"), *home.glob("proposals/*.md")):
            path.unlink(missing_ok=True)
        with suppress(apsw.BusyError, db.NoRoom):
            db.write_anew(self.connection)
        with suppress(apsw.BusyError):
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _next(self, given: Told | Snapshot) -> Told | None:
        """Return what to learn from now; where records before it are missing, those first."""
        if isinstance(given, dict):
            self._looked = True
            if given is self._whole:
                naming.let_go(self.connection, self._places, given)
            for one in given.values():
                self.quiet.written(one.session, one.seen.mtime_ns // 1_000_000)
            self._now = chain.from_iterable(
                self._again(key, known) for key, known in given.items() if self._behind(key, known)
            )
            return next(self._now, None)
        self.held -= given.size
        place = self._places.get(given.key)
        done = 0 if place is None else place.n
        if given.anew or given.excluded or given.first == done:
            return given
        if place is not None and given.first < done and self._stands(place, given):
            return given
        there = self._logs().get(given.key)
        if there is None:
            return None
        self._now = chain(self._again(given.key, there), (given,))
        return next(self._now, None)

    def _stands(self, place: Place, told: Told) -> bool:
        """Say whether a batch that was learned from before is still what it was."""
        last = self._last_call(place)
        return last is None or naming.stands(last, told)

    def _last_call(self, place: Place) -> naming.LastCall | None:
        """Return the last call of a log that is learned from; those that were taken are learned from first."""
        self._lesson.end()
        return naming.last_call(self.connection, place.name)

    def _behind(self, key: int, known: Known) -> bool:
        return known.state == LIVE and known.records != self.progress(key)

    def _again(self, key: int, known: Known) -> Iterator[Told]:
        """Yield what a log holds from its first record; nothing where it cannot be read."""
        place = self._places.get(key)
        last = None if place is None else self._last_call(place)
        anew = place is not None and known.records < place.n
        try:
            for told in again(self.settings, key, known):
                if not anew and last is not None and not naming.stands(last, told):
                    yield from map(naming.anew, again(self.settings, key, known))
                    return
                yield naming.anew(told) if anew else told
        except OSError as error:
            log.warning("a log cannot be read again for its lessons", errno=error.errno)

    def _take(self) -> Told | None:
        """Return what to learn from next."""
        told = next(self._now, None)
        return self._next(self._queue.popleft()) if told is None and self._queue else told

    def _together(self, told: Told | None) -> bool:
        """Learn from `told` and what waits behind it, and say whether that may not be all.

        Far behind, a commit a batch costs as much as its rows.

        All of it can be read again, so no commit waits for the disk.
        """
        taken: list[Told] = []
        size, more = 0, False
        try:
            with db.unsynced(self.connection):
                while told is not None:
                    taken.append(told)
                    if told.key not in self._stumbled:
                        self._learn(told)
                    size += told.size
                    more = self._alone > 0 or size >= TOGETHER
                    told = None if more else self._take()
                self._lesson.save()
                words.write_missing(self.connection)
        except MemorydError:
            self._forget()
            raise
        except Exception:
            # One log that trips us up must not keep us from learning from the others.
            log.exception("a fault while learning from a log")
            self._forget()
            self._stumble(taken)
            more = True
        self._alone = max(0, self._alone - 1)
        return more

    def _stumble(self, taken: list[Told]) -> None:
        """Leave the log out that tripped us up; where it may be one of several, take them one by one first."""
        if len(taken) == 1:
            self._stumbled.add(taken[0].key)
            return
        self._queue.extendleft(reversed(taken))
        self.held += sum(one.size for one in taken)
        self._alone = len(taken) + 1

    def _learn(self, told: Told) -> None:
        """Learn from one batch; in the transaction of its progress."""
        known = self._places.get(told.key)
        if told.excluded:
            self._lesson.end()
            naming.forget(self.connection, told.key, self.settings.home)
        if known is None or told.anew:
            self._lesson.end_before(
                told
            )  # by its calls a log is known again that was another, or elsewhere
        place = naming.place(self.connection, told, known, self._logs)
        if not told.excluded:
            pairing = self._lesson.pairing(place.name, new=known is None and not place.n)
            self._feed(told, place, pairing)
            place = Place(place.name, max(place.n, told.end))
            self._lesson.done(place.name, place.n)
        self._places[told.key] = place

    def _forget(self) -> None:
        """Forget what was rolled back."""
        self._lesson = Lesson(self.connection)
        self._twice.clear()
        self._now = iter(())
        self._places = naming.read(self.connection)
        self.quiet.unsure()

    def _feed(self, told: Told, place: Place, pairing: Pairing) -> None:
        """Hear each call that the batch answers, and let the session rest where it does."""
        if told.first < place.n:
            self._lesson.end()
            self._raise(told, place)
        for passage in told.heard:
            new = passage.between(place.n, told.end) if told.first < place.n else passage
            self._lesson.add(pairing, new, told.written, self.idle_after)
        self.quiet.written(pairing.session, told.written)

    def _raise(self, told: Told, place: Place) -> None:
        """Raise what is known of a log's calls to the labels that a second reading gives them."""
        if told.first == 0:
            self._twice.pop(place.name, None)
        pairing = self._twice.setdefault(place.name, Pairing(place.name, place.name))
        together, above = Gathering(), None
        for passage in told.heard:
            if (above := passage.above) is not None and above < place.n:
                pairing.gather(together, passage.between(0, above))
                break
            pairing.gather(together, passage.between(0, place.n))
            above = None
        raising.to(self.connection, place.name, together.seen())
        if above is not None:
            # All that follows is above `max_class` as well, and so is the answer to each open call.
            opened = {(one.n, one.block) for one in pairing.waiting.values()}
            covers = partial(_above, above, frozenset(opened))
            home = self.settings.home
            forgetting.gone(self.connection, place.name[:12], covers, home=home)
        if told.end >= place.n:
            self._twice.pop(place.name, None)


def _above(since: int, opened: frozenset[tuple[int, int]], n: int, block: int, at: int) -> bool:
    """Say whether a call, or its result, stands above `max_class` since record `since`."""
    return n >= since or (n, block) in opened
