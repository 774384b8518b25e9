"""The fold: the label of every record is the join of the results that came before it in its log.

In: a log's `State`, its next record, the rules. Out: the record's rows with their labels, and the state after
it. Records are taken in file order, items in block order; time, reply trees and branches play no part, and
nothing in a log lowers its label: not a compaction, a rewind, a fork or a clear.

Text of the owner, the assistant or a compaction, and each call, is emitted with the label BEFORE it. Results
and whatever else brings outside text raise the label AFTER them; a hosted call raises it right after itself.
Where anything is in doubt, the result counts as the top class and untrusted.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

import msgspec

from memoryd.labels import LOWEST, Label, LabelError
from memoryd.records import About, Brought, Called, Link, Own, Record, Returned, Said
from memoryd.rules import Rules


class Event(NamedTuple):
    """What raised a log's label (or could, under other rules): where it stands, and its own label.

    `of` is the place (record, block) of the call whose result it was; `name`, after a colon, what came without a
    call. Neither: nobody can tell where it came from. `paths` are for whoever keeps the event. Block -1 is a link,
    which raises before the record's items. A hosted call's event stands at the call's own block.
    """

    n: int
    block: int
    of: tuple[int, int] | None
    name: str | None
    ok: bool | None
    level: int
    untrusted: bool
    paths: tuple[str, ...] | None = None

    def bare(self) -> "Event":
        """Return what may be kept of it once its record is forgotten: that it raised, and how far."""
        return self._replace(of=None, name=None, paths=None)


BEFORE_ITEMS = -1

Step = tuple[int, int, bool]
"""A record after which the join of the log's own events is higher than before, and that join."""


class State(msgspec.Struct):
    """Where the fold of one log stands; all of it that has to be kept between two batches.

    `calls` holds the label of each unanswered call's result-to-be, by the call's id or, once it has been
    stored, by the id's hash; `places` where calls stand, under the same names; `answered` a hash of each answered
    call's id, so that a second answer is told from one that belongs to no call. `trail` gathers events until the
    writer takes them away. `steps` are the records at which the log's own events raised it, without its start
    and without what other logs say.
    """

    label: Label
    calls: dict[str | bytes, Label] = {}
    answered: set[bytes] = set()
    trail: list[Event] = []
    steps: list[Step] = []
    places: dict[str | bytes, tuple[int, int]] = {}


Row = tuple[Record, Said | Called, Label]
"""A record, an item of it that becomes a row, and the label before that item."""


class Folded(NamedTuple):
    """What came of records: their rows in order, for each record the label before it, and their results in order."""

    rows: list[Row]
    before: list[Label]
    results: list[tuple[int, Returned]]


class Kin(Protocol):
    """What other logs have to say about one log's label, in the fold of that log."""

    def met(self, n: int, about: About, before: Label) -> None:
        """Take what record `n`, which had the label `before`, tells of its log."""
        ...

    def linked(self, n: int, link: Link) -> Label:
        """Return the label that the log which `link` names had there."""
        ...

    def called(self, n: int, call: Called) -> None:
        """Take note of a call."""
        ...

    def answered(self, n: int, result: Returned) -> Label:
        """Return what the sub-agents that answered had met; the lowest label if none did."""
        ...


def begin(rules: Rules, start: str | None = None, floor: Label | None = None) -> State:
    """Return the state before a log's first record.

    `start` is the class that the log's source names instead of the configured one; `floor` is a label that
    the log once had and must not fall below. Raises: LabelError for a class that is not configured.
    """
    label = rules.start if start is None else Label(rules.classes.level(start), False)
    return State(label if floor is None else label.join(floor))


def fold(
    state: State, record: Record, rules: Rules, trusted: bool, kin: Kin | None = None
) -> list[tuple[Said | Called, Label]]:
    """Return the rows of one record with their labels, and move `state` past it: `fold_all` for one."""
    rows = fold_all(state, [record], rules, trusted, kin).rows
    return [(item, label) for _, item, label in rows]


def fold_all(
    state: State, records: Sequence[Record], rules: Rules, trusted: bool, kin: Kin | None = None
) -> Folded:
    """Return the rows of consecutive records with their labels, and move `state` past them.

    `trusted`: the log lies where only the owner's own loop writes, so that the label fields it gives count.
    Elsewhere they are text like any other. `kin`: what linked logs say; None: nobody knows, so that a link
    counts as the worst.

    A rebuild is this loop: the usual items come first in it, and what the results of all calls will be worth is
    asked at once, since that hangs on each call alone.
    """
    rows: list[Row] = []
    before: list[Label] = []
    results: list[tuple[int, Returned]] = []
    worth = iter(_worth(records, rules, trusted))
    for record in records:
        n = record.n
        before.append(state.label)
        if record.about is not None:
            _met(state, n, record.about, rules, kin)
        for item in record.items:
            if isinstance(item, Said):
                rows.append((record, item, state.label))
            elif isinstance(item, Returned):
                results.append((n, item))
                _returned(state, item, n, rules, trusted)
                if kin is not None and (heard := kin.answered(n, item)) is not LOWEST:
                    state.label = state.label.join(heard)
            elif isinstance(item, Called):
                rows.append((record, item, state.label))
                _called(state, item, n, next(worth))
                if kin is not None:
                    kin.called(n, item)
            elif isinstance(item, Brought):
                _brought(state, item, n, rules, trusted)
            else:
                _raise(state, rules.unknown, (n, 0, None, None, None))
    return Folded(rows, before, results)


def _worth(records: Sequence[Record], rules: Rules, trusted: bool) -> list[Label]:
    """Return what the result of each call among `records` is worth, in their order."""
    calls = [item for record in records for item in record.items if type(item) is Called]
    return rules.of_calls(calls, stated=trusted)


_NO_STEP = (-1, *LOWEST)


def call_hash(call: str) -> bytes:
    """Return the 8 bytes by which an answered call is remembered."""
    return blake2b(call.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _raise(
    state: State,
    own: Label,
    told: tuple[int, int, tuple[int, int] | None, str | None, bool | None],
) -> None:
    """Join an event's own label onto the running one, and note what is told of it."""
    level, untrusted = own
    state.trail.append(Event(*told, level, untrusted))
    if not state.label.covers(own):
        state.label = state.label.join(own)
    _, top, doubted = state.steps[-1] if state.steps else _NO_STEP
    if level > top or (untrusted and not doubted):
        state.steps.append((told[0], *Label(top, doubted).join(own)))


def _met(state: State, n: int, about: About, rules: Rules, kin: Kin | None) -> None:
    """Raise by what stood before a linked record; that is no event of the log's own."""
    if kin is not None:
        kin.met(n, about, state.label)
    if about.link is None:
        return
    if kin is not None:
        state.label = state.label.join(kin.linked(n, about.link))
    elif not about.link.whole:
        _raise(state, rules.unknown, (n, BEFORE_ITEMS, None, None, None))


def _called(state: State, call: Called, n: int, worth: Label) -> None:
    """Remember what the call's result will be worth; a hosted call has none to come and raises now."""
    place = (n, call.block)
    if call.hosted:
        _raise(state, worth, (n, call.block, place if call.call is not None else None, None, None))
    if call.call is not None:
        before = state.calls.get(call.call)
        state.calls[call.call] = worth if before is None else before.join(worth)
        state.places[call.call] = place


def _returned(state: State, result: Returned, n: int, rules: Rules, trusted: bool) -> None:
    """Raise by a result: by its call, joined with the log's word for it where that counts.

    A result that names no call, or one that was never made, is worth the worst, whatever the log says of it.
    """
    call = result.call
    if call is None:
        _raise(state, rules.unknown, (n, result.block, None, None, result.ok))
        return
    hashed = call_hash(call)
    own = _owed(state, call, hashed)
    if own is None:
        own = rules.unknown
    elif trusted:
        own = own.join(_stated(result.own, rules))
    place = state.places.get(call) or state.places.get(hashed)
    _raise(state, own, (n, result.block, place, None, result.ok))


def _owed(state: State, call: str, hashed: bytes) -> Label | None:
    """Return what a call's answer is worth, and note that it is answered; None if no such call was made."""
    label = state.calls.pop(call, None)
    stored = state.calls.pop(hashed, None)
    if stored is not None:
        label = stored if label is None else label.join(stored)
    if label is not None:
        state.answered.add(hashed)
        return label
    # A second answer: its call's label was joined with the first.
    return Label(0, False) if hashed in state.answered else None


def _brought(state: State, item: Brought, n: int, rules: Rules, trusted: bool) -> None:
    """Raise by what came without a call, unless the rules ignore it."""
    if trusted and item.own is not None:
        own: Label | None = _stated(item.own, rules).join(rules.paths(item.name, item.args))
    else:
        own = rules.brought(item.name, item.args)
    if own is not None:
        _raise(state, own, (n, item.block, None, f":{item.name}", None))


def _stated(own: Own | None, rules: Rules) -> Label:
    """Return the label that fields state: the top class for what names none, untrusted unless `false`."""
    if own is None:
        return rules.unknown
    try:
        level = rules.classes.level(own.cls)
    except LabelError:
        level = rules.classes.top
    return Label(level, own.untrusted is not False)
