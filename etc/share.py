"""Make what is shipped beside the program: manual pages, completion for bash, zsh and fish, systemd units.

In: the command line's own tables (`bxctl.grammar`), the daemon's help. Out: files below ``etc/share/``, which the
wheel installs below ``share/``. Run it after changing a command: ``python etc/share.py``; a test compares.
"""

import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from bxctl import fast, services, shell, units
from bxctl.grammar import COMMON, GROUP_HELP, TREE, Command, Option, Tree
from memoryd import __main__ as daemon

SHARE = Path(__file__).with_name("share")
COMPLETIONS = {
    "bash": "bash-completion/completions/bxctl",
    "zsh": "zsh/site-functions/_bxctl",
    "fish": "fish/vendor_completions.d/bxctl.fish",
}


def files() -> Iterator[tuple[str, str]]:
    """Yield each file's path below ``share/`` and its text."""
    for name, path in COMPLETIONS.items():
        yield path, services.completion_text(name)
    for name in (units.SERVICE, units.SOCKET):
        yield f"systemd/user/{name}", units.text(name, units.Where())
    yield "man/man1/bxctl.1", "\n".join(_bxctl()) + "\n"
    yield "man/man1/memoryd.1", "\n".join(_memoryd()) + "\n"


def _bxctl() -> Iterator[str]:
    """Yield the lines of bxctl(1), in the roff of man(7)."""
    yield from _head("BXCTL", "bxctl", "ask memoryd, the memory of the agents on this machine")
    yield from (".SH SYNOPSIS", r"\fBbxctl\fR [\fIOPTION\fR...] \fICOMMAND\fR [\fIARGUMENT\fR...]")
    yield ".SH DESCRIPTION"
    yield from _text(shell.ROOT_HELP)
    yield ".SH OPTIONS OF EVERY COMMAND"
    yield from _options(COMMON)
    yield ".SH COMMANDS"
    yield from _commands("bxctl", TREE)
    yield ".SH SEE ALSO"
    yield r"\fBmemoryd\fR(1)"


def _commands(path: str, tree: Tree) -> Iterator[str]:
    for name, node in tree.items():
        here = f"{path} {name}"
        if isinstance(node, dict):
            yield from (f".SS {_roff(here)}", *_text(GROUP_HELP[name]))
            yield from _commands(here, node)
        else:
            yield from _command(here, fast.find(node, name))


def _command(path: str, command: Command) -> Iterator[str]:
    argument = command.argument
    words = "" if argument is None else f" \\fI{argument.name}\\fR{'...' if argument.many else ''}"
    options = " [\\fIOPTION\\fR...]" if command.options else ""
    yield from (".TP", f"\\fB{_roff(path)}\\fR{options}{words}")
    yield from _text(command.help, within=True)
    if command.options:
        yield from (".RS", *_options(command.options), ".RE")
    if command.examples:
        yield from (".RS", ".PP", "Examples:", ".nf")
        yield from (f"  {_roff(line)}    # {_roff(what)}" for line, what in command.examples)
        yield from (".fi", ".RE")


def _options(options: tuple[Option, ...]) -> Iterator[str]:
    for option in options:
        value = f" \\fI{_roff(option.metavar)}\\fR" if option.metavar else ""
        yield from (".TP", f"\\fB\\-\\-{_roff(option.name)}\\fR{value}", _roff(option.help))


def _memoryd() -> Iterator[str]:
    """Yield the lines of memoryd(1)."""
    yield from _head("MEMORYD", "memoryd", "the memory of the agents on this machine")
    yield from (".SH SYNOPSIS", r"\fBmemoryd\fR [\fB\-\-check\-config\fR | \fB\-\-version\fR]")
    yield from (".br", r"\fBmemoryd web\fR [\fIOPTION\fR...]")
    yield ".SH DESCRIPTION"
    yield from _text(daemon.ABOUT)
    yield from (".SH OPTIONS", ".TP", r"\fB\-\-check\-config\fR", daemon.CHECK_CONFIG)
    yield from (".TP", r"\fB\-\-version\fR", "print the version and stop")
    yield from (".SH THE GLASS BOX", *_text(daemon.ABOUT_WEB))
    for name, metavar, about in daemon.WEB_OPTIONS:
        yield from (".TP", f"\\fB{_roff(name)}\\fR \\fI{metavar}\\fR", _roff(about))
    yield from (".SH SEE ALSO", r"\fBbxctl\fR(1)")


def _head(title: str, name: str, about: str) -> Iterator[str]:
    yield f'.TH {title} 1 "" "memoryd {version("memoryd")}"'
    yield from (".SH NAME", f"{name} \\- {about}")


def _text(text: str, *, within: bool = False) -> Iterator[str]:
    """Yield a text's lines; an empty one begins a paragraph, `within` a list's item where need be."""
    for line in text.strip().splitlines():
        yield _roff(line.strip()) if line.strip() else ".IP" if within else ".PP"


def _roff(text: str) -> str:
    """Return `text` as roff: backslashes, hyphens and what would be a request at a line's start."""
    told = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{told}" if told.startswith((".", "'")) else told


def main() -> int:
    """Write every file that has changed, and say which."""
    for path, text in files():
        target = SHARE / path
        if not target.exists() or target.read_text("utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
            print(f"written: {target.relative_to(SHARE.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
