"""`bxctl install` and `uninstall`: memoryd registered with a harness, with systemd or with a shell, shown first,
taken back to the byte.

In: the harness, options. Out: its settings files changed, each with a copy of how it was beside it. Uninstalling
puts that copy back where nothing else has changed since, and otherwise takes our entries alone away. A file that
is a link is changed where it leads to; files are replaced whole, with their own mode.
"""

import difflib
import os
import shutil
import sys
from collections.abc import Iterator
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from bxctl import harnesses, jsonc, notes_views, output, safe, services
from bxctl.context import Context
from bxctl.grammar import Argument, Command, Option, Wrong
from bxctl.harnesses import HARNESSES, Change, Wish
from bxctl.hook import SOCKET
from bxctl.layout import Para, Part, cell
from memoryd import paths, state
from memoryd.errors import BadRequest, IOFailed, MemorydError

INSTALLED_VERSION = 1
BACKUP = ".memoryd-backup"


class Planned(NamedTuple):
    """What is to become of a file: its text before and after ("": no file), and the copy to keep of it.

    Of a `link` it is the link itself that goes.
    """

    path: Path
    before: str
    after: str
    backup: str = ""
    link: bool = False

    @property
    def action(self) -> str:
        """Return what happens, in a word."""
        if self.before == self.after:
            return "unchanged"
        if not self.after:
            return "removed"
        return "changed" if self.before else "created"


def install(
    context: Context, *, what: str, dry_run: bool, recall: bool, no_mcp: bool, shell: str | None
) -> int:
    """Register memoryd with a harness, with systemd, or with a shell."""
    if what == services.COMPLETION and shell is None:
        shell = services.shell_of(context.env)
    plans = []
    for change in _changes(context, what, recall=recall, mcp=not no_mcp, shell=shell):
        before = _read(change.path)
        after = _kept(before, _applied(change, change.put, before))
        plans.append(Planned(change.path, before, after, _without_us(change, before)))
    if what == services.SYSTEMD and not dry_run:
        state.private_folder(paths.home(context.env))  # a unit may write only where something is
    code = _carry_out(context, plans, dry_run=dry_run)
    if not context.out.json:
        for line in services.next_steps(what, context.env, shell):
            output.say(line)
    return code


def uninstall(context: Context, *, what: str, dry_run: bool) -> int:
    """Take memoryd out of a harness."""
    plans = [
        Planned(change.path, before, _without_us(change, before))
        for change in _changes(context, what, recall=False, mcp=True)
        if (before := _read(change.path)) or what in HARNESSES
    ]
    if what == services.SYSTEMD:
        gone = {plan.path for plan in plans if not plan.after}
        linked = [path for path in services.links(context.env) if path.resolve() in gone]
        plans += [Planned(path, f"-> {path.readlink()}", "", link=True) for path in linked]
    return _carry_out(context, plans, dry_run=dry_run)


def _changes(
    context: Context, what: str, *, recall: bool, mcp: bool, shell: str | None = None
) -> list[Change]:
    if what == services.SYSTEMD:
        return services.unit_changes(context.env)
    if what == services.COMPLETION:
        return services.completion_changes(context.env, shell)
    if what not in HARNESSES:
        names = ", ".join([*HARNESSES, services.SYSTEMD, services.COMPLETION])
        raise BadRequest(f"{what!r} is none that is known here", remedy=f"choose from {names}")
    wish = Wish(command(), context.socket or SOCKET, recall, mcp)
    return harnesses.changes(what, wish, context.env)


def command() -> list[str]:
    """Return the words that start this `bxctl`, from anywhere."""
    program = shutil.which(sys.argv[0]) or sys.argv[0]
    if Path(program).name == "bxctl":
        return [str(Path(program).absolute())]
    return [sys.executable, "-m", "bxctl"]


def _applied(change: Change, how: Any, text: str) -> str:
    """Return the new text of a file. Raises: what is wrong with it, with its path."""
    try:
        return str(how(text))
    except MemorydError as error:
        raise type(error)(f"{change.path}: {error.message}", remedy=error.remedy) from None


def _kept(before: str, after: str) -> str:
    """Return `before` where `after` says the same and only stands elsewhere."""
    try:
        same = bool(before) and jsonc.value(before) == jsonc.value(after)
    except BadRequest:
        return after  # no JSON
    return before if same else after


def _without_us(change: Change, text: str) -> str:
    """Return a file's text without us: its copy, where nothing else has changed since that was made."""
    stripped = _applied(change, change.take, text)
    if stripped == text:
        return text
    copy = _copy_of(change.path, text)
    if copy.exists():
        return _read(copy)
    return "" if stripped.strip() == "{}" and not _copies(change.path) else stripped


def _copy_of(path: Path, installed: str) -> Path:
    """Return where the copy lies of what a file was before it became `installed`."""
    return path.with_name(f"{path.name}{BACKUP}-{sha256(installed.encode()).hexdigest()[:12]}")


def _copies(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{escape(path.name)}{BACKUP}-*"))


def _carry_out(context: Context, plans: list[Planned], *, dry_run: bool) -> int:
    """Show each change, and make it unless this is only a look."""
    if not context.out.json:
        context.out.show(part for plan in plans for part in _shown(plan))
    if not dry_run:
        for plan in plans:
            _write(plan)
    if context.out.json:
        told = [
            {"path": str(plan.path), "action": plan.action, "diff": _diff(plan)} for plan in plans
        ]
        context.out.value("installed", INSTALLED_VERSION, {"dry_run": dry_run, "files": told})
    else:
        changed = sum(plan.action != "unchanged" for plan in plans)
        done = "would change" if dry_run else "changed"
        output.say(f"{done} {changed} of {len(plans)} files" if changed else "nothing to change")
    return 0


def _shown(plan: Planned) -> Iterator[Part]:
    yield Para(cell(f"{plan.action}: {safe.line(str(plan.path))}", "dim"))
    yield from notes_views.coloured(_diff(plan))


def _diff(plan: Planned) -> str:
    lines = difflib.unified_diff(
        plan.before.split("\n"), plan.after.split("\n"), "before", "after", lineterm="", n=1
    )
    return "\n".join(lines)


def _read(path: Path) -> str:
    """Return a file's text to the byte, "" where there is none. Raises: IOFailed, BadRequest."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise BadRequest(f"{path} is not UTF-8", remedy="save it as UTF-8") from None
    except OSError as error:
        raise IOFailed(f"{path} cannot be read: {error.strerror}", remedy="see its mode") from None


def _write(plan: Planned) -> None:
    """Make one change; the copy first, and none left once we are gone. Raises: IOFailed."""
    if plan.before == plan.after:
        return
    try:
        if plan.link:
            plan.path.unlink(missing_ok=True)
            return
        old = _copies(plan.path)
        if plan.backup:
            _replace(_copy_of(plan.path, plan.after), plan.backup, _mode(plan.path))
        if plan.after:
            plan.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(plan.path.resolve(), plan.after, _mode(plan.path))
        else:
            plan.path.resolve().unlink()  # of a link only what install put where it leads
        for copy in old:
            if not plan.backup or copy != _copy_of(plan.path, plan.after):
                copy.unlink()
    except OSError as error:
        raise IOFailed(
            f"{plan.path} cannot be written: {error.strerror}", remedy="see its mode and folder"
        ) from None


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0o600


def _replace(path: Path, text: str, mode: int) -> None:
    """Put a whole new file in the place of an old one, in one step."""
    draft = path.with_name(f".{path.name}.memoryd-{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    draft.chmod(mode)
    draft.rename(path)


def _shell(word: str) -> str:
    """Return the name of a shell. Raises: Wrong."""
    if word not in services.SHELLS:
        raise Wrong(f"{word!r} is none of {', '.join(services.SHELLS)}")
    return word


_WHAT = Argument("WHAT")
_DRY = Option("dry-run", "Show what would change, and change nothing.")

COMMANDS = (
    Command(
        "install",
        install,
        """Register memoryd with claude-code, codex, opencode or cursor; with systemd; or with your shell (completion).

With a harness: adds hooks that tell each session its memory block, and memoryd as MCP server, to the harness's
own settings; every other byte of them stays, and a copy is kept. Agents are told what the socket `agent` grants;
--socket names another. With systemd: a user service and its socket, for this very program. Shows each change.""",
        (
            ("bxctl install claude-code --dry-run", "what would change"),
            ("bxctl install claude-code --recall", "also recall on each prompt"),
            ("bxctl install codex --no-mcp", "hooks alone"),
            ("bxctl install systemd", "a user service, started by its socket"),
            ("bxctl install completion --shell fish", "words completed by the tab key"),
        ),
        (
            _DRY,
            Option("recall", "Tell what is known about each prompt, too."),
            Option("no-mcp", "Leave the MCP server out."),
            Option("shell", "For completion: bash, zsh or fish (default: yours).", "NAME", _shell),
        ),
        _WHAT,
    ),
    Command(
        "uninstall",
        uninstall,
        """Take memoryd out of a harness again, out of systemd, or out of the shells' completion.

What was there before comes back to the byte; what you have changed since stays.""",
        (("bxctl uninstall claude-code", "no hooks, no server, no copies left"),),
        (_DRY,),
        _WHAT,
    ),
)
