"""Small sessions of the harnesses that came later, each laid out on the disk as its harness lays them out.

In: entries as a harness writes them (`owner`, `assistant`, `call`, ...), in order. Out: files below a folder.
`OUTSIDE` entries hold a word in a place that must never be read and raises; `SILENT` ones in a place that is not
read either and brings nothing from outside (thinking).

::

    kind = HARNESSES["opencode"]
    kind.put(folder, [kind.owner("hello"), *kind.call("bash", {"command": "ls"}, "c1", "a.py")])
"""

from tests.support.harness_kind import Kind
from tests.support.harness_lines import COPILOT, CURSOR, DROID, DROID_STREAM, KIMI, PI, QWEN
from tests.support.harness_wholes import (
    AIDER,
    CLINE,
    GEMINI,
    GEMINI_LINES,
    GOOSE,
    GOOSE_LINES,
    OPENCODE,
    OPENCODE_DB,
    OPENHANDS,
    SWE,
    opencode_db,
    opencode_rows,
)

__all__ = [
    "AIDER",
    "CLINE",
    "COPILOT",
    "CURSOR",
    "DROID",
    "DROID_STREAM",
    "GEMINI",
    "GEMINI_LINES",
    "GOOSE",
    "GOOSE_LINES",
    "HARNESSES",
    "KIMI",
    "OPENCODE",
    "OPENCODE_DB",
    "OPENHANDS",
    "PI",
    "QWEN",
    "SWE",
    "Kind",
    "opencode_db",
    "opencode_rows",
]

HARNESSES = {
    "pi": PI,
    "droid": DROID,
    "droid stream": DROID_STREAM,
    "copilot": COPILOT,
    "cursor": CURSOR,
    "kimi": KIMI,
    "qwen": QWEN,
    "gemini": GEMINI,
    "gemini lines": GEMINI_LINES,
    "opencode": OPENCODE,
    "opencode database": OPENCODE_DB,
    "aider": AIDER,
    "swe-agent": SWE,
    "openhands": OPENHANDS,
    "goose": GOOSE,
    "goose lines": GOOSE_LINES,
    "cline": CLINE,
}
