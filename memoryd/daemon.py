"""The daemon, in the order in which it comes up and goes down.

In: the environment. Out: an exit code; while it runs, an index that follows the session logs, and sockets
that answer from it. SIGHUP has the configuration read again: where it says something else, the daemon goes
down and comes up with it in the same process, under the same lock. Everything that waits is a task of one
nursery; the index is written by one thread (`serve.keeper`), read by a few (`serve.readers`), and rebuilt by
a process of its own.
"""

import contextlib
import os
import resource
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog
import trio

from memoryd import clock, config, db, log, paths, state
from memoryd.errors import ConfigError, Internal, MemorydError
from memoryd.index import Settings, from_config
from memoryd.index.forgetting import Hook
from memoryd.index.search import Reader
from memoryd.notes.desk import Notes
from memoryd.serve import listening, manager, telling
from memoryd.serve.connection import Traffic
from memoryd.serve.handed import check_named, handed, without
from memoryd.serve.inspecting import look_after
from memoryd.serve.keeper import SWEEP_S, Keeper
from memoryd.serve.methods import Memory, table
from memoryd.serve.orders import Orders
from memoryd.serve.peers import capability
from memoryd.serve.readers import Readers
from memoryd.serve.reads import FILE as READS
from memoryd.serve.reads import Reads
from memoryd.serve.server import Server
from memoryd.serve.topics import Topics
from memoryd.serve.tutor import Tutor
from memoryd.sources.watch import EVERYTHING, Watcher

STOP_S = 5.0
"""How long stopping may take before the process ends as it is."""

logger = structlog.get_logger()


def run(env: Mapping[str, str], version: str) -> int:
    """Serve until SIGTERM or SIGINT and return the exit code.

    Raises: ConfigError, Busy when another process serves this state folder, and IOFailed.
    """
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold what was read
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read again
    log.configure()
    loaded = config.load(env)
    db.check_engine()
    given = handed(env, os.getpid())
    wide = state.open_to_others(paths.home(env))
    home = state.private_folder(paths.home(env))
    with state.held(home):
        ground = Ground(home, state.key(home), without(env), version, given)
        state.close_key(home)
        for path in wide:
            logger.warning("was open to others", path=str(path), remedy="it is closed now")
        for folder in ("sessions", "index"):
            state.private_folder(home / folder)
        return _live(ground, loaded.config)


async def serve(ground: "Ground", chosen: config.Config) -> int:
    """Serve one configuration after the other until a signal ends it; return the exit code.

    Raises: ConfigError where not even the first can be served, in a group like all that a nursery raises.
    """
    before: config.Config | None = None
    problem = ""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        orders = Orders(received)
        while not orders.stop:
            try:
                before, chosen, problem = await _serve_one(ground, chosen, problem, orders)
            except Exception as error:
                refusal = _first(error)
                if before is None or not isinstance(refusal, ConfigError):
                    raise
                logger.warning("the configuration cannot be used", problem=refusal.message)
                chosen, problem = before, refusal.message
                before = None
    return 0


async def _serve_one(
    ground: "Ground", chosen: config.Config, problem: str, orders: Orders
) -> tuple[config.Config, config.Config, str]:
    """Serve one configuration; return it, the one that is to follow, and no problem."""
    settings = ground.settings(chosen)
    with opened(settings) as (notes, fault), sockets(ground, settings) as listens:
        daemon = Daemon(
            ground, settings, listens, notes=notes, notes_fault=fault, config_fault=problem
        )
        return chosen, await daemon.main(orders), ""


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


@contextlib.contextmanager
def sockets(ground: "Ground", settings: Settings) -> Iterator[list[listening.Listening]]:
    """Listen on every configured socket; those that are ours are gone at the end. Raises: ConfigError."""
    configured = settings.config.socket
    places = [listening.path_of(setting, ground.env) for setting in configured]
    check_named(ground.handed, places)
    with contextlib.ExitStack() as stack:
        found: list[listening.Listening] = []
        for setting, path in zip(configured, places, strict=True):
            allowed = capability(setting, settings.classes)
            handle = ground.handed.get(path)
            found.append(listening.listen(setting, allowed, ground.env, handle))
            stack.callback(listening.close, found[-1])
        yield found


class Ground(msgspec.Struct, frozen=True):
    """What stays whatever is configured: the state folder and its key, the environment, handed sockets."""

    home: Path
    key: bytes
    env: dict[str, str]
    version: str
    handed: dict[Path, int]

    def settings(self, chosen: config.Config) -> Settings:
        """Return what a configuration means here. Raises: ConfigError."""
        return from_config(chosen, self.home, self.key, self.env)


class Daemon:
    """What runs: readers, the keeper of the index, the server; `main` is the life of all three."""

    def __init__(
        self,
        ground: Ground,
        settings: Settings,
        sockets: list[listening.Listening],
        *,
        notes: Notes | None = None,
        notes_fault: str = "",
        config_fault: str = "",
        derived: Sequence[Hook] = (),
    ) -> None:
        self._ground, self._settings, self._sockets = ground, settings, sockets
        self._config_fault = config_fault
        self._began = clock.monotonic()
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
            version=ground.version,
            uptime=lambda: int(clock.monotonic() - self._began),
            overview=self._overview,
            notes=notes,
            notes_fault=notes_fault,
            derived=(*derived, self._tutor.forgot),
            key=settings.key,
            tutor=self._tutor,
            topics=topics,
        )
        self._notes, self._desk = notes, memory.desk()
        self._server = Server(table(memory), Traffic())
        folders = [root.path for root in settings.roots]
        self._watcher = Watcher([*folders, settings.home / "notes"])

    async def main(self, orders: Orders) -> config.Config:
        """Come up, serve, and go down when a signal asks for it; return the configuration to go on with."""
        chosen = self._settings.config
        async with trio.open_nursery() as nursery:
            await nursery.start(self._server.run, self._sockets)
            await nursery.start(self._keeper.run)
            nursery.start_soon(self._tutor.run)
            await nursery.start(self._watch)
            nursery.start_soon(self._look_after_notes)
            nursery.start_soon(look_after, self._keeper, self._readers, len(self._settings.classes))
            self._tell_ready(nursery)
            chosen = await self._over(orders)
            manager.tell("STOPPING=1" if orders.stop else manager.reloading())
            logger.info("stopping" if orders.stop else "taking another configuration")
            nursery.start_soon(orders.while_ending)
            patience = threading.Timer(STOP_S, os._exit, (1,))
            patience.daemon = True
            patience.start()
            await self._server.stop()
            nursery.cancel_scope.cancel()
        patience.cancel()
        self._reads.close()
        logger.info("stopped")
        return chosen

    def _tell_ready(self, nursery: trio.Nursery) -> None:
        """Tell whoever started this; from here on questions are answered, if only with `unavailable`."""
        manager.tell("READY=1\nSTATUS=serving; `bxctl status` tells how far the index is")
        logger.info("serving", home=str(self._settings.home), pid=os.getpid())
        seconds = manager.period(os.environ, os.getpid())
        if seconds is not None and self._sockets:
            nursery.start_soon(manager.feed, seconds, self._sockets[0].path)

    async def _over(self, orders: Orders) -> config.Config:
        """Return when the end is asked for, or another configuration is there: the one to go on with."""
        while True:
            await orders.given()
            if orders.stop:
                return self._settings.config
            found = await trio.to_thread.run_sync(self._reread)
            if found is not None:
                return found

    def _reread(self) -> config.Config | None:
        """Return the configuration if there is another one that can be used; where not, remember why."""
        try:
            found = config.load(self._ground.env).config
            self._ground.settings(found)
        except ConfigError as error:
            self._config_fault = error.message
            logger.warning("the configuration cannot be used", problem=error.message)
            return None
        self._config_fault = ""
        if found == self._settings.config:
            logger.info("the configuration says what it said")
            return None
        return found

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
                    self._keeper.sweep_soon()
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
        status, logs = self._keeper.figures()
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
            configuration=self._config_fault,
        )
        return {
            "version": self._ground.version,
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
            **telling.index_view(status, logs),
            "rebuild": telling.rebuild_view(self._keeper.rebuilding),
            "faults": telling.since(found, self._faults, clock.now_ms()),
            "notes": notes,
            "lessons": lessons,
            "traffic": telling.traffic_view(self._server.traffic, missing),
        }


def _live(ground: Ground, chosen: config.Config) -> int:
    """Run the daemon to its end. Raises: MemorydError when it refuses to run at all."""
    try:
        return trio.run(serve, ground, chosen)
    except BaseException as error:
        first = _first(error)
        if isinstance(first, MemorydError):
            raise first from None
        logger.critical("a fault of memoryd", exc_info=first)
        return Internal.exit_code


def _first(error: BaseException) -> BaseException:
    """Return the error that a group is about: a refusal of ours, where it holds one."""
    while isinstance(error, BaseExceptionGroup):
        refusals = error.subgroup(MemorydError)
        error = (refusals or error).exceptions[0]
    return error
