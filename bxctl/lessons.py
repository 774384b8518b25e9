"""`bxctl memory lessons`: replay recordings, take over what was learned elsewhere.

In: files. Out: a row a recording, or counts of what was new. A replay runs in memory and touches nothing. A bundle
goes through the daemon where one runs; else, and for another program's database always, it is written to
`lessons.sqlite3` itself, under the lock.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from bxctl import safe
from bxctl.context import Context
from bxctl.grammar import Argument, Command, Option
from bxctl.layout import Grid, Para, Span, cell
from bxctl.output import say
from memoryd.errors import BadRequest, ConfigError, NotFound, Unavailable

if TYPE_CHECKING:
    from memoryd.labels import Label
    from memoryd.replay import Row

VERSION = 1


def replay(context: Context, *, path: tuple[str, ...], project: str | None) -> int:
    """Run recordings and print what came of each; 1 when there is none."""
    from memoryd import paths
    from memoryd import replay as replaying

    skipped: list[Path] = []
    home = paths.user_home(context.env)
    rows = replaying.every(map(Path, path), home, project, skipped=skipped)
    if skipped:
        say(f"{len(skipped)} files are no recordings and were passed over")
    if not rows:
        raise NotFound("no recording is there", remedy="name .json transcripts or .jsonl logs")
    if context.out.json:
        from msgspec import to_builtins

        for row in rows:
            context.out.value("replay", VERSION, to_builtins(row))
    else:
        context.out.show([_table(rows)])
    return 0


def import_(context: Context, *, file: str, kevin: bool, trusted: bool, **named: str | None) -> int:
    """Take lessons over and print how many were new; `named` holds `class`, a word of Python's own."""
    from memoryd import config

    classes = config.load(context.env).config.labels.classes
    label = _label(classes, named["class"], trusted=trusted)
    told = None if kevin else _through_daemon(context, file, classes, label)
    if told is None:
        told = _under_lock(context, file, label, kevin=kevin)
    if context.out.json:
        context.out.value("imported", VERSION, told)
    else:
        words = ", ".join(f"{number} {name}" for name, number in told.items())
        context.out.show([Para((Span(f"new: {words}"),))])
    return 0


def _through_daemon(
    context: Context, file: str, classes: list[str], label: "Label"
) -> dict[str, object] | None:
    """Bring a bundle in through the daemon; None where none runs. Raises: MemorydError."""
    bundle = _bundle(file)
    try:
        memory = context.daemon()
    except Unavailable:
        return None
    with memory:
        said = {"class": classes[label.level], "untrusted": label.untrusted}
        told: dict[str, object] = memory.call("lessons.import", bundle=bundle, label=said)
    return told


def _under_lock(context: Context, file: str, label: "Label", *, kevin: bool) -> dict[str, object]:
    """Write to the database itself. Raises: Busy while memoryd runs, and what reading the file meets."""
    from memoryd import clock, paths, state
    from memoryd.lessons import exchange, store
    from memoryd.lessons import kevin as taking_over

    home = state.private_folder(paths.home(context.env))
    with state.held(home):
        connection = store.opened(home / store.NAME)
        try:
            if kevin:
                return dict(taking_over.bring_over(connection, Path(file), label))
            return exchange.bring_in(connection, _bundle(file), label, now=clock.now_ms())
        finally:
            connection.close()


def _label(classes: list[str], cls: str | None, *, trusted: bool) -> "Label":
    """Return the label that the owner gives an import: without a word, the highest and untrusted."""
    from memoryd.labels import Classes, Label, LabelError

    known = Classes(classes)
    try:
        level = known.top if cls is None else known.level(cls)
    except LabelError as error:
        raise BadRequest(f"there is no class {cls}", remedy=str(error)) from error
    return Label(level, not trusted)


def _bundle(file: str) -> str:
    try:
        return Path(file).read_text("utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}", remedy="name a bundle to read") from error


def _table(rows: "list[Row]") -> Grid:
    heads = (
        *("recording", "lessons", "told", "helped", "did not", "unclear", "unmeasured"),
        *("prevented", "precision", "coverage", "tokens"),
    )
    cells = [
        (
            cell(safe.line(row.transcript), "id"),
            *(cell(str(number)) for number in (row.lessons, row.total, row.effective)),
            *(cell(str(number)) for number in (row.ineffective, row.inconclusive)),
            *(cell(str(number)) for number in (row.unmeasured, row.prevented)),
            *(cell(_rate(rate)) for rate in (row.precision_rate, row.coverage_rate)),
            cell(str(row.tokens_pre_prompt + row.tokens_compacting)),
        )
        for row in rows
    ]
    return Grid(heads, cells, right=frozenset(range(1, len(heads))), give=frozenset({0}))


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.3f}"


COMMANDS = (
    Command(
        "replay",
        replay,
        """Run recorded sessions through the code that learns, in memory.

PATH is a transcript (.json), a session log of any format that memoryd reads (.jsonl), or a folder of both.
Time is what the recording says, so that twice prints the same. A rate is '-' where nothing was measured:
that is not 0.""",
        (
            ("bxctl memory lessons replay session.json", "one transcript"),
            ("bxctl memory lessons replay ~/.claude/projects/app", "what would have been learned"),
        ),
        (Option("project", "Whose project the recordings are, where they do not say.", "PATH"),),
        Argument("PATH", many=True),
    ),
    Command(
        "import",
        import_,
        """Take over lessons from a bundle, or with --kevin from a database of opencode-kevin.

The file is only read, and what is there already is left alone. With --kevin memoryd must not run meanwhile. Without
--class and --trusted what comes in counts as the highest class and as untrusted: it is then told to nobody
below, and put into no prompt until you call it useful.""",
        (
            (
                "bxctl memory lessons import team.okf --class internal --trusted",
                "a bundle you trust",
            ),
            ("bxctl memory lessons import --kevin ~/.opencode-kevin/kevin.db", "another memory"),
        ),
        (
            Option("kevin", "FILE is a database of opencode-kevin, schema 001 to 006."),
            Option("class", "The class that all of it gets.", "CLASS"),
            Option("trusted", "It is your own: let it be told without being called useful first."),
        ),
        Argument("FILE"),
    ),
)
