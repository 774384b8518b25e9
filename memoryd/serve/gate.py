"""The gate around the methods: what the table of grants says of a call, before the method sees it.

In: the methods, who asks, the call. Out: the same methods, of which some now wait for the owner or refuse. The gate
stands around the methods themselves, so that no way leads round it: a tool's call and a direct one meet the same
cell. What an edit of a note may do, the notes' own check decides by the same table, with the note at hand; here it
counts as a look at the note.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import trio

from memoryd.broker import grants
from memoryd.db import Deadline
from memoryd.errors import Internal, NotGranted
from memoryd.labels import Classes, Label
from memoryd.notes import approvals, names
from memoryd.notes.request import Asker as Session
from memoryd.serve.asking import Caller, scope_of, unnamed
from memoryd.serve.calls import Common, Method, Methods, Slow
from memoryd.serve.noting import Desk, claimed
from memoryd.serve.peers import Asker

_NOT_THE_CALL = frozenset({"caller", "deadline_ms", "owner", "asked"})


class Gate(msgspec.Struct, frozen=True):
    """What the gate looks at: labels and what waits, and how a lesson is read."""

    desk: Desk
    lesson: Method | None


def gated(methods: Methods, desk: Desk) -> dict[str, Method]:
    """Return the methods behind the gate."""
    gate = Gate(desk, methods.get("lessons.get"))
    made = {name: _behind(name, method, gate) for name, method in methods.items()}
    if "notes.accept" in methods:
        made["notes.accept"] = _accepting(methods)
    return made


def _behind(name: str, method: Method, gate: Gate) -> Method:
    if name not in grants.TOOLS or not isinstance(method, Slow):
        return method

    async def run(asker: Asker, args: Any, deadline: Deadline) -> object:
        await admit(gate, asker, name, args, deadline)
        return await method.run(asker, args, deadline)

    return Slow(method.check, run)


async def admit(gate: Gate, asker: Asker, name: str, args: Any, deadline: Deadline) -> None:
    """Return where the call may be made now.

    A person is whoever names no session at the owner's socket; where a method asks for it (`owner`), only who
    says so. Raises: NotGranted with its rule, Pending, Behind, NotFound, BadRequest.
    """
    desk = gate.desk
    caller: Caller | None = getattr(args, "caller", None)
    if asker.capability.owner and caller is None and getattr(args, "owner", True):
        return
    wanted = _wanted(desk, asker, name, args)
    observes = grants.observes(name)
    if observes and (caller is None or wanted is None):
        return  # within its own class, or within the socket's where it names no session
    session = await _session(desk, asker, args, caller)
    above = wanted is not None and _above(desk.classes, asker, wanted, session.session)
    literal = arguments(args)
    act = grants.act_of(name, literal, above=above)
    level = desk.classes.top if observes else await _level(gate, asker, args, session, deadline)
    said = grants.verdict(act, grants.standing(session.session, level))
    if said.decision == "deny":
        raise NotGranted(
            "the grants do not let this session do that",
            remedy="the owner can do it, with `bxctl`",
            check="grant",
            rule=said.rule,
        )
    if said.decision != "allow":
        call = approvals.Wanted(method=name, args=literal, rule=said.rule, repeat=observes)
        check: Callable[[], None] = partial(approvals.check, desk.open(), call, session)
        await trio.to_thread.run_sync(check)


def arguments(args: Common) -> dict[str, Any]:
    """Return a call's literal arguments, by name, without who calls and how long they wait."""
    told: dict[str, Any] = msgspec.to_builtins(args)
    given = {**told, **told.get("asked", {})}
    return {
        name: value
        for name, value in given.items()
        if name not in _NOT_THE_CALL and value is not None
    }


async def _session(desk: Desk, asker: Asker, args: Common, caller: Caller | None) -> Session:
    """Return who calls, under the label that the daemon folds; no session: as the socket says, untrusted."""
    allowed, peer = asker.capability, asker.peer
    label = unnamed(allowed, desk.classes)
    if caller is not None:
        label = await desk.keeper.label_of(caller)
    return Session(
        client=allowed.name,
        clearance=allowed.level,
        session=label.join(claimed(desk.classes, getattr(args, "label", None))),
        tools=frozenset(allowed.tools),
        uid=peer.uid,
        pid=peer.pid,
        log=None if caller is None else caller.log,
        n=None if caller is None else caller.n,
    )


def _wanted(desk: Desk, asker: Asker, name: str, args: Any) -> str | None:
    """Return the class that a call asks for by name, or by the path of the note that it edits."""
    if not name.startswith("notes.") or hasattr(args, "max_class"):
        wanted: str | None = getattr(args, "max_class", None)
        return wanted
    path = getattr(args, "path", getattr(args, "old_path", ""))
    return class_of(path, desk.classes, asker.capability.level) or None


def class_of(path: str, classes: Classes, clearance: int) -> str:
    """Return the class that a note's path names, "" for none up to the clearance."""
    root, _, below = path.partition(f"{names.ROOT}/")
    first = below.split("/")[0]
    return first if not root and first in classes.upto(clearance) else ""


async def _level(gate: Gate, asker: Asker, args: Any, session: Session, deadline: Deadline) -> int:
    """Return the class of what a call acts on: of the lesson that it names, else the session's own.

    Raises: NotFound for a lesson that the session does not see.
    """
    named = getattr(args, "memory_id", None)
    if gate.lesson is None or named is None:
        return session.session.level
    method = slow(gate.lesson)
    caller = {} if session.log is None else {"caller": {"log": session.log, "n": session.n}}
    found: Any = await method.run(asker, method.check({"id": named, **caller}), deadline)
    return gate.desk.classes.level(found["label"]["class"])


def _above(classes: Classes, asker: Asker, wanted: str, session: Label) -> bool:
    """Say whether a call is answered from above its session's class.

    The method's own reading of `max_class` decides: a class above the clearance counts as the clearance, which may
    well be above the session. Raises: BadRequest for a name that is no class.
    """
    return scope_of(asker.capability, classes, wanted, session).level > session.level


def _accepting(methods: Methods) -> Method:
    """Return `notes.accept`, which also makes the calls that need no repeating."""
    accept = slow(methods["notes.accept"])

    async def run(asker: Asker, args: Any, deadline: Deadline) -> object:
        answer: Any = await accept.run(asker, args, deadline)
        told: dict[str, Any] = answer
        call = told.pop("call", None)
        if call is None:
            return told
        method = slow(methods[call["method"]])
        checked = method.check({**call["args"], "caller": call["caller"]})
        return {**told, "answer": await method.run(asker, checked, deadline)}

    return Slow(accept.check, run)


def slow(method: Method) -> Slow:
    """Return a method that can wait; every one that a tool becomes can. Raises: Internal."""
    if isinstance(method, Slow):
        return method
    raise Internal("a tool's method must be able to wait")
