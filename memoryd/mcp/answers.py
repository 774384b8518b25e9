"""What the daemon answers, as values of the Model Context Protocol.

In: answers of `tool.list`, `tool.call`, `notes.list`, `notes.view` and `block`. Out: the SDK's models. The label of an
answer travels twice: in ``_meta``, for a harness that keeps labels, and as the first line of the text, for a model.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as mcp

from memoryd.errors import MemorydError

LABEL, HASH, CALLER = "memoryd/label", "memoryd/hash", "memoryd/caller"
"""Keys of ``_meta``: of results the first two, of requests the last."""
SCHEME = "memoryd://"
BLOCK = "memory"
"""The name of the prompt that holds the memory block."""

Answer = Mapping[str, Any]


def tool(told: Answer) -> mcp.Tool:
    """Return a tool as it is listed."""
    return mcp.Tool(
        name=told["name"],
        title=told["title"],
        description=told["description"],
        input_schema=told["input_schema"],
        output_schema=told["output_schema"],
        annotations=mcp.ToolAnnotations(
            title=told["title"],
            read_only_hint=told["annotations"]["readOnlyHint"],
            destructive_hint=told["annotations"]["destructiveHint"],
            idempotent_hint=told["annotations"]["idempotentHint"],
            open_world_hint=told["annotations"]["openWorldHint"],
        ),
    )


UNKNOWN = {"class": "unknown", "untrusted": True}
"""The label of an answer that has none, as of a daemon that is not ours: a class that nobody is cleared for."""


def result(told: Answer) -> mcp.CallToolResult:
    """Return what a tool answered, refusals among it."""
    told = {**told, "label": told.get("label") or UNKNOWN}
    return mcp.CallToolResult(
        content=[mcp.TextContent(text=labelled(told["text"], told["label"]))],
        structured_content=told["structured"],
        is_error=told["is_error"],
        _meta={LABEL: told["label"], **({HASH: told["hash"]} if told.get("hash") else {})},
    )


def failed(error: MemorydError) -> mcp.CallToolResult:
    """Return the result of a call that the daemon could not even take."""
    return mcp.CallToolResult(content=[mcp.TextContent(text=str(error))], is_error=True)


def labelled(text: str, label: Answer) -> str:
    """Return a text under its label."""
    return f"[{label['class']}{', untrusted' if label['untrusted'] else ''}]\n{text}"


def uri(path: str) -> str:
    """Return the address of the note at a path below ``/memories``."""
    return SCHEME + quote(path)


def path(address: str) -> str:
    """Return the path that an address names, "" for the address of something else."""
    return (
        unquote(address.removeprefix(SCHEME)) if address.startswith(f"{SCHEME}/memories/") else ""
    )


def resource(note: Answer) -> mcp.Resource:
    """Return a note as it is listed."""
    mark = " (untrusted)" if note["label"]["untrusted"] else ""
    return mcp.Resource(
        name=note["path"],
        uri=uri(note["path"]),
        title=note.get("title") or None,
        description=f"{note.get('description') or 'a note'}{mark}",
        mime_type="text/markdown",
        size=note["size"],
        _meta={LABEL: note["label"]},
    )


def template() -> mcp.ResourceTemplate:
    """Return how the address of a note is made."""
    return mcp.ResourceTemplate(
        name="note",
        title="A note",
        uri_template=SCHEME + "/memories/{+path}",
        description="a note by its path below /memories",
        mime_type="text/markdown",
    )


def contents(address: str, note: Answer) -> mcp.ReadResourceResult:
    """Return a note's text under its label."""
    text = labelled(note["text"], note["label"])
    meta = {LABEL: note["label"], HASH: note["hash"]}
    held = mcp.TextResourceContents(uri=address, mime_type="text/markdown", text=text, _meta=meta)
    return mcp.ReadResourceResult(contents=[held])


def prompt() -> mcp.Prompt:
    """Return the memory block as it is listed among the prompts."""
    about = mcp.PromptArgument(
        name="query", description="what the session is about to do", required=False
    )
    return mcp.Prompt(
        name=BLOCK,
        title="Memory",
        description="What earlier sessions kept: index notes, the list of notes, lessons that fit.",
        arguments=[about],
    )


def shown(block: Answer) -> mcp.GetPromptResult:
    """Return the memory block as a prompt."""
    text = labelled(block["text"] or "(nothing is kept yet)", block["label"])
    message = mcp.PromptMessage(role="user", content=mcp.TextContent(text=text))
    return mcp.GetPromptResult(messages=[message], _meta={LABEL: block["label"]})
