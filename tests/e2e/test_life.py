"""The life of a real daemon: signals, what it is handed and told by a manager, and how it is found alive."""

import contextlib
import os
import resource
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from memoryd import clock
from memoryd.errors import MemorydError, TimedOut, Unavailable
from tests.support.daemon import READY_S, Daemon
from tests.support.logs import append, native_owner, native_session, write
from tests.support.modes import too_wide

ONE = '[[socket]]\nname = "memoryd"\nclearance = "secret"\ntools = ["*"]\n'
TWO = ONE + '[[socket]]\nname = "second"\nclearance = "public"\ntools = ["recall"]\n'
NO_TOML = "[index\n"
TOO_LONG = 200
AS_A_MANAGER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.executable, [sys.executable, "-m", "memoryd"])
"""


@pytest.fixture
def log(memoryd_home: Path) -> Path:
    return write(
        memoryd_home / "sessions/a.jsonl", native_session("s"), native_owner("crane grease")
    )


@pytest.fixture
def daemon(user_home: Path, log: Path) -> Iterator[Daemon]:
    with Daemon(user_home, ONE) as daemon:
        yield daemon


def configure(daemon: Daemon, text: str) -> None:
    """Write another configuration, whole before it has its name."""
    file = Path(daemon.env["MEMORYD_CONFIG"])
    new = file.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o600)
    new.rename(file)


def reload(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGHUP)


def sockets(daemon: Daemon) -> list[str]:
    return [one["name"] for one in daemon.ask("status")["sockets"]]


def faults(daemon: Daemon) -> list[str]:
    return [fault["what"] for fault in daemon.ask("status")["faults"]]


def wait_for(daemon: Daemon, words: str) -> None:
    """Return once the daemon's log holds `words`; each look costs a question, so that nobody spins."""
    ends = clock.monotonic() + READY_S
    while words not in daemon.said():
        assert clock.monotonic() < ends, daemon.said()
        with contextlib.suppress(MemorydError):
            daemon.ask("status")


def test_a_second_signal_ends_it_at_once_and_half_writes_no_note_l07(daemon: Daemon) -> None:
    daemon.start().ask("sync")
    with daemon.client() as memory:
        memory.call("notes.create", path="/memories/internal/a.md", file_text="one\n", owner=True)
    with daemon.client() as memory:
        import msgpack

        asked = {
            "query": "crane",
            "caller": {"log": "a.jsonl", "n": 99},
        }  # in flight for two seconds
        memory._sock.sendall(msgpack.packb([0, 77, "recall", [asked]]))
        memory.call("status")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.told("STOPPING=1")
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(10) == 1
    daemon.start()
    assert daemon.ask("notes.verify")["faults"] == []
    assert daemon.ask("notes.view", path="/memories/internal/a.md", raw=True)["text"] == "one\n"
    assert daemon.stop() == 0


def test_another_configuration_is_taken_at_a_sighup_l10(daemon: Daemon) -> None:
    pid = daemon.start().ask("status")["pid"]
    assert sockets(daemon) == ["memoryd"]
    configure(daemon, TWO)
    reload(daemon)
    daemon.told("RELOADING=1")
    daemon.told("READY=1")
    assert sockets(daemon) == ["memoryd", "second"]
    assert daemon.ask("status")["pid"] == pid
    daemon.ask("sync")
    with daemon.client("second") as memory:
        assert memory.call("recall", query="crane")["hits"]
    configure(daemon, ONE)
    reload(daemon)
    daemon.told("READY=1")
    assert sorted(path.name for path in (daemon.state / "run").iterdir()) == ["memoryd.sock"]
    assert too_wide(daemon.state) == []
    assert daemon.stop() == 0


@pytest.mark.slow
def test_the_same_configuration_costs_nobody_a_connection_l10(daemon: Daemon) -> None:
    daemon.start()
    with daemon.client() as memory:
        reload(daemon)
        wait_for(daemon, "the configuration says what it said")
        assert memory.call("status")["ready"] in (True, False)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (NO_TOML, "line 1"),
        (ONE + '[index]\nmax_clas = "private"\n', "index.max_clas"),
        (ONE + 'group = "no-such-group-here"\n', "no-such-group-here"),
    ],
    ids=["no TOML", "a typo", "only found when it is used"],
)
def test_a_configuration_that_cannot_be_used_leaves_the_old_one_in_force_c02(
    daemon: Daemon, text: str, names: str
) -> None:
    daemon.start()
    configure(daemon, text)
    reload(daemon)
    wait_for(daemon, "the configuration cannot be used")
    ends = clock.monotonic() + READY_S
    while True:
        with contextlib.suppress(Unavailable):
            if any("is not in force" in what and names in what for what in faults(daemon)):
                break
        assert clock.monotonic() < ends, daemon.said()
    assert sockets(daemon) == ["memoryd"]
    configure(daemon, TWO)
    reload(daemon)
    daemon.told("RELOADING=1")
    daemon.told("READY=1")
    assert not any("is not in force" in what for what in faults(daemon))


@pytest.mark.slow
def test_of_many_reloads_at_once_the_last_counts_c08(daemon: Daemon) -> None:
    daemon.start()
    for text in (TWO, ONE, TWO, ONE, TWO):
        configure(daemon, text)
        reload(daemon)
    ends = clock.monotonic() + READY_S
    found: list[str] = []
    while found != ["memoryd", "second"]:
        assert clock.monotonic() < ends, daemon.said()
        with contextlib.suppress(Unavailable):
            found = sockets(daemon)
    assert daemon.process.poll() is None
    assert daemon.stop() == 0


@pytest.mark.slow
def test_a_stop_while_it_reloads_is_a_stop_l06_l10(daemon: Daemon) -> None:
    daemon.start()
    configure(daemon, TWO)
    reload(daemon)
    daemon.told("RELOADING=1")
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(10) == 0
    assert list((daemon.state / "run").iterdir()) == []


def test_whoever_hangs_for_a_moment_costs_its_clients_their_deadline_only_l11(
    daemon: Daemon,
) -> None:
    daemon.start().ask("sync")
    with daemon.client(timeout=0.3) as memory:
        daemon.process.send_signal(signal.SIGSTOP)
        for _ in range(2):
            with pytest.raises(TimedOut):
                memory.call("recall", query="crane")
        daemon.process.send_signal(signal.SIGCONT)
        assert daemon.ask("recall", query="crane")["hits"]
        assert daemon.ask("status")["traffic"]["internal_errors"] == 0
    assert daemon.stop() == 0


@pytest.mark.slow
def test_it_is_ready_before_it_has_read_what_there_is_l12(daemon: Daemon, log: Path) -> None:
    for number in range(40):
        write(
            log.with_name(f"{number}.jsonl"),
            native_session(f"s{number}"),
            *[
                native_owner(f"the mortar of house {number}, course {course}")
                for course in range(500)
            ],
        )
    daemon.start()
    told = daemon.ask("status")
    assert told["rows"] in (None, *range(20_001))
    assert "read all that was there" not in daemon.said() or told["behind"]["logs"] == 0
    ready = daemon.said().index('"serving"')
    daemon.ask("sync", deadline_ms=60_000)
    assert daemon.said().index("read all that was there") > ready
    assert daemon.ask("status")["rows"] == 20_001


@pytest.mark.slow
@pytest.mark.parametrize("address", [None, "", "/no/such/socket", "@" + "x" * TOO_LONG])
def test_no_manager_or_an_odd_one_is_no_fault_l13(daemon: Daemon, address: str | None) -> None:
    del daemon.env["NOTIFY_SOCKET"]
    if address is not None:
        daemon.env["NOTIFY_SOCKET"] = address
    daemon.launch()
    wait_for(daemon, '"serving"')
    assert daemon.ask("status")["faults"] == []
    assert daemon.stop() == 0


def test_the_watchdog_is_fed_while_it_serves_and_only_then_l05(daemon: Daemon) -> None:
    daemon.env["WATCHDOG_USEC"] = "800000"
    daemon.start()
    for _ in range(3):
        daemon.told("WATCHDOG=1")
    path = daemon.state / "run" / "memoryd.sock"
    path.rename(path.with_name("away"))
    wait_for(daemon, "through its own socket is not answered")
    path.with_name("away").rename(path)
    daemon.told("WATCHDOG=1")
    assert daemon.stop() == 0


def listening(path: Path) -> socket.socket:
    """Listen at `path` as a manager does, with a mode wider than ours."""
    path.parent.mkdir(mode=0o700, exist_ok=True, parents=True)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    path.chmod(0o666)
    sock.listen()
    return sock


def hand_over(daemon: Daemon, held: socket.socket | IO[str]) -> None:
    """Let the daemon inherit what is `held` as descriptor 3, as sd_listen_fds(3) says."""
    daemon.command = [sys.executable, "-c", AS_A_MANAGER, str(held.fileno())]
    daemon.env["LISTEN_FDS"] = "1"
    daemon.hands_over = (held.fileno(),)


def test_a_socket_that_was_handed_over_is_used_and_left_where_it_is_l14(daemon: Daemon) -> None:
    path = daemon.state / "run" / "memoryd.sock"
    with listening(path) as sock:
        hand_over(daemon, sock)
        node = path.lstat().st_ino
        daemon.start()
        assert sockets(daemon) == ["memoryd"]
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        configure(daemon, TWO)
        reload(daemon)
        daemon.told("RELOADING=1")
        daemon.told("READY=1")
        assert sockets(daemon) == ["memoryd", "second"]
        assert daemon.stop() == 0
        assert path.lstat().st_ino == node
        assert [one.name for one in path.parent.iterdir()] == ["memoryd.sock"]


@pytest.mark.slow
def test_who_asks_while_it_starts_is_answered_once_it_is_up_l14(daemon: Daemon) -> None:
    with listening(daemon.state / "run" / "memoryd.sock") as sock:
        hand_over(daemon, sock)
        daemon.launch()
        assert daemon.ask("hello")["server"]
        assert daemon.stop() == 0


@pytest.mark.parametrize("kind", ["another path", "a datagram socket", "a file", "one too many"])
def test_what_is_handed_over_and_is_none_of_ours_is_refused_l14(
    daemon: Daemon, user_home: Path, kind: str
) -> None:
    with contextlib.ExitStack() as stack:
        if kind == "another path":
            hand_over(daemon, stack.enter_context(listening(user_home / "other.sock")))
        elif kind == "a datagram socket":
            hand_over(daemon, stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)))
        elif kind == "a file":
            hand_over(daemon, stack.enter_context((user_home / "file").open("w")))
        else:
            hand_over(daemon, stack.enter_context(listening(daemon.state / "run/memoryd.sock")))
            daemon.env["LISTEN_FDS"] = "9"
        daemon.launch()
        assert daemon.process.wait(READY_S) == 78
    (line,) = [line for line in daemon.said().splitlines() if not line.startswith("{")]
    assert line.startswith("memoryd: the sockets handed over cannot be used: ")


@pytest.mark.slow
def test_what_was_handed_to_another_process_is_not_looked_at_l14(daemon: Daemon) -> None:
    daemon.env |= {"LISTEN_PID": "1", "LISTEN_FDS": "7"}
    daemon.start()
    assert sockets(daemon) == ["memoryd"]
    assert daemon.stop() == 0


def test_a_reader_of_its_output_that_left_is_no_end_l09(daemon: Daemon) -> None:
    reader, writer = os.pipe()
    daemon.launch(before=lambda: os.dup2(writer, 2) and None)
    os.close(reader)
    os.close(writer)
    daemon.told("READY=1")
    reload(daemon)
    assert daemon.ask("sync") is not None
    assert daemon.ask("recall", query="crane")["hits"]
    assert daemon.stop() == 0


@pytest.mark.slow
def test_a_limit_of_the_size_of_files_is_an_error_and_no_end_l09(daemon: Daemon, log: Path) -> None:
    most = 600_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    daemon.start(before=limited).ask("sync")
    for number in range(60):
        append(log, native_owner(f"the quarry {number} " + "granite basalt marble " * 900))
    ends = clock.monotonic() + READY_S
    while not any("indexing stands still" in what for what in faults(daemon)):
        assert clock.monotonic() < ends, daemon.said()
        with contextlib.suppress(MemorydError):
            daemon.ask("sync", deadline_ms=300)
    assert daemon.ask("recall", query="grease")["hits"]
    assert daemon.ask("status")["traffic"]["internal_errors"] == 0
    assert daemon.stop() == 0


@pytest.mark.slow
def test_of_many_starts_at_once_over_a_killed_one_s_socket_one_serves_l01(daemon: Daemon) -> None:
    daemon.start().kill()
    others = []
    for _ in range(3):
        daemon.launch()
        others.append(daemon.process)
    daemon.told("READY=1")
    running = daemon.ask("status")["pid"]
    codes = {one.pid: one.wait(READY_S) for one in others if one.pid != running}
    assert list(codes.values()) == [75, 75]
    (serving,) = [one for one in others if one.pid == running]
    assert daemon.said().count(f"process {running}") == 2
    serving.terminate()
    assert serving.wait(10) == 0
