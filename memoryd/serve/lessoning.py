"""The methods of lessons: what each takes, who it acts for, and the line it leaves in the read log.

In: checked arguments and who asks. Out: maps, each with the join of the labels of all that it tells. A reader's
scope is made as for any reading method, so that what lies above it is absent: from rows, from counts, from errors.
A session that names itself acts under the label that the daemon folds from its log; whoever names none acts as
the highest class and untrusted, but for a person at the owner's socket. What an agent writes or thinks changes
nothing for readers who may not know what it has seen.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import apsw
import msgspec
import trio

from memoryd import clock
from memoryd.db import Deadline
from memoryd.errors import BadRequest, CheckFailed, NotFound, NotGranted, Unavailable
from memoryd.index import Known
from memoryd.labels import LOWEST, Classes, Label
from memoryd.lessons import exchange, row, tools
from memoryd.lessons.reader import Reader
from memoryd.serve import lesson_forms as forms
from memoryd.serve import proposing
from memoryd.serve.asking import Caller, scope_of, unnamed
from memoryd.serve.calls import Common, Methods, Slow, fitting
from memoryd.serve.lesson_reads import READS, Told, Who, joined, named, of_session
from memoryd.serve.noting import claimed
from memoryd.serve.peers import Asker
from memoryd.serve.reads import Reads
from memoryd.serve.tutor import Tutor

Answer = dict[str, Any]
Act = Callable[["Room", Asker, Any, Deadline], Awaitable[Answer]]


class Keeper(Protocol):
    """What lessons need of whoever keeps the index."""

    async def label_of(self, caller: Caller) -> Label:
        """Return the label of the asking session. Raises: Behind."""

    def named(self, log: str) -> list[tuple[int, Known]]:
        """Return the logs at this path."""


class Room(msgspec.Struct, frozen=True):
    """What the methods of lessons act on."""

    kept: Tutor | None
    classes: Classes
    keeper: Keeper
    reads: Reads

    @property
    def tutor(self) -> Tutor:
        """Return who keeps the lessons. Raises: Unavailable."""
        if self.kept is None:
            raise Unavailable("lessons are not served", remedy="see `bxctl status`")
        return self.kept

    def label(self, label: Label) -> dict[str, object]:
        """Return a label as it travels."""
        return {"class": self.classes.name(label.level), "untrusted": label.untrusted}


def table(room: Room) -> Methods:
    """Return every method of lessons by name; which socket grants which is in `peers`."""
    acts: dict[str, tuple[type[Common], Act]] = {
        "save": (forms.Save, _save),
        "recall": (forms.Recall, _recall),
        "retrospective": (forms.Retrospective, _retrospective),
        "export": (forms.Export, _export),
        "import": (forms.Import, _import),
        "config": (forms.Config, _config),
        "feedback": (forms.Feedback, _feedback),
        "propose": (forms.Propose, _propose),
        "idle": (forms.Idle, _idle),
    }
    reading = {f"lessons.{name}": _reads(room, name) for name in READS}
    acting = {
        f"lessons.{name}": Slow(fitting(form), partial(act, room))
        for name, (form, act) in acts.items()
    }
    return reading | acting


async def who(
    room: Room, asker: Asker, caller: Caller | None, max_class: str | None = None, *,
    session: str | None = None, project: str | None = None,
) -> Who:  # fmt: skip
    """Return for whom a request acts. Raises: Behind, BadRequest, NotGranted.

    The session is the caller's; the owner may name one instead. Nobody else may ask for another session: what
    that was told is not theirs. A person at the owner's socket has the lowest label: what a person does tells
    nobody what an agent has seen.
    """
    label = None if caller is None else await room.keeper.label_of(caller)
    scope = scope_of(asker.capability, room.classes, max_class, label)
    owner = scope.owner and scope.level == room.classes.top and caller is None
    reader = Reader(scope.level, scope.untrusted, scope.projects, owner=owner)
    session = session if asker.capability.owner else None
    for _, known in () if caller is None else room.keeper.named(caller.log)[:1]:
        session, project = session or known.session, project or known.project
    if label is None:
        label = LOWEST if asker.capability.owner else unnamed(asker.capability, room.classes)
    return Who(reader, session or "", project or "", label)


def _reads(room: Room, name: str) -> Slow:
    form, read = READS[name]

    async def run(asker: Asker, args: Any, deadline: Deadline) -> Answer:
        session, project = named(args)
        given = await who(
            room, asker, args.caller, args.max_class, session=session, project=project
        )
        now = clock.now_ms()

        def work(connection: apsw.Connection) -> Answer:
            return _told(room, asker, name, read(connection, given, args, now))

        return await room.tutor.read(work, deadline)

    return Slow(fitting(form), run)


def _told(room: Room, asker: Asker, name: str, told: Told) -> Answer:
    """Return an answer with its label, written down in the read log before it leaves."""
    answer, ids, label = told
    labelled = answer | {"label": room.label(label)}
    room.reads.note(asker, f"lessons.{name}", ids, labelled["label"])
    return labelled


async def _recall(room: Room, asker: Asker, args: forms.Recall, deadline: Deadline) -> Answer:
    session, project = named(args)
    given = await who(room, asker, args.caller, args.max_class, session=session, project=project)
    asked = given.ask(args.query, "pull", clock.now_ms())

    def work(connection: apsw.Connection) -> Answer:
        found = tools.recall(connection, given.reader, asked, limit=args.limit, scope=args.scope)
        ids = [str(one["id"]) for one in found]
        label = joined(connection, given.reader, ids)
        return _told(room, asker, "recall", ({"lessons": found}, ids, label))

    return await room.tutor.write(work)


async def _save(room: Room, asker: Asker, args: forms.Save, deadline: Deadline) -> Answer:
    given = await who(room, asker, args.caller, session=args.source_session, project=args.project)
    label = await _written_as(room, asker, args, given)
    if not given.reader.covers(Label(0, False), given.project):
        raise BadRequest("project: no such project", remedy="name one of the socket's projects")
    saved = tools.Saved(
        type=args.type,
        content=args.content,
        label=label,
        now=clock.now_ms(),
        scope=args.scope,
        project=given.project,
        session=given.session or None,
        tool=args.source_tool,
        relevance=args.relevance if args.relevance_score is None else args.relevance_score,
        metadata=args.metadata,
    )
    told = await room.tutor.write(lambda connection: tools.save(connection, given.reader, saved))
    return told | {"label": room.label(label)}


async def _written_as(room: Room, asker: Asker, args: forms.Save, given: Who) -> Label:
    """Return the label of what is written. Raises: NotGranted."""
    said = claimed(room.classes, args.label)
    if args.owner:
        if not asker.capability.owner or args.caller is not None:
            raise NotGranted(
                "only a person at the owner's socket acts as the owner",
                remedy="leave `owner` out, or name no `caller`",
            )
        return Label(room.classes.top, False) if args.label is None else said
    if args.caller is None:
        return room.classes.highest
    return given.label.join(said)


async def _feedback(room: Room, asker: Asker, args: forms.Feedback, deadline: Deadline) -> Answer:
    given = await who(room, asker, args.caller, args.max_class, session=named(args)[0])
    verdict = tools.Verdict(
        memory_id=args.memory_id, verdict=args.verdict, now=clock.now_ms(), note=args.note,
        session=given.session or None,
    )  # fmt: skip

    def work(connection: apsw.Connection) -> Answer:
        lesson = row.get(connection, args.memory_id, given.reader)
        if lesson is not None and given.label.level > lesson.label.level:
            raise CheckFailed(
                "this session has seen more than the lesson's readers may know of",
                remedy="let a person say it: `bxctl memory lessons feedback`",
                check="label",
            )
        answer = tools.feedback(connection, given.reader, verdict)
        label = joined(connection, given.reader, [args.memory_id])
        return _told(room, asker, "feedback", (answer, [args.memory_id], label))

    return await room.tutor.write(work)


async def _config(room: Room, asker: Asker, args: forms.Config, deadline: Deadline) -> Answer:
    if args.action == "list":
        given = await who(room, asker, None)
        listed = await room.tutor.read(
            lambda connection: tools.config(connection, given.reader), deadline
        )
        return {"settings": listed}
    if not asker.capability.owner or args.caller is not None:
        raise NotGranted("only the owner sets a setting", remedy="ask through the owner's socket")
    given = await who(room, asker, None)
    return await room.tutor.write(
        lambda connection: tools.config(connection, given.reader, "set", args.key, args.value)
    )


async def _export(room: Room, asker: Asker, args: forms.Export, deadline: Deadline) -> Answer:
    given = await who(room, asker, args.caller, args.max_class)

    def work(connection: apsw.Connection) -> Answer:
        told = tools.export(connection, given.reader, args.format, untrusted=args.untrusted)
        ids = [entry.keys["id"] for entry in exchange.entries(told)]
        label = joined(connection, given.reader, ids)
        answer = {"format": args.format, "bundle": told, "lessons": len(ids)}
        return _told(room, asker, "export", (answer, ids, label))

    return await room.tutor.read(work, deadline)


async def _import(room: Room, asker: Asker, args: forms.Import, deadline: Deadline) -> Answer:
    label = room.classes.highest if args.label is None else claimed(room.classes, args.label)
    if args.caller is not None:
        label = label.join(await room.keeper.label_of(args.caller))
    given = await who(room, asker, args.caller)
    now = clock.now_ms()
    return await room.tutor.write(
        lambda connection: exchange.bring_in(
            connection, args.bundle, label, now=now, project=args.project, reader=given.reader
        )
    )


async def _retrospective(
    room: Room, asker: Asker, args: forms.Retrospective, deadline: Deadline
) -> Answer:
    given = await who(room, asker, args.caller, session=named(args)[0])
    if not given.session:
        return {"message": "no session is named"}
    home, now = room.tutor.settings.home, clock.now_ms()

    def work(connection: apsw.Connection) -> Answer:
        # A caller's page holds what the caller may see: it is told where the page lies.
        answer = tools.retrospective(connection, given.reader, given.session, home=home, now=now)
        label = of_session(connection, given.reader, given.session)
        return _told(room, asker, "retrospective", (answer, [], label))

    return await room.tutor.write(work)


async def _propose(room: Room, asker: Asker, args: forms.Propose, deadline: Deadline) -> Answer:
    if args.caller is not None and args.approve:
        raise NotGranted("only the owner approves", remedy="run `bxctl memory lessons propose`")
    given = await who(room, asker, args.caller)

    def read(connection: apsw.Connection) -> tuple[str, list[str], Label]:
        drafted, told = proposing.lines(connection, given.reader, args.project)
        return drafted, told, joined(connection, given.reader, told)

    lines, ids, label = await room.tutor.read(read, deadline)
    home = room.tutor.settings.home
    work = partial(
        proposing.propose, args.project, args.file, lines, args.hash if args.approve else None, home
    )
    if args.approve and args.hash is None:
        raise BadRequest("hash: missing", remedy="give the hash of the draft that was shown")
    return _told(room, asker, "propose", (await trio.to_thread.run_sync(work), ids, label))


async def _idle(room: Room, asker: Asker, args: forms.Idle, deadline: Deadline) -> Answer:
    # By its name on every socket: a harness's hook knows no other, and whoever could say it falsely could name a log
    # falsely. Nothing is told in return, not even whether there is such a session.
    session = named(args)[0]
    given = await who(room, asker, args.caller, session=session)
    if not (resting := given.session or session):
        raise NotFound("no such session", remedy="name its `caller`, or its `session_id`")
    await room.tutor.rest(resting, ended=args.end)
    return {"idle": True}
