"""Lessons worth a line in AGENTS.md: drafted here, spliced in only when the owner says so.

In: what a reader may see, and the bytes of a file. Out: a draft, and the file with one marked block of ours;
every other byte of it stays what it was.
"""

import apsw
import msgspec

from memoryd.errors import BadRequest
from memoryd.lessons import row
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson

BEGIN = b"<!-- memoryd lessons: begin -->"
END = b"<!-- memoryd lessons: end -->"
_LEAST_CONFIDENCE = 0.6
_MOST = 12


def worthy(connection: apsw.Connection, reader: Reader, project: str) -> list[Lesson]:
    """Return proven patterns and written rules of a project, the surest first; never untrusted ones.

    What somebody wrote for no project holds for all; what was seen in a log that names none is of some other.
    """
    narrow = msgspec.structs.replace(reader, untrusted="exclude")
    found = row.visible(
        connection,
        narrow,
        "status = 'active' AND ignored = 0 AND type IN ('pattern', 'rule', 'decision') "
        "AND origin <> 'pattern' AND (project = ? OR (project = '' AND origin <> 'causal'))",
        (project,),
    )
    sure = [one for one in found if one.type != "pattern" or one.confidence >= _LEAST_CONFIDENCE]
    return sorted(sure, key=lambda one: (-one.confidence, -one.evidence, one.row))[:_MOST]


def draft(lessons: list[Lesson]) -> str:
    """Return the lines that would stand in the block; "" for no lessons."""
    return "\n".join(f"- {_line(lesson)}" for lesson in lessons)


def splice(content: bytes, lines: str) -> bytes:
    """Return `content` with the block set to `lines`, appended where there is none yet.

    Raises: BadRequest where the marks stand more than once, or the wrong way round.
    """
    newline = _newline(content)
    told = lines.encode("utf-8", "replace").replace(b"\n", newline)
    block = BEGIN + newline + told + newline + END
    begins, ends = content.count(BEGIN), content.count(END)
    if (begins, ends) == (0, 0):
        gap = b"" if not content or content.endswith(b"\n") else newline
        return content + gap + (newline if content else b"") + block + newline
    start, end = content.find(BEGIN), content.find(END)
    if (begins, ends) != (1, 1) or end < start:
        raise BadRequest(
            "the file's lesson marks do not pair up", remedy="mend or remove them by hand"
        )
    return content[:start] + block + content[end + len(END) :]


def _newline(content: bytes) -> bytes:
    """Return how lines end: in our block where there is one, else in the file."""
    start = content.find(BEGIN)
    told = content if start < 0 else content[start + len(BEGIN) :]
    end = told.find(b"\n")
    return b"\r\n" if end > 0 and told[end - 1 : end] == b"\r" else b"\n"


def _line(lesson: Lesson) -> str:
    if lesson.type == "pattern":
        first = lesson.content.splitlines()[0].removeprefix("Causal pattern: ")
        text = f"{first} What mended it: {lesson.fix_args}." if lesson.fix_args else first
    else:
        text = " ".join(lesson.content.split())
    return text.replace("<!--", "<! --").replace("-->", "-- >")
