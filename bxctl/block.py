"""`bxctl memory block`: what an agent would be told at the start of its prompt, and why not the rest.

In: words the prompt is about, a budget. Out: the block as it is, or with ``--trace`` a line for each thing that is
in it and each that is not (docs/block.md). Nothing is counted as told by looking.
"""

from collections.abc import Iterator
from typing import Any

from bxctl import output, safe, views
from bxctl.context import Context
from bxctl.grammar import Argument, Choice, Command, Count, Option
from bxctl.layout import Grid, Part, cell

BLOCK_VERSION = 1
LEAST, MOST = 100, 4_000
REASONS = {
    "untrusted": "untrusted: it lies in an inbox",
    "external": "changed outside, and not accepted",
    "expired": "its date has passed",
    "flagged": "it looks like an attempt on its reader; only you can put it there",
    "older": "other notes were changed later",
    "budget": "no room left",
}


def block(
    context: Context,
    *,
    query: tuple[str, ...],
    trace: bool,
    budget: int | None,
    hook: str | None,
    max_class: str | None,
) -> int:
    """Print the memory block; 1 when there is nothing to tell."""
    args: dict[str, Any] = {"query": " ".join(query), "hook": hook or "pre_prompt"}
    args |= {"budget_tokens": budget} if budget else {}
    args |= {"max_class": max_class} if max_class else {}
    with context.daemon() as memory:
        classes = memory.server["classes"]
        answer = memory.call("block", **args)
    if context.out.json:
        context.out.value("block", BLOCK_VERSION, answer)
    elif trace:
        context.out.show(traced(answer, classes))
    elif answer["text"]:
        output.write(safe.text(answer["text"]) + "\n")  # to the byte: no line of it may be folded
    _close(answer)
    return 0 if answer["text"] else 1


def _close(answer: dict[str, Any]) -> None:
    left = len(answer["blocked"])
    if not answer["text"]:
        output.say("nothing to tell" + (f"; {left} left out, see --trace" if left else ""))
        return
    items = len(answer["items"])
    told = f"{items} {'item' if items == 1 else 'items'}, {answer['tokens']} tokens, {answer['label']['class']}"
    output.say(f"{told}; {left} left out" if left else told)


def traced(answer: dict[str, Any], classes: list[str]) -> Iterator[Part]:
    """Yield a line for each item, and for each thing that is not told, with the reason."""
    told = [
        (
            cell("told" if not item["cut"] else "cut", "good"),
            cell(item["kind"], "dim"),
            cell(safe.line(item["id"]), "id"),
            views.label(item["label"], classes),
            cell(f"{item['tokens']} tokens", "dim"),
        )
        for item in answer["items"]
    ]
    left = [
        (
            cell("left out", "bad"),
            cell(one["kind"], "dim"),
            cell(safe.line(one["id"]), "id"),
            views.label(one["label"], classes),
            cell(REASONS.get(one["reason"], safe.line(one["reason"])), "dim"),
        )
        for one in answer["blocked"]
    ]
    yield Grid(("", "", "", "", ""), [*told, *left], give=frozenset({4}))


COMMANDS = (
    Command(
        "block",
        block,
        """Show what an agent would be told before its first prompt.

The index note of each class, a line about each other note, and the lessons that fit the words. Only what
is trusted is in it, and nothing above the socket's class: ask through the agent's socket to see what an
agent sees. Exits with 1 when there is nothing to tell.""",
        (
            ("bxctl --socket agent memory block deploy", "what an agent on that socket is told"),
            ("bxctl memory block --trace deploy", "what is left out, and why"),
            ("bxctl memory block --hook compacting deploy", "after a compaction: more lessons"),
        ),
        (
            Option("trace", "List what is told and what is not, with the reason."),
            Option(
                "budget",
                f"Tokens for the notes, {LEAST} to {MOST}; 1200 without.",
                "N",
                Count(LEAST, MOST),
            ),
            Option(
                "hook",
                "pre_prompt, compacting or pull.",
                "WHEN",
                Choice("pre_prompt", "compacting", "pull"),
            ),
            Option("max-class", "Nothing above this class.", "CLASS"),
        ),
        Argument("QUERY", many=True),
    ),
)
