"""What a later harness is to the tests: how it writes, and where it writes what must not be read."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.support.logs import encoded

Entry = Any
OneWord = Callable[[str], Entry]

MS = 1_767_323_045_000


class Kind(NamedTuple):
    """How one harness writes. `first`: what comes before every session; `summary` None: it has none."""

    adapter: str
    put: Callable[[Path, list[Entry]], Path]
    owner: OneWord
    assistant: OneWord
    call: Callable[[str, object, str, str], list[Entry]]
    outside: dict[str, OneWord]
    silent: Mapping[str, OneWord] = MappingProxyType({})
    summary: OneWord | None = None
    unknown: Callable[[dict[str, object]], Entry] | None = None
    session: str | None = "s1"
    project: str | None = "/home/ada/shop"


def lines_at(name: str, *first: Entry) -> Callable[[Path, list[Entry]], Path]:
    """Return how a log of JSON lines is put down."""

    def put(folder: Path, entries: list[Entry]) -> Path:
        return write_file(folder / name, encoded(*first, *entries))

    return put


def write_file(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def text_block(words: str) -> list[Entry]:
    return [{"type": "text", "text": words}]
