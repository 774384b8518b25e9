"""The command tree as click commands: help with examples, errors that name the remedy, completion.

In: command-line words. Out: the same `Call` that `bxctl.fast` makes, or an exit code when click has
already done all there was to do (help, version, completion). Commands are imported when they are used.
"""

import difflib
import sys
from collections.abc import Sequence
from typing import Any

import click

from bxctl import fast
from bxctl.grammar import COMMON, GROUP_HELP, TREE, Call, Command, Option, Tree, Wrong, utf8
from memoryd.errors import BadRequest

ROOT_HELP = """Ask memoryd, the memory of the agents on this machine.

Data goes to standard output, talk to standard error. Exit codes: 0 done, 1 nothing found, 2 usage,
69 memoryd unreachable, 70 internal fault, 74 input or output failed, 75 busy, 77 refused,
78 configuration, 130 interrupted."""

ROOT_EXAMPLES = (
    ("bxctl status", "is it up, and what does it hold"),
    ("bxctl memory search retry backoff", "what do we know about retry and backoff"),
    ("bxctl memory search --json flaky test | jq .hits", "the same for a program"),
    ("bxctl --socket agent memory sessions", "what an agent on that socket may see"),
)
GROUP_EXAMPLES = {
    "memory": (
        ("bxctl memory search schema migration --since 7d", "hits of the last week"),
        ("bxctl memory sessions --project '*blog*'", "sessions of a project"),
    ),
    "lessons": (
        ("bxctl memory lessons replay session.jsonl", "what would have been learned"),
        ("bxctl memory lessons import team.okf --class internal", "take a bundle over"),
    ),
    "keys": (("bxctl keys rotate", "new keys, while memoryd is stopped"),),
    "hook": (
        (
            "bxctl hook claude-code SessionStart",
            "what a session is told when it starts",
        ),
    ),
    "notes": (
        ("bxctl memory notes list", "what there is"),
        ("bxctl memory notes edit internal/build.md", "in your editor"),
        ("bxctl memory notes pending", "what waits for you"),
    ),
}


def parse(argv: Sequence[str]) -> Call | int:
    """Return the call that `argv` asks for, or the exit code when click has answered it.

    Raises: BadRequest for a mistake in the words, naming the help that explains it.
    """
    stdout = sys.stdout  # click puts another in its place when its reader has gone
    try:
        answer: Call | int = root().main(list(argv), prog_name="bxctl", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)  # the group's whole help
        return 2
    except click.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as end:  # completion ends that way, and help whose reader has gone
        return 0 if sys.stdout is not stdout else int(end.code or 0)
    except click.UsageError as error:
        message = error.format_message().strip().rstrip(".")
        path = error.ctx.command_path if error.ctx else "bxctl"
        remedy = f"see `{path} --help`"
        if isinstance(error, click.NoSuchOption):  # Claude Code's folders of logs begin so
            remedy += "; a word that begins with - stands after --"
        raise BadRequest(message[:1].lower() + message[1:], remedy=remedy) from None
    return answer


def root() -> click.Group:
    """Return the whole tree, its leaves not yet imported."""
    group = Lazy("bxctl", TREE, ROOT_HELP, ROOT_EXAMPLES)
    group.params.append(
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_version,
            help="Print the version.",
        )
    )
    return group


class Placed(click.Command):
    """A command whose mistakes know where they were made, and so which help explains them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words. Raises: click.UsageError, with its context (click leaves some without)."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


class Lazy(Placed, click.Group):
    """A group that imports a command's module when that command is used or listed."""

    def __init__(
        self,
        name: str,
        tree: Tree,
        text: str,
        examples: tuple[tuple[str, str], ...],
    ) -> None:
        """Take the group's commands as `bxctl.grammar.TREE` gives them."""
        super().__init__(name, help=text, params=[_option(option) for option in COMMON])
        self.tree, self.examples = tree, examples

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table, the most used first."""
        return list(self.tree)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Return the command called `cmd_name`, imported now."""
        node = self.tree.get(cmd_name)
        if isinstance(node, dict):
            return Lazy(cmd_name, node, GROUP_HELP[cmd_name], GROUP_EXAMPLES[cmd_name])
        return None if node is None else Leaf(fast.find(node, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` begin with. Raises: click.UsageError with the nearest name."""
        if not args[0].startswith("-") and args[0] not in self.tree:
            near = difflib.get_close_matches(args[0], self.tree, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.tree)}"
            raise click.UsageError(f"No such command {args[0]!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_epilog(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the examples."""
        _examples(formatter, self.examples)


class Leaf(Placed):
    """A click command made from a `Command`; invoked, it returns its `Call`."""

    def __init__(self, command: Command) -> None:
        """Take options and argument from `command`."""
        params: list[click.Parameter] = [_option(option) for option in (*command.options, *COMMON)]
        if (argument := command.argument) is not None:
            nargs = -1 if argument.many else 1
            params.append(
                click.Argument([argument.name], nargs=nargs, required=True, callback=_words)
            )
        super().__init__(command.name, params=params, help=command.help)
        self.described = command

    def invoke(self, ctx: click.Context) -> Call:
        """Return the parsed call; global options nearer to the command win."""
        values = dict(ctx.params)
        common: dict[str, Any] = {}
        for option in COMMON:
            values.pop(option.dest)
            given = [at.params[option.dest] for at in _upwards(ctx)]
            common[option.dest] = next(filter(None, given), option.default)
        return Call(self.described, values, common)

    def format_epilog(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the examples."""
        _examples(formatter, self.described.examples)


def _option(option: Option) -> click.Option:
    """Return the click option whose value the table's own conversion makes, so that both parsers agree."""
    names = [f"--{option.name}", option.dest]
    if not option.metavar:
        return click.Option(names, is_flag=True, help=option.help)
    return click.Option(
        names,
        type=click.UNPROCESSED,
        metavar=option.metavar,
        multiple=option.multiple,
        help=option.help,
        callback=lambda ctx, param, value: _converted(option, ctx, param, value),
        shell_complete=lambda ctx, param, incomplete: _completions(option, incomplete),
    )


def _converted(option: Option, ctx: click.Context, param: click.Parameter, value: object) -> object:
    """Return what the words mean. Raises: click.BadParameter with what would be right."""
    try:
        if isinstance(value, tuple):
            return tuple(option.convert(word) for word in value)
        return option.convert(value) if isinstance(value, str) else None
    except Wrong as error:
        raise click.BadParameter(str(error), ctx, param) from None


def _words(ctx: click.Context, param: click.Parameter, value: object) -> object:
    """Return the words of an argument as text that any file or message can hold."""
    if isinstance(value, tuple):
        return tuple(map(utf8, value))
    return utf8(value) if isinstance(value, str) else None


def _completions(option: Option, incomplete: str) -> list[str]:
    """Return the words that can follow, where there are only a few."""
    names: tuple[str, ...] = getattr(option.convert, "names", ())
    return [name for name in names if name.startswith(incomplete)]


def _upwards(ctx: click.Context) -> list[click.Context]:
    return [ctx, *_upwards(ctx.parent)] if ctx.parent else [ctx]


def _examples(formatter: click.HelpFormatter, examples: tuple[tuple[str, str], ...]) -> None:
    with formatter.section("Examples"):
        formatter.write_dl(list(examples))


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"bxctl {version('memoryd')}")
        ctx.exit()
