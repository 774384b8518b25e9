"""Answers from the index itself, read-only, while the daemon is down.

In: the environment, the configured socket that would have been asked. Out: a `Shelf` that answers the
reading methods as the daemon would through that socket: same scope, same functions, same answers. It is
closed as soon as the command has its answer, since an index that anybody holds open cannot be replaced.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bxctl import times
from memoryd import clock, config, db, paths, recall, state
from memoryd.db import Deadline
from memoryd.errors import NotGranted, Unavailable
from memoryd.index import schema, settings
from memoryd.index.search import Reader
from memoryd.labels import Classes
from memoryd.serve import dumping
from memoryd.serve.asking import scope_of
from memoryd.serve.peers import Capability, capability

PATIENCE_S = 10.0
READS = {
    "recall": recall.recall,
    "get": recall.get,
    "sessions": recall.sessions,
    "projects": recall.projects,
}


class Shelf:
    """The open index, asked with the names and arguments of docs/protocol.md."""

    def __init__(self, reader: Reader, allowed: Capability, age: str) -> None:
        """Answer from `reader` what the socket `allowed` would; `age` says how old that is."""
        self.age = age
        self.server = {"classes": list(reader.classes.upto(allowed.level))}
        self._reader, self._allowed = reader, allowed

    def call(self, method: str, /, **args: Any) -> Any:
        """Answer one request. Raises: NotGranted, and what the method raises."""
        if method not in self._allowed.methods:
            raise NotGranted(
                f"the socket {self._allowed.name!r} does not grant {method}",
                remedy="ask through the owner's socket",
            )
        deadline = Deadline(PATIENCE_S)
        if method == "dump":
            return dumping.page(self._reader, args.get("cursor"), deadline)
        level = args.pop("max_class", None)
        scope = scope_of(self._allowed, self._reader.classes, level, None)
        return READS[method](self._reader, scope, args, deadline)

    def pages(self, method: str, /, **args: Any) -> Iterator[Any]:
        """Yield the answer and every further page of it."""
        while True:
            page = self.call(method, **args)
            yield page
            args["cursor"] = page["cursor"]
            if args["cursor"] is None:
                return

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the index."""
        self._reader.connection.close()


def open_index(env: Mapping[str, str], socket: config.Socket) -> Shelf:
    """Return the index as `socket` would show it.

    Raises: Unavailable when there is none, or one that was made under other settings; ConfigError.
    """
    made = made_settings(env)
    if why := schema.check_file(made.path):
        raise Unavailable(f"the index is {why}", remedy=_REMEDY)
    connection = db.reader(made.path)
    try:
        meta = schema.read_meta(connection)
        if meta.epoch != made.epoch:
            raise Unavailable("the index was made under other settings", remedy=_REMEDY)
        reader = Reader(connection, made.ids, Classes(meta.classes))
        return Shelf(reader, capability(socket, made.classes), _age(made.path))
    except BaseException:
        connection.close()
        raise


_REMEDY = "start `memoryd`, or run `bxctl reindex --offline`"


def _age(path: Path) -> str:
    """Return when the index was last written to, as one says it."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    last = max(part.stat().st_mtime_ns for part in parts if part.exists())
    return times.said(last // 1_000_000, clock.now_ms())


def made_settings(env: Mapping[str, str]) -> settings.Settings:
    """Return what the index of this state must be. Raises: ConfigError, Unavailable without a key."""
    loaded = config.load(env)
    home = paths.home(env)
    if not (home / state.KEY).exists():
        raise Unavailable("there is no index yet", remedy=_REMEDY)
    return settings.from_config(loaded.config, home, state.key(home), env)
