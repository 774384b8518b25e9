"""Which logs are to be read next: in turns, and those that failed not before their time.

In: logs that are said to have changed, and how their turns ended. Out: the next one to read. A log with
more to read goes to the end of the line, so that a fast one delays no other; one that cannot be read waits
from one second, doubling, to a minute. One that starts from a log that is not read so far is held until
nobody else can be read before it.
"""

from collections import OrderedDict

import msgspec

from memoryd.sources import LogFile

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
SOON = 0.05
"""Seconds after which what was only half there is tried again: mostly it was being written."""
_MOST_TRIES = 64


class Fault(msgspec.Struct, frozen=True):
    """Why a log cannot be read at present: the system's word for it, and when to try again."""

    file: LogFile
    reason: str
    wait: float
    due: float


class Pending:
    """The line of logs that wait for a turn, by their keys."""

    def __init__(self) -> None:
        """Start with nobody waiting."""
        self._line: OrderedDict[int, LogFile] = OrderedDict()
        self._held: OrderedDict[int, LogFile] = OrderedDict()
        self._tried = self._forced = 0
        self.faults: dict[int, Fault] = {}

    def __len__(self) -> int:
        """Return how many logs wait for a turn, those that failed aside."""
        return len(self._line)

    def __contains__(self, key: int) -> bool:
        """Say whether a log waits for a turn, failed or not."""
        return key in self._line or key in self._held or key in self.faults

    def keys(self) -> list[int]:
        """Return who waits, failed ones too."""
        return [*self._line, *self._held, *self.faults]

    def files(self) -> list[tuple[int, LogFile]]:
        """Return who waits, with their files."""
        faults = [(key, fault.file) for key, fault in self.faults.items()]
        return [*self._line.items(), *self._held.items(), *faults]

    @property
    def held(self) -> int:
        """Return how many logs wait for the logs that they start from."""
        return len(self._held)

    @property
    def patient(self) -> bool:
        """Say whether a log that starts from another may wait: someone else can still be read before it."""
        return bool(self._line) or (not self._forced and self._tried < len(self._held))

    @property
    def all_held(self) -> bool:
        """Say whether everyone left is held, and has tried in vain since anything was read."""
        return not self._line and self._tried >= len(self._held)

    @property
    def may_hold(self) -> bool:
        """Say whether a log may be held once more: who writes without pause must not hold another for ever."""
        return self._tried < _MOST_TRIES + len(self._held)

    def hold(self, key: int, file: LogFile) -> None:
        """Let a log wait behind all others: the one that it starts from is not read so far."""
        self._held[key] = file
        self._tried += 1

    def put(self, key: int, file: LogFile) -> None:
        """Let a log wait at the end of the line; one that waits, or waits for its fault, keeps its place."""
        if key not in self.faults and key not in self._held:
            self._line.setdefault(key, file)

    def first(self, key: int, file: LogFile) -> None:
        """Let a log wait at the head of the line: its turn was taken back."""
        self.put(key, file)
        if key in self._line:
            self._line.move_to_end(key, last=False)

    def drop(self, key: int) -> None:
        """Let a log wait no longer, nor be at fault: it is gone."""
        self._line.pop(key, None)
        self._held.pop(key, None)
        self.faults.pop(key, None)

    def take(self, now: float) -> tuple[int, LogFile] | None:
        """Take the next log to read; None when none is due `now` (monotonic seconds)."""
        for key in [key for key, fault in self.faults.items() if fault.due <= now]:
            fault = self.faults[key]
            self._line.setdefault(key, fault.file)
            self.faults[key] = msgspec.structs.replace(fault, due=now + fault.wait)
        line = self._line or self._held
        return line.popitem(last=False) if line else None

    def failed(
        self, key: int, file: LogFile, reason: str, now: float, first: float = FIRST_WAIT
    ) -> None:
        """Let a log that cannot be read wait, `first` seconds and longer each time."""
        before = self.faults.get(key)
        wait = first if before is None else min(before.wait * 2, LONGEST_WAIT)
        self.faults[key] = Fault(file, reason, wait, now + wait)

    def succeeded(self, key: int) -> None:
        """Forget the fault of a log that was read; who waits for others may try again.

        Where all had tried in vain, an eighth of them is read first: one at a time, ten thousand that start from
        logs which are gone would be tried fifty million times.
        """
        self.faults.pop(key, None)
        if self._forced:
            self._forced -= 1
        elif self.all_held:
            self._forced = len(self._held) // 8
        if not self._forced:
            self._tried = 0

    def due_in(self, now: float) -> float | None:
        """Return the seconds until the next log is due; None when nobody waits."""
        if self._line or self._held:
            return 0.0
        dues = [fault.due for fault in self.faults.values()]
        return max(0.0, min(dues) - now) if dues else None
