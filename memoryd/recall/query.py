"""A client's text as terms to look for: data, never syntax.

In: up to 4 KiB of anything. Out: `Term`s, each a quoted FTS5 string, cut into words by the index's own
tokenizer. Two signs mean something: ``"words in quotes"`` are one phrase, ``word*`` (three letters or
more) is a prefix. All else is words: ``AND``, ``NEAR(a b)``, ``a:b``, ``^``, a lone quote. What is written
in one piece (``kebab-case``, ``a_b_c``, ``src/main.ts``, ``KeyError: 'x'``) is a phrase of its words; so is
what is written without spaces, of its pairs of letters (`index.grams`).
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal

from memoryd.errors import BadRequest, TooLarge
from memoryd.index import grams
from memoryd.index.figures import Term

Mode = Literal["smart", "all", "phrase"]
MOST_BYTES = 4_096
MOST_TERMS = 32
MOST_WEIGHED = 128
"""Different terms of a long text that are looked at; the rarest `MOST_TERMS` of them are looked for."""
MOST_PHRASE = 64
"""Words of one phrase; a longer piece becomes several."""
_LEAST_PREFIX = 3

Token = tuple[int, int, str]
"""Where a word starts and ends in the UTF-8 bytes of a text, and the word as the index keeps it."""
Tokens = Callable[[bytes], list[Token]]

_PIECE = re.compile(
    r"""  "(?P<quoted>[^"]*)"                # word for word
        | \w[^\s"':]*:[ ]'[^'"\n]{1,80}'     # KeyError: 'x'
        | [^\s"]+                            # whatever stands without a space
    """,
    re.VERBOSE,
)
_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"'))  # pasted from prose
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # SQLite ends a string at NUL; UTF-8 has no surrogates


def clean(text: str) -> str:
    """Return `text` without what no index can hold."""
    return _NO_TEXT.sub(" ", text)


def parse(text: str, mode: Mode, tokens: Tokens) -> tuple[Term, ...]:
    """Return the different terms of `text` in its order; in mode ``phrase`` exactly one.

    A long text in mode ``smart`` is taken up to its first `MOST_WEIGHED` terms. Raises: TooLarge above
    `MOST_BYTES`; BadRequest where there is no word to look for, or more than mode ``all`` can take.
    """
    text = clean(text)
    size = len(text.encode())
    if size > MOST_BYTES:
        raise TooLarge(
            f"the query has {size} bytes; {MOST_BYTES} is the most",
            remedy="ask with the words that matter",
            field="query",
        )
    text = text.translate(_QUOTES)
    found = _one_phrase(text, tokens) if mode == "phrase" else _terms(text, tokens)
    different: dict[object, Term] = {}
    for term in found:
        different.setdefault((term.tokens, term.prefix), term)
    terms = tuple(different.values())
    if not terms:
        raise BadRequest(
            "the query holds no word: letters and digits are what can be looked for",
            remedy="name at least one word",
            field="query",
        )
    if mode == "all" and len(terms) > MOST_TERMS:
        raise BadRequest(
            f"the query has {len(terms)} words; all of them can be asked for up to {MOST_TERMS}",
            remedy="leave some out, or use mode smart",
            field="query",
        )
    return terms[:MOST_WEIGHED]


def _one_phrase(text: str, tokens: Tokens) -> list[Term]:
    text = text.replace('"', " ")
    if grams.unspaced(text) and not tokens(grams.without(text).encode()):
        return list(_unspaced(text, tokens, whole=True))
    phrase = _runs(text, tokens)
    if len(phrase) > 1:
        raise BadRequest(
            f"a phrase can have {MOST_PHRASE} words at most",
            remedy="quote a part of it",
            field="query",
        )
    return phrase


def _terms(text: str, tokens: Tokens) -> Iterator[Term]:
    for piece in _PIECE.finditer(text):
        quoted = piece["quoted"]
        if grams.unspaced(quoted or piece[0]):
            yield from _unspaced(quoted or piece[0], tokens, whole=quoted is not None)
        elif quoted is not None:
            yield from _runs(quoted, tokens)
        else:
            yield from (_with_parts(term, tokens) for term in _runs(piece[0], tokens))


def _unspaced(text: str, tokens: Tokens, *, whole: bool) -> Iterator[Term]:
    """Yield what is written without spaces as pairs of letters, and the words that stand beside it.

    Not `whole`: pairs that nobody quoted may also be looked for one by one.
    """
    phrase = grams.phrase(text)
    if phrase is not None:
        words = phrase.words[:MOST_PHRASE]
        cut = len(words) < len(phrase.words)
        parts = () if whole or len(words) == 1 else tuple(_gram((word,)) for word in words)
        yield _gram(words, begun=phrase.begun and not cut, parts=parts)
    rest = grams.without(text).encode()
    yield from (_term(rest, [word]) for word in tokens(rest))


def _gram(words: tuple[str, ...], *, begun: bool = False, parts: tuple[Term, ...] = ()) -> Term:
    string = f'{grams.COLUMN} : "{" ".join(words)}"'
    return Term(f"{string} *" if begun else string, words, begun, parts, column=1)


def _runs(text: str, tokens: Tokens) -> list[Term]:
    """Return `text` as one phrase, or as several of `MOST_PHRASE` words; none without a word."""
    raw = text.encode()
    words = tokens(raw)
    runs = [words[at : at + MOST_PHRASE] for at in range(0, len(words), MOST_PHRASE)]
    return [_term(raw, run) for run in runs]


def _term(raw: bytes, words: list[Token]) -> Term:
    """Return the words as a quoted string; the words of the text itself, since stems stem again."""
    start, end = words[0][0], words[-1][1]
    string = '"' + raw[start:end].decode().replace('"', '""') + '"'
    last = raw[words[-1][0] : end].decode()
    prefix = raw[end : end + 1] == b"*" and len(last) >= _LEAST_PREFIX
    return Term(
        match=f"{string} *" if prefix else string,
        tokens=tuple(word for _, _, word in words),
        prefix=prefix,
    )


def _with_parts(term: Term, tokens: Tokens) -> Term:
    """Give a phrase that nobody quoted the words it falls back to."""
    if len(term.tokens) == 1 or term.prefix:
        return term
    raw = term.match.encode()
    parts = {word: _term(raw, [(start, end, word)]) for start, end, word in tokens(raw)}
    return Term(term.match, term.tokens, parts=tuple(parts.values()))
