"""The check: one function, sixteen checks in order, for every path by which a note is written.

In: an edit, who asks, and the scene (store, known hashes, rates, limits). Out: `Work`, ready to be written or
to wait for the owner; or the first refusal. Nothing is written before the last check has passed. `TABLE`
reads like the rule; an error's ``data["check"]`` is the word in its last column that applied.
"""

import re
import unicodedata
from collections.abc import Callable
from hashlib import sha256

from memoryd import redact
from memoryd.errors import BadRequest, CheckFailed, Conflict, NotGranted, RateLimited, TooLarge
from memoryd.labels import Classes
from memoryd.notes import commands, handles, names, rights, text
from memoryd.notes.names import Place
from memoryd.notes.request import ARGUMENTS, DAY_MS, MINUTE_MS, Asker, Edit, Scene, Work

_MAX_REASON = 200
_HASH = re.compile(r"[0-9a-f]{64}")


def check(edit: Edit, asker: Asker, scene: Scene) -> Work:
    """Put `edit` through all checks and return what is to be done.

    Raises: MemorydError of the first check that fails, its name in ``data["check"]``.
    """
    work = Work(edit, asker, scene)
    for _, one, _ in TABLE:
        one(work)
    return work


def check_folder(edit: Edit, asker: Asker, scene: Scene) -> Work:
    """Put the removal of a whole folder through the checks that do not look at a note; return the work.

    Every note in it goes through `check` besides. Raises: as `check`; NotFound where no such folder is.
    """
    work = Work(edit, asker, scene)
    for one in (args, grant, path, visible):
        one(work)
    if not work.place.segments or work.place.segments == (names.INBOX,):
        raise names.reserved("every class keeps it")
    if edit.expect is not None:
        raise _wrong("a folder has no hash", "leave `expect` out")
    for one in (label, untrusted):
        one(work)
    with scene.store.folder(work.place):
        return work


def check_outside(
    path_: str, asker: Asker, scene: Scene, *, expect: str | None, force: bool
) -> tuple[Place, bytes | None]:
    """Put what somebody did outside to the note at `path_` through the checks; return place and bytes.

    Everything applies that applies to an edit, except that the bytes are there already. Raises: as `check`.
    """
    edit = Edit(command="create", path=path_, arguments={"file_text": ""}, force=force)
    work = Work(edit, asker, scene)
    for one in (args, grant, path, visible):
        one(work)
    names.check_note(work.place)
    exists(work)
    found = scene.store.read(work.place)
    after = None if found is None else found[0]
    now = "" if after is None else sha256(after).hexdigest()
    if expect is not None and expect != now:
        raise Conflict(
            "the note changed since it was looked at",
            remedy="look again: `bxctl memory notes pending`",
            check="stale",
            hash=now or None,
        )
    if after is not None:
        work.text = text.as_text(after)
        content(work)
        secret(work)
    return work.place, after


def _classes(work: Work) -> Classes:
    return work.scene.store.classes


def _wrong(problem: str, remedy: str) -> BadRequest:
    return BadRequest(problem, remedy=remedy, check="args")


def args(work: Work) -> None:
    """1: the exact arguments of the command, of the right types."""
    edit = work.edit
    wanted = ARGUMENTS.get(edit.command)
    if wanted is None:
        raise _wrong("there is no such command", f"one of {', '.join(ARGUMENTS)}")
    for name in sorted(set(wanted) ^ set(edit.arguments)):
        problem = "is missing" if name in wanted else "is not known here"
        raise _wrong(f"argument `{name}` {problem}", f"{edit.command} takes {', '.join(wanted)}")
    for name, kind in wanted.items():
        value = edit.arguments[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _wrong(f"argument `{name}` has another type", f"give a {kind.__name__}")
    if (edit.command == "rename") != (edit.to is not None):
        raise _wrong("a new path belongs to rename, and to nothing else", "give `new_path` there")
    if edit.recursive and edit.command != "delete":
        raise _wrong("only delete can be recursive", "leave `recursive` out")
    if edit.expect is not None and not _HASH.fullmatch(edit.expect):
        raise _wrong("`expect` is no hash", "give the `hash` of the last view, or leave it out")
    if len(edit.reason) > _MAX_REASON or any(_unseen(letter) for letter in edit.reason):
        raise _wrong("the reason is no short line", f"{_MAX_REASON} plain characters at most")


def _unseen(letter: str) -> bool:
    return unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def grant(work: Work) -> None:
    """2: the socket grants the command, and the client is within its rates."""
    edit, asker, scene = work.edit, work.asker, work.scene
    if not asker.granted(edit.command):
        raise NotGranted(
            f"this socket does not grant memory_{edit.command}",
            remedy="the owner adds it to the socket's `tools`",
            check="grant",
            rule=f"tools of the socket {asker.client}",
        )
    if edit.force and not asker.owner:
        raise NotGranted(
            "only the owner may force an edit",
            remedy="leave `force` out",
            check="grant",
            rule="force: the owner's",
        )
    limits, now = scene.limits, scene.now_ms
    many = scene.rates.since(asker.client, now - MINUTE_MS) >= limits.edits_a_minute
    if not asker.owner and (
        many or scene.rates.since(asker.client, now - DAY_MS) >= limits.edits_a_day
    ):
        raise RateLimited(
            "too many edits through this socket",
            remedy=f"{limits.edits_a_minute} a minute and {limits.edits_a_day} a day are possible",
            check="rate",
        )


def path(work: Work) -> None:
    """3: a path that is what it looks like, and that a note can have on every system."""
    given = (work.edit.path,) if work.edit.to is None else (work.edit.path, work.edit.to)
    work.segments = tuple(map(names.segments, given))


def visible(work: Work) -> None:
    """4: a class that the asker may see; any other is as if it were not there."""
    classes, clearance = _classes(work), work.asker.clearance
    for found in work.segments:
        if not found:
            raise names.reserved("that is the folder of all classes")
    places = [names.place_of(found, classes, clearance) for found in work.segments]
    work.place, work.target = places[0], (places[1] if len(places) > 1 else None)


def reserved(work: Work) -> None:
    """5: names that every class keeps, and places that can hold no note."""
    names.check_note(work.place)
    if work.edit.command in {"delete", "rename"}:
        names.check_removable(work.place)
    if work.target is not None:
        names.check_note(work.target)
        names.check_removable(work.target)
        if work.target == work.place:
            raise _wrong("the new path is the old one", "give another `new_path`")


def exists(work: Work) -> None:
    """6: no sibling, and no folder on the way, that differs in case alone."""
    for place in work.places:
        for depth in range(1, len(place.segments) + 1):
            part = Place(place.level, place.segments[:depth])
            folded = part.name.casefold()
            for name in work.scene.store.names(part.parent):
                if name != part.name and name.casefold() == folded:
                    raise handles.taken()


def unsafe(work: Work) -> None:
    """7: the file system as it must be, walked by handles; reads what is there."""
    found = work.scene.store.read(work.place)
    if found is not None:
        work.before, work.seen = found
    elif work.edit.command != "create":
        raise handles.absent()
    if work.target is not None and work.scene.store.read(work.target) is not None:
        raise handles.taken()


def stale(work: Work) -> None:
    """8: the bytes that the asker has seen are the bytes that are there."""
    if work.edit.expect is None:
        return
    now = None if work.before is None else sha256(work.before).hexdigest()
    if work.edit.expect != now:
        raise Conflict(
            "the note is not as it was expected",
            remedy="view it again and repeat the edit with its hash",
            check="stale",
            hash=now,
        )


def external(work: Work) -> None:
    """9: what is there is what the last edit left, and nobody else."""
    if work.edit.force:
        return
    for place, content in ((work.place, work.before), (work.target, None)):
        if place is None:
            continue
        held = work.scene.live.get(names.stored(_classes(work), place))
        known = None if held is None else held.hash
        if known != (None if content is None else sha256(content).hexdigest()):
            raise Conflict(
                "the note was changed outside memoryd",
                remedy="the owner looks at it: `bxctl memory notes accept`",
                check="external",
            )


def command(work: Work) -> None:
    """10: what the command itself demands; makes the note's next text."""
    edit, given = work.edit, work.edit.arguments
    if edit.command == "create" and work.before is not None:
        raise handles.taken()
    if edit.command in {"create", "restore"}:
        work.text = str(given["file_text"])
    elif edit.command in {"str_replace", "insert"}:
        now = text.as_text(work.before or b"")
        if edit.command == "str_replace":
            work.edited = commands.str_replace(now, str(given["old_str"]), str(given["new_str"]))
        else:
            line = int(str(given["insert_line"]))
            work.edited = commands.insert(now, line, str(given["insert_text"]))
        work.text = work.edited.text
    elif edit.command == "rename":
        work.after = work.before


def content(work: Work) -> None:
    """11: text that can be a note, and room for it."""
    if work.text is not None:
        work.after = text.encoded(work.text)
    if work.after is not None:
        _check_quota(work, work.after)


def _check_quota(work: Work, after: bytes) -> None:
    place, limits = work.target or work.place, work.scene.limits
    if work.target is not None and work.target.level == work.place.level:
        return
    grows = len(after) - (len(work.before or b"") if work.target is None else 0)
    new = work.before is None or work.target is not None
    if grows <= 0 and not new:
        return
    folder = f"{_classes(work).name(place.level)}/"
    sizes = [held.size for at, held in work.scene.live.items() if at.startswith(folder)]
    if (new and len(sizes) >= limits.notes_in_class) or sum(sizes) + grows > limits.bytes_in_class:
        raise TooLarge(
            "no room left in this class",
            remedy=f"{limits.notes_in_class} notes and {limits.bytes_in_class} bytes fit: delete some",
            check="quota",
        )


def label(work: Work) -> None:
    """12: no write-down: a session changes nothing below what it has seen."""
    asker = work.asker
    for place in () if asker.owner else work.places:
        if rights.decide(asker.session, place, work.act) == "label":
            named = asker.log is not None
            raise rights.above(_classes(work), asker.session, place, work.act, named=named)
    if work.target is not None:
        _check_move(work, work.target)


def _check_move(work: Work, target: Place) -> None:
    forced = work.asker.owner and work.edit.force
    rights.check_rename(_classes(work), work.place, target, owner=work.asker.owner, forced=forced)


def untrusted(work: Work) -> None:
    """13: what takes the owner's word waits for it: untrusted edits outside the inbox, and removals."""
    edit, asker, scene, act = work.edit, work.asker, work.scene, work.act
    if asker.owner:
        return
    decisions = {rights.decide(asker.session, place, act): place for place in work.places}
    if "untrusted" in decisions:
        raise rights.distrusted(asker.session, decisions["untrusted"], act)
    if waits := decisions.keys() & {"ask", "pend"}:
        work.waits = "pend" if "pend" in waits else "ask"
        work.rule = rights.rule(asker.session, decisions[work.waits], act)
    elif asker.session.untrusted and edit.command == "create":
        lately = scene.rates.since(inbox_name(asker), scene.now_ms - DAY_MS)
        if lately >= scene.limits.inbox_a_session:
            raise RateLimited(
                "this session has filled its part of the inbox",
                remedy="the owner reads the inbox first",
                check="rate",
            )


def inbox_name(asker: Asker) -> str:
    """Return the name under which a session's notes in the inbox are counted."""
    return f"inbox {asker.client} {asker.log or ''}"


def secret(work: Work) -> None:
    """14: no secrets in what is new; their kind and line are told, never their text."""
    if work.edit.force:
        return
    for where in (work.edit.path, work.edit.to, work.edit.reason):
        for found in redact.find(where or ""):
            raise _secret(found.kind, "the path or the reason", None)
    if work.after is None or work.after == work.before:
        return
    written, held = work.after.decode(), _secrets_of(work.before)
    for found in redact.find(written):
        if written[found.start : found.end] not in held:
            line = written.count("\n", 0, found.start) + 1
            raise _secret(found.kind, f"line {line}", line)


def _secrets_of(before: bytes | None) -> set[str]:
    """Return what looks secret in a note already: the owner forced it, and no edit need repeat that."""
    now = (before or b"").decode(errors="replace")
    return {now[found.start : found.end] for found in redact.find(now)}


def _secret(kind: str, where: str, line: int | None) -> CheckFailed:
    return CheckFailed(
        f"{where} holds what looks like a secret ({kind})",
        remedy="leave it out; the owner may force it",
        check="secret",
        kind=kind,
        line=line,
    )


def flags(work: Work) -> None:
    """15: suspicious shapes are marked for the owner; they refuse nothing."""
    if work.after is not None and work.edit.command != "rename":
        work.flags = text.suspicious(work.after.decode())


def nothing(work: Work) -> None:
    """16: an edit that changes no byte is done already."""
    work.changed = work.edit.command in {"delete", "rename"} or work.before != work.after


TABLE: tuple[tuple[int, Callable[[Work], None], str], ...] = (
    (1, args, "args"),
    (2, grant, "grant rate"),
    (3, path, "path"),
    (4, visible, "not_found"),
    (5, reserved, "reserved"),
    (6, exists, "exists"),
    (7, unsafe, "unsafe not_found exists"),
    (8, stale, "stale"),
    (9, external, "external"),
    (10, command, "exists range no_match multiple args"),
    (11, content, "text size front quota"),
    (12, label, "label untrusted"),
    (13, untrusted, "untrusted rate"),
    (14, secret, "secret"),
    (15, flags, ""),
    (16, nothing, ""),
)
