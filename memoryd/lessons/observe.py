"""From calls that were seen to rows: each once, whatever the order in which logs are read.

In: an open transaction and `Seen`s. Out: rows of `call`; for a failure a lesson (`reflect`), for a success a
fix where there is proof (`causal`). Everything happens in the one call, so that no stamp can come too late.
A batch gives the rows that its calls give one by one, at a fraction of the cost: one look for secrets, one
statement a table, and a look for fixes only where the same call failed before.
"""

from collections.abc import Mapping, Sequence

import apsw
import msgspec

from memoryd.labels import Label
from memoryd.lessons import calls, causal, reflect, row, settings, words
from memoryd.lessons.failure import Failure, declined, describe_many, failed
from memoryd.lessons.fingerprint import of_error
from memoryd.lessons.pairing import WELL, Open, Pairing, Seen
from memoryd.lessons.row import Lesson

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
    """Write down calls, in the order of their logs, and what they teach; return how many were not known.

    `later`: the words of what they teach wait for `words.write_missing`, called before the transaction ends.
    """
    return write(connection, seens, failures(seens), later=later)


def write(
    connection: apsw.Connection, seens: Sequence[Seen], found: Mapping[int, Failed], *, later: bool
) -> int:
    """Do the same with calls of which is known what failed: by their place, what `failures` returns."""
    if len(seens) > 1 and settings.on(connection, _DEDUP):
        return sum(
            write(connection, [seen], {0: found[n]} if n in found else {}, later=later)
            for n, seen in enumerate(seens)
        )
    if gone := _known(connection, seens):
        kept = [n for n in range(len(seens)) if n not in gone]
        found = {at: found[n] for at, n in enumerate(kept) if n in found}
        seens = [seens[n] for n in kept]
    if not seens:
        return 0
    _touch(connection, seens)
    if found or not _repeated(connection, seens):
        told = {n: (one.error, one.failure.kind) for n, one in found.items()}
        calls.put(connection, seens, told)
    _teach(connection, seens, found)
    if found and not later:
        words.write_missing(connection)
    return len(seens)


def _teach(connection: apsw.Connection, seens: Sequence[Seen], found: Mapping[int, Failed]) -> None:
    """Let each failure teach, and each success mend, in order; new lessons are written many at a time."""
    telling = {
        n: one for n, one in found.items() if one.failure.lines and not declined(seens[n].text)
    }
    known = reflect.known(connection, {(seens[n].project, one.error) for n, one in telling.items()})
    mended = causal.mended(connection, {n: seens[n] for n in found})
    mendable = _mendable(connection, seens, found)
    new: list[Lesson] = []
    for n in sorted({*found, *mendable}):
        seen, one = seens[n], telling.get(n)
        about = None if one is None else (seen.project, one.error)
        if one is not None and about is not None and about not in known:
            known.add(about)
            new.append(reflect.taught(seen, one.failure, one.error))
            one = None
        if one is not None or n in mended or n in mendable:
            row.insert_many(connection, new)
            new.clear()
        if one is not None:
            reflect.reflect(connection, seen, one.failure, one.error)
        if n in mended:
            causal.link_later(connection, seen)
        elif n in mendable:
            causal.link(connection, causal.Success.of(seen))
    row.insert_many(connection, new)


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


def save(connection: apsw.Connection, pairings: Sequence[tuple[Pairing, int]]) -> None:
    """Store what waits of each log, and that its records before a number are done; in their rows' transaction."""
    done = [(pairing.log, n) for pairing, n in pairings]
    connection.executemany("DELETE FROM waiting WHERE log = ?", [(log,) for log, _ in done])
    connection.executemany(
        "INSERT INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (pairing.log, call, o.n, o.block, o.tool, o.summary, o.fingerprint, o.at, *o.label)
            for pairing, _ in pairings
            for call, o in pairing.waiting.items()
        ],
    )
    connection.executemany(
        "INSERT INTO progress VALUES (?, ?) ON CONFLICT DO UPDATE SET n = max(n, excluded.n)", done
    )


def _known(connection: apsw.Connection, seens: Sequence[Seen]) -> set[int]:
    """Return which calls, by their place, are written down already, or stand in there twice."""
    first: dict[str, int] = {}
    for seen in seens:
        if seen.n < first.get(seen.log, seen.n + 1):
            first[seen.log] = seen.n
    places = [(seen.log, seen.n, seen.block) for seen in seens]
    known = calls.known(connection, first)
    if not known and len(frozenset(places)) == len(places):
        return set()
    met, gone = set(known), set()
    for n, place in enumerate(places):
        if place in met:
            gone.add(n)
        met.add(place)
    return gone


def failures(seens: Sequence[Seen]) -> dict[int, Failed]:
    """Return what each call that failed said, by its place among `seens`; what is alike in all is done once."""
    told = [
        n
        for n, seen in enumerate(seens)
        if seen.outcome is not WELL and failed(seen.tool, seen.outcome, seen.text)
    ]
    described = describe_many([(seens[n].tool, seens[n].outcome, seens[n].text) for n in told])
    found: dict[int, Failed] = {}
    for n, failure in zip(told, described, strict=True):
        lines = list(failure.lines) or [seens[n].tool, seens[n].summary]
        found[n] = Failed(failure, of_error(lines, seens[n].project))
    return found


def _mendable(
    connection: apsw.Connection, seens: Sequence[Seen], found: Mapping[int, Failed]
) -> frozenset[int]:
    """Return which calls, by their place, went well and had failed at any time."""
    well = {seen.fingerprint for n, seen in enumerate(seens) if n not in found}
    told = connection.execute(
        "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM failed WHERE fingerprint = value)",
        (msgspec.json.encode(list(well)).decode(),),
    )
    mended = {str(one) for (one,) in told}
    if not mended:
        return frozenset()
    return frozenset(
        n for n, seen in enumerate(seens) if n not in found and seen.fingerprint in mended
    )


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
