"""Did a call fail, and what did it say first?

In: what the log says of a result (its flag, its exit code) and, for shell-like tools that say neither, its text. Out:
`Failure`, or None for a success. The log's own word decides; text is a guess, so it is read only where nothing
else tells, and never for tools whose output is other people's text (files, searches), in which the word
"exception" is content.
"""

import re
from collections.abc import Sequence

import msgspec

from memoryd import profiles, redact
from memoryd.lessons import codes
from memoryd.lessons.fingerprint import plain

SHELL_TOOLS = frozenset(profiles.SHELLS)
_OWN = ("<tool_use_error>", "apply_patch verification failed")
_OWN_ERROR = re.compile(r"</?tool_use_error>")
"""Claude Code puts its tools' own words between these, other people's text never; Codex's patches start so."""
_SHOWING = frozenset(
    "cat head tail less more bat nl grep egrep rg ag find fd ls tree strings xxd jq cut sort uniq wc diff "
    "curl wget open goto scroll_up scroll_down search_dir search_file find_file decompile".split()
)
"""Commands that put out what others wrote, SWE-agent's own among them."""
_SHOWING_TOO = frozenset(
    [("sed", "-n"), *(("git", what) for what in ("show", "log", "diff", "blame", "grep"))]
)
_BETWEEN = re.compile(r"&&|\|\|?|[;\n]")
_DECLINED = (
    "The user doesn't want to ",
    "[Request interrupted by user",
    "[Operation Cancelled]",
    "User rejected ",
    "Tool execution aborted",
)
_REJECTED = re.compile(
    r"\b(?:rejected|declined|denied|cancelled|aborted) by (?:the )?user\b"
    r"|\b[Tt]he user (?:has )?(?:rejected|declined|denied|cancelled|did not allow)\b"
)
_ABORTED = "Command aborted"
"""What pi writes below all that a stopped command had said."""
MOST_BYTES = 200
"""Of the redacted first error line; the only words of a result that memoryd keeps."""
_MOST_LINES = 3
_TIMED_OUT = 124
"""The exit code of coreutils' `timeout`."""
_LOOK_AT = 64 << 10
_END = 8 << 10
"""Characters at each end of an output in which a failure's first line and code are looked for."""

_CERTAIN = re.compile(
    r"\berror TS\d{4,5}\b"
    r"|^error(?:\[E\d{4}\])?: "
    r"|^(?:FAILED|ERROR) \S+"
    r"|\b[1-9]\d* (?:failed|errors?)\b(?!.*\b0 failed\b)"
    r"|^--- FAIL: |^FAIL\t|^panic: |\bSegmentation fault\b"
    r"|^Traceback \(most recent call last\):"
    r"|\bcommand not found\b|^(?:sh|bash|zsh|dash): .*: not found$"
    r"|\bnpm (?:ERR!|error) code\b"
    r"|\b(?:exit(?:ed with)?|returned)(?: non-zero)? (?:code|status)[ :=]+[1-9]\d*\b"
    r"|\bfatal error: |^fatal: "
    r"|\b(?:failed to compile|build failed|compilation failed)\b"
    r"|^make(?:\[\d+\])?: \*\*\* "
    r"|^Your proposed edit has introduced new syntax error|^EXECUTION TIMED OUT$",
    re.MULTILINE,
)
_CERTAIN_WORDS = (
    *(
        "error",
        "failed",
        "FAIL",
        "ERROR",
        "panic: ",
        "Segmentation",
        "Traceback",
        "not found",
        "npm ",
    ),
    *("exit", "returned", "fatal: ", "make", "TIMED OUT"),
)
"""What certain text holds at the least; most outputs of what went well hold none of it."""
_NAMING = (
    *(
        "error",
        "fail",
        "cannot",
        "can't",
        "could not",
        "unable",
        "not found",
        "no such",
        "denied",
        "exception",
    ),
    *(
        "panic",
        "fatal",
        "refused",
        "timed out",
        "undefined",
        "unexpected",
        "invalid",
        "missing",
        "conflict",
    ),
    *("segmentation", "traceback", "e  "),
)
"""Words of a line that names what is wrong; pytest marks such lines with an E and blanks."""
_PLACED = re.compile(r"[\w./\\-]+\.[a-z]{1,5}(?::\d+(?::\d+)?:|\(\d+,\d+\):) ")
"""A line that begins with a place in a file, as compilers and linters write."""
_ZERO = re.compile(r"\b(?:0|no) (?:errors?|failures?|failed)\b", re.IGNORECASE)
_ZERO_WORDS = tuple(
    f"{none} {what}" for none in ("0", "no") for what in ("error", "fail", "fa\u0131l")
)
"""What such a line holds at the least: to look for them costs a hundredth of the pattern in a long line.

To a pattern that minds no case, an i without its dot is an i.
"""
_WRAPPING = re.compile(
    r"^(?:Traceback \(most recent call last\):|Output:|ERRORS:"
    r"|<?(?:Error: )?(?:Command |Process )?(?:exited with |failed with |failed )?"
    r"\(?(?:exit )?code:? -?\d+\)?[.>]?"
    r"|Your proposed edit has introduced new syntax error.*"
    r"|\[[\w:-]+\] (?:ERROR task failed|\$ .*)"
    r"|(?:Chunk ID|Wall time|Total output lines|Original token count): .*)\s*$",
    re.IGNORECASE,
)
"""Lines with which harnesses wrap what a command said; they name nothing."""


class Outcome(msgspec.Struct, frozen=True):
    """What a log says of a result: its own flag, its exit code; None where it does not say."""

    ok: bool | None = None
    exit_code: int | None = None


class Failure(msgspec.Struct, frozen=True):
    """A failed call: the coarse type, the first error lines (plain), the one line to keep, code and hint."""

    kind: str
    lines: tuple[str, ...]
    first_line: str
    code: str | None
    hint: str | None


def shell_like(tool: str) -> bool:
    """Say whether a tool runs commands, so that its output is its own words."""
    return tool in SHELL_TOOLS


def shows(command: str) -> bool:
    """Say whether all that a command does is to show what others wrote, in which "error" is content."""
    parts = [part.split(maxsplit=2) for part in _BETWEEN.split(command) if part.strip()]
    return bool(parts) and all(
        words[0] in _SHOWING or tuple(words[:2]) in _SHOWING_TOO for words in parts
    )


def failed(tool: str, outcome: Outcome, text: str) -> bool:
    """Say whether the call failed: by exit code, else by flag, else by a shell's certain words.

    An exit code other than 0 wins over a flag that says success: the flag speaks of the tool, not of
    what it ran.
    """
    if outcome.exit_code:
        return True
    if outcome.ok is not None or outcome.exit_code is not None:
        return outcome.ok is False
    if not shell_like(tool):
        return False
    looked = plain(text[-_LOOK_AT:] if len(text) > _LOOK_AT else text)
    return any(word in looked for word in _CERTAIN_WORDS) and any(
        not _ZERO.search(_line_around(looked, found.start())) for found in _CERTAIN.finditer(looked)
    )


def _line_around(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start : end if end >= 0 else len(text)]


def declined(text: str) -> bool:
    """Say whether a person stopped the call: the log calls it failed, but nothing is to be learned from it."""
    said = text[:500].lstrip()
    if said.startswith(_DECLINED) or text[-_END:].rstrip().endswith(_ABORTED):
        return True
    return " user" in said and bool(_REJECTED.search(said))


def describe(tool: str, outcome: Outcome, text: str) -> Failure:
    """Return what a failed call said; of tools that are not shell-like no line of it is kept."""
    return describe_many([(tool, outcome, text)])[0]


def describe_many(told: Sequence[tuple[str, Outcome, str]]) -> list[Failure]:
    """Return what each failed call said; secrets and telling words are looked for in all texts at once."""
    masked = redact.secrets_many([_shown(text) for _, _, text in told])
    held = redact.held(masked, _WORDS)
    coded = [number for number, (tool, _, text) in enumerate(told) if _has_code(tool, text)]
    codes_held = redact.held([masked[number] for number in coded], _CODES)
    found = {
        number: codes.dispatch(masked[number], frozenset(codes_held[at]))
        for at, number in enumerate(coded)
        if at in codes_held
    }
    return [
        _described(one, masked[number], frozenset(held.get(number, ())), found.get(number))
        for number, one in enumerate(told)
    ]


def _has_code(tool: str, text: str) -> bool:
    """Say whether a text is the tool's own words, so that its code and hint mean what they say."""
    return shell_like(tool) or text.startswith(_OWN)


def _shown(text: str) -> str:
    """Return what is looked at of a failed call's text: both ends of a long one, as a terminal shows them."""
    ends = plain(_ends(text))
    return _OWN_ERROR.sub("", ends) if "tool_use_error" in ends else ends


def _described(
    told: tuple[str, Outcome, str], masked: str, held: frozenset[str], found: codes.Found | None
) -> Failure:
    tool, outcome, text = told
    naming = _naming(masked, own=text.startswith(_OWN) or held.isdisjoint(_NAMING))
    return Failure(
        kind=coarse(masked, outcome, held),
        lines=tuple(naming),
        first_line=cut(naming[0]) if naming and shell_like(tool) else "",
        code=found.code if found else None,
        hint=found.hint if found else None,
    )


def _naming(masked: str, *, own: bool) -> list[str]:
    """Return the first three lines that name what is wrong; where none does, or all are `own`, the first three."""
    first: list[str] = []
    naming: list[str] = []
    for one in masked.splitlines():
        line = one.strip()
        if not line or _WRAPPING.match(line):
            continue
        if len(first) < _MOST_LINES:
            first.append(line)
        elif own:
            break
        if not own and _names(line):
            naming.append(line)
            if len(naming) == _MOST_LINES:
                break
    return naming or first


def _names(line: str) -> bool:
    folded = line.lower()
    named = line.startswith("E  ") or any(word in folded for word in _NAMING[:-1])
    named = named or _PLACED.match(line) is not None
    return named and not (any(word in folded for word in _ZERO_WORDS) and _ZERO.search(folded))


def _ends(text: str) -> str:
    """Return both ends of a long text, at whole lines: half a secret would not be known for one."""
    if len(text) <= 2 * _END:
        return text
    head, _, _ = text[:_END].rpartition("\n")
    _, _, tail = text[-_END:].partition("\n")
    return f"{head or text[:_END]}\n{tail}"


def cut(line: str) -> str:
    """Return at most `MOST_BYTES` bytes of a line, cut between characters."""
    content = line.encode("utf-8", "replace")
    if len(content) <= MOST_BYTES:
        return content.decode()
    return content[: MOST_BYTES - 3].decode("utf-8", "ignore") + "…"


_COARSE: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    ("timeout", ("timed out", "timeout", "killed", "sigterm", "sigkill"),
     re.compile(r"timed out|\btimeout\b|\bkilled\b|\bsigterm\b|\bsigkill\b")),
    ("typecheck", ("error ts", "tsc", "mypy", "pyright", "typescript"),
     re.compile(r"\berror ts\d|\btsc\b|\bmypy\b|\bpyright\b|typescript")),
    ("lint", ("lint", "biome", "ruff", "flake8", "clippy"),
     re.compile(r"\b(?:lint|eslint|biome|ruff|flake8|clippy)\b")),
    ("test", ("failed", "vitest", "jest", "pytest", "--- fail"),
     re.compile(r"\b(?:\d+ failed|failed \S+::|vitest|jest|pytest)\b|--- fail\b")),
    ("runtime", ("error", "panic", "segmentation fault", "exception"),
     re.compile(r"error:|\b\w*error\b|\bpanic\b|segmentation fault|exception")),
)  # fmt: skip
"""Coarse types, what a text of one holds at the least, and what decides."""


_WORDS = {
    word.encode(): word
    for word in sorted({*_NAMING, *(w for _, words, _ in _COARSE for w in words)})
}
"""All that a failed call's text is searched for before anything looks at it closely."""
_CODES = {word.encode(): word for word in sorted(codes.NEEDLES)}
"""And where it is the tool's own words, for its code."""


def coarse(text: str, outcome: Outcome, held: frozenset[str]) -> str:
    """Return the coarse type of a failure: timeout, typecheck, lint, test, runtime or unknown.

    `held`: those words that stand in its text.
    """
    if outcome.exit_code == _TIMED_OUT:
        return "timeout"
    near = [(kind, pattern) for kind, words, pattern in _COARSE if not held.isdisjoint(words)]
    folded = text.lower() if near else ""
    return next((kind for kind, pattern in near if pattern.search(folded)), "unknown")
