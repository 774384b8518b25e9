"""Which logs bear a name: most names are one log's, and a set for each would be most of what a log costs in memory.

In: names (of paths, sessions, records, inodes) and the keys of logs. Out: the keys by a name. One key is kept as it
is; a set is made only where there are more. One thread writes; single look-ups are safe from any.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


class Keys(Generic[Name]):
    """The keys of logs by a name that several may have."""

    def __init__(self) -> None:
        """Start with no name."""
        self._found: dict[Name, int | frozenset[int]] = {}

    def add(self, name: Name, key: int) -> None:
        """Let a log bear a name, too."""
        found = self._found.setdefault(name, key)
        if found != key:
            self._found[name] = self.get(name) | {key}

    def discard(self, name: Name, key: int) -> None:
        """Let a log bear a name no more, if it does."""
        left = self.get(name) - {key}
        if len(left) > 1:
            self._found[name] = left
        elif left:
            (self._found[name],) = left
        else:
            self._found.pop(name, None)

    def get(self, name: Name) -> frozenset[int]:
        """Return the logs that bear a name."""
        found = self._found.get(name)
        if found is None:
            return frozenset()
        return found if isinstance(found, frozenset) else frozenset((found,))
