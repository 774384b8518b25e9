"""The pages that a stranger follows, typed on a throw-away home: each command, each line that is shown."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.stranger import Stranger, shown, steps

PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def stranger(user_home: Path) -> Iterator[Stranger]:
    with ExitStack() as rest:
        yield Stranger(user_home, rest, PROGRAMS)


def test_the_first_ten_minutes_go_as_the_page_says(stranger, user_home):
    pytest.importorskip("starlette", reason="the page has the extra web installed")
    assert len(steps("getting-started.md")) > 20
    stranger.follows("getting-started.md")
    left = [str(path.relative_to(user_home)) for path in user_home.rglob("*") if path.is_file()]
    assert [name for name in left if not name.startswith((".claude/projects", ".codex"))] == []


def test_a_line_stands_for_itself_and_dots_for_anything():
    assert shown(["a …", "…", "z"]).fullmatch("a b\nc\nd\nz\n")
    assert shown(["a.", "…"]).fullmatch("a.\n")
    assert not shown(["a."]).fullmatch("ab\n")
    assert not shown([]).fullmatch("anything\n")


def test_the_worked_session_of_the_labels_page_goes_as_it_says(stranger):
    for command in (
        "mkdir -p ~/.claude && cp -r examples/sessions/claude/projects ~/.claude/",
        "memoryd",
        "bxctl memory sync",
    ):
        stranger.does(command)
    assert len(steps("labels.md")) > 4
    stranger.follows("labels.md")
