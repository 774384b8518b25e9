"""Make `docs/faults.md`: what can go wrong, what is expected then, and the test that proves it.

In: the rows of ``etc/faults/*.toml``, one file a section; the names of the tests below ``tests/``, where
``test_t07_...`` or ``test_..._t07_t09`` proves rows T07 and T09. Out: the page. Run it after a row or the
name of such a test has changed: ``python etc/faults.py``; a test compares, and counts.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "faults.md"
ROWS = {"t": 35, "s": 22, "r": 19, "p": 29, "n": 13, "c": 10, "l": 20, "q": 9, "v": 12, "u": 10}
"""How many rows each section has, in the order of the page."""
MOST_EXCUSED = 15
_ID = re.compile(rf"_([{''.join(ROWS)}]\d\d)(?=_|$)")

HEAD = """\
# Faults

What can go wrong, what memoryd does then, and the test that proves it. This page is made by
`python etc/faults.py` from `etc/faults/*.toml` and from the names of the tests: one that carries a row's id
(`test_t07_...`, `test_..._t07`) proves that row. A row without a test has its reason instead.
"""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of rows.

    `rows`: id → what happens, and what is expected. `excused`: id → why it cannot happen to this program.
    `waits`: ids that have neither a test nor a reason yet.
    """

    title: str
    rows: dict[str, tuple[str, str]]
    waits: list[str] = []
    excused: dict[str, str] = {}


def sections() -> dict[str, Section]:
    """Return each section by its letter, in the order of the page."""
    folder = Path(__file__).with_suffix("")
    return {
        letter: msgspec.convert(
            tomllib.loads((folder / f"{letter}.toml").read_text("utf-8")), Section
        )
        for letter in ROWS
    }


def ids(name: str) -> list[str]:
    """Return the ids of the rows that a test of this name proves."""
    return [found.upper() for found in _ID.findall(name)]


def proofs() -> dict[str, list[str]]:
    """Return the tests of each id, as ``tests/FILE::NAME``, in the order of their files."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in _tests(path):
            for one in ids(name):
                found.setdefault(one, []).append(f"{path.relative_to(ROOT)}::{name}")
    return found


def _tests(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test_"
        ):
            yield node.name


def page() -> str:
    """Return the text of the page."""
    found = proofs()
    return HEAD + "".join(
        line for section in sections().values() for line in _section(section, found)
    )


def _section(section: Section, found: dict[str, list[str]]) -> Iterator[str]:
    yield f"\n## {section.title}\n\n| | what happens | what is expected | proved by |\n|---|---|---|---|\n"
    for one, (fault, expected) in section.rows.items():
        yield f"| {one} | {fault} | {expected} | {_proof(section, one, found)} |\n"


def _proof(section: Section, one: str, found: dict[str, list[str]]) -> str:
    if one in section.excused:
        return f"cannot happen: {section.excused[one]}"
    tests = [test.partition("::") for test in found.get(one, ())]
    return "<br>".join(f"`{name}` in {path}" for path, _, name in tests) or "not yet"


def main() -> None:
    """Write the page and say which rows still wait."""
    PAGE.write_text(page(), "utf-8")
    found = proofs()
    for section in sections().values():
        waits = [one for one in section.rows if one not in found and one not in section.excused]
        print(f"{section.title}: {len(section.rows)} rows, waiting: {waits}")


if __name__ == "__main__":
    main()
