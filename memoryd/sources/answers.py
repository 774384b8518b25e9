"""What a tool's answer says of how it went, where its harness says so in words around the output.

In: an answer as a log keeps it. Out: `Answer`: the exit code of what was run, and what it said without the words
around it. Gemini's and Qwen's shell wraps its output into named sections and calls a command that failed a success;
Copilot's writes the exit code below it, Droid's above it. Only the harness's own marks count, where it puts them.
"""

import re
from collections.abc import Iterator

import msgspec

from memoryd.sources import loose

GEMINI_SHELL = "run_shell_command"

_SECTION = re.compile(
    r"^(Command|Directory|Stdout|Stderr|Output|Error|Exit Code|Signal|Background PIDs"
    r"|Process Group PGID):[ \t]*",
    re.MULTILINE,
)
_SAYS = frozenset(("Stdout", "Stderr", "Output", "Error"))
_NOTHING = frozenset(("", "(none)", "(empty)"))
_DROID_START = re.compile(r"Error: Command failed \(exit code: (-?\d{1,10})\)")
_COPILOT_END = re.compile(r"\n?<exited with exit code (-?\d{1,10})>\s*\Z")


class Answer(msgspec.Struct, frozen=True):
    """The exit code, None where none is told, and what was said."""

    exit_code: int | None
    said: object

    def judged(self, ok: bool | None) -> bool | None:
        """Return how the call went; a flag that says success speaks of the tool, not of what it ran."""
        return False if self.exit_code else ok


def of_gemini(tool: object, found: object) -> Answer:
    """Return the answer in a function's response, or in several."""
    said = "\n".join(_responses(found))
    if tool != GEMINI_SHELL:
        return Answer(None, said)
    first, *pieces = _SECTION.split(said)
    if not pieces or first.strip():
        return Answer(None, said)
    sections = list(zip(pieces[::2], map(str.strip, pieces[1::2]), strict=True))
    codes = [body for name, body in sections if name == "Exit Code"]
    kept = [body for name, body in sections if name in _SAYS and body not in _NOTHING]
    told = codes[-1].splitlines()[0] if codes and codes[-1] else ""
    code = int(told) if re.fullmatch(r"-?\d{1,10}", told) else None
    return Answer(code, "\n".join(kept))


def _responses(found: object) -> Iterator[str]:
    """Yield the texts of function responses; what went wrong has `error` in the place of `output`."""
    if isinstance(found, list):
        for one in found:
            yield from _responses(one)
    elif isinstance(found, dict):
        response = loose.obj(found.get("functionResponse", found)).get("response")
        for key in ("error", "output"):
            if told := loose.string(loose.obj(response).get(key)):
                yield told


def of_droid(said: object) -> Answer:
    """Return the answer of a result of Droid's store, which has its exit code before the output."""
    start = _DROID_START.match(said) if isinstance(said, str) else None
    return Answer(int(start[1]), said) if start else Answer(None, said)


def of_copilot(result: object, error: object) -> Answer:
    """Return the answer in an execution's result, or in its error."""
    said = loose.string(loose.obj(result).get("content"))
    if not said:
        return Answer(None, loose.obj(error).get("message"))
    end = _COPILOT_END.search(said)
    return Answer(int(end[1]), said[: end.start()]) if end else Answer(None, said)
