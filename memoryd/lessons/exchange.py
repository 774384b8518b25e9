"""Lessons as text that people keep, read and give away: OKF blocks or Markdown, and back.

In: a reader and a form. Out: a bundle of the active decisions, rules and patterns that it may see, secrets
masked, untrusted ones left out unless asked; or, from a bundle, lessons that were not there yet.

Both forms carry a body's length in bytes (``length:``), so that a body may hold ``---`` and ``key: value``
and comes back as it was. A bundle without lengths, as other programs write it, is read up to the next line
``---`` that is followed by a key. The same bundle twice adds nothing.
"""

import re
from collections.abc import Iterator

import apsw
import msgspec

from memoryd import db, redact
from memoryd.clock import parse_rfc3339, rfc3339
from memoryd.errors import BadRequest
from memoryd.labels import Label
from memoryd.lessons import fingerprint, row, settings
from memoryd.lessons.reader import Reader
from memoryd.lessons.row import Lesson

FORMS = ("okf", "markdown")
EXPORTED = ("decision", "rule", "pattern")
IMPORTED = (*EXPORTED, "context")
MOST_BYTES = 1 << 20
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_KEY = re.compile(r"^(?:- )?\*{0,2}([A-Za-z][A-Za-z_ ]*)\*{0,2}: ?(.*)$")
_HEADING = re.compile(rf"^## ({'|'.join(IMPORTED)}): ", re.MULTILINE)
_NOTHING = "# Nothing to export.\n"
_EVERYTHING = Reader(7, owner=True)
_MOST_COUNT = 1_000


class Entry(msgspec.Struct, frozen=True):
    """A lesson of a bundle: its keys and its body."""

    keys: dict[str, str]
    body: str


def export(
    connection: apsw.Connection, reader: Reader, form: str = "okf", *, untrusted: bool = False
) -> str:
    """Return the bundle. Raises: BadRequest for an unknown form."""
    if form not in FORMS:
        raise BadRequest(f"there is no form {form}", remedy="okf or markdown")
    narrow = reader if untrusted else msgspec.structs.replace(reader, untrusted="exclude")
    lessons = row.visible(
        connection,
        narrow,
        "status = 'active' AND ignored = 0 AND scope = 'project' AND expires_at IS NULL "
        f"AND type IN {EXPORTED}",
        order="type, created_at DESC, row",
    )
    if not lessons:
        return _NOTHING
    written = [_okf(one) if form == "okf" else _markdown(one) for one in lessons]
    if form == "okf":
        return "".join(written)
    return f"# Lessons\n\nTotal: {len(lessons)}\n\n" + "".join(written)


def bring_in(
    connection: apsw.Connection,
    bundle: str,
    label: Label,
    *,
    now: int,
    project: str = "",
    reader: Reader = _EVERYTHING,
) -> dict[str, object]:
    """Take in what a bundle holds and is not there yet; return how much, and what it replaced.

    `label` is the label of whoever brings it. `reader`: to whom the answer goes. What they may not see moves no
    count of it: where that is what they bring, they are told how much they brought.
    Raises: BadRequest for a bundle of more than 1 MiB.
    """
    if len(bundle.encode("utf-8", "replace")) > MOST_BYTES:
        raise BadRequest("a bundle has 1 MiB at most", remedy="bring it in in parts")
    brought = imported = superseded = 0
    with db.transaction(connection):
        for entry in entries(bundle.replace("\r\n", "\n")):
            made = _lesson(entry, label, now, project)
            if made is None:
                continue
            brought += 1
            made = _renamed(made, reader)
            if _there(connection, made):
                continue
            kept = row.insert(connection, made)
            superseded += supersede(connection, kept, now)
            imported += 1
    if not reader.covers(label, project):
        return {"imported": brought, "superseded": 0}
    return {"imported": imported, "superseded": superseded}


def supersede(connection: apsw.Connection, lesson: Lesson, now: int) -> int:
    """Let a new decision or rule take the place of active ones of its fingerprint; return how many.

    Only ones at its own label: it can neither hide what its writer may not see, nor let it show.
    """
    if lesson.type not in ("decision", "rule"):
        return 0
    old = row.select(
        connection,
        "type = ? AND fingerprint = ? AND project = ? AND status = 'active' AND level = ? "
        "AND untrusted = ? AND row <> ?",
        (lesson.type, lesson.fingerprint, lesson.project, *lesson.label, lesson.row),
    )
    for one in old:
        row.update(
            connection, one.row, status="superseded", superseded_by=lesson.id, updated_at=now
        )
    settings.count(connection, "memories_superseded", bool(old))
    return len(old)


def entries(bundle: str) -> Iterator[Entry]:
    """Yield what a bundle holds, in either form."""
    found = list(_blocks(bundle))
    yield from found or _headings(bundle)


def _okf(lesson: Lesson) -> str:
    body = redact.secrets(lesson.content)
    keys = "\n".join(f"{key}: {value}" for key, value in _keys(lesson, body))
    return f"---\n{keys}\n---\n\n{body}\n\n"


def _markdown(lesson: Lesson) -> str:
    body = redact.secrets(lesson.content)
    keys = "\n".join(f"- {key}: {value}" for key, value in _keys(lesson, body))
    return f"## {lesson.type}: {lesson.fingerprint}\n\n{keys}\n\n{body}\n\n"


def _keys(lesson: Lesson, body: str) -> Iterator[tuple[str, object]]:
    yield "id", lesson.id
    yield "type", lesson.type
    yield "confidence", f"{lesson.confidence:.2f}"
    yield "evidence_count", lesson.evidence
    if lesson.recurrence:
        yield "recurrence_count", lesson.recurrence
    if lesson.verified_at is not None:
        yield "last_verified_at", rfc3339(lesson.verified_at)
    yield "fingerprint", lesson.fingerprint
    yield "created", rfc3339(lesson.created_at)
    yield "scope", lesson.scope
    yield "length", len(body.encode("utf-8", "replace"))


def _blocks(bundle: str) -> Iterator[Entry]:
    at = 0
    while (start := _fence(bundle, at)) >= 0:
        keys, at = _head(bundle, start + 4)
        if at < 0:
            return
        body, at = _body(bundle, at, keys, "---")
        if "id" in keys and body.strip():
            yield Entry(keys, body)


def _headings(bundle: str) -> Iterator[Entry]:
    at = 0
    while (found := _HEADING.search(bundle, at)) is not None:
        line = bundle.find("\n", found.end())
        if line < 0:
            return
        keys, at = _listed(bundle, line + 1)
        body, at = _body(bundle, at, keys, "## ")
        if "id" in keys and body.strip():
            yield Entry({"type": found[1], **keys}, body)


def _fence(bundle: str, at: int) -> int:
    if bundle.startswith("---\n", at) and (at == 0 or bundle[at - 1] == "\n"):
        return at
    found = bundle.find("\n---\n", at)
    return found + 1 if found >= 0 else -1


def _head(bundle: str, at: int) -> tuple[dict[str, str], int]:
    """Return the keys up to the closing fence and where the body starts; -1 where there is none."""
    keys: dict[str, str] = {}
    while (end := bundle.find("\n", at)) >= 0:
        line = bundle[at:end]
        if line == "---":
            return keys, end + 1
        if (found := _KEY.match(line)) is not None:
            keys[found[1].strip().lower().replace(" ", "_")] = found[2].strip()
        at = end + 1
    return keys, -1


def _listed(bundle: str, at: int) -> tuple[dict[str, str], int]:
    keys: dict[str, str] = {}
    while (end := bundle.find("\n", at)) >= 0:
        line = bundle[at:end]
        found = _KEY.match(line) if line.startswith("- ") else None
        if found is not None:
            keys[found[1].strip().lower().replace(" ", "_")] = found[2].strip()
        elif line.strip() or keys:
            return keys, at
        at = end + 1
    return keys, at


def _body(bundle: str, at: int, keys: dict[str, str], mark: str) -> tuple[str, int]:
    """Return a body: as long as its entry says, else up to what looks like the next entry."""
    if bundle.startswith("\n", at):
        at += 1
    length = keys.get("length", "")
    if length.isascii() and length.isdigit() and len(length) < 8:
        content = bundle[at:].encode("utf-8", "replace")[: int(length)]
        body = content.decode("utf-8", "ignore")
        return body, at + len(body)
    pattern = r"^---\n(?=\s*[a-z_]+:)" if mark == "---" else _HEADING.pattern
    found = re.compile(pattern, re.MULTILINE).search(bundle, at)
    end = len(bundle) if found is None else found.start()
    return bundle[at:end].strip(), end


def _lesson(entry: Entry, label: Label, now: int, project: str) -> Lesson | None:
    keys = entry.keys
    kind = keys.get("type", "")
    if kind not in IMPORTED:
        return None
    body = redact.secrets(entry.body)
    given = keys.get("id", "")
    print_ = keys.get("fingerprint") or fingerprint.of_text(kind, body, project)
    return Lesson(
        id=given if _UUID.fullmatch(given) else row.new_id(now, "imported", given, body),
        type=kind,
        content=body,
        project=project,
        fingerprint=print_[:128],
        origin="imported",
        level=label.level,
        untrusted=label.untrusted,
        evidence=_count(keys.get("evidence_count")),
        recurrence=_count(keys.get("recurrence_count")),
        verified_at=parse_rfc3339(keys.get("last_verified_at")),
        created_at=parse_rfc3339(keys.get("created")) or now,
        updated_at=now,
    )


def _count(text: str | None) -> int:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 6:
        return 0
    return min(_MOST_COUNT, int(text))


def _renamed(lesson: Lesson, reader: Reader) -> Lesson:
    """Return a lesson under an id of ours, unless the owner brings it: theirs may be one that is hidden here."""
    if reader.owner:
        return lesson
    name = row.new_id(lesson.created_at, "imported", lesson.id, lesson.content)
    return msgspec.structs.replace(lesson, id=name)


def _there(connection: apsw.Connection, lesson: Lesson) -> bool:
    """Say whether a lesson of that id, or the same words at the same label, is there."""
    found = connection.execute(
        "SELECT 1 FROM lesson WHERE id = ? OR (type = ? AND fingerprint = ? AND project = ? "
        "AND content = ? AND level = ? AND untrusted = ?) LIMIT 1",
        (lesson.id, lesson.type, lesson.fingerprint, lesson.project, lesson.content, *lesson.label),
    ).get
    return found is not None
