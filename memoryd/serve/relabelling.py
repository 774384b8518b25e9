"""The methods `explain` and `relabel`: why a log's records have their labels, and the owner's word on them.

In: a log's name, a range of its records, a label and a reason. Out: the steps at which the label rose with the
rules that raised it; or what was changed. Of the owner's socket alone: both tell of records at every class.
"""

from typing import Annotated, Protocol

import msgspec

from memoryd.db import Deadline
from memoryd.index.deciding import Relabelled, Wish
from memoryd.index.explaining import Explained
from memoryd.serve.calls import Common, Methods, Slow, fitting
from memoryd.serve.peers import Asker

Answer = dict[str, object]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 28) - 1)]


class Explain(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which log."""

    log: Name


class Relabel(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which records of which log, from `first` to `last` (both included), get which label, and why."""

    log: Name
    first: Number = msgspec.field(name="from", default=0)
    last: Number | None = msgspec.field(name="to", default=None)
    cls: Annotated[str, msgspec.Meta(max_length=64)] | None = msgspec.field(
        name="class", default=None
    )
    trusted: bool = False
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1_024)]


class Keeper(Protocol):
    """Who writes the index, as these methods see it."""

    async def explain(self, log: str) -> Explained:
        """Return why the rows of a log have their labels."""

    async def relabel(self, log: str, wish: Wish) -> Relabelled:
        """Give rows of a log the owner's own label, once all that is on the disk is read."""


def table(keeper: Keeper) -> Methods:
    """Return the methods by their names."""

    async def explain(_asker: Asker, args: Explain, _deadline: Deadline) -> Answer:
        told: Answer = msgspec.to_builtins(await keeper.explain(args.log))
        return told

    async def relabel(_asker: Asker, args: Relabel, _deadline: Deadline) -> Answer:
        wish = Wish(args.first, args.last, args.cls, args.trusted, args.reason)
        told: Answer = msgspec.to_builtins(await keeper.relabel(args.log, wish))
        return told

    return {
        "explain": Slow(fitting(Explain), explain),
        "relabel": Slow(fitting(Relabel), relabel),
    }
