"""Secrets known by what stands before them: `password = "x"`, `--token x`, `Authorization: Basic x`.

In: text, and which needles of the sieve it holds. Out: the places of the values, not of their names and
separators, so that a masked line still says what was there. A name is read only where a telling word
stands; every pattern is bounded and gives back nothing it took: time grows with the text and no faster.
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from memoryd.patterns import later
from memoryd.redact.names import Telling, telling
from memoryd.redact.values import PROSE, Seen, is_literal, is_opaque, is_placeholder

Span = tuple[int, int]

# Needle of the sieve: the words that telling names are then looked for by, all in lower case. `author` and
# `tests pass` are too frequent for `auth` and `pass` to be needles themselves.
_WORDS = {
    "_auth": ("auth",),
    'auth"': ("auth", "pass"),
    "authoriz": ("auth",),
    "bearer": ("bearer",),
    "cookie": ("cookie",),
    "key": ("key",),
    "_pass": ("pass",),
    "passp": ("pass",),
    "passw": ("pass",),
    "pwd": ("pwd",),
    "secret": ("secret",),
    "token": ("token",),
    "://": ("sig=",),  # the signature of an Azure URL
}
NEEDLES = frozenset(_WORDS)
"""A text that holds none of these, in lower case, holds no name that tells."""

_NAME_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_BEFORE_WORD, _AFTER_WORD = 40, 60
_QUOTED_LENGTH = 8192
_TRAILING = ".,:;!?)]}"

_NAME_ENDS = later(rf"(?a)[\w-]{{1,{_AFTER_WORD}}}+")
_TWO_WORDS = later(r"(?i)\b(?:access|api|auth|encryption|license|private|secret|signing)[ ]\Z")

# What follows a name. The separator may stand after what closes a quoted or indexed name, or bold type.
_ASSIGNS = later(
    r"""(?x)
    (?P<close> [\\"'`*\])]{0,8}+ )
    (?P<gap> [ \t]{0,20}+ )
    (?P<sep> :- | := | => | ===? | !==? | [?!]?:(?!:) | = | , )
    (?P<more> [ \t]{0,20}+ )
    """
)
_TYPED = later(r"(?a)[\w.\[\]| ]{1,40}+=[ \t]?(?=[\"'`])")  # `token: str = "x"`
_FLAGGED = later(r"[ \t]{1,8}+(?=[^\s-])")
_ELEMENT = later(r">(?P<value>[^<>\s]{1,400}+)</")
_PAIRED = later(  # `name: API_KEY`, and `value: x` on the same line or the next
    r"""(?x) [\\"']{0,4}+ ,?+ \s{0,40}+ [\\"']{0,4}+ value [\\"']{0,4}+ \s?+ : \s?+"""
)
_FALLS_BACK = later(
    r"(?a)[\w.\[\]()]{1,80}+ (?:\|\||\?\?|or) (?=[\"'`])"
)  # `process.env.TOKEN || "x"`
_SAID = later(r"""(?i)[ ](?:(?:as|is|to|was):?[ ]["'`]?+|["'`])(?P<value>[^\s"'`,;]{6,200}+)""")
_LOGIN = later(r"login\s{1,8}+\S{1,60}+\s{1,8}+\Z")  # netrc: `login u password x`

_AUTHORIZATION = later(
    r"""(?xai)
    [\\"'\])]{0,4}+ [ \t]{0,8}+ [:=,] [ \t]{0,8}+ (?:[bf](?=["'`\\]))?+ \\{0,7}+ ["'`]?+
    (?: (?P<scheme> [a-z][\w-]{2,30}+ ) [ \t]{1,8}+ )?
    (?P<value> [^\s"'`\\,<>]{2,8192}+ )
    """
)
_SCHEMES = {"apikey", "basic", "bearer", "digest", "jwt", "key", "negotiate", "ssws", "token"}
_BEARER = later(r"""[ \t]{1,8}+(?P<value>[^\s"'`\\<>]{2,8192}+)""")
_COOKIE = later(  # one pair at least has a value written out
    r"""(?xa)
    ["'\\]{0,4}+ [ \t]{0,4}+ : [ \t]{0,4}+ \\{0,7}+ ["'`]?+
    (?= [^\n"'`\\]{0,200}? [\w.-]=[^\s;${<%"'`\\] )
    (?P<value> [^\n"'`\\]{3,8192}+ )
    """
)

_OPENS = later(r"""[bBfFrRuU$@]{0,2}+(?P<level>\\{0,7}+)(?P<quote>\"\"\"|'''|["'`])""")
_KEY_ENDS = later(r"""\\{0,7}+["'`]{1,3}+ ?(?::(?!:)|=)""")  # `"x":`, a name and no value
_BARE_CHARS = r"""
    (?: [^\s"'`<>&;|\\,]{1,32}+
      | \\ (?! [nrt"'`\\] )
      | , (?! [\s"'\\] | [\w-]{1,80}+ ["']? [:=] | \Z )
    )
"""
_SHELL_CHARS = r"""
    (?: [^\s"'`\\]{1,32}+
      | \\ (?! [nrt"'`\\] )
      | ["'] (?= [^\s"'`,;)}\]] )
    )
"""
# Judged by its first letters, and read to its end only if it is a secret.
_BARE, _BARE_TO_ITS_END = (later(rf"(?xa) {_BARE_CHARS}{{1,{parts}}}+") for parts in (8, 4096))
_SHELL, _SHELL_TO_ITS_END = (later(rf"(?xa) {_SHELL_CHARS}{{1,{parts}}}+") for parts in (8, 4096))


class Named(NamedTuple):
    """A telling name in a text."""

    name: str
    telling: Telling
    start: int
    end: int


def spans(text: str, needles: Collection[str]) -> Iterator[Span]:
    """Yield where secrets stand after telling names in `text`."""
    words = {word for needle in needles for word in _WORDS.get(needle, ())}
    done = 0
    for at in _places(_lower(text), words) if words else ():
        if at >= done and (named := _named(text, at)):
            done = named.end
            if span := _beside(text, named):
                yield span
                done = span[1]


def _lower(text: str) -> str:
    """Return a twin with ASCII in lower case; places in one are places in the other."""
    if text.isascii():
        return text.lower()
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _places(low: str, words: set[str]) -> list[int]:
    """Return where the words stand, in order."""
    places: list[int] = []
    for word in words:
        at = low.find(word)
        while at >= 0:
            places.append(at)
            at = low.find(word, at + len(word))
    return sorted(places)


def _named(text: str, at: int) -> Named | None:
    """Return the name around the telling word at `at`, unless the whole of it tells nothing."""
    head = text[max(0, at - _BEFORE_WORD) : at]
    start = at - len(head) + len(head.rstrip(_NAME_CHARS))
    found = _NAME_ENDS.match(text, at)
    end = found.end() if found else at
    name = text[start:end]
    if name.lower() == "key" and (before := _TWO_WORDS.search(text[max(0, start - 12) : start])):
        name = before[0] + name
    tells = telling(name)
    return Named(name, tells, start, end) if tells is not Telling.NOTHING else None


def _beside(text: str, named: Named) -> Span | None:
    """Return the place of the secret that follows a name."""
    if found := _credential(text, named):
        return found.start("value"), _trimmed(text, *found.span("value"))
    if found := _ASSIGNS.match(text, named.end):
        return _assigned(text, named, found) or _paired(text, named)
    if text[named.start] == "-" and (found := _FLAGGED.match(text, named.end)):
        return _literal(text, found.end(), named, "flag")
    return _paired(text, named) or _told(text, named)


def _credential(text: str, named: Named) -> re.Match[str] | None:
    """`Bearer eyJ.abc==` carries one; `Bearer {token}`, `Bearer authentication`, `Cookie: jar` do not."""
    word = named.name.lower()
    if word.endswith("authorization"):
        found = _AUTHORIZATION.match(text, named.end)
        sure = found is not None and (found["scheme"] or "").lower() in _SCHEMES
    elif word == "bearer":
        found = _BEARER.match(text, named.end)
        sure = found is not None and (word != named.name or not found["value"].isalpha())
    elif word.endswith("cookie"):
        return _COOKIE.match(text, named.end)
    else:
        return None
    return found if found and _is_credential(found["value"], sure) else None


def _is_credential(untrimmed: str, sure: bool) -> bool:
    value = untrimmed.rstrip(_TRAILING)
    if (
        len(value) < 2
        or is_placeholder(value)
        or is_placeholder(untrimmed)
        or value.lower() in PROSE
    ):
        return False
    return "(" not in value and "[" not in value and (sure or is_opaque(value))


def _assigned(text: str, named: Named, found: re.Match[str]) -> Span | None:
    sep = found["sep"].lstrip("?")
    quoted_name = any(mark in found["close"] for mark in "\"'`")
    listed = (sep == "," and not quoted_name) or (
        sep == ":" and text[max(0, named.start - 1) : named.start] == ":"  # `arn:aws:…:secret:name`
    )
    if listed or named.name.lower().endswith("authorization"):
        return None
    pattern = _TYPED if sep in {":", "!:"} else _FALLS_BACK
    if later := pattern.match(text, found.end()):
        return _literal(text, later.end(), named, "=")
    return _literal(text, found.end(), named, sep, spaced=bool(found["gap"] or found["more"]))


def _paired(text: str, named: Named) -> Span | None:
    """`{"name": "API_KEY", "value": "x"}`, as containers and CI files give variables."""
    found = _PAIRED.match(text, named.end)
    return _literal(text, found.end(), named, ":") if found else None


def _told(text: str, named: Named) -> Span | None:
    """`<password>x</password>`, `the password is hunter2`, `login u password x`."""
    if found := _ELEMENT.match(text, named.end):
        seen = Seen(named.name, named.telling, "=", False, True, found["value"])
        opened = text[max(0, named.start - 1) : named.start] == "<"
        return found.span("value") if opened and is_literal(seen) else None
    if found := _SAID.match(text, named.end):
        start, end = found.start("value"), _trimmed(text, *found.span("value"))
        shortest = 6 if named.telling is Telling.PASSWORD else 8
        return (start, end) if is_opaque(text[start:end], shortest) else None
    logged_in = named.name == "password" and _LOGIN.search(
        text[max(0, named.start - 80) : named.start]
    )
    if logged_in and (found := _FLAGGED.match(text, named.end)):
        return _literal(text, found.end(), named, "flag")
    return None


def _literal(text: str, at: int, named: Named, sep: str, *, spaced: bool = False) -> Span | None:
    """Return the place of the value that starts at `at`, or None where no secret is written out."""
    seen = Seen(named.name, named.telling, sep, spaced, False, "")
    opened = _OPENS.match(text, at)
    start = opened.end() if opened else at
    end = _closing(text, opened) if opened else -1
    if end < 0:  # bare, or its quote was cut off
        return _bare(text, start, seen._replace(quoted=opened is not None))
    if _KEY_ENDS.match(text, end):
        return None
    return (start, end) if is_literal(seen._replace(quoted=True, value=text[start:end])) else None


def _bare(text: str, start: int, seen: Seen) -> Span | None:
    """Return the place of the value without quotes that starts at `start`, if it is a secret."""
    shell = seen.shell and not seen.quoted
    found = (_SHELL if shell else _BARE).match(text, start)
    if not found or is_placeholder(found[0]):
        return None
    end = _trimmed(text, start, found.end())
    tail = text[end : end + 40].partition("\n")[0]
    if not is_literal(seen._replace(value=text[start:end], tail=tail)):
        return None
    found = (_SHELL_TO_ITS_END if shell else _BARE_TO_ITS_END).match(text, start)
    return start, _trimmed(text, start, found.end()) if found else end


def _closing(text: str, opened: re.Match[str]) -> int:
    """Return where the quoted value ends, -1 where nothing closes it; escaped quotes are part of it."""
    quote, level, start = opened["quote"], len(opened["level"]), opened.end()
    limit = start + _QUOTED_LENGTH
    if quote in {'"', "'"} and (newline := text.find("\n", start, limit)) >= 0:
        limit = newline
    at = text.find(quote, start, limit)
    while at >= 0:
        before = text[max(start, at - 16) : at]
        slashes = len(before) - len(before.rstrip("\\"))
        if slashes <= level if level else slashes % 2 == 0:
            return at - (slashes if level else 0)
        at = text.find(quote, at + 1, limit)
    return -1


def _trimmed(text: str, start: int, end: int) -> int:
    """Return the end without the punctuation that belongs to the sentence around the value."""
    return start + len(text[start:end].rstrip(_TRAILING))
