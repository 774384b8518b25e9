"""What a command wants to show, before anybody knows the terminal.

In: safe text (see `bxctl.safe`) with the names of styles. Out: paragraphs and grids, which `plain` turns
into aligned text for a pipe and `bxctl.paint` into wrapped, coloured text for a terminal.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple
from unicodedata import east_asian_width


class Span(NamedTuple):
    """A piece of text and the name of its style (`bxctl.paint.STYLES`), such as ``dim`` or ``class2``."""

    text: str
    style: str = ""


Cell = tuple[Span, ...]


class Para(NamedTuple):
    """Text that wraps at the terminal's width, `indent` columns in; holds line ends where they are meant.

    `lead` stands in the first line's indentation, and must fit there.
    """

    spans: Cell
    indent: int = 0
    lead: Cell = ()


class Grid(NamedTuple):
    """Aligned columns; by number, `right` are aligned right and `give` are shortened where it is narrow."""

    heads: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    right: frozenset[int] = frozenset()
    give: frozenset[int] = frozenset()
    indent: int = 0


Part = Para | Grid
BLANK = Para(())


def cell(text: object, style: str = "") -> Cell:
    """Return a cell of one span."""
    return (Span(str(text), style),)


def joined(cells: Iterable[Cell], between: str = " · ") -> Cell:
    """Return the cells that hold something, one after the other, with a dim sign between them."""
    found: list[Span] = []
    for spans in cells:
        if any(span.text for span in spans):
            if found:
                found.append(Span(between, "dim" if between.strip() else ""))
            found.extend(spans)
    return tuple(found)


def plain(parts: Iterable[Part]) -> str:
    """Return the parts as text without colour, wrapping or shortening, each line ended."""
    return "".join(f"{line.rstrip()}\n" for part in parts for line in _lines(part))


def _lines(part: Part) -> Iterator[str]:
    if isinstance(part, Para):
        lead = _text(part.lead)
        for line in _text(part.spans).split("\n"):
            yield f"{lead:<{part.indent}}{line}"
            lead = ""
        return
    rows = [tuple(_text(spans) for spans in row) for row in part.rows]
    lines = [
        line
        for row in rows
        for line in zip_longest(*(text.split("\n") for text in row), fillvalue="")
    ]
    table = [part.heads, *lines] if any(part.heads) else lines
    wide = [max(map(columns, column)) for column in zip(*table, strict=True)]
    for row in table:
        fitted = (_fit(text, wide[at], at in part.right) for at, text in enumerate(row))
        yield " " * part.indent + "  ".join(fitted)


def _text(spans: Cell) -> str:
    return "".join(span.text for span in spans)


def columns(text: str) -> int:
    """Return how many columns of a terminal `text` takes; East Asian wide characters take two."""
    return (
        len(text) if text.isascii() else sum(1 + (east_asian_width(sign) in "WF") for sign in text)
    )


def _fit(text: str, width: int, right: bool) -> str:
    blank = " " * (width - columns(text))
    return blank + text if right else text + blank
