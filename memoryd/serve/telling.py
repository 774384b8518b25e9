"""What the owner is told by `status`. Pure: figures in, one map out.

In: the index's own status, what is known of its logs, the rebuild, counts of the server. Out: the fields
of docs/protocol.md. Nothing of this is told on any other socket: counts, lag and reasons speak of what a
lower reader must not know.
"""

from collections.abc import Iterable, Mapping

import msgspec

from memoryd import db
from memoryd.clock import rfc3339
from memoryd.index import Counts, Known, Progress, Status, Sums
from memoryd.serve.connection import Traffic
from memoryd.serve.pace import Rate

Told = dict[str, object]
MOST_NAMED = 100
"""Vanished logs, and files that are not read, named in one answer."""


class Rebuilding(msgspec.Struct):
    """A rebuild, running or ended: `state` is ``running``, ``done`` or ``failed``."""

    job: str
    state: str = "running"
    progress: Progress = Progress(0, 0, 0, 0)
    counts: Counts | None = None
    seconds: float | None = None
    error: str | None = None
    remedy: str | None = None
    code: str | None = None


class Fault(msgspec.Struct, frozen=True):
    """Something that is wrong now, and what to do about it."""

    what: str
    remedy: str


def index_view(status: Status, rate: Rate | None = None) -> Told:
    """Return what is told of the index and its sources; `rate`: how fast a history is read."""
    rate = rate or Rate()
    sums = status.sums
    why = sorted(sums.why.items(), key=lambda item: (-item[1], item[0]))
    return {
        "behind": {
            "logs": status.lag_logs,
            "bytes": status.lag_bytes,
            "held": status.held,
            "bytes_per_s": rate.bytes_per_s,
            "remaining_s": rate.remaining_s,
        },
        "sources": sources(status.folders),
        "left_out": [{"why": reason, "rows": rows} for reason, rows in why],
        "unreadable": sums.unreadable,
        "vanished": vanished(status.gone),
        "skipped": [
            {"path": path, "why": why} for path, why in sorted(status.skipped.items())[:MOST_NAMED]
        ],
        "purging": status.purging,
    }


def vanished(logs: Iterable[Known]) -> list[Told]:
    """Return the logs that are kept without their files, the latest first, `MOST_NAMED` at most."""
    gone = sorted(logs, key=lambda known: (-(known.last_ts or 0), known.place))
    return [
        {
            "source": known.place.source,
            "log": known.place.log,
            "session": known.session,
            "rows": known.indexed,
            "last_ts": None if known.last_ts is None else rfc3339(known.last_ts),
        }
        for known in gone[:MOST_NAMED]
    ]


def sources(folders: Mapping[tuple[str, str], Sums]) -> list[Told]:
    """Return the sums of each folder of logs and format."""
    return [
        {
            "source": source,
            "root": root,
            "logs": sums.logs,
            "gone": sums.gone,
            "records": sums.records,
            "indexed": sums.indexed,
            "left_out": sums.left_out,
            "unreadable": sums.unreadable,
        }
        for (source, root), sums in sorted(folders.items())
    ]


def rebuild_view(rebuilding: Rebuilding | None) -> Told | None:
    """Return what is told of the last rebuild."""
    if rebuilding is None:
        return None
    at, counts = rebuilding.progress, rebuilding.counts
    return {
        "job": rebuilding.job,
        "state": rebuilding.state,
        "logs": at.logs,
        "all_logs": at.all_logs,
        "bytes": at.bytes,
        "all_bytes": at.all_bytes,
        "records": 0 if counts is None else counts.records,
        "counts": None if counts is None else msgspec.to_builtins(counts),
        "seconds": rebuilding.seconds,
        "code": rebuilding.code,
        "error": rebuilding.error,
        "remedy": rebuilding.remedy,
    }


def faults(
    status: Status,
    *,
    reads_missing: int,
    unwatched: str,
    notes: str = "",
    lessons: str = "",
    configuration: str = "",
) -> list[Fault]:
    """Return what is wrong with the index, its logs, the read log, notes, lessons, and what was to be taken over."""
    found = _of_the_index(status)
    if reads_missing:
        found.append(
            Fault(
                f"{reads_missing} answers are missing in reads.jsonl",
                "free some space; see the daemon's log",
            )
        )
    if notes:
        found.append(Fault(f"notes cannot be edited: {notes}", "run `bxctl memory notes verify`"))
    if lessons:
        found.append(Fault(f"nothing is learned: {lessons}", "see the daemon's log"))
    if configuration:
        found.append(
            Fault(
                f"the configuration on disk is not the one that is served: {configuration}",
                "mend it (`memoryd --check-config`), then send SIGHUP again",
            )
        )
    if unwatched:
        found.append(Fault(f"changes are found by looking only: {unwatched}", "see the log"))
    return found


def _of_the_index(status: Status) -> list[Fault]:
    found: list[Fault] = []
    if status.fault:
        found.append(
            Fault(f"indexing stands still ({status.fault})", "see the daemon's log; it tries again")
        )
    found += [
        Fault(f"a log cannot be read ({reason}): {name}", "make it readable for you")
        for name, reason in sorted(status.faults.items())
    ]
    found += [
        Fault(f"a folder of logs is not there: {folder}", "its logs are kept; mount it again")
        for folder in status.missing
    ]
    if status.overrides_unreadable:
        found.append(
            Fault(
                f"{status.overrides_unreadable} lines of overrides.jsonl cannot be read",
                "take them out: a kill cut them short, and nothing was done by them",
            )
        )
    if status.wal_bytes > 2 * db.WAL_MOST:
        found.append(
            Fault(
                "somebody has the index open and holds on to an old state of it",
                "close what reads memory.sqlite3 (`fuser` names it); its -wal grows meanwhile",
            )
        )
    return found


def since(found: Iterable[Fault], first: dict[str, int], now: int) -> list[Told]:
    """Return faults with when each was first seen; `first` remembers that and forgets what is over."""
    told = list(found)
    for what in first.keys() - {fault.what for fault in told}:
        del first[what]
    return [
        {
            "what": fault.what,
            "since": rfc3339(first.setdefault(fault.what, now)),
            "remedy": fault.remedy,
        }
        for fault in told
    ]


def traffic_view(traffic: Traffic, reads_missing: int) -> Mapping[str, int]:
    """Return the server's counts."""
    told: dict[str, int] = msgspec.to_builtins(traffic)
    told.pop("stopping")
    return told | {"reads_missing": reads_missing}
