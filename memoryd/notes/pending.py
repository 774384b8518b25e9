"""Edits that wait for the owner: proposals of untrusted sessions, one file each, contents among the blobs.

In: checked work that may not be written yet. Out: ``journal/pending/TXN.json`` with everything needed to put the
edit through the whole check again when the owner accepts it, as the owner, against the bytes it was made on.
The journal seals a hash of each file: what the owner is shown is what was proposed, and what is written.
"""

import hashlib
from pathlib import Path

import msgspec

from memoryd.errors import CheckFailed, NotFound, TooLarge
from memoryd.notes.blobs import sync_folder, write_file
from memoryd.notes.handles import failed
from memoryd.notes.request import DAY_MS, Edit, Limits


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A waiting edit: what, by which session with which label, on which bytes, and what it would make."""

    txn: str
    created: int
    client: str
    session: str | None
    n: int | None
    level: int
    untrusted: bool
    edit: Edit
    before: str | None
    after: str | None
    flags: list[dict[str, object]] = []


class Pending:
    """The folder of proposals; `sealed` maps the transactions that wait to the hashes of their files."""

    def __init__(self, folder: Path, sealed: dict[str, str], limits: Limits) -> None:
        """Keep proposals in `folder`, made 0700."""
        self.folder, self.sealed, self.limits = folder, sealed, limits
        self._named: dict[str, tuple[str, ...]] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def sweep(self) -> None:
        """Remove what a kill left without its line in the journal."""
        for path in self.folder.iterdir():
            if path.suffix == ".tmp" or (path.suffix == ".json" and path.stem not in self.sealed):
                path.unlink()

    def all(self) -> list[Proposal]:
        """Return the proposals that are as they were made, oldest first."""
        found = []
        for txn in sorted(self.sealed):
            try:
                found.append(self.get(txn))
            except (NotFound, CheckFailed):
                continue
        return found

    def get(self, txn: str) -> Proposal:
        """Return one proposal. Raises: NotFound, CheckFailed (``unsafe``) when its file was changed."""
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
        return msgspec.json.decode(content, type=Proposal)

    def paths(self) -> frozenset[str]:
        """Return the paths that waiting edits are about, as they were asked for; each is read once."""
        for txn in self.sealed.keys() - self._named.keys():
            try:
                edit = self.get(txn).edit
            except (NotFound, CheckFailed):
                self._named[txn] = ()
            else:
                self._named[txn] = (edit.path,) if edit.to is None else (edit.path, edit.to)
        for txn in self._named.keys() - self.sealed.keys():
            del self._named[txn]
        return frozenset(path for paths in self._named.values() for path in paths)

    def check_room(self, session: str | None) -> None:
        """Refuse one more than fit. Raises: TooLarge (``quota``)."""
        of_session = sum(1 for proposal in self.all() if proposal.session == session)
        full = len(self.sealed) >= self.limits.pending
        if full or of_session >= self.limits.pending_a_session:
            raise TooLarge(
                "too many edits wait for the owner already",
                remedy="the owner answers them: `bxctl memory notes pending`",
                check="quota",
            )

    def add(self, proposal: Proposal) -> str:
        """Store a proposal for good and return the hash that the journal is to seal. Raises: IOFailed."""
        content = msgspec.json.encode(proposal, order="sorted")
        try:
            write_file(self.folder / f"{proposal.txn}.json", content)
        except OSError as error:
            raise failed(error) from error
        return hashlib.sha256(content).hexdigest()

    def drop(self, txn: str) -> None:
        """Take a proposal's file away; one that is not there is no error. Raises: IOFailed."""
        try:
            (self.folder / f"{txn}.json").unlink(missing_ok=True)
            sync_folder(self.folder)
        except OSError as error:
            raise failed(error) from error

    def expired(self, now_ms: int) -> list[Proposal]:
        """Return the proposals that have waited too long."""
        oldest = now_ms - self.limits.pending_days * DAY_MS
        return [proposal for proposal in self.all() if proposal.created < oldest]

    def naming(self, content: str) -> list[str]:
        """Return the transactions of proposals that hold the content of this hash."""
        return [each.txn for each in self.all() if content in {each.before, each.after}]
