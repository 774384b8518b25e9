"""Recorded sessions run through the very same code that learns from live ones, on a database in memory.

In: transcripts (JSON: an array of events, or an object with them), or session logs of any format that memoryd
reads. Out: one row each: lessons, injections by outcome, precision, coverage, tokens. Time is what the
recording says and nothing else, so that twice gives the same bytes.

A transcript's idle settles and archives, as it always did; it promotes nothing, so that its figures stay
comparable with older ones. A log is asked before each of the owner's words, settled and ended at its end.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import apsw
import msgspec

from memoryd import config, db
from memoryd.clock import parse_rfc3339, rfc3339
from memoryd.errors import BadRequest, NotFound
from memoryd.fold import begin, fold
from memoryd.index.files import opened
from memoryd.labels import Label
from memoryd.lessons import archive, ledger, settings, settlement, store
from memoryd.lessons.failure import Outcome
from memoryd.lessons.fingerprint import of_call
from memoryd.lessons.observe import observe
from memoryd.lessons.pairing import Pairing, Seen, summary
from memoryd.lessons.plan import Ask
from memoryd.lessons.reader import Reader
from memoryd.records import Kind, Said
from memoryd.rules import Rules
from memoryd.sources import LogFile, Root, discover, lines

KINDS = (
    *("session.created", "chat.message", "tool.before", "tool.after"),
    *("system.transform", "compacting", "session.idle"),
)
_OWNER = Reader(7, "include", ("*",), owner=True)
_PLAIN = Label(0, False)
_BIGGEST = 64 << 20
_FORM = "see docs/lessons.md for the form of a transcript"
_SUFFIXES = (".json", ".jsonl")
_ABOVE = 2


class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One event of a transcript, as it is written."""

    kind: str
    at: str
    session_id: str
    text: str | None = None
    call_id: str | None = None
    tool: str | None = None
    args: dict[str, object] | None = None
    success: bool | None = None
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None


class Transcript(msgspec.Struct, frozen=True):
    """Events in order, and whose project they are of."""

    events: list[Event]
    name: str = ""
    version: int = 1
    project: str = ""


class Row(msgspec.Struct, frozen=True):
    """What one recording came to. A rate is None where there is nothing to divide by."""

    transcript: str
    lessons: int
    total: int
    effective: int
    ineffective: int
    inconclusive: int
    unmeasured: int
    prevented: int
    precision_rate: float | None
    coverage_rate: float | None
    tokens_pre_prompt: int
    tokens_compacting: int
    blocked: dict[str, int]


def transcript(content: bytes, name: str) -> Transcript:
    """Return the transcript in `content`. Raises: BadRequest that names what is wrong with it."""
    try:
        given = msgspec.json.decode(content)
        made = {"events": given} if isinstance(given, list) else given
        found = msgspec.convert(made, Transcript)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise BadRequest(
            f"{name} is no transcript: {error}", remedy="see docs/lessons.md"
        ) from error
    for number, event in enumerate(found.events):
        if event.kind not in KINDS:
            raise BadRequest(f"{name}, event {number}: there is no kind {event.kind}", remedy=_FORM)
        _time(event, f"{name}, event {number}")
    if not found.events or found.version != 1:
        raise BadRequest(f"{name} holds no events of version 1", remedy=_FORM)
    return msgspec.structs.replace(found, name=found.name or name)


def play(recorded: Transcript) -> Row:
    """Run a transcript and return what it came to."""
    connection = _database()
    run = _Run(connection, recorded.project)
    for number, event in enumerate(recorded.events):
        run.step(event, number)
    return _row(connection, recorded.name)


def play_log(log: LogFile, rules: Rules, project: str | None = None) -> Row:
    """Run a session log of any known format. Raises: NotFound for one that cannot be read."""
    connection, name = _database(), PurePosixPath(log.log).name
    try:
        with opened(log) as (descriptor, _):
            _observe(connection, descriptor, log, rules, project)
    except OSError as error:
        raise NotFound(
            f"{log.path} cannot be read", remedy="name a transcript or a session log"
        ) from error
    return _row(connection, name)


def _observe(
    connection: apsw.Connection, descriptor: int, log: LogFile, rules: Rules, project: str | None
) -> None:
    """Learn from every record of an open log, ask at each of its owner's words, settle at its end."""
    name = PurePosixPath(log.log).name
    state, pairing, now = begin(rules), Pairing(name, name, project or ""), 0
    for batch in lines.read(descriptor, lines.Position(), log.adapter, log=log.log):
        for record in batch.records:
            now = max(now, record.ts or 0)
            rows = fold(state, record, rules, trusted=False)
            with db.transaction(connection):
                for seen in pairing.feed(record, rows, state.label, now or record.n):
                    observe(connection, seen)
            for item, _ in rows:
                if isinstance(item, Said) and item.kind == Kind.OWNER:
                    _ask(connection, pairing, item.text, now)
    settlement.idle(connection, pairing.session, now, ended=True)


def default_rules(home: Path) -> Rules:
    """Return the rules of a memoryd without a configuration: profile `coding`."""
    defaults = config.parse("", Path("memoryd.toml")).config
    return Rules(defaults, state=home / ".local" / "state" / "memoryd", home=home)


def every(
    paths: Iterable[Path],
    home: Path,
    project: str | None = None,
    *,
    skipped: list[Path] | None = None,
) -> list[Row]:
    """Return a row for each transcript and log that `paths` name or hold, in the order of their names.

    What a named folder holds besides is no recording: it goes to `skipped`. Raises: BadRequest for a named file
    that is none, NotFound for one that cannot be read.
    """
    rules = default_rules(home)
    rows: list[Row] = []
    for path in paths:
        for file, logs in recordings(path).items():
            try:
                rows += _rows(file, logs, rules, project)
            except BadRequest:
                if file == path:
                    raise
                if skipped is not None:
                    skipped.append(file)
    return rows


def recordings(path: Path) -> dict[Path, list[LogFile]]:
    """Return the files to replay, by name, each with the logs that it is or holds.

    What is named; in a named folder every log that memoryd would read there, and every ``.json`` and ``.jsonl``.
    """
    if not path.is_dir():
        whole = path.resolve()
        # A session of many files lies two folders below the one that holds all of it.
        top = whole.parents[min(_ABOVE, len(whole.parents) - 1)]
        return {path: discover.logs_at(whole, [Root("auto", top)]) if whole.is_file() else []}
    found = {p: list[LogFile]() for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file()}
    for log in discover.logs([Root("auto", path)]):
        found.setdefault(log.path, []).append(log)
    return dict(sorted(found.items()))


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text: a header, a line, one row each, columns two spaces apart."""
    names = (
        *("transcript", "lessons", "total", "eff", "ineff", "inconc", "unmeas", "prevented"),
        *("precision", "coverage", "pre_tokens", "comp_tokens"),
    )
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    dashes = tuple("-" * width for width in widths)
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (names, dashes, *cells)
    )


class _Run:
    """A transcript under way: what was said last, and which calls are open."""

    def __init__(self, connection: apsw.Connection, project: str) -> None:
        self.connection = connection
        self.project = project
        self.asked: dict[str, str] = {}
        self.calls: dict[str, tuple[str, dict[str, object]]] = {}

    def step(self, event: Event, number: int) -> None:
        at, session = _time(event, "event"), event.session_id
        if event.kind == "session.created":
            self.asked.pop(session, None)
        elif event.kind == "chat.message":
            self.asked[session] = event.text or self.asked.get(session, "")
        elif event.kind == "tool.before" and event.call_id is not None:
            self.calls[event.call_id] = (event.tool or "", event.args or {})
        elif event.kind == "tool.after":
            with db.transaction(self.connection):
                observe(self.connection, self.seen(event, number, at))
        elif event.kind == "session.idle":
            with db.transaction(self.connection):
                settlement.settle(self.connection, session, at)
                settlement.charge(self.connection, session, at)
                archive.archive(self.connection, at)
        elif query := self.asked.get(session):
            hook = "compacting" if event.kind == "compacting" else "pre_prompt"
            ask = Ask(query=query, session=session, project=self.project, now=at, hook=hook)
            ledger.block(self.connection, _OWNER, ask)

    def seen(self, event: Event, number: int, at: int) -> Seen:
        tool, args = self.calls.pop(event.call_id or "", (event.tool or "", event.args or {}))
        return Seen(
            log="transcript",
            n=number,
            block=0,
            session=event.session_id,
            project=self.project,
            tool=tool,
            summary=summary(tool, args),
            fingerprint=of_call(tool, args, self.project),
            at=at,
            outcome=Outcome(event.success, event.exit_code),
            text=f"{event.stderr}\n{event.stdout}".strip(),
            label=_PLAIN,
        )


def _database() -> apsw.Connection:
    connection = store.memory()
    settings.put(connection, "deterministic_retrieval", "1")
    return connection


def _ask(connection: apsw.Connection, pairing: Pairing, query: str, now: int) -> None:
    ledger.block(
        connection,
        _OWNER,
        Ask(query=query[:4_000], session=pairing.session, project=pairing.project, now=now),
    )


def _rows(path: Path, logs: list[LogFile], rules: Rules, project: str | None) -> list[Row]:
    """Return the rows of one file. Raises: BadRequest where it is no recording, NotFound."""
    if logs:
        return [play_log(log, rules, project) for log in logs]
    if not path.is_file():
        raise NotFound(f"{path} cannot be read", remedy="name a transcript or a session log")
    if path.suffix != ".json":
        raise BadRequest(
            f"{path.name} is no session log of a format that is known",
            remedy="name a log that memoryd reads, or a transcript (*.json)",
        )
    return [_transcribed(path, project)]


def _transcribed(path: Path, project: str | None) -> Row:
    try:
        if path.stat().st_size > _BIGGEST:
            raise BadRequest(
                f"{path.name} is too large for a transcript", remedy=f"{_BIGGEST} bytes at most"
            )
        content = path.read_bytes()
    except OSError as error:
        raise NotFound(f"{path} cannot be read", remedy="name a transcript or a log") from error
    found = transcript(content, path.stem)
    return play(found if project is None else msgspec.structs.replace(found, project=project))


def _row(connection: apsw.Connection, name: str) -> Row:
    rates = ledger.rates(connection, _OWNER)
    counts = settings.counters(connection)
    lessons = connection.execute("SELECT count(*) FROM lesson").get
    return Row(
        transcript=name,
        lessons=int(lessons),
        total=rates.total,
        effective=rates.effective,
        ineffective=rates.ineffective,
        inconclusive=rates.inconclusive,
        unmeasured=rates.unmeasured,
        prevented=rates.prevented,
        precision_rate=rates.precision_rate,
        coverage_rate=rates.coverage_rate,
        tokens_pre_prompt=counts["tokens_injected_pre_prompt"],
        tokens_compacting=counts["tokens_injected_compacting"],
        blocked=dict(sorted(ledger.blocked(connection, _OWNER).items())),
    )


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.transcript,
        *map(str, (row.lessons, row.total, row.effective, row.ineffective)),
        *map(str, (row.inconclusive, row.unmeasured, row.prevented)),
        *(
            "-" if rate is None else f"{rate:.3f}"
            for rate in (row.precision_rate, row.coverage_rate)
        ),
        *map(str, (row.tokens_pre_prompt, row.tokens_compacting)),
    )


def _time(event: Event, where: str) -> int:
    """Return the time of an event (ms). Raises: BadRequest for one without a zone."""
    at = parse_rfc3339(event.at)
    zoned = event.at.endswith(("Z", "z")) or event.at[-6:-5] in ("+", "-")
    if at is None or not zoned:
        raise BadRequest(f"{where}: `at` is no time with a zone", remedy=f"write {rfc3339(0)}")
    return at


def as_json(rows: Sequence[Row]) -> str:
    """Return rows as canonical JSON lines."""
    return "\n".join(json.dumps(_plain(row), sort_keys=True) for row in rows)


def _plain(row: Row) -> Mapping[str, object]:
    told: dict[str, object] = msgspec.to_builtins(row)
    return told
