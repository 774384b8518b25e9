"""`bxctl hook` as the command line explains it; what it does is `bxctl.hook`, which starts without this.

In: the words of a hook. Out: the hook's own output, and exit code 0.
"""

from functools import partial

from bxctl import hook
from bxctl.context import Context
from bxctl.grammar import Argument, Command, Count, Option

_WHAT = {
    "claude-code": "Claude Code: what `bxctl install claude-code` registers",
    "codex": "Codex: what `bxctl install codex` registers",
    "opencode": "OpenCode: what the installed plugin file runs",
}


def run(
    context: Context,
    *,
    harness: str,
    event: str,
    recall: bool,
    max_class: str | None,
    budget: int | None,
) -> int:
    """Answer one event of a harness, and end the process."""
    words = [harness, event]
    words += ["--recall"] if recall else []
    words += [f"--max-class={max_class}"] if max_class else []
    words += [f"--budget={budget}"] if budget else []
    words += [f"--socket={context.socket}"] if context.socket else []
    hook.main(words)


def _command(harness: str) -> Command:
    return Command(
        harness,
        partial(run, harness=harness),
        f"""Answer an event of {_WHAT[harness]}.

JSON of the harness on standard input, JSON for it on standard output. SessionStart tells the memory block;
UserPromptSubmit, with --recall, what is known about the prompt; PreCompact, Stop and SessionEnd tell the
daemon. Ends within 200 ms with code 0, and without output on any fault: a harness is never held up.""",
        (
            (
                f"bxctl hook {harness} SessionStart",
                'what a session is told when it starts; type {"source": "startup"} and Ctrl-D',
            ),
        ),
        (
            Option("recall", "On UserPromptSubmit: tell what is known about the prompt."),
            Option("max-class", "Nothing above this class.", "CLASS"),
            Option("budget", "Tokens for the notes of the block.", "N", Count(100, 4_000)),
        ),
        Argument("EVENT"),
    )


COMMANDS = tuple(map(_command, hook.HARNESSES))
