"""What a vanished log told of others, kept with it: logs that started from it still find what it was.

In: a log's row and its names in an index. Out: one text for the first line of its kept file, and back. Its
own steps and what it had heard are one there: a kept log stands as it was, and hears nothing new.
"""

from base64 import b64decode, b64encode

import apsw
import msgspec

from memoryd.fold import Step
from memoryd.index import table
from memoryd.index.kinfolk import Names, Told
from memoryd.index.schema import class_of
from memoryd.index.table import Log
from memoryd.labels import Classes, Label, LabelError


class _Kept(msgspec.Struct, array_like=True):
    """Steps by the names of their classes, so that they outlive a change of the list."""

    told: Told
    steps: list[tuple[int, str, bool]]
    names: list[tuple[int, bytes, bytes]]


_decode = msgspec.msgpack.Decoder(_Kept).decode


def packed(connection: apsw.Connection, log: Log, names: tuple[str, ...]) -> str:
    """Return what a log tells of others, under an index's class `names`. Raises: apsw.Error."""
    heard = [(n, level, untrusted) for n, _, level, untrusted in log.heard.raises]
    steps = [
        (n, class_of(names, level), untrusted)
        for n, level, untrusted in sorted([*log.kin.steps, *heard])
    ]
    told = msgspec.structs.replace(log.kin, steps=[])
    found = [(one.first_n, one.own, one.copied) for one in table.names(connection, log.id)]
    return b64encode(msgspec.msgpack.encode(_Kept(told, steps, found))).decode()


def restore(
    connection: apsw.Connection, log: Log, text: str, classes: Classes, judged: Label | None
) -> None:
    """Give a kept log's row what `packed` made of it, and the index its names.

    `judged`: the label of all of it under today's rules, where they are no longer those of `text`; then it
    stands for every record of it. Raises: apsw.Error.
    """
    try:
        kept = _decode(b64decode(text))
    except (ValueError, msgspec.MsgspecError):
        kept = _Kept(Told(), [], [])  # what was kept before there was any, or cannot be read
        judged = log.label
    steps = [_step(step, classes) for step in kept.steps]
    log.kin = msgspec.structs.replace(kept.told, steps=steps if judged is None else [(-1, *judged)])
    for first_n, own, copied in kept.names:
        table.store_names(connection, log.id, Names(first_n, own, copied))


def _step(step: tuple[int, str, bool], classes: Classes) -> Step:
    n, name, untrusted = step
    try:
        return n, classes.level(name), untrusted
    except LabelError:
        return n, classes.top, untrusted
