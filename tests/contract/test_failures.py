"""The observer sees the failures of every harness, as its logs tell them, and learns what was said first.

On real logs each answer's own flag or exit code is held against what the observer says of that call; the walk
that reads the flags knows no adapters.
"""

from collections import Counter

import pytest

from memoryd import replay
from memoryd.lessons.failure import describe, failed
from memoryd.records import Called, Returned
from memoryd.sources import ADAPTERS, answers
from tests.contract.outcomes import OUTCOMES
from tests.contract.walks import NO_SAMPLES
from tests.support.failing import FAILING, UNTOLD
from tests.support.harnesses import HARNESSES
from tests.support.observing import logs_below, records_of, seen_in

SAID = "src/a.ts(3,5): error TS2304: Cannot find name 'foo'."


@pytest.fixture
def rules(tmp_path_factory):
    return replay.default_rules(tmp_path_factory.mktemp("home"))


def only(folder, rules):
    [log] = logs_below(folder)
    return list(seen_in(log, rules))


def test_every_harness_is_here():
    assert set(FAILING) | UNTOLD == set(HARNESSES)


@pytest.mark.parametrize("name", FAILING)
def test_a_shell_that_fails_is_seen_to_fail_and_its_first_line_and_code_are_learned(
    name, tmp_path, rules
):
    kind = HARNESSES[name]
    kind.put(tmp_path, [kind.owner("hello"), *FAILING[name]("make app", SAID)])
    [seen] = only(tmp_path, rules)
    assert failed(seen.tool, seen.outcome, seen.text)
    found = describe(seen.tool, seen.outcome, seen.text)
    assert (found.code, found.first_line, seen.summary) == ("TS2304", SAID, "make app")
    assert found.lines == (SAID,)


@pytest.mark.parametrize("name", FAILING)
def test_the_same_call_that_goes_well_does_not(name, tmp_path, rules):
    kind = HARNESSES[name]
    kind.put(
        tmp_path,
        [kind.owner("hello"), *kind.call("bash", {"command": "make app"}, "c1", "0 errors")],
    )
    [seen] = only(tmp_path, rules)
    assert not failed(seen.tool, seen.outcome, seen.text)


@pytest.mark.parametrize("name", sorted(UNTOLD))
def test_what_nobody_tells_the_outcome_of_is_neither(name, tmp_path, rules):
    kind = HARNESSES[name]
    kind.put(
        tmp_path, [kind.owner("hello"), *kind.call("bash", {"command": "make app"}, "c1", SAID)]
    )
    assert only(tmp_path, rules) == []


@pytest.mark.parametrize(
    ("command", "seen_to_fail"),
    [
        ("cat notes.txt", False),
        ("cd app && git diff", True),
        ("grep -n x a | head -3; git log", False),
        ("python app.py", True),
    ],
)
def test_u_24_a_shell_that_only_shows_what_others_wrote_does_not_fail_by_its_text(
    command, seen_to_fail, tmp_path, rules
):
    kind = HARNESSES["swe-agent"]
    kind.put(tmp_path, ["task", *kind.call("bash", {"command": command}, "c1", SAID)])
    [seen] = only(tmp_path, rules)
    assert failed(seen.tool, seen.outcome, seen.text) is seen_to_fail


@pytest.mark.parametrize(
    ("said", "code", "left"),
    [
        ("Output: a\nExit Code: 3", 3, "a"),
        ("Stdout: a\nb\nStderr: c\nError: (none)\nExit Code: 0\nSignal: (none)", 0, "a\nb\nc"),
        ("Output: a", None, "a"),
        ("a\nExit Code: 3", None, "a\nExit Code: 3"),
        ("Output: (empty)\nExit Code: (none)\nSignal: 9", None, ""),
    ],
)
def test_the_words_around_a_gemini_shells_output(said, code, left):
    found = [{"functionResponse": {"response": {"output": said}}}]
    assert answers.of_gemini("run_shell_command", found) == answers.Answer(code, left)
    assert answers.of_gemini("read_file", found) == answers.Answer(None, said)


def test_what_went_wrong_with_a_gemini_tool_stands_in_the_place_of_its_output():
    found = {"response": {"error": "File not found"}}
    assert answers.of_gemini("read_file", found).said == "File not found"
    assert (
        answers.of_copilot(None, {"message": "Path does not exist"}).said == "Path does not exist"
    )


def flagged(log) -> dict[tuple[int, int], bool]:
    """Return the calls whose answers have a flag, by record and block, and whether each went well."""
    calls: dict[str | None, tuple[int, int]] = {}
    found: dict[tuple[int, int], bool] = {}
    told = OUTCOMES[log.adapter.id](log.path)
    ahead = next(told, None)
    for record in records_of(log):
        for item in record.items:
            if isinstance(item, Called):
                calls[item.call] = (record.n, item.block)
            elif isinstance(item, Returned) and ahead is not None:
                named = "" if item.call is None or item.call.startswith("at ") else item.call
                if named != ahead[0]:
                    continue
                if item.call is not None and (place := calls.pop(item.call, None)) is not None:
                    found[place] = ahead[1]
                ahead = next(told, None)
    assert ahead is None, f"{log.log}: an answer that was not read"
    return found


def test_failures_agree_with_every_logs_own_flags(corpus, rules):
    """Every call of every harness's logs that has a flag or an exit code; how many there are is told too."""
    agreed, failures = Counter[str](), Counter[str]()
    for log in logs_below(corpus / "sessions"):
        expected = flagged(log)
        for seen in seen_in(log, rules):
            if (seen.n, seen.block) in expected:
                well = expected.pop((seen.n, seen.block))
                assert failed(seen.tool, seen.outcome, seen.text) is not well, (log.log, seen.n)
                agreed[log.adapter.id] += 1
                failures[log.adapter.id] += not well
        assert not expected, f"{log.log}: calls that were not seen"
    assert agreed == {
        "claude-code": 206, "codex": 253, "pi": 378, "kimi": 21, "copilot": 6, "gemini": 6, "droid": 4,
        "opencode": 2, "qwen": 1,
    }  # fmt: skip
    assert failures["pi"] == 19


def test_there_is_a_walk_for_every_harness_with_a_sample():
    assert set(OUTCOMES) == set(ADAPTERS) - NO_SAMPLES - {"native"}
