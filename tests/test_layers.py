"""Data flows downhill: the import contracts of pyproject.toml hold, and would notice if they did not."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIGHT = {"memoryd", "memoryd.errors", "memoryd.paths", "msgpack"}
HEAVY = {"apsw", "click", "msgspec", "rich", "structlog", "trio"}


def contracts(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the packages in `root`."""
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache", "pyproject.toml"],
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packages and their contracts, free to be spoilt."""
    for name in ("memoryd", "bxctl"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_import_contract_is_kept():
    done = contracts(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("memoryd/labels.py", "memoryd.config"),
        ("memoryd/index/__init__.py", "memoryd.serve"),
        ("memoryd/recall/__init__.py", "bxctl.main"),
        ("memoryd/fold.py", "memoryd.sources"),
        ("memoryd/client.py", "msgspec"),
        ("memoryd/web/app.py", "memoryd.index"),
        ("bxctl/status_views.py", "bxctl.watch"),
        ("memoryd/notes/ids.py", "memoryd.notes.desk"),
    ],
)
def test_an_import_uphill_or_sideways_is_noticed(copy: Path, low: str, high: str):
    file = copy / low
    file.write_text(file.read_text("utf-8") + f"\nimport {high}  # uphill\n", "utf-8")
    done = contracts(copy)
    assert done.returncode == 1, done.stdout
    assert "BROKEN" in done.stdout


def test_every_room_stands_in_the_contract():
    """A new room must be given its row, or its imports would go unchecked."""
    contract = (ROOT / "pyproject.toml").read_text("utf-8").split('id = "downhill"')[1]
    rooms = {path.stem for path in (ROOT / "memoryd").iterdir() if not path.name.startswith(".")}
    rooms -= {"__init__", "__pycache__", "py"}
    assert {room for room in rooms if f"memoryd.{room}" not in contract} == set()


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports; of `from memoryd import x`, ``memoryd.x``."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "memoryd":
            yield from (f"memoryd.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def test_the_client_names_only_light_imports():
    named = set(imported(ROOT / "memoryd" / "client.py"))
    assert {name for name in named if name.split(".")[0] not in sys.stdlib_module_names} <= LIGHT


def test_importing_the_client_loads_nothing_heavy():
    code = "import sys, memoryd.client; print(*sorted(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert HEAVY & set(done.stdout.split()) == set(), done.stderr
    assert "memoryd" in done.stdout.split()
