"""What records look like to a person. Pure: the present moment is an argument.

In: decoded answers (docs/protocol.md). Out: parts of `bxctl.layout`; every stored text passes `bxctl.safe`
on its way into one.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from bxctl import safe, times
from bxctl.layout import BLANK, Cell, Para, Part, Span, cell, joined
from memoryd import clock

Answer = Mapping[str, Any]
LONGEST_ENDING = 4
"""Letters by which a word may go on after a stem and still be its kin: retr-ying, not retr-ospect."""


def hits(found: Sequence[Answer], asked: str, classes: Sequence[str], now: int) -> Iterator[Part]:
    """Yield search hits: what it is, what it says, then where it comes from and how to see more.

    Words that begin like one of `asked` are marked.
    """
    stems = {word[: max(3, len(word) - 1)] for word in _words(asked.casefold()) if len(word) > 2}
    for number, hit in enumerate(found):
        if number:
            yield BLANK
        yield Para(heading(hit, classes, now))
        text = safe.text(hit["text"]) if "text" in hit else safe.line(hit["snippet"])
        yield Para((*_marked(text, stems), *_cut(hit)), 2)
        yield Para(origin(hit), 2)


def record(row: Answer, classes: Sequence[str], now: int, *, asked: bool) -> Iterator[Part]:
    """Yield one record in full; `asked` marks the one that was asked for among its neighbours."""
    mark = (Span("▸ ", "head"),) if asked else ()
    yield Para(mark + heading(row, classes, now))
    yield Para((*cell(safe.text(row["text"])), *_cut(row)), 2)
    yield Para(origin(row), 2)


def heading(row: Answer, classes: Sequence[str], now: int) -> Cell:
    """Return kind and tool, class, distrust, time and the project's last part, in one line."""
    what = " ".join(filter(None, (row["kind"], row.get("tool"))))
    return joined(
        (
            cell(safe.line(what), "head"),
            label(row, classes),
            cell(times.said(moment(row.get("ts")), now)),
            cell(safe.line((row["project"] or "").rstrip("/").rpartition("/")[2]), "dim"),
        ),
        "  ",
    )


def origin(row: Answer) -> Cell:
    """Return the id to ask for, the source and the session."""
    return joined(
        (
            cell(row["id"], "id"),
            cell(safe.line(row["source"]), "dim"),
            cell(safe.line(row.get("session") or ""), "dim"),
        )
    )


def label(row: Answer, classes: Sequence[str]) -> Cell:
    """Return a class in its colour, and that it is untrusted where it is."""
    name = row["class"]
    style = f"class{classes.index(name)}" if name in classes else "class7"
    shown: Cell = (Span(safe.line(name), style),)
    if row.get("external"):
        return (*shown, Span(" changed outside", "untrusted"))
    shown = (*shown, Span(" untrusted", "untrusted")) if row["untrusted"] else shown
    return (*shown, Span(" an edit waits", "dim")) if row.get("pending") else shown


def moment(ts: object) -> int | None:
    """Return an answer's time in ms since 1970, or None when it tells none."""
    return ts if isinstance(ts, int) else clock.parse_rfc3339(ts)


def sized(many: int) -> str:
    """Return a number of bytes in the unit that reads best."""
    size = float(many)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1_000 or unit == "GB":
            break
        size /= 1_000
    return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:,.1f} {unit}"


def _words(text: str) -> Iterator[str]:
    """Yield the runs of letters and digits in `text`."""
    for letter, run in groupby(text, str.isalnum):
        if letter:
            yield "".join(run)


def _marked(text: str, stems: set[str]) -> Cell:
    """Return `text` with the words marked that begin like a stem."""
    spans: list[Span] = []
    for letter, run in groupby(text, str.isalnum):
        piece = "".join(run)
        hit = letter and any(_kin(piece.casefold(), stem) for stem in stems)
        if not hit and spans and not spans[-1].style:
            spans[-1] = Span(spans[-1].text + piece)
        else:
            spans.append(Span(piece, "mark" if hit else ""))
    return tuple(spans)


def _kin(word: str, stem: str) -> bool:
    """Say whether `word` is `stem` with an ending."""
    return word.startswith(stem) and len(word) <= len(stem) + LONGEST_ENDING


def _cut(row: Answer) -> Cell:
    """Return that a text was cut, where it was."""
    return (Span("\n(cut: too long for one answer)", "dim"),) if row.get("cut") else ()
