"""What `make bench-peers` found, as a table, and where memoryd is behind a peer or misses a limit.

In: `Figures` of each tool. Out: Markdown; names of columns. Pure.
"""

from collections.abc import Callable, Mapping

import msgspec

CPU_MOST_S, SIZE_MOST_MIB, WARM_MOST_MS = 1.0, 8.0, 2.0


class Figures(msgspec.Struct, kw_only=True):
    """What was found of one tool; None: it has no such thing."""

    version: str = ""
    cpu: float | None = None
    size: float | None = None
    cold: float | None = None
    warm: float | None = None
    served: float | None = None
    found: int = 0
    missed: list[str] = []
    torn: str = "-"
    probes: Mapping[str, int] = {}
    modes: str = "-"


COLUMNS: Mapping[str, tuple[str, Callable[[Figures], float | None]]] = {
    "index CPU, s": ("{:.2f}", lambda f: f.cpu),
    "size, MiB": ("{:.1f}", lambda f: f.size),
    "cold, ms": ("{:.0f}", lambda f: f.cold),
    "warm, ms": ("{:.0f}", lambda f: f.warm),
    "served, ms": ("{:.2f}", lambda f: f.served),
    "found": ("{:.0f}", lambda f: -f.found),
    "secrets": ("{:.0f}", lambda f: f.probes.get("secrets")),
    "results": ("{:.0f}", lambda f: f.probes.get("results")),
    "thinking": ("{:.0f}", lambda f: f.probes.get("thinking")),
}
"""How a column is written, and its figure, of which less is better."""


def table(found: Mapping[str, Figures]) -> str:
    """Return the figures as a Markdown table."""
    head = ["tool", *COLUMNS, "torn line", "modes"]
    lines = [f"| {' | '.join(head)} |", f"|---|{'--:|' * len(COLUMNS)}---|---|"]
    for name, figures in found.items():
        cells = [f"{name} {figures.version}".strip()]
        for form, figure in COLUMNS.values():
            value = figure(figures)
            cells.append("-" if value is None else form.format(abs(value)))
        lines.append(f"| {' | '.join([*cells, figures.torn, figures.modes])} |")
    return "\n".join(lines)


def behind(found: Mapping[str, Figures]) -> list[str]:
    """Return where a peer has a better figure than memoryd."""
    mine = found["memoryd"]
    said = []
    for name, (_, figure) in COLUMNS.items():
        ours = figure(mine)
        better = [
            peer for peer, one in found.items() if (theirs := figure(one)) is not None
            and ours is not None and theirs < ours
        ]  # fmt: skip
        if better:
            said.append(f"{name}: {', '.join(better)}")
    return said


def missed(mine: Figures, needles: int) -> list[str]:
    """Return which limits memoryd misses."""
    limits = {
        "needles": mine.found == needles,
        "index CPU": (mine.cpu or 0) <= CPU_MOST_S,
        "size": (mine.size or 0) <= SIZE_MOST_MIB,
        "served": (mine.served or 0) <= WARM_MOST_MS,
        "torn line": mine.torn == "whole",
        "at rest": not any(mine.probes.values()),
        "modes": mine.modes == "0600 in 0700",
    }
    return [name for name, met in limits.items() if not met]
