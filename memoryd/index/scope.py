"""Who is told what: the value that every function which yields stored text must be given.

In: what a socket grants. Out: a `Scope`, which a request can only tighten (`memoryd.recall.scope`).
It stands in this room, and not in recall, because the index's own reading functions require it.
"""

from fnmatch import fnmatchcase
from typing import Literal, get_args

import msgspec

Policy = Literal["include", "owner-only", "exclude"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
"""What is told of untrusted rows, from lax to strict: all, only the owner's own words, nothing."""

EVERY_PROJECT = ("*",)


class Scope(msgspec.Struct, frozen=True):
    """What one reader may see: classes up to `level`, projects that match a glob, untrusted or not.

    `owner`: the reader is the machine's owner, who alone is told record numbers.
    """

    level: int
    untrusted: Policy = "include"
    projects: tuple[str, ...] = EVERY_PROJECT
    owner: bool = False

    @property
    def limited(self) -> bool:
        """Say whether some projects are outside."""
        return "*" not in self.projects

    def covers_project(self, project: str | None) -> bool:
        """Say whether a log of `project` is inside; a log without one counts as the empty name."""
        return any(fnmatchcase(project or "", glob) for glob in self.projects)


def stricter(one: Policy, other: Policy) -> Policy:
    """Return the policy that tells less."""
    return max(one, other, key=POLICIES.index)
