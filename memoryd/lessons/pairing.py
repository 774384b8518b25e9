"""Pair calls with their results, as they stand in one log.

In: a log's records with the labels that the fold gave them, in file order. Out: `Seen`, one a call that was
answered. Pure: what waits for its result is handed back, to be stored with the log's position, so that a
restart between call and result loses nothing and no call is seen twice. A batch at a time costs a third of a
record at a time: secrets are looked for in all of its calls at once.
"""

from collections.abc import Iterable, Sequence

import msgspec

from memoryd import redact
from memoryd.labels import Label
from memoryd.lessons import fingerprint
from memoryd.lessons.failure import Outcome, shell_like
from memoryd.records import Called, Record, Returned, Said, values

OUTCOMES: dict[bool | None, Outcome] = {ok: Outcome(ok) for ok in (None, True, False)}
MOST_SUMMARY = 200
_MOST_READ = 4_000
_NEAR = 500
"""Characters that hold a summary, unless most of them are blank."""


Rows = Iterable[tuple[Said | Called, Label]]


class Open(msgspec.Struct, frozen=True, gc=False):
    """A call without a result yet; `summary` is redacted, its arguments are kept nowhere else."""

    n: int
    block: int
    tool: str
    summary: str
    fingerprint: str
    at: int | None
    label: Label


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A result that was found for a call: by its number among the batch's new ones, or one that had waited."""

    call: int | Open
    result: Returned
    after: Label
    at: int | None
    now: int
    session: str
    project: str


class Seen(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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

    def feed(self, record: Record, rows: Rows, after: Label, now: int) -> list[Seen]:
        """Return the calls that `record` answers. `rows`: the fold's; `after`: its label after the record.

        `now` stands in where the log tells no time.
        """
        return self.feed_many([(record, rows, after, now)])

    def feed_many(self, batch: Iterable[tuple[Record, Rows, Label, int]]) -> list[Seen]:
        """Return the calls that a batch of records answers: as `feed` of each, at a third of the cost."""
        made: list[tuple[Record, Called, str, Label]] = []
        at: dict[str, int] = {}
        answers: list[Answer] = []
        for record, rows, after, now in batch:
            if record.about is not None and not self._told:
                self._hear(record)
            for item, label in rows:
                if type(item) is Called and item.call is not None and not item.hosted:
                    self.waiting.pop(clean(item.call), None)
                    at[item.call] = len(made)
                    made.append((record, item, self.project, label))
            for one in record.items:
                if type(one) is Returned and one.call is not None:
                    answers += self._answer((record, after, now), one, at)
        opened = _opened(made)
        self.waiting |= {clean(call): opened[number] for call, number in at.items()}
        return [self._seen(one, opened) for one in answers]

    def _answer(
        self, where: tuple[Record, Label, int], result: Returned, new: dict[str, int]
    ) -> list[Answer]:
        call: int | Open | None = new.pop(result.call or "", None)
        if call is None:
            call = self.waiting.pop(clean(result.call or ""), None)
        if call is None:
            return []
        record, after, now = where
        return [Answer(call, result, after, record.ts, now, self.session, self.project)]

    def _hear(self, record: Record) -> None:
        if record.about is not None and not self._told:
            self.session = clean(record.about.session or self.session)
            self.project = clean(record.about.project or self.project)
            self._told = record.about.session is not None and record.about.project is not None

    def _seen(self, answer: Answer, opened: Sequence[Open]) -> Seen:
        call = answer.call if isinstance(answer.call, Open) else opened[answer.call]
        at = answer.at if answer.at is not None else call.at
        result = answer.result
        looked = result.ok is False or (result.ok is None and shell_like(call.tool))
        return Seen(
            log=self.log,
            n=call.n,
            block=call.block,
            session=answer.session,
            project=answer.project,
            tool=call.tool,
            summary=call.summary,
            fingerprint=call.fingerprint,
            at=answer.now if at is None else at,
            outcome=OUTCOMES[result.ok],
            text=told(result.told) if looked else "",
            label=call.label.join(answer.after),
        )


def call_key(log: str, n: int, block: int) -> str:
    """Return the one name of a call: its log, record and block."""
    return f"{log}\0{n}\0{block}"


def _opened(made: Sequence[tuple[Record, Called, str, Label]]) -> list[Open]:
    """Return calls as they wait, their secrets masked all at once."""
    masked = redact.secrets_many([_given(item.tool, item.args) for _, item, _, _ in made])
    return [
        Open(
            record.n,
            item.block,
            clean(item.tool),
            short(said),
            fingerprint.of_call(item.tool, item.args, project),
            record.ts,
            label,
        )
        for (record, item, project, label), said in zip(made, masked, strict=True)
    ]


def summary(tool: str, args: object) -> str:
    """Return what a call was about in one redacted line of at most 200 characters."""
    return short(redact.secrets(_given(tool, args)))


def short(masked: str) -> str:
    """Return a text on one line of at most 200 characters."""
    line = " ".join(masked[:_NEAR].split())
    if len(line) <= MOST_SUMMARY and len(masked) > _NEAR:
        line = " ".join(masked.split())
    return clean(line if len(line) <= MOST_SUMMARY else line[: MOST_SUMMARY - 1] + "…")


def _given(tool: str, args: object) -> str:
    """Return what a call was given, values under telling names masked: what it runs, else every value."""
    given = _command(args) if isinstance(args, dict) and shell_like(tool) else ""
    return (given or " ".join(values(redact.arguments(args))))[:_MOST_READ]


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
