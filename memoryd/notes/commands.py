"""What each command means for a text: pure functions from a note's text to its next one.

In: text and arguments, as Anthropic's memory tool (``memory_20250818``) names them. Out: the new text with what
to show around the change, or a refusal that says the valid range or the next step (check 10). Lines are cut at
LF only, never at other separators, so that no byte outside an edit changes.
"""

import re

import msgspec

from memoryd.errors import BadRequest, CheckFailed

PAGE_LINES = 400
PAGE_CHARACTERS = 16_000
AROUND = 2
_MOST_PLACES = 20


class Edited(msgspec.Struct, frozen=True):
    """A note's next text, and the lines (from 1, inclusive) that the edit made."""

    text: str
    first: int
    last: int


class Page(msgspec.Struct, frozen=True):
    """Numbered lines of a note. `next`: the line to go on from, None at the end."""

    text: str
    first: int
    last: int
    lines: int
    next: int | None


def lines_of(text: str) -> list[str]:
    """Return the lines of `text` without their LF; a final LF ends the last line."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def numbered(lines: list[str], first: int) -> str:
    """Return `lines` with numbers from `first`, six wide, and a TAB."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def page(text: str, view_range: tuple[int, int] | None = None) -> Page:
    """Return the lines of `view_range` ([a, b], from 1; b = -1: to the end), one page at most.

    Raises: CheckFailed (``range``) unless 1 <= a <= b <= lines.
    """
    lines = lines_of(text)
    first, last = view_range or (1, -1)
    if last == -1:
        last = max(len(lines), first) if view_range is None else len(lines)
    if not (1 <= first <= last <= len(lines)) and not (view_range is None and not lines):
        raise _range(f"lines {first} to {last}", f"1 to {len(lines)}")
    shown: list[str] = []
    room = PAGE_CHARACTERS
    for line in lines[first - 1 : min(last, first - 1 + PAGE_LINES)]:
        room -= len(line) + 8
        if room < 0 and shown:
            break
        shown.append(line)
    end = first - 1 + len(shown)
    following = end + 1 if end < min(last, len(lines)) else None
    return Page(numbered(shown, first), first, end, len(lines), following)


def snippet(edited: Edited) -> str:
    """Return the edited lines with two more on both sides, numbered."""
    lines = lines_of(edited.text)
    first = max(1, edited.first - AROUND)
    return numbered(lines[first - 1 : edited.last + AROUND], first)


def str_replace(text: str, old_str: str, new_str: str) -> Edited:
    """Replace the one place where `old_str` stands.

    Raises: BadRequest (``args``) for an empty `old_str`; CheckFailed (``no_match``, ``multiple`` with the
    lines where it begins, overlapping ones too).
    """
    if not old_str:
        raise BadRequest("old_str is empty", remedy="give the text to replace", check="args")
    # A lookahead finds overlapping places as well: "aa" stands twice in "aaa".
    places = [match.start() for match in re.finditer(f"(?={re.escape(old_str)})", text)]
    if not places:
        raise CheckFailed(
            "old_str does not stand in the note",
            remedy="view the note and copy the text exactly, white space included",
            check="no_match",
        )
    starts = [text.count("\n", 0, place) + 1 for place in places[:_MOST_PLACES]]
    if len(places) > 1:
        raise CheckFailed(
            f"old_str stands in {len(places)} places, at lines {', '.join(map(str, starts))}",
            remedy="give more of the text around the one you mean",
            check="multiple",
            lines=starts,
            count=len(places),
        )
    place = places[0]
    after = text[:place] + new_str + text[place + len(old_str) :]
    return Edited(after, starts[0], starts[0] + new_str.count("\n"))


def insert(text: str, insert_line: int, insert_text: str) -> Edited:
    """Insert `insert_text` as lines of its own after line `insert_line` (0: before the first).

    Raises: CheckFailed (``range``) with the valid range.
    """
    count = len(lines_of(text))
    if not 0 <= insert_line <= count:
        raise _range(f"line {insert_line}", f"0 to {count}")
    if not insert_text:
        return Edited(text, insert_line + 1, insert_line + 1)
    added = insert_text if insert_text.endswith("\n") else insert_text + "\n"
    place = 0
    for _ in range(insert_line):
        end = text.find("\n", place)
        if end < 0:
            text += "\n"
            end = len(text) - 1
        place = end + 1
    made = len(lines_of(added))
    return Edited(text[:place] + added + text[place:], insert_line + 1, insert_line + max(made, 1))


def _range(asked: str, valid: str) -> CheckFailed:
    return CheckFailed(
        f"{asked} is not in the note", remedy=f"valid are {valid}", check="range", valid=valid
    )
