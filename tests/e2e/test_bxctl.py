"""Real `bxctl` against a real daemon: what is printed, where, and with which exit code."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.logs import (
    dated,
    native_assistant,
    native_call,
    native_owner,
    native_result,
    native_session,
)
from tests.support.running import BXCTL, Running, running

HOSTILE = "hostile \x1b[2J\x1b]0;owned\x07 \x9b31m \u202eevil\u202c \x7f\x00 end"
LOGS = {
    "shop": dated(
        native_session("shop"),
        native_owner("cap the retry backoff at thirty seconds"),
        native_call("Bash", {"command": "grep -rn backoff src/retry.py"}, "c1"),
        native_result("c1", "a result that nobody indexes", "internal"),
        native_assistant("the retry backoff in src/retry.py now ends at thirty seconds"),
        native_call("WebFetch", {"url": "https://example.net/retry"}, "c2"),
        native_result("c2", "words from outside", "public", untrusted=True),
        native_assistant("the page says retry with jitter"),
    ),
    "vault": dated(
        native_session("vault", "/home/ada/vault"),
        native_call("Read", {"path": "ledger"}, "c1"),
        native_result("c1", "…", "private"),
        native_assistant("the private ledger mentions retry too"),
        native_call("Read", {"path": "keys"}, "c2"),
        native_result("c2", "…", "secret"),
        native_assistant("a secret zanzibar retry that no index holds"),
    ),
    "hostile": dated(native_session("hostile\x1b[31m", "/tmp/\x1b[5mx"), native_owner(HOSTILE)),
}


@pytest.fixture(scope="module")
def here() -> Iterator[Running]:
    """A daemon that has read `LOGS`."""
    with running(LOGS) as made:
        yield made


def answer(here: Running, *argv: str) -> dict[str, object]:
    ran = here.bxctl(*argv, "--json")
    assert ran.returncode in {0, 1}, ran.stderr
    return json.loads(ran.stdout)


def test_a_search_finds_labelled_hits(here):
    told = answer(here, "memory", "search", "backoff")
    hits = told["hits"]
    assert {hit["kind"] for hit in hits} == {"owner", "tool_call", "assistant"}
    assert {(hit["kind"], hit["class"]) for hit in hits} == {
        ("owner", "public"), ("tool_call", "public"), ("assistant", "internal")
    }  # fmt: skip
    assert told["label"] == {"class": "internal", "untrusted": False}
    assert (told["format"], told["version"]) == ("search", 1)


def test_a_person_s_search_has_hits_on_stdout_and_talk_on_stderr(here):
    ran = here.bxctl("memory", "search", "backoff", "--kind", "owner")
    assert ran.returncode == 0
    heading, text, place = ran.stdout.splitlines()
    assert heading.startswith("owner  public  ")
    assert text == "  cap the retry backoff at thirty seconds"
    assert re.fullmatch(r"  [a-z2-7]{20} · native · shop", place)
    assert ran.stderr == "bxctl: 1 hit, public\n"


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--kind", "owner"], {"shop"}),
        (["--session", "vault"], {"vault"}),
        (["--project", "vault"], {"vault"}),
        (["--source", "codex"], set()),
        (["--tool", "WebF*"], {"shop"}),
        (["--max-class", "public"], {"shop"}),
        (["--since", "2026-01-03"], set()),
        (["--until", "2026-01-02T23:59:59Z"], {"shop", "vault"}),
        (["--since", "2026-01-02T00:00:00Z", "--group", "session"], {"shop", "vault"}),
    ],
)
def test_filters_narrow(here, filters, found):
    ran = here.bxctl("memory", "search", "retry", "--json", "--limit", "50", *filters)
    assert ran.returncode == (0 if found else 1)
    assert {hit["session"] for hit in json.loads(ran.stdout)["hits"]} == found


def test_untrusted_is_marked_or_left_out(here):
    assert "internal untrusted" in here.bxctl("memory", "search", "jitter").stdout
    assert here.bxctl("memory", "search", "jitter", "--untrusted", "exclude").returncode == 1


def test_pages_follow_one_another(here):
    first = answer(here, "memory", "search", "retry", "--limit", "2")
    second = answer(here, "memory", "search", "retry", "--limit", "2", "--cursor", first["cursor"])
    ids = [hit["id"] for hit in (*first["hits"], *second["hits"])]
    assert len(set(ids)) == 4


def test_a_record_is_shown_with_its_neighbours(here):
    (hit,) = answer(here, "memory", "search", "jitter")["hits"]
    told = answer(here, "memory", "show", hit["id"], "--before", "2")
    assert told["record"]["text"] == "the page says retry with jitter"
    assert [row["kind"] for row in told["before"]] == ["assistant", "tool_call"]
    ran = here.bxctl("memory", "show", hit["id"], "--before", "1", "--after", "1")
    assert "▸ assistant  internal untrusted" in ran.stdout


def test_listings_count_visible_rows_only(here):
    sessions = [
        json.loads(line) for line in here.bxctl("memory", "sessions", "--json").stdout.splitlines()
    ]
    rows = {line["session"]: line["rows"] for line in sessions}
    assert rows == {"shop": 5, "vault": 3, "hostile\x1b[31m": 1}
    agents = here.bxctl("--socket", "agent", "memory", "sessions", "--json").stdout.splitlines()
    assert {json.loads(line)["session"]: json.loads(line)["rows"] for line in agents}["vault"] == 1
    projects = here.bxctl("memory", "projects")
    assert "/home/ada/shop" in projects.stdout


def test_stats_add_up(here):
    told = answer(here, "memory", "stats")
    assert told["rows"] == 9
    assert told["sessions"] == 3
    assert sum(entry["rows"] for entry in told["classes"]) == 9
    assert sum(entry["rows"] for entry in told["kinds"]) == 9
    assert told["sources"] == [{"source": "native", "sessions": 3, "rows": 9}]
    assert told["untrusted"] == 1
    assert "9 rows of 3 sessions" in here.bxctl("memory", "stats").stdout


def test_a_dump_is_canonical_sorted_and_complete(here):
    ran = here.bxctl("memory", "dump")
    lines = ran.stdout.splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == 9
    keys = [
        "block",
        "class",
        "kind",
        "log",
        "n",
        "session",
        "source",
        "text",
        "tool",
        "ts",
        "untrusted",
    ]
    for line, record in zip(lines, records, strict=True):
        assert list(record) == keys
        assert line == json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    places = [(record["source"], record["log"], record["n"], record["block"]) for record in records]
    assert places == sorted(places)
    assert "zanzibar" not in ran.stdout
    assert "a result that nobody indexes" not in ran.stdout


def test_the_status_says_what_is_held_and_left_out(here):
    told = answer(here, "status")
    assert told["ready"] is True
    assert told["rows"] == 9
    assert told["behind"] == dict.fromkeys(("logs", "bytes", "held"), 0) | dict.fromkeys(
        ("bytes_per_s", "remaining_s")
    )
    assert sum(source["left_out"] for source in told["sources"]) == 1
    ran = here.bxctl("status")
    assert ran.returncode == 0
    assert "is ready" in ran.stdout
    assert str(here.state) in ran.stdout


ALL_COMMANDS = [
    ["memory", "search", "hostile"],
    ["memory", "search", "hostile", "--text"],
    ["memory", "search", "hostile", "--json"],
    ["memory", "sessions"],
    ["memory", "sessions", "--json"],
    ["memory", "projects"],
    ["memory", "projects", "--json"],
    ["memory", "stats"],
    ["status"],
]


@pytest.mark.parametrize("argv", ALL_COMMANDS, ids=" ".join)
def test_stored_control_characters_never_leave(here, argv):
    ran = here.bxctl(*argv)
    assert ran.returncode == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ran.stdout + ran.stderr)


@pytest.mark.parametrize(
    "argv",
    [["memory", "search", "hostile"], ["memory", "sessions"], ["memory", "dump"]],
    ids=" ".join,
)
def test_on_a_terminal_only_our_own_escapes_appear(here, argv):
    shown = on_a_terminal(here, *argv)
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "hostile" in plain
    assert "\x1b" not in plain
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert "\x1b[5m" not in shown
    assert "\x1b[2J" not in shown


def on_a_terminal(here: Running, *argv: str, **env: str) -> str:
    """Return what a command prints when its standard output is a terminal of 80 columns."""
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [BXCTL, *argv],
            env={**here.daemon.env, "TERM": "xterm-256color", "COLUMNS": "80", **env},
            stdout=follower,
            stderr=subprocess.DEVNULL,
        )
        os.close(follower)
        shown = b""
        try:
            while chunk := screen.read(1 << 16):
                shown += chunk
        except OSError:  # EIO: the other end is closed
            pass
        assert process.wait(180) == 0
    return shown.decode().replace("\r\n", "\n")


HEAVY = {"apsw", "click", "json", "msgspec", "rich", "structlog", "trio"}


def test_a_plain_search_loads_nothing_heavy(here):
    code = (
        "import sys; from bxctl.main import run; import os;"
        "run(['memory', 'search', 'retry', '--since=2026-01-01'], os.environ);"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=here.daemon.env,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "bxctl.memory" in loaded
    assert loaded & HEAVY == set()


def test_colour_is_for_terminals(here):
    search = ["memory", "search", "backoff"]
    assert "\x1b[" in on_a_terminal(here, *search)
    assert "\x1b[" not in on_a_terminal(here, *search, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal(here, *search, TERM="dumb")
    assert "\x1b[" not in on_a_terminal(here, *search, "--color", "never")
    assert "\x1b[" not in here.bxctl(*search).stdout
    assert "\x1b[" in here.bxctl(*search, "--color", "always").stdout
    assert "\x1b[" not in here.bxctl(*search, "--color", "always", "--json").stdout


SENSIBLE = [
    "kebab-case", "a:b", '"an open quote', "*", "NEAR(a b)", "foo(", "AND", "OR NOT", "^x", "retry*",
    "-retry", "{a b}: c", "col : x", "🦔", "🦔 retry", "'", "\\", "%", "(((((", "a" * 2_000, "retry " * 300,
    "e\u0301", "漢字", "\x1b[2J", "-- DROP TABLE", "' OR 1=1 --", "retry AND NOT backoff", "a.b.c",
    "src/main.ts", "KeyError: 'x'", "\udcff",
]  # fmt: skip


@pytest.mark.parametrize("query", SENSIBLE, ids=range(len(SENSIBLE)))
def test_every_query_is_answered_sensibly(here, query):
    ran = here.bxctl("memory", "search", "--", query)
    assert ran.returncode in {0, 1, 2}
    if ran.returncode:
        assert ran.stderr.startswith("bxctl: ")
        assert ran.stderr.count("\n") == 1
        assert not ran.stdout


REFUSED = {
    "a query of 5 KB": (["memory", "search", "x" * 5_120], 2),
    "a query without words": (["memory", "search", "…"], 2),
    "an unknown class": (["memory", "search", "x", "--max-class", "top"], 2),
    "an unknown id": (["memory", "show", "a" * 20], 1),
    "an id of another form": (["memory", "show", "1; DROP TABLE"], 1),
    "an id of 5 KB": (["memory", "show", "x" * 5_120], 2),
    "a forged cursor": (["memory", "search", "x", "--cursor", "abc"], 1),
    "a session of 5 KB": (["memory", "search", "x", "--session", "x" * 5_120], 2),
    "dump through an agent's socket": (["--socket", "agent", "memory", "dump"], 77),
    "reindex through an agent's socket": (["--socket", "agent", "reindex"], 77),
    "sync through an agent's socket": (["--socket", "agent", "memory", "sync"], 2),
    "an unknown socket": (["--socket", "nobody", "status"], 2),
    "a socket nobody listens at": (["--socket", "/nowhere/x.sock", "status"], 69),
    "the same, for a search": (["--socket", "/nowhere/x.sock", "memory", "search", "x"], 69),
}


@pytest.mark.parametrize("case", REFUSED)
def test_every_refusal_has_its_exit_code_and_a_remedy(here, case):
    argv, code = REFUSED[case]
    ran = here.bxctl(*argv, "--json")
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    told = json.loads(ran.stderr)
    assert told["exit"] == code
    assert told["message"]
    assert told["remedy"]


def test_a_reader_that_has_seen_enough_ends_it_quietly(here):
    ran = subprocess.run(
        ["/bin/sh", "-c", f"{{ '{BXCTL}' memory dump; echo $? >&2; }} | true"],
        env=here.daemon.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr == "0\n"


@pytest.mark.parametrize(
    "argv", [["memory", "dump"], ["status"], ["memory", "search", "retry", "--json"], ["--help"]]
)
def test_a_full_disk_is_74(here, argv):
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device, and subprocess wants the file
        ran = here.bxctl(*argv, stdout=full)
    assert ran.returncode == 74
    assert "No space left on device" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_closed_standard_output_is_74_and_a_closed_standard_error_is_nothing(here):
    for close, code in ((">&-", 74), ("2>&-", 0)):
        ran = subprocess.run(
            ["/bin/sh", "-c", f"'{BXCTL}' status {close}"],
            env=here.daemon.env,
            capture_output=True,
            check=False,
        )
        assert ran.returncode == code


def test_an_old_locale_still_prints_everything(here):
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = here.bxctl("memory", "search", "hostile", env=env)
    assert ran.returncode == 0
    assert ran.stdout.isascii()
    assert "\\u241b" in ran.stdout
    assert json.loads(here.bxctl("memory", "search", "hostile", "--json", env=env).stdout)["hits"]
    assert here.bxctl("memory", "dump", env=env).stdout == here.bxctl("memory", "dump").stdout


def test_reindexing_gives_the_same_dump_and_prints_counts(here):
    before = here.bxctl("memory", "dump").stdout
    ran = here.bxctl("reindex")
    assert ran.returncode == 0, ran.stderr
    assert "indexed" in ran.stdout
    assert here.bxctl("memory", "dump").stdout == before
    told = answer(here, "reindex")
    assert (told["format"], told["version"]) == ("counts", 1)
    assert (told["indexed"], told["left_out"], told["unreadable"]) == (9, 1, 0)
