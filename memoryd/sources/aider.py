"""Aider's chat history: one Markdown file a repository, all runs in it, rewritten by nobody but read whole.

In: `.aider.chat.history.md`. Out: lines of JSON for its blocks, and records of these: `#### ` is the owner, `> ` what
Aider and its commands put out, the rest the reply. The file has neither ids nor calls, and a reply may hold a
heading that looks like the owner. Aider ends its own lines with two spaces, so a `#### ` without them, in a run that
has them or after the first words of a run, is nobody's: it is not read, and never given to the wrong one.

What Aider reads for a prompt (files of the chat, pages behind links) stands nowhere in the file: a prompt raises
what follows as the owner's files do, and one with a link as other people's words do.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryd.clock import parse_rfc3339
from memoryd.records import Brought, Item, Kind, Record
from memoryd.sources import base, loose, whole

ID = "aider"
NAME = ".aider.chat.history.md"

_START = "# aider chat started at "
_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*")
_PROMPT, _OUTPUT = "#### ", ">"
_LINK = re.compile(r"https?://|^/web\b", re.IGNORECASE)


def find(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of the history that the environment names; a repository's own is a source to add."""
    named = env.get("AIDER_CHAT_HISTORY_FILE")
    return [Path(named).parent] if named else []


def lines(root: Path, log: str) -> Iterator[bytes]:
    """Yield the blocks of the file. What follows the last line break is not there yet."""
    text = whole.content(root, log).decode("utf-8", "replace").replace("\r\n", "\n")
    run: list[str] = []
    started: str | None = None
    for text_line in text[: text.rfind("\n") + 1].splitlines():
        if text_line.startswith(_START):
            yield from _run(run, started)
            run, started = [], text_line
        else:
            run.append(text_line)
    yield from _run(run, started)


def _run(run: list[str], started: str | None) -> Iterator[bytes]:
    """Yield the blocks of one run."""
    time = _STARTED.fullmatch(started) if started is not None else None
    stamp = f"{time[1]}T{time[2]}Z" if time else None
    if started is not None:
        yield whole.line({"aider": "started", "at": stamp})
    marked = next((text[-2:] == "  " for text in run if text.startswith(_PROMPT)), False)
    kind, block, heard = "", list[str](), False
    for text in [*run, None]:
        sort = _sort(text, marked=marked, heard=heard, before=kind)
        if sort != kind or text is None:
            if words := "\n".join(block).strip():
                yield whole.line({"aider": kind, "text": words, "at": stamp})
            kind, block = sort, []
        heard = heard or sort == "owner"
        block.append("" if text is None else _bare(text, sort))


def _sort(text: str | None, *, marked: bool, heard: bool, before: str) -> str:
    """Return whose a line is."""
    if text is None:
        return ""
    if text.startswith(_PROMPT) or text.rstrip() == _PROMPT.strip():
        own = text.endswith("  ") if marked else (not heard or before == "owner")
        return "owner" if own else "nobody"
    if text.startswith(_OUTPUT):
        return "output"
    if text.strip():
        return "reply"
    return (
        "" if before == "owner" else before
    )  # the next `#### ` after a blank line is another prompt


def _bare(text: str, sort: str) -> str:
    return text[len(_PROMPT) :].rstrip() if sort == "owner" and text.startswith("####") else text


def parse(line: Any, n: int, begun: bool, raw: bytes) -> Record:
    """Return the record of a line."""
    kind, words = loose.string(line.get("aider")), line.get("text")
    items: list[Item] = []
    if kind == "owner":
        loose.say(items, 0, Kind.OWNER, words)
        linked = _LINK.search(loose.string(words)) is not None
        items.append(Brought(0, "task-notification" if linked else "attachment:file"))
    elif kind == "reply":
        loose.say(items, 0, Kind.ASSISTANT, words)
    elif kind in ("output", "nobody"):
        items.append(Brought(0, "local-command"))
    elif kind != "started":
        items += base.unknown(base.text(kind), line, frozenset(("aider",)))
    stamp = line.get("at")
    ts = parse_rfc3339(stamp) if isinstance(stamp, str) and loose.when(stamp) is not None else None
    return Record(n, ts, items, base.about(None, None, ID) if n == 0 else None)


ADAPTER = base.Adapter(
    id=ID,
    version=1,
    decoder=loose.DECODER,
    find=find,
    wants=lambda log: False,
    claims=lambda record: "aider" in record,
    parse=parse,
    whole=(
        whole.Whole(
            wants=lambda log: log.rpartition("/")[2] == NAME,
            form="text",
            claims=lambda start: start.startswith(_START),
            lines=lines,
        ),
    ),
)
