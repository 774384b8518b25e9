"""The wheel, installed into an empty environment as a user's tools would, is the whole program."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from etc.share import COMPLETIONS
from tests.support.samples import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, make an environment without anything of ours, install the wheel there."""
    folder = tmp_path_factory.mktemp("package")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT])
    [wheel] = folder.glob("memoryd-*.whl")
    venv.create(folder / "venv", with_pip=True)
    there = [folder / "venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
    run([*there, "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel])
    return folder / "venv"


def run(argv: list[object], **more: object) -> str:
    done = subprocess.run(
        list(map(str, argv)), capture_output=True, text=True, check=False, cwd="/", **more
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_programs_know_their_version(environment):
    assert re.fullmatch(r"bxctl \d+\.\d+\.\d+\n", run([environment / "bin/bxctl", "--version"]))
    assert re.fullmatch(r"memoryd \d+\.\d+\.\d+\n", run([environment / "bin/memoryd", "--version"]))


def test_manual_pages_and_completion_are_where_shells_look(environment):
    for path in ("man/man1/bxctl.1", "man/man1/memoryd.1", *COMPLETIONS.values()):
        assert (environment / "share" / path).is_file()


def test_the_page_is_in_it_and_says_which_extra_it_needs(environment, tmp_path):
    assert list(environment.glob("lib/*/site-packages/memoryd/web/page/index.html"))
    env = {**os.environ, "HOME": str(tmp_path), "MEMORYD_HOME": str(tmp_path / "state")}
    argv = [environment / "bin/memoryd", "web"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 69
    assert done.stderr == (
        "memoryd: memoryd web needs hypercorn and starlette, not installed here;"
        " pip install 'memoryd[web]'\n"
    )


def test_the_demonstration_runs_from_it(environment, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "HOME": str(home), "TMPDIR": "/tmp"}
    env.pop("MEMORYD_HOME", None)
    told = run([environment / "bin/python", ROOT / "examples/demo.py"], env=env, timeout=120)
    assert "invented sessions" in told
    assert "done    the throw-away folder is deleted" in told
    assert list(home.iterdir()) == []
