"""Times as people say them, in and out.

In: words such as ``3d``, ``2h ago``, ``yesterday``, ``2026-01-31`` or RFC 3339. Out: milliseconds since
1970; and the other way, milliseconds as "3 days ago". Days are those of the local time zone. Pure: the
present moment is an argument.
"""

from datetime import UTC, date, datetime, time, timedelta
from enum import Enum

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_557_600}
_NAMES = {
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
    "year": "y",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Edge(Enum):
    """Which end of a day is meant when a time names only the day: its first moment, or the next day's."""

    START = 0
    END = 1


def moment(text: str, now: int, edge: Edge) -> int | None:
    """Return the moment that `text` names, in ms since 1970, or None if it names none.

    ``3d``, ``2 hours ago`` count back from `now`; a date, ``today`` and ``yesterday`` are local days, of
    which `edge` says the end that is meant; a time without offset is local.
    """
    plain = text.strip().lower()
    if plain == "now":
        return now
    back = {"today": 0, "yesterday": 1}.get(plain)
    if back is not None:
        return _day(_local(now).date() - timedelta(days=back), edge)
    ago = _ago(plain)
    return now - ago if ago is not None else _calendar(text.strip(), edge)


def _ago(text: str) -> int | None:
    """Return the milliseconds of ``3d``, ``2h ago`` or ``5 minutes ago``."""
    body = text.removesuffix("ago").strip()
    digits = len(body) - len(body.lstrip("0123456789"))
    unit = body[digits:].strip()
    unit = _NAMES.get(unit.removesuffix("s"), unit)
    if not 0 < digits <= 4 or unit not in _UNITS:
        return None
    return int(body[:digits]) * _UNITS[unit] * 1_000


def _calendar(text: str, edge: Edge) -> int | None:
    if len(text) > 64 or not text.isascii():
        return None
    try:
        when = datetime.fromisoformat(text.upper())
        if "T" not in text.upper() and ":" not in text:
            return _day(when.date(), edge)
        return (when.astimezone(UTC) - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError, OSError):
        return None


def _local(ms: int) -> datetime:
    return (_EPOCH + ms * _MILLISECOND).astimezone()


def _day(day: date, edge: Edge) -> int:
    """Return when a local day starts, or when the next one does, in ms since 1970."""
    start = datetime.combine(day + timedelta(days=edge.value), time.min)
    return (start.astimezone(UTC) - _EPOCH) // _MILLISECOND


def said(ms: int | None, now: int) -> str:
    """Return `ms` as one says it at `now`: ``5 min ago``, ``yesterday 14:05``, ``12 Mar``, ``Mar 2024``."""
    if ms is None:
        return "no time"
    try:
        then, today = _local(ms), _local(now)
    except (ValueError, OverflowError, OSError):
        return "no time"
    gone = (now - ms) // 1_000
    if gone < 0:
        return f"{then:%Y-%m-%d %H:%M}"
    if gone < 45:
        return "just now"
    if gone < 5_400:
        return f"{max(1, round(gone / 60))} min ago"
    days = (today.date() - then.date()).days
    if days == 0:
        return f"today {then:%H:%M}"
    if days == 1:
        return f"yesterday {then:%H:%M}"
    if days < 14:
        return f"{days} days ago"
    return f"{then.day} {then:%b}" if days < 300 else f"{then.day} {then:%b %Y}"


def lasted(seconds: float) -> str:
    """Return a duration with its two largest units: ``0.4 s``, ``3 min 5 s``, ``2 h 10 min``, ``5 d 3 h``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, small, part in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"
