"""Calls that the owner must approve: asked for, approved, made once.

In: a method with its literal arguments, who calls and under which label. Out: a question among what waits for the
owner, and its answer. An approval is for that session, label and call, letter for letter; it is used up in the
journal before anything is done by it, and it expires. Which calls need one is not decided here.
"""

from hashlib import sha256
from typing import Any

import msgspec

from memoryd import points
from memoryd.clock import rfc3339
from memoryd.errors import NotFound
from memoryd.errors import Pending as Waits
from memoryd.labels import Label
from memoryd.notes.desk import Notes
from memoryd.notes.edit import told_label
from memoryd.notes.ids import new_txn
from memoryd.notes.pending import Call
from memoryd.notes.replay import Entry
from memoryd.notes.request import Asker


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A call as its session makes it; `repeat` and `rule` as in `Call`."""

    method: str
    args: dict[str, Any]
    rule: str
    repeat: bool


def digest(wanted: Wanted, asker: Asker) -> str:
    """Return the hash that binds a call to its arguments, its session and that session's label."""
    bound = [asker.client, asker.log, list(asker.session), wanted.method, wanted.args]
    return sha256(msgspec.json.encode(bound, order="sorted")).hexdigest()


def check(notes: Notes, wanted: Wanted, asker: Asker) -> None:
    """Return once, where the owner has approved this very call; else ask, once.

    Raises: Pending with the question's ``txn``; TooLarge (``quota``), IOFailed.
    """
    with notes.alone():
        now = notes.clock()
        found = notes.pending.call(digest(wanted, asker), now)
        if found is not None and notes.journal.state.calls[found.txn]:
            use(notes, found, asker)
            return
        raise _waits(found or _asked(notes, wanted, asker, now))


def _asked(notes: Notes, wanted: Wanted, asker: Asker, now: int) -> Call:
    call = Call(
        txn=new_txn(now),
        created=now,
        client=asker.client,
        session=asker.log,
        n=asker.n,
        level=asker.session.level,
        untrusted=asker.session.untrusted,
        rule=wanted.rule,
        method=wanted.method,
        args=wanted.args,
        repeat=wanted.repeat,
        digest=digest(wanted, asker),
    )
    notes.wait_for_owner(
        call, _entry(notes, "ask", asker) | {"txn": call.txn, **_told(notes, call)}
    )
    return call


def approve(notes: Notes, owner: Asker, call: Call) -> dict[str, Any]:
    """Approve a call; one that need not be repeated is used up, and is in the answer for whoever makes it.

    The caller is `alone`. Raises: NotFound when it has expired, IOFailed.
    """
    if notes.clock() >= notes.pending.ends(call):
        raise NotFound("that call has waited too long", remedy="its session asks again")
    told = {"status": "approved", "txn": call.txn, "method": call.method, "changed": True}
    if not call.repeat:
        use(notes, call, owner)
        caller = None if call.session is None else {"log": call.session, "n": call.n}
        made = {"method": call.method, "args": call.args, "caller": caller}
        return {**told, "text": f"approved {call.method}", "call": made}
    if not notes.journal.state.calls[call.txn]:
        entry = _entry(notes, "approve", owner) | {"of": call.txn, "op": call.method}
        notes.journal.append(entry)
        notes.journal.set_anchor()
    until = rfc3339(notes.pending.ends(call))
    return {**told, "text": f"approved: its session may call {call.method} so once, until {until}"}


def use(notes: Notes, call: Call, asker: Asker) -> None:
    """Use an approval up, durable before anything is done by it; the caller is `alone`. Raises: IOFailed."""
    entry = _entry(notes, "use", asker) | {"of": call.txn, "op": call.method}
    notes.journal.append(entry)
    points.reached("notes: use written")
    notes.journal.set_anchor()
    notes.pending.drop(call.txn)


def _told(notes: Notes, call: Call) -> Entry:
    """Return what the journal says of a call: not its arguments, which may quote anything."""
    label = told_label(notes.classes, Label(call.level, call.untrusted))
    return {"op": call.method, "digest": call.digest, "label": label, "reason": call.rule}


def _entry(notes: Notes, kind: str, asker: Asker) -> Entry:
    actor = {"client": asker.client, "uid": asker.uid, "pid": asker.pid, "owner": asker.owner}
    session = None if asker.log is None else {"log": asker.log, "n": asker.n}
    return {"kind": kind, "ts": rfc3339(notes.clock()), "actor": actor, "session": session}


def _waits(call: Call) -> Waits:
    how = (
        "repeat the call as it is once they have"
        if call.repeat
        else "it is done as soon as they have"
    )
    return Waits(
        f"{call.method}: the owner must approve this call",
        remedy=f"{how}; they see it with `bxctl memory notes pending`",
        check="ask",
        status="pending",
        txn=call.txn,
        rule=call.rule,
    )
