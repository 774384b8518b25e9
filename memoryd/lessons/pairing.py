"""Pair calls with their results, as they stand in one log.

In: a log's records with the labels that the fold gave them, in file order. Out: `Seen`, one a call that was
answered. Pure: what waits for its result is handed back, to be stored with the log's position, so that a
restart between call and result loses nothing and no call is seen twice. A batch at a time costs a third of a
record at a time: secrets are looked for in all of its calls at once.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from memoryd import redact
from memoryd.labels import Label
from memoryd.lessons import fingerprint
from memoryd.lessons.failure import Outcome, shell_like, shows
from memoryd.records import Called, Record, Returned, Said, values

OUTCOMES: dict[bool | None, Outcome] = {ok: Outcome(ok) for ok in (None, True, False)}
WELL = OUTCOMES[True]
MOST_SUMMARY = 200
_MOST_READ = 4_000
_NEAR = 500
"""Characters that hold a summary, unless most of them are blank."""
_FLAT = frozenset((str, int, float))
_TEXTS = frozenset((str,))

Rows = Iterable[tuple[Said | Called, Label]]


_LOOKING = frozenset(
    "read grep glob ls list search view webfetch websearch fetch todowrite todoread task read_file "
    "list_dir list_directory grep_search file_search codebase_search update_plan notebookread".split()
)


class Open(msgspec.Struct, frozen=True, gc=False):
    """A call without a result yet; `summary` is redacted, its arguments are kept nowhere else."""

    n: int
    block: int
    tool: str
    summary: str
    fingerprint: str
    at: int | None
    label: Label


Made = tuple[int, int, str, int | None, Label]
"""A call as it stands in a batch, whose result may stand there too: record, block, tool, time, label."""

Answer = tuple[int | Open, Returned, Label, int | None, int, str, str, str]
"""A result that was found for a call: that call by its number in the batch, or one that had waited; the label
after it, its time or None, the time that stands in for it; which log it is, whose, and its project."""


class Heard(Protocol):
    """What is heard of a record, by whoever hears it."""

    @property
    def record(self) -> Record:
        """Return the record."""
        ...

    @property
    def calls(self) -> Rows:
        """Return its calls, each with the label before it."""
        ...

    @property
    def after(self) -> Label:
        """Return the label of its log after it."""
        ...

    @property
    def before(self) -> int | None:
        """Return the newest time (ms) of the records before it."""
        ...


class Fed(NamedTuple):
    """The same, for whoever hears of no index."""

    record: Record
    calls: Rows
    after: Label
    before: int | None


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


class Gathering:
    """Calls of one log or of many that are looked at together; their pairings wait for `seen`."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.made: list[Made] = []
        self.answers: list[Answer] = []
        self.pairings: dict[str, Pairing] = {}
        self._given: list[str] = []
        self._prints: list[str] = []

    def take(self, calls: Sequence[tuple[Called, str]], answered: Collection[int]) -> None:
        """Take what the newest of `made` are, each with its project, while all of it is at hand.

        `answered`: those, by their place, that went well. Most of them only look: nothing ever reads what they
        were about, so of them it is "".
        """
        self._prints += fingerprint.of_calls(
            [(item.tool, item.args, project) for item, project in calls]
        )
        self._given += [
            "" if n in answered and only_looks(item.tool) else _given(item.tool, item.args)
            for n, (item, _) in enumerate(calls, len(self._given))
        ]

    def seen(self) -> list[Seen]:
        """Return the calls that were answered, in the order of their answers; what waits is with its pairing."""
        if not self.made and not self.answers:
            return []
        # Secrets are masked in all at once.
        said = [text and short(text) for text in redact.secrets_many(self._given)]
        for pairing in self.pairings.values():
            pairing.waiting |= {
                clean(call): _open(self.made[at], said[at], self._prints[at])
                for call, at in pairing.new.items()
            }
            pairing.new = {}
        return [_seen(one, self.made, said, self._prints) for one in self.answers]


class Pairing:
    """One log: who speaks in it, and which calls are open."""

    def __init__(self, log: str, session: str, project: str = "") -> None:
        """Start at the beginning of `log`; `session` and `project` until a record tells them."""
        self.log = log
        self.session = session
        self.project = project
        self.waiting: dict[str, Open] = {}
        self.new: dict[str, int] = {}
        """Calls of a `Gathering` that have no result yet, by their place in it."""
        self._told = False

    def place(self, session: str, project: str) -> None:
        """Take it from the index whose log this is: what later records say of it counts no more."""
        self.session, self.project, self._told = clean(session), clean(project), True

    def feed(self, record: Record, rows: Rows, after: Label, now: int) -> list[Seen]:
        """Return the calls that `record` answers. `rows`: the fold's; `after`: its label after the record.

        `now` stands in where the log tells no time.
        """
        together = Gathering()
        self.gather(together, [Fed(record, rows, after, now)])
        return together.seen()

    def gather(self, together: Gathering, batch: Iterable[Heard], written: int = 0) -> None:
        """Pair a batch of records into what is looked at together.

        `written`: where no record tells a time, from there on the order of records stands for it.
        """
        together.pairings[self.log] = self
        made, answers, new, waiting = together.made, together.answers, self.new, self.waiting
        log, session, project = self.log, self.session, self.project
        calls: list[tuple[Called, str]] = []
        well: set[int] = set()
        for heard in batch:
            record = heard.record
            if record.about is not None and not self._told:
                self._hear(record)
                session, project = self.session, self.project
            for item, label in heard.calls:
                if type(item) is Called and (call := item.call) is not None and not item.hosted:
                    if waiting:
                        waiting.pop(clean(call), None)
                    new[call] = len(made)
                    made.append((record.n, item.block, item.tool, record.ts, label))
                    calls.append((item, project))
            for one in record.items:
                if type(one) is not Returned or (name := one.call) is None:
                    continue
                place = new.pop(name, None)
                found: int | Open | None = place
                if place is None:
                    found = waiting.pop(clean(name), None) if waiting else None
                elif one.ok:
                    well.add(place)
                if found is None:
                    continue
                if one.ok is None and one.told is None:
                    continue  # answered, and nobody can say how
                now = heard.before or written + record.n
                answers.append((found, one, heard.after, record.ts, now, log, session, project))
        together.take(calls, well)

    def _hear(self, record: Record) -> None:
        if record.about is not None and not self._told:
            self.session = clean(record.about.session or self.session)
            self.project = clean(record.about.project or self.project)
            self._told = record.about.session is not None and record.about.project is not None


def _seen(answer: Answer, made: Sequence[Made], said: Sequence[str], prints: Sequence[str]) -> Seen:
    call, result, after, at, now, log, session, project = answer
    if isinstance(call, int):
        n, block, tool, called_at, label = made[call]
        about, same = said[call], prints[call]
        tool = tool if tool.isascii() else clean(tool)
    else:
        n, block, tool, about, same, called_at, label = msgspec.structs.astuple(call)
    ok = result.ok
    if ok:
        text = ""
        about = "" if only_looks(tool) else about
    else:
        asked = ok is False or (shell_like(tool) and not shows(about))
        text = told(result.told) if asked else ""
    if at is None:
        at = now if called_at is None else called_at
    # Positional: these are made by the million.
    return Seen(
        log, n, block, session, project, tool, about, same, at, OUTCOMES[ok], text,
        label if label == after else label.join(after),
    )  # fmt: skip


def call_key(log: str, n: int, block: int) -> str:
    """Return the one name of a call: its log, record and block."""
    return f"{log}\0{n}\0{block}"


@lru_cache(maxsize=256)
def only_looks(tool: str) -> bool:
    """Say whether a tool changes nothing, so that what it was given explains no fix."""
    return tool.lower() in _LOOKING


def _open(made: Made, said: str, same: str) -> Open:
    """Return a call as it waits."""
    n, block, tool, at, label = made
    return Open(n, block, clean(tool), said, same, at, label)


def summary(tool: str, args: object) -> str:
    """Return what a call was about in one redacted line of at most 200 characters."""
    return short(redact.secrets(_given(tool, args)))


def short(masked: str) -> str:
    """Return a text on one line of at most 200 characters."""
    head = masked[: MOST_SUMMARY + 1]
    if head.isascii() and head.isprintable() and "  " not in head and head[0:1] != " " != head[-1:]:
        return head if len(head) <= MOST_SUMMARY else head[: MOST_SUMMARY - 1] + "…"
    line = " ".join(masked[:_NEAR].split())
    if len(line) <= MOST_SUMMARY and len(masked) > _NEAR:
        line = " ".join(masked.split())
    return clean(line if len(line) <= MOST_SUMMARY else line[: MOST_SUMMARY - 1] + "…")


def _given(tool: str, args: object) -> str:
    """Return what a call was given, values under telling names masked: what it runs, else every value."""
    given = _command(args) if isinstance(args, dict) and shell_like(tool) else ""
    if not given:
        masked = redact.arguments(args)
        if isinstance(masked, dict) and _TEXTS.issuperset(map(type, masked.values())):
            given = " ".join(masked.values())
        elif isinstance(masked, dict) and _FLAT.issuperset(map(type, masked.values())):
            given = " ".join(map(str, masked.values()))
        else:
            given = " ".join(values(masked))
    return given[:_MOST_READ]


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
