"""The labels of logs that refer to each other: the least fixpoint, so that the order of arrival changes nothing.

In: an `Account` a log: where its own events raised it, and at which records it heard from other logs. Out:
the label of each hearing, and what of it must be told to the log's fold (`Heard`). Nothing here reads or
writes; what the accounts are made of is `memoryd.index.kinship`'s.

    label after record n of a log = its start, joined with its own steps up to n and its hearings up to n
    label of a hearing            = the join of the labels after the records that it refers to

Labels only rise and there are few of them, so following every change along the references ends. A log that
starts from a log that starts from it (and so on) was forged: whoever stands in such a circle starts at the
top. That a parent hears its sub-agent's answer, while the sub-agent started from the parent, is no such circle.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from memoryd.fold import Step
from memoryd.labels import LOWEST, Label

END = (1 << 62) - 1
"""The number of a record behind every record: a reference to it means the label at the log's end."""

Ref = tuple[int, int]
"""A log's key and a record in it: the label just after that record."""


class Hearing(NamedTuple):
    """Where a log hears from others. `refs` None: from one that is not there, which counts as the top.

    `block` is the block of a result, or -1 before the record's items. `start`: the log starts from there.
    """

    n: int
    block: int
    refs: tuple[Ref, ...] | None
    start: bool


class Account(NamedTuple):
    """One log: its label before its first record, its own steps, its hearings in the order of records."""

    start: Label
    steps: tuple[Step, ...] = ()
    hearings: tuple[Hearing, ...] = ()


class Heard(msgspec.Struct, frozen=True, array_like=True):
    """What other logs say about one log's rows, as far as it is read; nothing that would change nothing.

    `raises`: (record, block, level, untrusted) joined onto the running label there. `skips`: first and last
    record of each run that is another log's. `shared`: (record, level, untrusted) joined onto the rows of a
    record of which other logs hold copies.
    """

    raises: tuple[tuple[int, int, int, bool], ...] = ()
    skips: tuple[tuple[int, int], ...] = ()
    shared: tuple[tuple[int, int, bool], ...] = ()


NOTHING = Heard()


def solve(accounts: Mapping[int, Account], top: Label) -> dict[int, list[Label]]:
    """Return the label of each log's hearings, in their order: the least that satisfies the equations."""
    forged = circles(accounts)
    values = {key: [LOWEST] * len(account.hearings) for key, account in accounts.items()}
    listeners: dict[int, set[int]] = {}
    for key, account in accounts.items():
        for log, _ in _refs(account):
            listeners.setdefault(log, set()).add(key)
    waiting, queued = deque(accounts), set(accounts)
    while waiting:
        key = waiting.popleft()
        queued.discard(key)
        new = [
            top if hearing.start and key in forged else _heard(hearing, accounts, values, top)
            for hearing in accounts[key].hearings
        ]
        if new != values[key]:
            values[key] = new
            for listener in listeners.get(key, set()) - queued:
                waiting.append(listener)
                queued.add(listener)
    return values


def after(account: Account, heard: list[Label], n: int) -> Label:
    """Return the label of a log just after its record `n`, where its hearings have the labels `heard`."""
    label = account.start
    for at, level, untrusted in account.steps:
        if at <= n:
            label = label.join(Label(level, untrusted))
    for hearing, own in zip(account.hearings, heard, strict=True):
        if hearing.n <= n:
            label = label.join(own)
    return label


def raises(
    account: Account, heard: list[Label], records: int
) -> tuple[tuple[int, int, int, bool], ...]:
    """Return which hearings before record number `records` raise the label that their record began with."""
    merged: dict[tuple[int, int], Label] = {}
    for hearing, own in zip(account.hearings, heard, strict=True):
        if hearing.n < records:
            at = (hearing.n, hearing.block)
            merged[at] = merged.get(at, LOWEST).join(own)
    return tuple(
        (n, block, *own)
        for (n, block), own in sorted(merged.items())
        if not after(account, heard, n - 1).covers(own)
    )


def circles(accounts: Mapping[int, Account]) -> set[int]:
    """Return the logs that start, over any number of others, from themselves."""
    starts = {
        key: {log for hearing in account.hearings if hearing.start for log, _ in hearing.refs or ()}
        for key, account in accounts.items()
    }
    return {key for key in starts if key in _reached(starts, starts[key])}


def _reached(starts: Mapping[int, set[int]], first: Iterable[int]) -> set[int]:
    found, line = set(first), list(first)
    while line:
        new = starts.get(line.pop(), set()) - found
        found |= new
        line += new
    return found


def _refs(account: Account) -> Iterable[Ref]:
    for hearing in account.hearings:
        yield from hearing.refs or ()


def _heard(
    hearing: Hearing,
    accounts: Mapping[int, Account],
    values: Mapping[int, list[Label]],
    top: Label,
) -> Label:
    if hearing.refs is None:
        return top
    label = LOWEST
    for log, n in hearing.refs:
        label = label.join(after(accounts[log], values[log], n))
    return label
