"""An open index that follows its logs: hints and sweeps in, committed rows out.

In: a connection, the settings, hints that files have changed. Out: rows, one transaction a call, and the
catalogue of logs as the last commit left it. One thread writes; `changed` may be called from any.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from errno import errorcode
from pathlib import Path

import apsw

from memoryd import db
from memoryd.clock import monotonic
from memoryd.errors import Busy, IOFailed
from memoryd.index import identity, purging, schema, sweeping, table, vanished
from memoryd.index.catalogue import Catalogue
from memoryd.index.copies import entomb
from memoryd.index.heard import Told
from memoryd.index.notes import NoteRows, index_notes
from memoryd.index.pending import FIRST_WAIT, SOON, Pending
from memoryd.index.relating import finder, settle
from memoryd.index.resting import Resting
from memoryd.index.rows import Counts
from memoryd.index.settings import Settings
from memoryd.index.table import Log
from memoryd.index.writer import Budget, Turn, TurnFailed, Waiting, Writer, index_log
from memoryd.points import reached
from memoryd.sources import ADAPTERS, LogFile, discover
from memoryd.sources.whole import NotNow

PURGE_AGAIN_S, ROOM_AGAIN_S = 0.5, 60.0
"""How long after a reader stood in its way the write-ahead log is tried to be emptied again."""
_MOST_HINTS = 65_536
_DISK = "mend the disk; it is tried again"
_Done = tuple[int, LogFile, Turn, bool]


class Following:
    """The logs of one open database. Keeps no lock and no file open between calls."""

    def __init__(self, settings: Settings, connection: apsw.Connection) -> None:
        """Read what the index knows of its logs. Raises: what `db.wrong` knows."""
        self.settings = settings
        self.connection = connection
        self.meta = schema.read_meta(connection)
        with db.translated():
            next_id = schema.next_id(connection, len(settings.classes))
            self.catalogue = Catalogue(table.known(connection))
            self.notes = NoteRows(settings, connection)
            self.purging = purging.bits(connection, purging.PURGE) != 0
            self.writer = Writer(connection, settings, next_id)
            self.writer.known = self.catalogue.known
        self.pending = Pending()
        self._resting = Resting()
        self.missing: list[str] = []
        self.skipped: list[discover.Skipped] = []
        self.unusable: list[str] = []
        self.told: list[Told] = []
        self.read_bytes = 0
        self._merging: set[int] = set()
        self._purge_at = 0.0
        self._sizes: dict[int, int] = {}
        self._just: dict[int, Log] = {}
        self.writer.patience = self._patience
        self._kept = vanished.keys(settings.home)
        self._memory = _told(self.catalogue)
        self.find = finder(settings, self._memory)
        self._hints: deque[Path] = deque(maxlen=_MOST_HINTS)

    def changed(self, paths: Iterable[Path]) -> None:
        """Take the hint that these files may have changed. Safe from any thread."""
        self._hints.extend(paths)

    def wait(self) -> float | None:
        """Return the seconds until a log is due; None: not before a hint or a sweep."""
        if self._hints or self.notes.due:
            return 0.0
        return self.pending.due_in(monotonic())

    def catch_up(self, budget: Budget) -> Counts:
        """Read what is due, as far as the budget goes, in one transaction; return what it came to.

        A log that cannot be read waits and delays no other. Raises: what `db.wrong` knows, with everything
        taken back.
        """
        self._take_hints()
        if self.wait() != 0.0:
            return Counts()
        taken: list[tuple[int, LogFile]] = []
        done: list[_Done] = []
        mark = self.writer.rows.mark()
        self._just.clear()
        try:
            with db.transaction(self.connection):
                notes = index_notes(self.writer, self.notes, budget.seconds)
                self._turns(budget, taken, done)
                self._answerers(budget, taken, done)
                related = self.settle()
        except TurnFailed as failed:
            self._take_back(mark, taken)
            key, reason = self.writer.key_of(failed.file), reason_of(failed.error)
            self.pending.failed(key, failed.file, reason, monotonic())
            return Counts()
        except BaseException:
            self._take_back(mark, taken)
            raise
        reached("catch-up: committed")
        self.notes.take(notes)
        counts = self._committed(done).plus(notes.counts)
        for log in related:
            self.catalogue.put(log)
        return counts

    def settle(self) -> list[Log]:
        """Fold again whoever hears of other logs what is not so any more; in the caller's transaction.

        Raises: IOFailed when it cannot be written down that their copies are forgotten, apsw.Error.
        """
        touched = set(self.writer.touched)
        related = settle(self.writer, self.find)
        try:
            copying = entomb(self.writer, touched | {log.key for log in related})
        except OSError as error:
            raise IOFailed(
                f"what is forgotten cannot be written down ({reason_of(error)})", remedy=_DISK
            ) from error
        return [*related, *copying]

    def want_purge(self) -> None:
        """Have the words of deleted rows taken out, where there are any. Raises: what `db.wrong` knows."""
        with db.translated():
            if purging.bits(self.connection, purging.RESIDUE):
                purging.want(self.connection)
                self.purging = True

    def purge_in(self) -> float | None:
        """Return the seconds until `purge` has something to do; None: nothing is wanted."""
        return max(0.0, self._purge_at - monotonic()) if self.purging else None

    def purge(self) -> None:
        """Do one step of taking out of the file what was deleted; `purging` says whether there is more.

        While a reader looks at an older state the last step waits, and while there is no room to write the file
        anew the one before. Raises: what else `db.wrong` knows.
        """
        if monotonic() < self._purge_at:
            return
        try:
            with db.translated():
                self.purging = purging.bits(self.connection, purging.PURGE) != 0
                if self.purging:
                    self.purging = purging.step(self.connection, self._merging)
        except Busy:
            self._purge_at = monotonic() + PURGE_AGAIN_S
        except db.NoRoom:
            self._purge_at = monotonic() + ROOM_AGAIN_S

    def sweep(self) -> None:
        """Hold the folders against the table: find what no hint told, and what is gone.

        Raises: IOFailed and what else `db.wrong` knows, with nothing changed.
        """
        self.notes.due = True
        there = discover.discover(self.settings.roots, self._memory)
        found = sweeping.look(self.settings, there, self.writer, self.catalogue, self._resting)
        mark = self.writer.rows.mark()
        try:
            with db.transaction(self.connection):
                settled = sweeping.settle(self.settings, self.writer, self.catalogue, found)
                settled.logs += self.settle()
        except OSError as error:
            self.writer.forget(mark)
            raise IOFailed(f"a log cannot be kept ({reason_of(error)})", remedy=_DISK) from error
        except BaseException:
            self.writer.forget(mark)
            raise
        reached("vanished: committed")
        used = {known.place.root for known in self.catalogue.known.values()}
        self.missing = [root for root in found.missing if root in used]
        self.skipped = there.skipped
        self._sizes = {key: found.sizes[key].size for key in found.changed}
        self._take_over(settled)
        with db.translated():
            self.purging = purging.bits(self.connection, purging.PURGE) != 0
        for key, file in found.changed.items():
            self.pending.put(key, file)

    def waiting(self) -> Iterator[tuple[int, LogFile]]:
        """Yield the logs that wait to be read and are known already, by their row ids."""
        for key, file in self.pending.files():
            if (known := self.catalogue.known.get(key)) is not None:
                yield known.id, file

    def lag(self) -> tuple[int, int]:
        """Return how many logs, and about how many bytes of them, are not read yet."""
        known, keys = self.catalogue.known, self.pending.keys()
        read = {key: known[key].offset for key in keys if key in known}
        return len(keys), sum(max(0, self._sizes.get(key, 0) - read.get(key, 0)) for key in keys)

    def _take_hints(self) -> None:
        """Let the logs wait that were named, if they have changed."""
        look = False
        while self._hints:
            path = self._hints.popleft()
            self.notes.due = self.notes.due or self.notes.concerns(path)
            for file in discover.logs_at(path, self.settings.roots, self._memory):
                look = self._take_hint(file) or look
        if look:
            self.sweep()  # rows, floors and what is forgotten go with a log that was renamed

    def _take_hint(self, file: LogFile) -> bool:
        """Let a log wait if it has changed; say whether all folders must be looked at, once for all hints."""
        key = self.writer.key_of(file)
        known = self.catalogue.known.get(key)
        try:
            seen = identity.look(file)
        except OSError:
            return False  # the next sweep tells what became of it
        self._sizes[key] = seen.size
        elsewhere = known is None and self.catalogue.holds(seen)
        replaced = known is not None and sweeping.another_file(seen, known)
        if (elsewhere or replaced) and file.whole is None:
            return True
        if sweeping.must_be_read(self.settings, known, file, seen):
            self.pending.put(key, file)
        return False

    def _turns(self, budget: Budget, taken: list[tuple[int, LogFile]], done: list[_Done]) -> None:
        """Give logs their turns until the budget is used up."""
        began = monotonic()
        while (next_one := self.pending.take(monotonic())) is not None:
            key, file = next_one
            taken.append(next_one)
            try:
                self._turn(key, file, budget, done)
                self.pending.succeeded(key)
            except Waiting:
                self.pending.hold(key, file)
                if self.pending.all_held:
                    break
            except FileNotFoundError:
                self.pending.drop(key)  # the next sweep tells what became of it
            except OSError as error:
                first = SOON if isinstance(error, NotNow) else FIRST_WAIT
                self.pending.failed(key, file, reason_of(error), monotonic(), first)
            if monotonic() - began > budget.seconds:
                break

    def _turn(self, key: int, file: LogFile, budget: Budget, done: list[_Done]) -> bool:
        """Give one log a turn and say whether there is more of it. Raises: what `index_log` does."""
        self.writer.relate()
        known, just = self.catalogue.known.get(key), self._just.get(key)
        number = just.id if just is not None else None if known is None else known.id
        before = 0 if known is None else known.offset
        if just is not None:
            before = just.position.offset
        turn, more = index_log(self.writer, file, number, budget)
        self.read_bytes += max(0, turn.log.position.offset - before)
        done.append((key, file, turn, more))
        self._just[key] = turn.log
        return more

    def _answerers(
        self, budget: Budget, taken: list[tuple[int, LogFile]], done: list[_Done]
    ) -> None:
        """Read the sub-agents' logs that answers in these turns rest on: all that was written before.

        An answer is written after its sub-agent's log, so what is on the disk now is enough.
        """
        self.writer.patience = lambda behind: False
        try:
            for _, file, turn, _ in list(done):
                if not turn.log.kin.answered_since(turn.first_n):
                    continue
                for key, other in self._below(file, turn.log).items():
                    taken.append((key, other))
                    with suppress(OSError):  # its own turn tells of it
                        while self._turn(key, other, budget, done):
                            pass
        finally:
            self.writer.patience = self._patience

    def _below(self, file: LogFile, log: Log) -> dict[int, LogFile]:
        """Return the logs of a log's sub-agents that are not read to their ends."""
        paths = [Path(p.root) / p.log for p in self.writer.kin.below(log)]
        folder = file.adapter.below(file.log)
        if folder is not None:
            with suppress(OSError):
                paths += sorted((file.root.path / folder).rglob("*.jsonl"))
        found: dict[int, LogFile] = {}
        for path in dict.fromkeys(paths):
            other = discover.log_at(path, self.settings.roots, self._memory)
            if other is not None and self._is_behind(key := self.writer.key_of(other), other):
                found[key] = other
        return found

    def _is_behind(self, key: int, file: LogFile) -> bool:
        """Say whether a log's file holds, or held a moment ago, more than was read of it."""
        just, known = self._just.get(key), self.catalogue.known.get(key)
        read = just.seen if just is not None else None if known is None else known.seen
        try:
            return read is None or identity.differs(identity.look(file), read)
        except OSError:
            return False

    def _patience(self, behind: list[int] | None) -> bool:
        """Say whether a log that starts from others shall wait for them."""
        if behind is None:
            return self.pending.patient
        for key in behind:
            member = self.writer.kin.members.get(key)
            file = None if member is None else self.find(member.place)
            if file is not None and self._is_behind(key, file) and self.pending.may_hold:
                if key not in self._just:
                    self.pending.put(key, file)
                return True
        return False

    def _committed(self, done: list[_Done]) -> Counts:
        """Remember what a transaction wrote, now that it is on the disk."""
        counts = Counts()
        for key, file, turn, more in done:
            counts = counts.plus(turn.counts)
            self.catalogue.put(turn.log)
            if (told := turn.told()) is not None:
                self.told.append(told)
            if more:
                self.pending.put(key, file)
            if key in self._kept:
                self._kept.discard(key)
                vanished.path_of(self.settings.home, key).unlink(missing_ok=True)
        return counts

    def _take_back(self, mark: int, taken: list[tuple[int, LogFile]]) -> None:
        """Give every log its turn again whose turn was rolled back."""
        self.writer.forget(mark)
        for key, file in reversed(taken):
            self.pending.first(key, file)

    def _take_over(self, settled: sweeping.Settled) -> None:
        for key in settled.dropped:
            self.catalogue.drop(key)
            self.pending.drop(key)
        for log in settled.logs:
            self.catalogue.put(log)
            if log.state == table.GONE:
                self._kept.add(log.key)
                self.pending.drop(log.key)
        back = [key for key, known in self.catalogue.live() if key in self._kept]
        paths = [vanished.path_of(self.settings.home, key) for key in back]
        for path in (*settled.unlink, *paths):
            path.unlink(missing_ok=True)
        self._kept.difference_update(back)
        self.unusable = settled.unusable


def _told(catalogue: Catalogue) -> discover.Memory:
    """Return the formats that earlier sweeps have told, so that no known log is opened to be told again."""
    return {
        f"{known.place.root}/{known.place.log}": discover.Seen(
            known.seen.dev,
            known.seen.ino,
            known.seen.size,
            known.seen.mtime_ns,
            ADAPTERS[known.place.source],
        )
        for _, known in catalogue.live()
        if known.place.source in ADAPTERS and known.offset
    }


def reason_of(error: Exception) -> str:
    """Return the system's word for what went wrong, such as ``EACCES``; never a path or a text."""
    number = error.errno if isinstance(error, OSError) else None
    return errorcode.get(number or 0, type(error).__name__)
