"""Keeps the lessons: one thread writes their database, and this task decides what that thread does next.

In: what the index reads, requests. Out: lessons that follow the logs, answers. What is asked is read on
connections of its own; what is written waits for the batch that is just being learned from, some 50 ms.
A database that cannot be used (`fault`) keeps nothing else from being served.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import apsw
import structlog
import trio

from memoryd import clock, db
from memoryd.db import Deadline
from memoryd.errors import Internal, MemorydError, Unavailable
from memoryd.index import Known, Settings
from memoryd.index.forgetting import Erased
from memoryd.index.heard import Told
from memoryd.lessons import store
from memoryd.serve.learning import TOGETHER, Learner
from memoryd.serve.topics import Topics

Result = TypeVar("Result")

READERS = 2
AGAIN_S = 30.0
"""How long after a failure learning goes on."""

log = structlog.get_logger()


class Tutor:
    """The keeper of one state folder's lessons; `run` it once."""

    def __init__(
        self,
        settings: Settings,
        logs: Callable[[], dict[int, Known]],
        *,
        idle_after_s: float,
        topics: Topics | None = None,
    ) -> None:
        """Open the database, made or brought up to date first; where that fails `fault` says why."""
        self.settings, self.fault = settings, ""
        self._topics = topics
        self._path = settings.home / store.NAME
        self._logs = logs
        self._slot = trio.CapacityLimiter(1)
        self._limiter = trio.CapacityLimiter(READERS)
        self._readers: list[apsw.Connection] = []
        self.turn = trio.Lock()
        self._wake = trio.Event()
        self._gathers = False
        self._rounds = trio.lowlevel.ParkingLot()
        self._learner: Learner | None = None
        try:
            with db.translated():
                connection = store.opened(self._path)
                self._learner = Learner(settings, connection, logs, idle_after_s=idle_after_s)
        except MemorydError as error:
            self.fault = error.message
            log.warning("lessons are not served", code=error.code, problem=error.message)

    @property
    def served(self) -> bool:
        """Say whether there is a database to learn into and to ask."""
        return self._learner is not None

    async def run(self) -> None:
        """Learn until cancelled."""
        if self._learner is None:
            return
        try:
            while True:
                await self._turn(self._learner)
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._close, self._learner, limiter=self._slot)

    def hear(self, told: list[Told], *, more: bool) -> None:
        """Take over what the index has read and committed; while there is `more`, let it gather.

        A commit costs the same for ten records and for thousands.
        """
        if self._learner is not None:
            self._learner.hear(told)
            self._gathers = more
            if self._learner.busy and not self._waits(self._learner):
                self._wake.set()

    def _waits(self, learner: Learner) -> bool:
        """Say whether what was heard waits for more to come."""
        return self._gathers and learner.held < TOGETHER

    def look(self, *, all_read: bool = False) -> None:
        """See that nothing was missed. `all_read`: the index has read every log that there is."""
        if self._learner is not None:
            self._learner.look(self._logs(), all_read=all_read)
            self._wake.set()

    async def write(self, work: Callable[[apsw.Connection], Result]) -> Result:
        """Run `work`, which keeps its own transactions, as the one thread that writes.

        Raises: Unavailable where there is no database, and what `work` raises.
        """
        learner = self._open()

        def run() -> Result:
            learner.quiet.unsure()
            with db.translated():
                return work(learner.connection)

        return await trio.to_thread.run_sync(run, limiter=self._slot)

    async def read(self, work: Callable[[apsw.Connection], Result], deadline: Deadline) -> Result:
        """Run `work` on a connection that only reads, all of it in one state, until `deadline`.

        Raises: Unavailable where there is no database, and what `work` raises.
        """
        self._open()
        return await trio.to_thread.run_sync(self._read, work, deadline, limiter=self._limiter)

    async def rest(self, session: str, *, ended: bool) -> None:
        """Let a session come to rest now; all that was heard is learned from first."""
        learner = self._open()
        await self.caught_up()
        now = clock.now_ms()
        await trio.to_thread.run_sync(
            lambda: learner.rest(session, now, ended=ended), limiter=self._slot
        )

    def forgot(self, erased: Erased, dry: bool) -> dict[str, int]:
        """Delete what was learned from forgotten records, or count it; in the thread that forgets them.

        Raises: Unavailable while lessons are not served: what is in their file would stay, and be called forgotten.
        """
        learner = self._open()
        return trio.from_thread.run(self.write, lambda connection: learner.forget(erased, dry=dry))

    async def caught_up(self) -> None:
        """Return once all that was heard so far is learned from."""
        while self._learner is not None and not self.fault and self._learner.busy:
            self._wake.set()
            await self._rounds.park()

    def overview(self) -> dict[str, object]:
        """Return what the owner's `status` tells of the lessons; from a worker thread."""
        told: dict[str, object] = {"lessons": 0, "calls": 0, "waiting": 0, "fault": self.fault}
        if self._learner is not None:
            told["waiting"] = self._learner.held
            try:
                told |= self._read(_counts, Deadline(1.0))
            except MemorydError as error:  # whoever asks how we are must be told that
                told["fault"] = self.fault or error.message
        return told

    def _open(self) -> Learner:
        if self._learner is None:
            raise Unavailable(
                f"lessons are not served: {self.fault or 'they are not open'}",
                remedy="see `bxctl status`; restart memoryd once it is mended",
            )
        return self._learner

    def _read(self, work: Callable[[apsw.Connection], Result], deadline: Deadline) -> Result:
        connection = self._readers.pop() if self._readers else self._reader()
        try:
            with db.within(connection, deadline):
                connection.execute("BEGIN")
                try:
                    return work(connection)
                finally:
                    connection.execute("ROLLBACK")
        finally:
            self._readers.append(connection)

    def _reader(self) -> apsw.Connection:
        connection = db.reader(self._path)
        db.plans_once(connection)
        return connection

    async def _write(self, work: Callable[..., Result], *args: object) -> Result:
        """Run one step of the learner as the one thread that writes. Raises: what `db.wrong` knows."""

        def run() -> Result:
            with db.translated():
                return work(*args)

        return await trio.to_thread.run_sync(run, limiter=self._slot)

    async def _turn(self, learner: Learner) -> None:
        """Learn from a batch, or let quiet sessions rest, and wait for the next cause."""
        self._wake = trio.Event()
        try:
            async with self.turn:
                more, due = await self._write(_step, learner, clock.now_ms())
            if self._topics is not None and self._topics.wanted("lesson"):
                await self._tell(learner, self._topics)
        except Exception as error:
            # A session that we stumble over must end neither the learning of others nor the service.
            self.fault = error.code if isinstance(error, MemorydError) else Internal.code
            if self.fault == Internal.code:
                log.exception("a fault while learning")
            else:
                log.warning("learning stands still", code=self.fault)
            await trio.sleep(AGAIN_S)
            self.look()
            return
        if self.fault:
            log.info("learning goes on")
            self.fault = ""
        if not more or self._waits(learner):
            self._rounds.unpark_all()
            with trio.move_on_after(math.inf if due is None else due):
                await self._wake.wait()

    async def _tell(self, learner: Learner, topics: Topics) -> None:
        """Tell those who follow lessons of each that is new."""
        for name, kind, project, label in await self._write(learner.news):
            told: dict[str, object] = {"id": name, "type": kind}
            topics.publish("lesson", told, label=label, project=project or None, said=False)

    def _close(self, learner: Learner) -> None:
        for connection in (*self._readers, learner.connection):
            db.close(connection)
        self._readers.clear()


def _step(learner: Learner, now: int) -> tuple[bool, float | None]:
    """Learn from what was heard; where that is all, let sessions rest. Returns: both answers."""
    more = learner.step()
    return more, None if more else learner.due(now)


def _counts(connection: apsw.Connection) -> dict[str, object]:
    """Return how much there is."""
    lessons, calls = connection.execute(
        "SELECT (SELECT count(*) FROM lesson), (SELECT count(*) FROM call)"
    ).get
    return {"lessons": int(lessons), "calls": int(calls)}
