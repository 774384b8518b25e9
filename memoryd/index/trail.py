"""What raised a log's label, taken out of its fold batch by batch.

In: a turn whose fold has just taken records. Out: events, in the turn; and, once, what first raised the log
above `max_class`, in a few words for `status`.
"""

from collections.abc import Sequence

from memoryd.fold import Event
from memoryd.index.rows import storable
from memoryd.index.settings import Settings
from memoryd.index.turn import Turn
from memoryd.labels import Label
from memoryd.records import Brought, Record, Unreadable
from memoryd.redact import secrets
from memoryd.rules import Rules

FORGOTTEN = "a forgotten record"
_OTHERS = "what another log had met"


def take(turn: Turn, records: Sequence[Record], before: list[Label], settings: Settings) -> None:
    """Take the events of consecutive records, which had the labels `before`, out of the fold's state.

    Of a record that is itself above `max_class` no name is kept, nor of one that is forgotten.
    """
    state, keep, log = turn.folding.state, turn.folding.events.append, turn.log
    max_level, first, nameless = settings.max_level, records[0].n, set[int]()
    risen = _risen(before, state.label, max_level)
    for raised in state.trail:
        event, at = raised, raised.n - first
        if event.name is not None:
            event = _named(event, records[at], below=before[at].level <= max_level)
        elif event.of is None:
            nameless.add(at)
        gone = turn.tomb is not None and turn.forgotten(event.n, event.block, records[at].ts)
        keep(event.bare() if gone else event)
        if event.level > max_level and log.why is None:
            why = FORGOTTEN if gone else _why(settings.rules, turn.folding.tools, event)
            log.why = why if at <= risen else _OTHERS
    state.trail.clear()
    if log.why is None and risen < len(records):
        log.why = _OTHERS
    for at in nameless:
        turn.counts.unreadable += sum(isinstance(item, Unreadable) for item in records[at].items)


def _risen(before: list[Label], after: Label, max_level: int) -> int:
    """Return which record took its log above `max_class`; their number if none did."""
    if before[0].level > max_level or after.level <= max_level:
        return len(before)
    return next((at for at, label in enumerate(before) if label.level > max_level), len(before)) - 1


def _named(event: Event, record: Record, *, below: bool) -> Event:
    """Return the event of what came without a call, with the paths it came from, masked, where that may be told."""
    if not below:
        return event.bare()
    found: list[str] = []
    told = False
    for item in record.items:
        if isinstance(item, Brought) and item.block == event.block and isinstance(item.args, dict):
            paths = item.args.get("path")
            texts = paths if isinstance(paths, list) else [paths]
            found += (storable(secrets(path)) for path in texts if isinstance(path, str))
            told = True
    return event._replace(paths=tuple(found)) if told else event


def _why(rules: Rules, tools: dict[tuple[int, int], str], event: Event) -> str:
    """Say in a few words what raised a log above `max_class`."""
    if event.of is not None:
        if not (tool := tools.get(event.of, "")):
            return "a call above max_class"
        return tool if rules.known(tool) else f"{tool} (no rule)"
    if event.name is not None:
        name = event.name.removeprefix(":")
        return name if rules.known(name, brought=True) else f"{name} (no rule)"
    return "a line or a result that nobody can place"
