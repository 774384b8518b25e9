"""The status screen, at 80 and 120 columns, for the owner and for an agent's socket."""

import json

import pytest

from bxctl.layout import plain
from bxctl.paint import painted
from bxctl.status_views import screen
from bxctl.views import sized
from memoryd.clock import parse_rfc3339
from memoryd.errors import Unavailable

NOW = parse_rfc3339("2026-03-10T12:00:00Z") or 0
SERVER = {"versions": {"memoryd": "0.1.0", "protocol": 1}, "clearance": "secret"}
WELL = {
    "ready": True,
    "uptime": 11_100.0,
    "generation": "4f3a",
    "rows": 12_345,
    "version": "0.1.0",
    "pid": 4_711,
    "home": "/home/ada/.local/state/memoryd",
    "sockets": [
        {"name": "memoryd", "path": "/run/user/1000/memoryd/memoryd.sock", "clearance": "secret"},
        {"name": "agent", "path": "/run/user/1000/memoryd/agent.sock", "clearance": "internal"},
    ],
    "behind": {"logs": 0, "bytes": 0},
    "sources": [
        {
            "source": "claude-code",
            "root": "/home/ada/.claude/projects",
            "logs": 44,
            "gone": 2,
            "records": 61_000,
            "indexed": 12_000,
            "left_out": 120,
            "unreadable": 1,
        },
        {
            "source": "codex",
            "root": "/home/ada/.codex/sessions",
            "logs": 12,
            "gone": 0,
            "records": 7_000,
            "indexed": 345,
            "left_out": 0,
            "unreadable": 0,
        },
    ],
    "left_out": [
        {"why": "no rule for tool Frobnicate", "rows": 100},
        {"why": "path */.ssh/*", "rows": 20},
    ],
    "unreadable": 1,
    "rebuild": None,
    "faults": [],
    "traffic": {},
}
RUNNING = {
    "job": "rebuild-1",
    "state": "running",
    "logs": 3,
    "all_logs": 9,
    "bytes": 1_500_000,
    "all_bytes": 4_000_000,
    "records": 0,
    "counts": None,
    "seconds": None,
    "error": None,
    "remedy": None,
}
AT_80 = """\
memoryd 0.1.0 is ready, up for 3 h 5 min, and has read all there is
  rows       12,345, up to secret
  bad lines  1, each of which raised its log to the top
  state      /home/ada/.local/state/memoryd
  socket     /run/user/1000/memoryd/memoryd.sock, up to secret
  socket     /run/user/1000/memoryd/agent.sock, up to internal

  source       logs  records    rows  left out  bad lines  folder
  claude-code    44   61,000  12,000       120          1  /home/ada/.claude/pr…
  codex          12    7,000     345         0          0  /home/ada/.codex/ses…

  left out  because of
       100  no rule for tool Frobnicate
        20  path */.ssh/*
"""


def test_the_screen_fits_80_columns():
    assert painted(screen(WELL, SERVER, NOW), colour=False, width=80) == AT_80


@pytest.mark.parametrize("width", [120, None])
def test_with_room_nothing_is_shortened(width):
    text = plain(screen(WELL, SERVER, NOW))
    if width:
        assert painted(screen(WELL, SERVER, NOW), colour=False, width=width) == text
    assert "/home/ada/.claude/projects\n" in text
    assert "…" not in text


def test_faults_come_last_with_since_and_remedy():
    fault = {"what": "disk full\x1b[2J", "since": "2026-03-10T11:30:00Z", "remedy": "make room"}
    text = plain(screen(WELL | {"faults": [fault]}, SERVER, NOW))
    assert text.endswith("\ndisk full␛[2J, 30 min ago\n  make room\n")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"behind": {"logs": 3, "bytes": 1_200_000}}, "and is behind in 3 logs by 1.2 MB"),
        (
            {"behind": {"logs": 3, "bytes": 9, "bytes_per_s": 8_100_000, "remaining_s": 125}},
            "and is behind in 3 logs by 9 bytes; 8.1 MB a second, about 2 min 5 s left",
        ),
        ({"ready": False, "rows": None}, "there is no index to ask yet"),
        ({"rebuild": RUNNING}, "rebuild    running: 3 of 9 logs, 1.5 MB of 4.0 MB"),
        (
            {"rebuild": RUNNING | {"state": "failed", "error": "disk full", "remedy": "make room"}},
            "rebuild    failed: disk full",
        ),
        (
            {"rebuild": RUNNING | {"state": "done", "counts": {"indexed": 1_234}, "seconds": 75.0}},
            "rebuild    done in 1 min 15 s: 1,234 rows",
        ),
    ],
)
def test_what_is_going_on_is_said(change, line):
    assert line in plain(screen(WELL | change, SERVER, NOW))


def test_reasons_beyond_a_screen_are_summed():
    many = [{"why": f"reason {n}", "rows": n} for n in range(1, 9)]
    text = plain(screen(WELL | {"left_out": many}, SERVER, NOW))
    assert "reason 8" in text
    assert "reason 3" not in text
    assert "         6  for other reasons\n" in text


def test_an_agent_s_socket_is_told_less_and_it_still_reads_well(daemon, bxctl):
    daemon.answers["status"] = {"ready": True, "uptime": 5.2, "generation": "4f3a", "rows": 7}
    ran = bxctl("--socket", "agent", "status")
    assert ran.out == "memoryd 0.1.0 is ready, up for 5.2 s\n  rows  7, up to secret\n"


def test_status_as_json_is_what_the_daemon_says(daemon, bxctl):
    daemon.answers["status"] = WELL
    told = json.loads(bxctl("status", "--json").out)
    versions = {"memoryd": "0.1.0"}
    assert told == WELL | {"format": "status", "version": 1, "versions": versions}


def test_a_daemon_of_another_version_is_told_of_u10(daemon, bxctl):
    daemon.answers["status"] = WELL
    assert bxctl("status").err == ""
    daemon.server["versions"] = {"memoryd": "9.9.9\x1b[2J", "protocol": 1}
    ran = bxctl("status", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["versions"]["memoryd"].startswith("9.9.9")
    assert ran.err == "bxctl: memoryd is 9.9.9␛[2J, bxctl is 0.1.0; restart memoryd\n"


def test_status_of_no_daemon_is_69(daemon, bxctl):
    daemon.answers["connect"] = Unavailable(
        "memoryd is not running", remedy="start it with `memoryd`"
    )
    ran = bxctl("status")
    assert (ran.code, ran.out) == (69, "")
    assert ran.err == "bxctl: memoryd is not running; start it with `memoryd`\n"


@pytest.mark.parametrize(
    ("many", "said"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (123_456, "123 kB"),
        (5_300_000_000, "5.3 GB"),
    ],
)
def test_sizes_read_well(many, said):
    assert sized(many) == said


def test_vanished_logs_and_what_is_not_read_are_named_a_few_of_them():
    told = WELL | {
        "vanished": [{"session": f"s{n}\x1b"} for n in range(7)],
        "skipped": [{"path": "/logs/a.jsonl", "why": "unknown format"}],
        "purging": True,
    }
    shown = plain(screen(told, SERVER, NOW))
    assert "kept without their files: s0␛, s1␛, s2␛, s3␛, s4␛ and 2 more" in shown
    assert "not read" in shown
    assert "/logs/a.jsonl (unknown format)" in shown
    assert "being taken out of the file" in shown
    assert "vanished" not in plain(screen(WELL, SERVER, NOW))
