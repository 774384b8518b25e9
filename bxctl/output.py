"""Where a command's words go: data to standard output, talk to standard error.

In: parts of `bxctl.layout`, or values for JSON. Out: for a terminal wrapped and coloured text (rich,
imported only then), for a pipe aligned plain text, with ``--json`` lines of JSON in UTF-8.
"""

import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from bxctl import safe
from bxctl.layout import Part, plain
from memoryd.errors import IOFailed

PIPE_COLUMNS = 80
"""Width of coloured output that goes to no terminal (``--color always``), unless COLUMNS says another."""


class ReaderGone(Exception):
    """Whoever read our output has closed it, having seen enough (SIGPIPE); nothing is wrong."""


class Output:
    """How one command's output is to be written."""

    def __init__(self, env: Mapping[str, str], *, json: bool, color: str) -> None:
        """Decide on form and colour; `color` is auto, always or never.

        auto means colour on a terminal, unless NO_COLOR is set or TERM is dumb.
        """
        self.json = json
        self.when = color
        self.terminal = sys.stdout is not None and sys.stdout.isatty()
        self.colour = not json and _coloured(color, self.terminal, env)
        _prepare(sys.stdout, "utf-8" if json else None)
        _prepare(sys.stderr, None)

    def show(self, parts: Iterable[Part]) -> None:
        """Print for a person. Raises: ReaderGone, IOFailed."""
        write(self.drawn(parts))

    def drawn(self, parts: Iterable[Part]) -> str:
        """Return the text that `show` prints."""
        if not self.terminal and not self.colour:
            return plain(parts)
        from bxctl import paint

        width = None if self.terminal or "COLUMNS" in os.environ else PIPE_COLUMNS
        return paint.painted(parts, colour=self.colour, width=width)

    def value(self, form: str, version: int, content: Mapping[str, object]) -> None:
        """Print one JSON object that says what it is: its `form`, and that form's `version`.

        Raises: ReaderGone, IOFailed.
        """
        write(encoded(form, version, content) + "\n")

    def line(self, canonical: str) -> None:
        """Print a line of canonical JSON as the bytes that it is; on a terminal made safe for it.

        Raises: ReaderGone, IOFailed.
        """
        _prepare(sys.stdout, "utf-8")
        write(f"{safe.json_line(canonical) if self.terminal else canonical}\n")


def encoded(form: str, version: int, content: Mapping[str, object]) -> str:
    """Return one line of JSON in which no character acts on a terminal."""
    from json import dumps  # a person's search does without it

    head = {"format": form, "version": version}
    value = head | dict(content) | head  # first in order, and not to be had by the content
    return safe.json_line(dumps(value, ensure_ascii=False, separators=(",", ":")))


def write(text: str) -> None:
    """Write to standard output. Raises: ReaderGone, IOFailed."""
    with _writing():
        sys.stdout.write(text)


def flush() -> None:
    """Bring all that was written to its reader. Raises: ReaderGone, IOFailed."""
    with _writing():
        sys.stdout.flush()


def say(text: str) -> None:
    """Print one line of talk to standard error, after what was written; if nobody can read it, it is lost."""
    if sys.stdout is not None:
        with suppress(OSError, ValueError):  # the data's own last flush tells of that
            sys.stdout.flush()
    tell(f"bxctl: {safe.line(text)}")


def tell(line: str) -> None:
    """Print a line, already safe, to standard error; if nobody can read it, it is lost."""
    try:
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        drop(sys.stderr)


def drop(stream: object) -> None:
    """Send what is left in a dead stream nowhere, so that the interpreter's last flush is quiet."""
    if isinstance(stream, io.TextIOWrapper):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def _writing() -> Iterator[None]:
    """Turn the ways in which writing fails into ours."""
    if sys.stdout is None:
        raise IOFailed("standard output is closed", remedy="leave it open, or send it to a file")
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise IOFailed(
            f"standard output cannot be written: {error.strerror}",
            remedy="look at where it is sent to",
        ) from None


def _prepare(stream: object, encoding: str | None) -> None:
    """Let a stream print every character: what its encoding lacks comes out escaped."""
    if isinstance(stream, io.TextIOWrapper) and encoding != stream.encoding:
        stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _coloured(color: str, terminal: bool, env: Mapping[str, str]) -> bool:
    if color != "auto":
        return color == "always"
    return terminal and not env.get("NO_COLOR") and env.get("TERM") != "dumb"
