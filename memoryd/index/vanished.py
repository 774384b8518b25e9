"""What was indexed of logs whose files are gone: kept as one file a log, and read again by every rebuild.

In and out: ``vanished/KEY.jsonl.gz`` in memoryd's home, KEY the log's keyed name. First a line about the log,
then its rows and what raised its label, in the order of the log::

    {"kind":"log","source":"codex","log":"2026/01/a.jsonl","records":9,"rules":"…",…}
    {"kind":"owner","n":0,"block":0,"ts":1767323045000,"class":"public","untrusted":false,"text":"…",…}
    {"kind":"raised","n":2,"block":0,"of":[1,0],"ok":true,"class":"internal","untrusted":false}

Text is masked as in the index, and no result has any. Classes stand by name, so that they outlive a change
of the configured list; one that is no longer configured counts as the top class. Under other rules than
those that made it, what is kept is judged again (a call by its tool and its argument values, what came
without one by its name and its paths), and joined with the labels it had: a rule can raise what is gone,
never lower it. What is forgotten (`tombs`) is not written, and is taken out of what was.
"""

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from heapq import merge
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from memoryd.index import kept_kin, table
from memoryd.index.schema import class_of
from memoryd.index.settings import Settings
from memoryd.index.table import Log
from memoryd.index.tombs import Tomb
from memoryd.labels import Classes, Label, LabelError
from memoryd.points import reached
from memoryd.records import Kind
from memoryd.sources.lines import Position

FOLDER = "vanished"
LOG, RAISED = "log", "raised"
_SUFFIX = ".jsonl.gz"
_KEY_DIGITS = 12


class Unusable(ValueError):
    """A kept file that does not say which log it was; `args[0]` is its name."""


class About(msgspec.Struct, omit_defaults=True):
    """The first line: the log, and what its row in the index said."""

    source: str
    root: str
    log: str
    session: str
    cls: str = msgspec.field(name="class")
    untrusted: bool
    floor_class: str
    floor_untrusted: bool
    rules: str
    kind: str
    told: bool = False
    project: str | None = None
    agent: str | None = None
    records: int = 0
    left_out: int = 0
    unreadable: int = 0
    why: str | None = None
    first_ts: int | None = None
    last_ts: int | None = None
    kin: str = ""


class Kept(msgspec.Struct, omit_defaults=True):
    """Any later line: a row (`kind` as on the wire), or an event that raised the label.

    `of`: the place of the call whose result raised; `name`: what came without a call, `paths`: from where.
    """

    kind: str
    n: int
    block: int
    cls: str = msgspec.field(name="class")
    untrusted: bool
    ts: int | None = None
    tool: str | None = None
    text: str | None = None
    of: tuple[int, int] | None = None
    name: str | None = None
    ok: bool | None = None
    paths: tuple[str, ...] | None = None


class Under(NamedTuple):
    """What an index was made under: the names of its classes, low to high, and its rules' fingerprint."""

    names: tuple[str, ...]
    rules: str


_decode_about = msgspec.json.Decoder(About).decode
_decode_kept = msgspec.json.Decoder(Kept).decode
_NOT_WHOLE = (EOFError, zlib.error, gzip.BadGzipFile)


def path_of(home: Path, key: int) -> Path:
    """Return where the log with this key is kept."""
    return home / FOLDER / f"{key:012x}{_SUFFIX}"


def holds(home: Path, key: int) -> bool:
    """Say whether the log with this key is kept; asked of every new log, so without a path object."""
    return os.path.exists(f"{home}/{FOLDER}/{key:012x}{_SUFFIX}")  # noqa: PTH110 - see above


def keys(home: Path) -> set[int]:
    """Return the keys of the logs that are kept."""
    try:
        names = [path.name for path in (home / FOLDER).iterdir()]
    except FileNotFoundError:
        return set()
    return {int(name[:_KEY_DIGITS], 16) for name in names if _is_kept(name)}


def _is_kept(name: str) -> bool:
    key = name.removesuffix(_SUFFIX)
    return (
        name == key + _SUFFIX and len(key) == _KEY_DIGITS and not set(key) - set("0123456789abcdef")
    )


def write(
    home: Path,
    connection: apsw.Connection,
    log: Log,
    under: Under,
    tomb: Tomb | None,
) -> None:
    """Keep a log: its rows as the index has them, less its `tomb`.

    Whole or not at all, and on the disk when this returns. Raises: OSError, apsw.Error.
    """
    folder = home / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    lines = _lines(connection, log, under.names)
    about = _about(log, under, kept_kin.packed(connection, log, under.names))
    encoded = _encoded(about, _less(lines, tomb) if tomb else lines)
    _write_whole(path_of(home, log.key), encoded)
    reached("vanished: written")


def strip(path: Path, tomb: Tomb) -> int:
    """Take what is forgotten out of a kept file, or the file away if that is all; return how many rows.

    Raises: OSError, Unusable.
    """
    about = head(path)
    before = [line for line in kept(path) if line is not None]
    after = list(_less(before, tomb))
    rows = sum(line.kind != RAISED for line in before) - sum(line.kind != RAISED for line in after)
    if tomb.whole(about.records):
        path.unlink()
    elif after != before:
        _write_whole(path, _encoded(msgspec.structs.replace(about, why=None), after))
    reached("vanished: stripped")
    return rows


def _less(lines: Iterable[Kept], tomb: Tomb) -> Iterator[Kept]:
    """Yield the lines without the rows that are forgotten, and what raised the label with less to tell.

    An event has no time: where times decide, it counts with the forgotten rows before which it stands.
    """
    found = list(lines)
    last = max((line.n for line in found if _is_gone(line, tomb)), default=-1)
    for line in found:
        if line.kind == RAISED:
            gone = tomb.touches(line.n, line.block, last)
            yield msgspec.structs.replace(line, of=None, name=None, paths=None) if gone else line
        elif not _is_gone(line, tomb):
            yield line


def _is_gone(line: Kept, tomb: Tomb) -> bool:
    return line.kind != RAISED and tomb.covers(line.n, line.block, line.ts)


def _write_whole(path: Path, lines: Iterator[bytes]) -> None:
    """Write a compressed file that only its owner can read; its name never stands for half of it."""
    temp = path.with_suffix(".tmp")
    temp.unlink(missing_ok=True)
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            for line in lines:
                packed.write(line + b"\n")
        file.flush()
        os.fsync(handle)
    temp.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _encoded(about: About, lines: Iterable[Kept]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder(order="sorted").encode
    yield encode(about)
    yield from map(encode, lines)


def _lines(connection: apsw.Connection, log: Log, names: tuple[str, ...]) -> Iterator[Kept]:
    rows = _rows(connection, log.id, names)
    events = iter(sorted(_events(connection, log.id, names), key=_place))
    return merge(rows, events, key=_place)


def _place(kept: Kept) -> tuple[int, int]:
    return kept.n, kept.block


def _about(log: Log, under: Under, kin: str) -> About:
    names = under.names
    return About(
        *log.place,
        session=log.session,
        cls=class_of(names, log.label.level),
        untrusted=log.label.untrusted,
        floor_class=class_of(names, log.floor.level),
        floor_untrusted=log.floor.untrusted,
        rules=under.rules,
        kind=LOG,
        told=log.told,
        project=log.project,
        agent=log.agent,
        records=log.position.records,
        left_out=log.left_out,
        unreadable=log.unreadable,
        why=log.why,
        first_ts=log.first_ts,
        last_ts=log.last_ts,
        kin=kin,
    )


def _rows(connection: apsw.Connection, number: int, names: tuple[str, ...]) -> Iterator[Kept]:
    tables = " UNION ALL ".join(
        f"SELECT n, block, kind, {c} AS level, untrusted, ts, tool, text "
        f"FROM row_{c} AS r JOIN ft_{c} AS f ON f.rowid = r.id WHERE log = :log"
        for c in range(len(names))
    )
    found = connection.execute(f"SELECT * FROM ({tables}) ORDER BY n, block", {"log": number})
    for n, block, kind, level, untrusted, ts, tool, text in found:
        word = Kind(kind).word
        yield Kept(word, n, block, class_of(names, level), bool(untrusted), ts, tool, text)


def _events(connection: apsw.Connection, number: int, names: tuple[str, ...]) -> Iterator[Kept]:
    for _, events in table.trails(connection, number):
        for n, block, of, name, ok, level, untrusted, paths in events:
            cls = class_of(names, level)
            yield Kept(RAISED, n, block, cls, untrusted, of=of, name=name, ok=ok, paths=paths)


def head(path: Path) -> About:
    """Return what a kept log was. Raises: OSError, Unusable."""
    try:
        with gzip.open(path, "rb") as file:
            return _decode_about(file.readline())
    except (msgspec.MsgspecError, *_NOT_WHOLE) as error:
        raise Unusable(path.name) from error


def kept(path: Path) -> Iterator[Kept | None]:
    """Yield a kept log's rows and events in order; None for what cannot be read. Raises: OSError."""
    try:
        with gzip.open(path, "rb") as file:
            file.readline()
            for line in file:
                try:
                    yield _decode_kept(line)
                except msgspec.MsgspecError:
                    yield None
    except _NOT_WHOLE:
        yield None


def log_of(about: About, settings: Settings, number: int) -> Log:
    """Return the row of a kept log under the row id `number`, without what was counted today."""
    place = table.Place(about.source, about.root, about.log)
    label = label_of(about.cls, about.untrusted, settings.classes)
    floor = label_of(about.floor_class, about.floor_untrusted, settings.classes)
    return Log(
        id=number,
        key=settings.ids.log_key(*place),
        place=place,
        session=about.session,
        project=about.project,
        agent=about.agent,
        told=about.told,
        state=table.GONE,
        position=Position(records=about.records),
        label=label,
        peak=label,
        floor=floor,
        left_out=about.left_out,
        unreadable=about.unreadable,
        why=about.why,
        first_ts=about.first_ts,
        last_ts=about.last_ts,
    )


def label_of(name: str, untrusted: bool, classes: Classes) -> Label:
    """Return the label that a stored class name means today; the top class where it is not configured."""
    try:
        return Label(classes.level(name), untrusted)
    except LabelError:
        return Label(classes.top, untrusted)
