"""The daemon, in the order in which it comes up and goes down.

In: the environment. Out: an exit code; while it runs, an index that follows the session logs, and sockets
that answer from it. Everything that waits is a task of one nursery; the index is written by one thread
(`serve.keeper`), read by a few (`serve.readers`), and rebuilt by a process of its own.
"""

import contextlib
import os
import resource
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import structlog
import trio

from memoryd import clock, config, db, log, paths, state
from memoryd.client_trio import connect
from memoryd.db import Deadline
from memoryd.errors import Busy, Internal, MemorydError
from memoryd.index import Settings
from memoryd.index.forgetting import Hook
from memoryd.index.search import Reader
from memoryd.notes.desk import Notes
from memoryd.serve import supervisor, telling
from memoryd.serve.asked import Asked
from memoryd.serve.connection import Traffic
from memoryd.serve.inspecting import look_after
from memoryd.serve.keeper import SWEEP_S, Keeper
from memoryd.serve.listening import Sockets
from memoryd.serve.methods import Memory, table
from memoryd.serve.readers import Readers
from memoryd.serve.reads import FILE as READS
from memoryd.serve.reads import Reads
from memoryd.serve.server import Server
from memoryd.serve.topics import Topics
from memoryd.serve.tutor import Tutor
from memoryd.sources.watch import EVERYTHING, Watcher
from memoryd.standing import Configuration, Standing

STOP_S = 5.0
"""How long stopping may take before the process ends as it is; a change of the configuration may take longer."""
ANSWER_S = 5.0
"""How long the index may take over a question that costs nothing."""

logger = structlog.get_logger()


def run(env: Mapping[str, str], version: str) -> int:
    """Serve until SIGTERM or SIGINT and return the exit code; SIGHUP takes a changed configuration over.

    Raises: ConfigError, Busy when another process serves this state folder, and IOFailed.
    """
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold what was read
    log.configure()
    with supervisor.Patience() as patience:
        loaded = config.load(env)
        db.check_engine()
        wide = state.open_to_others(paths.home(env))
        home = state.private_folder(paths.home(env))
        with state.held(home), contextlib.closing(Sockets(os.environ)) as sockets:
            configuration = Configuration(home, state.key(home), env, sockets)
            state.close_key(home)
            for path in wide:
                logger.warning("was open to others", path=str(path), remedy="it is closed now")
            standing = configuration.stand(loaded.config)
            for folder in ("sessions", "index"):
                state.private_folder(home / folder)
            return _serve(configuration, standing, version, patience, sockets)


def _serve(
    configuration: Configuration,
    first: Standing,
    version: str,
    patience: supervisor.Patience,
    sockets: Sockets,
) -> int:
    """Serve one configuration after another until there is no next."""
    standing: Standing | None = first
    asked, code = Asked(), 0
    life = Life(clock.monotonic(), Traffic())
    with contextlib.ExitStack() as stack:
        while standing is not None:
            with opened(standing.settings) as (notes, fault):
                daemon = Daemon(
                    standing, version, configuration, life, notes=notes, notes_fault=fault
                )
                if standing is first:
                    stack.enter_context(asked.kept())
                code = _live(daemon, asked, patience)
            sockets.settle()
            standing = daemon.next
    return code


@contextlib.contextmanager
def opened(settings: Settings) -> Iterator[tuple[Notes | None, str]]:
    """Open the notes, or tell why they cannot be served; what is indexed is served without them."""
    try:
        notes = Notes(settings.home, settings.classes)
    except MemorydError as error:
        logger.warning("notes are not served", code=error.code, problem=error.message)
        yield None, error.message
        return
    if notes.journal.broken:
        logger.warning("notes can only be read", problem=notes.journal.broken)
    try:
        yield notes, ""
    finally:
        notes.close()


class Life(NamedTuple):
    """What the process has seen since its start, whatever configurations it served."""

    began: float
    traffic: Traffic


class Daemon:
    """What runs: readers, the keeper of the index, the server; `main` is the life of all three."""

    def __init__(
        self,
        standing: Standing,
        version: str,
        configuration: Configuration,
        life: Life,
        *,
        notes: Notes | None = None,
        notes_fault: str = "",
        derived: Sequence[Hook] = (),
    ) -> None:
        settings = self._settings = standing.settings
        self._sockets, self._version = standing.listens, version
        self._configuration = configuration
        self.next: Standing | None = None
        self._faults: dict[str, int] = {}
        self._reads = Reads(settings.home / READS)
        readers = self._readers = Readers(self._reader)
        topics = Topics(settings.classes)
        self._keeper = Keeper(settings, readers, topics)
        idle_after_s = settings.config.lessons.idle_after_s
        self._tutor = Tutor(settings, self._keeper.known, idle_after_s=idle_after_s, topics=topics)
        self._keeper.listener = self._tutor
        memory = Memory(
            classes=settings.classes,
            readers=readers,
            reads=self._reads,
            keeper=self._keeper,
            version=version,
            uptime=lambda: int(clock.monotonic() - life.began),
            overview=self._overview,
            notes=notes,
            notes_fault=notes_fault,
            derived=(*derived, self._tutor.forgot),
            key=settings.key,
            tutor=self._tutor,
            topics=topics,
        )
        self._notes, self._desk = notes, memory.desk()
        self._server = Server(table(memory), life.traffic)
        folders = [root.path for root in settings.roots]
        self._watcher = Watcher([*folders, settings.home / "notes"])
        self._keeper.sure = lambda: self._watcher.sure

    async def main(self, asked: Asked, patience: supervisor.Patience) -> int:
        """Come up, serve, and go down when a signal asks for it; `next` then says what comes after."""
        with contextlib.ExitStack() as last:
            async with trio.open_nursery() as nursery:
                await self._serve(nursery, patience)
                await self._until_asked(asked)
                if self.next is not None:  # a long write is waited for, and nobody answers then
                    patience.begin("taking the new configuration over")
                last.enter_context(asked.within(STOP_S, ending=self.next is None))
                await self._server.stop()
                nursery.cancel_scope.cancel()
        self._reads.close()
        logger.info("stopped" if self.next is None else "taking the new configuration over")
        return 0

    async def _serve(self, nursery: trio.Nursery, patience: supervisor.Patience) -> None:
        """Start all that runs, and tell the service manager."""
        await nursery.start(self._server.run, self._sockets)
        await nursery.start(self._keeper.run)
        nursery.start_soon(self._tutor.run)
        await nursery.start(self._watch)
        nursery.start_soon(self._look_after_notes)
        nursery.start_soon(look_after, self._keeper, self._readers, len(self._settings.classes))
        patience.end()
        supervisor.tell("READY=1")
        nursery.start_soon(supervisor.watchdog, self._well)
        nursery.start_soon(supervisor.report, self._said)
        logger.info("serving", home=str(self._settings.home), pid=os.getpid())

    async def _until_asked(self, asked: Asked) -> None:
        """Return once the daemon is to stop, or to serve another configuration (`next`)."""
        while await asked.next() == signal.SIGHUP:
            supervisor.reloading()
            self.next = await trio.to_thread.run_sync(self._configuration.again)
            if self.next is not None:
                return
            supervisor.tell("READY=1")
        asked.stopping()
        supervisor.tell("STOPPING=1")
        logger.info("stopping")

    async def _well(self) -> None:
        """Return once a client was greeted and, where there is an index, a question answered. Raises: what is wrong."""
        with contextlib.suppress(
            Busy
        ):  # all connections are taken, or the index is being replaced: also answers
            async with connect(self._sockets[0].path):
                pass
            if self._readers.served:
                await self._readers.read(
                    lambda reader: reader.connection.pragma("user_version"), Deadline(ANSWER_S)
                )

    def _said(self) -> str:
        """Return in a line how far the index is."""
        status = self._keeper.figures()
        if not status.ready:
            return f"the index is being built: {status.why}"
        if status.lag_logs:
            return f"reading: {status.lag_logs} logs, {status.lag_bytes} bytes behind"
        return "everything is read"

    async def _watch(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Hand the keeper every hint of a change."""
        async with self._watcher as watcher:
            task_status.started()
            if watcher.mode == "polling":
                logger.warning("changes are found by looking only", problem=watcher.reason)
            async for change in watcher:
                if change is EVERYTHING:
                    self._keeper.missed()
                else:
                    self._keeper.changed(change)

    async def _look_after_notes(self) -> None:
        """Notice what is done to notes outside, and let proposals expire, at the pace of the sweeps."""
        while self._notes is not None:
            try:
                await trio.to_thread.run_sync(self._notes.look_after)
            except MemorydError as error:
                logger.warning("notes cannot be looked after", code=error.code)
            await trio.sleep(SWEEP_S)

    def _reader(self) -> Reader:
        settings = self._settings
        return Reader(db.reader(settings.path), settings.ids, settings.classes)

    def _overview(self) -> dict[str, object]:
        """Return what the owner's `status` tells beside; runs in a worker thread."""
        status = self._keeper.figures()
        rate = self._keeper.pace.rate(status.lag_bytes, status.read_bytes, clock.monotonic())
        missing = self._reads.missing
        unwatched = self._watcher.reason if self._watcher.mode == "polling" else ""
        notes = self._desk.overview()
        lessons = self._tutor.overview()
        found = telling.faults(
            status,
            reads_missing=missing,
            unwatched=unwatched,
            notes=str(notes["fault"]),
            lessons=str(lessons["fault"]),
            configuration=self._configuration.refused,
        )
        return {
            "version": self._version,
            "pid": os.getpid(),
            "home": str(self._settings.home),
            "config": config.fingerprint(self._settings.config),
            "sockets": [
                {
                    "name": each.capability.name,
                    "path": str(each.path),
                    "clearance": self._settings.classes.name(each.capability.level),
                }
                for each in self._sockets
            ],
            **telling.index_view(status, rate),
            "rebuild": telling.rebuild_view(self._keeper.rebuilding),
            "faults": telling.since(found, self._faults, clock.now_ms()),
            "notes": notes,
            "lessons": lessons,
            "traffic": telling.traffic_view(self._server.traffic, missing),
        }


def _live(daemon: Daemon, asked: Asked, patience: supervisor.Patience) -> int:
    """Run the daemon to its end. Raises: MemorydError when it refuses to run at all."""
    try:
        return trio.run(daemon.main, asked, patience)
    except BaseException as error:
        first = error
        while isinstance(first, BaseExceptionGroup):
            refusals = first.subgroup(MemorydError)
            first = (refusals or first).exceptions[0]
        if isinstance(first, MemorydError):
            raise first from None
        logger.critical("a fault of memoryd", exc_info=first)
        return Internal.exit_code
