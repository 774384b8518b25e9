"""Secrets known by their own shape, wherever they stand: private blocks, keys, tokens, passwords in URLs.

In: text, and which needles of the sieve it holds. Out: the places, kind by kind. Prefixes and lengths are those
that the makers of the tokens publish; where a prefix is also a word (`sk-` in a class name), a digit must
follow. Each search goes forward only, so that time grows with the text and no faster.
"""

import re
from collections.abc import Callable, Collection, Iterator
from itertools import takewhile

from memoryd.patterns import later
from memoryd.redact.values import is_opaque, is_placeholder

Span = tuple[int, int]

PRIVATE = "private"

# In lower case, the letters a token begins with, and its pattern. `(?<!...)` comes after them: a pattern
# that begins with plain letters is found several times faster.
_TOKENS: tuple[tuple[str, str], ...] = (
    ("akia", r"AKIA(?<![A-Za-z0-9]AKIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("asia", r"ASIA(?<![A-Za-z0-9]ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aiza", r"AIza(?<![\w-]AIza)[\w-]{30,}"),
    ("eyj", r"eyJ(?<![\w-]eyJ)[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
    ("ghp_", r"ghp_(?<![A-Za-z0-9]ghp_)[A-Za-z0-9]{16,}"),
    ("gho_", r"gho_(?<![A-Za-z0-9]gho_)[A-Za-z0-9]{16,}"),
    ("ghs_", r"ghs_(?<![A-Za-z0-9]ghs_)[A-Za-z0-9]{16,}"),
    ("github_pat_", r"github_pat_\w{16,}"),
    ("glpat-", r"glpat-[\w-]{16,}"),
    ("hf_", r"hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{24,}"),
    ("k_live_", r"[rs]k_live_(?<![A-Za-z0-9][rs]k_live_)[A-Za-z0-9]{10,}"),
    ("npm_", r"npm_(?<![A-Za-z0-9]npm_)[A-Za-z0-9]{30,}"),
    ("pypi-", r"pypi-(?<![\w-]pypi-)Ag[\w-]{16,}"),
    ("sg.", r"SG\.(?<![\w.]SG\.)[\w-]{16,}\.[\w-]{16,}"),
    ("sk-", r"sk-(?<![A-Za-z0-9]sk-)(?:[a-z]{2,10}-){0,2}[A-Za-z0-9_]{16,}"),
    ("sk-", r"sk-(?<![A-Za-z0-9]sk-)(?:admin|ant|lf|or|proj|svcacct)-[\w-]{16,}"),
    ("xox", r"xox[abeoprs]-(?<![A-Za-z0-9]xox[abeoprs]-)[\w-]{10,}"),
    ("://", r"hooks\.slack\.com/services/(T\w+/B\w+/\w{8,})"),
)
_PATTERNS = tuple((needle, later(pattern, re.ASCII)) for needle, pattern in _TOKENS)
_ALSO_A_WORD = {"hf_", "sk-"}

_PRIVATE_OPENS = later(r"(?i)<private(?:\s[^<>]{0,200})?>")
_PRIVATE_TAG = later(r"(?i)</private\s{0,20}>|<private(?:\s[^<>]{0,200})?>")
_PRIVATE_CLOSES_AT_END = later(r"(?i)</private\s{0,20}>\Z")

_BEGIN = later(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = later(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_WHOLE_KEY = 20_000  # characters; RSA with 16,384 bits has 12,700
_BREAK = later(r"(?:\s|\\+[nrt])++")
_WORD = later(r"(?:(?!\\[nrt])\S)++")
_LETTERS = later(r"[A-Za-z0-9+/=]{20}")
_LINE = later(r"[A-Za-z0-9+/=]{1,100}")
# What code puts between the lines of a key.
_JUNK = r"""(?:\\[nrt]|[\s"'+,\\>|*#;()\[\]-]){0,60}+"""
_CUT_KEY = later(
    rf"(?:{_JUNK}[A-Z][A-Za-z-]{{2,20}}+: [^\n\\]{{1,100}}+)*+"  # Proc-Type: 4,ENCRYPTED
    rf"(?:{_JUNK}[A-Za-z0-9+/=]{{20,}}+)*+(?:{_JUNK}[A-Za-z0-9+/=]{{4,19}}+(?=[.…\s]*+\Z))?+"
)

_USERINFO = later(r"""://[^\s/:@"'`<>\\]{0,128}+:(?P<value>[^\s/"'`<>\\]{1,256})@(?=[\w\[])""")
_BARE_USER = later(r"://(?P<value>[A-Za-z0-9_-]{20,256}+)@(?=[\w\[])")
_CURL_USER = re.compile(  # not later: `_is_password` asks whether it was the one that found
    r"""(?<![\w-])(?:-u|--user|--proxy-user)[ =]?["']?[^\s:"'$]{1,64}+:(?P<value>[^\s"']{2,256}+)"""
)
_NO_PASSWORD = {"pass", "passwd", "password", "pw", "pwd", "secret", "token", "x-oauth-basic"}


def private_blocks(text: str, _needles: Collection[str]) -> Iterator[Span]:
    """Yield `<private …>…</private>`, tags and all; an unclosed one goes on to the end of the text.

    Blocks may stand inside each other: the outermost is one block. A closing tag alone is plain text.
    """
    at = 0
    while opens := _PRIVATE_OPENS.search(text, at):
        at = _private_end(text, opens.end())
        yield opens.start(), at


def _private_end(text: str, at: int) -> int:
    """Return where a block ends whose opening tag ends `at`."""
    depth = 1
    for tag in _PRIVATE_TAG.finditer(text, at):
        depth += -1 if tag[0].startswith("</") else 1
        if not depth:
            return tag.end()
    return len(text)


def private_length(block: str) -> int:
    """Return how many characters stand between the outermost tags of a private block."""
    opens, closes = _PRIVATE_OPENS.match(block), _PRIVATE_CLOSES_AT_END.search(block)
    start = opens.end() if opens else 0
    return (closes.start() if closes else len(block)) - start


def private_keys(text: str, _needles: Collection[str]) -> Iterator[Span]:
    """Yield what lies between the BEGIN and END of a PEM or PGP private key, also where one is cut off."""
    at = 0
    for ends in _END.finditer(text):
        begun = [begins.end() for begins in _BEGIN.finditer(text, at, ends.start())]
        if begun and ends.start() - begun[-1] <= _WHOLE_KEY:
            yield from _whole_key(text, begun.pop(), ends.start())
        else:
            yield from _headless_key(text, begun[-1] if begun else at, ends.start())
        for start in begun:  # those that have lost their END
            yield from _cut_key(text, start)
        at = ends.end()
    for begins in _BEGIN.finditer(text, at):
        yield from _cut_key(text, begins.end())


def _whole_key(text: str, start: int, end: int) -> Iterator[Span]:
    body = text[start:end]
    lead = _BREAK.match(body)
    first = lead.end() if lead else 0
    body = body.rstrip()
    while body.endswith(("\\n", "\\r")):
        body = body[:-2].rstrip()
    broken = lead is not None and ("\n" in lead[0] or "\\" in lead[0])
    if (broken or _LETTERS.search(body)) and body[first:] and not is_placeholder(body[first:]):
        yield start + first, start + len(body)


def _cut_key(text: str, start: int) -> Iterator[Span]:
    found = _CUT_KEY.match(text, start)
    if found and found[0].strip(" \t\r\n\\\"'"):
        lead = _BREAK.match(text, start, found.end())
        yield (lead.end() if lead else start), found.end()


def _headless_key(text: str, start: int, end: int) -> Iterator[Span]:
    """Walk back over the lines of base64 before an END whose BEGIN was cut off."""
    lines = [*_WORD.finditer(text, max(start, end - _WHOLE_KEY), end)][::-1]
    taken = [
        line
        for line in takewhile(lambda line: _LINE.fullmatch(line[0]), lines)
        if len(line[0]) >= 20 or line is lines[0]
    ]
    if taken and len(taken[-1][0]) >= 20:
        yield taken[-1].start(), taken[0].end()


def tokens(text: str, needles: Collection[str]) -> Iterator[Span]:
    """Yield the tokens that their maker's prefix gives away."""
    for needle, pattern in _PATTERNS:
        if needle in needles:
            for found in pattern.finditer(text):
                group = pattern.groups
                if _is_token(needle, found[group]):
                    yield found.span(group)


def _is_token(needle: str, token: str) -> bool:
    if is_placeholder(token):
        return False
    return needle not in _ALSO_A_WORD or any(map(str.isdigit, token))


def userinfo(text: str, _needles: Collection[str]) -> Iterator[Span]:
    """Yield the passwords of `https://user:password@host` and `curl -u user:password https://host`."""
    for pattern in (_USERINFO, _CURL_USER) if "curl" in text else (_USERINFO,):
        yield from (found.span("value") for found in pattern.finditer(text) if _is_password(found))
    for found in _BARE_USER.finditer(text):
        if is_opaque(found["value"]):
            yield found.span("value")


def _is_password(found: re.Match[str]) -> bool:
    value = found["value"]
    known = value.lower() in _NO_PASSWORD or is_placeholder(value)
    return not known and not (found.re is _CURL_USER and value.isdigit())


Search = Callable[[str, Collection[str]], Iterator[Span]]

SHAPES: tuple[tuple[str, str, Search], ...] = (
    (PRIVATE, "<private", private_blocks),
    ("private-key", "key", private_keys),
    ("token", "", tokens),
    ("userinfo", "://", userinfo),
)
"""Kind, the needle without which there is none (tokens have one each), and the search."""

NEEDLES = frozenset({"<private", "key", "://", *(needle for needle, _ in _TOKENS)})
"""A text that holds none of these, in lower case, holds no secret of a known shape."""
