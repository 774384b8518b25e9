"""`bxctl memory label`: why a log's records have their labels, and the owner's own label for a range of them.

In: a log, a range, a label and a reason. Out: a table of the steps at which the label rose, with the rules that
raised it; or how many rows have the owner's label now. Nothing else ever lowers a label.
"""

from collections.abc import Iterator
from typing import Any

from bxctl import output, safe
from bxctl.context import Context
from bxctl.grammar import Argument, Command, Option
from bxctl.layout import Cell, Grid, Para, Part, Span, cell, joined
from memoryd.errors import BadRequest

VERSION = 1
WAIT_MS = 120_000

Told = dict[str, Any]


def label(context: Context, *, log: tuple[str, ...], explain: bool, **wish: Any) -> int:
    """Explain a log's labels, or change those of a range. Raises: what the daemon refuses."""
    name, span = _named(log)
    changes = wish["class"] is not None or wish["trusted"]
    if explain and changes:
        raise BadRequest("--explain changes nothing", remedy="leave the rest out")
    with context.daemon() as memory:
        if not changes:
            if span:
                raise BadRequest(
                    "a range is given, and no label", remedy="say --class, --trusted or both"
                )
            told = memory.call("explain", log=name, deadline_ms=WAIT_MS)
            _explained(context, told)
            return 0
        if wish["reason"] is None:
            raise BadRequest(
                "no reason is given", remedy="say --reason WHY; it is kept with the override"
            )
        asked = {key: wish[key] for key in ("class", "trusted", "reason") if wish[key]}
        told = memory.call("relabel", log=name, deadline_ms=WAIT_MS, **span, **asked)
    if context.out.json:
        context.out.value("relabelled", VERSION, told)
    else:
        output.say(
            f"{told['rows']:,} rows of records {told['from']} to {told['to']} have that label now"
        )
    return 0


def _named(words: tuple[str, ...]) -> tuple[str, dict[str, int]]:
    """Return the log's name, and the range as the method takes it. Raises: BadRequest."""
    if len(words) == 1:
        return words[0], {}
    if len(words) > 2:
        raise BadRequest("more words than a log and a range", remedy="LOG [FROM:TO]")
    first, colon, last = words[1].partition(":")
    given = {"from": first, "to": last if colon else first}
    numbers = {name: text for name, text in given.items() if text}
    if not numbers or not all(
        text.isascii() and text.isdigit() and len(text) <= 9 for text in numbers.values()
    ):
        raise BadRequest(
            "the range is none", remedy="FROM:TO, record numbers from 0, both included"
        )
    return words[0], {name: int(text) for name, text in numbers.items()}


def _explained(context: Context, told: Told) -> None:
    if context.out.json:
        context.out.value("explained", VERSION, told)
        return
    context.out.show(_parts(told))


def _parts(told: Told) -> Iterator[Part]:
    ends = Span(_label(told), "head")
    yield Para(
        (Span(safe.line(told["log"]), "id"), Span(f": {told['records']:,} records, then "), ends)
    )
    rows: list[tuple[Cell, ...]] = [
        (
            cell("" if step["n"] < 0 else str(step["n"])),
            cell(_label(step)),
            (*cell(safe.line(step["what"])), *cell("\n"), *_because(step["because"])),
        )
        for step in told["steps"]
    ]
    yield Grid(
        ("record", "label after it", "because of"), rows, right=frozenset({0}), give=frozenset({2})
    )
    for one in told["overrides"]:
        how = [f"class {one['class']}"] * (one["class"] is not None) + ["trusted"] * one["trusted"]
        yield Para((Span(f"your own label for {one['rows']:,} rows of records {one['from']} to {one['to']}: "),
                    Span(", ".join(how), "head")))  # fmt: skip
    if told["copies"]:
        records = sum(last - first + 1 for first, last in told["copies"])
        yield Para(
            (Span(f"{records:,} records are copies: their rows are the other log's", "dim"),)
        )


def _because(because: list[Told]) -> Cell:
    return joined(cell(f"{safe.line(one['rule'])} ({_label(one)})", "dim") for one in because)


def _label(told: Told) -> str:
    return safe.line(told["class"]) + (", untrusted" if told["untrusted"] else "")


COMMANDS = (
    Command(
        "label",
        label,
        """Show why a log's records have their labels, or give a range of them a label of your own.

LOG is a log's path below its folder of logs, the end of that path, or a session. Without more, and with
--explain, every step is shown at which the label rose, and which rule raised it. With --class or --trusted,
the rows of records FROM to TO (all that there are, without a range) have that label from now on, whatever
came before them; what follows keeps its own. It holds for the words that stand there now, goes into
overrides.jsonl with your reason, and is kept by every rebuild.""",
        (
            ("bxctl memory label 4f1c2a3b --explain", "each step, and the rule behind it"),
            (
                "bxctl memory label s1.jsonl 12:40 --trusted --reason 'I read that page'",
                "trust these records",
            ),
            (
                "bxctl memory label s1.jsonl 12 --class internal --reason 'a test key'",
                "lower one record",
            ),
        ),
        (
            Option("explain", "Show the steps, and change nothing."),
            Option("class", "The class that the rows shall have.", "CLASS"),
            Option("trusted", "The rows shall not count as untrusted."),
            Option("reason", "Why; kept with the override.", "WHY"),
        ),
        Argument("LOG", many=True),
    ),
)
