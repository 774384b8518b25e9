"""What an index must hold, told by a plain second reading of the logs.

In: the bytes of native and Claude Code logs, the floors in `overrides.jsonl`. Out: the lines of `dump`, and
each log's label at its end. Nothing of memoryd is imported: two readings that share code share its faults.
It knows only what `tests.chaos.field` writes: three kinds of words, calls of four tools, results, and every
way in which a line can be broken.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CLASSES = ("public", "internal", "private", "secret")
TOP = len(CLASSES) - 1
WORST = (TOP, True)
TOOLS = {"Quiet": (0, False), "Web": (0, True), "Vault": (2, False)}
"""What the chaos configuration says of Claude Code's tools; any other is worth the worst."""
_SAID = {"owner": "owner", "assistant": "assistant", "summary": "summary"}
_BLANK = " \t\r\n"
_ESCAPED = re.compile("[\udc80-\udcff]")
"""Bytes that are no UTF-8, as `surrogateescape` gives them."""
_decode = json.JSONDecoder()

Label = tuple[int, bool]
Place = tuple[str, str, str]
"""Source, root, log."""


class Row(NamedTuple):
    """A row without its place: where in the log, what it is, its label and words."""

    n: int
    block: int
    kind: str
    ts: str | None
    tool: str | None
    label: Label
    text: str


class Reading(NamedTuple):
    """One log, read to its end."""

    session: str
    rows: list[Row]
    label: Label
    unreadable: int


def join(one: Label, other: Label) -> Label:
    """Return the higher class of two, untrusted if either is."""
    return max(one[0], other[0]), one[1] or other[1]


def covers(one: Label, other: Label) -> bool:
    """Say whether `one` is at least as high as `other`."""
    return join(one, other) == one


def objects(data: bytes) -> Iterator[dict[str, Any] | None]:
    """Yield every record of a log in order; None for what nobody can read.

    A line may hold several objects; what cannot be read, up to the line's end, is one record. Of a last line
    without its newline only whole objects count.
    """
    *lines, last = data.split(b"\n")
    for line in lines:
        yield from _objects(line, ended=True)
    yield from _objects(last, ended=False)


def _objects(line: bytes, *, ended: bool) -> Iterator[dict[str, Any] | None]:
    text = line.decode("utf-8", "surrogateescape").strip(_BLANK)
    while text:
        text = text.lstrip("\0" + _BLANK)  # a lost write before an object is passed over
        try:
            value, end = _decode.raw_decode(text)
        except (ValueError, RecursionError):
            value, end = None, 0
        if not isinstance(value, dict) or _ESCAPED.search(text[:end]):
            if ended:
                yield None
            return
        yield value
        text = text[end:].lstrip(_BLANK)


def read(source: str, log: str, data: bytes, start: Label, told_below: int) -> Reading:
    """Fold one log from `start`; `told_below`: above this class a log tells nothing of itself."""
    label, session, told = start, Path(log).stem, False
    rows: list[Row] = []
    calls: dict[str, Label] = {}
    answered: set[str] = set()
    unreadable = 0
    for n, record in enumerate(objects(data)):
        if record is None:
            label, unreadable = join(label, WORST), unreadable + 1
            continue
        name = record.get("sessionId" if source == "claude-code" else "session")
        if name and not told and label[0] <= told_below:
            session, told = name, True
        for block, item in enumerate(_items(source, record)):
            kind, tool, call, said = item
            ts = record.get("timestamp") or record.get("ts")
            if kind == "result":
                own = said if isinstance(said, tuple) else calls.get(call, WORST)
                if call not in calls and call not in answered:
                    own = WORST
                elif call not in calls and source == "claude-code":
                    own = (0, False)
                if call in calls:
                    answered.add(call)
                    del calls[call]
                label = join(label, own)
            elif kind:
                rows.append(Row(n, block, kind, ts, tool, label, str(said)))
                if kind == "tool_call":
                    worth = (0, False) if source == "native" else TOOLS.get(str(tool), WORST)
                    calls[call] = worth
    return Reading(session, rows, label, unreadable)


def _items(source: str, record: dict[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield (kind, tool, call, what is said or the stated label) of every block."""
    if source == "native":
        kind = record["kind"]
        if kind in _SAID:
            yield _SAID[kind], None, None, record["text"]
        elif kind == "tool_call":
            yield (
                "tool_call",
                record["tool"],
                record["call"],
                called(record["tool"], record["args"]),
            )
        elif kind == "tool_result":
            own = (CLASSES.index(record["class"]), record["untrusted"])
            yield "result", None, record["call"], own
        return
    content = record["message"]["content"]
    if isinstance(content, str):
        yield ("owner" if record["type"] == "user" else "assistant"), None, None, content
        return
    for block in content:
        if block["type"] == "text":
            yield "assistant", None, None, block["text"]
        elif block["type"] == "tool_use":
            yield "tool_call", block["name"], block["id"], called(block["name"], block["input"])
        elif block["type"] == "tool_result":
            yield "result", None, block["tool_use_id"], None
        else:
            yield "", None, None, None


def called(tool: str, args: dict[str, str]) -> str:
    """Return the text of a call: the tool's name, then its values; a password's is masked."""
    return "\n".join([tool, *("<redacted>" if key == "password" else args[key] for key in args)])


def floors(overrides: Path) -> dict[Place, Label]:
    """Return the floor of every log that has one; a line cut short counts for nothing."""
    found: dict[Place, Label] = {}
    lines = overrides.read_bytes().split(b"\n") if overrides.exists() else []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry["kind"] == "floor":
            place = (entry["source"], entry["root"], entry["log"])
            label = (CLASSES.index(entry["class"]), entry["untrusted"])
            found[place] = join(found.get(place, (0, False)), label)
    return found


def graves(overrides: Path) -> dict[Place, list[dict[str, Any]]]:
    """Return what of each log is forgotten and was not remembered since."""
    found: list[dict[str, Any]] = []
    lines = overrides.read_bytes().split(b"\n") if overrides.exists() else []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry["kind"] == "remember":
            found = [other for other in found if other.get("act") != entry["act"]]
        elif entry["kind"] == "forget":
            found.append(entry)
    by_log: dict[Place, list[dict[str, Any]]] = {}
    for entry in found:
        by_log.setdefault((entry["source"], entry["root"], entry["log"]), []).append(entry)
    return by_log


def is_forgotten(entries: list[dict[str, Any]], row: Row) -> bool:
    """Say whether a row is among what is forgotten of its log; only whole records are forgotten here."""
    return any(
        entry.get("from", 0) <= row.n and (entry.get("to") is None or row.n <= entry["to"])
        for entry in entries
    )


def dump(
    logs: dict[Place, bytes],
    below: dict[Place, Label],
    max_level: int,
    forgotten: dict[Place, list[dict[str, Any]]],
) -> tuple[list[bytes], dict[Place, Label]]:
    """Return the lines that `dump` must give for these logs, and each log's label at its end."""
    lines: list[tuple[tuple[str, str, int, int, str], bytes]] = []
    ends: dict[Place, Label] = {}
    for place, data in logs.items():
        source, root, log = place
        found = read(source, log, data, below.get(place, (0, False)), max_level)
        ends[place] = found.label
        for row in found.rows:
            if row.label[0] > max_level or is_forgotten(forgotten.get(place, []), row):
                continue
            told = {
                "source": source,
                "log": log,
                "session": found.session,
                "n": row.n,
                "block": row.block,
                "kind": row.kind,
                "ts": row.ts,
                "tool": row.tool,
                "class": CLASSES[row.label[0]],
                "untrusted": row.label[1],
                "text": row.text,
            }
            line = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            lines.append(((source, log, row.n, row.block, root), line.encode() + b"\n"))
    return [line for _, line in sorted(lines)], ends
