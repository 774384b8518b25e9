"""The service as its unit confines it: the daemon does its work with all that taken away.

No service manager runs here, so each line of the unit is put in place by hand: mounts and network by unshare(1),
capabilities and privileges by setpriv(1), writable code by prctl(2). Which system calls it makes is told by strace(1).
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bxctl import units
from tests.support.daemon import READY_S, Daemon
from tests.support.logs import append, native_owner
from tests.support.samples import ROOT

WORDS = ("@system-service", "@privileged")
PREPARE = """
set -e
mount --make-rprivate /
mkdir -p "$1/state"
mount --bind "$1/state" "$1/state"
mount --bind "$1" "$1"; mount --bind "$1/state" "$1/state"
mount -o remount,bind,ro "$1"
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$2" -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(65, 1, 0, 0, 0)  # PR_SET_MDWE: no memory that is written and run (6.3 and newer)
os.execv(sys.executable, [sys.executable, "-m", "memoryd"])'
"""


def line(name: str) -> str:
    """Return what the unit says of a setting."""
    return dict(
        each.split("=", 1)
        for each in units.text(units.SERVICE, units.Where()).splitlines()
        if "=" in each
    )[name]


@pytest.fixture
def daemon(user_home: Path):
    sessions = user_home / "state" / "sessions"
    sessions.mkdir(parents=True, mode=0o700)
    (user_home / "state").chmod(0o700)
    append(sessions / "a.jsonl", native_owner("the crane is yellow"))
    with Daemon(user_home) as made:
        yield made


def works(daemon: Daemon) -> None:
    """See that it reads, answers, rebuilds, and keeps a note and a lesson."""
    with daemon.client() as owner:
        owner.call("sync")
        assert len(owner.call("recall", query="crane")["hits"]) == 1
        owner.call("reindex", deadline_ms=120_000)
        assert len(owner.call("recall", query="crane")["hits"]) == 1
        owner.call("notes.create", path="/memories/public/a.md", file_text="a note", owner=True)
        owner.call("lessons.save", type="rule", content="keep the crane greased", owner=True)
    assert daemon.ask("status")["faults"] == []


def test_l19_it_works_with_what_the_unit_leaves_it(daemon: Daemon) -> None:
    assert line("ProtectHome") == "read-only"
    assert (
        line("PrivateNetwork") == line("NoNewPrivileges") == line("MemoryDenyWriteExecute") == "yes"
    )
    assert line("CapabilityBoundingSet") == ""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("needs root, unshare and setpriv")
    shell = ["sh", "-c", PREPARE, "sh", str(daemon.home), sys.executable]
    daemon.launch(program=["unshare", "--mount", "--net", "--ipc", *shell])
    daemon.told("READY=1")
    with pytest.raises(OSError, match="Read-only"):
        Path(f"/proc/{daemon.process.pid}/root{daemon.home}/beside").write_text("not here")
    works(daemon)
    assert daemon.stop() == 0


def allowed() -> set[str]:
    """Return the system calls that the unit's filter lets through."""
    names: dict[str, set[str]] = {}
    told = subprocess.run(
        ["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True
    )
    for each in told.stdout.splitlines():
        name = each.strip()
        if each and not each.startswith(" "):
            names[here := name] = set()
        elif name and not name.startswith("#"):
            names[here].add(name)

    def flat(group: str) -> set[str]:
        return {
            call for each in names[group] for call in (flat(each) if each[0] == "@" else {each})
        }

    return ((flat("@system-service") | flat("@default")) - flat("@privileged")) | flat("@chown")


@pytest.mark.slow
def test_l19_every_system_call_that_it_makes_passes_the_filter(
    daemon: Daemon, tmp_path: Path
) -> None:
    if not shutil.which("strace") or not shutil.which("systemd-analyze"):
        pytest.skip("needs strace and systemd-analyze")
    trace = tmp_path / "trace"
    daemon.launch(
        program=["strace", "-f", "-qq", "-o", str(trace), sys.executable, "-m", "memoryd"]
    )
    daemon.told("READY=1")
    works(daemon)
    (child,) = (
        Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    )
    os.kill(int(child), 15)
    assert daemon.process.wait(READY_S) == 0
    made = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(errors="replace"), re.MULTILINE))
    assert {"openat", "accept4", "execve"} <= made
    assert made - allowed() == set()


def test_l19_the_unit_is_one_that_systemd_takes_and_calls_safe(
    tmp_path: Path, user_home: Path
) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "memoryd").symlink_to("/bin/true")
    where = units.Where(program=str(tmp_path / "bin" / "memoryd"))
    for name in (units.SERVICE, units.SOCKET):
        (tmp_path / name).write_text(units.text(name, where))
    env = {**os.environ, "XDG_RUNTIME_DIR": str(user_home)}
    paths = [str(tmp_path / name) for name in (units.SERVICE, units.SOCKET)]
    told = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", *paths],
        capture_output=True, text=True, check=False, env=env,
    )  # fmt: skip
    # Units of other programs on this machine are looked at as well, and may be at fault.
    ours = ("memoryd", str(tmp_path))
    assert [line for line in told.stderr.splitlines() if any(one in line for one in ours)] == []
    told = subprocess.run(
        ["systemd-analyze", "--user", "security", "--offline=true", paths[0]],
        capture_output=True, text=True, check=True, env=env,
    )  # fmt: skip
    (score,) = re.findall(r"exposure level for memoryd.service: ([\d.]+)", told.stdout)
    assert float(score) < 2.0


@pytest.mark.parametrize("name", [units.SERVICE, units.SOCKET])
def test_every_line_that_confines_has_its_reason_in_the_documentation(name: str) -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    for each in units.text(name, units.Where()).splitlines():
        key, told, _ = each.partition("=")
        if told and not each.startswith("#"):
            assert f"`{key}`" in page, key
