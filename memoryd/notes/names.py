"""The names of notes: what an agent writes (``/memories/internal/build.md``), as class and segments.

In: a path as text, the configured classes, the highest class that may be named. Out: a `Place`. No file
is touched: the rules here are about text alone (checks 3 to 5), so that nothing that could mislead a
file system, a terminal or a reader ever becomes a file's name. Only ASCII letters, digits, ``. _ -`` and
inner spaces are possible in a segment, which also rules out look-alikes and twins in other normal forms.
"""

import re
import unicodedata

import msgspec

from memoryd.errors import CheckFailed
from memoryd.labels import Classes
from memoryd.notes.handles import absent

ROOT = "/memories"
INDEX_NOTE = "MEMORY.md"
INBOX = "inbox"
MAX_PATH_BYTES = 255
MAX_SEGMENT_BYTES = 64
MAX_DEPTH = 6
"""Segments after ``/memories``, the class among them."""
SUFFIX = ".md"

_SEGMENT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._ -]*[A-Za-z0-9_-])?")
_ENCODED = re.compile(r"%(?:2e|2f|5c)", re.IGNORECASE)
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_DEVICES = re.compile(r"(?:con|nul|aux|prn|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)


class Place(msgspec.Struct, frozen=True, order=True, gc=False):
    """Where a note or folder is: its class, and the segments below the class's folder."""

    level: int
    segments: tuple[str, ...]

    @property
    def inbox(self) -> bool:
        """Say whether the place is (in) the class's folder of untrusted notes."""
        return self.segments[:1] == (INBOX,)

    @property
    def name(self) -> str:
        """Return the last segment; "" for a class's own folder."""
        return self.segments[-1] if self.segments else ""

    @property
    def parent(self) -> "Place":
        """Return the folder around it; a class's own folder is its own parent."""
        return Place(self.level, self.segments[:-1])


def shown(classes: Classes, place: Place) -> str:
    """Return the path under which tools know `place`."""
    return "/".join((ROOT, classes.name(place.level), *place.segments))


def stored(classes: Classes, place: Place) -> str:
    """Return the path of `place` below the folder of notes, as the journal and the index name it."""
    return "/".join((classes.name(place.level), *place.segments))


def bad_path(problem: str) -> CheckFailed:
    """Return the refusal of check 3; the path itself is not repeated."""
    return CheckFailed(
        f"the path {problem}",
        remedy=f"write {ROOT}/<class>/<name>.md with letters, digits, '.', '_', '-' and inner spaces",
        check="path",
    )


def segments(path: str) -> tuple[str, ...]:
    """Return the segments of `path` below ``/memories``, none for ``/memories`` itself (check 3).

    A slash at the end is allowed after a folder's name. Raises: CheckFailed (``path``) for a text that no
    note or folder can have.
    """
    check_text(path)
    if path in {ROOT, ROOT + "/"}:
        return ()
    if not path.startswith(ROOT + "/"):
        raise bad_path(f"does not start with {ROOT}/")
    below = path[len(ROOT) + 1 :]
    found = tuple(below.removesuffix("/").split("/"))
    for segment in found:
        check_segment(segment)
    if len(found) > MAX_DEPTH:
        raise bad_path(f"has more than {MAX_DEPTH} parts")
    if any(segment.endswith(SUFFIX) for segment in found[:-1]) or below.endswith(SUFFIX + "/"):
        raise bad_path(f"has a folder that ends in {SUFFIX}")
    return found


def place_of(found: tuple[str, ...], classes: Classes, clearance: int) -> Place:
    """Return the place that `segments` mean for a reader (check 4).

    Raises: NotFound for a class that does not exist or lies above `clearance`, alike.
    """
    if not found or found[0] not in classes.upto(clearance):
        raise absent()
    return Place(classes.level(found[0]), found[1:])


def parse(path: str, classes: Classes, clearance: int) -> Place | None:
    """Return the place that `path` names; None: ``/memories`` itself. Raises: as the two above."""
    found = segments(path)
    return place_of(found, classes, clearance) if found else None


def from_stored(path: str, classes: Classes) -> Place | None:
    """Return the place of a path of the journal; None for a class that is no longer configured."""
    first, *rest = path.split("/")
    return Place(classes.level(first), tuple(rest)) if first in classes.names else None


def check_text(path: str) -> None:
    """Refuse text that is not what it looks like. Raises: CheckFailed (``path``)."""
    if any(unicodedata.category(letter) in _UNSEEN for letter in path):
        raise bad_path("holds a character that cannot be seen")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise bad_path(f"has more than {MAX_PATH_BYTES} bytes")
    if unicodedata.normalize("NFC", path) != path:
        raise bad_path("is not in Unicode's composed form")
    if "\\" in path or _ENCODED.search(path):
        raise bad_path("holds a backslash or an encoded separator")


def check_segment(segment: str) -> None:
    """Refuse a segment that no note can have. Raises: CheckFailed (``path``)."""
    if segment in {"", ".", ".."}:
        raise bad_path("has an empty part, '.' or '..'")
    if len(segment) > MAX_SEGMENT_BYTES:
        raise bad_path(f"has a part of more than {MAX_SEGMENT_BYTES} bytes")
    if not _SEGMENT.fullmatch(segment):
        raise bad_path("has a part with other characters, or a dot or space at an end")
    if _DEVICES.fullmatch(segment):
        raise bad_path("has a part that names a device on some systems")


def check_note(place: Place) -> None:
    """Refuse a place that can hold no note. Raises: CheckFailed (``path`` or ``reserved``)."""
    if not place.segments or place.segments == (INBOX,):
        raise reserved("that is a folder of every class")
    if not place.name.endswith(SUFFIX) or len(place.name) == len(SUFFIX):
        raise bad_path(f"does not end in a name and {SUFFIX}")
    if INBOX in (segment.lower() for segment in place.segments[1:]) or (
        place.segments[0].lower() == INBOX and place.segments[0] != INBOX
    ):
        raise reserved(f"'{INBOX}' is possible only right below the class")
    if place.segments[0].lower() == INDEX_NOTE.lower() and place.segments != (INDEX_NOTE,):
        raise reserved(f"only {INDEX_NOTE} itself is written so")


def check_removable(place: Place) -> None:
    """Refuse to remove or rename what every class has. Raises: CheckFailed (``reserved``)."""
    if not place.segments or place.segments in {(INBOX,), (INDEX_NOTE,)}:
        raise reserved("every class keeps it")


def reserved(problem: str) -> CheckFailed:
    """Return the refusal of check 5."""
    return CheckFailed(problem, remedy="choose another name", check="reserved")
