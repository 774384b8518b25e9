"""What the daemon says about itself: lines for a person on a terminal, JSON otherwise, on stderr.

In: `structlog` events. Out: one line each. A log line never holds a record's text: only the keys
listed here pass, whatever a caller adds, their values are cut short, and of an exception only its
type and place are kept, since its words may quote what was being read.
"""

import contextlib
import sys
import traceback
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any, TextIO

import msgspec
import structlog

from memoryd import clock

KEYS = frozenset(
    {
        "adapter", "address", "again", "behind", "bytes", "class", "code", "count", "dropped",
        "epoch", "error_id", "errno", "event", "exception", "generation", "held", "home",
        "indexed", "job", "left_out", "level", "line", "logs", "ms", "method", "path", "pid",
        "problem", "protocol", "records", "remedy", "retry_ms", "rows", "seconds", "signal", "size",
        "socket", "source", "state", "step", "timestamp", "uid", "unreadable", "version", "where",
    }
)  # fmt: skip
"""Every key a line can have. None is for words that came out of a log, a note or a query."""

_LONGEST = 300
_FRAMES = 6

Event = MutableMapping[str, Any]


def configure(stream: TextIO | None = None) -> None:
    """Send all of structlog's events to `stream` (stderr), coloured if that is a terminal."""
    stream = sys.stderr if stream is None else stream
    person = stream.isatty()
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            _stamp,
            place_of_exception,
            only_known_keys,
            structlog.dev.ConsoleRenderer() if person else _json,
        ],
        wrapper_class=structlog.make_filtering_bound_logger("INFO"),
        logger_factory=lambda *_: Lines(stream),
        cache_logger_on_first_use=False,
    )


class Lines:
    """Writes whole lines to a stream; that nobody reads them any more must stop nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        """Write one line, if that is possible."""
        with contextlib.suppress(OSError, ValueError):  # a full disk, a closed pipe or stream
            self._stream.write(line + "\n")
            self._stream.flush()

    debug = info = warning = error = critical = exception = fatal = msg


def only_known_keys(_logger: object, _method: str, event: Event) -> Event:
    """Drop every key that is not in `KEYS`, naming those dropped, and cut long values."""
    unknown = sorted(event.keys() - KEYS)
    for key in unknown:
        del event[key]
    for key, value in event.items():
        if not isinstance(value, int | float | None):
            event[key] = str(value)[:_LONGEST]
    if unknown:
        event["dropped"] = ",".join(unknown)[:_LONGEST]
    return event


def place_of_exception(_logger: object, _method: str, event: Event) -> Event:
    """Replace `exc_info` by the exception's type and the places it came through, without words."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event["exception"] = type(error).__name__
        event["where"] = _places(error.__traceback__)
    return event


def _places(trace: TracebackType | None) -> str:
    frames = traceback.extract_tb(trace)[-_FRAMES:]
    return " < ".join(
        f"{frame.name}:{frame.filename.rpartition('/')[2]}:{frame.lineno}"
        for frame in reversed(frames)
    )


def _stamp(_logger: object, _method: str, event: Event) -> Event:
    event["timestamp"] = clock.rfc3339(clock.now_ms())
    return event


def _json(_logger: object, _method: str, event: Event) -> str:
    first = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return msgspec.json.encode(first | dict(event)).decode()
