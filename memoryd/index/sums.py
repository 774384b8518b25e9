"""What logs come to, kept up with each change of one: `status` is asked often, and logs may be very many.

In: what is known of a log, before and after a change. Out: sums of each folder and format, and of all.
"""

from collections import Counter
from typing import Literal

import msgspec

from memoryd.index.table import GONE, Known

Folder = tuple[str, str]
"""An adapter's id and a source's folder."""


class Sums(msgspec.Struct):
    """Totals over logs; `why` counts rows left out by what first raised their logs."""

    logs: int = 0
    gone: int = 0
    records: int = 0
    indexed: int = 0
    left_out: int = 0
    unreadable: int = 0
    why: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, known: Known, sign: Literal[1, -1] = 1) -> None:
        """Count a log in, or out again."""
        self.logs += sign
        self.gone += sign * (known.state == GONE)
        self.records += sign * known.records
        self.indexed += sign * known.indexed
        self.left_out += sign * known.left_out
        self.unreadable += sign * known.unreadable
        if known.left_out:
            self.why[known.why or "its first record"] += sign * known.left_out


def total(folders: dict[Folder, Sums]) -> Sums:
    """Return what all folders come to."""
    sums = Sums()
    for one in folders.values():
        sums.logs += one.logs
        sums.gone += one.gone
        sums.records += one.records
        sums.indexed += one.indexed
        sums.left_out += one.left_out
        sums.unreadable += one.unreadable
        sums.why += one.why
    return sums
