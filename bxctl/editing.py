"""A note in a person's editor: a copy out, the check in between, the text kept when the check refuses it.

In: a note's path and somebody to ask. Out: the answer of the edit, or None when nothing was changed. The copy
lies in a folder of its own that only its owner may enter, and goes once the text is written.
"""

import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bxctl import notes_views, output
from bxctl.context import Context, Memory
from memoryd.errors import BadRequest, CheckFailed, IOFailed, MemorydError, NotFound, TooLarge


def edit(
    context: Context, memory: Memory, path: str, said: dict[str, Any]
) -> dict[str, Any] | None:
    """Let a person edit a copy and write what came of it.

    Raises: what the check raises, with the text kept and its place told; BadRequest without an editor.
    """
    before, expect = _now(memory, path)
    command = editor(context.env)
    folder = Path(tempfile.mkdtemp(prefix="bxctl-"))
    copy = folder / Path(path).name
    copy.touch(0o600)
    copy.write_text(before, "utf-8")
    try:
        told = _until_written(context, memory, (path, before, expect), (command, copy), said)
    except (MemorydError, KeyboardInterrupt):
        output.say(f"your text is kept in {copy}")
        raise
    shutil.rmtree(folder)
    return told


def editor(env: Mapping[str, str]) -> list[str]:
    """Return the words of the editor's command. Raises: BadRequest when none is set."""
    words = shlex.split(env.get("VISUAL") or env.get("EDITOR") or "")
    if not words:
        raise BadRequest("no editor is set", remedy="set EDITOR, such as EDITOR=nano")
    return words


def _now(memory: Memory, path: str) -> tuple[str, str | None]:
    """Return a note's text and hash; "" and None where there is none yet."""
    try:
        seen = memory.call("notes.view", path=path, raw=True)
    except NotFound:
        return "", None
    return str(seen["text"]), str(seen["hash"])


def _until_written(
    context: Context,
    memory: Memory,
    note: tuple[str, str, str | None],
    tools: tuple[list[str], Path],
    said: dict[str, Any],
) -> dict[str, Any] | None:
    path, before, expect = note
    command, copy = tools
    while True:
        _run([*command, str(copy)])
        after = _read(copy)
        if after == before:
            return None
        if not context.out.json:
            context.out.show(notes_views.difference(before, after, path))
        try:
            return _write(memory, path, (before, after, expect), said)
        except (CheckFailed, TooLarge) as error:
            if not sys.stdin.isatty():
                raise
            output.say(str(error))
            print("Edit again? [Y/n] ", end="", file=sys.stderr, flush=True)
            if sys.stdin.readline().strip().lower() not in {"", "y", "yes"}:
                raise


def _write(
    memory: Memory, path: str, texts: tuple[str, str, str | None], said: dict[str, Any]
) -> dict[str, Any]:
    """Write the new text: the old one as a whole stands in the note exactly once."""
    before, after, expect = texts
    if expect is None:
        told: dict[str, Any] = memory.call("notes.create", path=path, file_text=after, **said)
    elif before:
        told = memory.call(
            "notes.str_replace", path=path, old_str=before, new_str=after, expect=expect, **said
        )
    else:
        told = memory.call(
            "notes.insert", path=path, insert_line=0, insert_text=after, expect=expect, **said
        )
    return told


def _run(command: list[str]) -> None:
    try:
        code = subprocess.run(command, check=False).returncode  # noqa: S603 - the person's own editor
    except OSError as error:
        raise BadRequest(
            f"the editor cannot be started: {error.strerror}",
            remedy="set EDITOR to one that is there",
        ) from None
    if code:
        raise IOFailed(f"the editor ended with {code}", remedy="edit again, or copy your text")


def _read(copy: Path) -> str:
    try:
        return copy.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        raise BadRequest("the copy is gone, or is not UTF-8", remedy="save it as UTF-8") from None
