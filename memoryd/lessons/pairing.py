"""Pair calls with their results, as they stand in one log.

In: passages of logs, in file order, with the labels that the fold gave them. Out: `Seen`, one a call that was
answered. Pure: what waits for its result is handed back, to be stored with the log's position, so that a
restart between call and result loses nothing and no call is seen twice. Many passages at a time cost a third of one
at a time: secrets are looked for in all of their calls at once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast

import msgspec

from memoryd import redact
from memoryd.labels import Label
from memoryd.lessons.failure import Outcome, shell_like, shows
from memoryd.lessons.passage import Answer, Around, Passage, about, clean, only_looks, passage
from memoryd.records import Called, Record, Returned, Said

OUTCOMES: dict[bool | None, Outcome] = {ok: Outcome(ok) for ok in (None, True, False)}
WELL = OUTCOMES[True]
MOST_SUMMARY = 200
_NEAR = 500
"""Characters that hold a summary, unless most of them are blank."""


class Open(msgspec.Struct, frozen=True, gc=False):
    """A call without a result yet; `summary` is redacted, its arguments are kept nowhere else."""

    n: int
    block: int
    tool: str
    summary: str
    fingerprint: str
    at: int | None
    label: Label


class Seen(msgspec.Struct, frozen=True, gc=False):
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


Found = int | tuple[int, int] | Open
"""The call that a result answers: one of its passage by its place, one of an earlier passage of the same gathering
by that passage's number and its place there, or one that has waited."""


class Heard(NamedTuple):
    """A passage of a log among others; of its answers those that answer a call, `Found` in place of an id.

    `written`: where nothing tells a time, from there on (ms) the order of records stands for it.
    """

    log: str
    passage: Passage
    answers: list[tuple[Found, int, bool | None, msgspec.Raw | None, Label, int | None, int | None]]
    written: int


class Gathering:
    """Passages of one log or of many that are looked at together; their pairings wait for `seen`."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.heard: list[Heard] = []
        self.answers = 0
        """How many calls `seen` will return."""
        self.pairings: dict[str, Pairing] = {}

    def seen(self) -> list[Seen]:
        """Return the calls that were answered, in the order of their answers; what waits is with its pairing."""
        firsts = [0, *accumulate(len(one.passage.given) for one in self.heard)]
        given = [text for one in self.heard for text in one.passage.given]
        # Secrets are masked in all at once.
        said = [text and short(text) for text in redact.secrets_many(given)]

        def waiting(number: int, place: int) -> Open:
            passage = self.heard[number].passage
            n, block, _, tool, at, label = passage.made[place]
            same = passage.prints[place]
            return Open(n, block, clean(tool), said[firsts[number] + place], same, at, label)

        for pairing in self.pairings.values():
            for call, where in pairing.new.items():
                pairing.waiting[clean(call)] = waiting(*where)
            pairing.new = {}
        found: list[Seen] = []
        for one, first in zip(self.heard, firsts, strict=False):
            found += _seen(one, said[first : first + len(one.passage.given)], waiting)
        return found


class Pairing:
    """One log: who speaks in it, and which calls are open."""

    def __init__(self, log: str, session: str, project: str = "") -> None:
        """Start at the beginning of `log`; `session` and `project` until a record tells them."""
        self.log = log
        self.session = session
        self.project = project
        self.waiting: dict[str, Open] = {}
        self.new: dict[str, tuple[int, int]] = {}
        """Calls of a `Gathering` that have no result yet: the number of their passage in it, and their place there."""
        self._told = False

    def feed(
        self, record: Record, rows: Iterable[tuple[Said | Called, Label]], after: Label, now: int
    ) -> list[Seen]:
        """Return the calls that `record` answers. `rows`: the fold's; `after`: its label after the record.

        `now` stands in where the log tells no time. For whoever hears of no index.
        """
        self.hear(record)
        n = record.n
        calls = [(record, item, label) for item, label in rows]
        results = [(n, one) for one in record.items if isinstance(one, Returned)]
        around = Around({n: record.ts}, {n: after}, {n: now})
        together = Gathering()
        self.gather(together, passage((self.session, self.project), calls, results, around))
        return together.seen()

    def hear(self, record: Record) -> None:
        """Take whose session and project it is from the first records that tell."""
        if record.about is not None and not self._told:
            self.session = clean(record.about.session or self.session)
            self.project = clean(record.about.project or self.project)
            self._told = record.about.session is not None and record.about.project is not None

    def gather(self, together: Gathering, passage: Passage, written: int = 0) -> list[Any]:
        """Pair the next passage of the log with what is open, and add it to what is looked at together.

        Returns its answers that will be seen, as `Heard` has them.
        """
        self.session, self.project = passage.session, passage.project
        together.pairings[self.log] = self
        answers: list[Any] = passage.answers
        if not passage.plain:
            answers = [(self._found(one), *one[1:]) for one in answers]
            answers = [one for one in answers if one[0] is not None]
        if self.waiting or self.new:
            for call in passage.made:
                self._drop(call[2])
        number = len(together.heard)
        self.new |= {passage.made[place][2]: (number, place) for place in passage.open}
        together.heard.append(Heard(self.log, passage, answers, written))
        together.answers += len(answers)
        return answers

    def _found(self, answer: Answer) -> Found | None:
        """Return which call is answered, open no longer; None where there is none, or nobody can say how it went."""
        call, _, ok, told = answer[:4]
        found: Found | None = call if isinstance(call, int) else self._drop(call)
        return None if ok is None and told is None else found

    def _drop(self, call: str) -> tuple[int, int] | Open | None:
        """Take a call out of those that are open: it is answered, or another one has its id now."""
        waited = self.waiting.pop(clean(call), None) if self.waiting else None
        return self.new.pop(call, waited)


def _seen(heard: Heard, said: Sequence[str], waiting: Callable[[int, int], Open]) -> Iterator[Seen]:
    log, passage, written = heard.log, heard.passage, heard.written
    session, project, made, prints = passage[:4]
    for call, at_n, ok, raw, after, answered_at, before in heard.answers:
        if type(call) is int:
            n, block, _, tool, called_at, label = made[call]
            given, same = said[call], prints[call]
            tool = tool if tool.isascii() else clean(tool)
        else:
            one = call if isinstance(call, Open) else waiting(*cast(tuple[int, int], call))
            n, block, tool, given, same, called_at, label = msgspec.structs.astuple(one)
        text = ""
        if ok:
            given = "" if only_looks(tool) else given
        elif ok is False or (shell_like(tool) and not shows(given)):
            text = told(raw)
        at = called_at if answered_at is None else answered_at
        if at is None:
            at = before or written + at_n
        # Positional: these are made by the million.
        yield Seen(
            log, n, block, session, project, tool, given, same, at, OUTCOMES[ok], text,
            label if label == after else label.join(after),
        )  # fmt: skip


def call_key(log: str, n: int, block: int) -> str:
    """Return the one name of a call: its log, record and block."""
    return f"{log}\0{n}\0{block}"


def summary(tool: str, args: object) -> str:
    """Return what a call was about in one redacted line of at most 200 characters."""
    return short(redact.secrets(about(tool, args)))


def short(masked: str) -> str:
    """Return a text on one line of at most 200 characters."""
    head = masked[: MOST_SUMMARY + 1]
    if head.isascii() and head.isprintable() and "  " not in head and head[0:1] != " " != head[-1:]:
        return head if len(head) <= MOST_SUMMARY else head[: MOST_SUMMARY - 1] + "…"
    line = " ".join(masked[:_NEAR].split())
    if len(line) <= MOST_SUMMARY and len(masked) > _NEAR:
        line = " ".join(masked.split())
    return clean(line if len(line) <= MOST_SUMMARY else line[: MOST_SUMMARY - 1] + "…")


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
        return _text(_any.decode(value), 1)
    except (msgspec.DecodeError, RecursionError):
        return value
