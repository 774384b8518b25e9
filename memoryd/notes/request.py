"""What is asked of the notes and by whom; what a note's check has found out so far.

In: nothing (values only). Out: `Edit`, `Asker`, `Limits`, `Rates`, and `Work`, the one value that changes
while the sixteen checks go through it.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Literal

import msgspec

from memoryd.labels import Label
from memoryd.notes.commands import Edited
from memoryd.notes.handles import Version
from memoryd.notes.names import SUFFIX, Place
from memoryd.notes.replay import Held
from memoryd.notes.rights import Command, act_of
from memoryd.notes.store import Store
from memoryd.notes.text import Flag

ARGUMENTS: dict[str, dict[str, type]] = {
    "create": {"file_text": str},
    "str_replace": {"old_str": str, "new_str": str},
    "insert": {"insert_line": int, "insert_text": str},
    "delete": {},
    "rename": {},
    "restore": {"file_text": str},
}
"""The arguments of each command beside the path, with their types; all of them must be given."""

MINUTE_MS, DAY_MS = 60_000, 86_400_000


class Edit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One edit as asked for. `path` is a rename's old path and `to` its new one.

    `recursive`: delete a folder with all its notes. `force`: the owner knows of the secret or outside edit.
    """

    command: Command
    path: str
    to: str | None = None
    arguments: dict[str, object] = {}
    recursive: bool = False
    expect: str | None = None
    reason: str = ""
    force: bool = False


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: the socket's grants and clearance, and the session with the label that the daemon folded.

    `client` is the socket's name, `session` top and untrusted where no session was named. `owner`: a person
    asks, through the owner's socket; a person's own words need no label.
    """

    client: str
    clearance: int
    session: Label
    tools: frozenset[str] = frozenset({"*"})
    owner: bool = False
    uid: int = 0
    pid: int = 0
    log: str | None = None
    n: int | None = None

    def granted(self, command: str) -> bool:
        """Say whether the socket grants the tool of `command`."""
        if command == "restore":
            return self.owner
        return not self.tools.isdisjoint({"*", f"memory_{command}"})


class Limits(msgspec.Struct, frozen=True):
    """How much fits; rates are for each socket, `inbox_a_session` for each session and day.

    Edits wait `pending_days` for the owner; calls `calls_hours`, the time to make an approved one included.
    """

    notes_in_class: int = 2_000
    bytes_in_class: int = 32 << 20
    edits_a_minute: int = 60
    edits_a_day: int = 500
    inbox_a_session: int = 10
    pending: int = 200
    pending_a_session: int = 20
    pending_days: int = 7
    calls_hours: int = 24


class Rates:
    """When each name was counted lately, on a clock that the caller reads; bounded in names and in times."""

    _MOST_NAMES = 10_000

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[int]] = OrderedDict()

    def since(self, name: str, moment_ms: int) -> int:
        """Return how often `name` was counted after a moment of the last day."""
        return sum(1 for at in self._times.get(name, ()) if at > moment_ms)

    def count(self, name: str, now_ms: int) -> None:
        """Count `name` once, now."""
        times = self._times.setdefault(name, deque())
        while times and times[0] <= now_ms - DAY_MS:
            times.popleft()
        times.append(now_ms)
        self._times.move_to_end(name)
        while len(self._times) > self._MOST_NAMES:
            self._times.popitem(last=False)


class Scene(msgspec.Struct, frozen=True):
    """What a check looks at beside the edit itself; `live` maps stored paths to what the journal knows."""

    store: Store
    live: Mapping[str, Held]
    rates: Rates
    limits: Limits
    now_ms: int


class Work(msgspec.Struct):
    """One edit on its way through the checks; each fills in what the next ones need."""

    edit: Edit
    asker: Asker
    scene: Scene
    segments: tuple[tuple[str, ...], ...] = ()
    place: Place = Place(0, ())
    target: Place | None = None
    before: bytes | None = None
    seen: Version | None = None
    text: str | None = None
    after: bytes | None = None
    edited: Edited | None = None
    flags: tuple[Flag, ...] = ()
    waits: Literal["", "ask", "pend"] = ""
    rule: str = ""
    changed: bool = True

    @property
    def places(self) -> tuple[Place, ...]:
        """Return the note's place, and the one it moves to."""
        return (self.place,) if self.target is None else (self.place, self.target)

    @property
    def act(self) -> str:
        """Return what the edit does, as the table of rights names it."""
        folder = self.edit.recursive and not self.place.name.endswith(SUFFIX)
        return act_of(self.edit.command, self.place, self.target, folder=folder)
