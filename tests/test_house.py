"""The rules of the house that no linter knows: sizes, names, reasons, and no waiting in tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES_OF_A_MODULE = 400
LINES_OF_A_TEST_MODULE = 700
LINES_OF_A_FUNCTION = 60
NAMES_THAT_SAY_NOTHING = {"common", "data", "handler2", "helpers", "manager", "misc", "utils"}
EXCUSE = re.compile(
    r"#\s*(?:type:\s*ignore|noqa)(?:\[[\w, -]+\]|:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?(.*)"
)

PACKAGES = [*sorted((ROOT / "memoryd").rglob("*.py")), *sorted((ROOT / "bxctl").rglob("*.py"))]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PROGRAMS = [*sorted((ROOT / "bench").rglob("*.py")), *sorted((ROOT / "examples").rglob("*.py"))]
EVERY = [*PACKAGES, *TESTS, *PROGRAMS]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", EVERY, ids=name)
def test_a_module_is_no_longer_than_a_reader_bears(path: Path):
    most = LINES_OF_A_TEST_MODULE if path in TESTS else LINES_OF_A_MODULE
    assert len(path.read_text("utf-8").splitlines()) <= most


@pytest.mark.parametrize("path", EVERY, ids=name)
def test_a_function_fits_on_a_screen(path: Path):
    long = {f.name: f.end_lineno - f.lineno + 1 for f in functions(path) if f.end_lineno}
    assert {at: size for at, size in long.items() if size > LINES_OF_A_FUNCTION} == {}


@pytest.mark.parametrize("path", [*PACKAGES, *PROGRAMS], ids=name)
def test_a_module_says_what_it_is_for(path: Path):
    text = path.read_text("utf-8")
    assert not text.strip() or ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("path", TESTS, ids=name)
def test_no_test_waits_by_the_clock_q09(path: Path):
    calls = [
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)
    ]
    slept = [call.lineno for call in calls if ast.unparse(call.func) in {"time.sleep", "sleep"}]
    assert slept == [], "wait for the event itself, or use trio's autojump_clock"


@pytest.mark.parametrize("path", EVERY, ids=name)
def test_every_exception_from_the_tools_gives_its_reason(path: Path):
    lines = path.read_text("utf-8").splitlines()
    bare = [
        number
        for number, line in enumerate(lines, 1)
        if (found := EXCUSE.search(line)) and path.name != "test_house.py"
        if not re.search(r"\w{2}", found[1].partition("#")[2] or found[1])
    ]
    assert bare == []


def test_nothing_is_left_for_later():
    words = ("TO" + "DO", "FIX" + "ME", "raise Not" + "ImplementedError")
    left = [
        f"{name(path)}:{number}: {word}"
        for path in EVERY
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for word in words
        if re.search(rf"\b{word}\b", line)
    ]
    assert left == []


def test_names_say_what_they_name():
    assert [name(path) for path in EVERY if path.stem in NAMES_THAT_SAY_NOTHING] == []


def test_no_room_is_empty():
    rooms = [path.parent for path in PACKAGES if path.name == "__init__.py"]
    assert [name(room) for room in rooms if len(list(room.iterdir())) < 2] == []
