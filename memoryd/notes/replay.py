"""What the journal's lines come to: one fold, the same for whoever writes the journal and whoever reads it.

In: sealed entries, in order. Out: `State`: what every live note's bytes hash to, edits without an end,
proposals and calls that wait, contents that are redacted, outside edits already told of.
"""

from typing import Any, NamedTuple

import msgspec

from memoryd.errors import IOFailed
from memoryd.notes import chain
from memoryd.notes.keys import Keys

Entry = dict[str, Any]


class Held(NamedTuple):
    """What a note holds: the hash of its bytes, how many they are, and whether the owner put them there."""

    hash: str
    size: int
    owner: bool = False


class State(msgspec.Struct):
    """The journal so far. `live` is by stored path; `intents` and `proposals` are by transaction.

    `proposals`: the seals of all that waits, edits and calls; `calls`: of which calls, and whether approved.
    """

    seq: int = 0
    last: str = chain.START
    live: dict[str, Held] = {}
    intents: dict[str, Entry] = {}
    proposals: dict[str, str] = {}
    calls: dict[str, bool] = {}
    redacted: set[str] = set()
    noticed: dict[str, str | None] = {}

    def follow(self, keys: Keys, entry: Entry) -> None:
        """Take the next line. Raises: IOFailed (``chain``) when it does not belong here."""
        if wrong := keys.check(entry, self.seq + 1, self.last):
            raise damaged(self.seq + 1, wrong)
        self.take(entry)

    def take(self, entry: Entry) -> None:
        """Take a line that is known to belong here."""
        self.seq, self.last = int(entry["seq"]), str(entry["mac"])
        match entry["kind"]:
            case "intent":
                self.intents[entry["txn"]] = entry
                self.redacted.discard(entry["after"])
            case "abort":
                self.intents.pop(entry["txn"], None)
            case "commit":
                if (done := self.intents.pop(entry["txn"], None)) is not None:
                    self._moved(done)
            case "pending" | "ask" | "approve" | "reject" | "use":
                self._waits(entry)
            case "accept":
                self._moved(entry)
            case "external":
                self.noticed[entry["path"]] = entry["after"]
            case "redact":
                self.redacted.add(entry["before"])

    def _waits(self, entry: Entry) -> None:
        """Take a line about what waits for the owner."""
        match entry["kind"]:
            case "pending":
                self.proposals[entry["txn"]] = entry["proposal"]
                self.redacted.discard(entry["after"])
            case "ask":
                self.proposals[entry["txn"]] = entry["proposal"]
                self.calls[entry["txn"]] = False
            case "approve":
                self.calls[entry["of"]] = True
            case _:
                self.proposals.pop(entry["of"], None)
                self.calls.pop(entry["of"], None)

    def _moved(self, entry: Entry) -> None:
        path, to, after = entry["path"], entry.get("to"), entry["after"]
        self.proposals.pop(entry.get("of") or "", None)
        self.noticed.pop(path, None)
        before = self.live.pop(path, None)
        if after:
            moved = before is not None and before.hash == after and before.owner
            owner = moved or entry.get("actor", {}).get("owner") is True
            self.live[to or path] = Held(after, entry["size"], owner)
            self.redacted.discard(after)


def damaged(seq: int, wrong: str) -> IOFailed:
    """Return the error of a line that does not belong where it is."""
    return IOFailed(
        f"line {seq} of the journal {wrong}",
        remedy="run `bxctl memory notes verify`; restore the journal from a copy",
        check="chain",
        seq=seq,
    )
