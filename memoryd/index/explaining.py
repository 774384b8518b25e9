"""Why each record of a log has its label: every step at which the label rose, and the rule that raised it.

In: a log's file and its row. Out: `Explained`, for the owner. The log is folded once more as it was read so
far, with its calls in memory; words of the log are told nowhere, only the names of tools and of rules.
"""

import msgspec

from memoryd.fold import BEFORE_ITEMS, Event, State, fold
from memoryd.index.files import opened, start_of
from memoryd.index.lineage import END
from memoryd.index.listening import Retelling
from memoryd.index.relabels import Ruling
from memoryd.index.relations import Relations
from memoryd.index.settings import Settings
from memoryd.index.table import Log
from memoryd.labels import LOWEST, Label
from memoryd.records import Brought, Called, Record
from memoryd.rules import Reason
from memoryd.sources import LogFile, lines
from memoryd.sources.lines import Position


class Because(msgspec.Struct, frozen=True):
    """One rule's part in a step, and the label that it alone asks for."""

    rule: str
    cls: str = msgspec.field(name="class")
    untrusted: bool


class Step(msgspec.Struct, frozen=True):
    """Where the label rose: after record `n`, because of `what`; the label from there on."""

    n: int
    block: int
    what: str
    cls: str = msgspec.field(name="class")
    untrusted: bool
    because: tuple[Because, ...]


class Override(msgspec.Struct, frozen=True):
    """The owner's own label for rows of records `first` to `last`."""

    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")
    cls: str | None = msgspec.field(name="class")
    trusted: bool
    rows: int


class Explained(msgspec.Struct, frozen=True):
    """All of one log. `steps` begins with its start; `copies` are records whose rows are another log's."""

    source: str
    log: str
    session: str
    records: int
    cls: str = msgspec.field(name="class")
    untrusted: bool
    steps: tuple[Step, ...]
    overrides: tuple[Override, ...]
    copies: tuple[tuple[int, int], ...]


def explain(
    settings: Settings, file: LogFile, log: Log, kin: Relations, rulings: tuple[Ruling, ...]
) -> Explained:
    """Return why the rows of `log` have their labels. Raises: OSError."""
    told = _Explaining(settings, file, log, kin)
    with opened(file) as (handle, _):
        for batch in lines.read(handle, Position(), file.adapter, log=file.log):
            for record in batch.records:
                if record.n < log.position.records:
                    told.record(record)
            if batch.position.records >= log.position.records:
                break
    classes = settings.classes
    overrides = tuple(
        Override(
            r.first, r.last, None if r.level is None else classes.name(r.level), r.trusted, len(r.rows)
        )
        for r in rulings
    )  # fmt: skip
    label = told.label
    return Explained(log.place.source, log.place.log, log.session, log.position.records,
                     classes.name(label.level), label.untrusted, tuple(told.steps), overrides,
                     log.heard.skips)  # fmt: skip


class _Explaining:
    """The fold of one log, with every step noted."""

    def __init__(self, settings: Settings, file: LogFile, log: Log, kin: Relations) -> None:
        self._rules, self._classes = settings.rules, settings.classes
        self._trusted, self._log, self._kin = file.root.trusted, log, kin
        self._ear = Retelling(log.heard)
        self._calls: dict[tuple[int, int], Called] = {}
        self.label = start_of(settings, file, LOWEST)
        self.steps: list[Step] = []
        self._note(-1, 0, "the start", [("[labels] start, or the source's", self.label)])
        if log.floor is not LOWEST:
            self._rise(-1, 0, "the start", [("the log was rewritten lower", log.floor)], log.floor)
        self._state = State(self.label)

    def record(self, record: Record) -> None:
        for item in record.items:
            if isinstance(item, Called):
                self._calls[record.n, item.block] = item
        fold(self._state, record, self._rules, self._trusted, self._ear)
        self._heard(record.n, start=True)
        for event in self._state.trail:
            self._event(record, event)
        self._state.trail.clear()
        self._heard(record.n, start=False)

    def _event(self, record: Record, event: Event) -> None:
        n, block, of, name, _, level, untrusted, _ = event
        own = Label(level, untrusted)
        if name is not None:
            args = next(
                (i.args for i in record.items if isinstance(i, Brought) and i.block == block), None
            )
            what, why = name[1:], self._rules.brought_reasons(name[1:], args)
        else:
            call = None if of is None else self._calls.get(of)
            what, why = self._call(call, block, record)
        if self._trusted:
            why = [("stated by the log, under the state folder's sessions", own)]
        self._rise(n, block, what, why, own)

    def _call(self, call: Called | None, block: int, record: Record) -> tuple[str, list[Reason]]:
        if call is None:
            hosted = [
                i for i in record.items if isinstance(i, Called) and i.hosted and i.block == block
            ]
            if not hosted:
                return "a result or a line that nobody can place", [
                    ("fail closed", self._rules.unknown)
                ]
            call = hosted[0]
        return f"result of {call.tool or 'a nameless call'}", self._rules.reasons(
            call.tool, call.args, hosted=call.hosted
        )

    def _heard(self, n: int, *, start: bool) -> None:
        """Note what other logs said in record `n`: at its links, or with its results."""
        for at, block, level, untrusted in self._log.heard.raises:
            if at != n or (block == BEFORE_ITEMS) != start:
                continue
            own = Label(level, untrusted)
            names = self._others(n, block) or ["a log that is not there, or a circle: the top"]
            what = "where it starts from" if start else "a sub-agent's own log"
            self._rise(n, block, what, [(name, own) for name in names], own)

    def _others(self, n: int, block: int) -> list[str]:
        member = self._kin.members.get(self._log.key)
        hearings = () if member is None else self._kin.hearings(member)
        return [
            f"{self._kin.members[key].place.log}" + ("" if at == END else f" after record {at}")
            for hearing in hearings
            if (hearing.n, hearing.block) == (n, block)
            for key, at in hearing.refs or ()
        ]

    def _rise(self, n: int, block: int, what: str, why: list[Reason], own: Label) -> None:
        if not self.label.covers(own):
            self.label = self.label.join(own)
            self._note(n, block, what, why)

    def _note(self, n: int, block: int, what: str, why: list[Reason]) -> None:
        name, label = self._name, self.label
        because = tuple(Because(rule, name(own), own.untrusted) for rule, own in why)
        self.steps.append(Step(n, block, what, name(label), label.untrusted, because))

    def _name(self, label: Label) -> str:
        return self._classes.name(label.level)
