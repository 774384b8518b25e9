"""The options that narrow what is looked at, shared by searches and listings.

In: what the command line gave. Out: the same as arguments of a method (docs/protocol.md).
"""

from collections.abc import Mapping
from typing import Any

from bxctl.grammar import Choice, Option, since, until

KINDS = ("owner", "assistant", "tool_call", "summary", "note", "lesson")
"""The words of `memoryd.records.Kind`, not imported since that would cost msgspec (a test compares)."""

FILTERS = (
    Option(
        "kind",
        f"Only {', '.join(KINDS)}; may be given again.",
        "KIND",
        Choice(*KINDS),
        multiple=True,
    ),
    Option("session", "Only this session.", "ID"),
    Option("project", "Only projects that match; a path's last part is enough.", "GLOB"),
    Option("source", "Only logs of this harness, such as claude-code.", "NAME"),
    Option("tool", "Only calls of tools that match.", "GLOB"),
    Option("since", "Only from this time on: 2026-01-31, 3d, '2h ago'.", "TIME", since),
    Option("until", "Only before this time; a day counts to its end.", "TIME", until),
    Option(
        "untrusted",
        "What to do with what is untrusted: include, owner-only or exclude.",
        "WHAT",
        Choice("include", "owner-only", "exclude"),
    ),
    Option("max-class", "Nothing above this class.", "CLASS"),
)


def wire(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, as a method takes them."""
    given = {name: value for name, value in options.items() if value not in {None, ()}}
    if "kind" in given:
        given["kinds"] = list(given.pop("kind"))
    return given
