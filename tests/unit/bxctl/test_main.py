"""Every way a command can end: its exit code, and one line that says why and what to do."""

import json

import pytest

from memoryd import errors

HIT = {
    "id": "bbz4k6c3ah2qkz7yq4mf",
    "kind": "owner",
    "session": "s1",
    "project": "/home/ada/shop",
    "source": "claude-code",
    "ts": "2026-03-07T12:00:00.000Z",
    "tool": None,
    "class": "internal",
    "untrusted": False,
    "score": 1.5,
    "snippet": "the retry backoff",
}
FOUND = {
    "hits": [HIT],
    "label": {"class": "internal", "untrusted": False},
    "cursor": None,
    "capped": False,
}
EXITS = {
    "bad_message": 70,
    "bad_request": 2,
    "unknown_method": 2,
    "not_granted": 77,
    "not_found": 1,
    "conflict": 1,
    "check_failed": 1,
    "pending": 1,
    "too_large": 2,
    "rate": 75,
    "behind": 75,
    "busy": 75,
    "index_busy": 75,
    "timeout": 75,
    "cancelled": 75,
    "unavailable": 69,
    "disk_full": 74,
    "io_error": 74,
    "shutting_down": 75,
    "internal": 70,
}


def test_the_table_of_exit_codes_is_complete():
    assert set(EXITS) == set(errors.BY_CODE)


@pytest.mark.parametrize("code", EXITS)
def test_each_refusal_has_its_exit_code_and_one_line_with_its_remedy(daemon, bxctl, code):
    daemon.answers["recall"] = errors.BY_CODE[code]("it went wrong", remedy="do this")
    ran = bxctl("memory", "search", "retry")
    assert ran.code == EXITS[code]
    assert ran.err == "bxctl: it went wrong; do this\n"
    assert not ran.out


def test_with_json_a_refusal_is_json_on_standard_error(daemon, bxctl):
    daemon.answers["recall"] = errors.TimedOut("too late", remedy="wait")
    ran = bxctl("--json", "memory", "search", "retry")
    assert ran.code == 75
    told = {"code": "timeout", "message": "too late", "remedy": "wait", "exit": 75}
    assert json.loads(ran.err) == {"format": "error", "version": 1, **told}
    assert not ran.out


def test_a_hit_is_0_and_nothing_found_is_1(daemon, bxctl):
    daemon.answers["recall"] = FOUND
    assert bxctl("memory", "search", "retry").code == 0
    daemon.answers["recall"] = FOUND | {"hits": []}
    ran = bxctl("memory", "search", "retry")
    assert ran.code == 1
    assert not ran.out
    assert ran.err == "bxctl: nothing found; try other words, or fewer filters\n"


def test_nothing_found_is_still_an_object_with_json(daemon, bxctl):
    daemon.answers["recall"] = FOUND | {"hits": []}
    ran = bxctl("memory", "search", "retry", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["hits"] == []
    assert not ran.err


def test_ctrl_c_is_130_and_says_so(daemon, bxctl):
    def interrupted(**_):
        raise KeyboardInterrupt

    daemon.answers["recall"] = interrupted
    ran = bxctl("memory", "search", "retry")
    assert ran.code == 130
    assert ran.err == "bxctl: interrupted\n"


def test_a_fault_of_ours_is_one_line_without_what_it_held(daemon, bxctl):
    def broken(**_):
        raise KeyError("stored words")

    daemon.answers["recall"] = broken
    ran = bxctl("memory", "search", "retry")
    assert ran.code == 70
    assert ran.err.count("\n") == 1
    assert "KeyError" in ran.err
    assert "BXCTL_DEBUG=1" in ran.err
    assert "stored words" not in ran.err


def test_bxctl_debug_shows_the_fault(daemon, bxctl):
    def broken(**_):
        raise KeyError("where")

    daemon.answers["recall"] = broken
    with pytest.raises(KeyError, match="where"):
        bxctl("memory", "search", "retry", BXCTL_DEBUG="1")


@pytest.mark.parametrize("error", [MemoryError, RecursionError, UnicodeError])
def test_even_a_strange_fault_is_one_line(daemon, bxctl, error):
    def broken(**_):
        raise error

    daemon.answers["recall"] = broken
    ran = bxctl("memory", "search", "retry")
    assert ran.code == 70
    assert ran.err.count("\n") == 1


USAGE = {
    "unknown command": (["remember"], "there are status, reindex, "),
    "misspelt command": (["memory", "serach", "x"], "did you mean 'search'?"),
    "unknown option": (["memory", "search", "--frm", "x"], "bxctl memory search --help"),
    "misspelt option": (["memory", "search", "--sinc", "3d", "x"], "--since"),
    "bad time": (["memory", "search", "--since", "soon", "x"], "2026-01-31"),
    "empty time": (["memory", "search", "--until", "", "x"], "2026-01-31"),
    "bad kind": (["memory", "search", "--kind", "boss", "x"], "owner, assistant, tool_call"),
    "bad mode": (["memory", "search", "--mode", "any", "x"], "smart, all, phrase"),
    "bad order": (["memory", "search", "--order", "random", "x"], "relevance, newest, oldest"),
    "bad group": (["memory", "search", "--group", "day", "x"], "record, session"),
    "bad trust": (["memory", "search", "--untrusted", "no", "x"], "include, owner-only, exclude"),
    "bad colour": (["--color", "sometimes", "status"], "auto, always, never"),
    "limit of words": (["memory", "search", "--limit", "many", "x"], "from 1 to 100"),
    "limit 0": (["memory", "search", "--limit", "0", "x"], "from 1 to 100"),
    "limit too high": (["memory", "search", "--limit", "101", "x"], "from 1 to 100"),
    "limit endless": (["memory", "search", "--limit", "9" * 5_000, "x"], "from 1 to 100"),
    "option without value": (["memory", "search", "x", "--limit"], "bxctl memory search --help"),
    "flag with a value": (["memory", "search", "x", "--text=yes"], "bxctl memory search --help"),
    "no query": (["memory", "search"], "bxctl memory search --help"),
    "empty query": (["memory", "search", ""], "say what to look for"),
    "blank query": (["memory", "search", " ", "\t"], "say what to look for"),
    "empty filter": (["memory", "search", "--project", "", "x"], "at least one word"),
    "no id": (["memory", "show"], "bxctl memory show --help"),
    "two ids": (["memory", "show", "a", "b"], "bxctl memory show --help"),
    "words to status": (["status", "now"], "bxctl status --help"),
    "unknown socket": (["--socket", "nobody", "memory", "search", "x"], "there are memoryd, agent"),
    "long socket path": (["--socket", "/" + "x" * 120, "status"], "shorter"),
}


@pytest.mark.parametrize("case", USAGE)
def test_bad_usage_is_one_line_with_what_would_be_right(bxctl, case):
    argv, remedy = USAGE[case]
    ran = bxctl(*argv)
    assert ran.code == (78 if case == "long socket path" else 2)
    assert ran.err.startswith("bxctl: ")
    assert ran.err.count("\n") == 1
    assert remedy in ran.err
    assert not ran.out


def test_no_words_at_all_show_the_help_as_a_mistake(bxctl):
    ran = bxctl()
    assert ran.code == 2
    assert "Usage: bxctl" in ran.err
    assert not ran.out


def test_control_characters_of_the_command_line_do_not_reach_the_terminal(bxctl):
    ran = bxctl("memory", "show", "x", "\x1b[2Jy")
    assert ran.code == 2
    assert "\x1b" not in ran.err


def test_the_version_is_that_of_the_package(bxctl):
    from importlib.metadata import version

    ran = bxctl("--version")
    assert (ran.code, ran.out) == (0, f"bxctl {version('memoryd')}\n")
