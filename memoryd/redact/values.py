"""Is a value written out, or only pointed at? `abc123` is; `get_token()`, `$TOKEN`, `<your-token>` are not.

In: a value as it stands in text, with what stands around it (`Seen`). Out: yes or no. What only points
at a secret is ordinary code and stays readable; where a word could be both, being followed by code or by
prose decides, and a digit among the letters makes it a secret.
"""

from typing import NamedTuple

from memoryd.patterns import later
from memoryd.redact.names import Telling


class Seen(NamedTuple):
    """A value found beside a telling name, and how it was written."""

    name: str
    telling: Telling
    sep: str  # "=", ":", ":=", "=>", "==", ",", ":-", "flag" (`--token abc`), "arg" (a tool's argument)
    spaced: bool  # a blank on either side of the separator
    quoted: bool
    value: str
    tail: str = ""  # the rest of the line, at most 40 characters

    @property
    def shell(self) -> bool:
        """`TOKEN=abc`: an environment variable, where no code is to be expected."""
        return self.sep == "=" and not self.spaced and self.name.isupper()


_WORDS = frozenset(
    """
    any array async auto await bool boolean boto3 bytearray bytes char const date datetime def default
    dict disabled empty enabled env expired false file float function hidden if include inherit int integer
    invalid json lambda let list map masked missing n/a na new nil no none nonnull not null number object
    off ok omit omitted on optional private prompt protected public readonly ref removed required return
    same-origin secretstr self set static stdin str string symbol tba tbd this true tuple uint undefined
    unknown unset uuid valid var varchar vec void yes redacted filtered elided
    """.split()
)
# `--token is`, `Bearer authentication`: the word goes on with the sentence.
PROSE = frozenset(
    """
    a all also an and any are argument arguments as at auth authentication authorization based be because being but
    by can cannot does field flag for format from has have header headers if in into is it may missing must
    not of on option optional options or parameter parameters prefix required schema scheme should so
    string style that the then this to token tokens type value values via was we when which will with without you your
    """.split()
)
_PLACEHOLDER = later(
    r"""(?xi)
      \$ (?: [a-z_]\w* (?: (?:->|::|[.:\[]) .* )? | \d | [{(] .* )     # $X $x->y $env:X ${X} $(x)
    | % (?: \w+% | [sdr] | \(.* )                                      # %X% %s %(x)s
    | [#@]\{ .* | <.* | \{.*\} | \[.*\] | \(.*\)                       # #{x} <x> {x} [x] (x)
    | (.) \1{2,} | [*.•…_-]+ | [a-z]{2,4} [-_] [x*.…-]+               # aaa **** ... sk-xxxx
    | (?:your|insert|replace|paste)[-_ ] .* | .* [-_]here | placeholder  # your-api-key, TOKEN_HERE
    | .* (?: \.\.\. | … | \*{3,} | xxxx+ ) .{0,8}                       # sk-abc...
    """
)
_WEAK = frozenset(
    {"==", "===", "!=", "!==", ","}
)  # separators of code: compared with, next in a list
_LONGEST_PLACEHOLDER = 120
_ENOUGH = 256  # characters, to tell whether a value looks random
_BLANK, _DIGIT = later(r"\s"), later(r"\d")
_LETTER, _ALNUM = later(r"[^\W\d_]"), later(r"[^\W_]")
_REFERENCE = later(
    r"""(?x)
      (?:process\.env|import\.meta|os\.(?:environ|getenv)|ENV|env|secrets|vars)\b[.\[(]
    | [A-Za-z_$][\w$]* (?:(?:\?\.|\.|::|->)[A-Za-z_$][\w$]*)* !?[(\[]      # a call or an index
    """
)
_NAMED = later(  # words of letters, two digits at most after each: `user2.access_token`
    r"""(?x) _*+ [A-Za-z$]++ \d{0,2}+ (?: (?:(?:\?\.|\.|::|->)_*+|_++) [A-Za-z$]++ \d{0,2}+ )*+ _*+ !? \Z"""
)
_PATH = later(r"(?:~|\.{1,2})?(?:/[a-z0-9_.@+-]{1,40})+/?\Z")
_SENTENCE = later(
    r"(?i)\b(?:a|an|and|are|at|be|cannot|enter|for|from|in|invalid|is|key|missing|must|not|of|or|password"
    r"|passwords|required|secret|should|the|this|to|token|tokens|with|you|your)\b"
)
_LAST_WORD = later(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+(?=[\d_]*\Z)")


def is_literal(seen: Seen) -> bool:
    """Tell whether the value is a secret written out, and no reference, placeholder, type or prose."""
    value = seen.value
    if not _ALNUM.search(value) or is_placeholder(value):
        return False
    if seen.sep in _WEAK:
        return seen.quoted and seen.telling > Telling.PERHAPS and _random(seen)
    if seen.telling is Telling.PERHAPS:
        return _random(seen) and (seen.quoted or not _points(seen))
    return _quoted_literal(seen) if seen.quoted else not _points(seen) and _bare_literal(seen)


def _random(seen: Seen) -> bool:
    return is_opaque(seen.value) and (seen.sep == "arg" or not _NAMED.match(seen.value))


def is_placeholder(value: str) -> bool:
    """`$TOKEN`, `${{ x }}`, `<your-token>`, `xxxx`, `YOUR_API_KEY`, `sk-...`: shows where a secret goes."""
    if len(value) > _LONGEST_PLACEHOLDER:
        return value.startswith(("${", "$(", "{{", "<"))
    return _PLACEHOLDER.fullmatch(value) is not None


def is_opaque(value: str, shortest: int = 8) -> bool:
    """Tell whether a value looks random: long enough, digits among letters, no blank."""
    seen = value[:_ENOUGH]
    return len(seen) >= shortest and not _BLANK.search(seen) and _mixed(seen)


def _mixed(value: str) -> bool:
    return _DIGIT.search(value) is not None and _LETTER.search(value) is not None


def _quoted_literal(seen: Seen) -> bool:
    value = seen.value
    if value.lower() in _WORDS or _letters(value) == _letters(seen.name) or value[0] in " \t,);":
        return False  # the last: that quote closed the string before it, `"token=" + value, "`
    if seen.telling is Telling.TOKEN and _small_number(value):
        return False
    if seen.telling is Telling.TOKEN and seen.spaced and seen.sep == "=" and len(value) < 4:
        return False  # a parser's `token = "if"`
    if seen.sep == "arg":
        return True
    variable = value.isupper() and "_" in value and _NAMED.match(value)  # `TOKEN = "GITHUB_TOKEN"`
    return not variable and (" " not in value or not _SENTENCE.search(value))


def _points(seen: Seen) -> bool:
    """Tell whether a bare value is a type, a call, an attribute, another variable, a path or a number."""
    value = seen.value
    if value[0] in ("{[(" if seen.shell else "{[(*!@-,") and seen.sep != ":-":
        return True
    if value.lower() in _WORDS or value == "pass" or _REFERENCE.match(value):
        return True
    if _PATH.match(value) or (seen.telling < Telling.PASSWORD and _small_number(value)):
        return True
    if seen.shell:
        return value.isupper() and "_" in value and _NAMED.match(value) is not None
    if "." in value and _last(value) == _last(seen.name):  # `win32api.OpenKey` by the same name
        return True
    if not _NAMED.match(value):
        return False
    dotted = any(mark in value for mark in (".", "::", "->"))
    return dotted or ("_" in value and _last(value) == _last(seen.name))


def _bare_literal(seen: Seen) -> bool:
    value, tail = seen.value, seen.tail.lstrip()
    if seen.sep == "flag":
        return value.lower() not in PROSE and _last(value) != _last(seen.name)
    if seen.shell:
        return True
    if not _NAMED.match(value) or seen.sep == ":-":
        return len(value) >= 4 or seen.telling is Telling.PASSWORD
    digits = _DIGIT.search(value) is not None
    if _last(value) == _last(seen.name) or tail[:1] in {"(", "[", "{", "<", "|", "?"}:
        return False
    if seen.sep == ":":
        ends = not tail or tail[0] in "#\"'`" or tail.startswith("\\n")
        return (digits and len(value) >= 6) or (ends and value[0].islower())
    if seen.spaced:
        return digits and "_" not in value and len(value) >= 6
    return digits or tail[:1] not in {",", ")", ";"}


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).lower()


def _last(name: str) -> str:
    found = _LAST_WORD.findall(name)
    return found[-1].lower() if found else ""


def _small_number(value: str) -> bool:
    return len(value) < 6 and value.replace(".", "", 1).isdigit()
