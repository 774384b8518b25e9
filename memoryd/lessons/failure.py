"""Did a call fail, and what did it say first?

In: what the log says of a result (its flag, its exit code) and, for shell-like tools that say neither, its text. Out:
`Failure`, or None for a success. The log's own word decides; text is a guess, so it is read only where nothing
else tells, and never for tools whose output is other people's text (files, searches), in which the word
"exception" is content.
"""

import re
from fnmatch import fnmatchcase

import msgspec

from memoryd import redact
from memoryd.lessons import codes
from memoryd.lessons.fingerprint import plain

SHELL_TOOLS = (
    "Bash", "bash", "shell", "shell_command", "local_shell", "exec_command", "container.exec",
    "run_shell_command", "execute_command", "terminal", "run_command", "run_terminal_cmd",
)  # fmt: skip
_OWN_ERROR = re.compile(r"</?tool_use_error>")
"""Claude Code puts its tools' own words between these, other people's text never."""
_DECLINED = re.compile(
    r"\A\s*(?:The user doesn't want to |\[Request interrupted by user|User rejected )"
    r"|\brejected by (?:the )?user\b"
)
MOST_BYTES = 200
"""Of the redacted first error line; the only words of a result that memoryd keeps."""
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
    r"|^make(?:\[\d+\])?: \*\*\* ",
    re.MULTILINE,
)
_NAMING = re.compile(
    r"error|fail|cannot|can't|could not|unable|not found|no such|denied|exception|panic|fatal|refused"
    r"|timed out|undefined|unexpected|invalid|missing|conflict|segmentation|traceback|\bE\s{2,}",
    re.IGNORECASE,
)
_ZERO = re.compile(r"\b(?:0|no) (?:errors?|failures?|failed)\b", re.IGNORECASE)
_WRAPPING = re.compile(
    r"^(?:Traceback \(most recent call last\):|Exit code:? \d+|Output:|Error: Exit code \d+)\s*$"
)


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
    return any(fnmatchcase(tool, known) for known in SHELL_TOOLS)


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
    return any(
        not _ZERO.search(_line_around(looked, found.start())) for found in _CERTAIN.finditer(looked)
    )


def _line_around(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start : end if end >= 0 else len(text)]


def declined(text: str) -> bool:
    """Say whether a person stopped the call: the log calls it failed, but nothing is to be learned from it."""
    return _DECLINED.search(text[:500]) is not None


def describe(tool: str, outcome: Outcome, text: str) -> Failure:
    """Return what a failed call said; of tools that are not shell-like, their first line alone."""
    own = text.startswith("<tool_use_error>")
    shown = _OWN_ERROR.sub("", redact.secrets(plain(_ends(text))))
    lines = [line.strip() for line in shown.splitlines()]
    lines = [line for line in lines if line and not _WRAPPING.match(line)]
    naming = [line for line in lines if _NAMING.search(line) and not _ZERO.search(line)]
    naming = lines if own or not naming else naming
    found = codes.dispatch(shown) if own or shell_like(tool) else None
    return Failure(
        kind=coarse(shown, outcome),
        lines=tuple(naming[:3]),
        first_line=cut(naming[0]) if naming else "",
        code=found.code if found else None,
        hint=found.hint if found else None,
    )


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


_COARSE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("timeout", re.compile(r"timed out|\btimeout\b|\bkilled\b|\bsigterm\b|\bsigkill\b")),
    ("typecheck", re.compile(r"\berror ts\d|\btsc\b|\bmypy\b|\bpyright\b|typescript")),
    ("lint", re.compile(r"\b(?:lint|eslint|biome|ruff|flake8|clippy)\b")),
    ("test", re.compile(r"\b(?:\d+ failed|failed \S+::|vitest|jest|pytest|--- fail)\b")),
    ("runtime", re.compile(r"error:|\b\w*error\b|\bpanic\b|segmentation fault|exception")),
)


def coarse(text: str, outcome: Outcome) -> str:
    """Return the coarse type of a failure: timeout, typecheck, lint, test, runtime or unknown."""
    if outcome.exit_code == 124:
        return "timeout"
    folded = text.lower()
    return next((kind for kind, pattern in _COARSE if pattern.search(folded)), "unknown")
