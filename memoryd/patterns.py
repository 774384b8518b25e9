"""Regular expressions that are compiled when they are first used: a start needs few of the hundreds there are.

In: what `re.compile` takes. Out: what behaves like its result.
"""

import re
from typing import Any, AnyStr, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


def later(pattern: AnyStr, flags: int = 0) -> "re.Pattern[AnyStr]":
    """Return a pattern that is compiled at its first use; a match's `re` is another object than this.

    Its errors come then: tests use every one.
    """
    return cast("re.Pattern[AnyStr]", _Later(pattern, flags))


class _Later:
    def __init__(self, pattern: Any, flags: int) -> None:
        self._uncompiled = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        """Compile, and keep the methods in the object itself, where the next use finds them at once."""
        made = re.compile(*self._uncompiled)
        for method in _METHODS:
            setattr(self, method, getattr(made, method))
        return getattr(made, name)
