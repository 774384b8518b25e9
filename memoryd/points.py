"""Named points between two steps, where a kill must lose nothing.

In: the name of a step that has just ended. Out: nothing; a test can have itself called there (`observe`)
and kill the process, fail the step or look at the files. Nothing in memoryd observes.
"""

from collections.abc import Callable

_observer: Callable[[str], None] | None = None


def reached(point: str) -> None:
    """Tell the observer, if there is one, that `point` is reached."""
    if _observer is not None:
        _observer(point)


def observe(observer: Callable[[str], None] | None) -> None:
    """Have `observer` called at every point of this process; None: nobody any more."""
    global _observer  # noqa: PLW0603 - the process has one observer, as it has one trace function
    _observer = observer
