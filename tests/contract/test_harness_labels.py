"""Labels where call and result stand together, where results have no call or no id, and where none is kept.

What must be: a call has the label of what came before it, its result raises all that comes after, by the rule for
its tool; a result that nobody can place is worth the worst.
"""

from pathlib import Path

import pytest

from memoryd import config
from memoryd.fold import begin, fold
from memoryd.index.writer import opened
from memoryd.labels import Label
from memoryd.records import Called, Said
from memoryd.rules import Rules
from memoryd.sources import Root, discover
from memoryd.sources.lines import Position, read
from tests.support.harnesses import HARNESSES, OPENCODE, PI, QWEN, Kind

RULES = Rules(config.parse("", Path("/x.toml")).config, state=Path("/s"), home=Path("/home/ada"))
LOW, INTERNAL, OTHERS, WORST = Label(0, False), Label(1, False), Label(1, True), Label(3, True)
TOGETHER = ("cursor", "gemini", "gemini lines", "opencode", "opencode database", "swe-agent")
CALLS = [name for name in HARNESSES if name != "aider"]


def labels(kind: Kind, folder: Path, entries: list[object]) -> list[tuple[str, Label]]:
    """The label of each row: a call's tool, or what was said."""
    kind.put(folder, entries)
    [log] = discover.logs([Root("auto", folder)])
    state, found = begin(RULES), []
    with opened(log) as (handle, _):
        for batch in read(handle, Position(), log.adapter, log=log.log):
            for record in batch.records:
                for item, label in fold(state, record, RULES, trusted=False):
                    name = item.tool if isinstance(item, Called) else item.text
                    found.append((name, label))
    return [one for one in found if one[0] != "task"]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("command", "after"),
    [("ls", INTERNAL), ("curl x", OTHERS), ("cat /home/ada/.netrc", Label(3, False))],
)
def test_a_call_is_labelled_before_and_what_follows_after_its_result(
    name, command, after, tmp_path
):
    kind = HARNESSES[name]
    call = kind.call("bash", {"command": command}, "c1", "result")
    shell = {"cline": "execute_command"}.get(name, "bash")
    found = labels(kind, tmp_path, [kind.owner("before"), *call, kind.assistant("after")])
    assert found == [("before", LOW), (shell, LOW), ("after", after)]


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("cline", "swe-agent")])
def test_the_result_of_a_tool_without_a_rule_is_worth_the_worst(name, tmp_path):
    kind = HARNESSES[name]
    call = kind.call("news", {"command": "x"}, "c1", "result")
    found = labels(kind, tmp_path, [kind.owner("before"), *call, kind.assistant("after")])
    assert found == [("before", LOW), ("news", LOW), ("after", WORST)]


@pytest.mark.parametrize("name", TOGETHER)
def test_two_calls_in_a_row_each_count_for_what_follows(name, tmp_path):
    kind = HARNESSES[name]
    entries = [
        *kind.call("bash", {"command": "ls"}, "c1", "result"),
        *kind.call("bash", {"command": "wget x"}, "c2", "result"),
    ]
    found = labels(kind, tmp_path, [kind.owner("before"), *entries, kind.assistant("after")])
    assert found == [("before", LOW), ("bash", LOW), ("bash", INTERNAL), ("after", OTHERS)]


@pytest.mark.parametrize("name", CALLS)
def test_a_result_before_its_call_or_without_one_is_worth_the_worst(name, tmp_path):
    kind = HARNESSES[name]
    if name in (*TOGETHER, "cline"):
        return  # whose calls and results cannot be apart
    call, result = kind.call("bash", {"command": "ls"}, "c1", "result")
    found = labels(
        kind, tmp_path / "a", [kind.owner("before"), result, call, kind.assistant("after")]
    )
    assert [label for _, label in found] == [LOW, WORST, WORST]
    found = labels(kind, tmp_path / "b", [kind.owner("before"), result, kind.assistant("after")])
    assert [label for _, label in found] == [LOW, WORST]


def test_a_result_without_an_id_is_worth_the_worst(tmp_path):
    result = {"role": "toolResult", "toolName": "read", "content": "x"}
    line = {"type": "message", "id": "e", "parentId": None, "timestamp": "", "message": result}
    found = labels(
        PI, tmp_path / "pi", [*PI.call("read", {}, "c1", "x"), line, PI.assistant("after")]
    )
    assert found[-1] == ("after", WORST)
    part = {"functionResponse": {"name": "read_file", "response": {}}}
    line = {**QWEN.owner(""), "type": "tool_result", "message": {"role": "user", "parts": [part]}}
    found = labels(QWEN, tmp_path / "qwen", [QWEN.owner("a"), line, QWEN.assistant("after")])
    assert found[-1] == ("after", WORST)


def test_a_tool_that_still_runs_raises_nothing_until_it_is_done(tmp_path):
    state = {"status": "running", "input": {"command": "ls"}}
    part = {"type": "tool", "tool": "bash", "callID": "c1", "state": state}
    entries = [OPENCODE.owner("before"), ("assistant", part, {}), OPENCODE.assistant("after")]
    assert labels(OPENCODE, tmp_path, entries)[-1] == ("after", LOW)


@pytest.mark.parametrize("name", ["aider"])
def test_a_prompt_whose_files_are_told_nowhere_raises_as_the_owners_files_do(name, tmp_path):
    kind = HARNESSES[name]
    entries = [
        kind.owner("fix it"),
        kind.assistant("done"),
        kind.owner("see https://x.org"),
        kind.assistant("so"),
    ]
    assert labels(kind, tmp_path, entries) == [
        ("fix it", LOW), ("done", INTERNAL), ("see https://x.org", INTERNAL), ("so", OTHERS)
    ]  # fmt: skip


def test_a_sub_agents_session_starts_as_one_with_an_unknown_past(tmp_path):
    path = OPENCODE.put(tmp_path, [OPENCODE.owner("do this"), OPENCODE.assistant("done")])
    path.write_text(path.read_text().replace('"parentID": null', '"parentID": "s0"'))
    [log] = discover.logs([Root("auto", tmp_path)])
    with opened(log) as (handle, _):
        found = [r for b in read(handle, Position(), log.adapter, log=log.log) for r in b.records]
    said = [item for record in found for item in record.items if isinstance(item, Said)]
    assert [(item.kind.word, item.text) for item in said] == [
        ("assistant", "do this"),
        ("assistant", "done"),
    ]
    assert found[0].about is not None
    assert found[0].about.link is not None
    assert (found[0].about.link.how, found[0].about.link.session) == ("subagent", "s0")
