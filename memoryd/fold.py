"""The fold: the label of every record is the join of the results that came before it in its log.

In: a log's `State`, its next record, the rules. Out: the record's rows with their labels, and the state after
it. Records are taken in file order, items in block order; time, reply trees and branches play no part, and
nothing in a log lowers its label: not a compaction, a rewind, a fork or a clear.

Text of the owner, the assistant or a compaction, and each call, is emitted with the label BEFORE it. Results
and whatever else brings outside text raise the label AFTER them; a hosted call raises it right after itself.
Where anything is in doubt, the result counts as the top class and untrusted.
"""

from hashlib import blake2b
from typing import Protocol

import msgspec

from memoryd.labels import LOWEST, Label, LabelError
from memoryd.records import Brought, Called, Link, Own, Record, Returned, Said
from memoryd.rules import Rules

Event = tuple[int, int, str | None, bool | None, int, bool]
"""What raised a log's label (or could, under other rules): record, block, name, ok, level, untrusted.

`name` is a result's call id; for text that came without a call, its name after a colon; None where there was
neither. The level and the flag are the event's own label, not the running one. Block -1 is a link, which
raises before the record's items. A hosted call's event stands at the call's own block.
"""

BEFORE_ITEMS = -1

Step = tuple[int, int, bool]
"""A record after which the join of the log's own events is higher than before, and that join."""


class State(msgspec.Struct):
    """Where the fold of one log stands; all of it that has to be kept between two batches.

    `calls` holds the label of each unanswered call's result-to-be, by the call's id or, once it has been
    stored, by the id's hash; `answered` a hash of each answered call's id, so that a second answer is told from
    one that belongs to no call. `trail` gathers events until the
    writer takes them away. `steps` are the records at which the log's own events raised it, without its start
    and without what other logs say.
    """

    label: Label
    calls: dict[str | bytes, Label] = {}
    answered: set[bytes] = set()
    trail: list[Event] = []
    steps: list[Step] = []


class Kin(Protocol):
    """What other logs have to say about one log's label, in the fold of that log."""

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
    """Return the rows of `record` with their labels, and move `state` past it.

    `trusted`: the log lies where only the owner's own loop writes, so that the label fields it gives count.
    Elsewhere they are text like any other. `kin`: what linked logs say; None: nobody knows, so that a link
    counts as the worst.
    """
    rows: list[tuple[Said | Called, Label]] = []
    n = record.n
    if record.about is not None and record.about.link is not None:
        _follow(state, n, record.about.link, rules, kin)
    for item in record.items:
        if isinstance(item, Said):
            rows.append((item, state.label))
        elif isinstance(item, Brought):
            brought = _brought(item, rules, trusted)
            if brought is not None:
                _raise(state, brought, (n, item.block, f":{item.name}", None))
        elif isinstance(item, Called):
            rows.append((item, state.label))
            _call(state, item, n, rules, trusted)
            if kin is not None:
                kin.called(n, item)
        elif isinstance(item, Returned):
            own = _result(state, item, rules, trusted)
            _raise(state, own, (n, item.block, item.call, item.ok))
            if kin is not None and (heard := kin.answered(n, item)) is not LOWEST:
                state.label = state.label.join(heard)
        else:
            _raise(state, rules.unknown, (n, 0, None, None))
    return rows


_NO_STEP = (-1, *LOWEST)


def call_hash(call: str) -> bytes:
    """Return the 8 bytes by which an answered call is remembered."""
    return blake2b(call.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _raise(state: State, own: Label, told: tuple[int, int, str | None, bool | None]) -> None:
    """Join an event's own label onto the running one, and note what is told of it."""
    if not state.label.covers(own):
        state.label = state.label.join(own)
    state.trail.append((*told, *own))
    before = state.steps[-1] if state.steps else _NO_STEP
    if own.level > before[1] or (own.untrusted and not before[2]):
        state.steps.append((told[0], *Label(*before[1:]).join(own)))


def _follow(state: State, n: int, link: Link, rules: Rules, kin: Kin | None) -> None:
    """Raise by what stood before a linked record; that is no event of the log's own."""
    if kin is not None:
        state.label = state.label.join(kin.linked(n, link))
    elif not link.whole:
        _raise(state, rules.unknown, (n, BEFORE_ITEMS, None, None))


def _call(state: State, call: Called, n: int, rules: Rules, trusted: bool) -> None:
    """Remember what the call's result will be worth; a hosted call has none to come and raises now."""
    if call.hosted:
        label = rules.hosted(call.tool, call.args)
        _raise(state, label, (n, call.block, call.call, None))
    elif trusted:
        label = rules.paths(call.tool, call.args)
    else:
        label = rules.result(call.tool, call.args)
    if call.call is not None:
        before = state.calls.get(call.call)
        state.calls[call.call] = label if before is None else before.join(label)


def _result(state: State, result: Returned, rules: Rules, trusted: bool) -> Label:
    """Return the own label of a result: by its call, joined with the log's word for it where that counts.

    A result that names no call, or one that was never made, is worth the worst, whatever the log says of it.
    """
    if result.call is None:
        return rules.unknown
    hashed = call_hash(result.call)
    label = state.calls.pop(result.call, None)
    stored = state.calls.pop(hashed, None)
    if stored is not None:
        label = stored if label is None else label.join(stored)
    if label is None:
        if hashed not in state.answered:
            return rules.unknown
        label = Label(0, False)  # its call's label was joined with the first answer
    else:
        state.answered.add(hashed)
    return label.join(_stated(result.own, rules)) if trusted else label


def _brought(item: Brought, rules: Rules, trusted: bool) -> Label | None:
    """Return the own label of what came without a call, or None where the rules ignore it."""
    if trusted and item.own is not None:
        return _stated(item.own, rules).join(rules.paths(item.name, item.args))
    return rules.brought(item.name, item.args)


def _stated(own: Own | None, rules: Rules) -> Label:
    """Return the label that fields state: the top class for what names none, untrusted unless `false`."""
    if own is None:
        return rules.unknown
    try:
        level = rules.classes.level(own.cls)
    except LabelError:
        level = rules.classes.top
    return Label(level, own.untrusted is not False)
