"""`bxctl memory lessons`: ask what was learned, add to it, judge it, see what it comes to.

In: words and options. Out: lessons and figures, for a person or as JSON (docs/json-output.md). While the daemon is
down `query`, `get`, `status`, `why`, `trace` and `audit` read the lessons themselves.
"""

from collections.abc import Iterator
from typing import Any

from bxctl import lessons_views as shown
from bxctl import output
from bxctl.context import Context
from bxctl.grammar import Argument, Choice, Command, Count, Option
from memoryd.errors import BadRequest

VERSION = 1
TYPES = ("error", "pattern", "decision", "context", "rule", "solution")
VERDICTS = ("useful", "wrong", "outdated", "ignore")


def save(context: Context, *, text: tuple[str, ...], **options: Any) -> int:
    """Keep a lesson in your own words."""
    args = _given(options, "type", "scope", "project", "session")
    if "session" in args:
        args["source_session"] = args.pop("session")
    args.setdefault("type", "rule")
    with context.daemon() as memory:
        if "lessons.import" in memory.server.get("methods", ()):
            args["owner"] = True
        if options["class"] is not None:
            args["label"] = {"class": options["class"], "untrusted": False}
        told = memory.call("lessons.save", content=" ".join(text), **args)
    if context.out.json:
        context.out.value("saved", VERSION, told)
    else:
        context.out.show(shown.saved(told, memory.server["classes"]))
    return 0


def query(context: Context, *, query: tuple[str, ...], **options: Any) -> int:
    """Print the lessons that hold all of the words; 1 when there are none."""
    args = _given(options, "type", "limit", "full", "evidence")
    args |= {f"include_{name}": True for name in ("superseded", "archived") if options[name]}
    with context.lessons() as memory:
        answer = memory.call("lessons.query", query=" ".join(query), **args)
    return _listed(context, answer)


def recall(context: Context, *, query: tuple[str, ...], **options: Any) -> int:
    """Print the lessons that fit the words best; 1 when there are none. It counts as telling."""
    args = _given(options, "limit", "scope", "session", "project")
    with context.daemon() as memory:
        answer = memory.call("lessons.recall", query=" ".join(query), **args)
    return _listed(context, answer)


def get(context: Context, *, id: str) -> int:
    """Print all that is known of a lesson."""
    with context.lessons() as memory:
        answer = memory.call("lessons.get", id=id)
        classes = memory.server["classes"]
    if context.out.json:
        context.out.value("lesson", VERSION, answer)
    else:
        context.out.show(shown.whole(answer, classes))
    return 0


def status(context: Context) -> int:
    """Print the figures at a glance."""
    with context.lessons() as memory:
        answer = memory.call("lessons.status")
    if context.out.json:
        context.out.value("lessons", VERSION, answer)
    else:
        context.out.show(shown.figures(answer))
    return 0


def why(context: Context, *, query: tuple[str, ...]) -> int:
    """Print the surest pattern and what was seen of it; 1 when there is none."""
    with context.lessons() as memory:
        answer = memory.call("lessons.why", query=" ".join(query))
    found = "summary" in answer
    if context.out.json:
        context.out.value("why", VERSION, answer)
    elif found:
        context.out.show(shown.explained(answer))
    else:
        output.say("no pattern holds all of these words; try fewer")
    return 0 if found else 1


def feedback(context: Context, *, id: str, **options: Any) -> int:
    """Say what you think of a lesson."""
    if options["verdict"] is None:
        raise BadRequest("--verdict is needed", remedy=f"one of {', '.join(VERDICTS)}")
    args = _given(options, "verdict", "note")
    with context.daemon() as memory:
        answer = memory.call("lessons.feedback", memory_id=id, **args)
    if context.out.json:
        context.out.value("feedback", VERSION, answer)
    else:
        context.out.show(shown.judged(answer))
    return 0


def trace(context: Context, *, query: tuple[str, ...], **options: Any) -> int:
    """Print what the next block would tell of lessons, and what not and why; 1 when it would tell nothing."""
    args = _given(options, "session", "project", "cap")
    if options["compacting"]:
        args["tag"] = "memory"
    with context.lessons() as memory:
        answer = memory.call("lessons.trace", query=" ".join(query), **args)
    if context.out.json:
        context.out.value("trace", VERSION, answer)
    else:
        context.out.show(shown.traced(answer))
    return 0 if answer.get("would_inject") else 1


def audit(context: Context, *, verbose: bool) -> int:
    """Print the whole account."""
    with context.lessons() as memory:
        answer = memory.call("lessons.audit", verbose=verbose)
    if context.out.json:
        context.out.value("audit", VERSION, answer)
    else:
        context.out.show(shown.account(answer))
    return 0


def _listed(context: Context, answer: dict[str, Any]) -> int:
    if context.out.json:
        for lesson in answer["lessons"]:
            context.out.value("lesson", VERSION, lesson)
    elif answer["lessons"]:
        context.out.show(shown.listing(answer["lessons"]))
    else:
        output.say("nothing was learned about that; try other words")
    return 0 if answer["lessons"] else 1


def _given(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: options[name] for name in names if options.get(name) not in (None, False)}


_QUERY = Argument("QUERY", many=True)
_ID = Argument("ID")
_SESSION = Option("session", "On behalf of this session.", "ID")
_PROJECT = Option("project", "For work in this project.", "PATH")


def _asking() -> Iterator[Command]:
    yield Command(
        "save", save,
        """Keep a lesson in your own words.

Without --class it gets the highest class, so that nobody below is told of it. What looks like a secret is
masked. A rule or decision in the same words takes the place of the one before.""",
        (("bxctl memory lessons save --class internal run the linter before committing", "a rule"),
         ("bxctl memory lessons save --project ~/shop sqlite, not postgres", "of one project")),
        (Option("type", f"One of {', '.join(TYPES)}; rule without.", "TYPE", Choice(*TYPES)),
         Option("scope", "project, or session: for a day.", "SCOPE", Choice("project", "session")),
         Option("class", "Its class.", "CLASS"), _PROJECT, _SESSION), Argument("TEXT", many=True),
    )  # fmt: skip
    yield Command(
        "query", query, "List the lessons that hold all of the words, the best first.",
        (("bxctl memory lessons query TS2304", "what is known of an error"),
         ("bxctl memory lessons query --evidence --archived build fails", "old ones too, and how sure")),
        (Option("type", "Only of this type.", "TYPE", Choice(*TYPES)),
         Option("limit", "How many; 10 without.", "N", Count(1, 1_000)),
         Option("full", "The whole text of each."),
         Option("evidence", "With how far to believe each."),
         Option("superseded", "Those, too, that another has taken the place of."),
         Option("archived", "Stale and archived ones, too.")), _QUERY,
    )  # fmt: skip
    yield Command(
        "get", get, "Show all that is known of a lesson.",
        (("bxctl memory lessons get 019bdd00-ca0b-7ff3-a733-ddb5c6754b3c", "one of a listing"),), (), _ID,
    )  # fmt: skip
    yield Command(
        "recall", recall,
        """Recall the lessons that fit any of the words, as an agent would.

What is told is written into the ledger with the hook `pull`, so that it is measured like a block.""",
        (("bxctl memory lessons recall the build fails with TS2304", "what an agent would recall"),),
        (Option("limit", "How much: 500 tokens each; 5 without.", "N", Count(1, 100)),
         Option("scope", "project, session or all.", "SCOPE", Choice("project", "session", "all")),
         _SESSION, _PROJECT), _QUERY,
    )  # fmt: skip


def _judging() -> Iterator[Command]:
    yield Command(
        "status", status, "Show how much was learned, told, and what came of it.",
        (("bxctl memory lessons status", "the figures at a glance"),),
    )  # fmt: skip
    yield Command(
        "why", why, "Explain a failure: the surest pattern, each failure and each fix behind it.",
        (("bxctl memory lessons why TS2304", "what has mended it before"),), (), _QUERY,
    )  # fmt: skip
    yield Command(
        "feedback", feedback,
        """Say what you think of a lesson.

useful vouches for it, also where it is untrusted; two times wrong, or once outdated, makes it stale; ignore
hides it for good and counts as no opinion.""",
        (("bxctl memory lessons feedback --verdict useful $ID", "it is right"),
         ("bxctl memory lessons feedback --verdict outdated --note 'we use uv now' $ID",
          "it no longer is")),
        (Option("verdict", f"One of {', '.join(VERDICTS)}.", "VERDICT", Choice(*VERDICTS)),
         Option("note", "Why.", "TEXT")), _ID,
    )  # fmt: skip
    yield Command(
        "trace", trace,
        """Show what the next memory block would tell of lessons, what it would not, and why.

Nothing changes by asking. Exits with 1 when no lesson would be told.""",
        (("bxctl memory lessons trace --project /w/app the build fails", "before a prompt in a project"),),
        (_SESSION, _PROJECT, Option("cap", "Within so many tokens.", "N", Count(1, 100_000)),
         Option("compacting", "The block before compacting, not before a prompt.")), _QUERY,
    )  # fmt: skip
    yield Command(
        "audit", audit, "Show the whole account: lessons, tellings, refusals, opinions, tokens.",
        (("bxctl memory lessons audit", "all figures"),
         ("bxctl memory lessons audit --verbose --json", "for a program, with the settings")),
        (Option("verbose", "The settings, too."),),
    )  # fmt: skip


COMMANDS = (*_asking(), *_judging())
