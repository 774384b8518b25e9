"""The daemon, in the order in which it comes up and goes down.

In: the environment. Out: an exit code; while it runs, an index that follows the session logs, and sockets
that answer from it. Everything that waits is a task of one nursery; the index is written by one thread
(`serve.keeper`), read by a few (`serve.readers`), and rebuilt by a process of its own.
"""

import contextlib
import os
import resource
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

import structlog
import trio

from memoryd import clock, config, db, log, paths, state
from memoryd.errors import Internal, MemorydError
from memoryd.index import Settings, from_config
from memoryd.index.forgetting import Hook
from memoryd.index.search import Reader
from memoryd.notes.desk import Notes
from memoryd.serve import listening, telling
from memoryd.serve.connection import Traffic
from memoryd.serve.inspecting import look_after
from memoryd.serve.keeper import SWEEP_S, Keeper
from memoryd.serve.methods import Memory, table
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
    log.configure()
    loaded = config.load(env)
    db.check_engine()
    home = state.private_folder(paths.home(env))
    with state.held(home):
        key = state.key(home)
        settings = from_config(loaded.config, home, key, env)
        for folder in ("sessions", "index"):
            state.private_folder(home / folder)
        with opened(settings) as (notes, fault), sockets(loaded.config, settings, env) as listens:
            return _live(Daemon(settings, listens, version, notes=notes, notes_fault=fault))


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
def sockets(
    loaded: config.Config, settings: Settings, env: Mapping[str, str]
) -> Iterator[list[listening.Listening]]:
    """Listen on every configured socket; they are gone at the end. Raises: ConfigError."""
    with contextlib.ExitStack() as stack:
        found: list[listening.Listening] = []
        for setting in loaded.socket:
            allowed = capability(setting, settings.classes)
            found.append(listening.listen(setting, allowed, env))
            stack.callback(listening.close, found[-1])
        yield found


class Daemon:
    """What runs: readers, the keeper of the index, the server; `main` is the life of all three."""

    def __init__(
        self,
        settings: Settings,
        sockets: list[listening.Listening],
        version: str,
        *,
        notes: Notes | None = None,
        notes_fault: str = "",
        derived: Sequence[Hook] = (),
    ) -> None:
        self._settings, self._sockets, self._version = settings, sockets, version
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
            version=version,
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
        self._keeper.sure = lambda: self._watcher.sure

    async def main(self) -> int:
        """Come up, serve, and go down when a signal asks for it."""
        signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        with trio.open_signal_receiver(*signals) as received:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._server.run, self._sockets)
                await nursery.start(self._keeper.run)
                nursery.start_soon(self._tutor.run)
                await nursery.start(self._watch)
                nursery.start_soon(self._look_after_notes)
                nursery.start_soon(
                    look_after, self._keeper, self._readers, len(self._settings.classes)
                )
                tell_manager("READY=1")
                logger.info("serving", home=str(self._settings.home), pid=os.getpid())
                await _asked_to_stop(received)
                tell_manager("STOPPING=1")
                logger.info("stopping")
                nursery.start_soon(_end_at_once, received)
                patience = threading.Timer(STOP_S, os._exit, (1,))
                patience.daemon = True
                patience.start()
                await self._server.stop()
                nursery.cancel_scope.cancel()
        patience.cancel()
        self._reads.close()
        logger.info("stopped")
        return 0

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
            **telling.index_view(status, logs),
            "rebuild": telling.rebuild_view(self._keeper.rebuilding),
            "faults": telling.since(found, self._faults, clock.now_ms()),
            "notes": notes,
            "lessons": lessons,
            "traffic": telling.traffic_view(self._server.traffic, missing),
        }


def tell_manager(what: str) -> None:
    """Tell systemd, where it started this (sd_notify(3)); never waits, and nobody there is no fault."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith("@"):
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setblocking(False)
        manager.sendto(what.encode(), address)


async def _asked_to_stop(received: AsyncIterator[int]) -> None:
    """Return at the first SIGTERM or SIGINT."""
    async for number in received:
        if number != signal.SIGHUP:
            return
        logger.warning(
            "the configuration is read at the start only", remedy="restart memoryd to change it"
        )


async def _end_at_once(received: AsyncIterator[int]) -> None:
    """End the process at the next signal, as it is: every file is written whole or not at all."""
    async for number in received:
        if number != signal.SIGHUP:
            os._exit(1)


def _live(daemon: Daemon) -> int:
    """Run the daemon to its end. Raises: MemorydError when it refuses to run at all."""
    try:
        return trio.run(daemon.main)
    except BaseException as error:
        first = error
        while isinstance(first, BaseExceptionGroup):
            refusals = first.subgroup(MemorydError)
            first = (refusals or first).exceptions[0]
        if isinstance(first, MemorydError):
            raise first from None
        logger.critical("a fault of memoryd", exc_info=first)
        return Internal.exit_code
