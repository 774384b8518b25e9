"""Front matter: up to four flat lines between ``---`` fences at the start of a note.

In: a note's text. Out: its `Front` and where the body starts. Only ``title``, ``description``, ``tags`` and
``expires`` exist, only in the forms ``key: value`` and ``tags: [a, b]``: no quotes, no nesting, no types to
guess. A label is never among them: the label of a note is the folder it lies in.
"""

import re
from datetime import date

import msgspec

from memoryd.errors import CheckFailed

FENCE = "---"
MAX_TITLE = 120
MAX_DESCRIPTION = 240
MAX_TAGS = 12
_TAG = re.compile(r"[a-z0-9-]{1,32}")


class Front(msgspec.Struct, frozen=True):
    """What a note says of itself; `expires` is the first day on which it no longer holds."""

    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    expires: date | None = None


def parse(text: str) -> tuple[Front, str]:
    """Return the front matter of `text` and its body; a text without a first fence is all body.

    Raises: CheckFailed (``front``) naming the line.
    """
    if not (text == FENCE or text.startswith(FENCE + "\n")):
        return Front(), text
    lines = text.split("\n")
    try:
        end = lines.index(FENCE, 1)
    except ValueError:
        raise _wrong(1, "has no closing fence", f"close it with a line '{FENCE}'") from None
    given: dict[str, object] = {}
    for number, line in enumerate(lines[1:end], 2):
        key, separator, value = line.partition(":")
        if not separator or key not in Front.__struct_fields__:
            known = ", ".join(Front.__struct_fields__)
            raise _wrong(number, "is no known 'key: value'", f"the keys are {known}")
        if key in given:
            raise _wrong(number, "repeats a key", "give each key once")
        given[key] = _value(number, key, value.strip())
    return Front(**given), "\n".join(lines[end + 1 :])  # type: ignore[arg-type]  # checked by _value


def _value(number: int, key: str, value: str) -> object:
    match key:
        case "title" | "description":
            most = MAX_TITLE if key == "title" else MAX_DESCRIPTION
            if not 0 < len(value) <= most:
                raise _wrong(number, f"has a {key} of {len(value)} characters", f"1 to {most} fit")
            return value
        case "tags":
            return _tags(number, value)
        case _:
            try:
                return date.fromisoformat(value)
            except ValueError:
                raise _wrong(number, "has no date", "write it as 2026-01-31") from None


def _tags(number: int, value: str) -> tuple[str, ...]:
    if not (value.startswith("[") and value.endswith("]")):
        raise _wrong(number, "has no list", "write it as [one, two]")
    inside = value[1:-1].strip()
    tags = tuple(tag.strip() for tag in inside.split(",")) if inside else ()
    if len(tags) > MAX_TAGS or not all(_TAG.fullmatch(tag) for tag in tags):
        raise _wrong(number, "has too many or malformed tags", f"{MAX_TAGS} at most, of a-z 0-9 -")
    return tags


def _wrong(number: int, problem: str, remedy: str) -> CheckFailed:
    return CheckFailed(
        f"line {number} of the front matter {problem}", remedy=remedy, check="front", line=number
    )
