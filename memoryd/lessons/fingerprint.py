"""What makes two failures the same failure.

In: the first error lines of an output, and the project. Out: 16 hexadecimal digits. Everything that differs
between two runs of one failing command (times, numbers, paths, addresses, temporary names, process ids, values in
quotes that look made up) is replaced by a mark of its class before hashing; what tells two errors apart (codes,
names, words) stays. The fingerprint is salted with the project, so that equal errors of two projects never meet.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import msgspec

from memoryd import redact

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]")
_FIRST_LINES = 3
_LONGEST_LINE = 500
_ASIDE = frozenset(
    "timeout timeout_ms yield_time_ms max_output_tokens description justification explanation "
    "with_escalated_permissions sandbox_permissions run_in_background".split()
)
"""Arguments that say how, or why, but not what: they differ between two runs of one command."""
_canonical = msgspec.json.Encoder(order="sorted").encode

# Order matters: the longer shapes first, so that a date is not eaten as three numbers. Each says what a text
# must hold to be looked at: "0" a digit, else one of the characters, or the word.
_MARKS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("-", re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"), "<uuid>"),
    ("-", re.compile(r"\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:z|[+-]\d\d:?\d\d)?)?\b"), "<date>"),
    (":", re.compile(r"\b\d\d?:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    ("/", re.compile(r"(?:\b[a-z]:)?(?:[\\/]|\.{1,2}[\\/]|~[\\/])?(?:[\w.@+-]+[\\/])+[\w.@+-]*"), ""),
    ("0x", re.compile(r"\b0x[0-9a-f]+\b"), "<hex>"),
    ("0", re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b"), "<hex>"),
    ("0", re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|us|µs|ns|s|sec|secs|seconds?|m|min|minutes?|h|hours?)\b"), "<time>"),
    ("0", re.compile(r"\b\d+(?:\.\d+)?\s?(?:[kmgt]i?b|bytes?)\b"), "<size>"),
    ("0", re.compile(r"\b(?:pid|process|thread|port|line|col(?:umn)?)[ =:#]*\d+\b"), "<number>"),
    ("tmp", re.compile(r"\btmp[\w-]*\d[\w-]*\b|\btmp[a-z0-9_]{6,}\b"), "<temp>"),
)  # fmt: skip
_DIGIT = re.compile(r"\d")
_DIGITS = "0123456789"
_CODE = re.compile(
    r"\b(?:[a-z]{1,6}\d{2,6}|errno \d+|exit (?:code|status)[: ]+\d+|http[ /]?\d{3})\b"
)
_PLACE = re.compile(r"(\.[a-z][a-z0-9]{0,9})[:(]\d+(?:[:,]\d+)?\)?")
_NUMBER = re.compile(r"(?<![\w<])[-+]?\d+(?:[.,]\d+)*(?![\w>])")
_QUOTED = re.compile(r"'([^'\n]{1,200})'|\"([^\"\n]{1,200})\"|`([^`\n]{1,200})`")
_SPACE = re.compile(r"\s+")


def plain(text: str) -> str:
    """Return `text` without terminal escapes."""
    shown = _ANSI.sub("", text) if "\x1b" in text else text
    return shown.replace("\r", "\n")


def normal(text: str) -> str:
    """Return the part of an error's text that two runs of the same failure share."""
    folded = plain(text).lower()
    digits = _holds_digit(folded)
    if digits:
        folded = _PLACE.sub(r"\1", folded)
    for needle, pattern, mark in _MARKS:
        if digits if needle == "0" else needle in folded or (needle == "/" and "\\" in folded):
            folded = pattern.sub(mark or _extension, folded)
    if digits:
        folded = _keep_codes(folded)
    if "'" in folded or '"' in folded or "`" in folded:
        folded = _QUOTED.sub(_quoted, folded)
    # Of what is printable only a blank is white space, and nearly every line has them one at a time.
    apart = not folded.isprintable() or "  " in folded or folded[:1] == " " or folded[-1:] == " "
    return " ".join(folded.split()) if apart else folded


def _holds_digit(text: str) -> bool:
    """Say whether a text holds a digit of any script: most lines hold none, and a pattern tells that slowly."""
    if any(map(text.__contains__, _DIGITS)):
        return True
    return not text.isascii() and _DIGIT.search(text) is not None


def _extension(found: re.Match[str]) -> str:
    # A path becomes its extension: two checkouts of one file fail alike, two kinds of file do not.
    name = re.split(r"[\\/]", found[0])[-1]
    _, dot, extension = name.rpartition(".")
    return f"<path>.{extension}" if dot and extension.isalnum() else "<path>"


def _keep_codes(text: str) -> str:
    kept: list[str] = []
    last = 0
    for code in _CODE.finditer(text):
        kept += [_NUMBER.sub("<n>", text[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*kept, _NUMBER.sub("<n>", text[last:])])


def _quoted(found: re.Match[str]) -> str:
    # A quoted name tells errors apart ('foo' is not defined); one with digits or marks varies by run.
    name = found[1] or found[2] or found[3]
    return "<name>" if re.search(r"\d|<", name) else f"'{name}'"


def of_error(lines: list[str], project: str | None) -> str:
    """Return the fingerprint of an error from its first lines, salted with the project."""
    wanted = [normal(line[:_LONGEST_LINE]) for line in lines[: 2 * _FIRST_LINES]]
    text = "\n".join([line for line in wanted if line][:_FIRST_LINES])
    return _hash(f"error\0{project or ''}\0{text}")


def of_text(kind: str, text: str, project: str | None) -> str:
    """Return the fingerprint of a lesson that was written, not observed."""
    return _hash(f"{kind}\0{project or ''}\0{_SPACE.sub(' ', text.lower()).strip()}")


def of_call(tool: str, args: object, project: str | None) -> str:
    """Return the fingerprint of a call: the same tool with the same arguments, limits and white space aside."""
    return of_calls([(tool, args)], project)[0]


def of_calls(calls: Iterable[tuple[str, object]], project: str | None) -> list[str]:
    """Return the fingerprint of each call of a project: its tool, its arguments."""
    begun: list[blake2b] = []
    given: list[bytes] = []
    for tool, args in calls:
        begun.append(_of_call(tool, project).copy())
        counts = args
        if type(args) is dict and not _ASIDE.isdisjoint(args):
            counts = {key: value for key, value in args.items() if key not in _ASIDE}
        try:
            given.append(_canonical(counts))
        except (UnicodeEncodeError, OverflowError):  # half a surrogate pair, a number over 64 bits
            given.append(repr(counts).encode("utf-8", "surrogatepass"))
    for at in redact.holding(given, b"  "):
        given[at] = b" ".join(given[at].split())
    prints: list[str] = []
    for digest, canonical in zip(begun, given, strict=True):
        digest.update(canonical)
        prints.append(digest.hexdigest())
    return prints


@lru_cache(maxsize=256)
def _of_call(tool: str, project: str | None) -> blake2b:
    """Return the digest of what comes before the arguments, to be copied and gone on with."""
    salt = f"call\0{project or ''}\0{tool}\0".encode("utf-8", "surrogatepass")
    return blake2b(salt, digest_size=8)


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
