"""Stored text as lines of a prompt that can open nothing, close nothing and start no line of its own.

In: text that somebody stored. Out: lines that all begin with ``| ``, without characters that nobody sees, in
which no tag begins; and, the other way, the text again. Pure, standard library only: a harness's hook quotes
what it recalls with the same function as the daemon quotes the memory block.
"""

import re
import unicodedata
from collections.abc import Iterable

PREFIX = "| "
_DROPPED = frozenset(("Cc", "Cf", "Cn", "Co", "Cs"))
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\U000e0000-\U000e0fff]"
)
"""What Unicode lets a renderer leave out, beyond the categories above: fillers, selectors, tags."""
_SEPARATORS = re.compile("[\u2028\u2029]")
_TAG = re.compile(r"<(?=[/!?|-]*[^\W\d_])")


def cleaned(text: str) -> str:
    """Return `text` as it can be shown: NFC, only characters that are seen, TAB and LF.

    Dropped are controls, format characters (zero-width, those that turn the reading direction), private use,
    halves of surrogate pairs, what is no character (yet) and tags; separators of lines and paragraphs
    become LF. Cleaning twice changes nothing more.
    """
    if text.isascii():
        return text if _seen(text) else "".join(filter(_shown, text))
    lines = _SEPARATORS.sub("\n", _IGNORED.sub("", text))
    return unicodedata.normalize("NFC", lines if _seen(lines) else "".join(filter(_shown, lines)))


def _seen(text: str) -> bool:
    """Say whether there is nothing to drop; what is printable has none of the dropped categories."""
    return text.replace("\n", "").replace("\t", "").isprintable()


def _shown(letter: str) -> bool:
    return letter in "\n\t" or unicodedata.category(letter) not in _DROPPED


def escaped(text: str) -> str:
    """Return cleaned text in which no tag begins; ``&`` first, so that it can be undone."""
    return _TAG.sub("&lt;", text.replace("&", "&amp;"))


def unescaped(text: str) -> str:
    """Return what `escaped` was given."""
    return text.replace("&lt;", "<").replace("&amp;", "&")


def quoted(text: str) -> list[str]:
    """Return stored text as lines of a prompt; one line end at its end is no line of its own."""
    lines = escaped(cleaned(text)).removesuffix("\n").split("\n")
    return [PREFIX + line for line in lines]


def on_one_line(text: str) -> str:
    """Return stored text as one line, blanks of any kind become one; not yet escaped."""
    return " ".join(cleaned(text).split())


def unquoted(lines: Iterable[str]) -> str:
    """Return the cleaned text that `quoted` made these lines of, without a line end at its end."""
    return "\n".join(unescaped(line.removeprefix(PREFIX)) for line in lines)
