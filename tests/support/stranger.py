"""Somebody with an empty home who types what a page says, and compares what is printed with what it shows.

A block of ``console`` holds commands after ``$`` and below each what it prints; ``…`` in a line stands for anything,
a line of its own for any lines. What serves (`memoryd`, `memoryd web`) runs on until the end, as in another terminal.
"""

import re
import selectors
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.samples import ROOT

LIMIT_S = 180
SERVING = {"memoryd", "memoryd web"}
NOT_HERE = ("pipx ", "uv ", "python3 -m venv ")
"""Commands of "Install": what tests/e2e/test_package.py is for."""


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
    """Whoever types in `folder`, a checkout, with the programs that lie in `programs`."""

    def __init__(self, home: Path, rest: ExitStack, programs: Path, folder: Path = ROOT) -> None:
        self.folder = folder
        self.env = {
            "HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC",
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        self.rest = rest

    def does(self, command: str) -> str:
        """Run a command and return what a terminal would show of it; of what serves, the lines up to now."""
        if command in SERVING:
            return self.rest.enter_context(self._serving(command))
        done = subprocess.run(
            ["/bin/bash", "-c", command], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
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

    def follows(self, page: str) -> None:
        """Type all that a page says but its installing, memoryd stopped before its folder is removed."""
        for command, lines in steps(page):
            if command.startswith(NOT_HERE):
                continue
            if command.startswith("rm -r ~/.local"):
                self.rest.close()
            printed = self.does(command)
            assert shown(lines).fullmatch(printed), f"$ {command}\n{printed}"
