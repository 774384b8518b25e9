"""The page of promises names tests that exist, and code that refuses says what to do."""

import ast
import re
from pathlib import Path

import pytest

from etc import faults
from memoryd import errors

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/reliability.md").read_text("utf-8")
ROWS = {
    match[1]: match[0] for match in re.finditer(r"^\| (P\d+) \|.*\|$", PAGE, flags=re.MULTILINE)
}
TESTS = {name for path in (ROOT / "tests").rglob("test_*.py") for name in faults._tests(path)}
REFUSALS = {error.__name__ for error in (*errors.ALL, errors.ConfigError)} | {"Damaged"}
NOTHING_TO_DO = {
    "Cancelled": "its asker wanted just that",
    "Internal": "the peer is told an id instead, and how to find it in the log",
}


def test_there_are_ten_promises() -> None:
    assert list(ROWS) == [f"P{number}" for number in range(1, 11)]


@pytest.mark.parametrize("promise", ROWS)
def test_each_promise_names_its_proofs_and_all_of_them_exist(promise: str) -> None:
    named = re.findall(r"`(test_\w+)`", ROWS[promise])
    assert len(named) >= 3
    assert [name for name in named if name not in TESTS] == []


def without_remedy(path: Path) -> list[str]:
    """Return where a module makes a refusal and says nothing of what to do."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        says = any(keyword.arg in ("remedy", None) for keyword in node.keywords)
        if name in REFUSALS - NOTHING_TO_DO.keys() and node.args and not says:
            found.append(f"{path.name}:{node.lineno} {name}")
    return found


def test_every_refusal_in_the_code_says_what_to_do() -> None:
    modules = [path for room in ("memoryd", "bxctl") for path in (ROOT / room).rglob("*.py")]
    found = [where for path in modules for where in without_remedy(path)]
    assert [where for where in found if not where.startswith("desk.py")] == []  # a folder's Pending
