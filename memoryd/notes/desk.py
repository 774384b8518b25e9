"""The notes as one thing to talk to: every edit goes through the check, one at a time.

In: `Edit` and `Asker`. Out: answers as maps; changed files; journal lines. One lock, so that two editors at
once become one after the other, and the second is told. One process at a time holds the notes: a second
one would fork the journal's chain, and is refused.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memoryd import points
from memoryd.clock import now_ms, rfc3339
from memoryd.errors import Busy, Conflict, MemorydError
from memoryd.errors import Pending as Waits
from memoryd.labels import Classes, Label
from memoryd.notes import external, names
from memoryd.notes.blobs import name_of
from memoryd.notes.check import check, check_folder, inbox_name
from memoryd.notes.edit import (
    answer,
    described,
    perform,
    place_label,
    recover,
    told_flags,
    told_label,
)
from memoryd.notes.handles import unsafe
from memoryd.notes.ids import new_txn
from memoryd.notes.journal import Journal
from memoryd.notes.names import Place
from memoryd.notes.note import Kept
from memoryd.notes.pending import Call, Pending, Proposal
from memoryd.notes.request import Asker, Edit, Limits, Rates, Scene, Work
from memoryd.notes.store import Store
from memoryd.notes.together import Together


class Notes:
    """The open notes of one state folder."""

    def __init__(
        self,
        home: Path,
        classes: Classes,
        *,
        limits: Limits | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        """Open ``notes/`` and ``journal/`` below `home`, ending what a kill left open.

        A damaged journal leaves the notes readable (`journal.broken`). Raises: Busy when another process has
        them open, CheckFailed (``unsafe``) for a folder of notes that is none of ours, IOFailed.
        """
        self.limits, self.clock = limits or Limits(), clock
        self.rates = Rates()
        self.summaries: Kept = {}
        self.outside = 0
        self._hashes: external.Hashes = {}
        self._lock = threading.Lock()
        with ExitStack() as opened:
            self.store = Store(home / "notes", classes)
            opened.callback(self.store.close)
            opened.callback(os.close, _held(home / "journal"))
            self.journal = Journal(home / "journal")
            state = self.journal.state
            folder = home / "journal" / "pending"
            self.pending = Pending(folder, state.proposals, state.calls, self.limits)
            if not self.journal.broken:
                recover(self.store, self.journal, rfc3339(clock()))
                self.pending.sweep()
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Give the handles back."""
        self._opened.close()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let nobody else edit meanwhile."""
        with self._lock:
            yield

    @property
    def classes(self) -> Classes:
        """Return the classes whose folders these are."""
        return self.store.classes

    def scene(self) -> Scene:
        """Return what a check looks at, now."""
        live = self.journal.state.live
        return Scene(self.store, live, self.rates, self.limits, self.clock())

    def edit(self, edit: Edit, asker: Asker) -> dict[str, Any]:
        """Check one edit and write it; return the answer.

        Raises: Pending when it waits for the owner; the error of the check that failed; what `perform` raises.
        """
        with self.alone():
            if edit.recursive and edit.command == "delete" and not edit.path.endswith(names.SUFFIX):
                return self._delete_folder(edit, asker)
            work = check(edit, asker, self.scene())
            told = self.carry_out(work)
            if work.changed:
                self._count(work)
            return told

    def carry_out(self, work: Work, **more: object) -> dict[str, Any]:
        """Write checked work or let it wait; the caller is `alone`. Raises: as `edit`."""
        if not work.changed:
            return answer(work, None)
        txn = new_txn(self.clock())
        if work.waits:
            raise self._propose(work, txn)
        perform(self.store, self.journal, work, txn, **more)
        return answer(work, txn)

    def _count(self, work: Work) -> None:
        asker, now = work.asker, work.scene.now_ms
        self.rates.count(asker.client, now)
        if work.place.inbox and work.edit.command == "create" and asker.session.untrusted:
            self.rates.count(inbox_name(asker), now)

    def _propose(self, work: Work, txn: str) -> Waits:
        """Keep an edit for the owner and return what the asker is told. Raises: TooLarge, IOFailed."""
        shown = names.shown(self.classes, work.target or work.place)
        told = {
            "path": shown,
            "label": told_label(self.classes, place_label(work.place)),
            "flags": told_flags(work),
        }
        entry = described(work, "pending", txn)
        self.wait_for_owner(_proposal(work, txn), entry, (work.before, work.after))
        self.rates.count(work.asker.client, work.scene.now_ms)
        return waits(shown, work.waits, txn, work.rule, told)

    def wait_for_owner(
        self,
        waiting: Proposal | Call,
        entry: dict[str, Any],
        contents: tuple[bytes | None, ...] = (),
    ) -> None:
        """Keep what the owner is to answer, durable with its journal `entry`; the caller is `alone`.

        Raises: TooLarge (``quota``), IOFailed.
        """
        self.journal.check_writable()
        self.pending.check_room(waiting.session)
        with Together() as together:
            for content in contents:
                if content is not None:
                    self.journal.blobs.put(content, together)
            seal = self.pending.add(waiting)
            points.reached("notes: proposal stored")
            self.journal.write({**entry, "proposal": seal}, together)
            self.journal.sync(together)
        points.reached("notes: pending written")
        self.journal.set_anchor()

    def _delete_folder(self, edit: Edit, asker: Asker) -> dict[str, Any]:
        """Delete a folder once it and every note in it has passed the check, or let it wait whole."""
        folder, works = self._folder(edit, asker)
        if folder.waits:
            raise self._propose_folder(folder, works)
        told = self.remove_folder(folder, works)
        self.rates.count(asker.client, folder.scene.now_ms)
        return told

    def _folder(self, edit: Edit, asker: Asker) -> tuple[Work, list[Work]]:
        scene = self.scene()
        folder = check_folder(edit, asker, scene)
        works = []
        for found in self.store.walk(folder.place):
            if found.odd:
                raise unsafe(f"{names.shown(self.classes, found.place)}: {found.odd}")
            if not found.folder:
                path = names.shown(self.classes, found.place)
                works.append(check(replace(edit, path=path, recursive=False), asker, scene))
        return folder, works

    def _propose_folder(self, folder: Work, works: list[Work]) -> Waits:
        txn = new_txn(self.clock())
        held = {
            names.stored(self.classes, work.place): name_of(work.before)
            for work in works
            if work.before is not None
        }
        shown = names.shown(self.classes, folder.place)
        told = {"path": shown, "label": told_label(self.classes, place_label(folder.place))}
        proposal = replace(_proposal(folder, txn), folder=held)
        self.wait_for_owner(proposal, described(folder, "pending", txn))
        self.rates.count(folder.asker.client, folder.scene.now_ms)
        return waits(shown, folder.waits, txn, folder.rule, told)

    def accepted_folder(self, proposal: Proposal, edit: Edit, asker: Asker) -> dict[str, Any]:
        """Delete the folder of a proposal if it holds just the notes that were shown; the caller is `alone`.

        Raises: Conflict (``stale``), what the check raises.
        """
        folder, works = self._folder(edit, asker)
        now = {
            names.stored(self.classes, work.place): name_of(work.before)
            for work in works
            if work.before is not None
        }
        if now != proposal.folder:
            raise Conflict(
                "the folder holds other notes than when this was asked",
                remedy=f"reject it: `bxctl memory notes reject {proposal.txn}`",
                check="stale",
            )
        return self.remove_folder(folder, works)

    def remove_folder(self, folder: Work, works: list[Work]) -> dict[str, Any]:
        """Carry out the removal of a folder and all notes in it; the caller is `alone`."""
        told = [self.carry_out(work) for work in works]
        place = folder.place
        self.store.remove_folder(place)
        shown = names.shown(self.classes, place)
        return {
            "status": "deleted",
            "path": shown,
            "changed": True,
            "txn": told[-1]["txn"] if told else None,
            "txns": [each["txn"] for each in told],
            "count": len(told),
            "label": told_label(self.classes, place_label(place)),
            "flags": [],
            "hash": None,
            "bytes": None,
            "text": f"deleted {shown} with {len(told)} notes",
        }

    def look_after(self) -> None:
        """Journal what was changed outside, and let proposals expire that nobody has answered.

        Raises: DiskFull, IOFailed.
        """
        with self.alone():
            if self.journal.broken:
                return
            now = self.clock()
            self.outside = external.notice(self.store, self.journal, self._hashes, now)
            for proposal in self.pending.expired(now):
                self.end_proposal(proposal.txn, "expired")

    def end_proposal(self, txn: str, reason: str, kind: str = "reject") -> None:
        """Journal what became of something that waited, and drop it; the caller is `alone`. Raises: IOFailed."""
        self.journal.append(
            {"kind": kind, "ts": rfc3339(self.clock()), "of": txn, "reason": reason}
        )
        self.journal.set_anchor()
        self.pending.drop(txn)

    def external(self, place: Place, content: bytes | None) -> bool:
        """Say whether a note's bytes are not those of its last edit."""
        path = names.stored(self.classes, place)
        return not external.known(self.journal.state, path, content)


def _held(folder: Path) -> int:
    """Return a handle that keeps other processes out until it is closed. Raises: Busy."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise Busy(
            "another process has the notes open", remedy="edit through its socket: `bxctl`"
        ) from None
    return handle


def _proposal(work: Work, txn: str) -> Proposal:
    asker = work.asker
    return Proposal(
        txn=txn,
        created=work.scene.now_ms,
        client=asker.client,
        session=asker.log,
        n=asker.n,
        level=asker.session.level,
        untrusted=asker.session.untrusted,
        rule=work.rule,
        edit=work.edit,
        before=None if work.before is None else name_of(work.before),
        after=None if work.after is None else name_of(work.after),
        flags=told_flags(work),
    )


_WAITING = {
    "pend": "stored for the owner to review, and not visible until accepted",
    "ask": "the owner must approve this; it is done as soon as they have",
}


def waits(what: str, how: str, txn: str, rule: str, told: dict[str, Any]) -> Waits:
    """Return what the asker of something that waits is told; `how` as the table of rights says it."""
    return Waits(
        f"{what}: {_WAITING[how]}",
        remedy="go on without it; the owner sees it with `bxctl memory notes pending`",
        check="untrusted" if how == "pend" else "ask",
        status="pending",
        txn=txn,
        rule=rule,
        **told,
    )


def owner_asks(classes: Classes, *, client: str = "memoryd", uid: int = 0, pid: int = 0) -> Asker:
    """Return the owner as asker: every class, every tool, and a label that nothing is below."""
    return Asker(
        client=client, clearance=classes.top, session=Label(0, False), owner=True, uid=uid, pid=pid
    )


def refused(error: MemorydError) -> str:
    """Return the name of the check that an error came from, or its code."""
    return str(error.data.get("check", error.code))
