"""Floors: the labels below which a log may not fall, though its file was rewritten.

In and out: entries of kind ``floor`` in `overrides.jsonl`. One says that the first record of its log starts
at this label or above. Floors of one log join.
"""

from pathlib import Path

import msgspec

from memoryd.ids import Ids
from memoryd.index import overrides
from memoryd.index.overrides import FILE, Floor
from memoryd.labels import LOWEST, Classes, Label, LabelError

__all__ = ["FILE", "Floors", "append", "read"]


class Floors(msgspec.Struct):
    """Log key to the join of its floors, and how many lines of the file were cut short."""

    by_log: dict[int, Label]
    unreadable: int = 0

    def of(self, key: int) -> Label:
        """Return the floor of a log; the lowest label where it has none."""
        return self.by_log.get(key, LOWEST)


def read(home: Path, ids: Ids, classes: Classes) -> Floors:
    """Return every floor in force. A class that is not configured counts as the top class.

    Raises: ConfigError, OSError.
    """
    return gathered(overrides.read(home), ids, classes)


def gathered(found: overrides.Overrides, ids: Ids, classes: Classes) -> Floors:
    """Return the floors among entries."""
    floors = Floors({}, found.unreadable)
    for entry in found.entries:
        if isinstance(entry, Floor):
            key = ids.log_key(entry.source, entry.root, entry.log)
            floors.by_log[key] = floors.of(key).join(_label(entry, classes))
    return floors


def _label(entry: Floor, classes: Classes) -> Label:
    try:
        return Label(classes.level(entry.cls), entry.untrusted)
    except LabelError:
        return Label(classes.top, entry.untrusted)


def append(
    home: Path, place: tuple[str, str, str], label: Label, classes: Classes, why: str
) -> None:
    """Write the floor `label` of the log at `place` (source, root, log), onto the disk.

    Raises: OSError.
    """
    overrides.append(home, Floor(*place, classes.name(label.level), label.untrusted, why))
