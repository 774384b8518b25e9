"""The calls of logs as they are kept: a failure as a row, those that went well a batch of a log together.

In: an open transaction and calls that were seen. Out: rows of `failed` and `well`, and the few questions that are
asked of `well` so often that they must not take every batch apart. Everything else reads the view `call`, which
shows all of them alike. A call that went well cost a row under three keys before, twenty times as much, and nine in
ten of those rows were never looked at.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import apsw
import msgspec

from memoryd.lessons.pairing import Seen

DAY = 24 * 3_600_000
"""Milliseconds that a batch spans at most, so that a search by time need not look further back."""

_together = attrgetter("log", "session", "project", "label")
_named = attrgetter("n", "block", "at", "tool", "summary", "fingerprint")
_failed = attrgetter(
    "log", "n", "block", "session", "project", "tool", "summary", "fingerprint", "at"
)
_OWN = "session IN (SELECT id FROM session)"
"""Of sessions that were seen here: what was imported is not ours to let go."""
_json = msgspec.json.Encoder().encode


def put(
    connection: apsw.Connection, seens: Sequence[Seen], failed: Mapping[int, tuple[str, str]]
) -> None:
    """Write down calls that are not known yet.

    `failed`: by place among `seens`, the fingerprint of what a call failed with, and its type.
    """
    if failed:
        connection.executemany(
            "INSERT INTO failed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*_failed(seens[n]), *told, *seens[n].label) for n, told in failed.items()],
        )
    well = [seen for n, seen in enumerate(seens) if n not in failed] if failed else seens
    if well:
        connection.executemany(
            "INSERT INTO well(log, session, project, level, untrusted, n, last, at, until, prints, "
            "calls) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS TEXT))",
            [row for _, run in groupby(well, _together) for row in _rows(list(run))],
        )


def known(connection: apsw.Connection, since: Mapping[str, int]) -> set[tuple[str, int, int]]:
    """Return log, record and block of each call of each log from the record on that `since` names."""
    found = connection.execute(
        "WITH s AS MATERIALIZED (SELECT key AS log, value AS least FROM json_each(?1)) "
        "SELECT log, n, block FROM s CROSS JOIN failed USING (log) WHERE n >= least UNION ALL "
        "SELECT log, c.value ->> 0, c.value ->> 1 FROM s CROSS JOIN well USING (log), json_each(calls) AS c "
        "WHERE last >= least AND c.value ->> 0 >= least",
        (_json(since).decode(),),
    )
    return {(str(log), int(n), int(block)) for log, n, block in found}


def at(connection: apsw.Connection, log: str, n: int, block: int) -> str | None:
    """Return the fingerprint of the call that stands there."""
    found = connection.execute(
        "SELECT fingerprint FROM failed WHERE log = ?1 AND n = ?2 AND block = ?3 UNION ALL "
        "SELECT c.value ->> 5 FROM well, json_each(calls) AS c WHERE log = ?1 AND last >= ?2 "
        "AND well.n <= ?2 AND c.value ->> 0 = ?2 AND c.value ->> 1 = ?3",
        (log, n, block),
    ).get
    return None if found is None else str(found)


def of_session(connection: apsw.Connection, session: str) -> bool:
    """Say whether there is any call of a session; no batch is taken apart for it."""
    found = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM failed WHERE session = ?1) "
        "OR EXISTS (SELECT 1 FROM well WHERE session = ?1)",
        (session,),
    )
    return bool(found.get)


def trim(connection: apsw.Connection, oldest: int) -> int:
    """Delete the calls before `oldest` (ms); return how many they were."""
    connection.execute(f"DELETE FROM failed WHERE at < ? AND {_OWN}", (oldest,))
    gone = connection.changes()
    gone += int(
        connection.execute(
            f"SELECT count(*) FROM well, json_each(calls) AS c WHERE at < ?1 AND {_OWN} "
            "AND c.value ->> 2 < ?1",
            (oldest,),
        ).get
    )
    connection.execute(f"DELETE FROM well WHERE until < ? AND {_OWN}", (oldest,))
    connection.execute(
        "UPDATE well SET (at, prints, calls) = (SELECT ?1, group_concat(c.value ->> 5, ' '), "
        "json_group_array(json(c.value)) FROM json_each(calls) AS c WHERE c.value ->> 2 >= ?1) "
        f"WHERE at < ?1 AND {_OWN}",
        (oldest,),
    )
    return gone


def delete(connection: apsw.Connection, places: Sequence[tuple[str, int, int]]) -> None:
    """Delete calls by log, record and block; nothing of their arguments stays, their fingerprints neither.

    A batch is taken apart once, whatever goes of it: through the view it would be for each call.
    """
    connection.executemany("DELETE FROM failed WHERE log = ? AND n = ? AND block = ?", places)
    gone: dict[str, list[str]] = {}
    for log, n, block in places:
        gone.setdefault(log, []).append(f"{n}.{block}")
    for log, names in gone.items():
        connection.execute(
            "UPDATE well SET (at, until, prints, calls) = (SELECT coalesce(min(c.value ->> 2), at), "
            "coalesce(max(c.value ->> 2), until), coalesce(group_concat(c.value ->> 5, ' '), ''), "
            "json_group_array(json(c.value)) FROM json_each(calls) AS c WHERE "
            "(c.value ->> 0) || '.' || (c.value ->> 1) NOT IN (SELECT value FROM json_each(?2))) "
            "WHERE log = ?1",
            (log, _json(names).decode()),
        )
        connection.execute("DELETE FROM well WHERE log = ? AND calls = '[]'", (log,))


def _rows(batch: list[Seen]) -> Iterable[tuple[str | int | bool | bytes, ...]]:
    """Yield the rows of calls that are of one log, session, project and label: mostly one.

    The last column is the JSON as it was encoded: to make text of it, for SQLite to be given UTF-8 again, costs as
    much as to encode it.
    """
    times = [seen.at for seen in batch]
    if max(times) - min(times) <= DAY:
        yield _row(batch, times)
        return
    for run in _days(batch):
        yield _row(run, [seen.at for seen in run])


def _days(seens: Iterable[Seen]) -> Iterable[list[Seen]]:
    """Yield runs of calls that span a day at most, in order."""
    run: list[Seen] = []
    first = last = 0
    for seen in seens:
        first, last = (min(first, seen.at), max(last, seen.at)) if run else (seen.at, seen.at)
        if last - first > DAY:
            yield run
            run, first, last = [], seen.at, seen.at
        run.append(seen)
    if run:
        yield run


def _row(seens: list[Seen], times: list[int]) -> tuple[str | int | bool | bytes, ...]:
    numbers = [seen.n for seen in seens]
    first = seens[0]
    return (
        *(first.log, first.session, first.project, *first.label),
        *(min(numbers), max(numbers), min(times), max(times)),
        " ".join([seen.fingerprint for seen in seens]),
        _json([*map(_named, seens)]),
    )
