"""What is a failure, what teaches, and what proves a fix."""

import pytest
from msgspec import Raw

from memoryd import db, replay
from memoryd.labels import Label
from memoryd.lessons import causal, codes, fingerprint, store
from memoryd.lessons.failure import Outcome, describe, failed
from memoryd.lessons.fingerprint import of_call
from memoryd.lessons.observe import observe
from memoryd.lessons.pairing import Pairing, summary, told
from memoryd.records import Called, Record, Returned
from tests.support.harnesses import HARNESSES
from tests.support.observing import logs_below, seen_in
from tests.support.teaching import DAY, HOUR, TS2304, World


def fp(text, project="p"):
    return fingerprint.of_error(list(describe("bash", Outcome(False), text).lines), project)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tests failed in 1.23s", "tests failed in 1.24s"),
        ("error TS2304: Cannot find name 'foo'. a.ts(42,7)", "error TS2304: Cannot find name 'foo'. a.ts(43,1)"),
        ("/home/u/x.ts:42:7 error here", "/srv/v/x.ts:9:1 error here"),
        ("error: pid 4711 died at 0xdeadbeef", "error: pid 4712 died at 0xfeedbeef"),
        ("error: '/tmp/tmpab12/x' missing", "error: '/tmp/tmpcd34/x' missing"),
        ("error at 2026-01-02T03:04:05Z", "error at 2026-02-03T04:05:06Z"),
        ("\x1b[31merror\x1b[0m: broken", "error: broken"),
        ("Exit code 1\nerror: broken", "error: broken"),
    ],
)  # fmt: skip
def test_two_runs_of_one_failing_command_agree(one, other):
    assert fp(one) == fp(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("error TS2304: x", "error TS2322: x"),
        ("NameError: name 'foo' is not defined", "NameError: name 'bar' is not defined"),
        ("zsh: command not found: rg", "zsh: command not found: fd"),
        ("FAILED tests/a.py::test_x", "FAILED tests/a.py::test_y"),
    ],
)
def test_two_different_errors_do_not(one, other):
    assert fp(one) != fp(other)


def test_projects_never_collide():
    assert fp("error: x", "p-A") != fp("error: x", "p-AB")


@pytest.mark.parametrize(
    ("outcome", "text", "verdict"),
    [
        (Outcome(None), TS2304, True),
        (Outcome(True, 2), "", True),
        (Outcome(None), "0 errors", False),
        (Outcome(None), "do not panic", False),
        (Outcome(True), "panic: all is well in this prose", False),
        (Outcome(None), "2 failed, 3 passed", True),
        (Outcome(None), "FAILED t.py::x", True),
        (Outcome(None), "panic: runtime error", True),
        (Outcome(None), "Segmentation fault", True),
        (Outcome(None), "error: could not compile `x`", True),
        (Outcome(None), "raise an exception here; except TypeError:", False),
        (Outcome(False), "", True),
    ],
)
def test_the_logs_own_word_decides_and_text_only_where_it_is_silent(outcome, text, verdict):
    assert failed("bash", outcome, text) is verdict


@pytest.mark.parametrize("tool", ["Read", "Grep", "WebFetch", "read"])
def test_u_24_a_file_that_speaks_of_errors_is_no_failure(tool):
    assert not failed(tool, Outcome(None), "Traceback (most recent call last):\nexception")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("zsh: command not found: rg", "rg"),
        ("sh: 1: rg: not found", "rg"),
        ("Error: Cannot do that", None),
        (TS2304, "TS2304"),
        ("error[E0433]: failed to resolve", "E0433"),
        ("Error: listen EADDRINUSE: address already in use :::3000", "EADDRINUSE"),
        ("ModuleNotFoundError: No module named 'x'", "ModuleNotFoundError"),
        ("npm ERR! code ERESOLVE", "ERESOLVE"),
        ("undefined reference to `foo'", "LD_UNDEFINED"),
        ("./x.go:3:2: undefined: foo", "GO_UNDEFINED"),
        ("--- FAIL: TestX (0.00s)", "GO_TEST"),
        ("fatal: not a git repository", "GIT_NO_REPOSITORY"),
        ("E: Unable to locate package x", "APT_NOT_FOUND"),
        ("ERROR: No matching distribution found for x", "PIP_NOT_FOUND"),
        ("bash: ./x: Permission denied", "EACCES"),
        ("curl: (6) Could not resolve host: x", "ENOTFOUND"),
        ("FAILED tests/a.py::test_x - assert 1 == 2", "PYTEST"),
        ("FAIL src/a.test.ts", "JEST"),
    ],
)  # fmt: skip
def test_u_25_u_26_codes_are_of_a_known_class(text, code):
    found = codes.dispatch(text)
    assert (found and found.code) == code
    assert found is None or found.hint


def test_u_01_no_project_the_same_error_twice_is_one_lesson():
    world = World()
    world.fail("s1", project="")
    world.fail("s1", project="")
    assert world.one("count(*)") == 1


def test_u_05_u_06_private_blocks_and_secrets_reach_no_lesson():
    world = World()
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    world.fail("s1", text=f"error TS2304: token={secret} <private>hush</private>")
    held = " ".join(str(value) for rows in world.dump().values() for value in rows)
    assert secret not in held
    assert "hush" not in held


def test_the_stored_line_is_redacted_but_not_normalised_and_says_that_the_tool_fails():
    world = World()
    world.fail("s1")
    assert world.one("first_line") == TS2304
    assert world.one("content").startswith("bash `npm run build` fails with TS2304: ")


def test_the_stored_line_has_200_bytes_at_most():
    world = World()
    world.fail("s1", text="error TS2304: " + "ä" * 500)
    assert len(world.one("first_line").encode()) <= 200


def test_u_27_a_call_reported_twice_is_one_call():
    world = World()
    assert world.fail("s1", n=7) is True
    assert world.fail("s1", n=7) is False
    assert world.all("SELECT count(*) FROM call") == [(1,)]


def test_u_02_a_lesson_older_than_a_day_is_mended_by_a_fix_of_todays_failure():
    world = World()
    world.fail("s1")
    world.later(3 * DAY)
    world.fail("s2")
    world.block("s2")
    world.succeed("s2")
    world.idle("s2")
    assert world.rates().effective == 1


def test_u_03_an_unrelated_success_fixes_nothing():
    world = World()
    world.fail("s1")
    world.succeed("s1", command="ls")
    assert world.all("SELECT count(*) FROM fix") == [(0,)]


def test_a_fix_in_another_session_counts_for_a_day_measured_from_the_failure():
    world = World()
    world.fail("s1")
    world.later(23 * HOUR)
    world.succeed("s2")
    assert world.one("evidence") == 1
    late = World()
    late.fail("s1")
    late.later(25 * HOUR)
    late.succeed("s2")
    assert late.one("evidence") == 0


def test_logs_may_be_read_in_any_order():
    world = World()
    world.later(HOUR)
    world.succeed("s2")
    world.now -= HOUR
    world.fail("s1")
    assert world.one("evidence") == 1


def test_a_lesson_speaks_of_the_first_failure_that_its_readers_may_see():
    world = World()
    world.later(HOUR)
    world.fail("s2", command="make all")
    (name,) = world.all("SELECT id FROM lesson")
    world.now -= HOUR
    world.fail("s0", command="make secret", label=Label(2, False))
    world.fail("s1")
    assert world.all("SELECT id FROM lesson WHERE level = 0") == [name]
    assert world.one("session, call_fingerprint, created_at", "level = 0") == (
        "s1", of_call("bash", {"command": "npm run build"}, "/w/app"), world.now
    )  # fmt: skip
    assert world.one("content", "level = 0").startswith("bash `npm run build` fails with TS2304")
    assert world.all("SELECT count(*) FROM posting WHERE term = 'all'") == [(0,)]


def test_a_fix_from_before_they_told_their_call_is_any_calls():
    world = World()
    world.fail("s1")
    world.succeed("s1")
    assert world.all("SELECT count(*) FROM fix WHERE call IS NOT NULL") == [(1,)]
    world.connection.execute("UPDATE fix SET call = NULL")
    world.later(-2_000)
    world.fail("s2", command="make all")
    world.later(5_000)
    world.succeed("s2", command="make all")
    assert world.one("evidence") == 1


def test_steps_are_edits_and_commands_not_looks():
    world = World()
    world.fail("s1")
    world.call("s1", command="ls -la", ok=True)
    world.call("s1", tool="Read", args={"file_path": "a.ts"}, ok=True)
    world.edit("s1")
    world.call("s1", command="npm install", ok=True)
    world.succeed("s1")
    assert (
        world.one("fix_args")
        == "edit `src/main.ts`; bash `npm install`; bash `npm run build` went well"
    )


def test_a_second_success_mends_nothing_again():
    world = World()
    world.fail("s1")
    world.succeed("s1")
    world.succeed("s1")
    assert world.one("evidence") == 1


def test_changes_tells_doing_from_looking():
    assert not causal.changes("bash", "ls -la")
    assert causal.changes("bash", "sed -i s/a/b/ x")
    assert not causal.changes("Grep", "x")


def test_pairing_labels_a_call_with_the_label_after_its_result():
    pairing = Pairing("log", "s", "/p")
    call = Called(0, "c1", "Bash", {"command": "make"})
    pairing.feed(Record(0, 5, [call]), [(call, Label(0, False))], Label(0, False), 9)
    back = Record(1, 7, [Returned(0, "c1", None, False)])
    (seen,) = pairing.feed(back, [], Label(2, True), 9)
    assert (seen.label, seen.at, seen.summary, seen.n) == (Label(2, True), 7, "make", 0)
    assert pairing.feed(back, [], Label(2, True), 9) == []


def test_a_result_is_read_whatever_its_form():
    assert told(Raw(b'"plain"')) == "plain"
    assert told(Raw(b'[{"type":"text","text":"a"},{"type":"text","text":"b"}]')) == "a\nb"
    assert told(Raw(b'"{\\"output\\":\\"inner\\",\\"metadata\\":{}}"')) == "inner"
    assert told(None) == ""


@pytest.mark.parametrize(
    "text",
    [
        "The user doesn't want to proceed with this.",
        "[Request interrupted by user]",
        "exec command rejected by user",
        "The user rejected permission to use this specific tool call.",
        "[Operation Cancelled] Reason: User did not allow tool call",
        "npm ERR! code E404\n\nCommand aborted\n",
        "",
        "Command exited with code 1",
        "<exited with exit code 2>",
        "Command failed with exit code: 1.",
        "Error: Command failed (exit code: 1)",
        "[lint] $ golangci-lint run ./...\n[lint] ERROR task failed",
    ],
)
def test_what_a_person_stopped_or_what_says_nothing_is_a_failed_call_but_no_lesson(text):
    world = World()
    world.fail("s1", text=text)
    assert world.all("SELECT count(*) FROM call WHERE ok = 0") == [(1,)]
    assert world.one("count(*)") == 0


def test_a_line_that_begins_with_a_place_names_what_is_wrong():
    said = "[lint] ERROR task failed\n\nsrc/a.go:90: 90-109 lines are alike (dupl)\nfunc Test() {\n"
    assert (
        describe("bash", Outcome(False), said).first_line
        == "src/a.go:90: 90-109 lines are alike (dupl)"
    )


def test_a_log_without_times_is_in_the_order_of_its_records(tmp_path):
    kind, error = HARNESSES["swe-agent"], "Traceback (most recent call last):\n{}: x"
    steps = [("python a.py", error.format("TypeError")), ("edit 1:1 first", "done"), ("python a.py", "1"),
             ("edit 2:2 other", "done"), ("python a.py", error.format("ValueError")),
             ("edit 2:2 third", "done"), ("python a.py", "2")]  # fmt: skip
    calls = [kind.call("bash", {"command": said}, "", result) for said, result in steps]
    kind.put(tmp_path, ["task", *(entry for call in calls for entry in call)])
    [log] = logs_below(tmp_path)
    connection = store.memory()
    for seen in seen_in(log, replay.default_rules(tmp_path)):
        with db.transaction(connection):
            observe(connection, seen)
    found = connection.execute("SELECT code, fix_args FROM lesson ORDER BY code")
    assert list(found) == [
        ("TypeError", "bash `edit 1:1 first`; bash `python a.py` went well"),
        ("ValueError", "bash `edit 2:2 third`; bash `python a.py` went well"),
    ]


def test_a_tools_own_error_has_a_code_though_the_tool_is_no_shell_and_no_line_of_it_is_kept():
    found = describe(
        "Edit",
        Outcome(False),
        "<tool_use_error>String to replace not found in file.</tool_use_error>",
    )
    assert (found.code, found.first_line) == ("EDIT_NO_MATCH", "")


def test_a_script_with_windows_line_ends_is_named_so():
    found = describe("bash", Outcome(False), r"setup.sh: line 2: $'\r': command not found")
    assert found.code == "SHELL_CRLF"


def test_how_and_why_a_command_was_run_make_no_other_command_of_it():
    one = {"command": "make test", "description": "Run tests", "timeout": 1000}
    other = {"command": "make  test", "description": "Run them again"}
    assert fingerprint.of_call("Bash", one, "p") == fingerprint.of_call("Bash", other, "p")
    assert fingerprint.of_call("Bash", one, "p") != fingerprint.of_call(
        "Bash", {"command": "make"}, "p"
    )


def test_a_shell_in_a_list_is_what_it_runs():
    args = {"command": ["bash", "-lc", "git status -sb"], "workdir": "/w", "timeout_ms": 1000}
    assert summary("shell", args) == "git status -sb"
    assert not causal.changes("shell", summary("shell", args))


def test_half_a_surrogate_pair_harms_nothing():
    world = World()
    world.fail("s1", command="echo \ud83d", text="error TS2304: \ud83d")
    assert world.one("count(*)") == 1


def test_a_secret_cut_in_half_by_the_look_at_both_ends_is_not_kept():
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    text = "x\n" * 4_000 + f"error: token {secret} " + "y" * (8_192 - 30) + "\nerror: at the end"
    world = World()
    world.fail("s1", text=text)
    held = " ".join(str(value) for rows in world.dump().values() for value in rows)
    assert "GHIJ012345" not in held


def test_a_success_mends_what_its_own_command_failed_with_and_nothing_else():
    world = World()
    world.fail("s1")
    world.fail("s1", text="zsh: command not found: rg", command="rg x")
    world.succeed("s1")
    found = world.all("SELECT code, evidence FROM lesson ORDER BY code")
    assert found == [("TS2304", 1), ("rg", 0)]
