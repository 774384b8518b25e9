"""The owner's looks at lessons: `lessons.list`, `lessons.ledger` and `lessons.days`, of the owner's socket alone.

In: checked arguments. Out: maps, each with the join of the labels of all that it tells, and of each row the name
of its own class. They change nothing; each leaves its line in the read log.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import apsw
import msgspec

from memoryd.db import Deadline
from memoryd.labels import Label
from memoryd.lessons import looking
from memoryd.lessons.reader import Reader
from memoryd.serve.calls import Common, Methods, Slow, fitting
from memoryd.serve.lesson_forms import Name, Words
from memoryd.serve.lessoning import Room, who
from memoryd.serve.peers import Asker

Answer = dict[str, Any]
Told = tuple[list[dict[str, object]], Label]
Look = Callable[[apsw.Connection, Reader, Any], Told]


class List(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which lessons."""

    id: Name | None = None
    query: Words = ""
    status: Literal["active", "superseded", "stale", "archived"] | None = None
    after: Name | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class Ledger(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which tellings."""

    lesson: Name | None = None
    before: Annotated[int, msgspec.Meta(ge=0)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100


class Days(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """How many days, the latest ones."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=3_660)] = 366


def table(room: Room) -> Methods:
    """Return the methods by their names."""
    return {
        "lessons.list": _looks(room, "list", List, _list),
        "lessons.ledger": _looks(room, "ledger", Ledger, _ledger),
        "lessons.days": _looks(room, "days", Days, _days),
    }


_PARTS = {"list": "lessons", "ledger": "tellings", "days": "days"}


def _looks(room: Room, name: str, form: type[Common], look: Look) -> Slow:
    async def run(asker: Asker, args: Any, deadline: Deadline) -> Answer:
        given = await who(room, asker, None)

        def work(connection: apsw.Connection) -> Answer:
            rows, label = look(connection, given.reader, args)
            answer = {_PARTS[name]: [_named(room, one) for one in rows], "label": room.label(label)}
            ids = [str(one.get("id", one.get("lesson"))) for one in rows if name != "days"]
            room.reads.note(asker, f"lessons.{name}", ids, answer["label"])
            return answer

        return await room.tutor.read(work, deadline)

    return Slow(fitting(form), run)


def _named(room: Room, told: dict[str, object]) -> dict[str, object]:
    """Return a row with the name of its class in place of the number."""
    if "level" not in told:
        return told
    level = told.pop("level")
    return told | {"class": room.classes.name(int(str(level)))}


def _list(connection: apsw.Connection, reader: Reader, args: List) -> Told:
    page = looking.Page(
        id=args.id, query=args.query, status=args.status, after=args.after, limit=args.limit
    )
    return looking.lessons(connection, reader, page)


def _ledger(connection: apsw.Connection, reader: Reader, args: Ledger) -> Told:
    return looking.tellings(
        connection, reader, lesson=args.lesson, before=args.before, limit=args.limit
    )


def _days(connection: apsw.Connection, reader: Reader, args: Days) -> Told:
    return looking.days(connection, reader, most=args.limit)
