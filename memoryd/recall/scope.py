"""What a request may see: what its socket grants, tightened by what it asks.

In: the socket's `Scope` and the request's own wishes. Out: a `Scope` that tells at most as much; nothing
in a request widens it. `Scope` itself is defined in the room below, whose reading functions require it.
"""

import msgspec

from memoryd.index.scope import POLICIES, Policy, Scope, stricter

__all__ = ["POLICIES", "Policy", "Scope", "narrowed"]


def narrowed(scope: Scope, *, level: int | None = None, untrusted: Policy | None = None) -> Scope:
    """Return `scope` with at most `level` and at least the strictness of `untrusted`."""
    return msgspec.structs.replace(
        scope,
        level=scope.level if level is None else max(0, min(scope.level, level)),
        untrusted=scope.untrusted if untrusted is None else stricter(scope.untrusted, untrusted),
    )
