"""Pair calls with their results, as they stand in one log.

In: a log's records with the labels that the fold gave them, in file order. Out: `Seen`, one a call that was
answered. Pure: what waits for its result is handed back, to be stored with the log's position, so that a
restart between call and result loses nothing and no call is seen twice.
"""

from collections.abc import Iterable

import msgspec

from memoryd import redact
from memoryd.labels import Label
from memoryd.lessons import fingerprint
from memoryd.lessons.failure import Outcome, shell_like
from memoryd.records import Called, Record, Returned, Said, values

MOST_SUMMARY = 200
_MOST_READ = 4_000


class Open(msgspec.Struct, frozen=True):
    """A call without a result yet; `summary` is redacted, its arguments are kept nowhere else."""

    n: int
    block: int
    tool: str
    summary: str
    fingerprint: str
    at: int | None
    label: Label


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A call and what came of it. `label` is the session's including the result; `at` in milliseconds."""

    log: str
    n: int
    block: int
    session: str
    project: str
    tool: str
    summary: str
    fingerprint: str
    at: int
    outcome: Outcome
    text: str
    label: Label

    @property
    def key(self) -> str:
        """Return the call's name in the database."""
        return call_key(self.log, self.n, self.block)


class Pairing:
    """One log: who speaks in it, and which calls are open."""

    def __init__(self, log: str, session: str, project: str = "") -> None:
        """Start at the beginning of `log`; `session` and `project` until a record tells them."""
        self.log = log
        self.session = session
        self.project = project
        self.waiting: dict[str, Open] = {}
        self._told = False

    def place(self, session: str, project: str) -> None:
        """Take it from the index whose log this is: what later records say of it counts no more."""
        self.session, self.project, self._told = clean(session), clean(project), True

    def feed(
        self, record: Record, rows: Iterable[tuple[Said | Called, Label]], after: Label, now: int
    ) -> list[Seen]:
        """Return the calls that `record` answers. `rows`: the fold's; `after`: its label after the record.

        `now` stands in where the log tells no time.
        """
        self._hear(record)
        before = {item.block: label for item, label in rows if isinstance(item, Called)}
        found: list[Seen] = []
        for item in record.items:
            if isinstance(item, Called) and item.call is not None and not item.hosted:
                label = before.get(item.block, after)
                self.waiting[clean(item.call)] = opened(record, item, self.project, label)
            elif isinstance(item, Returned) and item.call is not None:
                call = self.waiting.pop(clean(item.call), None)
                if call is not None:
                    at = record.ts if record.ts is not None else call.at
                    found.append(self._seen(call, item, after, now if at is None else at))
        return found

    def _hear(self, record: Record) -> None:
        if record.about is not None and not self._told:
            self.session = clean(record.about.session or self.session)
            self.project = clean(record.about.project or self.project)
            self._told = record.about.session is not None and record.about.project is not None

    def _seen(self, call: Open, result: Returned, after: Label, at: int) -> Seen:
        return Seen(
            log=self.log,
            n=call.n,
            block=call.block,
            session=self.session,
            project=self.project,
            tool=call.tool,
            summary=call.summary,
            fingerprint=call.fingerprint,
            at=at,
            outcome=Outcome(result.ok),
            text=told(result.told),
            label=call.label.join(after),
        )


def call_key(log: str, n: int, block: int) -> str:
    """Return the one name of a call: its log, record and block."""
    return f"{log}\0{n}\0{block}"


def opened(record: Record, item: Called, project: str, label: Label) -> Open:
    """Return a call that waits."""
    return Open(
        record.n,
        item.block,
        clean(item.tool),
        summary(item.tool, item.args),
        fingerprint.of_call(item.tool, item.args, project),
        record.ts,
        label,
    )


def summary(tool: str, args: object) -> str:
    """Return what a call was about in one redacted line of at most 200 characters."""
    given = _command(args) if isinstance(args, dict) and shell_like(tool) else ""
    given = given or " ".join(values(redact.arguments(args)))
    line = clean(" ".join(redact.secrets(given[:_MOST_READ]).split()))
    return line if len(line) <= MOST_SUMMARY else line[: MOST_SUMMARY - 1] + "…"


def _command(args: dict[str, object]) -> str:
    """Return what a shell was told to run, without the shell itself; "" where that is not told."""
    told = args.get("command", args.get("cmd"))
    if isinstance(told, str):
        return told
    if not isinstance(told, list):
        return ""
    words = [str(word) for word in told]
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)


def clean(text: str) -> str:
    """Return `text` as any database can hold it: half a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


_any = msgspec.json.Decoder(strict=False)


def told(raw: msgspec.Raw | None) -> str:
    """Return the text of a result as its log gives it: a string, parts with `text`, or an object with one."""
    if raw is None or not memoryview(raw):
        return ""
    try:
        return _text(_any.decode(raw), 0)
    except (msgspec.DecodeError, RecursionError):
        return ""


def _text(value: object, depth: int) -> str:
    if isinstance(value, str):
        if depth == 0 and value.startswith("{") and '"output"' in value[:2_000]:
            return _inner(value)
        return value
    if isinstance(value, list):
        return "\n".join(_text(part, depth + 1) for part in value)
    if isinstance(value, dict):
        kept = [
            value[key] for key in ("stderr", "output", "text", "stdout", "content") if key in value
        ]
        return "\n".join(_text(part, depth + 1) for part in kept) if depth < 4 else ""
    return ""


def _inner(value: str) -> str:
    try:
        return _text(_any.decode(value.encode("utf-8", "replace")), 1)
    except (msgspec.DecodeError, RecursionError):
        return value
