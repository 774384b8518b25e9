"""From a decoded request to a method and its checked arguments, or the reason why not. Pure.

In: the table of methods, what the socket allows, a `Request`. Out: the `Method` and its arguments
struct, or an error whose `field` names the argument that is wrong.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from memoryd.db import Deadline
from memoryd.errors import BadRequest, NotGranted, UnknownMethod
from memoryd.protocol import Args, Request
from memoryd.serve.peers import Asker, Capability

Milliseconds = Annotated[int, msgspec.Meta(ge=1, le=600_000)]


class Common(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What every method takes: how long its asker waits."""

    deadline_ms: Milliseconds = 5_000


Made = TypeVar("Made", bound=Common)
Check = Callable[[Args], Common]
"""Makes a request's arguments what its method takes. Raises: BadRequest."""


class Quick(msgspec.Struct, frozen=True):
    """A method that answers from memory, at once."""

    check: Check
    run: Callable[[Asker, Any], object]


class Slow(msgspec.Struct, frozen=True):
    """A method that may wait: a task of its own, under its deadline.

    It hands the `Deadline` on to whatever thread works for it, so that both end together.
    """

    check: Check
    run: Callable[[Asker, Any, Deadline], Awaitable[object]]


Method = Quick | Slow
Methods = Mapping[str, Method]


def admit(methods: Methods, allowed: Capability, request: Request) -> tuple[Method, Common]:
    """Return the method asked for and its arguments, checked.

    Raises: UnknownMethod, NotGranted, BadRequest.
    """
    method = methods.get(request.method)
    if method is None:
        raise UnknownMethod("no such method", remedy="docs/protocol.md lists them")
    if request.method not in allowed.methods:
        raise NotGranted(
            f"the socket {allowed.name!r} does not grant {request.method}",
            remedy="ask through a socket that does, or add it to the socket's `tools`",
            rule=f"tools of the socket {allowed.name}",
        )
    if request.args is None:
        raise BadRequest("params hold anything but one map", remedy='send [{"name": value}]')
    return method, method.check(request.args)


def fitting(form: type[Made]) -> Callable[[Args], Made]:
    """Return the check for arguments that are the fields of `form` and nothing else."""

    def check(args: Args) -> Made:
        try:
            return msgspec.convert(args, form)
        except msgspec.ValidationError as error:
            raise explained(str(error), field_names(form)) from None

    return check


def field_names(form: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the arguments that `form` takes."""
    return tuple(item.encode_name for item in msgspec.structs.fields(form))


def explained(problem: str, known: Iterable[str]) -> BadRequest:
    """Turn the validator's sentence into an error that names the argument and what would be right."""
    what, _, where = problem.partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    if unknown := re.search(r"unknown field `(.*)`", what):
        field = f"{path}.{unknown[1]}" if path else unknown[1]
        hint = f"known are {', '.join(known)}"
        return BadRequest(f"no argument {field[:80]!r}", remedy=hint, field=field[:80])
    if missing := re.search(r"missing required field `(.*)`", what):
        field = f"{path}.{missing[1]}" if path else missing[1]
        return BadRequest(f"the argument {field!r} is missing", remedy="give it", field=field)
    said = what.replace("`", "")
    return BadRequest(
        f"{path or 'arguments'}: {said[0].lower()}{said[1:]}"[:200],
        remedy="docs/protocol.md has its type",
        field=path,
    )
