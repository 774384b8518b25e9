"""memoryd registered with the machine: systemd units and a shell's completion, shown, written, taken away."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import BXCTL


def told(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BXCTL), *words], capture_output=True, text=True, check=False, env={**os.environ, **env}
    )


def tree(home: Path) -> dict[str, str]:
    return {
        str(path.relative_to(home)): path.read_text()
        for path in sorted(home.rglob("*"))
        if path.is_file() or path.is_symlink()
    }


def test_systemd_gets_units_for_this_program_and_loses_them_with_their_links(
    user_home: Path,
) -> None:
    units = user_home / ".config" / "systemd" / "user"
    assert told("install", "systemd", "--dry-run").returncode == 0
    assert tree(user_home) == {}
    assert told("install", "systemd").returncode == 0
    service = (units / "memoryd.service").read_text()
    assert f'Environment="MEMORYD_HOME={user_home}/state"' in service
    assert f"ReadWritePaths={user_home}/state" in service.splitlines()
    program = Path(sys.executable).with_name("memoryd")
    assert f"ExecStart={program}" in service.splitlines()
    assert (
        f"ListenStream={user_home}/state/run/memoryd.sock" in (units / "memoryd.socket").read_text()
    )
    assert stat.S_IMODE((user_home / "state").stat().st_mode) == 0o700
    again = told("install", "systemd", "--json")
    assert [each["action"] for each in json.loads(again.stdout)["files"]] == ["unchanged"] * 2
    for wanted, name in (("default", "service"), ("sockets", "socket")):
        folder = units / f"{wanted}.target.wants"
        folder.mkdir()
        (folder / f"memoryd.{name}").symlink_to(units / f"memoryd.{name}")
        (folder / "other.service").symlink_to("/dev/null")
    gone = told("uninstall", "systemd", "--json")
    assert len(json.loads(gone.stdout)["files"]) == 4
    assert {Path(name).name for name in tree(user_home)} == {"other.service"}


def test_a_unit_that_its_owner_changed_is_neither_replaced_nor_removed(user_home: Path) -> None:
    told("install", "systemd")
    path = user_home / ".config" / "systemd" / "user" / "memoryd.service"
    changed = path.read_text().replace("Nice=5", "Nice=0")
    path.write_text(changed)
    refused = told("install", "systemd")
    assert (refused.returncode, path.read_text()) == (1, changed)
    assert "drop-in" in refused.stderr
    assert told("uninstall", "systemd").returncode == 0
    assert path.read_text() == changed
    assert not path.with_name("memoryd.socket").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion_and_loses_it(user_home: Path, shell: str) -> None:
    assert told("install", "completion", SHELL=f"/usr/bin/{shell}").returncode == 0
    ((path, text),) = tree(user_home).items()
    assert "_BXCTL_COMPLETE" in text
    assert shell in path
    assert told("uninstall", "completion").returncode == 0
    assert tree(user_home) == {}
    refused = told("install", "completion", SHELL="/bin/dash")
    assert refused.returncode == 2
    assert "--shell bash|zsh|fish" in refused.stderr
    assert told("install", "completion", "--shell", "csh").returncode == 2


def test_bash_completes_words_with_the_installed_script(user_home: Path) -> None:
    if (bash := shutil.which("bash")) is None:
        pytest.skip("there is no bash")
    told("install", "completion", "--shell", "bash")
    script = user_home / ".local" / "share" / "bash-completion" / "completions" / "bxctl"
    ask = (
        f'source "{script}"; COMP_WORDS=(bxctl mem); COMP_CWORD=1; _bxctl_completion bxctl mem bxctl; '
        'echo "${COMPREPLY[@]}"'
    )
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([bash, "-c", ask], capture_output=True, text=True, check=False, env=env)
    assert done.stdout.strip() == "memory"
