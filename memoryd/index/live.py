"""The index of one state folder: kept up to date, told of, replaced whole.

In: the settings, hints, a rebuilt file. Out: rows, figures for `status`, a new generation. One thread calls
everything here, the writer's; `changed`, `status`, `label_of` and `Index.generation` are safe from any.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path

import apsw

from memoryd import db
from memoryd.clock import monotonic
from memoryd.errors import Behind, Conflict, DiskFull, IOFailed, MemorydError, NotFound, Unavailable
from memoryd.index import deciding, forgetting, opening, purging, room, schema, swap
from memoryd.index.catalogue import Known
from memoryd.index.choosing import Wanted
from memoryd.index.deciding import Relabelled, Wish
from memoryd.index.explaining import Explained
from memoryd.index.following import Following, reason_of
from memoryd.index.forgetting import Forgotten, Hook
from memoryd.index.fresh import Fresh, fresh
from memoryd.index.heard import Told
from memoryd.index.process import Built
from memoryd.index.rows import Counts
from memoryd.index.salvage import hold_rewritten
from memoryd.index.settings import Settings
from memoryd.index.standing import Status, lacks
from memoryd.index.swap import Gate
from memoryd.index.writer import Budget
from memoryd.labels import LOWEST, Label

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
_ROUNDS = 20


class Index:
    """An index open for writing, or the reason (`why`) why it must be rebuilt first."""

    def __init__(self, settings: Settings) -> None:
        """Open the index of `settings.home`, making an empty one where there is none.

        The caller holds the lock of the state folder. Raises: ConfigError, and what `db.wrong` knows.
        """
        self.settings = settings
        self.listened = False
        """Set to be told what is read (`take_told`)."""
        self.why = ""
        self._following: Following | None = None
        self._fault: MemorydError | None = None
        self._wait = self._retry_at = 0.0
        self._unswept = self._stale = False
        # After such a look it is not known what waits; after such a write FTS5 may keep what was taken back.
        swap.sweep(settings.path)
        self._open()

    @property
    def ready(self) -> bool:
        """Say whether there is an index that may be served."""
        return self._following is not None

    @property
    def generation(self) -> str:
        """Return the name of the content that is served; "" where there is none."""
        return "" if self._following is None else self._following.meta.generation

    @property
    def fault(self) -> str:
        """Return the code of what the last try to write met; "" when it went well."""
        return "" if self._fault is None else self._fault.code

    def mark(self) -> int:
        """Return the number of the next row, for `fresh`; 0 where there is no index."""
        return 0 if self._following is None else self._following.writer.rows.mark()

    def fresh(self, since: int) -> list[Fresh]:
        """Return what came in from row `since` on, notes aside; nothing where it cannot be read."""
        if self._following is None or since == self.mark():
            return []
        settings = self.settings
        try:
            return fresh(self._following.connection, settings.ids, len(settings.classes), since)
        except apsw.Error:
            return []  # what is wrong with the file, the next turn meets and tells

    def changed(self, paths: Iterable[Path]) -> None:
        """Take the hint that these files may have changed."""
        if self._following is not None:
            self._following.changed(paths)

    def catch_up(self, budget: Budget | None = None) -> tuple[Counts, bool]:
        """Read what has changed, as far as the budget goes, in one transaction.

        Returns what it came to, and whether to call again at once. A full, failing or busy disk takes
        everything back, a nearly full one lets nothing begin, and neither raises anything: `wait` says when to
        try again, `status` what it was.
        """
        if self._following is None or self.wait() != 0.0:
            return Counts(), False
        if self._unswept:
            self.sweep()
        if self._unswept or self._following is None:
            return Counts(), False
        try:
            self._check_file()
            self._take_retold(self._following)
            self._following.writer.listened = self.listened
            scarce = room.lacking(self.settings.path.parent)
            counts = Counts() if scarce else self._following.catch_up(budget or Budget())
            self._following.purge()
            if scarce:
                raise scarce
        except MemorydError as error:
            self._failed(error)
            return Counts(), False
        self._fault, self._wait = None, 0.0
        return counts, self._following.wait() == 0.0 and self.wait() == 0.0

    def take_told(self) -> list[Told]:
        """Take what was read and committed since the last call, in order."""
        if self._following is None:
            return []
        self._take_retold(self._following)
        told, self._following.told = self._following.told, []
        return told

    def _take_retold(self, following: Following) -> None:
        """Take over logs that were folded again: their calls may have other labels now."""
        following.told += following.writer.retold
        following.writer.retold = []

    def wait(self) -> float | None:
        """Return the seconds until `catch_up` has something to do; None: not before a hint or a sweep."""
        if self._following is None:
            return None
        again = 0.0 if self._unswept else None
        dues = (again, self._following.wait(), self._following.purge_in())
        due = min((due for due in dues if due is not None), default=None)
        return None if due is None else max(due, self._retry_at - monotonic(), 0.0)

    def forget(
        self, wanted: Wanted, *, dry: bool, delete_logs: bool = False, hooks: Sequence[Hook] = ()
    ) -> Forgotten:
        """Forget what is meant, or (`dry`) tell what that comes to; `purging` until no byte is left.

        Raises: Unavailable, BadRequest, NotFound, IOFailed and what else `db.wrong` knows.
        """
        with _told_of_disk("what is forgotten cannot be written down"):
            return forgetting.forget(
                self._open_one(), wanted, dry=dry, delete_logs=delete_logs, hooks=hooks
            )

    def remember(self, act: str) -> tuple[int, int]:
        """Take back what `act` forgot; return how many of its logs are there, and how many are not.

        Raises: Unavailable, NotFound, Conflict, IOFailed and what else `db.wrong` knows.
        """
        with _told_of_disk("it cannot be written down"):
            return forgetting.remember(self._open_one(), act)

    def explain(self, log: str) -> Explained:
        """Return why the rows of a log have their labels. Raises: Unavailable, NotFound, BadRequest, IOFailed."""
        with _told_of_disk("the log cannot be read"):
            return deciding.told(self._open_one(), log)

    def relabel(self, log: str, wish: Wish) -> Relabelled:
        """Give rows of a log the owner's own label, for good.

        Raises: Unavailable, NotFound, BadRequest, Conflict, IOFailed and what else `db.wrong` knows.
        """
        with _told_of_disk("it cannot be written down"):
            return deciding.relabel(self._open_one(), log, wish)

    @property
    def purging(self) -> bool:
        """Say whether words of deleted rows may still be in the file."""
        return self._following is not None and self._following.purging

    def purge(self) -> None:
        """Have the words of all rows that were deleted so far taken out of the file."""
        if self._following is not None:
            self._following.want_purge()

    def _open_one(self) -> Following:
        self._check_file()
        if self._following is None:
            raise Unavailable("there is no index yet", remedy="`bxctl status` shows how far it is")
        return self._following

    def sweep(self) -> None:
        """Hold the folders against the index; `catch_up` then reads what was found.

        Raises nothing for a full, failing or busy disk, as `catch_up`.
        """
        if self._following is None:
            return
        self._unswept = True
        try:
            self._check_file()
            self._check_content()
            room.check(self.settings.path.parent)
            self._following.sweep()
            with db.translated():
                self._following.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._unswept = False
        except MemorydError as error:
            self._failed(error)

    def label_of(self, log: str, n: int) -> Label:
        """Return the label of the session whose log, a path below its root, has `n` records.

        Raises: NotFound for a log that is not known, Behind while it is not read so far.
        """
        found = [] if self._following is None else self._following.catalogue.named(log)
        if not found:
            raise NotFound("no such log", remedy="name it by its path below its folder of logs")
        if all(known.records < n for known in found):
            raise Behind("that log is not read so far yet", remedy="ask again in a moment")
        return reduce(Label.join, (known.label for known in found), LOWEST)

    def logs(self) -> list[Known]:
        """Return what is known of every log, in no order."""
        return [] if self._following is None else list(self._following.catalogue.known.values())

    def known(self) -> dict[int, Known]:
        """Return what is known of every log, by key."""
        return {} if self._following is None else dict(self._following.catalogue.known)

    def named(self, log: str) -> list[tuple[int, Known]]:
        """Return the logs at this path below any root, each with its key. Safe from any thread."""
        return [] if self._following is None else sorted(self._following.catalogue.keyed(log))

    def status(self) -> Status:
        """Return what the owner is told."""
        fault, following = self.fault, self._following
        if following is None:
            return Status(False, self.why, "", fault)
        faults = list(following.pending.faults.values())
        return Status(
            True,
            "",
            following.meta.generation,
            self.fault,
            following.catalogue.sums(),
            *following.lag(),
            {fault.file.log: fault.reason for fault in faults}
            | dict.fromkeys(following.unusable, "not whole"),
            list(following.missing),
            # Whoever can make a file in a folder of logs chooses its name; the wire carries UTF-8.
            {
                os.fsencode(one.path).decode(errors="backslashreplace"): one.reason
                for one in following.skipped
            },
            following.pending.held,
            following.writer.floors.unreadable,
            following.purging,
            swap.wal_bytes(self.settings.path),
            following.read_bytes,
            following.catalogue.gone(),
        )

    def publish(self, built: Built, gate: Gate, *, force: bool = False) -> None:
        """Put a rebuilt index in the place of this one, so that each reader sees one or the other.

        `force` accepts an index that lacks logs, or more than half of the rows, of the one that it replaces.
        Raises: Conflict when it lacks them, IndexBusy when another process has the old index open, and what
        reading logs and `db.wrong` know. Whatever is raised, the old index is served as before.
        """
        temp = Path(built.temp)
        try:
            with db.translated():
                self._complete(temp, force=force)
                old = None if self._following is None else self._following.connection
                connection = swap.publish(temp, self.settings.path, old, gate)
                self._following = Following(self.settings, connection)
        except BaseException:
            swap.remove(temp)
            self._resume(gate)
            raise
        self._files = opening.files(self.settings.path)
        self.why, self._fault, self._wait, self._retry_at = "", None, 0.0, 0.0
        self.sweep()
        self.catch_up()  # what was written since the last round, so that nothing seems to go back
        gate.open()

    def distrust(self) -> None:
        """Set the index aside: `schema.healthy`, asked from any thread, has found it damaged.

        Its readers must be closed. Nothing is served then until it is rebuilt.
        """
        if self._following is not None:
            self._failed(
                db.Damaged("the daily check found the index damaged", remedy="it is rebuilt")
            )

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        if self._following is not None:
            db.close(self._following.connection)
            self._following = None

    def _open(self) -> None:
        connection, self.why = opening.find(self.settings)
        self._following = None if connection is None else Following(self.settings, connection)
        if self._following is not None:
            deciding.settled(self._following)
        self._files, self._stale = opening.files(self.settings.path), False

    def _check_file(self) -> None:
        """Begin anew where somebody removed our file. Raises: db.Damaged where somebody replaced it."""
        gone = self._stale or not opening.still_there(self.settings.path, self._files)
        if self._following is not None and gone:
            self._open_again()

    def _check_content(self) -> None:
        """See what somebody copied over our file, as only a new connection can. Raises: db.Damaged."""
        if self._following is None:
            return
        connection = db.reader(self.settings.path)
        try:
            generation = schema.read_meta(connection).generation
        finally:
            db.close(connection)
        if generation != self._following.meta.generation:
            raise opening.replaced()

    def _open_again(self) -> None:
        """Take a new connection; where there is none to be had, keep the old one and raise why."""
        old = self._following
        try:
            self._open()
        finally:
            if old is not None and old is not self._following:
                db.close(old.connection)
        if self._following is not None:
            self._following.sweep()

    def _failed(self, error: MemorydError) -> None:
        """Remember what went wrong and wait longer each time; a damaged file is set aside at once."""
        self._fault = error
        self._wait = min(self._wait * 2, _LONGEST_WAIT) if self._wait else _FIRST_WAIT
        self._retry_at = monotonic() + self._wait
        if isinstance(error, db.Damaged):
            self.close()
            swap.set_aside(self.settings.path)
            self.why = opening.DAMAGED
        elif isinstance(error, DiskFull | IOFailed) and error.__cause__ is not None:
            self._stale = True  # before anything is written again, there is a new connection
            with suppress(MemorydError):
                self._check_file()

    def _complete(self, temp: Path, *, force: bool) -> None:
        """Bring a rebuilt file up to what is on the disk now, and refuse it where it lacks what we have."""
        self.sweep()
        if self._following is not None:
            with _told_of_disk("a label cannot be kept"):
                hold_rewritten(self._following.connection, self.settings, self._following.waiting())
        connection = db.builder(temp, journal="MEMORY")
        try:
            new = Following(self.settings, connection)
            for _ in range(_ROUNDS):
                new.sweep()
                read = Counts()
                while new.wait() == 0.0:
                    read = read.plus(new.catch_up(Budget()))
                if not read.records:
                    break
            if purging.bits(connection, purging.RESIDUE):
                purging.finish(connection)
            lacking = "" if force or self._following is None else lacks(self._following, new)
        finally:
            connection.close()
        if lacking:
            swap.reject(temp, self.settings.path)
            raise Conflict(
                lacking, remedy="see what is missing; `bxctl reindex --offline --force` accepts it"
            )

    def _resume(self, gate: Gate) -> None:
        """Serve the old index again after a publication that failed."""
        if self._following is None:
            return
        self._open_again()
        if self._following is not None:
            gate.open()


@contextmanager
def _told_of_disk(what: str) -> Iterator[None]:
    """Let an error of the file system leave as one of memoryd."""
    try:
        yield
    except OSError as error:
        raise IOFailed(
            f"{what} ({reason_of(error)})", remedy="mend the disk, then try again"
        ) from error
