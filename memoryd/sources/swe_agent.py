"""SWE-agent's trajectories: one document a run, written again after each step.

In: a `.traj` file: `trajectory` (steps with action and observation) and `history` (messages). Out: a header, the
task, one line a step, and their records. The task is the first message of a user that is no demonstration; what
demonstrations say is not of this run. A step's action is a line for a shell, its observation the result beside it,
which nothing but its own words tells the success of. A file without `trajectory` has its steps taken out of
`history`, where an observation is the message after its action.
"""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
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
    for step in loose.objs(steps) if isinstance(steps, list) else _steps(history):
        if "action" in step:
            yield whole.line({"swe": "step", **{key: step.get(key) for key in _READ}})


_LOOKED = "This is how your edit would have looked"
"""Where a refused edit is shown with the file around it; what comes after is no word of the tool's."""
_READ = ("action", "thought", "response", "tool_calls", "observation")


def _steps(history: list[loose.Line]) -> Iterator[loose.Line]:
    """Yield the messages of a history, each with what the next one says as its observation."""
    for said, then in zip_longest(history, history[1:], fillvalue=loose.obj(None)):
        answered = then.get("role") in ("tool", "user") and "action" not in then
        yield {"observation": then.get("content") if answered else None, **said}


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
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
        said = loose.string(line.get("observation")).partition(_LOOKED)[0]
        loose.both(items, 1, None, SHELL, {"command": action}, ok=None, said=said)
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
