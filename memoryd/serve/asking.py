"""How much of what a socket may see a request is answered with. Pure.

In: the socket's capability, the request's `max_class`, the label of the session that asks. Out: a
`Scope`, at most as wide as the capability. Nothing in a request widens it: a session that names itself
sees its own class unless it asks for more, and never more than the socket's clearance.
"""

from typing import Annotated

import msgspec

from memoryd.errors import BadRequest
from memoryd.ids import MAX_N
from memoryd.index.scope import Scope
from memoryd.labels import Classes, Label, LabelError
from memoryd.protocol import Args
from memoryd.serve.calls import Check, Common, explained, field_names
from memoryd.serve.peers import Capability


class Caller(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The session that asks: its log, and how many records of it the asker has written (from 0)."""

    log: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
    n: Annotated[int, msgspec.Meta(ge=0, le=MAX_N)]


class Reading(Common, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Arguments of every method that yields stored text; `asked` are the method's own, unread here."""

    caller: Caller | None = None
    max_class: str | None = None
    asked: Args = msgspec.field(default_factory=dict)


_OURS = tuple(name for name in field_names(Reading) if name != "asked")


def reading(form: type[msgspec.Struct]) -> Check:
    """Return the check for a reading method whose own arguments are the fields of `form`."""
    known = (*field_names(form), *_OURS)

    def check(args: Args) -> Reading:
        ours = {name: value for name, value in args.items() if name in _OURS}
        asked = {name: value for name, value in args.items() if name not in _OURS}
        try:
            msgspec.convert(asked, form)
            return msgspec.convert({**ours, "asked": asked}, Reading)
        except msgspec.ValidationError as error:
            raise explained(str(error), known) from None

    return check


def unnamed(capability: Capability, classes: Classes) -> Label:
    """Return the label of a session that names no log: nobody knows what it has seen, so it is untrusted."""
    return Label(classes.top if capability.unnamed is None else capability.unnamed, True)


def scope_of(
    capability: Capability, classes: Classes, max_class: str | None, caller: Label | None
) -> Scope:
    """Return what the request may see; `caller` is the asking session's label, if it named itself.

    A `max_class` above the clearance counts as the clearance, and no word of the answer tells which it was.
    Raises: BadRequest for a name that is no class at all: a slip must not mean "no limit".
    """
    level = capability.level if caller is None else min(caller.level, capability.level)
    if max_class is not None:
        try:
            level = min(classes.level(max_class), capability.level)
        except LabelError:
            raise BadRequest(
                "max_class: no such class",
                remedy=f"choose one of {', '.join(classes.upto(capability.level))}",
                field="max_class",
            ) from None
    return Scope(level, capability.untrusted, capability.projects, capability.owner)
