"""What every harness's adapter is made of, and what a folder of logs and one log in it are.

In: nothing (values and small pure helpers). Out: `Adapter`, one a harness; `Root`, a folder of logs with
the owner's wishes for it; `LogFile`, one log with the adapter that its content asks for. An adapter knows
one format: which lines are its own, and what each line says. It opens nothing and keeps no state, so that
a record is a function of its bytes, of its number, and of whether the log has named itself before.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from memoryd.records import About, Brought, Item, Link, Record, Unreadable
from memoryd.sources.whole import Mark, Whole
from memoryd.sources.wrapped import Along

MAX_DEPTH = 200
"""Arrays and objects inside each other; a log line has about ten."""

MAX_BLOCKS = 4096
"""Content blocks of one record that an id can name (`memoryd.ids`)."""


class Adapter(msgspec.Struct, frozen=True):
    """One harness's format. The functions are pure; `decoder` yields what `parse` takes.

    `find(home, env)`: folders where the harness keeps logs, there or not; `home` is memoryd's own state.
    `wants(log)`: whether a path below such a folder can be a log.
    `claims(record)`: True if a decoded record can only be of this format, False if it cannot, None if it may.
    `parse(line, n, begun, raw)`: the record of a decoded line; `begun` is whether an earlier record of the
    log named itself, `raw` the line's bytes. Raises NotJson for what must not be believed.
    `gathered`: the shape of a line that does not fit the decoder, where that is another than the decoder's.
    `later`: decodes the lines of a log that has begun, from record `told_by` on, without what it has told by then.
    `begins`: whether `begun` matters to `parse`.
    `telling`: fields of the decoded line that bring text, and so raise if they have an unexpected shape.
    `origin(log)`: the link that a log's own path tells; `agent(log, session)`: the name by which results tell
    of the sub-agent whose log it is, if any; `agents(more)`: the names that a result tells (`Returned.more`);
    `named`: its records have names (`Record.uuid`).
    `below(log)`: the folder where the logs of its sub-agents lie, if they have one.
    `whole`: how logs are read that are no files of lines, where the harness has such; `parse` takes their lines.
    """

    id: str
    version: int
    decoder: msgspec.json.Decoder[Any]
    find: Callable[[Path, Mapping[str, str]], list[Path]]
    wants: Callable[[str], bool]
    claims: Callable[[Mapping[str, object]], bool | None]
    parse: Callable[[Any, int, bool, bytes], Record]
    gathered: type[msgspec.Struct] | None = None
    later: msgspec.json.Decoder[Any] | None = None
    told_by: int = 0
    begins: bool = True
    telling: frozenset[str] = frozenset()
    origin: Callable[[str], Link | None] = lambda log: None
    agent: Callable[[str, str], str | None] = lambda log, session: None
    agents: Callable[[msgspec.Raw], tuple[str, ...]] = lambda more: ()
    below: Callable[[str], str | None] = lambda log: None
    named: bool = False
    whole: tuple[Whole, ...] = ()

    def decoder_of(self, n: int, begun: bool) -> msgspec.json.Decoder[Any]:
        """Return what decodes record `n` of a log."""
        if self.later is None or not begun or n < self.told_by:
            return self.decoder
        return self.later

    def whole_of(self, log: str) -> Whole | None:
        """Return how the log at a path is read if it is no file of lines."""
        for whole in self.whole:  # a sweep asks for every file: no generator
            if whole.wants(log):
                return whole
        return None

    def may_be_log(self, log: str) -> bool:
        """Say whether a path can be a log, of lines or whole."""
        return self.wants(log) or self.whole_of(log) is not None


class Root(msgspec.Struct, frozen=True):
    """A folder of logs. `kind` is an adapter's id or ``auto``; `start` a class's name, or None.

    `exclude` holds globs on a log's path. `trusted` is true for the state folder's `sessions` alone: the
    only place whose label fields are believed.
    """

    kind: str
    path: Path
    start: str | None = None
    exclude: tuple[str, ...] = ()
    trusted: bool = False


class LogFile(msgspec.Struct, frozen=True, gc=False):
    """One log: `log` is its path below the root, with ``/``.

    Inside a database `log` goes on with the log's name there, and `mark` is what was seen of it.
    """

    root: Root
    adapter: Adapter
    log: str
    mark: Mark | None = None

    @property
    def path(self) -> Path:
        """Return where to open it."""
        return self.root.path / (self.log if self.mark is None else self.log.rpartition("/")[0])

    @property
    def where(self) -> str:
        """Return the same as text; there may be a hundred thousand, and a path object costs half a kilobyte."""
        return f"{self.root.path}/{self.log if self.mark is None else self.log.rpartition('/')[0]}"

    @property
    def whole(self) -> Whole | None:
        """Return how the log is read if it is no file of lines."""
        return self.adapter.whole_of(self.log)


_Scalar = str | int | float | bool | None
_One = dict[str, _Scalar] | list[_Scalar] | _Scalar
_Two = dict[str, _One] | list[_One] | _Scalar
_Three = dict[str, _Two] | list[_Two] | _Scalar
_Four = dict[str, _Three] | list[_Three] | _Scalar
Args = dict[str, _Four] | list[_Four] | _Scalar
"""A call's arguments as nearly all are: five levels at most, so that their depth need not be looked at."""


class NotJson(ValueError):
    """What a line holds further in cannot be decoded or must not be believed; `args[0]` says why."""


def is_jsonl(log: str) -> bool:
    """Say whether a path can be a log of JSON lines."""
    return log.endswith(".jsonl")


_generic = msgspec.json.Decoder().decode


def decoded(raw: msgspec.Raw) -> Any:
    """Return the JSON value of `raw`, None where the field was missing.

    Raises: NotJson for a number outside what JSON readers agree on, or depth over 200.
    """
    size = len(raw)
    if not size:
        return None
    if size > 2 * MAX_DEPTH and memoryview(raw)[0] in b"{[" and too_deep(bytes(raw), MAX_DEPTH):
        raise NotJson("nested too deeply")
    try:
        return _generic(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotJson("no JSON value") from error


def checked(args: Any) -> Any:
    """Return decoded arguments, nearly always a flat object. Raises: NotJson for depth over 200."""
    if type(args) is dict:
        for value in args.values():
            if type(value) is dict or type(value) is list:
                break
        else:
            return args
    elif type(args) is not list:
        return args
    level: list[Any] = [args]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return args
    raise NotJson("nested too deeply")


def too_deep(data: bytes, limit: int) -> bool:
    """Say whether arrays and objects of the JSON text `data` nest deeper than `limit`."""
    if data.count(b"{") + data.count(b"[") <= limit:
        return False
    outside = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    depth = 0
    for byte in b"".join(outside):
        if byte in b"{[":
            depth += 1
            if depth > limit:
                return True
        elif byte in b"}]":
            depth -= 1
    return False


def text(value: object) -> str | None:
    """Return `value` if it is a string that is not empty."""
    return value if isinstance(value, str) and value else None


_NAME = re.compile(r"[\w./:-]{1,64}", re.ASCII)


@lru_cache(maxsize=1024)
def named(family: str, name: str | None) -> str:
    """Return ``family:name``, the name under which rules and `status` know what a log brought in."""
    plain = name is not None and _NAME.fullmatch(name)
    return f"{family}:{name if plain else 'nameless'}"


def came_along(block: int, along: Along) -> Brought:
    """Return the item of what came along with a text."""
    return Brought(block, along.name, args=None if along.path is None else {"path": along.path})


def members(raw: bytes) -> dict[str, Any]:
    """Return all fields of an object of an unknown kind. Raises: NotJson."""
    found: dict[str, Any] = decoded(msgspec.Raw(raw.strip()))
    return found


def unknown(kind: str | None, told: dict[str, Any], but: frozenset[str]) -> list[Item]:
    """Return the items of what nobody knows: it raises if fields other than `but` carry text.

    No rule covers ``record:`` names, so what raises counts as an unknown tool's result.
    """
    if carries_text({key: value for key, value in told.items() if key not in but}):
        return [Brought(0, named("record", kind))]
    return []


def carries_text(tree: object) -> bool:
    """Say whether decoded JSON holds a string that is not blank."""
    stack = [tree]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if value.strip():
                return True
        elif isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return False


@lru_cache(maxsize=4096)
def about(session: str | None, project: str | None, agent: str, link: Link | None = None) -> About:
    """Return the one `About` of these values: neighbouring lines of a log tell the same."""
    return About(session, project, agent, link)


def unreadable(n: int, reason: str) -> Record:
    """Return the record of a line that cannot be read."""
    return Record(n, None, [Unreadable(reason)])
