"""Notes through a real daemon and a real `bxctl`: sockets, labels folded by the daemon, answers, an editor."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client
from memoryd.errors import MemorydError
from tests.support.logs import (
    dated,
    native_assistant,
    native_call,
    native_owner,
    native_result,
    native_session,
)
from tests.support.running import BXCTL, Running, running

A = "/memories/internal/a.md"
CONFIG = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
[[socket]]
name = "agent"
clearance = "private"
tools = [
    "recall", "memory_view", "memory_create", "memory_str_replace", "memory_insert", "memory_delete",
    "memory_rename",
]
[[socket]]
name = "reader"
clearance = "internal"
untrusted = "exclude"
tools = ["recall", "memory_view"]
[[socket]]
name = "elsewhere"
clearance = "internal"
projects = ["shop"]
tools = ["memory_view", "memory_create"]
"""


def log(name: str, cls: str, *, untrusted: bool = False) -> list[object]:
    return dated(
        native_session(name),
        native_owner("read it"),
        native_call("Read", {"path": "x"}, "c1"),
        native_result("c1", "…", cls, untrusted=untrusted),
        native_assistant("done"),
    )


LOGS = {
    "clean": log("clean", "internal"),
    "tainted": log("tainted", "internal", untrusted=True),
    "private": log("private", "private"),
}


@pytest.fixture
def here() -> Iterator[Running]:
    with running(LOGS, CONFIG) as made:
        yield made


def caller(name: str, n: int = 5) -> dict[str, object]:
    return {"log": f"{name}.jsonl", "n": n}


def said(memory: Client, method: str, **args: object) -> str:
    """Return the check that refuses a request, or its code; "" when none does."""
    try:
        memory.call(method, **args)
    except MemorydError as error:
        return error.code if error.code == "pending" else str(error.data.get("check", error.code))
    return ""


def ask(here: Running, method: str, **args: object) -> dict[str, Any]:
    """Return one answer of the owner's socket."""
    with here.daemon.client() as owner:
        answer: dict[str, Any] = owner.call(method, **args)
        return answer


def owner_creates(here: Running, path: str = A, text: str = "one\n") -> dict[str, object]:
    return ask(here, "notes.create", path=path, file_text=text, owner=True)


def test_cases_44_45_a_session_acts_under_the_label_that_the_daemon_folds(here):
    owner_creates(here)
    edit = {"path": A, "old_str": "one", "new_str": "two"}
    with here.daemon.client("agent") as agent:
        assert (
            said(agent, "notes.str_replace", **edit) == "label"
        )  # nobody named: the top, untrusted
        assert said(agent, "notes.str_replace", caller=caller("private"), **edit) == "label"
        assert said(agent, "notes.str_replace", caller=caller("tainted"), **edit) == "pending"
        claimed = {"class": "secret", "untrusted": False}
        assert (
            said(agent, "notes.str_replace", caller=caller("clean"), label=claimed, **edit)
            == "label"
        )
        claimed = {"class": "nonsense", "untrusted": False}
        assert (
            said(agent, "notes.str_replace", caller=caller("clean"), label=claimed, **edit)
            == "label"
        )
        claimed = {"class": "public", "untrusted": False}
        assert (
            said(agent, "notes.str_replace", caller=caller("tainted"), label=claimed, **edit)
            == "pending"
        )  # case 44
        assert (
            said(agent, "notes.str_replace", caller=caller("clean", 99), **edit) == "behind"
        )  # case 45
        assert said(agent, "notes.str_replace", caller=caller("none"), **edit) == "behind"
        assert said(agent, "notes.str_replace", caller=caller("clean"), **edit) == ""


def test_case_45_records_written_just_now_are_read_first(here):
    file = here.state / "sessions/clean.jsonl"
    with file.open("ab") as log:
        for record in log_lines("private"):
            log.write(record)
    with here.daemon.client("agent") as agent:
        refused = said(agent, "notes.create", path=A, file_text="x", caller=caller("clean", 7))
    assert refused == "label"


def log_lines(cls: str) -> Iterator[bytes]:
    for record in dated(native_call("Read", {"path": "y"}, "c9"), native_result("c9", "…", cls)):
        yield (record if isinstance(record, bytes) else json.dumps(record).encode()) + b"\n"


def test_the_owner_s_socket_acts_as_the_owner_only_where_a_person_says_so(here):
    with here.daemon.client() as owner:
        assert said(owner, "notes.create", path=A, file_text="x") == "label"
        assert said(owner, "notes.create", path="/memories/secret/a.md", file_text="x") == "pending"
        assert (
            said(owner, "notes.create", path=A, file_text="x", owner=True, caller=caller("clean"))
            == "grant"
        )
        assert said(owner, "notes.create", path=A, file_text="x", owner=True) == ""
    with here.daemon.client("agent") as agent:
        assert said(agent, "notes.delete", path=A, owner=True) == "grant"
        assert said(agent, "notes.delete", path=A, caller=caller("clean"), force=True) == "grant"


@pytest.mark.parametrize("act", ["log", "undo", "verify", "pending", "accept", "reject", "redact"])
def test_no_socket_but_the_owner_s_answers_proposals_or_tells_history(here, act):
    with here.daemon.client("agent") as agent:
        assert said(agent, f"notes.{act}") == "not_granted"


def test_readers_see_what_their_socket_allows(here):
    owner_creates(here)
    owner_creates(here, "/memories/secret/s.md")
    with here.daemon.client("agent") as agent:
        agent.call(
            "notes.create",
            path="/memories/internal/inbox/w.md",
            file_text="web\n",
            caller=caller("tainted"),
        )
        told = agent.call("notes.list")
        assert [note["path"] for note in told["notes"]] == [A, "/memories/internal/inbox/w.md"]
        assert agent.call("notes.view", path=A, caller=caller("clean"))["text"] == "     1\tone"
        assert said(agent, "notes.view", path="/memories/secret/s.md") == "not_found"
    with here.daemon.client("reader") as reader:
        assert [note["path"] for note in reader.call("notes.list")["notes"]] == [A]
        assert said(reader, "notes.view", path="/memories/internal/inbox/w.md") == "not_found"
        assert said(reader, "notes.create", path=A, file_text="") == "not_granted"
    with here.daemon.client("elsewhere") as elsewhere:
        assert said(elsewhere, "notes.list") == "not_found"
        assert (
            said(elsewhere, "notes.create", path=A, file_text="", caller=caller("clean"))
            == "not_found"
        )
    told = [json.loads(line) for line in (here.state / "reads.jsonl").read_text().splitlines()]
    assert {"notes.view", "notes.list"} <= {line["method"] for line in told}


def test_wrong_arguments_are_refused_as_check_1(here):
    with here.daemon.client() as owner:
        assert said(owner, "notes.create", path=A) == "args"
        assert said(owner, "notes.create", path=A, file_text="x", more=1) == "args"
        assert (
            said(owner, "notes.insert", path=A, insert_line="0", insert_text="x", owner=True)
            == "args"
        )


def test_notes_are_found_by_recall_and_gone_when_deleted(here):
    owner_creates(here, text="the zebra crossing\n")
    ask(here, "sync", deadline_ms=120_000)
    [hit] = ask(here, "recall", query="zebra")["hits"]
    assert (hit["kind"], hit["source"], hit["session"], hit["class"]) == (
        "note",
        "notes",
        "internal/a.md",
        "internal",
    )
    assert (hit["untrusted"], hit["external"], hit["pending"]) == (False, False, False)
    edit: dict[str, Any] = {"path": A, "old_str": "zebra", "new_str": "horse"}
    with here.daemon.client("agent") as agent:
        assert said(agent, "notes.str_replace", caller=caller("tainted"), **edit) == "pending"
    [hit] = ask(here, "recall", query="zebra")["hits"]
    assert (hit["untrusted"], hit["external"], hit["pending"]) == (False, False, True)
    assert ask(here, "get", id=hit["id"])["record"]["pending"] is True
    with here.daemon.client("reader") as reader:
        assert reader.call("recall", query="zebra")["hits"][0]["pending"] is False
    outside = here.state / "notes/internal/a.md"
    outside.write_text("the zebra elsewhere\n")
    ask(here, "sync", deadline_ms=120_000)
    [hit] = ask(here, "recall", query="zebra")["hits"]
    assert (hit["untrusted"], hit["external"]) == (True, True)
    ask(here, "notes.accept", path=A)
    ask(here, "notes.delete", path=A, owner=True)
    ask(here, "sync", deadline_ms=120_000)
    assert ask(here, "recall", query="zebra")["hits"] == []


def test_reindex_reads_notes_again(here):
    owner_creates(here)
    ask(here, "sync", deadline_ms=120_000)
    before = here.bxctl("memory", "dump").stdout
    assert '"source":"notes"' in before
    assert here.bxctl("reindex").returncode == 0
    assert here.bxctl("memory", "dump").stdout == before


def test_a_killed_daemon_loses_no_acknowledged_note(here):
    owner_creates(here)
    here.daemon.kill()
    here.daemon.start()
    assert ask(here, "notes.view", path=A)["text"] == "     1\tone"
    assert ask(here, "notes.verify")["faults"] == []


def test_a_damaged_journal_is_a_fault_and_everything_else_is_served(here):
    owner_creates(here)
    here.daemon.stop()
    (here.state / "journal/HEAD").write_bytes(b"")
    here.daemon.start()
    with here.daemon.client() as owner:
        assert said(owner, "notes.delete", path=A, owner=True) in {"io", "external"}
    assert ask(here, "notes.view", path=A)["external"] is True
    told = ask(here, "status")
    assert any("notes" in fault["what"] for fault in told["faults"])
    ran = here.bxctl("memory", "notes", "verify")
    assert (ran.returncode, "HEAD" in ran.stdout) == (1, True)


def notes(here: Running, *argv: str, **more: object) -> subprocess.CompletedProcess[str]:
    return here.bxctl("memory", "notes", *argv, **more)


def test_bxctl_does_it_all(here):
    made = notes(here, "create", "internal/a.md", "--text", "one\ntwo\n", "--reason", "first")
    assert (made.returncode, made.stdout.split()[:2]) == (0, ["created", A])
    assert notes(here, "view", "internal/a.md").stdout == "     1\tone\n     2\ttwo\n"
    assert notes(here, "view", "--raw", "internal/a.md").stdout == "one\ntwo\n"
    assert notes(here, "view", "--lines", "2:", "internal/a.md").stdout == "     2\ttwo\n"
    edited = notes(here, "replace", "internal/a.md", "--old", "two", "--new", "three")
    assert "     2\tthree" in edited.stdout
    assert notes(here, "insert", "internal/a.md", "--line", "0", "--text", "zero").returncode == 0
    assert "internal/a.md" in notes(here, "list").stdout
    changes = [json.loads(line) for line in notes(here, "log", "--json").stdout.splitlines()]
    assert [change["op"] for change in changes] == ["create", "str_replace", "insert"]
    assert notes(here, "undo", changes[-1]["txn"]).returncode == 0
    assert notes(here, "view", "--raw", "internal/a.md").stdout == "one\nthree\n"
    assert notes(here, "rename", "internal/a.md", "private/b.md").returncode == 0
    assert notes(here, "delete", "private/b.md").returncode == 0
    assert notes(here, "redact", changes[0]["after"]).returncode == 2  # nobody can be asked
    assert notes(here, "redact", changes[0]["after"], "--yes").returncode == 0
    gone = notes(here, "list")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert notes(here, "verify").returncode == 0
    first = notes(here, "log").stdout.splitlines()[0]
    assert "create" in first
    assert "first" in first


def test_bxctl_shows_what_waits_and_what_an_answer_would_do(here):
    owner_creates(here)
    with here.daemon.client("agent") as agent:
        for word in ("two\x1b[2J", "three"):
            assert said(
                agent,
                "notes.str_replace",
                path=A,
                old_str="one",
                new_str=word,
                caller=caller("tainted"),
            ) in {"pending", "text"}
    shown = notes(here, "pending", "--color", "always")
    assert "\x1b[1;31m-one" in shown.stdout
    assert "tainted.jsonl" in shown.stdout
    txn = json.loads(notes(here, "pending", "--json").stdout)["txn"]
    asked = notes(here, "accept", txn)
    assert (asked.returncode, "accepting changes" in asked.stderr) == (2, True)
    assert "-one" in asked.stdout
    assert "+three" in asked.stdout
    assert notes(here, "accept", txn, "--yes").returncode == 0
    assert notes(here, "view", "--raw", "internal/a.md").stdout == "three\n"
    (here.state / "notes/internal/a.md").write_text("by hand\n")
    asked = notes(here, "accept", "internal/a.md", "--yes")
    assert (asked.returncode, "a trusted note that agents" in asked.stderr) == (0, True)
    assert notes(here, "pending").returncode == 1


def editor(home: Path, body: str) -> dict[str, str]:
    script = home / "editor.py"
    script.write_text(f"import sys\npath = sys.argv[1]\n{body}\n")
    return {"EDITOR": f"{sys.executable} {script}"}


def test_bxctl_edits_a_copy_through_the_check(here):
    write = 'text = open(path).read(); open(path, "w").write(text + "two\\n")'
    made = notes(here, "edit", "internal/new.md", env=editor(here.home, write))
    assert (made.returncode, "+two" in made.stdout) == (0, True)
    owner_creates(here)
    ran = notes(here, "edit", "internal/a.md", env=editor(here.home, write))
    assert (ran.returncode, "+two" in ran.stdout) == (0, True)
    assert notes(here, "view", "--raw", "internal/a.md").stdout == "one\ntwo\n"
    same = notes(here, "edit", "internal/a.md", env=editor(here.home, "pass"))
    assert (same.returncode, "nothing was changed" in same.stderr) == (0, True)


def test_a_refused_edit_keeps_the_text(here):
    owner_creates(here)
    bad = 'open(path, "w").write("my own words\\r\\n")'
    ran = notes(here, "edit", "internal/a.md", env=editor(here.home, bad))
    assert ran.returncode == 1
    assert "carriage return" in ran.stderr
    kept = Path(ran.stderr.split("your text is kept in ")[1].split()[0])
    assert kept.read_text() == "my own words\n"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert notes(here, "view", "--raw", "internal/a.md").stdout == "one\n"
    assert notes(here, "edit", "internal/a.md", env={"EDITOR": "", "VISUAL": ""}).returncode == 2


def test_two_processes_edit_at_once_and_one_is_told_what_is_there(here):
    start = owner_creates(here, text="start\n")["hash"]
    argv = [
        BXCTL,
        "memory",
        "notes",
        "replace",
        "internal/a.md",
        "--old",
        "start",
        "--expect",
        start,
        "--new",
    ]
    both = [
        subprocess.Popen(
            [*argv, word], env=here.daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for word in ("left", "right")
    ]
    ends = sorted(one.wait(180) for one in both)
    for one in both:
        one.communicate()
    assert ends == [0, 1]


def test_every_file_is_its_owner_s_alone(here):
    owner_creates(here)
    notes(here, "create", "internal/dir/x.md", "--text", "x\n")
    for path in (here.state / "notes", here.state / "journal"):
        for each in (path, *path.rglob("*")):
            assert each.stat().st_mode & 0o077 == 0, each
