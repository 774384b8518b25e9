"""A backup through a real daemon, restored onto an empty state folder: the same answers, and no more."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd import clock
from memoryd.backup import manifest, restore, taking
from memoryd.backup.taking import Source
from memoryd.errors import BadRequest, Busy, Conflict, IOFailed, Unavailable
from memoryd.lessons import store
from tests.support.classroom import Script, text
from tests.support.daemon import Daemon
from tests.support.modes import too_wide
from tests.support.mounts import inside, needs_mounts
from tests.support.running import BXCTL

CONFIG = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
"""


def bxctl(daemon: Daemon, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BXCTL, *argv], env=daemon.env, capture_output=True, text=True, timeout=180, check=False
    )


def session(name: str) -> Script:
    command, at = f"npm run build:{name}", name.translate(str.maketrans("012", "abc"))
    script = Script(name).owner("the build fails")
    script.fail(command, text=f"src/main.ts(3,5): error TS2304: Cannot find name '{at}'.")
    return script.edit().good(command).end()


def plant(user_home: Path) -> None:
    sessions = user_home / "state" / "sessions"
    sessions.mkdir(parents=True, mode=0o700)
    (user_home / "state").chmod(0o700)
    gone = Script("gone").owner("quince jam").fail("deploy quince", text="error: quince refused")
    (sessions / "gone.jsonl").write_text(text(gone.lines))
    for n in range(3):
        (sessions / f"s{n}.jsonl").write_text(text(session(f"s{n}").lines))


def asked(daemon: Daemon) -> dict[str, Any]:
    """Return what must be the same afterwards."""
    with daemon.client() as owner:
        owner.call("sync", lessons=True, deadline_ms=120_000)
        hits = owner.call("recall", query="build", limit=50, text=True)["hits"]
        return {
            "hits": sorted(hits, key=lambda hit: str(hit["id"])),
            "quince": owner.call("recall", query="quince", limit=50)["hits"],
            "sessions": owner.call("sessions")["sessions"],
            "audit": owner.call("lessons.audit"),
            "learned": owner.call("lessons.query", query="TS2304")["lessons"],
            "log": owner.call("notes.log"),
            "notes": [hit["ts"] for hit in owner.call("recall", query="2", kinds=["note"])["hits"]],
            "faults": owner.call("notes.verify")["faults"],
            "lines": owner.call("notes.verify")["lines"],
        }


def _one_byte_differs(target: Path, home: Path) -> None:
    """See that each file that differs is refused by its name, before anything is written."""
    names = ["home/lessons.sqlite3", "home/journal/journal.jsonl", "home/key", manifest.FILE]
    for name in names:
        path = target / name
        good = path.read_bytes()
        path.write_bytes(good[:-3] + bytes([good[-3] ^ 1]) + good[-2:])
        with pytest.raises(IOFailed, match=f"^{name} of the backup is damaged"):
            restore(target, home, None)
        path.write_bytes(good)
    kept = (target / "home/key").read_bytes()
    (target / "home/key").unlink()
    with pytest.raises(IOFailed, match=r"^home/key of the backup"):
        restore(target, home, None)
    (target / "home/key").write_bytes(kept)
    (target / "home/key").chmod(0o600)
    assert [path.name for path in home.parent.glob("*state*")] == []


@pytest.fixture
def lived(user_home: Path) -> Iterator[Daemon]:
    """A daemon that has learned, keeps two notes, and was told to forget."""
    plant(user_home)
    with Daemon(user_home, CONFIG) as daemon:
        daemon.start()
        daemon.ask("sync", lessons=True)
        for number in (1, 2):
            made = bxctl(
                daemon, "memory", "notes", "create", "--text", f"{number}", f"internal/{number}.md"
            )
            assert made.returncode == 0, made.stderr
        bxctl(daemon, "memory", "notes", "edit", "internal/1.md")
        forgot = bxctl(daemon, "memory", "forget", "--session", "gone", "--yes")
        assert forgot.returncode == 0, forgot.stderr
        yield daemon


def test_a_backup_of_a_running_daemon_is_restored_to_the_same_answers(
    lived: Daemon, user_home: Path
) -> None:
    before, target = asked(lived), user_home / "copy"
    took = bxctl(lived, "backup", str(target), "--json")
    assert took.returncode == 0, took.stderr
    assert json.loads(took.stdout)["files"] > 5
    assert too_wide(target) == []
    assert b"quince refused" not in b"".join(
        path.read_bytes()
        for path in target.rglob("*")
        if path.is_file() and path.name != "gone.jsonl"
    )
    assert before["hits"]
    assert len(before["notes"]) == 1
    assert before["learned"]
    assert before["quince"] == []

    busy = bxctl(lived, "restore", str(target))
    assert (busy.returncode, "runs already" in busy.stderr) == (75, True)
    lived.stop()
    full = bxctl(lived, "restore", str(target), "--json")
    assert (full.returncode, json.loads(full.stderr)["code"]) == (1, "conflict")

    (user_home / "state").rename(user_home / "old")
    _one_byte_differs(target, user_home / "state")
    (user_home / "memoryd.toml").unlink()
    done = bxctl(lived, "restore", str(target), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["configured"] is True
    assert (user_home / "memoryd.toml").read_text() == CONFIG
    assert too_wide(user_home / "state") == []
    lived.start()
    assert asked(lived) == before


def _source(lived: Daemon) -> Source:
    return Source(lived.state, None, "0")


@pytest.mark.slow
def test_an_edit_during_the_copy_is_in_it_whole(lived: Daemon, user_home: Path) -> None:
    rounds = [0]

    def edit() -> None:
        rounds[0] += 1
        if rounds[0] == 1:
            bxctl(lived, "memory", "notes", "create", "--text", "late", "internal/late.md")

    taking.take(_source(lived), user_home / "copy", edit)
    assert rounds[0] >= 2
    copy = user_home / "copy" / "home"
    for folder in ("notes", "journal"):
        ours = {path.relative_to(copy) for path in (copy / folder).rglob("*") if path.is_file()}
        theirs = {
            path.relative_to(lived.state): path.read_bytes()
            for path in (lived.state / folder).rglob("*")
            if path.is_file() and path.name != "lock"
        }
        assert ours == theirs.keys()
        assert {path: (copy / path).read_bytes() for path in ours} == theirs


@pytest.mark.slow
def test_what_is_forgotten_during_the_copy_is_not_in_it(lived: Daemon, user_home: Path) -> None:
    asked_once: list[str] = []

    def forget() -> None:
        if not asked_once:
            asked_once.append(bxctl(lived, "memory", "forget", "--session", "s1", "--yes").stdout)

    assert lived.ask("lessons.query", query="TS2304")["lessons"]
    taking.take(_source(lived), user_home / "copy", forget)
    assert asked_once
    connection = store.opened(user_home / "copy" / "home" / store.NAME)
    counts = dict(connection.execute("SELECT session, count(*) FROM call GROUP BY session"))
    connection.close()
    assert (counts.get("s1", 0), counts.get("s0", 0) > 0) == (0, True)


@pytest.mark.slow
def test_a_tombstone_whose_lesson_still_stands_is_carried_out_in_the_copy(
    lived: Daemon, user_home: Path
) -> None:
    lived.kill()
    line = {
        "kind": "forget",
        "source": "native",
        "root": str(lived.state / "sessions"),
        "log": "s0.jsonl",
        "act": "a",
        "ts": clock.rfc3339(clock.now_ms()),
    }
    with (lived.state / "overrides.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    taking.take(_source(lived), user_home / "copy")
    connection = store.opened(user_home / "copy" / "home" / store.NAME)
    found = {str(one) for (one,) in connection.execute("SELECT DISTINCT session FROM call")}
    connection.close()
    assert ("s0" in found, "s1" in found) == (False, True)


@pytest.mark.slow
def test_a_state_that_never_holds_still_is_no_backup(
    lived: Daemon, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "ROUNDS", 4)
    count = iter(range(100))

    def stir() -> None:
        (lived.state / "proposals").mkdir(exist_ok=True, mode=0o700)
        path = lived.state / "proposals" / "x.md"
        path.write_text("x" * next(count))
        path.chmod(0o600)

    with pytest.raises(Busy, match="faster"):
        taking.take(_source(lived), user_home / "copy", stir)
    assert not (user_home / "copy").exists()


def test_links_are_not_followed_and_a_folder_in_use_is_refused(
    user_home: Path, tmp_path: Path
) -> None:
    state = user_home / "state"
    state.mkdir(mode=0o700)
    with pytest.raises(Unavailable):
        taking.take(Source(state, None, "0"), tmp_path / "none")
    (state / "key").write_bytes(b"k" * 32)
    (state / "notes").mkdir()
    (tmp_path / "outside").write_text("not yours")
    (state / "notes" / "link.md").symlink_to(tmp_path / "outside")
    (state / "retrospectives").symlink_to(tmp_path)
    source = Source(state, None, "0")
    found = taking.take(source, tmp_path / "copy")
    assert sorted(found.files) == ["home/key"]
    for target, why in ((tmp_path / "copy", "not empty"), (state / "in", "lies in")):
        with pytest.raises(BadRequest, match=why):
            taking.take(source, target)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadRequest, match="no folder"):
        taking.take(source, tmp_path / "link")


def test_a_backup_cut_short_is_none_and_a_restore_cut_short_can_be_repeated(
    user_home: Path, tmp_path: Path
) -> None:
    state = user_home / "state"
    state.mkdir(mode=0o700)
    (state / "key").write_bytes(b"k" * 32)
    taking.take(Source(state, None, "0"), tmp_path / "copy")
    again = tmp_path / "new"
    (tmp_path / ".new.restoring" / "notes").mkdir(parents=True)
    restore(tmp_path / "copy", again, None)
    assert sorted(path.name for path in again.iterdir()) == ["key"]
    with pytest.raises(Conflict):
        restore(tmp_path / "copy", again, None)
    shutil.rmtree(again)
    (tmp_path / "copy" / manifest.FILE).unlink()
    with pytest.raises(IOFailed, match="no whole backup"):
        restore(tmp_path / "copy", again, None)
    assert not again.exists()


@needs_mounts
def test_a_mount_point_is_refused_with_what_to_do(user_home: Path, tmp_path: Path) -> None:
    state, volume = user_home / "state", tmp_path / "volume"
    for folder in (state, volume):
        folder.mkdir(mode=0o700)
    (state / "key").write_bytes(b"k" * 32)
    taking.take(Source(state, None, "0"), tmp_path / "copy")
    env = os.environ | {"HOME": str(user_home), "MEMORYD_HOME": str(volume)}
    mounting = f"mount -t tmpfs -o size=1m tmpfs {shlex.quote(str(volume))}"
    restoring = [str(BXCTL), "restore", str(tmp_path / "copy")]
    done = inside(mounting, restoring, env)
    assert done.returncode == BadRequest.exit_code
    assert "is a mount point" in done.stderr
    assert "set MEMORYD_HOME to a folder below it" in done.stderr
    env["MEMORYD_HOME"] = str(volume / "memoryd")
    below = inside(mounting, restoring, env)
    assert below.returncode == 0, below.stderr
