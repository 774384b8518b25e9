"""OpenHands: a folder a conversation, in it one small file an event.

In: `base_state.json` and `events/event-NNNNN-*.json` beside it. Out: a header and one line an event, in the order of
their numbers, and the records of these. Of what observations say only that of failed ones is read.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from memoryd import paths
from memoryd.errors import ConfigError
from memoryd.records import Brought, Called, Item, Kind, Record
from memoryd.sources import base, loose, whole
from memoryd.sources.whole import Mark

ID = "openhands"
STATE = "base_state.json"

_RESULTS = frozenset(("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"))
_META = frozenset(
    (
        *("ConversationErrorEvent", "ConversationStateUpdateEvent", "LLMCompletionLogEvent"),
        *("CondensationRequest", "PauseEvent", "TokenEvent", "StreamingDeltaEvent"),
    )
)
_SUMMARIES = frozenset(("Condensation", "CondensationSummaryEvent"))
_UNREAD = frozenset(("observation", "reasoning_content", "thinking_blocks", "system_prompt"))
_KEYS = frozenset(("id", "kind", "source", "timestamp"))
_NO_ARGS = frozenset(("kind", "security_risk"))
_NOT_FAILED = (0, -1)
"""Exit codes of a command that went well, and of one that is still running."""


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of conversations."""
    moved = env.get("OPENHANDS_CONVERSATIONS_DIR")
    try:
        own = paths.user_home(env) / ".openhands" / "conversations"
    except ConfigError:
        own = None
    return [Path(moved)] if moved else [] if own is None else [own]


def is_state(found: object) -> bool:
    """Say whether a document is a conversation's state."""
    return loose.has(loose.obj(found), "id", "agent", "workspace")


def look(root: Path, log: str) -> Mark:
    """Return the mark of a conversation's files. Raises: OSError."""
    folder = PurePosixPath(log).parent.as_posix()
    events = [status for _, status in whole.listed(root, f"{folder}/events")]
    return whole.mark_of((root / log).lstat(), events)


def glance(root: Path, log: str) -> tuple[int, ...]:
    """Return what changes when a conversation is taken up again. Raises: OSError."""
    file, folder = (root / log).lstat(), (root / log).with_name("events").lstat()
    return file.st_mtime_ns, file.st_size, folder.st_mtime_ns


def lines(root: Path, log: str) -> Iterator[bytes]:
    """Yield the header and the events of a conversation."""
    state = whole.document(root, log)
    workspace = loose.obj(state.get("workspace")).get("working_dir")
    yield whole.line({"openhands": "conversation", "id": state.get("id"), "workspace": workspace})
    folder = f"{PurePosixPath(log).parent.as_posix()}/events"
    for name, _ in whole.listed(root, folder):
        if name.startswith("event-") and name.endswith(".json"):
            event = loose.obj(whole.document(root, f"{folder}/{name}"))
            kept = {key: value for key, value in event.items() if key not in _UNREAD}
            if loose.string(event.get("kind")) in _RESULTS:
                kept |= _outcome(event)
            yield whole.line(kept)


def _outcome(event: loose.Line) -> loose.Line:
    """Return whether an observation is of a failure, and what it then says."""
    seen = loose.obj(event.get("observation"))
    code = seen.get("exit_code", loose.obj(seen.get("metadata")).get("exit_code"))
    ran_badly = isinstance(code, int) and code not in _NOT_FAILED
    failed = event["kind"] != "ObservationEvent" or seen.get("is_error") is True or ran_badly
    told = [event.get("error"), event.get("rejection_reason")]
    told += [seen.get(key) for key in ("error", "content", "output")]
    return {"is_error": failed, "told": [one for one in told if one] if failed else None}


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line. Raises: NotJson."""
    kind, items = loose.string(line.get("kind")), list[Item]()
    about = None
    if "openhands" in line:
        about = base.about(base.text(line.get("id")), base.text(line.get("workspace")), ID)
    elif kind == "MessageEvent":
        _message(items, line)
    elif kind == "ActionEvent":
        _action(items, line)
    elif kind in _RESULTS:
        ok = line.get("is_error") is not True
        call, tool = line.get("tool_call_id"), line.get("tool_name")
        items.append(loose.returned(0, call, tool, ok=ok, said=line.get("told")))
    elif kind in _SUMMARIES:
        loose.say(items, 0, Kind.SUMMARY, line.get("summary"))
        items.append(Brought(0, "compaction"))
    elif kind == "SystemPromptEvent":
        items.append(Brought(0, "preamble"))
    elif kind in _META:
        items.append(Brought(0, "meta"))
    else:
        items += base.unknown(base.text(kind), line, _KEYS)
    uuid = base.text(line.get("id"))
    return Record(n, loose.when(line.get("timestamp")), items, about, uuid)


def _message(items: list[Item], line: loose.Line) -> None:
    message, source = loose.obj(line.get("llm_message")), line.get("source")
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        loose.odd(items, 0, line.get("llm_message"))
    for number, part in enumerate(loose.objs(content)):
        if part.get("type") != "text":
            items.append(Brought(number, base.named("block", base.text(part.get("type")))))
        elif source == "user" and not line.get("sender"):
            loose.say(items, number, Kind.OWNER, part.get("text"))
        elif source == "agent":
            loose.say(items, number, Kind.ASSISTANT, part.get("text"))
        else:
            items.append(Brought(number, "task-notification"))
    if base.carries_text(line.get("extended_content")):
        items.append(Brought(0, "hook"))


def _action(items: list[Item], line: loose.Line) -> None:
    thoughts = loose.objs(line.get("thought"))
    for number, part in enumerate(thoughts):
        loose.say(items, number, Kind.ASSISTANT, part.get("text"))
    function = loose.obj(loose.obj(line.get("tool_call")).get("function"))
    action = line.get("action")
    if isinstance(action, dict):
        args: object = {key: value for key, value in action.items() if key not in _NO_ARGS}
    else:
        args = function.get("arguments", loose.obj(line.get("tool_call")).get("arguments"))
    name = loose.string(line.get("tool_name"))
    call = base.text(line.get("tool_call_id"))
    items.append(Called(len(thoughts), call, name, loose.args_of(args)))


def _main(root: Path, log: str) -> str | None:
    path = PurePosixPath(log)
    if path.parent.name != "events" or not path.name.startswith("event-"):
        return None
    return (path.parent.parent / STATE).as_posix()


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=lambda log: False,
    claims=lambda record: "openhands" in record,
    parse=parse,
    whole=(
        whole.Whole(
            wants=lambda log: log.rpartition("/")[2] == STATE,
            form="json",
            claims=is_state,
            lines=lines,
            look=look,
            glance=glance,
            main=_main,
            leaves_out=lambda names: frozenset(("events",)) if STATE in names else frozenset(),
        ),
    ),
)
