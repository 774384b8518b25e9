"""Help that helps, completion, and imports that stay light."""

import subprocess
import sys

import click
import pytest

from bxctl import shell
from bxctl.grammar import COMMON


def walked(command: click.Command, path: tuple[str, ...] = ()):
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from walked(command.get_command(click.Context(command), name), (*path, name))


COMMANDS = dict(walked(shell.root()))
WORDS = [pytest.param(path, id=" ".join(path) or "bxctl") for path in COMMANDS]


@pytest.mark.parametrize("path", WORDS)
def test_every_help_says_what_it_does_and_shows_examples(bxctl, path):
    ran = bxctl(*path, "--help")
    assert ran.code == 0
    assert not ran.err
    assert ran.out.startswith(f"Usage: {' '.join(('bxctl', *path))} ")
    examples = ran.out.split("\nExamples:\n")[1]
    assert examples.startswith("  bxctl ")
    for option in COMMON:
        assert f"--{option.name}" in ran.out


@pytest.mark.parametrize("path", WORDS)
def test_every_help_fits_80_columns(bxctl, path):
    ran = bxctl(*path, "--help", COLUMNS="200")
    assert [line for line in ran.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("path", WORDS)
def test_every_example_is_a_command_that_exists(path):
    command = COMMANDS[path]
    examples = command.examples if isinstance(command, shell.Lazy) else command.described.examples
    assert examples
    for line, does in examples:
        assert does
        import shlex

        words = shlex.split(line.split(" | ")[0].split(" > ")[0])
        words = words[1:] if "=" in words[0] else words  # a variable for this one command
        assert words[0] == "bxctl"
        assert isinstance(shell.parse(words[1:]), shell.Call)


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_is_click_s_own(bxctl, shell_name):
    ran = bxctl(_BXCTL_COMPLETE=f"{shell_name}_source")
    assert ran.code == 0
    assert "_BXCTL_COMPLETE" in ran.out


def test_completion_knows_words_of_options():
    from click.shell_completion import ShellComplete

    complete = ShellComplete(shell.root(), {}, "bxctl", "_BXCTL_COMPLETE")
    kinds = complete.get_completions(["memory", "search", "--kind"], "t")
    assert [item.value for item in kinds] == ["tool_call"]
    assert {item.value for item in complete.get_completions(["memory"], "s")} >= {"search", "show"}


HEAVY = {"apsw", "click", "msgspec", "rich", "structlog", "trio"}
LIGHT_CODE = """
import sys
from bxctl import main
main.run({argv!r}, {{"HOME": "/nowhere", "MEMORYD_HOME": "/nowhere/else"}})
print("\\n", *{{name.partition(".")[0] for name in sys.modules}})
"""


def loaded(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_bxctl_loads_nothing_heavy():
    code = "import sys, bxctl, bxctl.main; print(*{name.partition('.')[0] for name in sys.modules})"
    names = loaded(code)
    assert "bxctl" in names
    assert names & HEAVY == set()


def test_help_loads_click_and_nothing_else_heavy():
    assert loaded(LIGHT_CODE.format(argv=["memory", "search", "--help"])) & HEAVY == {"click"}


def test_a_log_that_is_taken_for_an_option_is_told_how_to_be_said(bxctl):
    ran = bxctl("memory", "label", "-home-ada-shop/s1.jsonl", "--explain")
    assert ran.code == 2
    assert "stands after --" in ran.err
