"""The label lattice: a confidentiality class from an ordered list, and whether anything was untrusted.

In: class names as configured, low to high. Out: `Label` values that only ever rise when joined.
Levels are positions in the configured list; a name that is not in it is an error here, and callers
that read logs turn that error into the top class (fail closed).
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
MAX_CLASSES = 8


class LabelError(ValueError):
    """A class that is not configured, or a list of classes that cannot be used."""


class Label(NamedTuple):
    """What a record may hold: the highest class met before it, and whether any of it was untrusted."""

    level: int
    untrusted: bool

    def join(self, other: "Label") -> "Label":
        """Return the least label at or above both: the higher class, untrusted if either is."""
        if other.level <= self.level and (self.untrusted or not other.untrusted):
            return self
        return Label(max(self.level, other.level), self.untrusted or other.untrusted)

    def covers(self, other: "Label") -> bool:
        """Say whether `other` is at or below this label in both parts."""
        return other.level <= self.level and (self.untrusted or not other.untrusted)


LOWEST = Label(0, False)
"""The label of nothing: the start of every join."""


class Classes:
    """The configured classes, low to high; 1 to 8 unique names of the form ``[a-z][a-z0-9-]{0,31}``."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names in order. Raises: LabelError when the list cannot be used."""
        self.names = tuple(names)
        if not 1 <= len(self.names) <= MAX_CLASSES:
            raise LabelError(f"1 to {MAX_CLASSES} classes are possible, not {len(self.names)}")
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise LabelError(
                    f"class name {name!r} is not of the form [a-z][a-z0-9-]*, 32 at most"
                )
        self._levels = {name: level for level, name in enumerate(self.names)}
        if len(self._levels) != len(self.names):
            raise LabelError("a class is named twice")
        self.top = len(self.names) - 1
        self.highest = Label(self.top, True)

    def level(self, name: object) -> int:
        """Return the position of `name`. Raises: LabelError for anything that is not a configured name."""
        found = self._levels.get(name) if isinstance(name, str) else None
        if found is None:
            raise LabelError(f"no such class; there are {', '.join(self.names)}")
        return found

    def name(self, level: int) -> str:
        """Return the name at `level`. Raises: LabelError out of range (never the lowest by accident)."""
        if not 0 <= level <= self.top:
            raise LabelError(f"no class at level {level}")
        return self.names[level]

    def upto(self, level: int) -> tuple[str, ...]:
        """Return the names at or below `level`, low to high."""
        return self.names[: level + 1]

    def __len__(self) -> int:
        """Return how many classes there are."""
        return len(self.names)
