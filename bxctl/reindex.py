"""`bxctl reindex`: build the index anew from the logs, while the old one serves.

In: a running daemon, which does it in a process of its own; or its lock, when it is down, and then the same
work is done from here. Out: a bar meanwhile, at last the counts. However it ends, the old index or the new
one is whole.
"""

import os
from threading import Event
from typing import Any

from bxctl import output
from bxctl.context import Context
from bxctl.grammar import Command, Option
from bxctl.layout import Para, Span
from bxctl.progress import Moved, bar
from memoryd.client import Client
from memoryd.errors import BY_CODE, BadRequest, Busy, Internal, Unavailable

COUNTS_VERSION = 1
LOOK_S = 0.2
"""Seconds between two looks at how far the daemon is."""


def reindex(context: Context, *, offline: bool, force: bool) -> int:
    """Rebuild and print the counts. Raises: what the rebuild met, as an error of memoryd."""
    if offline:
        return _print(context, _here(context, force=force))
    try:
        daemon = context.daemon()
    except Unavailable as down:
        if context.socket is not None:
            raise
        output.say(f"{down.message}; rebuilding from here")
        return _print(context, _here(context, force=force))
    if force:
        raise BadRequest(
            "--force is for an index that memoryd does not serve meanwhile",
            remedy="stop memoryd, then run `bxctl reindex --offline --force`",
        )
    with daemon:
        return _print(context, _followed(context, daemon))


def _followed(context: Context, daemon: Client) -> dict[str, Any]:
    """Have the daemon rebuild and return its counts once it has."""
    job = daemon.call("reindex")["job"]
    try:
        with bar("rebuilding", context.out.when) as moved:
            while (now := _look(daemon, job))["state"] == "running":
                moved(now["bytes"], now["all_bytes"])
                Event().wait(LOOK_S)
    except KeyboardInterrupt:
        output.say("memoryd goes on rebuilding; `bxctl status` shows how far it is")
        raise
    if now["state"] != "done":
        kind = BY_CODE.get(str(now.get("code")), Internal)
        remedy = now["remedy"] or "see memoryd's log"
        raise kind(f"the rebuild failed, and the old index stays: {now['error']}", remedy=remedy)
    return {**now["counts"], "logs": now["all_logs"], "seconds": now["seconds"]}


def _look(daemon: Client, job: str) -> dict[str, Any]:
    """Return how far the rebuild `job` is."""
    while True:
        try:
            now: dict[str, Any] = daemon.call("status")["rebuild"]
        except Busy:  # the index is being replaced at this very moment
            Event().wait(LOOK_S)
            continue
        if now["job"] != job:
            raise Internal(f"another rebuild took the place of {job}", remedy="see `bxctl status`")
        return now


def _here(context: Context, *, force: bool) -> dict[str, Any]:
    """Rebuild under the daemon's lock, in a process that this one starts, and return the counts."""
    import msgspec

    from memoryd import config, index, paths, state

    loaded = config.load(context.env)
    home = paths.home(context.env)
    os.umask(0o077)  # whatever is made here is its owner's alone
    state.private_folder(home)
    with state.held(home), bar("rebuilding", context.out.when) as moved:
        settings = index.from_config(loaded.config, home, state.key(home), context.env)
        built = index.rebuild(settings, lambda now: _moved(moved, now), force=force)
    counts: dict[str, Any] = msgspec.to_builtins(built.counts)
    return {**counts, "logs": built.logs, "seconds": built.seconds}


def _moved(moved: Moved, now: Any) -> None:
    moved(now.bytes, now.all_bytes)


def _print(context: Context, counts: dict[str, Any]) -> int:
    if context.out.json:
        context.out.value("counts", COUNTS_VERSION, counts)
        return 0
    told = f"{counts['indexed']:,} rows indexed"
    more = f" from {counts['records']:,} records of {counts['logs']:,} logs in {counts['seconds']:.1f} s"
    left = f", {counts['left_out']:,} rows left out" if counts["left_out"] else ""
    bad = f", {counts['unreadable']:,} lines unreadable" if counts["unreadable"] else ""
    context.out.show([Para((Span(told, "head"), Span(f"{more}{left}{bad}")))])
    return 0


COMMANDS = (
    Command(
        "reindex",
        reindex,
        """Build the index anew from the logs, while the old one goes on serving.

A running memoryd does it in a process of its own; Ctrl-C here leaves it at work. Without memoryd it is
done from here, under memoryd's lock, and Ctrl-C ends it. Either way the old index stays whole until the
new one takes its place.""",
        (
            ("bxctl reindex", "rebuild, with a progress bar"),
            ("bxctl reindex --offline", "the same while memoryd is stopped"),
            ("bxctl reindex --json | jq .left_out", "how many rows are above max_class"),
        ),
        (
            Option("offline", "Do it from here; memoryd must be stopped."),
            Option(
                "force", "With --offline: also when the new index lacks logs that the old one has."
            ),
        ),
    ),
)
