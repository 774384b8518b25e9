"""Read what is no file of lines as if it were one: documents, folders of small files, databases.

In: a root and the name of a log below it. Out: the log's records, one JSON object a line, in their order, and
a `Mark` that changes whenever they may have. An adapter with a `Whole` gives the lines; everything after that
is the same as for a log that only grows: the same parser, fold, floors and progress. What such a log was read
as is remembered as a hash of its lines up to where reading stopped (`memoryd.index.identity`), so that messages
added at the end are read alone, and a change anywhere before has the log read again from its start.

A document that is only half there, or changes while it is read, is no error of the log: `NotNow`, and it is
tried again; what was read of it stays.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from memoryd.sources.mend import mend_surrogates
from memoryd.sources.opening import folder_below, open_below

LIMIT = 64 << 20
"""Bytes that one document may have."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class NotNow(OSError):
    """What is there cannot be read as a whole at present: it is cut, busy, or changing."""


class Mark(NamedTuple):
    """What a log of this kind looks like from outside: another mark, maybe another content.

    `dev` and `ino` name it, `size` and `mtime_ns` sum up all it is made of; `mtime_ns` is its last change.
    """

    dev: int
    ino: int
    size: int
    mtime_ns: int


class Whole(msgspec.Struct, frozen=True):
    """How one harness's logs that are no files of lines are found and read. All functions open by name.

    `wants(log)`: whether a path below a root can be such a log. `form` and `claims`: what is decided on:
    a decoded document, the start of a text, or the names of a database's tables. `lines(root, log)`: the
    records. `look(root, log)`: the mark, where one file's status is not enough; `glance(root, log)`: what tells
    for less that a session at rest was taken up again (`memoryd.index.resting`). `names(root, log)`: the
    logs inside one file, by name. `main(root, log)`: the log that a changed file is a part of.
    `leaves_out(names)`: which folders beside these names hold parts of logs and no logs.
    """

    wants: Callable[[str], bool]
    form: Literal["json", "text", "sqlite"]
    claims: Callable[[Any], bool]
    lines: Callable[[Path, str], Iterable[bytes]]
    look: Callable[[Path, str], Mark] | None = None
    glance: Callable[[Path, str], tuple[int, ...]] | None = None
    names: Callable[[Path, str], dict[str, Mark]] | None = None
    main: Callable[[Path, str], str | None] = lambda root, log: None
    leaves_out: Callable[[frozenset[str]], frozenset[str]] = lambda names: frozenset()


@contextmanager
def opened(whole: Whole, root: Path, log: str) -> Iterator[int]:
    """Yield a descriptor of the log's lines, which lie in memory. Raises: OSError, NotNow."""
    handle = os.memfd_create("log", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(handle), "wb") as file:
            try:
                for one in whole.lines(root, log):
                    file.write(one + b"\n")
            except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
                raise NotNow("of another shape than is known") from error
        yield handle
    finally:
        os.close(handle)


def content(root: Path, log: str, most: int = LIMIT) -> bytes:
    """Return the bytes of a file. Raises: OSError; NotNow for more than `most`."""
    handle = open_below(root, log)
    with os.fdopen(handle, "rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise NotNow(f"longer than {most} bytes")
    return found


def document(root: Path, log: str) -> Any:
    """Return the one JSON value that a file holds. Raises: OSError, NotNow."""
    return parsed(content(root, log))


def parsed(found: bytes) -> Any:
    """Return the JSON value of bytes, lone surrogates mended. Raises: NotNow."""
    found = found.removeprefix(b"\xef\xbb\xbf")
    try:
        try:
            return _decode(found)
        except msgspec.DecodeError:
            return _decode(mend_surrogates(found))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotNow("no JSON document, or half of one") from error


def line(value: object) -> bytes:
    """Return a JSON value as one line."""
    return _encode(value)


def listed(root: Path, folder: str) -> list[tuple[str, os.stat_result]]:
    """Return the regular files of a folder with their status, by name; none where there is no folder.

    Raises: OSError for a folder that cannot be looked at.
    """
    try:
        at = folder_below(root, folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        with os.scandir(at) as entries:
            return sorted(
                (entry.name, entry.stat(follow_symlinks=False))
                for entry in entries
                if entry.is_file(follow_symlinks=False)
            )
    finally:
        os.close(at)


def mark_of(main: os.stat_result, parts: Iterable[os.stat_result]) -> Mark:
    """Return the mark of a log that lies in several files."""
    size, changed = main.st_size, main.st_mtime_ns
    for part in parts:
        size += part.st_size
        changed = max(changed, part.st_mtime_ns)
    return Mark(main.st_dev, main.st_ino, size, changed)


def named_mark(file: Mark, name: str, size: int, changed_ms: int) -> Mark:
    """Return the mark of a log `name` inside a file: `size` counts what it holds."""
    mixed = hashlib.blake2b(f"{file.ino} {name}".encode("utf-8", "replace"), digest_size=7).digest()
    return Mark(file.dev, int.from_bytes(mixed), size, changed_ms * 1_000_000)
