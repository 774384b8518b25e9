"""The owner's own labels: for ranges of records, and only for the very words that the owner saw there.

In: entries of kind ``relabel`` in `overrides.jsonl`; rows with the labels that the fold gave them. Out: the
labels that the owner gave them. Nothing else lowers a label, and this lowers it for those rows alone: what
follows in the log still has the label that everything before it left. A row is named by a keyed hash of its
place and its words, so that a log that is rewritten takes no other words down with it.
"""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from memoryd.ids import Ids
from memoryd.index.overrides import Overrides, Relabel
from memoryd.labels import Classes, Label, LabelError
from memoryd.records import Called, Said, call_text

NAME_DIGITS = 16


class Ruling(msgspec.Struct, frozen=True):
    """One entry for one log. `level` None leaves the class; `trusted` takes the flag away."""

    first: int
    last: int
    level: int | None
    trusted: bool
    rows: frozenset[str]


class Relabels(msgspec.Struct):
    """Log key to its rulings, in the order in which they were made: a later one wins."""

    by_log: dict[int, tuple[Ruling, ...]] = {}

    def of(self, key: int) -> tuple[Ruling, ...]:
        """Return the rulings about a log."""
        return self.by_log.get(key, ())

    def digest(self, key: int) -> bytes:
        """Return eight bytes that change with the rulings about a log; b"" where there are none."""
        rulings = self.by_log.get(key)
        if not rulings:
            return b""
        told = [(r.first, r.last, r.level, r.trusted, sorted(r.rows)) for r in rulings]
        return blake2b(msgspec.msgpack.encode(told), digest_size=8).digest()


def gathered(found: Overrides, ids: Ids, classes: Classes) -> Relabels:
    """Return the rulings among entries. A class that is not configured counts as the top class."""
    relabels = Relabels({})
    for entry in found.entries:
        if isinstance(entry, Relabel):
            key = ids.log_key(entry.source, entry.root, entry.log)
            names = (
                entry.rows[at : at + NAME_DIGITS] for at in range(0, len(entry.rows), NAME_DIGITS)
            )
            level = None if entry.cls is None else _level(entry.cls, classes)
            ruling = Ruling(entry.first, entry.last, level, entry.trusted, frozenset(names))
            relabels.by_log[key] = (*relabels.of(key), ruling)
    return relabels


def _level(name: str, classes: Classes) -> int:
    try:
        return classes.level(name)
    except LabelError:
        return classes.top


def name_of(ids: Ids, n: int, item: Said | Called) -> str:
    """Return the name of a row: 16 hex digits of a keyed hash of its place and its unmasked words."""
    words = call_text(item.tool, item.args) if isinstance(item, Called) else item.text
    return ids.content(f"{n}/{item.block}/{words}")


def ruled(rulings: Iterable[Ruling], name: str, label: Label) -> Label:
    """Return the label of the row called `name`, which the fold labelled `label`, under rulings on its record."""
    for ruling in rulings:
        if name in ruling.rows:
            level = label.level if ruling.level is None else ruling.level
            label = Label(level, label.untrusted and not ruling.trusted)
    return label
