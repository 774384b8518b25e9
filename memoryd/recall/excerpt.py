"""The part of a text that answers the question: a few words around those that were asked for.

In: a text, what its words are worth to the question. Out: the densest stretch, with ``…`` where it was cut.
Pure, given the index's tokenizer. FTS5's own snippet() walks its posting lists again for every row, which
cost as much as the whole ranking (measured); this looks at the text alone.
"""

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence

import msgspec

from memoryd.index.figures import Term
from memoryd.recall.query import Token, Tokens

_READ = 16_384
_MOST_READ = 64 * _READ
"""Letters of a text that are looked at, a piece at a time, until a word is found; then its start is shown."""
_CUT = "…"
_LONG_RUN = re.compile(r"\S{97,}")
_RUN_SHOWN = 64
_LONG_SPACE = re.compile(r"\s{9,}")
_MARGIN = 32
_MOST_LETTERS = 1_500


class Sought(msgspec.Struct, frozen=True):
    """What words are worth: whole ones, and all that start with a prefix."""

    words: Mapping[str, float]
    prefixes: Mapping[str, float]

    def worth(self, word: str) -> float:
        """Return what one word of a text is worth."""
        found = self.words.get(word, 0.0)
        if self.prefixes:
            started = (w for prefix, w in self.prefixes.items() if word.startswith(prefix))
            return max(found, max(started, default=0.0))
        return found


def sought(terms: Sequence[Term], weights: Sequence[float]) -> Sought:
    """Return what the words of a question's terms are worth; a phrase shares its weight out."""
    words: dict[str, float] = {}
    prefixes: dict[str, float] = {}
    for term, weight in zip(terms, weights, strict=True):
        for number, word in enumerate(term.tokens, 1):
            into = prefixes if term.prefix and number == len(term.tokens) else words
            into[word] = max(into.get(word, 0.0), weight / len(term.tokens))
    return Sought(words, prefixes)


def excerpt(text: str, question: Sought, width: int, tokens: Tokens) -> str:
    """Return `width` words of `text`, where the different words sought are worth most together."""
    for at in range(0, min(len(text), _MOST_READ), _READ):
        piece = text[at : at + _READ].encode()
        words = tokens(piece)
        valued = [
            (number, word, worth)
            for number, (_, _, word) in enumerate(words)
            if (worth := question.worth(word))
        ]
        if valued:
            before, after = at > 0, at + _READ < len(text)
            return _shown(piece, words, _best(valued, width), width, before=before, after=after)
    words = tokens(text[:_READ].encode())
    return _shown(text[:_READ].encode(), words, (0, 0), width, after=len(text) > _READ)


def _best(valued: Sequence[tuple[int, str, float]], width: int) -> tuple[int, int]:
    """Return the first and last number of the words of the best stretch; of equal ones, the first."""
    inside: deque[tuple[int, str, float]] = deque()
    held: Counter[str] = Counter()
    total = most = 0.0
    best = (valued[0][0], valued[0][0])
    for number, word, worth in valued:
        inside.append((number, word, worth))
        held[word] += 1
        total += worth if held[word] == 1 else 0.0
        while number - inside[0][0] >= width:
            _, gone, lost = inside.popleft()
            held[gone] -= 1
            total -= 0.0 if held[gone] else lost
        if total > most + 1e-9:
            most, best = total, (inside[0][0], number)
    return best


def _shown(
    piece: bytes,
    words: Sequence[Token],
    best: tuple[int, int],
    width: int,
    *,
    before: bool = False,
    after: bool = False,
) -> str:
    """Return the stretch with what stands around it, a third of that before; marked where it goes on."""
    if not words:
        return ""
    first, last = best
    start = max(0, min(first - (width - last + first - 1) // 3, len(words) - width))
    end = min(start + width, len(words))
    begins = words[start][0] if start else max(0, words[0][0] - _MARGIN)
    ends = words[end - 1][1] if end < len(words) else words[-1][1] + _MARGIN
    middle = tidy(piece[begins:ends].decode(errors="ignore"))
    head = _CUT if before or begins else ""
    return f"{head}{middle}{_CUT if after or ends < len(piece) else ''}"


def tidy(text: str) -> str:
    """Return `text` with runs that no eye can follow (base64, indentation) and the whole cut short."""
    shorter = _LONG_RUN.sub(lambda run: f"{run[0][:_RUN_SHOWN]}{_CUT}", text)
    return _LONG_SPACE.sub(" ", shorter).strip()[:_MOST_LETTERS]
