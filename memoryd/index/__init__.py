"""The index: every log's records, labelled, in one SQLite file that can always be made again.

In: logs (`memoryd.sources`), rules. Out: rows in one FTS5 table a class, which `memoryd.index.search` reads.

The job, in the order in which it is done; each line is a function, and what it does for one log stands in
`memoryd.index.writer`:

    open            an index that follows its logs, or the reason why it must be rebuilt
    progress        how far a log is read
    index_records   fold records, add their rows, each with the label of what came before it
    set_progress    how far it is read now, beside the rows
    index_log       one log's turn: from where it was read, as far as its budget goes
    catch_up        the turns of all logs that changed, in one transaction
    logs            what is known of each log
    rebuild         the whole again, in a process of its own

How a daemon uses it, all from one thread (the writer's) where nothing else is said::

    index = open(settings)                   # settings.from_config(config, home, key, env)
    if not index.ready:                      # index.why: "damaged", "another version", "other settings"
        ...                                  # serve nothing before the first `publish`
    index.sweep()                            # at the start, every 30 to 60 s, and for `sync`
    index.changed(paths)                     # hints of a watcher; from any thread
    counts, more = index.catch_up()          # one transaction of about 50 ms; again at once while `more`
    index.wait()                             # else: seconds until it may do something; None: for a hint
    index.forget(wanted, dry=True)           # what would go; dry=False: it goes, `purging` until no byte is left
    index.remember(act)                      # take that back, as far as the logs are there
    index.status(), index.label_of(log, n)   # from any thread
    schema.healthy(connection, classes, deadline, words=True)  # once a day, a reader's; False: index.distrust()

    work = Rebuild(settings)                 # of that one thread nothing: `work.run` blocks for long
    built = work.run(tell)                   # in a thread of its own; `work.cancel()` from another
    index.publish(built, gate)               # the writer's thread again; `gate.shut` and `gate.open` (swap.Gate)
    index.close()

`rebuild` does the last three for a process without readers (``bxctl reindex --offline``). Whoever calls `open`
or `rebuild` holds the lock of the state folder: no other process may have the index open.
"""

from collections.abc import Callable

from memoryd.index.catalogue import Known
from memoryd.index.choosing import Wanted
from memoryd.index.forgetting import Forgotten, Hook
from memoryd.index.live import Index
from memoryd.index.process import Built, Progress, Rebuild
from memoryd.index.rows import Counts, Source
from memoryd.index.settings import Settings, from_config
from memoryd.index.standing import Status
from memoryd.index.sums import Sums
from memoryd.index.swap import Gate, NoGate
from memoryd.index.writer import (
    Budget,
    index_log,
    index_records,
    progress,
    set_progress,
)

__all__ = [
    "Budget",
    "Built",
    "Counts",
    "Forgotten",
    "Gate",
    "Hook",
    "Index",
    "Known",
    "Progress",
    "Rebuild",
    "Settings",
    "Source",
    "Status",
    "Sums",
    "Wanted",
    "catch_up",
    "from_config",
    "index_log",
    "index_records",
    "logs",
    "open",
    "progress",
    "rebuild",
    "set_progress",
]


def open(settings: Settings) -> Index:  # noqa: A001 - a room's own word: memoryd.index.open
    """Open the index of a state folder, making an empty one where there is none.

    Raises: ConfigError for an engine that is too old, a foreign database, or one of a newer memoryd.
    """
    return Index(settings)


def catch_up(index: Index) -> Counts:
    """Read all that is on the disk now, and return what it came to; it may take long."""
    index.sweep()
    counts, more = index.catch_up()
    while more:
        read, more = index.catch_up()
        counts = counts.plus(read)
    return counts


def logs(index: Index) -> list[Known]:
    """Return what is known of every log, by source and path."""
    return sorted(index.logs(), key=lambda known: known.place)


def rebuild(
    settings: Settings, tell: Callable[[Progress], None] | None = None, *, force: bool = False
) -> Built:
    """Make the whole index again and put it in its place; for a process without readers.

    `force` accepts an index that lacks logs, or half the rows, of the old one. Raises: what `Rebuild.run`
    and `Index.publish` raise; the old index then stays.
    """
    index = Index(settings)
    try:
        catch_up(index)
        built = Rebuild(settings).run(tell)
        index.publish(built, NoGate(), force=force)
    finally:
        index.close()
    return built
