"""`bxctl memory`: search what is remembered, show a record, wait for it, write it all out.

In: options as the tables below name them. Out: hits and records, for a person or as JSON
(docs/json-output.md).
"""

from typing import Any

from bxctl import output, views
from bxctl.context import Context
from bxctl.filters import FILTERS, wire
from bxctl.grammar import Argument, Choice, Command, Count, Option
from bxctl.layout import BLANK, Part
from memoryd import clock
from memoryd.errors import BadRequest

SEARCH_VERSION = 1
RECORD_VERSION = 1
SYNC_VERSION = 1
SYNC_MS = 600_000
"""The longest that the daemon lets one wait."""
MOST_HITS = 100
MOST_NEIGHBOURS = 50


def search(context: Context, *, query: tuple[str, ...], text: bool, **options: Any) -> int:
    """Print what is known about `query`; 1 when that is nothing."""
    asked = " ".join(query)
    if not asked.strip():
        raise BadRequest("the query is empty", remedy="say what to look for")
    args = wire(options)
    if text:
        args["text"] = True
    with context.anybody() as memory:
        classes = memory.server["classes"]
        answer = memory.call("recall", query=asked, **args)
    if context.out.json:
        context.out.value("search", SEARCH_VERSION, answer)
    elif answer["hits"]:
        context.out.show(views.hits(answer["hits"], asked, classes, clock.now_ms()))
        _close(answer)
    else:
        output.say("nothing found; try other words, or fewer filters")
    return 0 if answer["hits"] else 1


def _close(answer: dict[str, Any]) -> None:
    """Tell what the hits as a whole are, and how to see more."""
    label = answer["label"]
    trust = ", untrusted in part" if label["untrusted"] else ""
    many = len(answer["hits"])
    told = f"{many} {'hit' if many == 1 else 'hits'}, {label['class']}{trust}"
    if answer.get("capped"):
        told += "; words this common: only the newest rows were looked at"
    if answer.get("cursor"):
        told += f"; more with --cursor {answer['cursor']}"
    output.say(told)


def show(context: Context, *, id: str, before: int | None, after: int | None) -> int:
    """Print one record in full, with visible neighbours in its session."""
    with context.anybody() as memory:
        classes = memory.server["classes"]
        answer = memory.call("get", id=id, before=before or 0, after=after or 0)
    if context.out.json:
        context.out.value("record", RECORD_VERSION, answer)
        return 0
    parts: list[Part] = []
    for row in (*answer["before"], answer["record"], *answer["after"]):
        marked = row is answer["record"] and bool(before or after)
        parts += [BLANK] if parts else []
        parts += views.record(row, classes, clock.now_ms(), asked=marked)
    context.out.show(parts)
    return 0


def dump(context: Context) -> int:
    """Print every indexed record, one canonical JSON line each; 1 when there are none."""
    many = 0
    with context.anybody() as memory:
        for page in memory.pages("dump"):
            for line in page["lines"]:
                context.out.line(line)
            many += len(page["lines"])
    if not many:
        output.say("the index is empty; see `bxctl status`")
    return 0 if many else 1


def sync(context: Context, *, session: str | None) -> int:
    """Return when all that was on disk is indexed."""
    wanted = {"session": session} if session else {}
    with context.daemon() as memory:
        answer = memory.call("sync", deadline_ms=SYNC_MS, **wanted)
    if context.out.json:
        context.out.value("sync", SYNC_VERSION, answer)
    else:
        output.say(f"all that was on disk is indexed (waited {answer['waited_ms'] / 1_000:.1f} s)")
    return 0


COMMANDS = (
    Command(
        "search",
        search,
        """Search what agents and you have said and done.

Words are looked for in any order, rarer ones counting more; --mode all wants all of them, --mode phrase
in this order. What comes back is labelled: the class of what its session had seen, and whether any of
that was untrusted. Exits with 1 when nothing is found.""",
        (
            ("bxctl memory search retry backoff", "the ten best hits"),
            (
                "bxctl memory search --kind owner --since 7d deploy",
                "what I said about it this week",
            ),
            ("bxctl memory search --mode phrase 'no such table'", "these words in this order"),
            ("bxctl memory search --group session --project '*blog*' css", "sessions of a project"),
            ("bxctl memory search --json --limit 50 flaky", "for a program"),
        ),
        (
            *FILTERS,
            Option("mode", "smart, all or phrase.", "MODE", Choice("smart", "all", "phrase")),
            Option(
                "order",
                "relevance, newest or oldest.",
                "ORDER",
                Choice("relevance", "newest", "oldest"),
            ),
            Option(
                "group",
                "record, or session: only the best of each.",
                "BY",
                Choice("record", "session"),
            ),
            Option("limit", f"How many, 1 to {MOST_HITS}; 10 without.", "N", Count(1, MOST_HITS)),
            Option("cursor", "Go on where an earlier answer ended.", "CURSOR"),
            Option("text", "Print the whole text of each hit."),
        ),
        Argument("QUERY", many=True),
    ),
    Command(
        "show",
        show,
        """Show one record in full, with what came before and after it.

Neighbours that you may not see are left out, and nothing tells that they are there.""",
        (
            ("bxctl memory show bbz4k6c3ah2qkz7yq4mf", "the record of a hit"),
            ("bxctl memory show --before 3 --after 5 bbz4k6c3ah2qkz7yq4mf", "with its neighbours"),
        ),
        (
            Option("before", "How many records before it.", "N", Count(0, MOST_NEIGHBOURS)),
            Option("after", "How many records after it.", "N", Count(0, MOST_NEIGHBOURS)),
        ),
        Argument("ID"),
    ),
    Command(
        "dump",
        dump,
        """Write every indexed record as one line of canonical JSON, sorted.

Sorted keys, no spaces, UTF-8, in the order of source, log, record number and block: two equal indexes
give the same bytes. Only the owner's socket grants it.""",
        (
            ("bxctl memory dump > memory.jsonl", "all of it into a file"),
            ("bxctl memory dump | sha256sum", "is this index equal to that one"),
        ),
    ),
    Command(
        "sync",
        sync,
        """Return when all that was on disk is indexed.""",
        (
            ("bxctl memory sync", "after a session, before asking about it"),
            ("bxctl memory sync --session 4f1c2a3b", "only one session's log"),
        ),
        (Option("session", "Wait for this session only.", "ID"),),
    ),
)
