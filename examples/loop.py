"""An agent's loop with a memory: the block before the first word, tools through the broker, its own log.

In: a task, a model (anything that answers as Anthropic's Messages API does), a connection to memoryd, a log. Out: the
messages. Everything that enters the context is written down in the session's native log with its label, and
before it is used: so memoryd knows what this session has seen, and lets nothing flow below it.

    python examples/loop.py     # on a throw-away daemon, with a model that follows a script
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from examples.disposable import Daemon, throwaway_home
from memoryd.clock import now_ms, rfc3339
from memoryd.errors import MemorydError

Message = dict[str, Any]
Model = Callable[[str, list[Message], list[dict[str, Any]]], Message]
"""(system prompt, messages so far, tools) -> a message with `content` and `stop_reason`."""
TURNS = 20
UNKNOWN = {"class": "unknown", "untrusted": True}
"""The label of an answer that tells none: memoryd takes a class that it does not know for the highest."""


class Tool(NamedTuple):
    """A tool of the loop's own, and the label of what it brings in."""

    name: str
    description: str
    run: Callable[[dict[str, Any]], str]
    cls: str = "public"
    untrusted: bool = True

    def told(self) -> dict[str, Any]:
        """Return what a model is told of it."""
        schema = {"type": "object", "properties": {}}
        return {"name": self.name, "description": self.description, "input_schema": schema}


class Log:
    """A session's native log: one JSON object a line, below `sessions/` of memoryd's home."""

    def __init__(self, home: Path, name: str, project: str) -> None:
        """Begin the session `name`."""
        self.name, self.n = f"{name}.jsonl", 0
        self._path = home / "sessions" / self.name
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.write("session", session=name, project=project, agent="examples/loop.py")

    def write(self, kind: str, **fields: Any) -> None:
        """Write one record."""
        line = json.dumps({"ts": rfc3339(now_ms()), "kind": kind, **fields}, ensure_ascii=False)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        self.n += 1

    @property
    def caller(self) -> dict[str, Any]:
        """Return who asks: this session, and how much of it memoryd must have read first."""
        return {"log": self.name, "n": self.n}


def run(
    task: str,
    model: Model,
    memory: Any,
    log: Log,
    *,
    tools: Iterable[Tool] = (),
    block: str = "",
) -> list[Message]:
    """Work on `task` until the model has nothing more to do; `block`: the class of what it is told first."""
    own = {tool.name: tool for tool in tools}
    system = told_first(memory, log, task, block)
    offered = [
        {key: tool[key] for key in ("name", "description", "input_schema")}
        for tool in memory.call("tool.list")["tools"]
    ] + [tool.told() for tool in own.values()]
    log.write("owner", text=task)
    messages: list[Message] = [{"role": "user", "content": task}]
    for _ in range(TURNS):
        answer = model(system, messages, offered)
        messages.append({"role": "assistant", "content": answer["content"]})
        for part in answer["content"]:
            if part["type"] == "text":
                log.write("assistant", text=part["text"])
        calls = [part for part in answer["content"] if part["type"] == "tool_use"]
        if not calls:
            break
        results = [_result(memory, log, own, call) for call in calls]
        messages.append({"role": "user", "content": results})
    log.write("end")
    return messages


def told_first(memory: Any, log: Log, task: str, block: str) -> str:
    """Return the system prompt with the memory block in it; the log says so before any model sees it."""
    asked = {"query": task, "caller": log.caller} | ({"max_class": block} if block else {})
    answer = memory.call("block", **asked)
    if answer["text"]:
        label = answer["label"]
        log.write("memory_block", **{"class": label["class"], "untrusted": label["untrusted"]})
    return "\n\n".join(filter(None, ("You are a careful assistant.", answer["text"])))


def _result(memory: Any, log: Log, own: Mapping[str, Tool], call: Mapping[str, Any]) -> Message:
    """Run one call, write down what it brings with its label, and only then return it."""
    name, args = call["name"], call["input"]
    log.write("tool_call", call=call["id"], tool=name, args=args)
    failed = False
    if name in own:
        text, label = (
            own[name].run(args),
            {"class": own[name].cls, "untrusted": own[name].untrusted},
        )
    else:
        try:
            answer = memory.call("tool.call", name=name, args=args, caller=log.caller)
            text, failed = answer["text"], answer["is_error"]
            label = answer.get("label") or UNKNOWN
        except MemorydError as error:
            text, label, failed = str(error), {"class": "public", "untrusted": False}, True
    log.write(
        "tool_result", call=call["id"], ok=not failed, text=text,
        **{"class": label["class"], "untrusted": label["untrusted"]},
    )  # fmt: skip
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": failed}


def scripted(*turns: Iterable[tuple[str, dict[str, Any]] | str]) -> Model:
    """Return a model that says and calls what it is told, turn by turn."""
    rest = list(turns)

    def model(system: str, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        content: list[dict[str, Any]] = []
        for number, part in enumerate(rest.pop(0) if rest else ("done",)):
            if isinstance(part, str):
                content.append({"type": "text", "text": part})
            else:
                name, args = part
                call = f"toolu_{len(messages)}_{number}"
                content.append({"type": "tool_use", "id": call, "name": name, "input": args})
        reason = "tool_use" if any(part["type"] == "tool_use" for part in content) else "end_turn"
        return {"content": content, "stop_reason": reason}

    return model


CONFIG = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
[[socket]]
name = "loop"
clearance = "private"
tools = ["recall", "recall_open", "memory_view", "memory_create"]
"""


def main() -> None:
    """Show how a session that recalls something private cannot write it to public."""
    model = scripted(
        [
            (
                "memory_create",
                {"path": "/memories/public/plan.md", "file_text": "Ship on Tuesday.\n"},
            )
        ],
        [("recall", {"query": "tulip", "max_class": "private"})],
        [("memory_create", {"path": "/memories/public/tulip.md", "file_text": "The word.\n"})],
        [("memory_create", {"path": "/memories/private/tulip.md", "file_text": "The word.\n"})],
        ["That is all."],
    )
    with throwaway_home("md-loop-") as home, Daemon(home, CONFIG, user_home=home) as daemon:
        daemon.start()
        with daemon.client() as owner:
            rules = {"path": "/memories/public/MEMORY.md", "file_text": "Be brief.\n"}
            owner.call("notes.create", owner=True, **rules)
            secret = {"path": "/memories/private/word.md", "file_text": "The word is tulip.\n"}
            owner.call("notes.create", owner=True, **secret)
            owner.call("sync")
        with daemon.client("loop") as memory:
            log = Log(daemon.state, "demo", "/home/ada/shop")
            for message in run("What is the word?", model, memory, log):
                for part in message["content"] if isinstance(message["content"], list) else ():
                    print(message["role"], json.dumps(part, ensure_ascii=False)[:200])


if __name__ == "__main__":
    main()
