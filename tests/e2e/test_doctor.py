"""`bxctl doctor` on a real daemon: every check finds what it is for once that is broken, and nothing before."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from bxctl.context import Context
from bxctl.doctor import checks, folders, machine, service, stored
from bxctl.doctor.finding import Check, Scene
from bxctl.output import Output
from memoryd import clock
from tests.support.logs import dated, native_owner, native_session
from tests.support.running import Running, running

LOGS = {"one": dated(native_session("one"), native_owner("the zebra crossing"))}
OTHER_UID = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
[[socket]]
name = "agent"
clearance = "internal"
tools = ["recall"]
uids = [12345]
"""


@pytest.fixture
def here() -> Iterator[Running]:
    """Yield a daemon whose state the test may break."""
    with _daemon() as made:
        yield made


@pytest.fixture(scope="module")
def well() -> Iterator[Running]:
    """Yield a daemon that the tests of this module share and leave as it is."""
    with _daemon() as made:
        yield made


@contextmanager
def _daemon() -> Iterator[Running]:
    with running(LOGS) as made:
        with made.daemon.client() as owner:
            owner.call(
                "notes.create", path="/memories/internal/a.md", file_text="one\n", owner=True
            )
        yield made


def scene(here: Running) -> Scene:
    env = here.daemon.env
    return checks.scene(Context(env, Output(env, json=True, color="never"), None))


def found(here: Running, number: str, **changes: Any) -> tuple[str, str]:
    """Return what check `number` finds: its status and its detail."""
    check = next(check for check in checks.CHECKS if check.id == number)
    finding = checks.looked(check, replace(scene(here), **changes))
    assert (finding.remedy != "") == (finding.status in {"warn", "fail"})
    return finding.status, finding.detail


def test_on_a_well_daemon_nothing_fails_and_the_exit_code_says_so(well):
    told = well.bxctl("doctor", "--json")
    answer = json.loads(told.stdout)
    assert (told.returncode, answer["failed"]) == (0, [])
    assert [check["id"] for check in answer["checks"]] == [f"D{n}" for n in range(1, 18)]
    statuses = {check["id"]: check["status"] for check in answer["checks"]}
    assert {statuses[f"D{n}"] for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14)} == {"ok"}
    lines = well.bxctl("doctor").stdout.splitlines()
    assert sum(line.startswith(("ok", "warn", "fail", "skip")) for line in lines) == 17
    assert any(line.startswith("ok   D8  journal: ") for line in lines)


def test_a_daemon_that_is_down_fails_and_its_own_checks_are_skipped(here):
    here.daemon.stop()
    told = here.bxctl("doctor", "--json")
    assert told.returncode == 1
    answer = json.loads(told.stdout)
    assert answer["failed"] == ["D4"]
    down = {check["id"] for check in answer["checks"] if check["status"] == "skip"}
    assert down == {"D6", "D8", "D14", "D15"}


def test_d1_an_engine_without_secure_deletion_fails(well, monkeypatch):
    class Old(apsw.Connection):
        def execute(self, *args: Any, **more: Any) -> Any:
            if "secure-delete" in args[0]:
                raise apsw.SQLError
            return super().execute(*args, **more)

    monkeypatch.setattr(machine.apsw, "Connection", Old)
    assert found(well, "D1")[0] == "fail"


def test_d2_a_file_that_others_may_read_fails(here):
    (here.state / "key").chmod(0o644)
    assert found(here, "D2") == ("fail", f"others may read or write {here.state}/key")


def test_d2_a_file_of_somebody_else_fails(well, monkeypatch):
    monkeypatch.setattr(folders.os, "geteuid", lambda: os.getuid() + 1)
    status, detail = found(well, "D2")
    assert (status, detail.startswith("not yours: ")) == ("fail", True)


def test_d2_a_full_disk_or_a_far_one_is_warned_of(well, monkeypatch):
    class Full:
        free = 0

    monkeypatch.setattr(folders.shutil, "disk_usage", lambda _: Full)
    status, detail = found(well, "D2")
    assert (status, detail.startswith("0 MiB are free")) == ("warn", True)
    monkeypatch.setattr(folders, "_file_system", lambda _: "nfs4")
    assert found(well, "D2") == ("warn", "the state lies on nfs4")


def test_d3_a_wrong_a_changed_and_a_misplaced_configuration_are_told_apart(here, tmp_path):
    file = tmp_path / "memoryd.toml"
    env = {**here.daemon.env, "MEMORYD_CONFIG": str(file)}
    context = Context(env, Output(env, json=True, color="never"), None)

    def configuration(text: str) -> str:
        file.write_text(text)
        file.chmod(0o600)
        return service.configuration(checks.scene(context)).status

    assert configuration("[index]\nmax_clas = 'public'\n") == "fail"
    assert configuration("[index]\nmax_class = 'public'\n") == "warn"
    assert configuration("") == "ok"
    env["MEMORYD_CONFIG"] = str(here.state / "notes" / "memoryd.toml")
    file.rename(env["MEMORYD_CONFIG"])
    assert service.configuration(checks.scene(context)).status == "fail"


def test_d4_a_socket_that_was_taken_away_is_told_from_a_daemon_that_is_down(here):
    (here.state / "run" / "agent.sock").unlink()
    status, detail = found(here, "D4")
    assert (status, detail.startswith(f"process {here.daemon.process.pid} runs")) == ("fail", True)
    here.daemon.stop()
    status, detail = found(here, "D4")
    assert (status, detail.startswith("memoryd is not running")) == ("fail", True)


def test_d5_an_index_of_other_settings_and_one_that_is_gone_fail(here):
    here.daemon.stop()
    assert found(here, "D5")[0] == "ok"
    settings = scene(here).settings
    assert settings is not None
    other = replace(settings, epoch="0" * 64)
    assert found(here, "D5", settings=other) == (
        "fail",
        "the index was made under other settings",
    )
    settings.path.unlink()
    assert found(here, "D5") == ("fail", "the index is absent")


def test_d6_what_the_daemon_cannot_read_fails_with_its_own_remedy(here):
    (here.state / "overrides.jsonl").write_text("no entry\n")
    here.daemon.stop()
    here.daemon.start()
    status, detail = found(here, "D6")
    assert (status, "overrides.jsonl" in detail) == ("fail", True)


def test_d6_a_folder_that_cannot_be_listed_fails(well, monkeypatch):
    monkeypatch.setattr(service, "_unreadable", lambda folder: folder == well.state / "sessions")
    assert found(well, "D6") == ("fail", f"not readable: {well.state}/sessions")


def test_d7_a_row_that_is_missing_and_one_above_max_class_fail(here):
    here.daemon.stop()
    assert found(here, "D7") == ("ok", "2 rows, each where and what it should be")
    settings = scene(here).settings
    assert settings is not None
    assert found(here, "D7", settings=replace(settings, max_level=0))[0] == "fail"
    index = apsw.Connection(str(settings.path))
    index.execute("DELETE FROM row_0")
    index.close()
    assert found(here, "D7") == ("fail", "rows are missing of class 0")


def test_d8_a_changed_journal_fails(here):
    assert found(here, "D8")[0] == "ok"
    journal = here.state / "journal" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"internal", b"Internal", 1))
    assert found(here, "D8")[0] == "fail"


def test_d9_a_link_among_the_notes_fails(here):
    (here.state / "notes" / "internal" / "link.md").symlink_to("/etc/passwd")
    assert found(here, "D9") == ("fail", "no notes of yours: internal/link.md")


def test_d10_a_kernel_that_does_not_tell_who_connects_fails(well, monkeypatch):
    assert found(well, "D10")[0] in {"ok", "warn"}

    class Mute(socket.socket):
        def getsockopt(self, *args: Any) -> Any:
            if args[1] in refused:
                raise OSError
            return super().getsockopt(*args)

    monkeypatch.setattr(machine.socket, "socketpair", lambda: (Mute(socket.AF_UNIX), Mute()))
    refused = {machine._SO_PEERPIDFD}
    assert found(well, "D10")[0] == "warn"
    refused = {socket.SO_PEERCRED}
    assert found(well, "D10")[0] == "fail"


def test_d11_a_lower_socket_for_our_own_uid_is_warned_of():
    with running(LOGS) as same:
        assert found(same, "D11")[0] == "warn"
    with running(LOGS, OTHER_UID) as apart:
        assert found(apart, "D11") == ("ok", "every lower socket is for another uid")


def test_d12_a_clock_that_went_back_is_warned_of_and_one_that_is_not_set_fails(here, monkeypatch):
    ahead = clock.now_ms() / 1_000 + 3_600
    os.utime(here.state / "key", (ahead, ahead))
    assert found(here, "D12")[0] == "warn"
    monkeypatch.setattr(machine.clock, "now_ms", lambda: 0)
    assert found(here, "D12")[0] == "fail"


def kernel(here: Running, folder: Path, **told: str) -> Path:
    """Return a folder that tells of the daemon's process as the kernel would."""
    process = folder / str(here.daemon.process.pid)
    process.mkdir(parents=True)
    well = {
        "status": "Umask:\t0077\n",
        "environ": "HOME=/home/ada\0",
        "cmdline": "memoryd\0",
        "limits": "Max core file size        0       0   bytes\nMax open files    4096  4096  files\n",
    }
    for name, content in {**well, **told}.items():
        (process / name).write_text(content)
    inotify = folder / "sys/fs/inotify/max_user_watches"
    inotify.parent.mkdir(parents=True)
    inotify.write_text("3\n")
    (folder / "swaps").write_text("Filename Type\n/dev/sda2 partition\n/dev/zram0 partition\n")
    return folder


def test_d13_few_files_and_few_watches_are_warned_of(well, tmp_path):
    status, detail = found(well, "D13", proc=kernel(well, tmp_path / "a"))
    assert (status, "are to be watched, of 3" in detail) == ("warn", True)
    few = "Max open files            256     256     files\n"
    assert found(well, "D13", proc=kernel(well, tmp_path / "b", limits=few)) == (
        "warn",
        "256 files can be open at once",
    )


def test_d14_what_waits_and_what_has_expired_is_told(here):
    over = "---\nexpires: 2020-01-01\n---\nold\n"
    with here.daemon.client() as owner:
        owner.call("notes.create", path="/memories/internal/old.md", file_text=over, owner=True)
    assert found(here, "D14") == ("warn", "expired: /memories/internal/old.md")
    told = scene(here).status
    assert told is not None
    waits = {**told, "notes": {**told["notes"], "pending": 2}}
    assert found(here, "D14", status=waits) == ("warn", "2 proposed edits wait for you")


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({}, "ok"),
        ({"status": "Umask:\t0022\n"}, "fail"),
        ({"limits": "Max core file size        unlimited unlimited bytes\n"}, "fail"),
        ({"environ": "A=b\0GITHUB_TOKEN=ghp_" + "a1B2" * 9 + "\0"}, "warn"),
        ({"cmdline": "memoryd\0--token\0ghp_" + "a1B2" * 9 + "\0"}, "warn"),
    ],
)
def test_d15_what_could_give_the_process_away_is_told(well, tmp_path, told, status):
    finding = machine.privacy(replace(scene(well), proc=kernel(well, tmp_path / "p", **told)))
    assert finding.status == status
    assert "ghp_" not in finding.detail


def test_d16_swap_on_a_disk_is_told(well, tmp_path):
    assert found(well, "D16", proc=kernel(well, tmp_path / "p")) == (
        "ok",
        "swap on /dev/sda2 may hold what was read; encrypt it",
    )


def test_d17_what_only_memoryd_has_is_told_with_the_command_that_copies_it(well, tmp_path):
    status, detail = found(well, "D17")
    assert (status, "`bxctl backup FOLDER`" in detail) == ("ok", True)
    (tmp_path / "key").write_bytes(b"k" * 2_048)
    (tmp_path / "notes").symlink_to(tmp_path / "elsewhere")
    there = replace(scene(well), home=tmp_path)
    assert stored.backup(there).status == "warn"
    (tmp_path / "notes").unlink()
    assert stored.backup(there).detail.startswith("1 files, 2 KiB, exist only here")


def test_a_check_that_stumbles_has_failed_and_does_not_hide_the_others(well):
    def stumble(_: Scene) -> Any:
        raise OSError

    finding = checks.looked(Check("D0", "none", stumble), scene(well))
    assert (finding.status, finding.detail) == ("fail", "the check itself failed (OSError)")
    assert stored.rows(scene(well)).status == "ok"
