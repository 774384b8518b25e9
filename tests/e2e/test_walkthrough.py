"""docs/getting-started.md as a stranger types it: each command on a throw-away home, each line that is shown.

A block of ``console`` holds commands after ``$`` and below each what it prints; ``…`` in a line stands for anything,
a line of its own for any lines. What serves (`memoryd`, `memoryd web`) runs on until the end, as in another terminal.
The section "Install" is what tests/e2e/test_package.py does.
"""

import re
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 60
SERVING = {"memoryd", "memoryd web"}
NOT_HERE = ("pipx ", "uv ", "python3 -m venv ")
"""Commands of "Install" that would leave something."""


def steps(page: str) -> list[tuple[str, list[str]]]:
    """Return each command of a page with the lines that are shown below it."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def shown(lines: list[str]) -> re.Pattern[str]:
    """Return what the lines stand for."""
    parts = [
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in lines
    ]
    return re.compile("".join(parts))


class Stranger:
    """Somebody with an empty home who types, in the folder of a checkout."""

    def __init__(self, home: Path, rest: ExitStack) -> None:
        here = Path(sys.executable).parent
        self.env = {
            "HOME": str(home), "PATH": f"{here}:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC",
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        self.rest = rest

    def does(self, command: str) -> str:
        """Run a command and return what a terminal would show of it; of what serves, the lines up to now."""
        if command in SERVING:
            return self.rest.enter_context(self._serving(command))
        done = subprocess.run(
            ["/bin/bash", "-c", command], cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=LIMIT_S,
        )  # fmt: skip
        nothing = "bxctl: nothing found" in done.stdout
        assert done.returncode == int(nothing), (command, done.stdout)
        return done.stdout

    @contextmanager
    def _serving(self, command: str) -> Iterator[str]:
        words = command.split()
        words += ["--port", "0"] if "web" in words else []  # the usual port may be somebody else's
        process = subprocess.Popen(
            words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        try:
            with selectors.DefaultSelector() as ready:
                ready.register(process.stdout, selectors.EVENT_READ)
                assert ready.select(LIMIT_S), f"{command} says nothing"
            lines = iter(process.stdout.readline, "")
            yield next(line for line in lines if "serving" in line or "token=" in line)
        finally:
            process.terminate()
            assert process.wait(LIMIT_S) == 0
            process.stdout.close()


@pytest.fixture
def stranger(user_home: Path) -> Iterator[Stranger]:
    with ExitStack() as rest:
        yield Stranger(user_home, rest)


def test_the_first_ten_minutes_go_as_the_page_says(stranger, user_home):
    pytest.importorskip("starlette", reason="the page has the extra web installed")
    typed = [step for step in steps("getting-started.md") if not step[0].startswith(NOT_HERE)]
    assert len(typed) > 15
    for command, lines in typed:
        if command.startswith("rm -r ~/.local"):
            stranger.rest.close()  # "Stop memoryd."
        printed = stranger.does(command)
        assert shown(lines).fullmatch(printed), f"$ {command}\n{printed}"
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
    typed = steps("labels.md")
    assert typed
    for command, lines in typed:
        printed = stranger.does(command)
        assert shown(lines).fullmatch(printed), f"$ {command}\n{printed}"


def test_a_backup_brings_everything_back_and_ids_stay(stranger, user_home):
    with ExitStack() as first:
        before = Stranger(user_home, first)
        for command in (
            "mkdir -p ~/.claude && cp -r examples/sessions/claude/projects ~/.claude/",
            "memoryd",
            "bxctl memory sync",
            "bxctl memory notes create public/MEMORY.md --text 'Deploys happen on Tuesdays.'",
            "bxctl memory forget --session 8b6c2d10-77aa-4f3e-b1c9-1d2e3f405162 --yes",
        ):
            before.does(command)
        dumped = before.does("bxctl memory dump")
        hits = before.does("bxctl memory search deploy")
    (
        user_home / ".local/state/memoryd/index/memory.sqlite3"
    ).unlink()  # not in the copy, and not missed
    for command, lines in steps("operations.md"):
        printed = stranger.does(command)
        assert shown(lines).fullmatch(printed), f"$ {command}\n{printed}"
    assert stranger.does("bxctl memory dump") == dumped
    assert stranger.does("bxctl memory search deploy") == hits
    assert "Tuesdays" in stranger.does("bxctl memory notes view public/MEMORY.md")
