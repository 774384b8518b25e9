"""Families of logs that refer to each other, made by hand: forks, resumed sessions, sub-agents, compaction.

In: nothing, or the lines of one real log. Out: file name to the bytes of a log, all below one folder of logs
(names that start with ``native/`` belong below the state's own `sessions`). Real families are few in what can
be had: each of these is MADE, in the shapes that the harnesses write, and says so in its words or its name.
"""

import json
import uuid
from pathlib import Path

from tests.support.logs import (
    Line,
    claude_assistant,
    claude_call,
    claude_result,
    claude_summary,
    claude_user,
    codex_call,
    codex_meta,
    codex_result,
    codex_user,
    dated,
    encoded,
    native_assistant,
    native_call,
    native_owner,
    native_result,
    native_session,
)

Family = dict[str, bytes]


def secret(call: str) -> list[Line]:
    """Return a call that reads a key, and its result."""
    return [
        claude_call("Read", {"file_path": "/home/ada/.ssh/id_rsa"}, call),
        claude_result(call, "made"),
    ]


def web(call: str) -> list[Line]:
    """Return a call that fetches a page, and its result."""
    return [
        claude_call("WebFetch", {"url": "http://made.example"}, call),
        claude_result(call, "made"),
    ]


def task(call: str, *agents: str, tool: str = "Task") -> list[Line]:
    """Return a call of a sub-agent, and its answer, which names it."""
    told = {"status": "completed", "content": []}
    answers = [
        claude_result(call, "made") | {"toolUseResult": {**told, "agentId": a}} for a in agents
    ]
    return [claude_call(tool, {"prompt": "made"}, call), *answers]


def of(session: str, *records: Line, start: int = 0, **more: object) -> list[Line]:
    """Return records of one session, named and dated; the names are the session's own."""
    return [
        record for record in dated(*({**r, "sessionId": session, **more} for r in records), start=start)
        if isinstance(record, dict)
    ]  # fmt: skip


def agent(session: str, name: str, *records: Line) -> list[Line]:
    """Return a sub-agent's own log."""
    prompt = claude_user(f"made prompt for {name}")
    return of(session, prompt, *records, isSidechain=True, agentId=name)


def copied(records: list[Line], session: str) -> list[Line]:
    """Return a copy of records as a resumed session writes it: the same names, another session."""
    return [{**record, "sessionId": session} for record in records]


def forked(records: list[Line], session: str, *, rename: bool) -> list[Line]:
    """Return a copy of records as a fork writes it: each says what it copies, under its name or a new one."""
    names = {r["uuid"]: str(uuid.uuid5(uuid.NAMESPACE_URL, session + r["uuid"])) if rename else r["uuid"]
             for r in records}  # fmt: skip
    return [
        {
            **record,
            "sessionId": session,
            "uuid": names[record["uuid"]],
            "parentUuid": names.get(record["parentUuid"]),
            "forkedFrom": {"sessionId": record["sessionId"], "messageUuid": record["uuid"]},
        }
        for record in records
    ]


def after(record: Line, *records: Line, session: str, start: int = 50) -> list[Line]:
    """Return records that go on behind one, in the same file or in another."""
    found = of(session, *records, start=start)
    found[0]["parentUuid"] = record["uuid"]
    return found


def sub_agents() -> Family:
    """Return a session with a sub-agent that reads a key, one that reads the web, and one inside the other."""
    main = of("s1", claude_user("made: start"), *task("k1", "aa"), claude_assistant("after the key"),
              *task("k2", "bb"), claude_assistant("after both"),
              claude_call("Task", {"prompt": "never answered"}, "k3"), claude_user("made: end"))  # fmt: skip
    inner = agent("s1", "cc", *secret("q1"), claude_assistant("inner"))
    return {
        "-p/s1.jsonl": encoded(*main),
        "-p/s1/subagents/agent-aa.jsonl": encoded(
            *agent("s1", "aa", *secret("q"), claude_assistant("key"))
        ),
        "-p/s1/subagents/agent-bb.jsonl": encoded(
            *agent("s1", "bb", *web("q"), *task("n1", "cc"), claude_assistant("web"))
        ),
        "-p/s1/subagents/agent-cc.jsonl": encoded(*inner),
        "-p/s1/subagents/agent-dd.jsonl": encoded(
            *agent("s1", "dd", claude_assistant("told by nobody"))
        ),
    }


def resumed() -> Family:
    """Return a session, copies of it that went on, and one that went on without its history."""
    first = of(
        "s1", claude_user("made: one"), *web("k1"), claude_assistant("two"), claude_user("three")
    )
    more = after(first[-1], *secret("k2"), claude_assistant("four"), session="s1", start=20)
    copy = [*copied(first, "s2"), *after(first[-1], claude_user("five"), session="s2")]
    fork = [*forked(first[:4], "s3", rename=True), *of("s3", claude_user("six"), start=60)]
    kept = [*forked(first[:3], "s4", rename=False), *of("s4", claude_user("seven"), start=70)]
    again = [*forked(fork, "s5", rename=True), *of("s5", claude_user("eight"), start=80)]
    return {
        "-p/s1.jsonl": encoded(*first, *more),
        "-p/s2.jsonl": encoded(*copy),
        "-p/s3.jsonl": encoded(*fork),
        "-p/s4.jsonl": encoded(*kept),
        "-p/s5.jsonl": encoded(*again),
        "-p/s6.jsonl": encoded(*after(more[-1], claude_user("nine"), session="s6")),
        "-p/s7.jsonl": encoded(*after(first[1], claude_user("ten"), session="s7")),
    }


def compacted() -> Family:
    """Return a session that was compacted, and one that was resumed from the compaction on."""
    first = of("s1", claude_user("made: long talk"), *secret("k1"), claude_assistant("much"))
    boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
                "sessionId": "s1", "cwd": "/home/ada/shop", "isSidechain": False, "parentUuid": None,
                "logicalParentUuid": first[-1]["uuid"]}  # fmt: skip
    second = of("s1", boundary, claude_summary("made: the summary"), claude_user("on"), start=20)
    tail = [*copied(second, "s2"), *after(second[-1], claude_user("elsewhere"), session="s2")]
    return {
        "-p/s1.jsonl": encoded(
            *first, *second, *of("s1", *web("k2"), claude_user("end"), start=40)
        ),
        "-p/s2.jsonl": encoded(*tail),
    }


C = [f"{n:08x}-0000-4000-8000-000000000000" for n in range(8)]


def codex() -> Family:
    """Return a thread, forks with and without its history, and threads that it spawned."""
    key = [
        codex_call("shell", {"command": ["cat", "/home/ada/.ssh/id_rsa"]}, "k1"),
        codex_result("k1", "made"),
    ]
    talk = [codex_user("made: begin"), *key, codex_user("on")]
    spawn = [codex_call("spawn_agent", {"message": "made"}, "k2"),
             codex_result("k2", "x") | {}, codex_user("spawned"),
             codex_call("wait", {"ids": [C[3]]}, "k3"), codex_result("k3", "made"), codex_user("waited")]  # fmt: skip
    spawn[1]["payload"]["output"] = json.dumps({"agent_id": C[3]})
    thread = {"subagent": {"thread_spawn": {"parent_thread_id": C[4], "depth": 1}}}
    lines = {
        "c0": [codex_meta(C[0]), *talk],
        "c1": [
            codex_meta(C[1], forked_from_id=C[0]),
            codex_meta(C[0]),
            *talk[:1],
            codex_user("fork"),
        ],
        "c2": [codex_meta(C[2], forked_from_id=C[0]), codex_user("fork without")],
        "c4": [codex_meta(C[4]), codex_user("made: parent"), *spawn],
        "c3": [codex_meta(C[3], source=thread), codex_user("prompt"), *key, codex_user("child")],
        "c5": [codex_meta(C[5], source=thread), codex_user("another, of no name")],
        "c6": [codex_meta(C[6], parent_thread_id=C[7]), codex_user("orphan")],
    }
    return {f"2026/rollout-{name}.jsonl": encoded(*dated(*found)) for name, found in lines.items()}


def native() -> Family:
    """Return native logs with parents: a chain, one beyond its parent's end, a missing one, a circle."""

    def log(session: str, parent: object, *records: Line) -> bytes:
        more = {} if parent is None else {"parent": parent}
        return encoded(*dated(native_session(session, **more), *records))

    got = [
        native_call("Look", {}, "c1"),
        native_result("c1", "made", "private"),
        native_assistant("got"),
    ]
    web_ = [native_call("Web", {}, "c2"), native_result("c2", "made", "public", untrusted=True)]
    return {
        "native/a.jsonl": log("a", None, native_owner("made"), *got, *web_, native_owner("end")),
        "native/b.jsonl": log(
            "b", {"log": "a.jsonl", "n": 3}, native_owner("after the private one"), *web_
        ),
        "native/c.jsonl": log("c", {"log": "b.jsonl", "n": 3}, native_owner("after both")),
        "native/d.jsonl": log("d", {"log": "a.jsonl", "n": 99}, native_owner("beyond")),
        "native/e.jsonl": log("e", {"log": "nowhere.jsonl", "n": 0}, native_owner("missing")),
        "native/f.jsonl": log("f", {"log": "g.jsonl", "n": 1}, native_owner("forged one")),
        "native/g.jsonl": log("g", {"log": "f.jsonl", "n": 1}, native_owner("forged two")),
        "native/h.jsonl": log("h", {"log": "a.jsonl", "n": 1}, native_owner("before")),
    }


FAMILIES = {f.__name__: f for f in (sub_agents, resumed, compacted, codex, native)}


def from_real(lines: list[bytes]) -> Family:
    """Return a family MADE out of one real Claude Code log: a fork, a resumed copy, a sub-agent's log.

    Its records are real; that they stand in several logs is not.
    """
    records = [json.loads(line) for line in lines]
    named = [n for n, record in enumerate(records) if record.get("uuid")]
    assert named, "a log of Claude Code names its records"
    half, third = named[len(named) // 2], named[len(named) // 3]
    session = records[named[0]].get("sessionId", "s")
    fork = [{**r, "sessionId": "made-fork", **({"forkedFrom": {"sessionId": session, "messageUuid": r["uuid"]}}
             if r.get("uuid") else {})} for r in records[:half]]  # fmt: skip
    resumed_ = [{**r, "sessionId": "made-resumed"} for r in records[third:]]
    side = [{**r, "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, r["uuid"])), "isSidechain": True, "agentId": "made"}
            for r in records if r.get("uuid")]  # fmt: skip
    return {
        f"-real/{session}.jsonl": b"".join(lines),
        "-real/made-fork.jsonl": encoded(*fork),
        "-real/made-resumed.jsonl": encoded(*resumed_),
        f"-real/{session}/subagents/agent-made.jsonl": encoded(*side[: len(side) // 2]),
    }


def put(logs: Path, sessions: Path, name: str, content: bytes) -> Path:
    """Write, or let grow, one file of a family, and return its path."""
    path = sessions / name.removeprefix("native/") if name.startswith("native/") else logs / name
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as file:
        file.write(content)
    path.chmod(0o600)
    return path
