"""What waits for the owner: proposed edits and calls to approve, one file each, contents among the blobs.

In: checked work that may not be written yet, or a call that the grants do not let through by themselves. Out:
``journal/pending/TXN.json`` with everything needed to put the edit through the whole check again when the owner
accepts it, as the owner, against the bytes it was made on; or the literal call. The journal seals a hash of each
file: what the owner is shown is what was asked for, and what is done.
"""

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from memoryd.errors import CheckFailed, NotFound, TooLarge
from memoryd.notes.blobs import sync_folder, write_file
from memoryd.notes.handles import failed
from memoryd.notes.request import DAY_MS, Edit, Limits

HOUR_MS = DAY_MS // 24


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Who asked for something, when, under which label, and by which rule it has to wait."""

    txn: str
    created: int
    client: str
    session: str | None
    n: int | None
    level: int
    untrusted: bool
    rule: str = ""


class Proposal(Waiting, frozen=True, kw_only=True):
    """A waiting edit: what, on which bytes, and what it would make.

    `folder`: for a folder's removal, every note in it with its hash; the edit is of these and no others.
    """

    edit: Edit
    before: str | None
    after: str | None
    flags: list[dict[str, object]] = []
    folder: dict[str, str] | None = None


class Call(Waiting, frozen=True, kw_only=True):
    """A waiting call: the method and its literal arguments.

    `repeat`: once approved its session makes it again, and it is answered once; else the approval does it.
    `digest` binds who may make it, and which call it is.
    """

    method: str
    args: dict[str, Any]
    repeat: bool
    digest: str


class Pending:
    """The folder of what waits; `sealed` maps the transactions to the hashes of their files.

    `calls` says which of them are calls, and whether the owner has approved them.
    """

    def __init__(
        self, folder: Path, sealed: dict[str, str], calls: dict[str, bool], limits: Limits
    ) -> None:
        """Keep what waits in `folder`, made 0700."""
        self.folder, self.sealed, self.calls, self.limits = folder, sealed, calls, limits
        self._named: dict[str, tuple[str, ...]] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def sweep(self) -> None:
        """Remove what a kill left without its line in the journal."""
        for path in self.folder.iterdir():
            if path.suffix == ".tmp" or (path.suffix == ".json" and path.stem not in self.sealed):
                path.unlink()

    def all(self) -> list[Proposal | Call]:
        """Return what waits and is as it was made, oldest first."""
        found = []
        for txn in sorted(self.sealed):
            try:
                found.append(self.get(txn))
            except (NotFound, CheckFailed):
                continue
        return found

    def get(self, txn: str) -> Proposal | Call:
        """Return what waits as `txn`. Raises: NotFound, CheckFailed (``unsafe``) when its file was changed."""
        if txn not in self.sealed:
            raise NotFound("no such proposal", remedy="list them: `bxctl memory notes pending`")
        try:
            content = (self.folder / f"{txn}.json").read_bytes()
        except OSError:
            content = b""
        if hashlib.sha256(content).hexdigest() != self.sealed[txn]:
            raise CheckFailed(
                "the proposal's file was changed or removed outside memoryd",
                remedy=f"reject it: `bxctl memory notes reject {txn}`",
                check="unsafe",
            )
        if txn in self.calls:
            return msgspec.json.decode(content, type=Call)
        return msgspec.json.decode(content, type=Proposal)

    def paths(self) -> frozenset[str]:
        """Return the paths that waiting edits are about, as they were asked for; each is read once."""
        for txn in self.sealed.keys() - self._named.keys():
            self._named[txn] = self._paths(txn)
        for txn in self._named.keys() - self.sealed.keys():
            del self._named[txn]
        return frozenset(path for paths in self._named.values() for path in paths)

    def _paths(self, txn: str) -> tuple[str, ...]:
        try:
            found = self.get(txn)
        except (NotFound, CheckFailed):
            return ()
        if not isinstance(found, Proposal):
            return ()
        return (found.edit.path,) if found.edit.to is None else (found.edit.path, found.edit.to)

    def call(self, digest: str, now_ms: int) -> Call | None:
        """Return the call of this digest that waits or is approved, and has not expired."""
        for txn in self.calls:
            try:
                found = self.get(txn)
            except CheckFailed:
                continue
            if isinstance(found, Call) and found.digest == digest and now_ms < self.ends(found):
                return found
        return None

    def check_room(self, session: str | None) -> None:
        """Refuse one more than fit. Raises: TooLarge (``quota``)."""
        of_session = sum(1 for waiting in self.all() if waiting.session == session)
        full = len(self.sealed) >= self.limits.pending
        if full or of_session >= self.limits.pending_a_session:
            raise TooLarge(
                "too much waits for the owner already",
                remedy="the owner answers it: `bxctl memory notes pending`",
                check="quota",
            )

    def add(self, waiting: Proposal | Call) -> str:
        """Store what waits for good and return the hash that the journal is to seal. Raises: IOFailed."""
        content = msgspec.json.encode(waiting, order="sorted")
        try:
            write_file(self.folder / f"{waiting.txn}.json", content)
        except OSError as error:
            raise failed(error) from error
        return hashlib.sha256(content).hexdigest()

    def drop(self, txn: str) -> None:
        """Take a file away; one that is not there is no error. Raises: IOFailed."""
        try:
            (self.folder / f"{txn}.json").unlink(missing_ok=True)
            sync_folder(self.folder)
        except OSError as error:
            raise failed(error) from error

    def ends(self, waiting: Proposal | Call) -> int:
        """Return the moment (ms) at which nobody waits for the owner's answer any more."""
        if isinstance(waiting, Call):
            return waiting.created + self.limits.calls_hours * HOUR_MS
        return waiting.created + self.limits.pending_days * DAY_MS

    def expired(self, now_ms: int) -> list[Proposal | Call]:
        """Return what has waited too long."""
        return [waiting for waiting in self.all() if now_ms > self.ends(waiting)]

    def naming(self, content: str) -> list[str]:
        """Return the transactions of proposals that hold the content of this hash."""
        return [
            each.txn
            for each in self.all()
            if isinstance(each, Proposal)
            and content in {each.before, each.after, *(each.folder or {}).values()}
        ]
