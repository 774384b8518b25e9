"""The wheel, installed as users install it on the oldest and the newest Python here, is the whole program.

What a person does then is what docs/getting-started.md says, typed with those programs in an unpacked source archive.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from etc.share import COMPLETIONS
from tests.support.samples import ROOT
from tests.support.stranger import Stranger

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("package")]
EXTRAS = ("mcp", "starlette", "hypercorn.trio", "memoryd.web.serving", "memoryd.mcp.server")
NEEDED = (3, 11)


class Package(NamedTuple):
    """What is shipped: the wheel, and the unpacked source archive."""

    wheel: Path
    source: Path


class Installed(NamedTuple):
    """One installation: where its programs are found, its own Python, and how to be rid of it."""

    programs: Path
    python: Path
    share: Path
    rid: list[object]
    folder: Path
    env: dict[str, str]


def pythons() -> dict[tuple[int, int], Path]:
    """Return the Pythons of this machine that memoryd can run on, by version: this one, the path's, pyenv's."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    places = [*map(Path, os.environ.get("PATH", "").split(":"))]
    places += sorted((home / ".pyenv" / "versions").glob("*/bin"))
    found = {
        (3, int(name[1])): path
        for place in places
        if place.is_dir()
        for path in place.glob("python3.*")
        if (name := re.fullmatch(r"python3\.(\d+)", path.name)) and ".venv" not in path.parts
    }
    found[sys.version_info[:2]] = Path(sys.executable)
    return {at: path for at, path in sorted(found.items()) if at >= NEEDED}


PYTHONS = pythons()
TRIED = sorted({min(PYTHONS), max(PYTHONS)})


def run(argv: list[object], **more: object) -> str:
    done = subprocess.run(
        list(map(str, argv)), capture_output=True, text=True, check=False, cwd="/", **more
    )
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """Build both, as `python -m build` would: by the backend that pyproject.toml names."""
    folder = tmp_path_factory.mktemp("package")
    build = f"""
import os; os.chdir({str(ROOT)!r})
from hatchling import build
build.build_sdist({str(folder)!r})
build.build_wheel({str(folder)!r})
"""
    run([sys.executable, "-m", "venv", folder / "builder"])
    builder = folder / "builder" / "bin" / "python"
    [backend] = re.findall(r'requires = \["([^"]+)"\]', (ROOT / "pyproject.toml").read_text())
    run([builder, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", backend])
    run([builder, "-c", build])
    [wheel], [archive] = folder.glob("memoryd-*.whl"), folder.glob("memoryd-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return Package(wheel, folder / archive.name.removesuffix(".tar.gz"))


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pipx and uv; the test is skipped where they cannot be had."""
    folder = tmp_path_factory.mktemp("tools")
    run([sys.executable, "-m", "venv", folder])
    argv = [folder / "bin/python", "-m", "pip", "install", "--quiet", "pipx", "uv"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pipx and uv cannot be had here: {done.stderr.strip().splitlines()[-1]}")
    return folder / "bin"


def by_pip(folder: Path, python: Path, wheel: Path, tools: Path, env: dict[str, str]) -> Installed:
    run([python, "-m", "venv", folder / "venv"])
    there = folder / "venv" / "bin"
    pip = [there / "python", "-m", "pip", "--disable-pip-version-check"]
    constraint = ["--constraint", ROOT / "constraints.txt"]
    run([*pip, "install", "--quiet", *constraint, f"{wheel}[mcp,web]"], env=env)
    gone = [*pip, "uninstall", "--quiet", "--yes", "memoryd"]
    return Installed(there, there / "python", folder / "venv/share", gone, folder, env)


def by_pipx(folder: Path, python: Path, wheel: Path, tools: Path, env: dict[str, str]) -> Installed:
    env = env | {
        "PIPX_HOME": str(folder / "pipx"),
        "PIPX_BIN_DIR": str(folder / "bin"),
        "PIPX_MAN_DIR": str(folder / "man"),
    }
    run([tools / "pipx", "install", "--python", python, f"{wheel}[mcp,web]"], env=env)
    assert (folder / "man/man1/bxctl.1").exists(), "pipx shows the manual pages to man"
    there = folder / "pipx/venvs/memoryd"
    gone = [tools / "pipx", "uninstall", "memoryd"]
    return Installed(folder / "bin", there / "bin/python", there / "share", gone, folder, env)


def by_uv(folder: Path, python: Path, wheel: Path, tools: Path, env: dict[str, str]) -> Installed:
    env = env | {
        "UV_TOOL_DIR": str(folder / "uv"),
        "UV_TOOL_BIN_DIR": str(folder / "bin"),
        "UV_CACHE_DIR": str(folder.parent / "uv-cache"),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    run([tools / "uv", "tool", "install", "--python", python, f"{wheel}[mcp,web]"], env=env)
    there = folder / "uv/memoryd"
    gone = [tools / "uv", "tool", "uninstall", "memoryd"]
    return Installed(folder / "bin", there / "bin/python", there / "share", gone, folder, env)


INSTALLERS = {"pip": by_pip, "pipx": by_pipx, "uv": by_uv}


@pytest.fixture(
    params=[(name, at) for at in TRIED for name in INSTALLERS],
    ids=lambda param: f"{param[0]}-{param[1][0]}.{param[1][1]}",
)
def installed(request, package, tools, tmp_path, user_home) -> Iterator[Installed]:
    """The wheel with its extras, in an empty environment."""
    name, at = request.param
    env = {**os.environ, "HOME": str(user_home)}
    env.pop("PYTHONPATH", None)
    made = INSTALLERS[name](tmp_path, PYTHONS[at], package.wheel, tools, env)
    version = run([made.python, "-c", "import sys; print(*sys.version_info[:2])"])
    assert version.split() == [str(part) for part in at]
    return made


def test_what_is_installed_is_whole_runs_as_the_page_says_and_leaves_nothing(
    installed, package, user_home
):
    before = files(user_home)  # pip asks rustc for its version, whose shim leaves a file
    for name in ("bxctl", "memoryd"):
        told = run([installed.programs / name, "--version"], env=installed.env)
        assert re.fullmatch(rf"{name} \d+\.\d+\.\d+\n", told)
    for path in ("man/man1/bxctl.1", "man/man1/memoryd.1", *COMPLETIONS.values()):
        assert (installed.share / path).is_file()
    run([installed.python, "-c", f"import {', '.join(EXTRAS)}"], env=installed.env)
    demonstrated(installed, package, user_home)
    with ExitStack() as rest:
        stranger = Stranger(user_home, rest, installed.programs, package.source)
        stranger.follows("getting-started.md")
        shutil.rmtree(user_home / ".claude")
        shutil.rmtree(user_home / ".codex")
    for what in ("completion", "systemd"):
        env = {**installed.env, "SHELL": "/bin/bash"}
        run([installed.programs / "bxctl", "install", what], env=env)
        run([installed.programs / "bxctl", "uninstall", what], env=env)
    assert files(user_home) == before
    run(installed.rid, env=installed.env)
    assert [
        path
        for path in installed.folder.rglob("*")
        if re.search(r"memoryd|bxctl", path.name) and path.suffix != ".lock"
    ] == []


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.is_dir()}


def demonstrated(installed: Installed, package: Package, home: Path) -> None:
    """Run the demonstration of the source archive from what is installed, as `make demo` does."""
    env = {**installed.env, "TMPDIR": "/tmp", "HOME": str(home)}
    env.pop("MEMORYD_HOME", None)
    told = run([installed.python, package.source / "examples/demo.py"], env=env, timeout=120)
    assert "invented sessions" in told
    assert "done    the throw-away folder is deleted" in told


def test_the_source_archive_has_what_the_makefile_needs(package):
    makefile = (package.source / "Makefile").read_text("utf-8")
    for name in ("README.md", "constraints.txt", "pyproject.toml", "etc/mutate.py", ".ci/run"):
        assert (package.source / name).is_file()
    modules = re.findall(r"python -m (bench|tests)((?:\.\w+)*)", makefile)
    assert modules
    for room, rest in modules:
        module = package.source / f"{room}{rest}".replace(".", "/")
        assert module.is_dir() or module.with_suffix(".py").is_file()
    assert not [path for path in package.source.rglob("*") if path.suffix in {".pyc", ".sqlite3"}]
