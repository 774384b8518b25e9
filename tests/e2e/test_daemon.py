"""The real daemon: how it starts, what it keeps private, how it goes down and comes back."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd import clock
from memoryd.client import connect
from memoryd.errors import Behind, NotGranted, TimedOut, Unavailable
from tests.support.daemon import Daemon
from tests.support.logs import (
    append,
    native_assistant,
    native_call,
    native_owner,
    native_result,
    native_session,
    write,
)
from tests.support.modes import too_wide

LOG = "sessions/a.jsonl"
PATIENCE_S = 180.0


def written(state: Path) -> Path:
    """Write a log whose last line was written under a result of class `private`."""
    return write(
        state / LOG,
        native_session("s1"),
        native_owner("does the crane need grease"),
        native_call("read", {"path": "crane.txt"}, "c1"),
        native_result("c1", "a zabaglione of rust", "private"),
        native_assistant("the crane is rusty"),
    )


@pytest.fixture
def log(memoryd_home: Path) -> Path:
    """The log, where a daemon of this test's own finds it."""
    return written(memoryd_home)


@pytest.fixture(scope="module")
def standing() -> Iterator[Daemon]:
    """One daemon for the tests that leave it as it is; the umask it got from its parent is 0."""
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        home = Path(folder)
        written(home / "state")
        with Daemon(home) as daemon:
            daemon.start(before=lambda: os.umask(0) and None).ask("sync")
            yield daemon
            assert daemon.stop() == 0


def hits(daemon: Daemon, query: str, name: str = "memoryd", **more: Any) -> list[str]:
    """Return the snippets that a socket answers."""
    with daemon.client(name) as memory:
        return [hit["snippet"] for hit in memory.call("recall", query=query, **more)["hits"]]


def dumped(daemon: Daemon) -> list[str]:
    """Return the dump once all that is on disk is indexed."""
    with daemon.client() as memory:
        memory.call("sync", deadline_ms=120_000)
        return [line for page in memory.pages("dump") for line in page["lines"]]


def refused_start(daemon: Daemon) -> subprocess.CompletedProcess[str]:
    """Start another one in the same place, and return how it ended."""
    return subprocess.run(
        [sys.executable, "-m", "memoryd"],
        check=False,
        capture_output=True,
        text=True,
        env=daemon.env,
        timeout=PATIENCE_S,
    )


def until(condition: Any, daemon: Daemon) -> dict[str, Any]:
    """Ask for the status until it meets `condition`, and return it."""
    ends = clock.monotonic() + PATIENCE_S
    with daemon.client() as memory:
        while not condition(told := memory.call("status")):
            assert clock.monotonic() < ends, told
            with contextlib.suppress(Unavailable, TimedOut):
                memory.call("sync", deadline_ms=1_000)
    found: dict[str, Any] = told
    return found


def test_it_answers_each_socket_up_to_its_clearance(standing: Daemon) -> None:
    assert set(hits(standing, "crane")) >= {"does the crane need grease", "the crane is rusty"}
    assert hits(standing, "rusty", "agent") == []
    assert hits(standing, "zabaglione") == []
    with standing.client("agent") as memory, pytest.raises(NotGranted):
        memory.call("dump")


def test_status_tells_the_owner_everything_and_an_agent_what_it_sees(standing: Daemon) -> None:
    told = standing.ask("status")
    assert told["ready"]
    assert told["rows"] == 3
    assert told["pid"] == standing.process.pid
    assert told["behind"] == dict.fromkeys(("logs", "bytes", "held"), 0) | dict.fromkeys(
        ("bytes_per_s", "remaining_s")
    )
    assert told["faults"] == []
    (source,) = told["sources"]
    assert (source["source"], source["logs"], source["records"]) == ("native", 1, 5)
    with standing.client("agent") as memory:
        told = memory.call("status")
    assert set(told) == {"ready", "uptime", "generation", "rows"}
    assert told["rows"] == 2


def test_what_is_appended_is_found(user_home: Path, log: Path) -> None:
    with Daemon(user_home) as daemon:
        daemon.start().ask("sync")
        append(log, native_owner("and the harbour light"))
        daemon.ask("sync")
        assert hits(daemon, "harbour") == ["and the harbour light"]


def test_a_session_that_names_itself_sees_its_own_class(user_home: Path, log: Path) -> None:
    low = write(user_home / "state/sessions/low.jsonl", native_session("s2"), native_owner("hello"))
    with Daemon(user_home) as daemon:
        daemon.start().ask("sync")
        caller = {"log": low.name, "n": 2}
        assert "the crane is rusty" not in hits(daemon, "rusty crane", caller=caller)
        seen = hits(daemon, "rusty crane", caller=caller, max_class="secret")
        assert "the crane is rusty" in seen
        append(low, native_call("x", {}, "1"), native_result("1", "y", "private"))
        assert "the crane is rusty" in hits(daemon, "rusty crane", caller={"log": low.name, "n": 4})
        for name in ("../a.jsonl", low.name):
            with pytest.raises(Behind):
                hits(daemon, "crane", caller={"log": name, "n": 99})


def test_a_second_start_is_refused_with_the_pid_of_the_first_l01(standing: Daemon) -> None:
    second = refused_start(standing)
    assert second.returncode == 75
    (line,) = second.stderr.splitlines()
    assert f"process {standing.process.pid}" in line
    assert standing.ask("status")["ready"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_l06(user_home: Path, log: Path, number: int) -> None:
    with Daemon(user_home) as daemon:
        daemon.start().ask("sync")
        assert daemon.stop(number) == 0
        assert list((daemon.state / "run").iterdir()) == []
        beside = {path.name for path in (daemon.state / "index").iterdir()}
        assert beside == {"memory.sqlite3"}
        with pytest.raises(Unavailable):
            daemon.client()


def test_a_request_in_flight_is_answered_before_the_end_l06(user_home: Path, log: Path) -> None:
    with Daemon(user_home) as daemon:
        daemon.start().ask("sync")
        with daemon.client() as memory:
            import msgpack

            asked = {"query": "crane", "caller": {"log": "a.jsonl", "n": 99}}
            memory._sock.sendall(msgpack.packb([0, 77, "recall", [asked]]))
            memory.call("status")
            daemon.process.send_signal(signal.SIGTERM)
            daemon.told("STOPPING=1")
            with pytest.raises(Behind):
                memory._answer(77, clock.monotonic() + PATIENCE_S)
        assert daemon.process.wait(PATIENCE_S) == 0


def test_sighup_is_no_death(standing: Daemon) -> None:
    standing.process.send_signal(signal.SIGHUP)
    assert standing.ask("status")["ready"]


def test_after_a_kill_it_starts_over_what_was_left_l08(user_home: Path, log: Path) -> None:
    with Daemon(user_home) as daemon:
        daemon.start()
        before = dumped(daemon)
        daemon.kill()
        assert (daemon.state / "run" / "memoryd.sock").exists()
        append(log, native_owner("one more"))
        daemon.start()
        after = dumped(daemon)
        assert len(after) == len(before) + 1
        assert set(before) < set(after)


def test_nothing_is_wider_than_its_owner_whatever_the_umask_v01(standing: Daemon) -> None:
    hits(standing, "crane")
    assert too_wide(standing.state) == []


def test_no_core_file_can_be_left_v09(standing: Daemon) -> None:
    limits = Path(f"/proc/{standing.process.pid}/limits").read_text()
    (core,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core.split()[4:6] == ["0", "0"]


def test_its_log_is_json_without_a_word_of_what_it_read_v05(user_home: Path, log: Path) -> None:
    with Daemon(user_home) as daemon:
        daemon.start().ask("sync")
        hits(daemon, "crane zeppelin")
        daemon.ask("reindex")
        until(lambda told: told["rebuild"]["state"] == "done", daemon)
        daemon.stop()
        said = daemon.said()
    for line in said.splitlines():
        json.loads(line)
    for word in ("crane", "grease", "zabaglione", "rusty", "zeppelin"):
        assert word not in said


def test_the_read_log_says_who_was_told_what(standing: Daemon) -> None:
    found = hits(standing, "crane zeppelin", "agent")
    line = (standing.state / "reads.jsonl").read_text().splitlines()[-1]
    told = json.loads(line)
    assert told["socket"] == "agent"
    assert told["pid"] == os.getpid()
    assert len(told["ids"]) == len(found) > 0
    assert "zeppelin" not in line


def test_a_rebuild_serves_meanwhile_and_changes_no_byte_of_the_dump_r10(
    user_home: Path, log: Path
) -> None:
    with Daemon(user_home) as daemon:
        daemon.start()
        before = dumped(daemon)
        generation = daemon.ask("status")["generation"]
        job = daemon.ask("reindex")["job"]
        assert hits(daemon, "rusty")
        told = until(lambda told: told["rebuild"]["state"] != "running", daemon)
        assert told["rebuild"]["job"] == job
        assert told["rebuild"]["state"] == "done"
        assert told["rebuild"]["counts"]["records"] == 5
        assert told["generation"] != generation
        assert dumped(daemon) == before
        append(log, native_owner("after it"))
        assert len(dumped(daemon)) == len(before) + 1


def test_other_settings_rebuild_before_anything_is_served_s22(user_home: Path, log: Path) -> None:
    with Daemon(user_home) as daemon:
        daemon.start()
        assert len(dumped(daemon)) == 3
        daemon.stop()
    config = '[index]\nmax_class = "internal"\n'
    with Daemon(user_home, config) as daemon:
        daemon.start()
        until(lambda told: told["ready"], daemon)
        assert len(dumped(daemon)) == 2
        told = daemon.ask("status")
        assert told["left_out"] == [{"why": "read", "rows": 1}]


def test_a_damaged_index_is_set_aside_and_made_again_s05(user_home: Path, log: Path) -> None:
    with Daemon(user_home) as daemon:
        daemon.start()
        before = dumped(daemon)
        daemon.stop()
        path = daemon.state / "index" / "memory.sqlite3"
        content = bytearray(path.read_bytes())
        content[:64] = b"\0" * 64
        path.write_bytes(content)
        daemon.start()
        until(lambda told: told["ready"], daemon)
        assert dumped(daemon) == before
        assert too_wide(daemon.state) == []


def test_something_else_at_the_socket_s_path_is_named_and_left_l03(user_home: Path) -> None:
    path = user_home / "state" / "run" / "memoryd.sock"
    path.parent.mkdir(parents=True)
    path.write_text("precious")
    with Daemon(user_home) as daemon:
        refused = refused_start(daemon)
    assert refused.returncode == 78
    assert str(path) in refused.stderr
    assert path.read_text() == "precious"
    path.unlink()  # its mode is its owner's


ANOTHER_UID = 65_534
SYSTEM_PYTHON = "/usr/bin/python3"
ASK = """
import socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.settimeout(100)
peer.connect(sys.argv[1])
try:
    peer.sendall(bytes.fromhex("940007a568656c6c6f90"))
    print(len(peer.recv(65536)))
except ConnectionError:
    print(0)
"""

as_another_user = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None or not Path(SYSTEM_PYTHON).exists(),
    reason="needs root, setpriv and the system's Python, to be another user",
)


def asked_by_another(path: Path, group: int = ANOTHER_UID) -> subprocess.CompletedProcess[str]:
    """Say hello as another user; the length of the answer is printed."""
    user = ["setpriv", f"--reuid={ANOTHER_UID}", f"--regid={group}", "--clear-groups"]
    return subprocess.run(
        [*user, SYSTEM_PYTHON, "-c", ASK, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd="/",
    )


@as_another_user
def test_another_user_cannot_reach_the_sockets(user_home: Path) -> None:
    user_home.chmod(0o755)
    with Daemon(user_home) as daemon:
        daemon.start()
        refused = asked_by_another(daemon.state / "run" / "memoryd.sock")
        assert "PermissionError" in refused.stderr


@as_another_user
def test_another_user_who_gets_to_a_socket_is_closed_unread_unless_it_is_named_p21(
    user_home: Path,
) -> None:
    import grp

    user_home.chmod(0o755)
    group = grp.getgrgid(ANOTHER_UID).gr_name
    config = "".join(
        f'[[socket]]\nname = "{name}"\nclearance = "public"\ntools = ["recall"]\n'
        f'path = "{user_home}/{name}/m.sock"\ngroup = "{group}"\n{more}\n'
        for name, more in (("closed", ""), ("named", f"uids = [{ANOTHER_UID}]"))
    )
    with Daemon(user_home, config) as daemon:
        daemon.start()
        assert asked_by_another(user_home / "closed" / "m.sock").stdout == "0\n"
        assert int(asked_by_another(user_home / "named" / "m.sock").stdout) > 0
        with connect(user_home / "closed" / "m.sock") as memory:
            assert memory.call("status")["rows"] == 0


def test_a_manager_in_the_abstract_namespace_is_told_l13(user_home: Path) -> None:
    name = f"memoryd-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name)
        manager.settimeout(PATIENCE_S)
        with Daemon(user_home) as daemon:
            daemon.env["NOTIFY_SOCKET"] = "@" + name
            daemon.launch()
            assert manager.recv(64) == b"READY=1"
