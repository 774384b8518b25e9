"""From calls that were seen to rows: each once, whatever the order in which logs are read.

In: an open transaction and `Seen`s. Out: rows of `call`; for a failure a lesson (`reflect`), for a success a
fix where there is proof (`causal`). Everything happens in the one call, so that no stamp can come too late.
A batch gives the rows that its calls give one by one, at a fraction of the cost: one look for secrets, one
statement a table, and a look for fixes only where the same call failed before.
"""

from collections.abc import Sequence

import apsw
import msgspec

from memoryd.labels import Label
from memoryd.lessons import calls, causal, reflect, settings, words
from memoryd.lessons.failure import Failure, declined, describe_many, failed
from memoryd.lessons.fingerprint import of_error
from memoryd.lessons.pairing import WELL, Open, Pairing, Seen

_MINUTE = 60_000
_DEDUP = "tool_calls_dedup_enabled"


class Failed(msgspec.Struct, frozen=True, gc=False):
    """What a failed call said, and the fingerprint of that."""

    failure: Failure
    error: str


def observe(connection: apsw.Connection, seen: Seen) -> bool:
    """Write down a call and what it teaches. Returns: False for one that is known."""
    return observe_many(connection, (seen,)) == 1


def observe_many(connection: apsw.Connection, seens: Sequence[Seen], *, later: bool = False) -> int:
    """Write down calls, in the order of their log, and what they teach; return how many were not known.

    `later`: the words of what they teach wait for `words.write_missing`, called before the transaction ends.
    """
    if len(seens) > 1 and settings.on(connection, _DEDUP):
        return sum(observe_many(connection, (seen,), later=later) for seen in seens)
    if not (fresh := _fresh(connection, seens)):
        return 0
    _touch(connection, fresh)
    found = _failures(fresh)
    if found or not _repeated(connection, fresh):
        told = {n: (one.error, one.failure.kind) for n, one in found.items()}
        calls.put(connection, fresh, told)
    mendable = _mendable(connection, fresh, found)
    for number, seen in enumerate(fresh):
        if (what := found.get(number)) is not None:
            if what.failure.lines and not declined(seen.text):
                reflect.reflect(connection, seen, what.failure, what.error)
            causal.link_later(connection, seen)
        elif seen.fingerprint in mendable:
            causal.link(connection, causal.Success.of(seen))
    if found and not later:
        words.write_missing(connection)
    return len(fresh)


def load(connection: apsw.Connection, pairing: Pairing) -> int:
    """Give `pairing` the calls that wait in its log; return the number of the next record to observe."""
    for call, *told in connection.execute(
        "SELECT call, n, block, tool, summary, fingerprint, at, level, untrusted FROM waiting "
        "WHERE log = ?",
        (pairing.log,),
    ):
        n, block, tool, summary, fingerprint, at, level, untrusted = told
        label = Label(level, bool(untrusted))
        pairing.waiting[call] = Open(n, block, tool, summary, fingerprint, at, label)
    found = connection.execute("SELECT n FROM progress WHERE log = ?", (pairing.log,)).get
    return 0 if found is None else int(found)


def save(connection: apsw.Connection, pairing: Pairing, n: int) -> None:
    """Store what waits, and that the records before `n` are done; in the transaction of their rows."""
    connection.execute("DELETE FROM waiting WHERE log = ?", (pairing.log,))
    connection.executemany(
        "INSERT INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (pairing.log, call, o.n, o.block, o.tool, o.summary, o.fingerprint, o.at, *o.label)
            for call, o in pairing.waiting.items()
        ],
    )
    connection.execute(
        "INSERT INTO progress VALUES (?, ?) ON CONFLICT DO UPDATE SET n = max(n, excluded.n)",
        (pairing.log, n),
    )


def _fresh(connection: apsw.Connection, seens: Sequence[Seen]) -> list[Seen]:
    """Return the calls that are not written down yet, each once."""
    first: dict[str, int] = {}
    for seen in seens:
        if seen.n < first.get(seen.log, seen.n + 1):
            first[seen.log] = seen.n
    known = {
        (log, *place)
        for log, least in first.items()
        for place in calls.known(connection, log, least)
    }
    fresh: dict[tuple[str, int, int], Seen] = {}
    for seen in seens:
        fresh.setdefault((seen.log, seen.n, seen.block), seen)
    return [seen for key, seen in fresh.items() if key not in known]


def _failures(seens: Sequence[Seen]) -> dict[int, Failed]:
    """Return what each call that failed said, by its place among `seens`."""
    told = [
        n
        for n, seen in enumerate(seens)
        if seen.outcome is not WELL and failed(seen.tool, seen.outcome, seen.text)
    ]
    failures = describe_many([(seens[n].tool, seens[n].outcome, seens[n].text) for n in told])
    found: dict[int, Failed] = {}
    for n, failure in zip(told, failures, strict=True):
        lines = list(failure.lines) or [seens[n].tool, seens[n].summary]
        found[n] = Failed(failure, of_error(lines, seens[n].project))
    return found


def _mendable(
    connection: apsw.Connection, seens: Sequence[Seen], found: dict[int, Failed]
) -> frozenset[str]:
    """Return the fingerprints of calls among `seens` that went well and had failed at any time."""
    well = {seen.fingerprint for n, seen in enumerate(seens) if n not in found}
    mended = connection.execute(
        "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM failed WHERE fingerprint = value)",
        (msgspec.json.encode(list(well)).decode(),),
    )
    return frozenset(str(one) for (one,) in mended)


def _touch(connection: apsw.Connection, seens: Sequence[Seen]) -> None:
    last: dict[str, tuple[str, int]] = {}
    for seen in seens:
        known = last.get(seen.session)
        if known is None:
            last[seen.session] = (seen.project, seen.at)
        elif known[1] < seen.at:
            last[seen.session] = (known[0], seen.at)
    connection.executemany(
        "INSERT INTO session(id, project, last_at) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET last_at = max(last_at, excluded.last_at)",
        [(session, *told) for session, told in last.items()],
    )


def _repeated(connection: apsw.Connection, seens: Sequence[Seen]) -> bool:
    """Say whether the setting leaves a single success out: the same call within the same minute."""
    if len(seens) > 1 or not settings.on(connection, _DEDUP):
        return False
    (seen,) = seens
    minute = seen.at - seen.at % _MINUTE
    found = connection.execute(
        "SELECT 1 FROM call WHERE fingerprint = ? AND project = ? AND ok = 1 AND session = ? "
        "AND at >= ? AND at < ? LIMIT 1",
        (seen.fingerprint, seen.project, seen.session, minute, minute + _MINUTE),
    ).get
    settings.count(connection, "tool_calls_deduped", found is not None)
    return found is not None
