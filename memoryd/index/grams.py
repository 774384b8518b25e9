"""Words of scripts that write without spaces, as pairs of letters, so that any part of a sentence is found.

In: text. Out: what stands in the second column of the index, and what a question looks for there. FTS5's
unicode61 takes a whole Chinese, Japanese, Thai, Lao, Khmer or Burmese sentence for one word. Here each run
of such letters becomes its overlapping pairs and its last letter (``日本語``: 日本 本語 語), together with
Latin letters that touch it (``テストrun``). Marks above and below letters are left out, as accents are. Pure.
"""

import unicodedata
from collections.abc import Iterator

import msgspec

from memoryd.patterns import later

COLUMN = "grams"
_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao; Burmese; Khmer
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
    "\uac00-\ud7af"  # Korean has spaces, but its endings stick to the word
)
_RUN = later(f"[{_LETTERS}]+")
_MOST_LATIN = 40
_PART = later(
    f"[{_LETTERS}]+"
    f"|(?<![0-9A-Za-z])[0-9A-Za-z]{{1,{_MOST_LATIN}}}(?=[{_LETTERS}])"
    f"|(?<=[{_LETTERS}])[0-9A-Za-z]{{1,{_MOST_LATIN}}}"
)


class Gram(msgspec.Struct, frozen=True):
    """A pair (or last letter, or Latin word) and where it stands, in characters."""

    start: int
    end: int
    text: str


class Phrase(msgspec.Struct, frozen=True):
    """What to look for in the column: words one after the other, the last perhaps only begun."""

    words: tuple[str, ...]
    begun: bool


def unspaced(text: str) -> bool:
    """Say whether `text` has a letter of such a script."""
    return not text.isascii() and _RUN.search(text) is not None


def column(text: str) -> str | None:
    """Return what the index holds of `text` beside it; None for most texts."""
    return " ".join(gram.text for gram in grams(_folded(text))) if unspaced(text) else None


def grams(text: str) -> Iterator[Gram]:
    """Yield every word that the column has of `text`, in order."""
    for part in _PART.finditer(text):
        if _RUN.match(part[0]):
            yield from _pairs(part.start(), part[0])
        else:
            yield Gram(part.start(), part.end(), part[0].lower())


def phrase(text: str) -> Phrase | None:
    """Return how to find `text` as it stands; None if it has no letter of such a script.

    Its last letter may go on in a row, so that it is looked for only where it stands alone.
    """
    text = _folded(text)
    found = list(grams(text)) if unspaced(text) else []
    if not found:
        return None
    alone = len(found) == 1 or found[-2].end != found[-1].end
    last_is_letter = _RUN.match(text[found[-1].start : found[-1].end]) is not None
    if last_is_letter and not alone:
        found.pop()
    return Phrase(tuple(gram.text for gram in found), begun=last_is_letter and alone)


def without(text: str) -> str:
    """Return `text` with spaces, as many as it had bytes, for all that `grams` found in it."""
    return _PART.sub(lambda part: " " * len(part[0].encode()), text)


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each gram starts and ends in the UTF-8 bytes of `text`, and the gram."""
    at = start = 0
    for gram in grams(text):
        start += len(text[at : gram.start].encode())
        at = gram.start
        yield start, start + len(text[gram.start : gram.end].encode()), gram.text


def _pairs(start: int, run: str) -> Iterator[Gram]:
    letters = [(at, letter) for at, letter in enumerate(run, start) if letter.isalnum()]
    ends = [at for at, _ in letters[1:]] + [start + len(run)] * 2
    for number, (at, letter) in enumerate(letters):
        other = "".join(next_ for _, next_ in letters[number + 1 : number + 2])
        yield Gram(at, ends[number + 1], letter + other)


def _folded(text: str) -> str:
    """Return `text` with half-width and composed letters as they are usually written."""
    return unicodedata.normalize("NFKC", text)
