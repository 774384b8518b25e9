"""`bxctl memory forget`: it shows, asks, and only then forgets."""

import json

import pytest

from memoryd.errors import NotFound

LOG = {
    "source": "claude-code", "session": "s1", "project": "/home/ada/shop", "path": "/logs/a\x1b.jsonl",
    "rows": 12, "whole": True, "held": True, "deleted": False,
}  # fmt: skip
PLAN = {
    "act": "",
    "rows": 12,
    "copies": 1,
    "logs": [LOG],
    "derived": {"lessons": 2},
    "purged": False,
}
DONE = PLAN | {"act": "forget-1", "purged": True}


def answering(daemon, done=DONE):
    daemon.answers["forget"] = lambda **asked: PLAN if asked.get("dry_run") else done


def asked(daemon):
    return [
        {name: value for name, value in args.items() if name != "deadline_ms"}
        for _, args in daemon.asked
    ]


def test_without_an_answer_nothing_is_forgotten(daemon, bxctl):
    answering(daemon)
    ran = bxctl("memory", "forget", "--session", "s1")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert asked(daemon) == [{"dry_run": True, "session": "s1"}]
    assert "12 rows of 1 log would go, 1 copies of vanished logs, 2 lessons" in ran.out
    assert "its file stays, and holds the words" in ran.out
    assert "\x1b" not in ran.out


def test_a_dry_run_shows_and_stops(daemon, bxctl):
    answering(daemon)
    ran = bxctl(
        "memory", "forget", "--session", "s1", "--dry-run", "--yes", "--delete-log", "--json"
    )
    assert ran.code == 0
    assert asked(daemon) == [{"dry_run": True, "session": "s1", "delete_log": True}]
    assert json.loads(ran.out) == {"format": "forgotten", "version": 1, **PLAN}


def test_yes_forgets_at_once_and_tells_how_to_take_it_back(daemon, bxctl):
    answering(daemon)
    ran = bxctl(
        "memory", "forget", "--project", "*pay*", "--before", "2026-01-02T03:04:05Z", "--yes"
    )
    assert ran.code == 0
    assert asked(daemon) == [{"project": "*pay*", "before": "2026-01-02T03:04:05.000Z"}]
    assert "12 rows of 1 log went" in ran.out
    assert "bxctl memory forget --undo forget-1" in ran.err
    assert "still being taken out" not in ran.err


def test_what_is_not_purged_yet_is_said(daemon, bxctl):
    gone = LOG | {"held": False, "deleted": True}
    answering(daemon, DONE | {"purged": False, "logs": [gone]})
    ran = bxctl("memory", "forget", "--id", "a" * 20, "--id", "b" * 20, "--delete-log", "--yes")
    assert asked(daemon) == [{"ids": ["a" * 20, "b" * 20], "delete_log": True}]
    assert "still being taken out" in ran.err
    assert "--undo" not in ran.err
    assert "its file is deleted" in ran.out


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("n\n", 1), ("", 1)])
def test_a_person_is_asked_once_it_was_shown(daemon, bxctl, monkeypatch, answer, code):
    answering(daemon)
    monkeypatch.setattr(
        "sys.stdin", type("Tty", (), {"isatty": lambda _: True, "readline": lambda _: answer})()
    )
    ran = bxctl("memory", "forget", "--session", "s1")
    assert ran.code == code
    assert len(asked(daemon)) == 1 + (code == 0)
    assert ("nothing was forgotten" in ran.err) is (code == 1)


def test_an_act_is_taken_back_by_its_name(daemon, bxctl):
    daemon.answers["forget"] = {"act": "forget-1", "logs": 2, "gone": 1}
    ran = bxctl("memory", "forget", "--undo", "forget-1")
    assert (ran.code, asked(daemon)) == (0, [{"undo": "forget-1"}])
    assert "logs read again: 2" in ran.err
    assert "gone, with what they held: 1" in ran.err
    ran = bxctl("memory", "forget", "--undo", "forget-1", "--json")
    assert json.loads(ran.out)["format"] == "remembered"


def test_a_wish_without_any_bound_is_no_wish(daemon, bxctl):
    ran = bxctl("memory", "forget", "--yes")
    assert ran.code == 2
    assert "--session" in ran.err
    assert daemon.asked == []


def test_where_nothing_fits_that_is_said(daemon, bxctl):
    daemon.answers["forget"] = NotFound("nothing fits", remedy="look")
    ran = bxctl("memory", "forget", "--session", "s9", "--yes")
    assert ran.code == NotFound("x").exit_code
    assert "nothing fits" in ran.err


def test_undo_stands_alone(bxctl, daemon):
    daemon.answers["forget"] = {"act": "forget-1", "logs": 1, "gone": 0}
    for more in (("--dry-run",), ("--delete-log",), ("--session", "s1")):
        ran = bxctl("memory", "forget", "--undo", "forget-1", *more)
        assert ran.code == 2
        assert "alone" in ran.err
    assert daemon.asked == []


def test_where_nothing_is_new_no_undo_is_offered(bxctl, daemon):
    daemon.answers["forget"] = {**PLAN, "act": "", "purged": True}
    ran = bxctl("memory", "forget", "--session", "s1", "--yes")
    assert "memoryd will not read them again" in ran.err
    assert "--undo" not in ran.err
