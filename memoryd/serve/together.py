"""Records of many logs that are learned from together: each thing that can be done once for all is done once.

In: paired records, log by log, and where a session comes to rest between them; an open transaction. Out: calls,
lessons, fixes and outcomes, in that order, and how far each log is learned from. A look for secrets, for telling
words, for what is known costs the same for ten calls and for a thousand, and a history has a few calls a log.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from operator import itemgetter

import apsw

from memoryd.index.heard import Told
from memoryd.lessons import settlement
from memoryd.lessons.observe import Failed, failures, load, save, write
from memoryd.lessons.pairing import Gathering, Pairing, Seen
from memoryd.lessons.passage import Mark, Passage
from memoryd.serve import naming

_MOST_PAIRINGS = 64


class Lesson:
    """What is heard in one transaction, and the logs' open calls, which outlive it."""

    def __init__(self, connection: apsw.Connection) -> None:
        """Start with nothing heard."""
        self._connection = connection
        self._pairings: OrderedDict[str, Pairing] = OrderedDict()
        self._done: dict[str, int] = {}
        self.news: set[str] = set()
        """Sessions that had news; whoever takes them over empties it."""
        self._begin()

    def _begin(self) -> None:
        self._gathered = Gathering()
        self._rests: list[tuple[int, Callable[[], None]]] = []
        self._sessions: set[str] = set()

    def pairing(self, log: str, *, new: bool) -> Pairing:
        """Return the open calls of `log`. `new`: nothing is kept of it."""
        pairing = self._pairings.pop(log, None)
        if pairing is None or new:
            pairing = Pairing(log, log)
            if not new:
                load(self._connection, pairing)
        self._pairings[log] = pairing
        return pairing

    def add(self, pairing: Pairing, passage: Passage, written: int, pause: int) -> None:
        """Take what a log says next, and where its session rests meanwhile.

        `written`: when its file was changed last (ms). `pause`: for how many ms a session may be quiet.
        """
        before, session = self._gathered.answers, passage.session
        answers = pairing.gather(self._gathered, passage, written)
        for mark in passage.marks:
            quiet = mark.rest == "quiet"
            at = before + bisect_left(answers, mark.n + (not quiet), key=itemgetter(1))
            if not quiet:
                now = mark.at or written + mark.n
                act = partial(rest, self._connection, session, now, ended=mark.rest == "end")
                self._rests.append((at, act))
            elif mark.at is not None and self._may_rest(passage, mark, pause):
                act = partial(_rested, self._connection, session, mark.at, pause)
                self._rests.append((at, act))
        self._sessions.add(session)

    def _may_rest(self, passage: Passage, mark: Mark, pause: int) -> bool:
        """Say whether a session may have been quiet for long before a mark; many are not known yet."""
        session = passage.session
        if session in self._sessions or passage.first < mark.n:
            return True
        return mark.at is not None and bool(_quiet(self._connection, session, mark.at, pause))

    def done(self, log: str, n: int) -> None:
        """Take note that the records of `log` before `n` are taken."""
        self._done[log] = n

    def end_before(self, told: Told) -> None:
        """Learn from what was taken where it may tell what the log of `told` was called before.

        How far each log is learned from is stored too: under a name that a log has no more it would stay.
        """
        if told.anew or naming.speaker(told) in self._sessions:
            self.save()

    def end(self) -> None:
        """Learn from what was taken, in its order."""
        seens = self._gathered.seen()
        sessions = {one.passage.session for one in self._gathered.heard if one.answers}
        self.news |= sessions
        found = failures(seens)
        names = self._gathered.pairings
        rests, first = self._rests, 0
        self._begin()
        older = {name: old for name in names if (old := naming.before(name)) is not None}
        for end, act in rests:
            self._write(seens, found, range(first, end), older)
            act()
            first = end
        self._write(seens, found, range(first, len(seens)), older)

    def save(self) -> None:
        """Learn from what was taken, and store how far each log is learned from."""
        self.end()
        save(self._connection, [(self._pairings[log], n) for log, n in self._done.items()])
        self._done.clear()
        while len(self._pairings) > _MOST_PAIRINGS:
            self._pairings.popitem(last=False)

    def _write(
        self, seens: list[Seen], found: dict[int, Failed], places: range, older: dict[str, str]
    ) -> None:
        """Write down some calls; what stands where it stood before its log was rewritten is known."""
        if len(places) == len(seens) and not older:
            write(self._connection, seens, found, later=True)
            return
        new = [
            n
            for n in places
            if (old := older.get(seens[n].log)) is None
            or not naming.known(self._connection, old, seens[n])
        ]
        failed = {at: found[n] for at, n in enumerate(new) if n in found}
        write(self._connection, [seens[n] for n in new], failed, later=True)


def rest(connection: apsw.Connection, session: str, now: int, *, ended: bool) -> None:
    """Settle a session that has had news since it rested last, or that has ended."""
    found = connection.execute(
        "SELECT idle_at IS NULL OR idle_at < last_at, last_at, ended FROM session WHERE id = ?",
        (session,),
    ).get
    if found is not None and (found[0] or (ended and not found[2])):
        settlement.rest(connection, session, max(now, int(found[1])), ended=ended)


def _quiet(connection: apsw.Connection, session: str, now: int, pause: int) -> int | None:
    """Return when a session was heard last (ms), if that is long before `now`."""
    found = connection.execute("SELECT last_at FROM session WHERE id = ?", (session,)).get
    return None if found is None or now - int(found) <= pause else int(found)


def _rested(connection: apsw.Connection, session: str, now: int, pause: int) -> None:
    if (last := _quiet(connection, session, now, pause)) is not None:
        rest(connection, session, last + pause, ended=False)
