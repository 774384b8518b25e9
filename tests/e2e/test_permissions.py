"""Nobody else gets in: sockets, files, folders and keys against programs of another user.

The daemon runs as one user and the stranger as another, neither of them root (`tests.support.users`).
"""

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoryd import clock
from tests.support.daemon import READY_S
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
from tests.support.users import OWNER, STRANGER, OwnedDaemon, give, missing, run_as

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

NOTE = "/memories/internal/a.md"
SOCKETS = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]

[[socket]]
name = "open"
clearance = "public"
tools = ["recall"]
path = "{home}/open/m.sock"

[[source]]
path = "{home}/logs"
"""
CONNECT = """
import socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.settimeout(100)
try:
    peer.connect(sys.argv[1])
    peer.sendall(bytes.fromhex("940007a568656c6c6f90"))
    print("answered" if peer.recv(65536) else "closed")
except PermissionError:
    print("refused")
except ConnectionError:
    print("closed")
"""
TRY = """
import fcntl, json, os, sys
got = []
def attempt(what, path, work):
    try:
        work(path)
        got.append(what + " " + path)
    except PermissionError:
        pass
    except OSError as error:
        got.append(what + " " + path + " " + error.strerror)
for path in json.load(sys.stdin):
    if path.endswith("/"):
        attempt("listed", path, os.listdir)
        attempt("made a file in", path, lambda p: os.open(p + "planted", os.O_CREAT | os.O_WRONLY))
        attempt("made a link in", path, lambda p: os.symlink("/etc/passwd", p + "planted"))
        attempt("renamed", path, lambda p: os.rename(p.rstrip("/"), p.rstrip("/") + "-away"))
    else:
        attempt("read", path, lambda p: os.open(p, os.O_RDONLY | os.O_NONBLOCK))
        attempt("wrote", path, lambda p: os.open(p, os.O_WRONLY | os.O_NONBLOCK))
        attempt("locked", path, lambda p: fcntl.flock(os.open(p, os.O_RDWR), fcntl.LOCK_EX))
        attempt("cut", path, lambda p: os.truncate(p, 0))
        attempt("removed", path, os.unlink)
        attempt("opened up", path, lambda p: os.chmod(p, 0o666))
print(json.dumps(got))
"""


@contextmanager
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="md-") as folder:
        yield Path(folder)


@contextmanager
def made(config: str = "") -> Iterator[OwnedDaemon]:
    """A daemon of the owner's over one log, not yet started."""
    with home() as folder:
        write(
            folder / "state/sessions/a.jsonl",
            native_session("s1"),
            native_owner("does the crane need grease"),
            native_call("read", {"path": "crane.txt"}, "c1"),
            native_result("c1", "a zabaglione of rust", "private"),
            native_assistant("the crane is rusty"),
        )
        (folder / "logs").mkdir()
        with OwnedDaemon(folder, config.replace("{home}", str(folder))) as daemon:
            yield daemon


@pytest.fixture(scope="module")
def standing() -> Iterator[OwnedDaemon]:
    """One daemon with something of everything in its state; its parent's umask is 0."""
    with made(SOCKETS) as daemon:
        daemon.start(before=lambda: os.umask(0) and None).ask("sync", deadline_ms=120_000)
        daemon.ask("notes.create", path=NOTE, file_text="grease it\n", owner=True)
        daemon.ask("recall", query="crane")
        daemon.ask("lessons.save", type="decision", content="grease it weekly", owner=True)
        daemon.ask("forget", ids=[daemon.ask("recall", query="rusty")["hits"][0]["id"]])
        daemon.ask("reindex")
        daemon.ask("sync", deadline_ms=120_000)
        yield daemon
        assert daemon.stop() == 0


def attacked(paths: list[Path]) -> list[str]:
    """Return what a stranger got done to any of `paths`."""
    import subprocess

    from tests.support.users import PYTHON, prefix

    names = [f"{path}/" if path.is_dir() else str(path) for path in paths]
    done = subprocess.run(
        [*prefix(STRANGER), PYTHON, "-c", TRY],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        timeout=180,
    )
    got: list[str] = json.loads(done.stdout)
    return got


def refused_start(daemon: OwnedDaemon) -> str:
    """Start it, see it refuse with exit code 78, and return its one line."""
    daemon.launch()
    assert daemon.process.wait(READY_S) == 78
    (line,) = [line for line in daemon.said().splitlines() if not line.startswith("{")]
    assert line.startswith("memoryd: ")
    return line


def until(daemon: OwnedDaemon, condition: Any) -> dict[str, Any]:
    """Ask for the status until it meets `condition`."""
    ends = clock.monotonic() + READY_S
    while not condition(told := daemon.ask("status")):
        assert clock.monotonic() < ends, told
        daemon.ask("sync", deadline_ms=120_000)
    found: dict[str, Any] = told
    return found


def test_the_programs_of_these_tests_are_no_root_s(standing: OwnedDaemon) -> None:
    status = Path(f"/proc/{standing.process.pid}/status").read_text()
    assert f"Uid:\t{OWNER}\t{OWNER}\t{OWNER}\t{OWNER}" in status
    assert "CapEff:\t0000000000000000" in status
    said = run_as(STRANGER, "import os; print(os.getresuid(), os.getgroups())").stdout
    assert said == f"({STRANGER}, {STRANGER}, {STRANGER}) []\n"


def test_a_stranger_is_kept_from_every_socket_by_its_folder_p21(standing: OwnedDaemon) -> None:
    assert run_as(STRANGER, CONNECT, standing.socket()).stdout == "refused\n"
    assert run_as(OWNER, CONNECT, standing.socket()).stdout == "answered\n"


def test_a_stranger_in_the_folder_is_kept_out_by_the_socket_s_mode_p21(
    standing: OwnedDaemon,
) -> None:
    path = standing.home / "open/m.sock"
    path.parent.chmod(0o755)
    assert run_as(STRANGER, CONNECT, path).stdout == "refused\n"
    assert run_as(OWNER, CONNECT, path).stdout == "answered\n"


def test_a_stranger_at_a_socket_that_stands_open_is_closed_unread_p21(
    standing: OwnedDaemon,
) -> None:
    path = standing.home / "open/m.sock"
    before = standing.ask("status")["traffic"]
    path.parent.chmod(0o755)
    path.chmod(0o666)
    try:
        assert run_as(STRANGER, CONNECT, path).stdout == "closed\n"
        assert run_as(0, CONNECT, path).stdout == "closed\n"  # root is another user, too
        assert run_as(OWNER, CONNECT, path).stdout == "answered\n"
    finally:
        path.chmod(0o600)
        path.parent.chmod(0o700)
    traffic = standing.ask("status")["traffic"]
    assert traffic["foreign_peers"] == before["foreign_peers"] + 2


def test_no_file_is_wider_than_its_owner_and_none_is_another_s_v01(standing: OwnedDaemon) -> None:
    tree = [standing.state, *standing.state.rglob("*")]
    names = {path.relative_to(standing.state).as_posix() for path in tree}
    assert names >= {
        *("key", "memoryd.lock", "reads.jsonl", "lessons.sqlite3", "overrides.jsonl"),
        *("journal/key", "journal/HEAD", "journal/journal.jsonl", "notes/internal/a.md"),
        *("index/memory.sqlite3", "index/memory.sqlite3-wal", "run/memoryd.sock"),
    }
    assert too_wide(standing.state) == []
    assert {path.lstat().st_uid for path in tree} == {OWNER}


def test_what_stands_open_is_found_by_these_tests() -> None:
    with home() as folder:
        folder.chmod(0o755)
        (folder / "read").write_text("x")
        (folder / "read").chmod(0o644)
        (folder / "all").mkdir()
        (folder / "all").chmod(0o777)
        assert attacked([folder / "read", folder / "all"]) == [
            f"read {folder}/read",
            f"listed {folder}/all/",
            f"made a file in {folder}/all/",
            f"made a link in {folder}/all/ File exists",
        ]


def test_a_stranger_can_do_nothing_to_any_file_or_folder(standing: OwnedDaemon) -> None:
    tree = [standing.state, *sorted(standing.state.rglob("*"))]
    assert attacked(tree) == []


def test_a_stranger_can_do_nothing_even_where_the_folders_stand_open(
    standing: OwnedDaemon,
) -> None:
    """Files are closed by their own mode, too."""
    folders = [path for path in (standing.state, *standing.state.rglob("*")) if path.is_dir()]
    files = [path for path in standing.state.rglob("*") if path.is_file()]
    for folder in folders:
        folder.chmod(0o755)
    try:
        assert attacked(files) == []
    finally:
        for folder in folders:
            folder.chmod(0o700)


def test_notes_that_a_stranger_owns_are_named_and_never_read(standing: OwnedDaemon) -> None:
    folder = standing.state / "notes/internal"
    planted = folder / "planted.md"
    planted.write_text("believe me\n")
    planted.chmod(0o644)
    os.chown(planted, STRANGER, STRANGER)
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / "b.md").write_text("believe me too\n")
    give(theirs, STRANGER)
    theirs.chmod(0o755)
    (theirs / "b.md").chmod(0o644)
    try:
        standing.ask("sync", deadline_ms=120_000)
        assert standing.ask("recall", query="believe")["hits"] == []
        for path in ("planted.md", "theirs/b.md"):
            view = standing.ask("notes.view", path=f"/memories/internal/{path}")
            assert view["error"] in ("check_failed", "not_found"), view
        faults = {one["where"]: one["what"] for one in standing.ask("notes.verify")["faults"]}
        assert "is not ours" in faults["internal/planted.md"]
        assert "internal/theirs" in faults
        edit = standing.ask(
            "notes.create", path="/memories/internal/theirs/c.md", file_text="x\n", owner=True
        )
        assert edit["error"] == "check_failed"
        assert not (theirs / "c.md").exists()
    finally:
        planted.unlink()
        (theirs / "b.md").unlink()
        theirs.rmdir()


def test_a_log_that_a_stranger_owns_is_not_believed(standing: OwnedDaemon) -> None:
    records = (
        native_session("s9"),
        native_call("read", {"path": "x"}, "c1"),
        native_result("c1", "planted", "public"),
        native_assistant("the stranger says quinoa"),
    )
    log = write(standing.state / "sessions/theirs.jsonl", *records)
    os.chown(log, STRANGER, STRANGER)
    log.chmod(0o644)
    own = write(standing.state / "sessions/own.jsonl", *records[:1], *records[1:])
    give(own, OWNER)
    own.chmod(0o600)
    try:
        standing.ask("sync", deadline_ms=120_000)
        steps = standing.ask("explain", log="sessions/own.jsonl".rpartition("/")[2])
        assert steps["class"] == "public"
        assert standing.ask("explain", log="theirs.jsonl")["class"] != "public"
    finally:
        log.unlink()
        own.unlink()


def test_a_log_that_may_not_be_read_is_named_and_read_once_it_may_t27(
    standing: OwnedDaemon,
) -> None:
    shut = write(standing.home / "logs/shut.tmp", native_session("s5"), native_owner("halyard"))
    give(shut, OWNER)
    shut.chmod(0)
    log = shut.rename(shut.with_name("shut.jsonl"))  # never there for anybody to read
    told = until(standing, lambda told: told["skipped"])
    assert [(one["path"], one["why"]) for one in told["skipped"]] == [
        (str(log), "permission denied")
    ]
    log.chmod(0o600)
    until(standing, lambda told: not told["skipped"])
    assert [hit["snippet"] for hit in standing.ask("recall", query="halyard")["hits"]] == [
        "halyard"
    ]
    log.chmod(0)
    append(log, native_owner("bowline"))  # as root, whom modes do not keep out
    told = until(standing, lambda told: told["faults"])
    assert [fault["what"] for fault in told["faults"]] == [
        "a log cannot be read (EACCES): shut.jsonl"
    ]
    assert standing.ask("recall", query="crane")["hits"]
    log.chmod(0o600)
    until(standing, lambda told: not told["faults"])
    assert standing.ask("recall", query="bowline")["hits"]


def test_a_state_folder_of_somebody_else_is_refused_and_left_v02() -> None:
    with made() as daemon:
        os.chown(daemon.state, STRANGER, STRANGER)
        daemon.state.chmod(0o777)
        before = sorted(daemon.state.rglob("*"))
        assert "belongs to another user" in refused_start(daemon)
        assert sorted(daemon.state.rglob("*")) == before
        assert stat.S_IMODE(daemon.state.stat().st_mode) == 0o777


def test_a_folder_of_sockets_of_somebody_else_is_refused() -> None:
    with made() as daemon:
        run = daemon.state / "run"
        run.mkdir()
        os.chown(run, STRANGER, STRANGER)
        run.chmod(0o777)
        assert "belongs to another user" in refused_start(daemon)
        assert list(run.iterdir()) == []


@pytest.mark.parametrize("who", ["a stranger's", "writable for the group", "writable for all"])
def test_a_configuration_that_others_could_write_is_refused_c06(who: str) -> None:
    with made("[index]\n") as daemon:
        file = Path(daemon.env["MEMORYD_CONFIG"])
        if who == "a stranger's":
            os.chown(file, STRANGER, STRANGER)
            file.chmod(0o644)
        else:
            file.chmod(0o620 if "group" in who else 0o602)
        line = refused_start(daemon)
        assert "can be written by others" in line
        assert "chmod go-w" in line
        assert not (daemon.state / "index").exists()


@pytest.mark.parametrize("name", ["key", "journal/key"])
def test_a_key_that_somebody_else_owns_is_refused(name: str) -> None:
    with made() as daemon:
        path = daemon.state / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        give(path.parent, OWNER)
        path.write_bytes(b"k" * 32)
        os.chown(path, STRANGER, STRANGER)
        path.chmod(0o644)
        if name == "key":
            assert "belongs to another user" in refused_start(daemon)
        else:
            daemon.start()
            faults = [fault["what"] for fault in daemon.ask("status")["faults"]]
            assert any("notes cannot be edited" in what for what in faults)
        assert path.read_bytes() == b"k" * 32


def test_a_key_that_others_could_read_is_closed_and_told_v02() -> None:
    with made() as daemon:
        path = daemon.state / "key"
        path.write_bytes(b"k" * 32)
        give(path, OWNER)
        path.chmod(0o644)
        daemon.state.chmod(0o755)
        daemon.start()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(daemon.state.stat().st_mode) == 0o700
        said = [json.loads(line) for line in daemon.said().splitlines()]
        told = {line["path"] for line in said if line["event"] == "was open to others"}
        assert told == {str(path), str(daemon.state)}
        assert daemon.stop() == 0
