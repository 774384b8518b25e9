"""`bxctl memory lessons`: what is asked of the daemon, what a person and a program are shown, exit codes."""

import json

import pytest

from memoryd.errors import NotFound

LABEL = {"class": "internal", "untrusted": False}
LESSON = {
    "id": "l1",
    "type": "error",
    "scope": "project",
    "score": 1.0,
    "snippet": "make fails\x1b[31m",
}
DRAFT = {"file": "/w/AGENTS.md", "lines": ["- x"], "diff": "+- x", "hash": "h", "written": False}


def asked(daemon):
    return [(method, args) for method, args in daemon.asked if method.startswith("lessons.")]


def test_query_lists_lessons_and_makes_control_signs_visible(daemon, bxctl):
    daemon.answers["lessons.query"] = {"lessons": [LESSON], "label": LABEL}
    ran = bxctl("memory", "lessons", "query", "--archived", "--limit", "3", "make", "fails")
    assert (ran.code, "make fails" in ran.out, "\x1b" in ran.out) == (0, True, False)
    assert asked(daemon) == [
        ("lessons.query", {"query": "make fails", "limit": 3, "include_archived": True})
    ]


@pytest.mark.parametrize("command", ["query", "recall"])
def test_nothing_found_is_exit_1(daemon, bxctl, command):
    daemon.answers[f"lessons.{command}"] = {"lessons": [], "label": LABEL}
    ran = bxctl("memory", "lessons", command, "--json", "x")
    assert (ran.code, ran.out) == (1, "")


def test_json_is_a_line_a_lesson_with_format_and_version(daemon, bxctl):
    daemon.answers["lessons.recall"] = {"lessons": [LESSON, LESSON], "label": LABEL}
    ran = bxctl("memory", "lessons", "recall", "--json", "--session", "s", "x")
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["format"], one["version"], one["id"]) for one in told] == [("lesson", 1, "l1")] * 2
    assert asked(daemon)[0][1] == {"query": "x", "session": "s"}


def test_save_acts_as_the_owner_where_the_socket_is_the_owners(daemon, bxctl):
    daemon.answers["lessons.save"] = {"id": "l1", "label": LABEL}
    daemon.server["methods"] = ["lessons.import"]
    assert bxctl("memory", "lessons", "save", "--class", "internal", "a", "rule").code == 0
    daemon.server["methods"] = []
    bxctl("memory", "lessons", "save", "a rule")
    assert asked(daemon) == [
        ("lessons.save", {"content": "a rule", "type": "rule", "owner": True, "label": LABEL}),
        ("lessons.save", {"content": "a rule", "type": "rule"}),
    ]


def test_feedback_needs_a_verdict(daemon, bxctl):
    ran = bxctl("memory", "lessons", "feedback", "l1")
    assert (ran.code, "--verdict is needed" in ran.err) == (2, True)


def test_a_hidden_or_absent_lesson_is_exit_1(daemon, bxctl):
    daemon.answers["lessons.get"] = NotFound("no such lesson", remedy="`query` lists them")
    ran = bxctl("memory", "lessons", "get", "l9")
    assert (ran.code, ran.out) == (1, "")


def test_config_sets_and_shows(daemon, bxctl):
    daemon.answers["lessons.config"] = {"settings": {"archive_after_days": "30"}}
    ran = bxctl("memory", "lessons", "config", "--set", "archive_after_days=7")
    assert ran.code == 0
    assert "archive_after_days  30" in ran.out
    assert asked(daemon)[0][1] == {"action": "set", "key": "archive_after_days", "value": "7"}
    assert bxctl("memory", "lessons", "config", "--set", "archive_after_days").code == 2


def test_a_proposal_is_shown_and_written_only_when_it_is_approved(daemon, bxctl):
    daemon.answers["lessons.propose"] = lambda **args: (
        DRAFT | {"written": bool(args.get("approve"))}
    )
    ran = bxctl("memory", "lessons", "propose", "--project", "/w")
    assert (ran.code, "+- x" in ran.out) == (1, True)
    assert bxctl("memory", "lessons", "propose", "--project", "/w", "--yes").code == 0
    assert [args.get("hash") for _, args in asked(daemon)] == [None, None, "h"]
    assert bxctl("memory", "lessons", "propose").code == 2


def test_export_prints_the_bundle_as_it_is(daemon, bxctl):
    bundle = "---\nid: x\n---\n\nbody\n\n"
    daemon.answers["lessons.export"] = {"format": "okf", "bundle": bundle, "lessons": 1}
    ran = bxctl("memory", "lessons", "export")
    assert (ran.code, ran.out) == (0, "---\nid: x\n---\n\nbody\n")


def test_trace_says_why_what_is_left_out(daemon, bxctl):
    daemon.answers["lessons.trace"] = {
        "would_inject": False, "text": "", "cap": 900, "total_tokens": 0, "admitted": [],
        "blocked": [{"id": "l1", "type": "error", "reason": "weak"}],
    }  # fmt: skip
    ran = bxctl("memory", "lessons", "trace", "--compacting", "x")
    assert (ran.code, "it says too little" in ran.out) == (1, True)
    assert asked(daemon)[0][1] == {"query": "x", "tag": "memory"}
