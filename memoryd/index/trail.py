"""What raised a log's label, taken out of its fold record by record, with the calls by their places.

In: a turn whose fold has just taken a record. Out: events, in the turn; and, once, what first raised the log
above `max_class`, in a few words for `status`.
"""

from memoryd.fold import call_hash
from memoryd.index.rows import storable
from memoryd.index.settings import Settings
from memoryd.index.table import Event, Folding, Open
from memoryd.index.turn import Turn
from memoryd.records import Brought, Record, Unreadable
from memoryd.redact import secrets
from memoryd.rules import Rules

FORGOTTEN = "a forgotten record"


def take(turn: Turn, record: Record, settings: Settings, *, below: bool) -> None:
    """Take the events of one record out of the fold's state, calls by their places.

    `below`: the record itself is not above `max_class`; of one that is, no name is kept either, nor of one
    that is forgotten.
    """
    folding, rules = turn.folding, settings.rules
    origins: dict[int, tuple[str, ...]] | None = None
    nameless = False
    for n, block, name, ok, level, untrusted in folding.state.trail:
        nameless = nameless or name is None
        call = None if name is None else _place(folding, name)
        of = None if call is None else (call.n, call.block)
        without_call = came = None
        if below and name is not None and name.startswith(":"):
            origins = _origins(record) if origins is None else origins
            without_call, came = name, origins.get(block)
        event = Event(n, block, of, without_call, ok, level, untrusted, came)
        gone = turn.forgotten(n, block, record.ts)
        folding.events.append(event.bare() if gone else event)
        if level > settings.max_level and turn.log.why is None:
            turn.log.why = FORGOTTEN if gone else _why(rules, call, without_call)
    folding.state.trail.clear()
    if nameless:  # as what an unreadable line brings in is
        turn.counts.unreadable += sum(isinstance(item, Unreadable) for item in record.items)


def _origins(record: Record) -> dict[int, tuple[str, ...]]:
    """Return the paths from which came what came without a call, masked, by block."""
    found: dict[int, tuple[str, ...]] = {}
    for item in record.items:
        if isinstance(item, Brought) and isinstance(item.args, dict):
            told = item.args.get("path")
            paths = told if isinstance(told, list) else [told]
            texts = (storable(secrets(path)) for path in paths if isinstance(path, str))
            found[item.block] = (*found.get(item.block, ()), *texts)
    return found


def _place(folding: Folding, call: str) -> Open | None:
    return folding.places.get(call) or folding.places.get(call_hash(call))


def _why(rules: Rules, call: Open | None, brought: str | None) -> str:
    """Say in a few words what raised a log above `max_class`."""
    if call is not None:
        if not call.tool:
            return "a call above max_class"
        return call.tool if rules.known(call.tool) else f"{call.tool} (no rule)"
    if brought is not None:
        name = brought.removeprefix(":")
        return name if rules.known(name, brought=True) else f"{name} (no rule)"
    return "a line or a result that nobody can place"
