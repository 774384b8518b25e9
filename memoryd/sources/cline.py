"""Cline and Roo Code: two documents a task, of which the one for the screen is read.

In: `ui_messages.json`, an array of `ask` and `say` messages. Out: a header, one line a message, and their records.
The first `say: text` is the owner's task, later ones are the assistant's. Tool messages hold what a tool was asked
and, in the same place, what it found, so that only fields that name a place or a pattern are read of them; each
stands for its own result. `api_conversation_history.json` says the same once more, with results inside prompts.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import Brought, Item, Kind, Record
from memoryd.sources import base, loose, whole

ID = "cline"
NAME = "ui_messages.json"

_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline")
_EDITORS = (".config/Code/User", ".config/Cursor/User", ".vscode-server/data/User")
_ASKED = frozenset(
    (
        *("path", "regex", "filePattern", "query", "mode", "startLine", "endLine", "recursive"),
        *("lineNumber", "url", "skill", "reason", "taskId"),
    )
)
"""Fields of a tool message that hold nothing that the tool found."""

_OWNER = frozenset(("user_feedback", "user_feedback_diff", "task"))
_ASSISTANT = frozenset(("completion_result", "plan_mode_respond", "followup"))
_MCP = frozenset(("use_mcp_server", "use_mcp_tool"))
_BROUGHT = {
    "command_output": "local-command",
    "mcp_server_response": "attachment:mcp_response",
    "browser_action_result": "attachment:mcp_browser",
    "api_req_started": "event:request",
    "reasoning": "event:reasoning",
    "condense_context": "compaction",
    "codebase_search_result": "local-command",
    "hook_output_stream": "hook",
    "hook_status": "meta",
}
_META = frozenset(
    (
        *("api_req_failed", "api_req_finished", "api_req_retried", "api_req_retry_delayed"),
        *("checkpoint_created", "checkpoint_saved", "clineignore_error", "deleted_api_reqs"),
        *("diff_error", "error", "error_retry", "info", "load_mcp_documentation"),
        *("mcp_server_request_started", "mistake_limit_reached", "resume_completed_task"),
        *("resume_task", "rooignore_error", "shell_integration_warning", "subtask_result"),
        *("task_progress", "auto_approval_max_req_reached", "user_edit_todos", "image"),
    )
)


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folders of tasks below each editor's storage, and the command line's own."""
    try:
        user = paths.user_home(env)
    except ConfigError:
        return []
    stored = [
        user / editor / "globalStorage" / extension / "tasks"
        for editor in _EDITORS
        for extension in _EXTENSIONS
    ]
    return [*stored, user / ".cline" / "data" / "tasks"]


def is_task(found: object) -> bool:
    """Say whether a document is a task's messages for the screen."""
    said = loose.objs(found)
    return bool(said) and all(
        loose.has(one, "ts") and one.get("type") in ("ask", "say") for one in said
    )


def lines(root: Path, log: str) -> Iterator[bytes]:
    """Yield the header and the messages of a task, without those that are still growing."""
    yield whole.line({"cline": "task"})
    told = False
    for said in loose.objs(whole.document(root, log)):
        if said.get("partial") is not True:
            task = not told and said.get("type") == "say" and said.get("say") == "text"
            told = told or task
            kept = {key: said.get(key) for key in ("ts", "type", "ask", "say", "text", "images")}
            condensed = loose.obj(said.get("contextCondense")).get("summary")
            yield whole.line({**kept, "task": task, "condensed": condensed})


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    items: list[Item] = []
    kind = loose.string(line.get("ask") if line.get("type") == "ask" else line.get("say"))
    text = line.get("text")
    if "cline" in line:
        return Record(n, None, items, base.about(None, None, ID))
    if line.get("task") is True or kind in _OWNER:
        loose.say(items, 0, Kind.OWNER, text)
    elif kind == "text" or kind in _ASSISTANT:
        loose.say(items, 0, Kind.ASSISTANT, _asked(text))
    elif kind in ("tool", "command") or kind in _MCP or kind == "browser_action_launch":
        _call(items, kind, text)
    elif kind == "browser_action":
        loose.both(items, 0, None, "browser_action", {}, ok=None)
    elif kind in _BROUGHT:
        loose.say(items, 0, Kind.SUMMARY, line.get("condensed"))
        items.append(Brought(0, _BROUGHT[kind]))
    elif kind in _META:
        items.append(Brought(0, "meta"))
    else:
        items += base.unknown(base.text(kind), line, frozenset(("ask", "say", "type")))
    if text is not None and not isinstance(text, str):
        loose.odd(items, 0, text)
    if base.carries_text(line.get("images")):
        items.append(Brought(2, "block:image"))
    return Record(n, loose.when(line.get("ts")), items)


def _asked(text: object) -> object:
    """Return a question out of the JSON that it is wrapped in, else the text."""
    told = _json(text)
    return told.get("question") or told.get("response") or text


def _json(text: object) -> loose.Line:
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return {}
    try:
        return loose.obj(loose.args_of(text))
    except base.NotJson:
        return {}


def _call(items: list[Item], kind: object, text: object) -> None:
    told = _json(text)
    args: dict[str, object]
    if kind == "command":
        name = "execute_command"
        args = {"command": loose.string(text)}
    elif kind in _MCP:
        server, tool = loose.string(told.get("serverName")), loose.string(told.get("toolName"))
        name, args = f"mcp__{server}__{tool}", {"arguments": loose.args_of(told.get("arguments"))}
    elif kind == "tool":
        name = loose.string(told.get("tool"))
        args = {key: value for key, value in told.items() if key in _ASKED}
    else:
        name, args = "browser_action", {"url": loose.string(text)}
    loose.both(items, 0, None, name, args, ok=None)


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=lambda log: False,
    claims=lambda record: "cline" in record,
    parse=parse,
    whole=(
        whole.Whole(
            wants=lambda log: log.rpartition("/")[2] == NAME,
            form="json",
            claims=is_task,
            lines=lines,
        ),
    ),
)
