"""Reading logs: bytes to records and their text, against orjson with the same text.

In: the corpus, page cache warm. Out: one row, memoryd's rate over orjson's. Both produce the text of every
owner message, reply and call, and must agree on it; memoryd besides counts records, keeps positions, tells
results and labels' names apart and survives broken lines. Times are decoded, and made numbers of when somebody asks.
"""

import gc
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from bench import corpus as made
from bench.row import Row, cpu_seconds, pinned
from memoryd.records import Called, Said, call_text
from memoryd.sources import LogFile, lines
from memoryd.sources.lines import Position

ROUNDS = 15
MOST_BYTES = 150 << 20


def rows(corpus: Path) -> list[Row]:
    """Return the row `decode`."""
    with tempfile.TemporaryDirectory(prefix="md-decode-") as state:
        files = _some(made.logs(corpus, Path(state)))
    size = sum(file.path.stat().st_size for file in files)
    if _ours(files) != _peers(files):
        raise AssertionError("the two decoders do not agree on the text")
    with pinned(0), uncollected():
        taken = [
            (cpu_seconds(lambda: _ours(files)), cpu_seconds(lambda: _peers(files)))
            for _ in range(ROUNDS)
        ]
    # The median of the rounds' own ratios: a machine that slows down slows both halves of a round.
    ratio = median(theirs / ours for ours, theirs in taken)
    ours, theirs = (size / median(column) / 1e6 for column in zip(*taken, strict=True))
    detail = f"{ours:.0f} MB/s against {theirs:.0f}, warm, {size >> 20} MiB"
    return [
        Row(
            "decode and text of logs, warm",
            "orjson and the same text",
            ratio,
            1.4,
            ">=",
            detail=detail,
        )
    ]


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the cycle collector out of both, as a rebuild does: no record is part of a cycle."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _some(files: list[LogFile]) -> list[LogFile]:
    taken, size = [], 0
    for file in files:
        taken.append(file)
        size += file.path.stat().st_size
        if size > MOST_BYTES:
            break
    return taken


def _ours(files: list[LogFile]) -> tuple[int, int]:
    count = size = 0
    for file in files:
        handle = os.open(file.path, os.O_RDONLY)
        try:
            for batch in lines.read(handle, Position(), file.adapter, log=file.log):
                for record in batch.records:
                    for item in record.items:
                        kind = type(item)
                        if kind is Said:
                            count, size = count + 1, size + len(item.text)
                        elif kind is Called:
                            count, size = count + 1, size + len(call_text(item.tool, item.args))
        finally:
            os.close(handle)
    return count, size


def _peers(files: list[LogFile]) -> tuple[int, int]:
    count = size = 0
    for file in files:
        with file.path.open("rb") as log:
            for line in log:
                for text in _texts(orjson.loads(line)):
                    count, size = count + 1, size + len(text)
    return count, size


def _texts(record: dict[str, Any]) -> list[str]:
    if "kind" in record:
        if record["kind"] in {"owner", "assistant"}:
            return [record["text"]]
        return [call_text(record["tool"], record["args"])] if record["kind"] == "tool_call" else []
    content = record["message"]["content"]
    if isinstance(content, str):
        return [content]
    found = []
    for block in content:
        if block["type"] == "text":
            found.append(block["text"])
        elif block["type"] == "tool_use":
            found.append(call_text(block["name"], block["input"]))
    return found
