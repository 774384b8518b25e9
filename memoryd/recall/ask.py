"""The arguments of the reading methods, checked: what a client may ask, and what it gets by default.

In: the map of a request without `caller`, `deadline_ms` and `max_class` (the serving room's business).
Out: an `Ask`, a `Listing` or a `Get`. Names, lists and bounds here are those of docs/protocol.md.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from memoryd.clock import parse_rfc3339
from memoryd.errors import BadRequest
from memoryd.index.scope import Policy
from memoryd.index.search import MOST_NEIGHBOURS, Order
from memoryd.index.where import Filters
from memoryd.recall.query import Mode, clean
from memoryd.records import KIND_WORDS, Kind

Group = Literal["record", "session"]
_MOST_STARS = 4

Name = Annotated[str, Meta(max_length=1_024)]
Time = Annotated[str, Meta(max_length=64)] | int
"""RFC 3339, or ms since 1970 UTC."""
Cursor = Annotated[str, Meta(max_length=256)]
Neighbours = Annotated[int, Meta(ge=0, le=MOST_NEIGHBOURS)]


class Narrow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rows are meant; the filters of every method that looks at many."""

    kinds: tuple[str, ...] = ()
    session: Name | None = None
    project: Name | None = None
    source: Name | None = None
    tool: Annotated[str, Meta(max_length=128)] | None = None
    since: Time | None = None
    until: Time | None = None
    untrusted: Policy | None = None

    def filters(self) -> Filters:
        """Return them as the index takes them. Raises: BadRequest naming the argument."""
        if self.tool is not None and self.tool.count("*") > _MOST_STARS:
            # SQLite tries every way to share a name out among the stars.
            raise BadRequest(
                f"tool: more than {_MOST_STARS} stars", remedy="use fewer", field="tool"
            )
        return Filters(
            kinds=tuple(sorted({_kind(word) for word in self.kinds})),
            session=self.session,
            project=self.project,
            source=self.source,
            tool=self.tool,
            since=_moment("since", self.since),
            until=_moment("until", self.until),
        )


class Ask(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question to the memory."""

    query: str
    mode: Mode = "smart"
    order: Order = "relevance"
    group: Group = "record"
    recency: bool = True
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    cursor: Cursor | None = None
    snippet_tokens: Annotated[int, Meta(ge=8, le=64)] = 32
    budget_tokens: Annotated[int, Meta(ge=50, le=1_000_000)] | None = None
    text: bool = False

    def question(self) -> object:
        """Return what makes it this question and no other, whatever page of the answer is asked for."""
        form = (self.mode, self.order, self.group, self.recency)
        return (clean(self.query), *form, self.filters())


class Listing(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of sessions or projects."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 50
    cursor: Cursor | None = None


class Get(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One record, and how many of its neighbours."""

    id: Annotated[str, Meta(max_length=64)]
    before: Neighbours = 0
    after: Neighbours = 0


class Records(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of one session."""

    session: Name
    source: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    cursor: Cursor | None = None


Asked = TypeVar("Asked", Ask, Listing, Get, Records)


def read(arguments: Mapping[str, object], form: type[Asked]) -> Asked:
    """Return `arguments` as a `form`. Raises: BadRequest naming the argument and what it should be."""
    try:
        asked = msgspec.convert(dict(arguments), form)
    except msgspec.ValidationError as error:
        raise BadRequest(str(error), remedy="see docs/protocol.md") from None
    for name, value in arguments.items():
        if name != "query" and isinstance(value, str) and _unpaired(value):
            raise BadRequest(
                f"{name}: half a surrogate pair is no text", remedy="send UTF-8", field=name
            )
    return asked


def _kind(word: str) -> Kind:
    if word not in KIND_WORDS:
        raise BadRequest(
            "kinds: no such kind", remedy=f"there are {', '.join(KIND_WORDS)}", field="kinds"
        )
    return KIND_WORDS[word]


def _moment(name: str, value: str | int | None) -> int | None:
    if isinstance(value, str):
        moment = parse_rfc3339(value)
        if moment is None:
            raise BadRequest(
                f"{name}: no time",
                remedy="write it like 2026-01-31 or 2026-01-31T12:00:00Z",
                field=name,
            )
        return moment
    if value is not None and not -(1 << 62) < value < 1 << 62:
        raise BadRequest(f"{name}: out of range", remedy="give ms since 1970", field=name)
    return value


def _unpaired(text: str) -> bool:
    """Say whether `text` has half a surrogate pair, which no UTF-8 and so no index can hold."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)
