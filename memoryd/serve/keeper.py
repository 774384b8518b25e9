"""Keeps the index: one thread writes it, and this task decides what that thread does next.

In: hints of changed files, requests to wait, to rebuild, to tell. Out: an index that follows the logs, a
gate that opens and shuts around its replacement, and the owner's status. Every call into `memoryd.index`
goes through one slot, so that at most one thread writes; none of them runs on the trio thread.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

import structlog
import trio
from msgspec.structs import asdict

from memoryd import clock, index
from memoryd.errors import Behind, Busy, Internal, MemorydError, NotFound, Unavailable
from memoryd.index import Counts, Index, Known, Progress, Rebuild, Settings, Status
from memoryd.index.choosing import Wanted
from memoryd.index.deciding import Relabelled, Wish
from memoryd.index.explaining import Explained
from memoryd.index.forgetting import Forgotten, Hook
from memoryd.labels import Label
from memoryd.serve.announcing import Announcer
from memoryd.serve.asking import Caller
from memoryd.serve.pace import Pace
from memoryd.serve.readers import Readers
from memoryd.serve.telling import Rebuilding
from memoryd.serve.topics import Topics
from memoryd.serve.turning import Listener, Turn, take

Result = TypeVar("Result")

SWEEP_S, SWEEP_MOST_S = 45.0, 300.0
"""How long between two looks at all folders, few or very many; the watcher asks for one more often."""
SURE_S = 3600.0
"""The same where the watcher misses nothing: for what only the clock changes, and to be quite sure."""
SWEEP_SHARE = 400
"""A look that takes long is taken more rarely: it may use a 400th of the time, up to `SWEEP_MOST_S`."""
LOOK_REST = 9
"""Of ten seconds one is spent looking at all folders, however often the watcher asks for it; it may have no watches."""
CALLER_S = 2.0
"""How long a request waits for its caller's log to be read so far."""
FIRST_LOOK_S, LAST_LOOK_S = 0.002, 0.05
"""How long to wait before looking again whether it is, longer each time."""
SYNC_S = 10.0
"""How long the owner's acts wait for what is on the disk."""
AGAIN_S = 30.0
"""How long after a failure the next try starts by itself: a rebuild where there is no index, a turn."""

log = structlog.get_logger()


class Keeper:
    """The keeper of one state folder's index; `run` it once."""

    def __init__(self, settings: Settings, readers: Readers, topics: Topics | None = None) -> None:
        self.settings, self._readers = settings, readers
        self._announcer = Announcer(topics)
        self.rebuilding: Rebuilding | None = None
        self._index: Index | None = None
        self._slot = trio.CapacityLimiter(1)
        self._wake = trio.Event()
        self._rounds = trio.lowlevel.ParkingLot()
        self._sweeps = self._settled = 0
        self._sweep_at = self._rebuild_at = self._rested_at = 0.0
        self._missed = False
        self._generation = self._fault = ""
        self._mended = trio.Event()
        self._read = Counts()
        self._nursery: trio.Nursery
        readers.damaged = self.suspect
        self.sure: Callable[[], bool] = lambda: False
        """Whether the watcher tells of all that changes, so that looking for it can wait."""
        self.pace = Pace()
        self.listener: Listener | None = None
        """Who learns from what is read; set before `run`."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the index until cancelled; started once it is open, or is known to need a rebuild.

        Raises: ConfigError for an index that must not be touched.
        """
        self._index = await self._write(index.open, self.settings)
        self._index.listened = self.listener is not None
        self._turn = trio.Lock() if self.listener is None else self.listener.turn
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                while True:
                    await self._follow(self._index)
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._close, self._index, limiter=self._slot)

    def changed(self, paths: Iterable[Path]) -> None:
        """Take the watcher's hint that these files may have changed."""
        if self._index is not None:
            self._index.changed(paths)
            self._wake.set()

    def sweep_soon(self) -> None:
        """Look at all folders now: somebody waits for it."""
        self._sweep_at = 0.0
        self._wake.set()

    def missed(self) -> None:
        """Look at all folders once the last look is rested from: the watcher may have missed something."""
        self._missed = True
        self._wake.set()

    def suspect(self) -> None:
        """Rebuild what a reader found to be damaged, unless that was tried a moment ago."""
        if trio.current_time() >= self._rebuild_at:
            self._rebuild_at = trio.current_time() + AGAIN_S
            log.warning("a reader found the index damaged")
            self.reindex()

    def known(self) -> dict[int, Known]:
        """Return what the index knows of every log, by key; from any thread."""
        return {} if self._index is None else self._index.known()

    def named(self, log: str) -> list[tuple[int, Known]]:
        """Return the logs at this path below any folder of logs, each with its key."""
        return [] if self._index is None else self._index.named(log)

    def figures(self) -> Status:
        """Return the index's own status; from any thread."""
        return Status(False, "not open yet", "") if self._index is None else self._index.status()

    async def label_of(self, caller: Caller) -> Label:
        """Return the label of the asking session, waiting a moment for its log to be read so far.

        Raises: Unavailable before there is an index, Behind: also for a log that nobody has found.
        """
        pause = FIRST_LOOK_S
        with trio.move_on_after(CALLER_S):
            while True:
                if self._index is None or not self._index.ready:
                    raise Unavailable("there is no index yet", remedy="ask again in a moment")
                try:
                    return self._index.label_of(caller.log, caller.n)
                except (Behind, NotFound):
                    self.changed(self._named(caller.log))
                await self._rounds.park()
                await trio.sleep(pause)
                pause = min(2 * pause, LAST_LOOK_S)
        raise Behind(
            f"the caller's log is not read up to record {caller.n}",
            remedy="ask again; `log` is its path below its folder of logs, `n` its records so far",
        )

    async def synced(self, caller: Caller | None) -> None:
        """Return when all that was on disk at the call is indexed, and the caller's log up to `n`."""
        wanted = self._sweeps + 1
        self.sweep_soon()
        while self._settled < wanted:
            await self._rounds.park()
        if caller is not None:
            await self.label_of(caller)

    async def forget(
        self, wanted: Wanted, *, dry: bool, delete_logs: bool, hooks: Sequence[Hook]
    ) -> Forgotten:
        """Forget what is meant once all that is on disk is read, or (`dry`) tell what that comes to.

        Raises: Busy while the index is rebuilt, Unavailable, and what `Index.forget` raises.
        """
        open_index = await self._all_read(writes=not dry)
        work = partial(open_index.forget, wanted, dry=dry, delete_logs=delete_logs, hooks=hooks)
        done = await self._write(work)
        if not dry:
            log.info("forgotten", job=done.act, rows=done.rows, logs=len(done.logs))
            self.sweep_soon()
        return done

    async def remember(self, act: str) -> tuple[int, int]:
        """Take an act of forgetting back, and return once its logs are read again."""
        open_index = await self._all_read(writes=True)
        counts = await self._write(open_index.remember, act)
        log.info("remembered", job=act, logs=counts[0])
        await self.synced(None)
        return counts

    async def explain(self, log: str) -> Explained:
        """Return why the rows of a log have their labels. Raises: what `Index.explain` raises."""
        return await self._write((await self._all_read(writes=False)).explain, log)

    async def relabel(self, name: str, wish: Wish) -> Relabelled:
        """Give rows of a log the owner's own label. Raises: Busy, and what `Index.relabel` raises."""
        done = await self._write((await self._all_read(writes=True)).relabel, name, wish)
        log.info("relabelled", rows=done.rows)
        return done

    async def _all_read(self, *, writes: bool) -> Index:
        """Return the index once all that is on disk is read, or reading stands still.

        Raises: Unavailable; Busy for one who writes while it is rebuilt.
        """
        with trio.move_on_after(SYNC_S):
            await self.synced(None)
        if self._index is None:
            raise Unavailable("there is no index yet", remedy="ask again in a moment")
        if writes and self.rebuilding is not None and self.rebuilding.state == "running":
            raise Busy("the index is being rebuilt", remedy="`bxctl status` shows how far it is")
        return self._index

    async def purged(self) -> None:
        """Return when no word of a deleted row is left in the index's files."""
        while self._index is not None and self._index.purging:
            self._wake.set()
            await self._rounds.park()

    @property
    def generation(self) -> str:
        """Return the name of what is served; "" where nothing is."""
        return self._generation

    async def served(self) -> None:
        """Return once an index is served."""
        while not self._generation:
            await self._rounds.park()

    async def mended(self) -> None:
        """Return once indexing has gone on after a fault; at once where it has since the last call."""
        await self._mended.wait()
        self._mended = trio.Event()

    async def distrust(self) -> None:
        """Serve nothing, and set the index aside: the next turn has it rebuilt."""
        if self._index is not None:
            await trio.to_thread.run_sync(self._readers.withdraw)
            self._generation = ""
            await self._write(self._index.distrust)
            self._wake.set()

    async def purge(self) -> None:
        """Have the words of deleted rows taken out of the file."""
        if self._index is not None:
            await self._write(self._index.purge)
            self._wake.set()

    def reindex(self) -> str:
        """Start a rebuild, or join the one that runs; return its job id."""
        if self.rebuilding is None or self.rebuilding.state != "running":
            self.rebuilding = Rebuilding(f"rebuild-{secrets.token_hex(4)}")
            self._nursery.start_soon(self._rebuild, self.rebuilding)
        return self.rebuilding.job

    async def _follow(self, open_index: Index) -> None:
        """Give the writer's thread one turn, act on what came of it, and wait for the next cause."""
        self._wake = trio.Event()
        now = trio.current_time()
        sweep = now >= self._look_at
        due = self._sweep_at
        if sweep:
            self._sweeps += 1
            self._missed = False
            due = self._sweep_at = now + SWEEP_S
        try:
            async with self._turn:
                turn = await self._write(
                    take, open_index, sweep, self._announcer.followed, self.pace.large
                )
        except Exception:
            # One log that we stumble over must not end the service; what was read goes on being served.
            log.exception("a fault while indexing")
            self._fault = "internal"
            await trio.sleep(AGAIN_S)
            return
        if sweep and due == self._sweep_at:  # nobody has asked for another one meanwhile
            rest = SWEEP_SHARE * (trio.current_time() - now)
            least = max(SWEEP_S, min(rest, SWEEP_MOST_S))
            self._sweep_at = now + (SURE_S if self.sure() else least)
        if turn.behind is not None:
            self._rested_at = trio.current_time() + LOOK_REST * turn.looked
            self.pace.looked(*turn.behind, clock.monotonic())
        self.pace.took(more=turn.more)
        if turn.ready:
            await self._followed(turn)
        else:
            await self._unready(turn)
        self._rounds.unpark_all()
        if not turn.more:
            due = self._look_at - trio.current_time()
            with trio.move_on_after(max(0.0, due if turn.wait is None else min(due, turn.wait))):
                await self._wake.wait()

    @property
    def _look_at(self) -> float:
        """Return when all folders are looked at next."""
        return min(self._sweep_at, self._rested_at) if self._missed else self._sweep_at

    async def _followed(self, turn: Turn) -> None:
        if turn.generation != self._generation:
            await self._serve(turn.generation)
        self._read = self._read.plus(turn.counts)
        self._announcer.rows(turn.fresh)
        if self.listener is not None:
            self.listener.hear(turn.told, more=turn.more)
        if turn.fault != self._fault:
            self._fault = turn.fault
            if not turn.fault:
                self._mended.set()
            log.warning(
                "indexing stands still" if turn.fault else "indexing goes on", code=turn.fault
            )
        if not turn.more and not turn.fault:
            if self._settled == 0:
                log.info("read all that was there", **asdict(self._read))
            if self.listener is not None and self._settled < self._sweeps:
                self.listener.look(all_read=True)
            self._settled = self._sweeps

    async def _serve(self, generation: str) -> None:
        """Let readers ask the index that is there now."""
        if self._generation:
            await trio.to_thread.run_sync(self._readers.shut)
        self._generation = generation
        self._readers.open()
        self._announcer.index(generation)
        log.info("the index is served", generation=generation[:8])

    async def _unready(self, turn: Turn) -> None:
        """Serve nothing, and see that a rebuild is under way."""
        if self._generation:
            self._generation = ""
            self._announcer.index(None)
            await trio.to_thread.run_sync(self._readers.withdraw)
        running = self.rebuilding is not None and self.rebuilding.state == "running"
        if not running and trio.current_time() >= self._rebuild_at:
            log.warning("the index must be rebuilt", problem=turn.why)
            self.reindex()

    async def _rebuild(self, job: Rebuilding) -> None:
        """Build a new index in a process of its own and put it in the place of the old one."""
        log.info("rebuilding the index", job=job.job)
        work = Rebuild(self.settings)
        self._nursery.start_soon(self._announcer.rebuild, job)
        try:
            built = await self._build(work, job)
            await self._write(partial(self._publish, built))
            self._announcer.index(self._generation)
        except MemorydError as error:
            log.warning("the rebuild failed", job=job.job, code=error.code, problem=error.message)
            self._failed(job, error)
        except Exception:
            log.exception("the rebuild failed", job=job.job)
            self._failed(job, Internal("a fault of memoryd", remedy="find the job in its log"))
        else:
            job.state, job.counts, job.seconds = "done", built.counts, built.seconds
            log.info(
                "rebuilt the index", job=job.job, seconds=built.seconds, **asdict(built.counts)
            )
        self._announcer.rebuilt(job)
        self._wake.set()

    def _failed(self, job: Rebuilding, error: MemorydError) -> None:
        job.state, job.error, job.remedy = "failed", error.message, error.remedy
        job.code = error.code
        self._rebuild_at = trio.current_time() + AGAIN_S

    async def _build(self, work: Rebuild, job: Rebuilding) -> index.Built:
        def tell(progress: Progress) -> None:
            job.progress = progress

        try:
            return await trio.to_thread.run_sync(work.run, tell, abandon_on_cancel=True)
        except trio.Cancelled:
            work.cancel()
            raise

    def _publish(self, built: index.Built) -> None:
        """Replace the index; in the writer's thread."""
        if self._index is not None:
            self._index.publish(built, self._readers)
            self._generation = self._index.generation

    async def _write(self, work: Callable[..., Result], *args: object) -> Result:
        """Run `work` as the one thread that writes."""
        return await trio.to_thread.run_sync(work, *args, limiter=self._slot)

    def _close(self, open_index: Index) -> None:
        try:
            self._readers.withdraw()
        except Busy:
            log.warning("a question to the index did not end")
        open_index.close()

    def _named(self, name: str) -> list[Path]:
        """Return where a log of that name may lie; none for a name that leads out of its folder."""
        parts = PurePosixPath(name).parts
        if not parts or parts[0] == "/" or ".." in parts or "\0" in name:
            return []
        return [root.path.joinpath(*parts) for root in self.settings.roots]
