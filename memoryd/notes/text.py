"""What a note's text may be (check 11), and what in it looks like an attempt on its reader (check 15).

In: text. Out: nothing or a refusal; the names of suspicious shapes with their lines. Shapes are a warning
for the owner and never the gate: input filters stop few attacks (the gate is the label on the write).
"""

import re
import unicodedata

import msgspec

from memoryd.errors import CheckFailed, TooLarge
from memoryd.notes import front

MAX_BYTES = 102_400
MAX_LINE_BYTES = 4_096
_REFUSED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
_TAGS = re.compile("[\U000e0020-\U000e007e]{8,}")
"""ASCII that nobody sees; eight and more, since the flag of a region holds six."""
_LONG_LINE = re.compile(f"[^\n]{{{MAX_LINE_BYTES // 4 + 1},}}")


class Flag(msgspec.Struct, frozen=True):
    """A suspicious shape: its name and its first line; the words themselves are not repeated."""

    kind: str
    line: int


_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "override",
        re.compile(
            r"\b(?:ignore|disregard|forget|override)\b[^\n]{0,40}"
            r"\b(?:previous|prior|earlier|above|all|system)\b[^\n]{0,40}"
            r"\b(?:instruction|prompt|rule|message|context)s?\b",
            re.IGNORECASE,
        ),
    ),
    (
        "forged-tag",
        re.compile(
            r"</?\s*(?:system|assistant|user|human|tool|function|memory|instructions?)[\w:-]*[^>\n]{0,80}>"
            r"|\[/?INST\]|<\|[a-z_]+\|>",
            re.IGNORECASE,
        ),
    ),
    (
        "to-a-future-self",
        re.compile(
            r"\b(?:in|for|at)\s+(?:all|every|each|any|the\s+next)\s+future\s+(?:session|conversation|task|run)s?\b"
            r"|\bfrom\s+now\s+on\b[^\n]{0,80}\b(?:always|never|must|do\s+not|don't)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "hide-from-owner",
        re.compile(
            r"\b(?:do\s+not|don't|never)\s+(?:tell|mention|inform|show|reveal)\b[^\n]{0,40}"
            r"\b(?:user|owner|human|operator|anyone)\b",
            re.IGNORECASE,
        ),
    ),
    ("long-encoded-run", re.compile(r"[A-Za-z0-9+/=_-]{200,}")),
)


def encoded(text: str) -> bytes:
    """Return the bytes of `text` once it is fit to be a note.

    Raises: CheckFailed (``text`` or ``front``) naming the line, TooLarge (``size``).
    """
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise _wrong(line, "holds half of a surrogate pair") from None
    check(text, len(content))
    return content


def as_text(content: bytes) -> str:
    """Return what UTF-8 bytes say. Raises: CheckFailed (``text``) naming the line."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _wrong(content.count(b"\n", 0, error.start) + 1, "is not UTF-8") from None


def decoded(content: bytes) -> str:
    """Return the text of a note's bytes, fit to be a note. Raises: as `encoded`."""
    text = as_text(content)
    check(text, len(content))
    return text


def check(text: str, size: int) -> None:
    """Refuse text that cannot be a note; `size` in bytes. Raises: as `encoded`."""
    if size > MAX_BYTES:
        raise TooLarge(
            f"a note of {size} bytes; {MAX_BYTES} fit", remedy="split the note", check="size"
        )
    if found := _REFUSED.search(text):
        raise _wrong(_line(text, found.start()), _named(found[0]))
    for long in _LONG_LINE.finditer(text):
        if len(long[0].encode()) > MAX_LINE_BYTES:
            number = _line(text, long.start())
            raise TooLarge(
                f"line {number} has more than {MAX_LINE_BYTES} bytes",
                remedy="break the line",
                check="size",
                line=number,
            )
    front.parse(text)


def _named(letter: str) -> str:
    if letter == "\r":
        return "holds a carriage return"
    plain = unicodedata.category(letter) == "Cc"
    return f"holds a {'control character' if plain else 'character that turns the direction'}"


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def suspicious(text: str) -> tuple[Flag, ...]:
    """Return the suspicious shapes of `text`, each kind once, at its first line."""
    plain = text if text.isascii() else _INVISIBLE.sub("", text)
    found = []
    if tag := _TAGS.search(text):
        found.append(Flag("invisible-text", _line(text, tag.start())))
    for kind, pattern in _SHAPES:
        if match := pattern.search(plain):
            found.append(Flag(kind, _line(plain, match.start())))
    return tuple(found)


def _wrong(line: int, problem: str) -> CheckFailed:
    return CheckFailed(
        f"line {line} {problem}",
        remedy="write UTF-8 with LF line ends and no control characters but TAB",
        check="text",
        line=line,
    )
