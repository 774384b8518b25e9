"""Where a log of Claude Code comes from, and how it tells of the sub-agents that answered it.

In: a log's path below its folder, fields of its first named record, a result's `toolUseResult`. Out: links and
names. A resumed session repeats its parent's records under their names, from the last compaction on; a fork
says of each whom it copies; a sub-agent's log stands beside its session's, or in a folder named after it.
"""

from pathlib import PurePosixPath

import msgspec

from memoryd.records import Link
from memoryd.sources import base


def origin(log: str) -> Link | None:
    """Return the link of a sub-agent's own log, as its path tells."""
    if "agent" not in log:  # as in nearly every path
        return None
    path = PurePosixPath(log)
    if "subagents" in path.parts[:-1] or path.name.startswith("agent-"):
        return Link("subagent")
    return None


def copied(forked: object) -> str | None:
    """Return the name of the record that this one says it copies."""
    return base.text(forked.get("messageUuid")) if isinstance(forked, dict) else None


def link(
    session: str | None, parent: str | None, forked: object, *, sidechain: bool
) -> Link | None:
    """Return the link that the first record with a name tells: its session, its parent, whom it copies.

    What starts with nothing before it holds its history whole, whoever it was copied from.
    """
    if sidechain:
        return Link("subagent", session=session, uuid=parent)
    if forked is not None:
        named = forked if isinstance(forked, dict) else {}
        source, uuid = base.text(named.get("sessionId")), base.text(named.get("messageUuid"))
        whole = parent is None and isinstance(forked, dict)
        return Link("fork", session=source, uuid=uuid, whole=whole)
    return None if parent is None else Link("resume", uuid=parent)


def agent(log: str, session: str) -> str | None:
    """Return the id in the name of a sub-agent's log."""
    if "agent-" not in log:  # every log of an index is asked, and few have such a name
        return None
    stem = PurePosixPath(log).stem
    return stem.removeprefix("agent-") if stem.startswith("agent-") else None


class _Answer(msgspec.Struct, gc=False):
    """What is read of a call's `toolUseResult`."""

    agent_id: str | None = msgspec.field(name="agentId", default=None)


_answer = msgspec.json.Decoder(_Answer).decode


def agents(more: msgspec.Raw) -> tuple[str, ...]:
    """Return the id of the sub-agent that answered, as `toolUseResult` tells it."""
    try:
        found = _answer(more).agent_id
    except msgspec.DecodeError:
        return ()
    return () if found is None else (found,)


def below(log: str) -> str:
    """Return where the logs of a session's sub-agents lie."""
    return f"{log.removesuffix('.jsonl')}/subagents"
