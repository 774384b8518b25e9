"""Read a plain command line without click, which costs more to import than a search takes.

In: the words after ``bxctl``, and the tables of `bxctl.grammar`. Out: a `Call`, or None for everything
that is not plain (help, completion, a short option, a mistake): click then reads the same words from the
same tables, and is the only one that explains or complains.
"""

from collections.abc import Sequence
from importlib import import_module

from bxctl.grammar import COMMON, TREE, Call, Command, Option, Tree, Wrong, utf8


def parse(argv: Sequence[str]) -> Call | None:
    """Return the command and its values, or None when click has to look at it."""
    words = list(argv)
    common: dict[str, object] = {}
    command: Command | None = None
    node: str | Tree | None = TREE
    while isinstance(node, dict):
        if not _options(words, COMMON, common) or not words:
            return None
        name = words.pop(0)
        node = node.get(name)
        command = None if not isinstance(node, str) else find(node, name)
    if command is None:
        return None
    given = dict(common)
    rest = _leaf(words, command, given)
    if rest is None:
        return None
    return call(command, given, rest)


def find(module: str, name: str) -> Command:
    """Return the command `name` from the table of `module`."""
    commands: tuple[Command, ...] = import_module(module).COMMANDS
    return next(command for command in commands if command.name == name)


def call(command: Command, given: dict[str, object], rest: list[str]) -> Call | None:
    """Return the finished call, or None when the words after the options are not as many as needed."""
    values = {option.dest: given.get(option.dest, option.default) for option in command.options}
    argument = command.argument
    if argument is None:
        if rest:
            return None
    elif argument.many and rest:
        values[argument.dest] = tuple(map(utf8, rest))
    elif not argument.many and len(rest) == 1:
        values[argument.dest] = utf8(rest[0])
    else:
        return None
    return Call(
        command, values, {option.dest: given.get(option.dest, option.default) for option in COMMON}
    )


def _options(words: list[str], known: tuple[Option, ...], into: dict[str, object]) -> bool:
    """Take options off the front of `words`; False for one that is not plainly known."""
    while words and words[0].startswith("-"):
        if not _option(words, known, into):
            return False
    return True


def _option(words: list[str], known: tuple[Option, ...], into: dict[str, object]) -> bool:
    """Take the one option that `words` begin with; False when it is not plainly right."""
    name, equals, value = words.pop(0).partition("=")
    option = next((option for option in known if f"--{option.name}" == name), None)
    if option is None:
        return False
    if not option.metavar:
        into[option.dest] = True
        return not equals
    if not equals:
        if not words or words[0].startswith("-"):
            return False
        value = words.pop(0)
    try:
        converted = option.convert(value)
    except Wrong:
        return False
    before = into.get(option.dest, ())
    into[option.dest] = (
        (*before, converted) if option.multiple and isinstance(before, tuple) else converted
    )
    return True


def _leaf(words: list[str], command: Command, into: dict[str, object]) -> list[str] | None:
    """Return the words that are no options, wherever they stand; after ``--`` all of them."""
    known = command.options + COMMON
    rest: list[str] = []
    while words:
        if words[0] == "--":
            return rest + words[1:]
        if words[0].startswith("-") and words[0] != "-":
            if not _option(words, known, into):
                return None
        else:
            rest.append(words.pop(0))
    return rest
