"""The method `forget`: the owner's wish that records be gone, shown first, carried out, or taken back.

In: which records; who derives from them (`Hook`s). Out: what goes of which log, whose file still holds the
words, and whether no byte of them is left in the index (`purged`). Of the owner's socket alone.
"""

from collections.abc import Sequence
from typing import Annotated, Protocol

import msgspec
import trio

from memoryd.clock import parse_rfc3339
from memoryd.db import Deadline
from memoryd.errors import BadRequest
from memoryd.index.choosing import Wanted
from memoryd.index.forgetting import Forgotten, Hook
from memoryd.serve.calls import Common, Methods, Slow, fitting
from memoryd.serve.peers import Asker

Answer = dict[str, object]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
_LEFT_S = 0.25
"""How long before its deadline the method answers that words are still being taken out."""


class Forgets(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What to forget, all of which must fit; or `undo`: the act to take back."""

    session: Name | None = None
    project: Name | None = None
    before: Annotated[str, msgspec.Meta(max_length=64)] | int | None = None
    ids: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=64)], ...], msgspec.Meta(max_length=1_000)
    ] = ()
    dry_run: bool = False
    delete_log: bool = False
    undo: Name | None = None

    def wanted(self) -> Wanted:
        """Return it as the index takes it. Raises: BadRequest for a time that is none."""
        return Wanted(self.session, self.project, _moment(self.before), self.ids)


class Keeper(Protocol):
    """Who writes the index, as this method sees it."""

    async def forget(
        self, wanted: Wanted, *, dry: bool, delete_logs: bool, hooks: Sequence[Hook]
    ) -> Forgotten:
        """Forget, or tell what that comes to. Raises: Busy while the index is rebuilt."""

    async def remember(self, act: str) -> tuple[int, int]:
        """Take an act back, and return once its logs are read again."""

    async def purged(self) -> None:
        """Return when no word of a deleted row is left in the index's files."""


def table(keeper: Keeper, hooks: Sequence[Hook]) -> Methods:
    """Return the method by its name."""

    async def run(_asker: Asker, args: Forgets, _deadline: Deadline) -> Answer:
        if args.undo is not None:
            return await _undo(keeper, args)
        return await _forget(keeper, hooks, args)

    return {"forget": Slow(fitting(Forgets), run)}


async def _forget(keeper: Keeper, hooks: Sequence[Hook], args: Forgets) -> Answer:
    done = await keeper.forget(
        args.wanted(), dry=args.dry_run, delete_logs=args.delete_log, hooks=hooks
    )
    purged = False
    if not args.dry_run:
        # What was forgotten is forgotten: a reader that holds the file up makes no error of it.
        with trio.move_on_at(trio.current_effective_deadline() - _LEFT_S):
            await keeper.purged()
            purged = True
    told: Answer = msgspec.to_builtins(done)
    return {**told, "purged": purged}


async def _undo(keeper: Keeper, args: Forgets) -> Answer:
    if args.wanted() != Wanted() or args.delete_log or args.dry_run:
        raise BadRequest(
            "undo takes the name of an act alone", remedy="leave the rest out", field="undo"
        )
    there, gone = await keeper.remember(str(args.undo))
    return {"act": args.undo, "logs": there, "gone": gone}


def _moment(value: str | int | None) -> int | None:
    if isinstance(value, str):
        moment = parse_rfc3339(value)
        if moment is None:
            raise BadRequest(
                "before: no time",
                remedy="write it like 2026-01-31 or 2026-01-31T12:00:00Z",
                field="before",
            )
        return moment
    return value
