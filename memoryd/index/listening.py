"""How the fold of one log hears from others: from the graph as it stands, or as was worked out before.

In: records, in file order. Out: labels for the fold (`fold.Kin`), and for each record whether its rows are
another log's and what is joined onto them. A `Listener` is for records that are new: what it hears goes into
the log's row, and is checked after the turn. A `Retelling` is for records that are folded once more.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from memoryd.fold import BEFORE_ITEMS, Kin
from memoryd.index import kinfolk
from memoryd.index.kinfolk import DISPATCHERS, Dispatch
from memoryd.index.kinship import Kinship, runs
from memoryd.index.lineage import Heard
from memoryd.index.table import Log
from memoryd.labels import LOWEST, Label
from memoryd.records import About, Called, Link, Record, Returned
from memoryd.sources.base import Adapter


class Ear(Kin, Protocol):
    """What `writer.index_records` needs to know of other logs."""

    copies: bool
    """Whether rows of this log may be another's, or others have a say in them."""
    shared: Mapping[int, Label]
    """By record number, what other logs join onto its rows."""

    def copied(self, record: Record) -> bool:
        """Say whether the rows of the next record are another log's."""
        ...


class Listener:
    """Hears what the graph says now, for one turn of one log."""

    def __init__(self, kinship: Kinship, log: Log, adapter: Adapter, max_level: int) -> None:
        """Listen for `log`, whose row is completed by `finish` and knows no name from above `max_level`."""
        self._kinship, self._log, self._adapter = kinship, log, adapter
        self._max_level = max_level
        self._whole: frozenset[int] = frozenset()
        self._elders = kinship.elders(log) if log.kin.first else set[int]()
        self._open: dict[str, Dispatch] = {}
        self._older = bool(log.kin.dispatches)
        self._raises: list[tuple[int, int, int, bool]] = []
        self._skips: list[int] = []
        self.copies = bool(self._elders)
        self.shared: Mapping[int, Label] = {}  # new records are no one's copy yet

    def listen_for(self, log: Log, whole: frozenset[int]) -> None:
        """Listen for this row from now on: its own records tell it what a first look did.

        Its links at records `whole` hold all that came before them.
        """
        self._log, self._whole = log, whole

    def met(self, n: int, about: About, before: Label) -> None:
        """Take what a record tells of its log into its row, and which session it names."""
        if before.level <= self._max_level:
            self._log.tell(about)
        if about.session is not None:
            self._log.kin.session(n, about.session)

    def copied(self, record: Record) -> bool:
        """Say whether the rows of the next record are another log's."""
        name = record.copy_of or record.uuid
        found = name is not None and kinfolk.anchor(name) in self._elders
        if found:
            self._skips.append(record.n)
        return found

    def linked(self, n: int, link: Link) -> Label:
        """Return the label that the log which `link` names had there."""
        if n in self._whole:
            link = msgspec.structs.replace(link, whole=True)
        self._log.kin.link(n, link)
        return self._hear(n, BEFORE_ITEMS, self._kinship.linked(self._log, n, link))

    def called(self, n: int, call: Called) -> None:
        """Take note of a call."""
        if call.tool in DISPATCHERS and call.call is not None:
            self._open[call.call] = self._log.kin.called(n, call.call, call)

    def answered(self, n: int, result: Returned) -> Label:
        """Return what the sub-agents that answered had met."""
        if result.call is None or not (self._open or self._older):
            return LOWEST
        dispatch = self._open.get(result.call)
        if dispatch is None and self._older:
            dispatch = self._log.kin.called_before(result.call)
        if dispatch is None:
            return LOWEST
        dispatch.answered(n, result, self._adapter)
        return self._hear(n, result.block, self._kinship.answered(self._log, dispatch))

    def _hear(self, n: int, block: int, label: Label) -> Label:
        self._raises.append((n, block, *label))
        return label

    def finish(self) -> None:
        """Note in the log's row what was heard in this turn and raised it; its steps are complete."""
        for n, block, level, untrusted in self._raises:
            if not self._kinship.before(self._log, n).covers(own := Label(level, untrusted)):
                old = self._log.heard
                self._log.heard = msgspec.structs.replace(
                    old, raises=(*old.raises, (n, block, *own))
                )
        if self._skips:
            old = self._log.heard
            self._log.heard = msgspec.structs.replace(old, skips=_joined(old.skips, self._skips))


class Retelling:
    """Says again what `heard` holds."""

    def __init__(self, heard: Heard, log: Log | None = None, max_level: int = -1) -> None:
        """Say what `heard` holds, to the fold of its log; as it is met, `log` is told what `Listener` tells it."""
        self._log, self._max_level = log, max_level
        self._raises = {(n, block): Label(level, bit) for n, block, level, bit in heard.raises}
        self.shared: Mapping[int, Label] = {n: Label(level, bit) for n, level, bit in heard.shared}
        self._skips = {n for first, last in heard.skips for n in range(first, last + 1)}
        self.copies = bool(self._skips or self.shared)

    def met(self, n: int, about: About, before: Label) -> None:  # noqa: ARG002 - the fold's own shape
        """Take what a record tells of its log; which session it names was learnt before."""
        if self._log is not None and before.level <= self._max_level:
            self._log.tell(about)

    def copied(self, record: Record) -> bool:
        """Say whether the record's rows are another log's."""
        return record.n in self._skips

    def linked(self, n: int, link: Link) -> Label:  # noqa: ARG002 - the fold's own shape
        """Return what was heard at a link."""
        return self._raises.get((n, BEFORE_ITEMS), LOWEST)

    def called(self, n: int, call: Called) -> None:
        """Nothing is learnt twice."""

    def answered(self, n: int, result: Returned) -> Label:
        """Return what was heard with a result."""
        return self._raises.get((n, result.block), LOWEST)


def _joined(old: tuple[tuple[int, int], ...], new: list[int]) -> tuple[tuple[int, int], ...]:
    numbers = [n for first, last in old[-1:] for n in range(first, last + 1)]
    return (*old[:-1], *runs([*numbers, *new]))
