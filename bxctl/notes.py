"""`bxctl memory notes`: read, write, answer and undo notes, through the same check as an agent's edits.

In: paths (``internal/build.md``, or in full ``/memories/internal/build.md``), text from an option, a file or
standard input. Out: notes, differences and journal lines, for a person or as JSON (docs/json-output.md). At
the owner's socket a person acts as the owner; at any other the edit counts as what that socket says.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bxctl import editing, notes_views, output
from bxctl.context import Context, Memory
from bxctl.grammar import Argument, Command, Count, Option, Wrong, utf8
from memoryd.errors import BadRequest, IOFailed

VERSION = 1
MOST_LISTED = 10_000
ROOT = "/memories"


def full(path: str) -> str:
    """Return a path as memoryd names it."""
    return path if path.startswith("/") else f"{ROOT}/{path}"


def list_(context: Context, *, path: str | None, limit: int | None) -> int:
    """Print the notes at and below a path; 1 when there are none."""
    with context.daemon() as memory:
        classes = memory.server["classes"]
        answer = memory.call("notes.list", path=full(path or ROOT), limit=limit or MOST_LISTED)
    if context.out.json:
        for note in answer["notes"]:
            context.out.value("note", VERSION, note)
    elif answer["notes"]:
        context.out.show(notes_views.listing(answer["notes"], classes))
    else:
        output.say("there are no notes; write one with `bxctl memory notes create`")
    return 0 if answer["notes"] else 1


def view(context: Context, *, path: str, lines: tuple[int, int] | None, raw: bool) -> int:
    """Print a note's lines, or what a folder holds."""
    asked: dict[str, Any] = {"path": full(path)}
    if lines is not None:
        asked["view_range"] = list(lines)
    if raw:
        asked["raw"] = True
    with context.daemon() as memory:
        classes = memory.server["classes"]
        answer = memory.call("notes.view", **asked)
    if context.out.json:
        context.out.value("view", VERSION, answer)
    else:
        context.out.show(notes_views.viewed(answer, classes))
        if answer.get("next"):
            output.say(f"more with --lines {answer['next']}:")
    return 0


def create(
    context: Context, *, path: str, text: str | None, file: str | None, **options: Any
) -> int:
    """Make a note of the text that is given."""
    written = _text(text, file)
    return _edited(context, "create", options, path=full(path), file_text=written)


def replace(
    context: Context, *, path: str, old: str | None, new: str | None, **options: Any
) -> int:
    """Replace the one place where a text stands."""
    if old is None or new is None:
        raise BadRequest("--old and --new are needed", remedy="see the command's --help")
    return _edited(context, "str_replace", options, path=full(path), old_str=old, new_str=new)


def insert(
    context: Context,
    *,
    path: str,
    line: int | None,
    text: str | None,
    file: str | None,
    **options: Any,
) -> int:
    """Insert lines after a line."""
    if line is None:
        raise BadRequest("--line is needed", remedy="0 is before the first line")
    written = _text(text, file)
    return _edited(
        context, "insert", options, path=full(path), insert_line=line, insert_text=written
    )


def delete(context: Context, *, path: str, recursive: bool, **options: Any) -> int:
    """Delete a note, or with --recursive a folder."""
    more = {"recursive": True} if recursive else {}
    return _edited(context, "delete", options, path=full(path), **more)


def rename(context: Context, *, paths: tuple[str, ...], **options: Any) -> int:
    """Give a note another path."""
    if len(paths) != 2:
        raise BadRequest("two paths are needed", remedy="say the old one, then the new one")
    old, new = map(full, paths)
    return _edited(context, "rename", options, old_path=old, new_path=new)


def edit(context: Context, *, path: str, **options: Any) -> int:
    """Open a copy in an editor and write what comes of it."""
    with context.daemon() as memory:
        told = editing.edit(context, memory, full(path), _said(memory, options))
    if told is None:
        output.say("nothing was changed")
        return 0
    return printed(context, told)


def _text(text: str | None, file: str | None) -> str:
    """Return the text from the option, the file, or standard input. Raises: BadRequest, IOFailed."""
    if text is not None and file is not None:
        raise BadRequest("--text and --file are one too many", remedy="give one of them")
    if text is not None:
        return text
    try:
        content = sys.stdin.buffer.read() if file in {None, "-"} else Path(str(file)).read_bytes()
    except OSError as error:
        raise IOFailed(
            f"the text cannot be read: {error.strerror}", remedy="check the path"
        ) from None
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadRequest("the text is not UTF-8", remedy="save it as UTF-8") from None


def _said(memory: Memory, options: dict[str, Any]) -> dict[str, Any]:
    """Return what every edit says beside its own arguments."""
    said: dict[str, Any] = {}
    if "notes.undo" in memory.server.get("methods", ()):
        said["owner"] = True
    if options.get("reason"):
        said["reason"] = options["reason"]
    if options.get("force"):
        said["force"] = True
    if options.get("expect"):
        said["expect"] = options["expect"]
    return said


def _edited(context: Context, command: str, options: dict[str, Any], **args: Any) -> int:
    with context.daemon() as memory:
        told = memory.call(f"notes.{command}", **args, **_said(memory, options))
    return printed(context, told)


def printed(context: Context, told: dict[str, Any]) -> int:
    """Print what an edit came to; return the exit code."""
    if context.out.json:
        context.out.value("edit", VERSION, told)
    else:
        context.out.show(notes_views.done(told))
        for flag in told.get("flags", ()):
            output.say(f"flagged: {flag['kind']} at line {flag['line']}")
    return 0


def lines(text: str) -> tuple[int, int]:
    """Return the range that ``A:B`` means; without B to the end. Raises: Wrong."""
    first, colon, last = text.partition(":")
    numbers = [part for part in (first, last) if part]
    if not first or not all(
        part.isascii() and part.isdigit() and len(part) < 8 for part in numbers
    ):
        raise Wrong(f"{utf8(text)!r} is no range of lines; say 5:20, or 5: for the rest")
    return int(first), int(last) if last else (-1 if colon else int(first))


_PATH = Argument("PATH")
REASON = Option("reason", "Why; it is kept in the journal.", "TEXT")
FORCE = Option("force", "Although it looks like a secret, or was changed outside; the owner only.")
_EXPECT = Option("expect", "Only if the note's content still has this hash.", "HASH")
_TEXT = Option("text", "The text itself.", "TEXT", utf8)
_FILE = Option("file", "Read the text from here; without it, from standard input.", "FILE")


def _of_reading() -> Iterator[Command]:
    yield Command(
        "list", list_, "List the notes, with the class and title of each.",
        (("bxctl memory notes list", "all of them"),
         ("bxctl memory notes list --path internal/inbox", "what untrusted sessions left")),
        (Option("path", "At and below this path.", "PATH"),
         Option("limit", "How many at most.", "N", Count(1, MOST_LISTED))),
    )  # fmt: skip
    yield Command(
        "view", view, "Show a note with its line numbers, or what a folder holds.",
        (("bxctl memory notes view internal/build.md", "a note"),
         ("bxctl memory notes view --lines 40:80 internal/build.md", "some of its lines"),
         ("bxctl memory notes view --raw internal/build.md > build.md", "its text alone")),
        (Option("lines", "From A to B; B left out: to the end.", "A:B", lines),
         Option("raw", "The whole text, without numbers.")), _PATH,
    )  # fmt: skip


def _of_whole_notes() -> Iterator[Command]:
    yield Command(
        "create", create, "Make a note of a text; one that is there already is left as it is.",
        (("bxctl memory notes create --file build.md internal/build.md", "from a file"),
         ("bxctl memory notes create public/MEMORY.md --text 'deploys happen on Tuesdays'", "in a word")),
        (_TEXT, _FILE, REASON, FORCE), _PATH,
    )  # fmt: skip
    yield Command(
        "edit", edit,
        """Open a copy of a note in an editor and write what comes of it.

The editor is $VISUAL, else $EDITOR. What you wrote goes through the same check as any edit; where the check
refuses it, your text is kept for another try. A note that is not there is made.""",
        (("bxctl memory notes edit internal/build.md", "with your editor"),), (REASON, FORCE), _PATH,
    )  # fmt: skip


def _of_parts_and_places() -> Iterator[Command]:
    yield Command(
        "replace", replace, "Replace the one place where a text stands in a note.",
        (("bxctl memory notes replace internal/build.md --old Tuesdays --new Mondays", "one word"),),
        (Option("old", "The text as it stands.", "TEXT", utf8),
         Option("new", "The text to be.", "TEXT", utf8), _EXPECT, REASON, FORCE), _PATH,
    )  # fmt: skip
    yield Command(
        "insert", insert, "Insert lines after a line of a note; 0 is before the first.",
        (("bxctl memory notes insert internal/build.md --line 0 --text '# Build'", "a heading"),),
        (Option("line", "After this line.", "N", Count(0, 999_999)), _TEXT, _FILE, _EXPECT, REASON,
         FORCE), _PATH,
    )  # fmt: skip
    yield Command(
        "delete", delete, "Delete a note; undo brings it back.",
        (("bxctl memory notes delete internal/build.md", "one note"),
         ("bxctl memory notes delete --recursive internal/old", "a folder with all in it")),
        (Option("recursive", "Also a folder, with every note in it."), _EXPECT, REASON, FORCE), _PATH,
    )  # fmt: skip
    yield Command(
        "rename", rename,
        """Give a note another path.

Out of an inbox it becomes trusted. To a higher class fewer readers see it; to a lower one only --force
moves it.""",
        (("bxctl memory notes rename internal/inbox/tip.md internal/tip.md", "trust what a session found"),),
        (_EXPECT, REASON, FORCE), Argument("PATHS", many=True),
    )  # fmt: skip


COMMANDS = (*_of_reading(), *_of_whole_notes(), *_of_parts_and_places())
