"""SWE-agent's trajectories: one document a run, written again after each step.

In: a `.traj` file: `trajectory` (steps with action and observation) and `history` (messages). Out: a header, the
task, one line a step, and their records. The task is the first message of a user that is no demonstration; what
demonstrations say is not of this run. A step's action is a line for a shell, its observation the result beside it.
A file without `trajectory` has its steps taken out of `history`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryd.records import Item, Kind, Record
from memoryd.sources import base, loose, whole

ID = "swe-agent"
SHELL = "bash"


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder that the environment names; a checkout's own `trajectories` is a source to add."""
    named = env.get("SWE_AGENT_TRAJECTORY_DIR")
    return [Path(named)] if named else []


def is_trajectory(found: object) -> bool:
    """Say whether a document is a trajectory."""
    told = loose.obj(found)
    steps, history = told.get("trajectory"), loose.objs(told.get("history"))
    if isinstance(steps, list):
        return all("action" in step for step in loose.objs(steps)) and "info" in told
    return bool(history) and all(loose.has(said, "role", "agent") for said in history)


def lines(root: Path, log: str) -> Iterator[bytes]:
    """Yield the header, the task and the steps of a run."""
    told = whole.document(root, log)
    history = [said for said in loose.objs(told.get("history")) if said.get("is_demo") is not True]
    yield whole.line({"swe": "run"})
    task = next((said for said in history if said.get("role") == "user"), {})
    yield whole.line({"swe": "task", "content": task.get("content")})
    steps = told.get("trajectory")
    for step in loose.objs(steps) if isinstance(steps, list) else history:
        if "action" in step:
            yield whole.line({"swe": "step", **{key: step.get(key) for key in _READ}})


_READ = ("action", "thought", "response", "tool_calls")


def parse(line: Any, n: int, begun: bool, raw: bytes | None = None) -> Record:
    """Return the record of a line. Raises: NotJson."""
    kind, items = loose.string(line.get("swe")), list[Item]()
    about = None
    if kind == "run":
        about = base.about(None, None, ID)
    elif kind == "task":
        content = line.get("content")
        texts = [{"text": content}] if isinstance(content, str) else loose.objs(content)
        for number, part in enumerate(texts):
            loose.say(items, number, Kind.OWNER, part.get("text"))
    elif kind == "step":
        _step(items, line)
    else:
        items += base.unknown(base.text(kind), line, frozenset(("swe",)))
    return Record(n, None, items, about)


def _step(items: list[Item], line: loose.Line) -> None:
    loose.say(items, 0, Kind.ASSISTANT, line.get("thought") or line.get("response"))
    action = line.get("action")
    if isinstance(action, str) and action.strip():
        loose.both(items, 1, None, SHELL, {"command": action}, ok=None)
    else:
        loose.odd(items, 1, action)


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=lambda log: False,
    claims=lambda record: "swe" in record,
    parse=parse,
    whole=(
        whole.Whole(
            wants=lambda log: log.endswith(".traj"),
            form="json",
            claims=is_trajectory,
            lines=lines,
        ),
    ),
)
