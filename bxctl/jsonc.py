"""Change one place of a JSON file and leave every other byte of it alone, comments and order too.

In: the text of a JSON file, as people keep them (comments, trailing commas), and a path of keys. Out: the text with
a member or an item added at the end of its container, or taken away again. Pure. What `added` adds, `removed`
takes away so that the old bytes come back, wherever the container had been written on lines or held something.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from memoryd.errors import BadRequest

Path = Sequence[str | int]

_BLANK = re.compile(r"\s+|//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[-+.\w]+")
_MOST_DEEP = 200


class Node(NamedTuple):
    """A value's place in the text; `members` of an object or an array, none of anything else."""

    kind: str
    start: int
    end: int
    members: "list[Member]"


class Member(NamedTuple):
    """A member of an object, or an item of an array (`key` None), from its first byte to its last."""

    key: str | None
    start: int
    end: int
    value: Node
    comma: int
    """Where the comma behind it stands; -1 for none."""


@lru_cache(
    maxsize=4
)  # a change looks at the same text many times, and a harness's state may be megabytes
def parsed(text: str) -> Node:
    """Return the places of everything in `text`. Raises: BadRequest naming the line."""
    start = 1 if text.startswith("\ufeff") else 0
    node, at = _value(text, _blank(text, start), 0)
    if _blank(text, at) != len(text):
        raise _wrong(text, at, "holds more than one value")
    return node


def value(text: str, node: Node | None = None) -> Any:
    """Return what `text`, or a part of it, means as Python values. Raises: BadRequest."""
    node = parsed(text) if node is None else node
    if node.kind == "object":
        return {member.key: value(text, member.value) for member in node.members}
    if node.kind == "array":
        return [value(text, member.value) for member in node.members]
    try:
        return json.loads(text[node.start : node.end])
    except ValueError:
        raise _wrong(text, node.start, "holds what is no JSON value") from None


def found(node: Node, path: Path) -> Node | None:
    """Return the value at `path`, None where there is none."""
    for step in path:
        inner = [
            member
            for at, member in enumerate(node.members)
            if (at if node.kind == "array" else member.key) == step
        ]
        if not inner:
            return None
        node = inner[-1].value
    return node


def added(text: str, path: Sequence[str], item: Any) -> str:
    """Return `text` with `item` at the end of the array at `path`, which is made where it is missing.

    A path whose last word is ``""`` names that array by what comes before; any other names a member that must
    not be there yet. Raises: BadRequest where something else stands in the way.
    """
    node = parsed(text)
    if node.kind != "object":
        raise _wrong(text, node.start, "is no object")
    *containers, last = path
    for depth, key in enumerate(containers):
        inner = found(node, (key,))
        if inner is None:
            return _inserted(text, node, key, _nested(containers[depth + 1 :], last, item))
        wanted = "array" if last == "" and depth == len(containers) - 1 else "object"
        if inner.kind != wanted:
            raise _wrong(text, inner.start, f"has no {wanted} at {'.'.join(containers)}")
        node = inner
    if last and found(node, (last,)) is not None:
        raise _wrong(text, node.start, f"has {'.'.join(path)} already")
    return _inserted(text, node, last or None, item)


def _nested(containers: Sequence[str], last: str, item: Any) -> Any:
    made: Any = {last: item} if last else [item]
    for key in reversed(containers):
        made = {key: made}
    return made


def removed(text: str, path: Path) -> str:
    """Return `text` without what stands at `path`; as it is where there is nothing."""
    node = found(parsed(text), path[:-1])
    if node is None:
        return text
    for at, member in enumerate(node.members):
        if (at if node.kind == "array" else member.key) == path[-1]:
            return _without(text, node, at)
    return text


def _inserted(text: str, node: Node, key: str | None, item: Any) -> str:
    """Put a member at the end of a container, in the way its other members are written."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    on_lines = not node.members or "\n" in text[node.start : node.members[0].start]
    outer = _indent_of(text, node.start)
    indent = _indent_of(text, node.members[-1].start) if node.members else outer + unit
    head = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not on_lines:
        body = head + json.dumps(item, ensure_ascii=False)
        last = node.members[-1]
        if last.comma >= 0:
            return f"{text[: last.comma + 1]} {body},{text[last.comma + 1 :]}"
        return f"{text[: last.end]}, {body}{text[last.end :]}"
    lines = json.dumps(item, ensure_ascii=False, indent=unit).split("\n")
    body = head + (line_end + indent).join(lines)
    if not node.members:
        at = _last_comment(text, node)
        rest = text[at : node.end - 1]
        close = "" if "\n" in rest else line_end + outer
        return f"{text[:at]}{line_end}{indent}{body}{close}{text[at:]}"
    last = node.members[-1]
    behind = last.comma + 1 if last.comma >= 0 else last.end
    at = _end_of_line_comment(text, behind)
    comma, trailing = ("", ",") if last.comma >= 0 else (",", "")
    return f"{text[:behind]}{comma}{text[behind:at]}{line_end}{indent}{body}{trailing}{text[at:]}"


def _without(text: str, node: Node, at: int) -> str:
    member = node.members[at]
    end = member.comma + 1 if member.comma >= 0 else member.end
    before = node.members[at - 1] if at else None
    token = node.start if before is None else max(before.comma, before.end - 1)
    start = _begin_of_blanks(text, token + 1, member.start, text[end:])
    if len(node.members) == 1:
        inside = text[node.start + 1 : start] + text[end : node.end - 1]
        if not inside.strip():
            return text[: node.start + 1] + text[node.end - 1 :]
        return text[:start] + text[end:]
    if member.comma >= 0:
        return text[:start] + text[end:]
    comma = node.members[at - 1].comma
    return text[:comma] + text[comma + 1 : start] + text[end:]


def _begin_of_blanks(text: str, token: int, at: int, rest: str) -> int:
    """Return where the blanks before `at` begin, behind the `token` before them and its comments.

    Behind a comment that lasts to the line's end that end stays, unless another one follows in `rest`.
    """
    begin, comment = token, ""
    while token < at and (blank := _BLANK.match(text, token)):
        token = blank.end()
        if not blank[0].isspace():
            begin, comment = token, blank[0]
    follows = rest.lstrip(" \t")[:1]
    if comment.startswith("//") and follows not in {"\n", "\r", ""}:
        return text.index("\n", begin) + 1
    return begin


def _last_comment(text: str, node: Node) -> int:
    """Return where an empty container's last comment ends; behind its bracket where it has none."""
    at = here = node.start + 1
    while here < node.end - 1 and (blank := _BLANK.match(text, here)):
        here = blank.end()
        if not blank[0].isspace():
            at = here
    return at


def _end_of_line_comment(text: str, at: int) -> int:
    """Return where a comment ends that stands on the same line behind `at`; `at` where there is none."""
    here = at
    while (blank := _BLANK.match(text, here)) and "\n" not in blank[0]:
        here = blank.end()
        if not blank[0].isspace():
            at = here
    return at


def _indent_of(text: str, at: int) -> str:
    """Return the blanks with which the line of `at` begins."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    """Return what one step of indentation is in `text`: its first indented line's, else two blanks."""
    first = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return first[1] if first else "  "


def _blank(text: str, at: int) -> int:
    """Return where the blanks and comments from `at` on end. Raises: BadRequest."""
    while blank := _BLANK.match(text, at):
        at = blank.end()
    if text.startswith("/*", at):
        raise _wrong(text, at, "has a comment without an end")
    return at


def _value(text: str, at: int, deep: int) -> tuple[Node, int]:
    if deep > _MOST_DEEP:
        raise _wrong(text, at, "is nested too deep")
    sign = text[at : at + 1]
    if sign in {"{", "["}:
        return _container(text, at, deep)
    match = _STRING.match(text, at) if sign == '"' else _SCALAR.match(text, at)
    if match is None:
        raise _wrong(text, at, "lacks a value")
    return Node("scalar", at, match.end(), []), match.end()


def _container(text: str, begin: int, deep: int) -> tuple[Node, int]:
    kind, close = ("object", "}") if text[begin] == "{" else ("array", "]")
    members: list[Member] = []
    at = _blank(text, begin + 1)
    while not text.startswith(close, at):
        start, key = at, None
        if kind == "object":
            key, at = _key(text, at)
        node, end = _value(text, at, deep + 1)
        at = _blank(text, end)
        comma = at if text.startswith(",", at) else -1
        members.append(Member(key, start, end, node, comma))
        if comma >= 0:
            at = _blank(text, at + 1)
        elif not text.startswith(close, at):
            raise _wrong(text, at, f"lacks a comma or {close!r}")
    return Node(kind, begin, at + 1, members), at + 1


def _key(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if match is None:
        raise _wrong(text, at, "lacks a name in quotes")
    at = _blank(text, match.end())
    if not text.startswith(":", at):
        raise _wrong(text, at, "lacks a colon")
    try:
        return str(json.loads(match[0])), _blank(text, at + 1)
    except ValueError:
        raise _wrong(text, at, "has a name that is no JSON") from None


def _wrong(text: str, at: int, problem: str) -> BadRequest:
    line = text.count("\n", 0, at) + 1
    return BadRequest(f"line {line} {problem}", remedy="correct the file, then try again")
