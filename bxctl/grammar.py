"""The command line as values: what a command is called, takes, says and does.

In: nothing (values only). Out: `Command`s, which `bxctl.shell` turns into click commands (help, errors,
completion) and `bxctl.fast` reads by itself for a plain invocation. One table feeds both, so they cannot
drift apart; a property test holds them to the same answer for the same words.
Importing this module costs nothing: no click, no regular expressions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from bxctl import times
from memoryd import clock


class Wrong(ValueError):
    """A value that an option cannot take; the message says what would be right."""


def utf8(text: str) -> str:
    """Return a command-line word as text that any file or message can hold.

    Bytes that are no UTF-8 reach Python as lone surrogates; each becomes U+FFFD.
    """
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def some(text: str) -> str:
    """Return `text` unless it is empty or blank. Raises: Wrong."""
    if not text.strip():
        raise Wrong("nothing is given; say at least one word, or leave the option out")
    return utf8(text)


class Choice:
    """One of a few words."""

    def __init__(self, *names: str) -> None:
        """Accept exactly `names`."""
        self.names = names

    def __call__(self, text: str) -> str:
        """Return `text` if it is one of the words. Raises: Wrong."""
        if text not in self.names:
            raise Wrong(f"{utf8(text)!r} is not one of {', '.join(self.names)}")
        return text


class Count:
    """A whole number within bounds."""

    def __init__(self, low: int, high: int) -> None:
        """Accept `low` to `high`, both included."""
        self.low, self.high = low, high

    def __call__(self, text: str) -> int:
        """Return the number that `text` says. Raises: Wrong."""
        short = len(text) <= 9 and text.isascii() and text.isdigit()
        if not short or not self.low <= int(text) <= self.high:
            raise Wrong(f"{utf8(text)!r} is no whole number from {self.low} to {self.high}")
        return int(text)


def since(text: str) -> int:
    """Return the moment (ms since 1970) at which `text` begins. Raises: Wrong."""
    return _moment(text, times.Edge.START)


def until(text: str) -> int:
    """Return the moment (ms since 1970) before which `text` still lasts. Raises: Wrong."""
    return _moment(text, times.Edge.END)


def _moment(text: str, edge: times.Edge) -> int:
    found = times.moment(text, clock.now_ms(), edge)
    if found is None:
        raise Wrong(
            f"{utf8(text)!r} is no time; say 2026-01-31, 2026-01-31T12:00:00Z, 3d or '2h ago'"
        )
    return found


class Option(NamedTuple):
    """A named option; without a `metavar` it is a flag. `name` is as typed, without its dashes."""

    name: str
    help: str
    metavar: str = ""
    convert: Callable[[str], object] = some
    multiple: bool = False

    @property
    def dest(self) -> str:
        """Return the keyword under which the command gets the value."""
        return self.name.replace("-", "_")

    @property
    def default(self) -> object:
        """Return the value when the option is not given."""
        if not self.metavar:
            return False
        return () if self.multiple else None


class Argument(NamedTuple):
    """The words after the options: exactly one, or (`many`) one and more."""

    name: str
    many: bool = False

    @property
    def dest(self) -> str:
        """Return the keyword under which the command gets the value."""
        return self.name.lower()


class Command(NamedTuple):
    """A leaf of the command tree. `run` gets a Context, then every option by name; returns the exit code.

    `help`: one line, then (after an empty one) more. `examples`: (command line, what it does).
    """

    name: str
    run: Callable[..., int]
    help: str
    examples: tuple[tuple[str, str], ...]
    options: tuple[Option, ...] = ()
    argument: Argument | None = None


class Call(NamedTuple):
    """A parsed invocation: the command, its values by name, and the global options' values."""

    command: Command
    values: dict[str, Any]
    common: dict[str, Any]


COMMON = (
    Option("socket", "Ask through this socket: a name, or a path.", "NAME|PATH"),
    Option("json", "Print JSON, as docs/json-output.md describes it."),
    Option(
        "color",
        "Colour the output: auto, always or never.",
        "WHEN",
        Choice("auto", "always", "never"),
    ),
)
"""Options that every command takes, before or after its name."""

Tree = dict[str, "str | Tree"]

TREE: Tree = {
    "status": "bxctl.status",
    "reindex": "bxctl.reindex",
    "install": "bxctl.install",
    "uninstall": "bxctl.install",
    "doctor": "bxctl.doctor",
    "backup": "bxctl.safekeeping",
    "restore": "bxctl.safekeeping",
    "keys": {"rotate": "bxctl.keys"},
    "hook": {
        "claude-code": "bxctl.hooks",
        "codex": "bxctl.hooks",
        "opencode": "bxctl.hooks",
    },
    "mcp": "bxctl.mcp",
    "memory": {
        "search": "bxctl.memory",
        "show": "bxctl.memory",
        "sessions": "bxctl.listings",
        "projects": "bxctl.listings",
        "stats": "bxctl.listings",
        "dump": "bxctl.memory",
        "sync": "bxctl.memory",
        "reads": "bxctl.reads",
        "forget": "bxctl.forget",
        "block": "bxctl.block",
        "label": "bxctl.label",
        "lessons": {
            "query": "bxctl.lessons_tools",
            "get": "bxctl.lessons_tools",
            "recall": "bxctl.lessons_tools",
            "why": "bxctl.lessons_tools",
            "save": "bxctl.lessons_tools",
            "feedback": "bxctl.lessons_tools",
            "status": "bxctl.lessons_tools",
            "audit": "bxctl.lessons_tools",
            "trace": "bxctl.lessons_tools",
            "config": "bxctl.lessons_owner",
            "retrospective": "bxctl.lessons_owner",
            "propose": "bxctl.lessons_owner",
            "export": "bxctl.lessons_owner",
            "import": "bxctl.lessons",
            "replay": "bxctl.lessons",
        },
        "notes": {
            "list": "bxctl.notes",
            "view": "bxctl.notes",
            "create": "bxctl.notes",
            "edit": "bxctl.notes",
            "replace": "bxctl.notes",
            "insert": "bxctl.notes",
            "delete": "bxctl.notes",
            "rename": "bxctl.notes",
            "log": "bxctl.notes_owner",
            "undo": "bxctl.notes_owner",
            "verify": "bxctl.notes_owner",
            "pending": "bxctl.notes_owner",
            "accept": "bxctl.notes_owner",
            "reject": "bxctl.notes_owner",
            "redact": "bxctl.notes_owner",
        },
    },
}
"""Command names to the module whose `COMMANDS` holds them: imported only when asked for."""

GROUP_HELP = {
    "memory": "Look into what is remembered: search, show, list.",
    "keys": "The keys that ids, cursors and the journal of notes are made with.",
    "lessons": "What failed, what mended it, and whether telling anyone helped.",
    "hook": "What a harness runs at the turns of a session; `bxctl install` registers it.",
    "notes": "Read, write, answer and undo notes. A path is CLASS/NAME.md.",
}
