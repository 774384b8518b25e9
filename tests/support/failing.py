"""A shell's failed call as each harness writes it down, with the words that it puts around the output.

`FAILING[name](command, said)`: the entries, for `HARNESSES[name].put`. Where the form is known from documents and
not from a sample, docs/sources.md says so of the harness.
"""

from collections.abc import Callable

from tests.support import harness_lines as lines
from tests.support import harness_wholes as wholes
from tests.support.harness_kind import Entry, text_block

_GEMINI_SAYS = (
    "Command: {command}\nDirectory: (root)\nOutput: {said}\nError: (none)\nExit Code: 2\nSignal: (none)\n"
    "Background PIDs: (none)\nProcess Group PGID: 4711"
)


def _pi(command: str, said: str) -> list[Entry]:
    call, _ = lines.PI.call("bash", {"command": command}, "c1", "")
    told = text_block(f"{said}\n\nCommand exited with code 2")
    return [call, lines._pi("toolResult", told, toolCallId="c1", toolName="bash", isError=True)]


def _droid(command: str, said: str) -> list[Entry]:
    return lines.DROID.call(
        "Execute", {"command": command}, "c1", f"Error: Command failed (exit code: 2)\n{said}"
    )


def _droid_stream(command: str, said: str) -> list[Entry]:
    call, _ = lines.DROID_STREAM.call("Execute", {"command": command}, "c1", "")
    value = {"stdout": "", "stderr": said, "exitCode": 2}
    return [call, lines._stream("tool_result", toolCallId="c1", value=value)]


def _copilot(command: str, said: str) -> list[Entry]:
    return lines.COPILOT.call(
        "bash", {"command": command}, "c1", f"{said}\n<exited with exit code 2>"
    )


def _kimi(command: str, said: str) -> list[Entry]:
    call, _ = lines.KIMI.call("Bash", {"command": command}, "c1", "")
    result = {"output": f"{said}\nCommand failed with exit code: 2.", "isError": True}
    return [call, lines._kimi_event("tool.result", toolCallId="c1", result=result)]


def _qwen(command: str, said: str) -> list[Entry]:
    told = _GEMINI_SAYS.format(command=command, said=said)
    return lines.QWEN.call("run_shell_command", {"command": command}, "c1", told)


def _gemini(command: str, said: str) -> list[Entry]:
    told = _GEMINI_SAYS.format(command=command, said=said)
    return wholes.GEMINI.call("run_shell_command", {"command": command}, "c1", told)


def _opencode(command: str, said: str) -> list[Entry]:
    return [
        wholes._tool("bash", {"command": command}, "c1", output=said, metadata={"exit": 2}),
    ]


def _swe(command: str, said: str) -> list[Entry]:
    return ["task", *wholes.SWE.call("bash", {"command": command}, "c1", said)]


def _openhands(command: str, said: str) -> list[Entry]:
    call, _ = wholes.OPENHANDS.call("terminal", {"command": command}, "c1", "")
    seen = {"content": text_block(said), "exit_code": 2, "is_error": False}
    result = wholes._event(
        "ObservationEvent",
        "environment",
        tool_name="terminal",
        tool_call_id="c1",
        observation=seen,
    )
    return [call, result]


def _goose(command: str, said: str) -> list[Entry]:
    call, _ = wholes.GOOSE.call("developer__shell", {"command": command}, "c1", "")
    value = {"content": text_block(said), "isError": True}
    result = {"status": "success", "value": value}
    return [
        call,
        wholes._goose("user", {"type": "toolResponse", "id": "c1", "toolResult": result}),
    ]


FAILING: dict[str, Callable[[str, str], list[Entry]]] = {
    "pi": _pi,
    "droid": _droid,
    "droid stream": _droid_stream,
    "copilot": _copilot,
    "kimi": _kimi,
    "qwen": _qwen,
    "gemini": _gemini,
    "gemini lines": _gemini,
    "opencode": _opencode,
    "opencode database": _opencode,
    "swe-agent": _swe,
    "openhands": _openhands,
    "goose": _goose,
    "goose lines": _goose,
}
UNTOLD = frozenset(("cursor", "aider", "cline"))
"""Harnesses whose logs say nowhere how a call went, or not which call an answer is to."""
