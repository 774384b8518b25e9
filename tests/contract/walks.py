"""Independent walks of the later harnesses' sessions: plain objects, and short lists of who spoke.

In: a session's file. Out: what was said by whom, which tools were called, how many results there are, and what came
from outside. Nothing here knows adapters, and nothing decodes by type.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple


class Walked(NamedTuple):
    """What a walk finds: texts by who spoke, tools in order, how many results, and what came from outside."""

    owner: list[str]
    assistant: list[str]
    tools: list[str]
    arguments: list[str]
    results: int
    outside: list[str]


def objects(path: Path) -> Iterator[dict[str, Any]]:
    decode = json.JSONDecoder().raw_decode
    for line in map(str.strip, path.read_text().split("\n")):
        at = 0
        while at < len(line):
            try:
                found, at = decode(line, at)
            except ValueError:
                break
            if isinstance(found, dict):
                yield found


def strings(tree: object) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from strings(value)


def blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    found = content if isinstance(content, list) else []
    return found if all(isinstance(block, dict) for block in found) else []


class _Walk:
    """A walk under way."""

    def __init__(self) -> None:
        self.of = {"user": list[str](), "assistant": list[str]()}
        self.tools: list[str] = []
        self.arguments: list[str] = []
        self.outside: list[str] = []
        self.results = 0

    def call(self, tool: str, args: object) -> None:
        self.tools.append(tool)
        if isinstance(args, str):
            with suppress(ValueError):
                args = json.loads(args)
        self.arguments += strings(args)

    def result(self, said: object) -> None:
        self.results += 1
        self.outside += strings(said)

    def done(self) -> Walked:
        return Walked(self.of["user"], self.of["assistant"], self.tools, self.arguments,
                      self.results, self.outside)  # fmt: skip


def _messages(walk: _Walk, role: str, content: object) -> None:
    """Walk content blocks in the forms that Anthropic's and pi's have."""
    for block in blocks(content):
        kind = block["type"]
        if kind == "text":
            walk.of[role].append(block["text"])
        elif kind in ("tool_use", "toolCall", "tool_call"):
            walk.call(block["name"], block.get("input", block.get("arguments")))
        elif kind in ("tool_result", "tool-result"):
            walk.result(block.get("content"))
        else:
            walk.outside += strings(block)


def pi(path: Path) -> Walked:
    walk = _Walk()
    for line in objects(path):
        message = line.get("message", {})
        if message.get("role") == "toolResult":
            walk.result([message["content"], message.get("details")])
        elif message.get("role") in walk.of:
            _messages(walk, message["role"], message["content"])
        elif line["type"] != "compaction":
            walk.outside += strings({k: v for k, v in line.items() if k != "id"})
    return walk.done()


def droid(path: Path) -> Walked:
    walk = _Walk()
    for line in objects(path):
        if "message" in line and isinstance(line["message"], dict):
            _messages(walk, line["message"]["role"], line["message"]["content"])
        elif line["type"] == "message":
            walk.of[line["role"]].append(line["text"])
        elif line["type"] == "tool_call":
            walk.call(line["toolName"], line["parameters"])
        elif line["type"] == "tool_result":
            walk.result(line["value"])
        elif line["type"] == "completion":
            walk.of["assistant"].append(line["finalText"])
    walk.of["user"] = [
        re.sub(r"<system-reminder>.*?</system-reminder>", "", words, flags=re.DOTALL)
        for words in walk.of["user"]
    ]
    return walk.done()


def copilot(path: Path) -> Walked:
    walk = _Walk()
    for line in objects(path):
        data = line["data"]
        if line["type"] in ("user.message", "assistant.message"):
            walk.of[line["type"].partition(".")[0]].append(data["content"])
            for asked in data.get("toolRequests", []):
                walk.call(asked["name"], asked["arguments"])
        elif line["type"] == "tool.execution_complete":
            walk.result(data["result"])
        elif line["type"].startswith(("hook.", "system.")):
            walk.outside += strings(data)
    return walk.done()


def cursor(path: Path) -> Walked:
    walk = _Walk()
    for line in objects(path):
        if "role" in line:
            _messages(walk, line["role"], line["message"]["content"])
    walk.of["user"] = [re.sub(r"</?user_query>", "", words) for words in walk.of["user"]]
    walk.of["assistant"] = [words for words in walk.of["assistant"] if words != "[REDACTED]"]
    walk.results += len(walk.tools)  # each call stands for its own result as well
    return walk.done()


def kimi(path: Path) -> Walked:
    walk = _Walk()
    for line in objects(path):
        event = line.get("event", {})
        if line["type"] in ("turn.prompt", "turn.steer"):
            told_by = "user" if line["origin"]["kind"] == "user" else "assistant"
            walk.of[told_by] += [part["text"] for part in line["input"]]
        elif event.get("type") == "content.part" and event["part"]["type"] == "text":
            walk.of["assistant"].append(event["part"]["text"])
        elif event.get("type") == "tool.call":
            walk.call(event["name"], event["args"])
        elif event.get("type") == "tool.result":
            walk.result(event["result"])
        elif line["type"] in ("config.update", "llm.tools_snapshot"):
            walk.outside += strings(line)
    return walk.done()


def qwen(path: Path) -> Walked:
    walk = _Walk()
    for line in objects(path):
        payload = line.get("systemPayload", {})
        if "rawCommand" in payload and "outputHistoryItems" not in payload:
            walk.of["user"].append(payload["rawCommand"])
        if line["type"] == "system" or line.get("subtype") == "notification":
            continue
        for part in line["message"]["parts"]:
            if "functionCall" in part:
                walk.call(part["functionCall"]["name"], part["functionCall"]["args"])
            elif "functionResponse" in part:
                walk.result(part)
            elif part.get("thought") or part["text"].startswith("<qwen:"):
                walk.outside.append(part["text"])
            else:
                walk.of[line["type"]].append(part["text"])
    return walk.done()


def gemini(path: Path) -> Walked:
    walk = _Walk()
    if path.suffix == ".jsonl":
        messages = [line for line in objects(path) if "type" in line]
    else:
        chat = json.loads(path.read_text())
        messages = chat.get("messages") or chat["history"]
    for message in messages:
        speaker = message.get("type") or message["role"]
        content = message.get("content", message.get("parts"))
        parts = [{"text": content}] if isinstance(content, str) else content
        if speaker in ("user", "gemini", "model"):
            told_by = "user" if speaker == "user" else "assistant"
            walk.of[told_by] += [part["text"] for part in parts if "text" in part]
        walk.outside += strings(message.get("thoughts"))
        for tool in message.get("toolCalls", []):
            walk.call(tool["name"], tool["args"])
            walk.result([tool.get("result"), tool.get("resultDisplay")])
    return walk.done()


def opencode(path: Path) -> Walked:
    walk = _Walk()
    store, session = path.parents[2], json.loads(path.read_text())["id"]
    told = [json.loads(file.read_text()) for file in (store / "message" / session).glob("*.json")]
    for message in sorted(told, key=lambda one: one["time"]["created"]):
        for file in sorted((store / "part" / message["id"]).glob("*.json")):
            part = json.loads(file.read_text())
            if part["type"] == "text" and not part.get("synthetic"):
                walk.of[message["role"]].append(part["text"])
            elif part["type"] == "tool":
                walk.call(part["tool"], part["state"]["input"])
                walk.result(part["state"]["output"])
            else:
                walk.outside += strings(part.get("text"))
    return walk.done()


def aider(path: Path) -> Walked:
    """Walk the one history there is: the owner speaks right after a run starts, and nowhere else in it."""
    walk = _Walk()
    for run in path.read_text().split("# aider chat started at")[1:]:
        texts = run.partition("\n")[2].strip().split("\n")
        if texts == [""]:
            continue
        walk.of["user"].append(texts[0].removeprefix("#### "))
        block: list[str] = []
        for text in [*texts[1:], ">"]:
            if text.startswith((">", "#### ")):
                walk.of["assistant"].append("\n".join(block))
                block = []
            else:
                block.append(text)
    return walk.done()


def swe_agent(path: Path) -> Walked:
    walk = _Walk()
    told = json.loads(path.read_text())
    history = told["history"]
    task = next(said for said in history if said["role"] == "user" and not said.get("is_demo"))
    content = task["content"]
    walk.of["user"] += [content] if isinstance(content, str) else [part["text"] for part in content]
    steps = told.get("trajectory") or [said for said in history if said["role"] == "assistant"]
    for step in steps:
        walk.of["assistant"].append(step["thought"] or step.get("response") or "")
        walk.call("bash", step["action"])
        walk.result(step.get("observation"))
    return walk.done()


WALKS: dict[str, Callable[[Path], Walked]] = {
    "pi": pi,
    "droid": droid,
    "copilot": copilot,
    "cursor": cursor,
    "kimi": kimi,
    "qwen": qwen,
    "gemini": gemini,
    "opencode": opencode,
    "aider": aider,
    "swe-agent": swe_agent,
}
NO_SAMPLES = {"openhands", "goose", "cline"}
"""Harnesses of which no real session was at hand: made after their public documentation, and unverified."""
