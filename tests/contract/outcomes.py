"""Independent walks of how calls went: a log's own flags and exit codes, by plain objects.

In: a session's file. Out: for each answer that says how its call went, in file order, whether it went well. Nothing
here knows adapters. An exit code other than 0 counts as a failure even beside a flag that says success.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.contract.walks import blocks, objects

Told = Iterator[tuple[str, bool]]
"""A call's name in its log ("" where it has none), and whether it went well."""


def claude(path: Path) -> Told:
    for line in objects(path):
        message = line.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in blocks(content):
            if block.get("type") == "tool_result" and block.get("is_error") is not None:
                yield block.get("tool_use_id", ""), not block["is_error"]


def codex(path: Path) -> Told:
    for line in objects(path):
        item = line.get("payload") or line
        if not str(item.get("type")).endswith("_output") or "call_id" not in item:
            continue
        told = _codex(item.get("output"))
        if told is not None:
            yield item["call_id"], told


def _codex(output: object) -> bool | None:
    if isinstance(output, dict):
        return output.get("success")
    text = str(output)
    if text.startswith("{"):
        code = json.loads(text).get("metadata", {}).get("exit_code")
        return None if code is None else code == 0
    said = re.search(r"^(?:Exit code:|Process exited with code) (-?\d+)", text, re.MULTILINE)
    if said is not None:
        return said[1] == "0"
    refused = ("exec command rejected", "failed in sandbox", "execution error", "apply_patch verif")
    return False if text.startswith(refused) else None


def pi(path: Path) -> Told:
    for line in objects(path):
        message = line.get("message", {})
        if message.get("role") == "toolResult":
            yield message["toolCallId"], not message["isError"]


def copilot(path: Path) -> Told:
    for line in objects(path):
        if line["type"] == "tool.execution_complete":
            said = str((line["data"].get("result") or {}).get("content"))
            code = re.search(r"<exited with exit code (\d+)>\s*$", said)
            yield line["data"]["toolCallId"], line["data"]["success"] and code is None


def droid(path: Path) -> Told:
    for line in objects(path):
        message = line.get("message")
        for block in blocks(message["content"] if isinstance(message, dict) else None):
            if block["type"] == "tool_result":
                flag, said = block.get("is_error"), str(block["content"])
                if flag is not None or "(exit code: " in said:
                    yield block["tool_use_id"], not (flag or "(exit code: 0)" not in said)
        if line["type"] == "tool_result":
            value = line["value"]
            code = value.get("exitCode") if isinstance(value, dict) else None
            if code is not None or "isError" in line:
                yield line.get("toolCallId") or line["id"], not (code or line.get("isError"))


def gemini(path: Path) -> Told:
    if path.suffix == ".jsonl":
        messages = [line for line in objects(path) if "type" in line]
    else:
        chat = json.loads(path.read_text())
        messages = chat.get("messages") or chat["history"]
    for message in messages:
        for tool in message.get("toolCalls", []):
            code = re.search(r"^Exit Code: ([1-9]\d*)$", _said(tool), re.MULTILINE)
            yield tool.get("id", ""), tool["status"] == "success" and code is None


def _said(tool: dict[str, Any]) -> str:
    found = tool.get("result") or []
    return "\n".join(str(one["functionResponse"]["response"].get("output")) for one in found)


def qwen(path: Path) -> Told:
    for line in objects(path):
        status = line.get("toolCallResult", {}).get("status")
        if line["type"] == "tool_result" and status in ("success", "error", "cancelled"):
            [part] = line["message"]["parts"]
            yield part["functionResponse"]["id"], status == "success"


def kimi(path: Path) -> Told:
    """The wire says `isError` only where it is true."""
    for line in objects(path):
        event = line.get("event", {})
        if event.get("type") == "tool.result":
            yield event["toolCallId"], not event["result"].get("isError", False)


def opencode(path: Path) -> Told:
    store, session = path.parents[2], json.loads(path.read_text())["id"]
    told = [json.loads(file.read_text()) for file in (store / "message" / session).glob("*.json")]
    for message in sorted(told, key=lambda one: one["time"]["created"]):
        for file in sorted((store / "part" / message["id"]).glob("*.json")):
            part = json.loads(file.read_text())
            if part["type"] == "tool":
                state = part["state"]
                well = state["status"] in ("completed", "success")
                yield part["callID"], well and not state.get("metadata", {}).get("exit")


def untold(path: Path) -> Told:
    """Walk what has no flags at all."""
    yield from ()


OUTCOMES: dict[str, Callable[[Path], Told]] = {
    "claude-code": claude,
    "codex": codex,
    "pi": pi,
    "copilot": copilot,
    "droid": droid,
    "gemini": gemini,
    "qwen": qwen,
    "kimi": kimi,
    "opencode": opencode,
    "cursor": untold,
    "aider": untold,
    "swe-agent": untold,
}
