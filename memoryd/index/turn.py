"""One log's turn: what it may use, what it holds, and the ways in which it may end early.

In: nothing (values only). Out: `Turn`, which `memoryd.index.writer` works on.
"""

import msgspec

from memoryd.index.heard import Told
from memoryd.index.identity import Ends
from memoryd.index.kinfolk import Names
from memoryd.index.listening import Ear
from memoryd.index.relabels import Ruling
from memoryd.index.rows import Counts
from memoryd.index.table import EXCLUDED, Folding, Log
from memoryd.index.tombs import Tomb
from memoryd.lessons.passage import Passage
from memoryd.records import Record
from memoryd.sources import LogFile


class Budget(msgspec.Struct, frozen=True):
    """What one log may use in one turn before the others get theirs."""

    bytes: int = 4 << 20
    seconds: float = 0.05


class TurnFailed(Exception):
    """A log failed in the middle of its turn: what is written of the turn must be taken back."""

    def __init__(self, file: LogFile, error: Exception) -> None:
        """Keep whose turn it was, and what went wrong: mostly an OSError, else a fault of ours."""
        super().__init__(type(error).__name__)
        self.file, self.error = file, error


class Waiting(Exception):
    """A log starts from another that is there and not read so far: nothing of it is written yet.

    `behind` are the keys of such logs, where they are known.
    """

    def __init__(self, behind: list[int]) -> None:
        """Keep which logs must be read first."""
        super().__init__()
        self.behind = behind


class Turn(msgspec.Struct):
    """One log's turn: its row, its fold, and what was counted in this turn."""

    log: Log
    folding: Folding
    trusted: bool
    first_n: int
    ear: Ear
    rulings: tuple[Ruling, ...] = ()
    names: Names = msgspec.field(default_factory=Names)
    counts: Counts = msgspec.field(default_factory=Counts)
    ends: Ends = msgspec.field(default_factory=Ends)
    tomb: Tomb | None = None
    anew: bool = False
    whole: bool = False
    more: bool = False
    """Whether the file holds more than was read: its budget ended."""
    heard: list[Passage] | None = None
    """What is to be handed on of this turn; None: nobody listens."""

    def told(self) -> Told | None:
        """Return what is to be handed on, once it is committed."""
        if self.heard is None:
            return None
        log, end = self.log, self.log.position.records
        excluded, written = log.state == EXCLUDED, log.seen.mtime_ns // 1_000_000
        return Told(log.key, self.first_n, end, self.heard, written, self.anew, excluded)

    def forgotten(self, n: int, block: int, ts: int | None) -> bool:
        """Say whether no word of this place may be kept."""
        return self.tomb is not None and self.tomb.covers(n, block, ts)

    def name(self, records: list[Record]) -> None:
        """Take the names of the next records, and of those that they copy where the log is a fork."""
        links = self.log.kin.links
        copies = any(record.copy_of for record in records)  # anywhere, as a batch ends anywhere
        fork = copies or any(link.how == "fork" for _, link in links)
        self.names.add(records, fork=fork)
