"""How far long work is: a bar with rate and remaining time, where somebody watches.

In: counts as they grow. Out: a bar on standard error when that is a terminal, else nothing but what the
command says at its end. Standard output stays free for data.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Moved = Callable[[int, int], None]
"""Takes how many bytes are done, and of how many (0: unknown)."""


@contextmanager
def bar(what: str, color: str) -> Iterator[Moved]:
    """Show a bar called `what` meanwhile, and yield what moves it; `color` as ``--color`` says."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    plain = True if color == "never" else None  # None: as NO_COLOR says
    console = Console(stderr=True, markup=False, emoji=False, no_color=plain)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total or None)
