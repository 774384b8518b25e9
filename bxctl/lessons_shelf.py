"""Lessons read from their database itself while the daemon is down, as the socket that was meant would show them.

In: the environment, that socket. Out: something that answers the reading methods of docs/protocol.md: same
scope, same functions, same answers. It writes nothing: no ledger, no bump.
"""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import apsw

from memoryd import config, db, migrations, paths
from memoryd.db import Deadline
from memoryd.errors import NotGranted, Unavailable
from memoryd.labels import Classes
from memoryd.lessons import store
from memoryd.serve.lesson_reads import READS, answered
from memoryd.serve.peers import Capability, capability

PATIENCE_S = 10.0
_REMEDY = "start `memoryd`"


class Shelf:
    """The open database."""

    def __init__(self, connection: apsw.Connection, allowed: Capability, classes: Classes) -> None:
        """Answer from `connection` what the socket `allowed` would."""
        self.server = {"classes": list(classes.upto(allowed.level)), "methods": []}
        self._connection, self._allowed, self._classes = connection, allowed, classes

    def call(self, method: str, /, **args: Any) -> Any:
        """Answer one request. Raises: NotGranted, Unavailable, and what the method raises."""
        if method not in self._allowed.methods:
            raise NotGranted(
                f"the socket {self._allowed.name!r} does not grant {method}",
                remedy="ask through the owner's socket",
            )
        name = method.removeprefix("lessons.")
        if name not in READS:
            raise Unavailable("memoryd does not run", remedy=_REMEDY)
        with db.within(self._connection, Deadline(PATIENCE_S)):
            return answered(self._connection, name, args, self._allowed, self._classes)

    def pages(self, method: str, /, **args: Any) -> Iterator[Any]:
        """Yield the answer: none of these has more than one page."""
        yield self.call(method, **args)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the database."""
        self._connection.close()


def open_lessons(env: Mapping[str, str], socket: config.Socket) -> Shelf:
    """Return the lessons as `socket` would show them.

    Raises: Unavailable when there are none, or another version's; ConfigError.
    """
    path = paths.home(env) / store.NAME
    seen = db.look(path)
    if seen is None:
        raise Unavailable("there are no lessons yet", remedy=_REMEDY)
    if seen.user_version != migrations.latest("lessons"):
        raise Unavailable("the lessons are another version's", remedy=_REMEDY)
    classes = Classes(config.load(env).config.labels.classes)
    return Shelf(db.reader(path), capability(socket, classes), classes)
