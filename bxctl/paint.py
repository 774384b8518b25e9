"""Paragraphs and grids on a terminal, by rich: wrapped, shortened, coloured.

In: parts of `bxctl.layout`, a stream, its width. Out: text with the sixteen colours that every terminal
theme defines, or with none. Imported only when somebody looks.
"""

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from bxctl.layout import Cell, Grid, Para, Part

STYLES = {
    "dim": Style(dim=True),
    "head": Style(bold=True),
    "id": Style(color="blue"),
    "mark": Style(bold=True),
    "good": Style(color="green"),
    "bad": Style(color="red", bold=True),
    "untrusted": Style(color="magenta", bold=True),
    "class0": Style(color="green"),
    "class1": Style(color="cyan"),
    "class2": Style(color="yellow"),
    "class3": Style(color="red"),
    "class4": Style(color="bright_red"),
    "class5": Style(color="bright_red", bold=True),
    "class6": Style(color="bright_magenta"),
    "class7": Style(color="bright_magenta", bold=True),
}
"""Styles by the names that spans use; a class has the colour of its place in the order, low to high."""

GAP = 2
LEAST = 8
"""A column that gives way keeps at least so many signs."""


def painted(parts: Iterable[Part], *, colour: bool, width: int | None) -> str:
    """Return the parts as they stand on a terminal `width` columns wide; None: as wide as this one is."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=True,
        color_system="standard" if colour else None,
        no_color=not colour,
        theme=Theme(STYLES, inherit=False),
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(_grid(part, console.width) if isinstance(part, Grid) else _para(part))
    return "".join(f"{line.rstrip(' ')}\n" for line in stream.getvalue().splitlines())


def _text(spans: Cell) -> Text:
    return Text.assemble(*spans)


def _para(para: Para) -> RenderableType:
    if not para.lead:
        return Padding(_text(para.spans), (0, 0, 0, para.indent))
    table = Table.grid()
    table.add_column(width=para.indent, no_wrap=True)
    table.add_column()
    table.add_row(_text(para.lead), _text(para.spans))
    return table


def _grid(grid: Grid, width: int) -> RenderableType:
    return Padding(_table(grid, width), (0, 0, 0, grid.indent))


def _table(grid: Grid, width: int) -> Table:
    table = Table(
        box=None,
        padding=(0, GAP, 0, 0),
        pad_edge=False,
        show_header=any(grid.heads),
        header_style="dim",
    )
    for at, (head, wide) in enumerate(zip(grid.heads, _widths(grid, width), strict=True)):
        table.add_column(
            head,
            justify="right" if at in grid.right else "left",
            width=wide,
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in grid.rows:
        table.add_row(*map(_text, row))
    return table


def _widths(grid: Grid, width: int) -> list[int]:
    """Return the columns' widths: what each needs, but for those that give way to the others."""
    cells = [tuple(map(Text, grid.heads)), *(tuple(map(_text, row)) for row in grid.rows)]
    wide = [max(map(_cells, column)) for column in zip(*cells, strict=True)]
    room = width - grid.indent - GAP * (len(wide) - 1)
    over = sum(wide) - room
    for at in sorted(grid.give, key=lambda at: -wide[at]):
        given = min(over, max(0, wide[at] - LEAST))
        wide[at], over = wide[at] - max(0, given), over - max(0, given)
    return wide


def _cells(text: Text) -> int:
    return max(line.cell_len for line in text.split(allow_blank=True))
