"""Real logs: where their labels rise and to what, worked out by hand and by an independent walk of the JSON.

The expectations were read off the logs themselves, record by record: the first result, the first result of a
command that reaches the network or of a sub-agent, the first key. The walk below knows neither adapters nor
rules; it has the profile's intent in a dozen lines.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memoryd import config
from memoryd.fold import begin, fold
from memoryd.index.writer import opened
from memoryd.labels import Label
from memoryd.records import Brought, Called, Record
from memoryd.rules import Rules
from memoryd.sources import LogFile, Root, discover
from memoryd.sources.lines import Position, read

INTERNAL, PRIVATE, SECRET = 1, 2, 3
NEVER = None


@pytest.fixture(scope="module")
def rules() -> Rules:
    return Rules(
        config.parse("", Path("/x.toml")).config,
        state=Path("/home/ada/.local/state/memoryd"),
        home=Path("/home/ada"),
    )


class Climb(NamedTuple):
    """The records after which a log's label is at least that, and its last label."""

    internal: int | None
    untrusted: int | None
    secret: int | None
    final: Label


CLAUDE = "claude/entireio+cli"
MOON = "codex/MoonLadderStudios+MoonMind/.codex/sessions/2025/11"
NEURO = "codex/Python-AI-Solutions+agentic-neurodata-conversion/.codex/sessions/2025/09"

BY_HAND = {
    # 5 calls Bash with `gh run view`, which 7 answers
    f"{CLAUDE}/0c97beba-bfcb-4f84-9950-e0354bfc808b.jsonl": Climb(
        7, 7, NEVER, Label(INTERNAL, True)
    ),
    # 5 is the output of the owner's /clear; 55 is a sub-agent's report
    f"{CLAUDE}/61cb3ba8-484b-4a21-bf99-34f7dc361170.jsonl": Climb(
        5, 55, NEVER, Label(INTERNAL, True)
    ),
    # 20 answers the sub-agent that 6 started and the owner interrupted
    f"{CLAUDE}/d64b50bb-125b-4b54-867a-e59841e553d8.jsonl": Climb(
        20, 20, NEVER, Label(INTERNAL, True)
    ),
    # 10 is the first file read; all commands stay on the machine
    f"{CLAUDE}/2026-01-28-cc432c40-914a-4c1a-a972-0103199a736a.jsonl": Climb(
        10, NEVER, NEVER, Label(INTERNAL, False)
    ),
    # 10 runs `pwd`; 354 writes a document that speaks of the `gh` command through a shell, 355 answers it
    f"{MOON}/12/rollout-2025-11-12T17-48-11-019a7ae6-1945-7c63-98f2-210adb922af9.jsonl": Climb(
        11, 355, NEVER, Label(INTERNAL, True)
    ),
    f"{MOON}/13/rollout-2025-11-13T18-21-11-019a802a-aab1-7c31-9831-d2510c7a74a2.jsonl": Climb(
        11, NEVER, NEVER, Label(INTERNAL, False)
    ),
    # 45 runs curl in PowerShell
    f"{NEURO}/26/rollout-2025-09-26T17-01-04-019985ca-7ef7-7580-a921-c20ac619f40b.jsonl": Climb(
        10, 46, NEVER, Label(INTERNAL, True)
    ),
    # 3 carries the owner's open editor tabs; 15 asks the web, and 16 answers that it could not
    f"{NEURO}/26/rollout-2025-09-26T19-38-50-0199865a-ee71-7ae3-b232-87583b038e9f.jsonl": Climb(
        3, 16, NEVER, Label(INTERNAL, True)
    ),
    # a fixture: 0 is a side chain, whose parent is nowhere
    "claude/jazzyalex+agent-sessions/Resources/Fixtures/stage0/agents/claude/small.jsonl": Climb(
        0, 0, 0, Label(SECRET, True)
    ),
}


@pytest.fixture(scope="module")
def logs(corpus: Path) -> dict[str, LogFile]:
    """Every log in the corpus whose format is read, whoever's folder it lies in."""
    found = discover.logs([Root("auto", corpus / "sessions")])
    return {log.log: log for log in found}


def records(log: LogFile) -> Iterator[Record]:
    with opened(log) as (handle, _):
        for batch in read(handle, Position(), log.adapter, log=log.log):
            yield from batch.records


def climb(rules: Rules, log: LogFile) -> Climb:
    state = begin(rules)
    first: dict[str, int] = {}
    for record in records(log):
        fold(state, record, rules, trusted=False)
        reached = {
            "internal": state.label.level >= INTERNAL,
            "untrusted": state.label.untrusted,
            "secret": state.label.level >= SECRET,
        }
        for name, is_reached in reached.items():
            if is_reached:
                first.setdefault(name, record.n)
    return Climb(*(first.get(name) for name in Climb._fields[:3]), state.label)


@pytest.mark.parametrize("log", BY_HAND)
def test_a_real_log_climbs_where_it_was_read_to_climb(
    logs: dict[str, LogFile], rules: Rules, log: str
) -> None:
    assert climb(rules, logs[log]) == BY_HAND[log]


# ---------------------------------------------------------------- the independent walk

NETWORK = re.compile(
    r"\b(curl|wget|gh|ssh|scp|nc|npx|uvx?|apt|apt-get|git\s+(clone|pull|fetch)|pip3?\s+(install|download)"
    r"|npm\s+(i|install|ci)|cargo\s+(add|install)|docker\s+pull)\b|https?://"
)
SHELLS = {"Bash", "bash", "shell", "shell_command", "exec_command", "write_stdin"}
OTHERS = {"Task", "Agent"}


def objects(path: Path) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    for line in path.read_text("utf-8").split("\n"):
        rest = line.strip()
        while rest:
            found, end = decoder.raw_decode(rest)
            yield found
            rest = rest[end:].strip()


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def others_words(tool: str, args: object) -> bool:
    return tool in OTHERS or tool.startswith("mcp__") or (
        tool in SHELLS and any(NETWORK.search(text) for text in strings(args))
    )  # fmt: skip


def walk_claude(path: Path) -> Climb:
    calls: dict[str, bool] = {}
    internal: list[int] = []
    untrusted: list[int] = []
    for n, record in enumerate(objects(path)):
        message = record.get("message") or {}
        content = message.get("content", "") if isinstance(message, dict) else ""
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_use":
                calls[block["id"]] = others_words(block["name"], block["input"])
            elif block["type"] == "tool_result":
                internal.append(n)
                untrusted += [n] if calls[block["tool_use_id"]] else []
            elif record["type"] == "user" and block["type"] == "text":
                text = block["text"].lstrip()
                if text.startswith("<task-notification>"):
                    internal.append(n)
                    untrusted.append(n)
                elif text.startswith(("<local-command-stdout>", "<bash-stdout>", "<ide_")) or (
                    record.get("isMeta")
                    and not text.startswith(("<local-command-caveat>", "Caveat:"))
                ):
                    internal.append(n)
            elif block["type"] in ("image", "document"):
                internal.append(n)
        if record.get("subtype") == "stop_hook_summary" and (
            record.get("hasOutput") or record.get("hookErrors")
        ):
            internal.append(n)
    return ended(internal, untrusted)


def walk_codex(path: Path) -> Climb:
    calls: dict[str, bool] = {}
    internal: list[int] = []
    untrusted: list[int] = []
    for n, record in enumerate(objects(path)):
        item = record["payload"]
        kind = item.get("type")
        if kind == "function_call":
            calls[item["call_id"]] = others_words(item["name"], json.loads(item["arguments"]))
        elif kind == "custom_tool_call":
            calls[item["call_id"]] = False
        elif kind in ("function_call_output", "custom_tool_call_output"):
            internal.append(n)
            untrusted += [n] if calls[item["call_id"]] else []
        elif kind == "message" and item["role"] == "user":
            text = item["content"][0]["text"].lstrip()
            setup = text.partition("# Context from my IDE setup:")[2].partition("## My request")[0]
            internal += [n] if setup.strip() else []
    return ended(internal, untrusted)


def ended(internal: list[int], untrusted: list[int]) -> Climb:
    final = Label(INTERNAL if internal else 0, bool(untrusted))
    return Climb(min(internal, default=None), min(untrusted, default=None), NEVER, final)


WALKS = {
    "claude/entireio+cli/": walk_claude,
    "_series/": walk_claude,
    MOON: walk_codex,
    NEURO: walk_codex,
}


@pytest.mark.parametrize("folder", WALKS)
def test_every_real_log_climbs_as_an_independent_walk_of_its_json_says(
    logs: dict[str, LogFile], rules: Rules, folder: str
) -> None:
    real = {name: log for name, log in logs.items() if name.startswith(folder)}
    assert len(real) >= 3
    found = {name: climb(rules, log) for name, log in real.items()}
    assert found == {name: WALKS[folder](log.path) for name, log in real.items()}


# ---------------------------------------------------------------- what falls to no rule

TO_NO_RULE = {
    # invented by fixtures: a tool that fails, a name cut out, a shell command and a chat's function as tools
    ("tool", "FailingTool"),
    ("tool", "[trimmed for fixture]"),
    ("tool", "git"),
    ("tool", "translate"),
    # of OpenClaw's extensions, each known to its owner alone
    ("tool", "diagnostic_tool"),
    ("tool", "run_terminal"),
    ("tool", "shell_exec"),
}
SPOILT = ("record:", "block:")
"""Records and blocks that no adapter knows are named by these, and meant to fall to no rule."""


def test_every_name_in_real_logs_that_falls_to_no_rule_is_listed(
    logs: dict[str, LogFile], rules: Rules
) -> None:
    found: set[tuple[str, str]] = set()
    for log in logs.values():
        for item in (item for record in records(log) for item in record.items):
            if isinstance(item, Called) and item.tool and not rules.known(item.tool):
                found.add(("tool", item.tool))
            elif isinstance(item, Brought) and not rules.known(item.name, brought=True):
                found.add(("brought", item.name))
    assert {(kind, name) for kind, name in found if not name.startswith(SPOILT)} == TO_NO_RULE


@pytest.mark.parametrize("source", ["claude-code", "codex", "pi", "kimi", "gemini", "swe-agent"])
def test_nine_tenths_of_the_rows_are_within_private_under_coding(
    logs: dict[str, LogFile], rules: Rules, source: str
) -> None:
    labels: list[Label] = []
    for log in (log for log in logs.values() if log.adapter.id == source):
        state = begin(rules)
        for record in records(log):
            labels += [label for _, label in fold(state, record, rules, trusted=False)]
    assert len(labels) > 20
    assert sum(label.level <= PRIVATE for label in labels) >= 0.9 * len(labels)
