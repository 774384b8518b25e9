"""`bxctl status --watch`: the screen drawn anew in place each second, with how far long work is.

In: the daemon's account of itself, asked for again and again. Out: the terminal's other screen, so that a
window may change its size meanwhile; at the end what stood there last, where commands leave their output.
A daemon that goes away is told of in place, and asked again.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from threading import Event
from typing import Any, NamedTuple

from bxctl import output, safe, times, views
from bxctl.context import Context
from bxctl.layout import Cell, Para, Part, Span, cell
from bxctl.status_views import Told, asked, screen
from memoryd import clock
from memoryd.errors import BadRequest, MemorydError, Unavailable

LOOK_S = 1.0
"""Seconds between two looks."""
BAR = 30
"""Columns of a bar."""
_FIRST_S = 1.0
"""Seconds after which a rate means something."""
_CATCHING_UP = "reading"

OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, REST_OF_LINE, REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
"""What xterm, and every terminal since, understands (ECMA-48; 1049 and 25 are private modes of DEC and xterm)."""


class Work(NamedTuple):
    """Long work as it was when first seen: `first` of `whole` bytes were done at `began` (monotonic seconds)."""

    name: str
    began: float
    first: int
    whole: int


def watched(context: Context) -> int:
    """Show the screen until Ctrl-C. Raises: BadRequest without a terminal, Unavailable when it is down."""
    if context.out.json or not context.out.terminal or context.env.get("TERM") == "dumb":
        raise BadRequest(
            "--watch draws on a terminal, and standard output is none that can be drawn on",
            remedy="leave --watch out; a program asks `bxctl status --json` as often as it likes",
        )
    told, server = asked(context)
    work, doing = followed(None, told, clock.monotonic())
    shown = ""
    try:
        with _other_screen():
            while True:
                shown = context.out.drawn(screen(told, server, clock.now_ms(), doing))
                _draw(shown)
                Event().wait(LOOK_S)
                try:
                    told, server = asked(context)
                except MemorydError as error:
                    _draw(context.out.drawn(_away(error)))
                    told, server = _again(context)
                work, doing = followed(work, told, clock.monotonic())
    except KeyboardInterrupt:
        output.write(shown)
    return 0


def _again(context: Context) -> tuple[Told, Told]:
    """Ask until somebody answers."""
    while True:
        Event().wait(LOOK_S)
        try:
            return asked(context)
        except MemorydError as error:
            _draw(context.out.drawn(_away(error)))


def _away(error: MemorydError) -> Iterator[Part]:
    """Yield what is shown while nobody answers."""
    yield Para(cell(safe.line(error.message), "bad"))
    if error.remedy:
        yield Para(cell(safe.line(error.remedy)), 2)
    again = "asking again each second" if isinstance(error, Unavailable) else "asking again"
    yield Para(cell(f"{again}; Ctrl-C ends this", "dim"))


def followed(work: Work | None, told: dict[str, Any], now: float) -> tuple[Work | None, Cell]:
    """Return the long work that goes on at `now` (monotonic seconds), and a bar with rate and remaining time.

    `work` is what went on at the look before: the rate is what was done since it was first seen, where the daemon
    itself tells none. How much there is to catch up with is the most that was ever behind in one stretch.
    """
    behind, rebuild = told.get("behind") or {}, told.get("rebuild") or {}
    if rebuild.get("state") == "running":
        name, done, whole = rebuild["job"], rebuild["bytes"], rebuild["all_bytes"]
        speed = None
    elif behind.get("logs") and behind.get("bytes"):
        left = behind["bytes"]
        before = work.whole if work is not None and work.name == _CATCHING_UP else 0
        name, whole = _CATCHING_UP, max(before, left)
        done, speed = whole - left, behind.get("bytes_per_s")
    else:
        return None, ()
    if work is None or work.name != name or work.whole != whole:
        work = Work(name, now, done, whole)
    passed = now - work.began
    if not speed and passed >= _FIRST_S:
        speed = (done - work.first) / passed
    return work, _bar(done, whole, speed or 0)


def _bar(done: int, whole: int, speed: float) -> Cell:
    """Return a bar of `BAR` columns, its share, and with a `speed` in bytes a second how long it will take."""
    share = min(1.0, done / whole) if whole else 0.0
    full = int(share * BAR)
    pace = ""
    if speed > 0:
        left = times.lasted(max(0, whole - done) / speed)
        pace = f"  {views.sized(round(speed))} a second, about {left} left"
    return (
        Span("━" * full, "class1"),
        Span("─" * (BAR - full), "dim"),
        Span(f" {int(share * 100):3} %"),
        Span(pace, "dim"),
    )


def _draw(text: str) -> None:
    """Put `text` over what stands on the screen, as many lines as it has."""
    lines, most = text.splitlines(), get_terminal_size().lines
    if len(lines) >= most:
        lines = [*lines[: most - 2], "…"]
    output.write(HOME + "".join(f"{line}{REST_OF_LINE}\n" for line in lines) + REST_OF_SCREEN)
    output.flush()


@contextmanager
def _other_screen() -> Iterator[None]:
    """Draw elsewhere than where commands leave their output; a SIGTERM, too, brings the terminal back."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        output.write(OTHER_SCREEN)
        yield
    finally:
        output.write(OWN_SCREEN)
        output.flush()
        signal.signal(signal.SIGTERM, before)
