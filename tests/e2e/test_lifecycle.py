"""A daemon and the manager that starts it: reloading, sockets that are handed over, the watchdog, what it is told."""

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from memoryd.client import connect
from memoryd.errors import Unavailable
from tests.support.daemon import READY_S, Daemon
from tests.support.logs import append, native_owner

ONE = '[[socket]]\nname = "memoryd"\nclearance = "secret"\ntools = ["*"]\n'
AGENT = ONE + '[[socket]]\nname = "agent"\nclearance = "public"\ntools = ["recall"]\n'
HAND_OVER = """
import os, sys
count = int(sys.argv[1])
os.environ["LISTEN_PID"], os.environ["LISTEN_FDS"] = str(os.getpid()), str(count)
os.execv(sys.executable, [sys.executable, "-m", "memoryd"])
"""


@pytest.fixture
def daemon(user_home: Path):
    sessions = user_home / "state" / "sessions"
    sessions.mkdir(parents=True, mode=0o700)
    (user_home / "state").chmod(0o700)
    append(sessions / "a.jsonl", native_owner("the crane is yellow"))
    with Daemon(user_home, ONE) as made:
        yield made


def configure(daemon: Daemon, text: str) -> None:
    Path(daemon.env["MEMORYD_CONFIG"]).write_text(text)


def sockets(daemon: Daemon) -> list[str]:
    return [each["name"] for each in daemon.ask("status")["sockets"]]


def test_c08_l10_sighup_takes_a_changed_configuration_over_in_the_same_process(
    daemon: Daemon,
) -> None:
    daemon.start().ask("sync")
    assert sockets(daemon) == ["memoryd"]
    configure(daemon, AGENT)
    for _ in range(3):  # several at once are one
        daemon.process.send_signal(signal.SIGHUP)
    daemon.told("RELOADING=1")
    daemon.told("READY=1")
    assert sockets(daemon) == ["memoryd", "agent"]
    daemon.ask("sync")
    with daemon.client("agent") as agent:
        assert [each["rows"] for each in agent.call("projects")["projects"]] == [1]
    configure(daemon, ONE)
    daemon.process.send_signal(signal.SIGHUP)
    for _ in range(
        3
    ):  # one that came while another was answered is answered once more, and changes nothing
        daemon.told("RELOADING=1")
        daemon.told("READY=1")
        if sockets(daemon) == ["memoryd"]:
            break
    assert sockets(daemon) == ["memoryd"]
    assert [path.name for path in (daemon.state / "run").iterdir()] == ["memoryd.sock"]
    assert daemon.stop() == 0
    assert list((daemon.state / "run").iterdir()) == []


def test_what_is_counted_since_the_start_goes_on_over_a_reload(daemon: Daemon) -> None:
    daemon.start()
    for _ in range(50):
        daemon.ask("status")
    configure(daemon, AGENT)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.told("RELOADING=1")
    daemon.told("READY=1")
    told = daemon.ask("status")
    assert len(told["sockets"]) == 2
    assert told["traffic"]["requests"] > 50
    assert told["traffic"]["connections"] == 1


def test_nobody_is_refused_while_a_configuration_is_taken_over(daemon: Daemon) -> None:
    daemon.start()
    path = daemon.state / "run" / "memoryd.sock"
    node = path.stat().st_ino
    configure(daemon, AGENT)
    daemon.process.send_signal(signal.SIGHUP)
    while not daemon.heard("READY=1"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))  # at no moment is there nobody who listens
    assert path.stat().st_ino == node
    assert sockets(daemon) == ["memoryd", "agent"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[index\n", "line 1"),
        ("[index]\nmax_clas = 'secret'\n", "max_clas`"),
        (
            ONE
            + '[[socket]]\nname = "b"\nclearance = "public"\ntools = ["recall"]\ngroup = "no-such-group"\n',
            "group",
        ),
    ],
)
def test_c02_a_configuration_that_cannot_be_used_is_not_taken_over(
    daemon: Daemon, text: str, problem: str
) -> None:
    daemon.start()
    configure(daemon, text)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.told("RELOADING=1")
    daemon.told("READY=1")
    (fault,) = daemon.ask("status")["faults"]
    assert problem in fault["what"]
    assert "--check-config" in fault["remedy"]
    assert sockets(daemon) == ["memoryd"]
    configure(daemon, ONE)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.told("RELOADING=1")
    daemon.told("READY=1")
    assert daemon.ask("status")["faults"] == []


def handed_over(daemon: Daemon, paths: list[Path], kind: int = socket.SOCK_STREAM):
    """Start the daemon as a manager does that has opened sockets for it."""
    opened = []
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.unlink(missing_ok=True)
        opened.append(socket.socket(socket.AF_UNIX, kind))
        opened[-1].bind(str(path))
        path.chmod(0o600)
        if kind == socket.SOCK_STREAM:
            opened[-1].listen(8)

    def give() -> None:
        spare = [os.dup(sock.fileno()) for sock in opened]
        for number, fd in enumerate(spare):
            os.dup2(fd, 3 + number, inheritable=True)

    daemon.launch(
        before=give,
        program=[sys.executable, "-c", HAND_OVER, str(len(paths))],
        close_fds=False,
    )
    return opened


def test_l14_a_socket_that_is_handed_over_is_served_and_left_at_the_end(daemon: Daemon) -> None:
    path = daemon.state / "run" / "memoryd.sock"
    (sock,) = handed_over(daemon, [path])
    daemon.told("READY=1")
    inode = path.stat().st_ino
    daemon.ask("sync")
    assert len(daemon.ask("recall", query="crane")["hits"]) == 1
    assert daemon.stop() == 0
    assert path.stat().st_ino == inode
    # Whoever connects now waits in the queue of the manager's socket until the daemon is there again.
    with socket.socket(socket.AF_UNIX) as early:
        early.connect(str(path))
    sock.close()


def test_l14_a_socket_is_handed_over_and_another_is_made_beside_it(daemon: Daemon) -> None:
    configure(daemon, AGENT)
    run = daemon.state / "run"
    (sock,) = handed_over(daemon, [run / "memoryd.sock"])
    daemon.told("READY=1")
    assert sockets(daemon) == ["memoryd", "agent"]
    configure(daemon, ONE)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.told("RELOADING=1")
    daemon.told("READY=1")
    assert sockets(daemon) == ["memoryd"]
    assert daemon.stop() == 0
    assert [each.name for each in run.iterdir()] == ["memoryd.sock"]
    sock.close()


@pytest.mark.parametrize("fault", ["another path", "a datagram socket", "too wide"])
def test_l14_what_cannot_be_served_is_refused(daemon: Daemon, fault: str) -> None:
    run = daemon.state / "run"
    path = run / ("other.sock" if fault == "another path" else "memoryd.sock")
    kind = socket.SOCK_DGRAM if fault == "a datagram socket" else socket.SOCK_STREAM
    (sock,) = handed_over(daemon, [path], kind)
    if fault == "too wide":
        daemon.kill()
        path.chmod(0o666)
        daemon.launch(
            before=lambda: os.dup2(os.dup(sock.fileno()), 3, inheritable=True) and None,
            program=[sys.executable, "-c", HAND_OVER, "1"],
            close_fds=False,
        )
    assert daemon.process.wait(READY_S) == 78
    last = daemon.said().splitlines()[-1]
    assert last.startswith("memoryd: ")
    assert {"another path": "no configured", "a datagram socket": "stream", "too wide": "0666"}[
        fault
    ] in last
    assert path.exists()
    path.unlink()  # its mode is the manager's
    sock.close()


def test_l05_the_manager_hears_that_all_is_well(daemon: Daemon) -> None:
    daemon.env["WATCHDOG_USEC"] = "400000"
    daemon.start()
    daemon.told("WATCHDOG=1")
    daemon.told("WATCHDOG=1")
    assert daemon.stop() == 0


def test_l12_the_manager_is_told_how_far_the_index_is(daemon: Daemon) -> None:
    daemon.start()
    daemon.ask("sync")
    daemon.told("STATUS=everything is read")


def test_a_signal_between_two_configurations_still_ends_it(daemon: Daemon) -> None:
    daemon.start()
    configure(daemon, AGENT)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(READY_S) in {0, 1}
    with pytest.raises(Unavailable):
        connect("memoryd", env=daemon.env)
