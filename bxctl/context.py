"""What a command has beside its own options: the environment, its output, and somebody to ask.

In: the global options. Out: a connection to the daemon, or, for commands that can do without, a reader
of the index itself. The configuration is looked at only when the usual socket does not answer, since
reading it costs more than a search.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from bxctl import output
from bxctl.output import Output
from memoryd import client
from memoryd.errors import BadRequest, MemorydError, Unavailable

if TYPE_CHECKING:
    from memoryd import config

OWNER_SOCKET = "memoryd"
"""The owner's socket as it is called without configuration."""
PATIENCE_S = 10.0
"""How long a person waits for one answer before it counts as none."""


class Memory(Protocol):
    """Whoever answers: the daemon's client, or `bxctl.offline` in its place."""

    server: dict[str, Any]

    def call(self, method: str, /, **args: Any) -> Any:
        """Return the answer. Raises: MemorydError."""

    def pages(self, method: str, /, **args: Any) -> Iterator[Any]:
        """Yield the answer page by page."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of what it holds."""


class Context(NamedTuple):
    """One command's surroundings; `socket` is what ``--socket`` says: a name, a path, or None."""

    env: Mapping[str, str]
    out: Output
    socket: str | None

    def daemon(self) -> client.Client:
        """Return a connection to the daemon. Raises: Unavailable, and what the configuration says."""
        where = self.socket or OWNER_SOCKET
        try:
            return client.connect(where, timeout=PATIENCE_S, env=self.env)
        except Unavailable as missing:
            path = None if "/" in where else self._configured().path
            if path is None:
                raise missing from None
            return client.connect(Path(path), timeout=PATIENCE_S, env=self.env)

    def anybody(self) -> Memory:
        """Return the daemon, or with a word to the person a reader of the index. Raises: MemorydError."""
        return self._daemon_or(_index)

    def lessons(self) -> Memory:
        """Return the daemon, or with a word to the person a reader of the lessons. Raises: MemorydError."""
        return self._daemon_or(_lessons)

    def _daemon_or(self, opened: "Callable[[Mapping[str, str], config.Socket], Instead]") -> Memory:
        try:
            return self.daemon()
        except Unavailable as missing:
            if self.socket is not None and "/" in self.socket:
                raise
            down = missing
        try:
            reader, what = opened(self.env, self._configured())
        except MemorydError as error:
            raise type(error)(f"{down.message}, and {error.message}", remedy=error.remedy) from None
        output.say(f"{down.message}; answering from {what}")
        return reader

    def _configured(self) -> "config.Socket":
        """Return the configured socket that is meant. Raises: BadRequest for none, ConfigError."""
        from memoryd import config

        sockets = config.load(self.env).config.socket
        named = [socket for socket in sockets if socket.name == self.socket]
        owners = [socket for socket in sockets if "*" in socket.tools]
        for socket in named if self.socket else owners or sockets:
            return socket
        names = ", ".join(socket.name for socket in sockets)
        raise BadRequest(f"no socket is called {self.socket!r}", remedy=f"there are {names}")


Instead = tuple[Memory, str]
"""Who answers in the daemon's place, and what it answers from."""


def _index(env: Mapping[str, str], socket: "config.Socket") -> Instead:
    from bxctl import offline

    reader = offline.open_index(env, socket)
    return reader, f"the index as it was {reader.age}"


def _lessons(env: Mapping[str, str], socket: "config.Socket") -> Instead:
    from bxctl import lessons_shelf

    return lessons_shelf.open_lessons(env, socket), "the lessons themselves"
