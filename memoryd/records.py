"""What a log record is once its format is forgotten: adapters make these, the fold labels them.

In: nothing (values only). Out: `Record` with its items in block order. Two kinds of item become rows
(`Said`, `Called`), three only raise the label of what comes after (`Returned`, `Brought`, `Unreadable`).
A result's text is in none of them.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import IntEnum

import msgspec

from memoryd.clock import milliseconds


class Kind(IntEnum):
    """What a row is; the number is stored, the word travels."""

    OWNER = 0
    ASSISTANT = 1
    TOOL_CALL = 2
    SUMMARY = 3
    NOTE = 4
    LESSON = 5

    @property
    def word(self) -> str:
        """Return the name on the wire, such as ``tool_call``."""
        return self.name.lower()


KIND_WORDS: dict[str, Kind] = {kind.word: kind for kind in Kind}


class Said(msgspec.Struct, frozen=True, gc=False):
    """Words of the owner, the assistant or a compaction: a row, labelled by what came before it."""

    block: int
    kind: Kind
    text: str


class Called(msgspec.Struct, frozen=True, gc=False):
    """A tool call: a row, labelled by what came before it.

    `args` is decoded JSON (an object, or raw text where a log keeps that). `hosted`: the harness ran it
    and no result record will come, so the call itself raises the label of what follows.
    """

    block: int
    call: str | None
    tool: str
    args: object
    hosted: bool = False


class Own(msgspec.Struct, frozen=True, gc=False):
    """Label fields as a log gives them, unchecked; `msgspec.UNSET` where a field is missing."""

    cls: object = msgspec.UNSET
    untrusted: object = msgspec.UNSET


class Returned(msgspec.Struct, frozen=True, gc=False):
    """A tool's result: never a row; raises the label of what follows.

    `tool` is given only by logs whose results name their tool. `ok` is the log's own flag or exit code.
    `told` is what a result says, not decoded, and only where it failed or nothing else tells whether it
    did: lessons look for its first error line; nobody else reads it. `more`, not decoded either, is where an
    adapter finds which sub-agents answered. Neither makes two results differ.
    """

    block: int
    call: str | None
    tool: str | None = None
    ok: bool | None = None
    own: Own | None = None
    told: msgspec.Raw | None = None
    more: msgspec.Raw | None = None

    def __eq__(self, other: object) -> bool:
        """Compare what the fold sees."""
        return isinstance(other, Returned) and self._seen() == other._seen()

    def __hash__(self) -> int:
        """Agree with `__eq__`."""
        return hash(self._seen()[:4])

    def _seen(self) -> tuple[object, ...]:
        return self.block, self.call, self.tool, self.ok, self.own


class Brought(msgspec.Struct, frozen=True, gc=False):
    """Outside text that came without a tool call, such as ``attachment:file``; raises what follows.

    `args`, where the log tells it, names where the text came from as a call's arguments would
    (``{"path": ...}``), so that path rules see an attached `.env` too.
    """

    block: int
    name: str
    own: Own | None = None
    args: object = None


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A line that nobody can decode: it may have held anything, so it raises to the top."""

    reason: str


Item = Said | Called | Returned | Brought | Unreadable


class Link(msgspec.Struct, frozen=True, gc=False):
    """Where a log says it comes from; `how` is ``parent``, ``fork``, ``resume`` or ``subagent``.

    `whole`: all that came before stands in the log itself, copied, so that it needs no label from there.
    """

    how: str
    log: str | None = None
    n: int | None = None
    session: str | None = None
    uuid: str | None = None
    whole: bool = False


class About(msgspec.Struct, frozen=True, gc=False):
    """What a record tells of its log; the first record that tells a thing decides it."""

    session: str | None = None
    project: str | None = None
    agent: str | None = None
    link: Link | None = None


class Record(msgspec.Struct, frozen=True, gc=False):
    """One decoded object of a log: its number from 0, its time if any, its items.

    `when` is the time as the log gives it, or milliseconds since 1970, which `ts` makes of either.
    `uuid` is its name among all logs; a copy in another log has the same, or says in `copy_of` whose it is.
    `rest`: with this record the session comes to rest: ``idle`` when a turn is over, ``end`` for good.
    """

    n: int
    when: datetime | int | None
    items: list[Item]
    about: About | None = None
    uuid: str | None = None
    copy_of: str | None = None
    rest: str | None = None

    @property
    def ts(self) -> int | None:
        """Return the time in milliseconds since 1970 UTC."""
        when = self.when
        return milliseconds(when) if isinstance(when, datetime) else when


def call_text(tool: str, args: object) -> str:
    """Return what is indexed of a call: the tool's name, then its argument values, one a line.

    Values are the decoded strings and numbers of `args` in document order; keys, booleans and null are
    left out (a key is the tool's word, not the session's).
    """
    texts = [tool]
    if type(args) is dict:  # nearly every call: one level, walked without the stack
        for value in args.values():
            kind = type(value)
            if kind is str:
                texts.append(value)
            elif kind is int or kind is float:
                texts.append(str(value))
            elif kind is dict or kind is list:
                texts += values(value)
        return "\n".join(texts)
    return "\n".join((tool, *values(args)))


def values(args: object) -> Iterator[str]:
    """Yield the string and number values of decoded JSON in document order, without recursion."""
    stack = [args]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack.extend(reversed(value.values()))
        elif isinstance(value, list):
            stack.extend(reversed(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield str(value)
