"""One question, one clearance, one budget: the way from a request to what is told.

In: a `Reader`, the asking socket's `Scope`, the arguments of a request, a deadline. Out: the map that
travels. Each answer comes from one snapshot of the index and carries the label of all that is in it.
"""

from collections.abc import Mapping

from memoryd.db import Deadline
from memoryd.index import listing, search, timeline
from memoryd.index.scope import Scope
from memoryd.index.search import Reader, snapshot
from memoryd.recall import question
from memoryd.recall.ask import Ask, Get, Listing, Records, read
from memoryd.recall.scope import narrowed


def recall(
    reader: Reader, scope: Scope, arguments: Mapping[str, object], deadline: Deadline
) -> dict[str, object]:
    """Answer ``{hits, label, cursor, capped}``.

    `capped`: only the rows read last were ranked, because every word asked for is common. Raises:
    BadRequest, TooLarge, Conflict (a cursor that does not fit), TimedOut, Cancelled.
    """
    ask = read(arguments, Ask)
    tighter = narrowed(scope, untrusted=ask.untrusted)
    with snapshot(reader, deadline):
        return question.answer(reader, tighter, ask)


def get(
    reader: Reader, scope: Scope, arguments: Mapping[str, object], deadline: Deadline
) -> dict[str, object]:
    """Answer ``{record, before, after, label}``. Raises: BadRequest, NotFound, TimedOut, Cancelled."""
    asked = read(arguments, Get)
    with snapshot(reader, deadline):
        return search.get(reader, scope, asked.id, before=asked.before, after=asked.after)


def sessions(
    reader: Reader, scope: Scope, arguments: Mapping[str, object], deadline: Deadline
) -> dict[str, object]:
    """Answer ``{sessions, label, cursor}``. Raises: BadRequest, Conflict, TimedOut, Cancelled."""
    asked = read(arguments, Listing)
    tighter = narrowed(scope, untrusted=asked.untrusted)
    with snapshot(reader, deadline):
        return listing.sessions(
            reader, tighter, asked.filters(), limit=asked.limit, cursor=asked.cursor
        )


def projects(
    reader: Reader, scope: Scope, arguments: Mapping[str, object], deadline: Deadline
) -> dict[str, object]:
    """Answer ``{projects, label, cursor}``. Raises: BadRequest, Conflict, TimedOut, Cancelled."""
    asked = read(arguments, Listing)
    tighter = narrowed(scope, untrusted=asked.untrusted)
    with snapshot(reader, deadline):
        return listing.projects(
            reader, tighter, asked.filters(), limit=asked.limit, cursor=asked.cursor
        )


def records(
    reader: Reader, scope: Scope, arguments: Mapping[str, object], deadline: Deadline
) -> dict[str, object]:
    """Answer ``{records, label, cursor}``. Raises: BadRequest, Conflict, TimedOut, Cancelled."""
    asked = read(arguments, Records)
    with snapshot(reader, deadline):
        return timeline.records(
            reader, scope, asked.session, asked.source, limit=asked.limit, cursor=asked.cursor
        )


def visible_rows(reader: Reader, scope: Scope, deadline: Deadline) -> int:
    """Return how many rows `scope` may see, for `status`. Raises: TimedOut, Cancelled."""
    with snapshot(reader, deadline):
        return search.visible_rows(reader, scope)
