"""Following a rebuild that the daemon does: until it is done, failed, or nobody wants to wait."""

import json

import pytest

from memoryd.errors import Busy, NotGranted, Unavailable

RUNNING = {
    "job": "rebuild-1",
    "state": "running",
    "logs": 1,
    "all_logs": 3,
    "bytes": 10,
    "all_bytes": 30,
    "counts": None,
    "seconds": None,
    "error": None,
    "remedy": None,
}
COUNTS = {"records": 1_000, "indexed": 700, "left_out": 20, "unreadable": 1}
DONE = RUNNING | {"state": "done", "counts": COUNTS, "seconds": 2.5}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("bxctl.reindex.LOOK_S", 0.0)


def looks(*states):
    """Answer each look at the status with the next of `states`; the last stays."""
    left = list(states)

    def status(**_):
        state = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(state, Exception | type):
            raise state
        return {"rebuild": state}

    return status


def test_it_is_followed_until_it_is_done(daemon, bxctl):
    busy = Busy("the index is being replaced", remedy="ask again")
    daemon.answers |= {
        "reindex": {"job": "rebuild-1"},
        "status": looks(RUNNING, RUNNING, busy, DONE),
    }
    ran = bxctl("reindex")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "700 rows indexed from 1,000 records of 3 logs in 2.5 s, 20 rows left out, 1 lines unreadable\n"
    )


def test_the_counts_are_json_too(daemon, bxctl):
    daemon.answers |= {"reindex": {"job": "rebuild-1"}, "status": looks(DONE)}
    told = json.loads(bxctl("reindex", "--json").out)
    assert told == {"format": "counts", "version": 1, **COUNTS, "logs": 3, "seconds": 2.5}


def test_a_failed_rebuild_says_why_and_that_the_old_index_stays(daemon, bxctl):
    failed = RUNNING | {"state": "failed", "error": "no room left", "remedy": "make some"}
    daemon.answers |= {"reindex": {"job": "rebuild-1"}, "status": looks(RUNNING, failed)}
    ran = bxctl("reindex")
    assert (ran.code, ran.out) == (70, "")
    assert (
        ran.err == "bxctl: the rebuild failed, and the old index stays: no room left; make some\n"
    )


@pytest.mark.parametrize(
    ("code", "exit_code"), [("disk_full", 74), ("index_busy", 75), ("conflict", 1)]
)
def test_a_failed_rebuild_ends_with_its_own_code(daemon, bxctl, code, exit_code):
    failed = RUNNING | {"state": "failed", "error": "why", "remedy": "do", "code": code}
    daemon.answers |= {"reindex": {"job": "rebuild-1"}, "status": looks(failed)}
    assert bxctl("reindex").code == exit_code


def test_another_rebuild_in_its_place_is_not_taken_for_it(daemon, bxctl):
    daemon.answers |= {"reindex": {"job": "rebuild-2"}, "status": looks(DONE)}
    ran = bxctl("reindex")
    assert ran.code == 70
    assert "bxctl status" in ran.err


def test_ctrl_c_says_that_the_daemon_goes_on(daemon, bxctl):
    daemon.answers |= {"reindex": {"job": "rebuild-1"}, "status": looks(RUNNING, KeyboardInterrupt)}
    ran = bxctl("reindex")
    assert ran.code == 130
    assert ran.err.splitlines() == [
        "bxctl: memoryd goes on rebuilding; `bxctl status` shows how far it is",
        "bxctl: interrupted",
    ]


def test_a_daemon_that_goes_away_meanwhile_is_69(daemon, bxctl):
    gone = Unavailable("memoryd closed the connection", remedy="see its log")
    daemon.answers |= {"reindex": {"job": "rebuild-1"}, "status": looks(RUNNING, gone)}
    assert bxctl("reindex").code == 69


def test_another_socket_s_refusal_is_not_worked_around(daemon, bxctl):
    daemon.answers["reindex"] = NotGranted(
        "the socket 'agent' does not grant reindex", remedy="ask"
    )
    assert bxctl("--socket", "agent", "reindex").code == 77
    daemon.answers["connect"] = Unavailable("memoryd is not running", remedy="start it")
    assert bxctl("--socket", "agent", "reindex").code == 69


def test_force_is_for_offline(daemon, bxctl):
    ran = bxctl("reindex", "--force")
    assert ran.code == 2
    assert "bxctl reindex --offline --force" in ran.err
