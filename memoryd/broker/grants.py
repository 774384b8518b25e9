"""What a tool may do in whose session: the built-in grants, as one table.

In: a method, its arguments, the label of the session that calls. Out: a cell of `TABLE`: allow, let it wait for
the owner (`ask` a trusted session's act, `pend` an untrusted one's proposal), or deny. What has no cell is denied. A
socket's configuration names the tools that it grants at all, and so can only take away.

The cells of notes come from `memoryd.notes.rights`, whose check enforces them with the note at hand, wherever an
edit comes from; the others are enforced by `memoryd.serve.gate` around the methods themselves, so that a direct
call and a tool's call meet the same cell.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from memoryd.labels import Label
from memoryd.notes import rights

Decision = Literal["allow", "ask", "pend", "deny"]
Standing = Literal["trusted", "above", "untrusted"]
STANDINGS: tuple[Standing, ...] = ("trusted", "above", "untrusted")
"""A session: trusted and not above what it writes to (or: reads); above it; untrusted and not above it."""

Table = dict[tuple[str, Standing], Decision]


def _row(names: str, *cells: Decision, more: str = "") -> Table:
    """Return a row for each tool of `names`, cells in the order of `STANDINGS`."""
    acts = [f"{name} {more}".rstrip() for name in names.split()]
    return {
        (act, standing): cell
        for act in acts
        for standing, cell in zip(STANDINGS, cells, strict=True)
    }


_NOTES = {
    "create": "memory_create",
    "str_replace": "memory_str_replace",
    "insert": "memory_insert",
    "rename": "memory_rename",
    "rename_up": "memory_rename to a higher class",
    "delete": "memory_delete",
    "delete_folder": "memory_delete recursive",
    "index": "memory_create, memory_str_replace, memory_insert of MEMORY.md",
}
"""The acts of notes as rows of the table."""


def _of_notes() -> Table:
    """Return the cells of the notes' own table; both of its refusals are a denial here."""
    known: dict[str, Decision] = {"allow": "allow", "ask": "ask", "pend": "pend"}
    return {
        (_NOTES[act] + " in inbox" * inbox, standing): known.get(said, "deny")
        for (inbox, standing, act), said in rights.TABLE.items()
    }


OBSERVING = (
    "memory_view recall recall_open lesson_query lesson_get lesson_recall lesson_why lesson_trace"
)
FIGURES = "lesson_status lesson_audit"
OWNERS = "lesson_import lesson_export lesson_retrospective lesson_propose"
TABLE: Table = {
    **_of_notes(),
    # Within the session's class; above it the answer raises the session, which an injected instruction
    # must not bring about in a session that talks to the outside.
    **_row(f"{OBSERVING} {FIGURES}", "allow", "allow", "allow"),
    **_row(f"{OBSERVING} {FIGURES}", "allow", "allow", "ask", more="above the session's class"),
    **_row("lesson_save", "allow", "deny", "pend"),
    **_row("lesson_feedback", "allow", "deny", "ask"),
    **_row("lesson_feedback", "ask", "deny", "deny", more="ignore"),
    **_row("lesson_config", "allow", "allow", "allow", more="list"),
    **_row("lesson_config", "deny", "deny", "deny", more="set"),
    **_row(OWNERS, "deny", "deny", "deny"),
}  # fmt: skip
"""(what a tool does, how the session stands) -> decision. A person at the owner's socket is no session."""

TOOLS = {
    "recall": "recall",
    "sessions": "recall",
    "projects": "recall",
    "block": "memory_view",
    "get": "recall_open",
    "notes.view": "memory_view",
    "notes.list": "memory_view",
    # What these answer, or refuse, tells of the note that is there: to make them above is to look.
    "notes.str_replace": "memory_view",
    "notes.insert": "memory_view",
    "notes.delete": "memory_view",
    "notes.rename": "memory_view",
    **{
        f"lessons.{name}": f"lesson_{name}"
        for name in (
            "save", "query", "get", "recall", "status", "retrospective", "why", "export", "import",
            "config", "feedback", "trace", "audit", "propose",
        )
    },
}  # fmt: skip
"""The methods whose cells the gate looks up, by the tool whose rows they share; what edits may do, notes decide."""


class Verdict(NamedTuple):
    """A cell, and the rule that it is, in words for whoever is refused."""

    decision: Decision
    rule: str


def act_of(method: str, args: Mapping[str, object], *, above: bool) -> str:
    """Return the row of `TABLE` for a call; `above`: it asks for more than the session's class."""
    tool = TOOLS.get(method, method)
    if tool == "lesson_config":
        return f"{tool} {'list' if args.get('action') == 'list' else 'set'}"
    if tool == "lesson_feedback":
        return f"{tool} ignore" if args.get("verdict") == "ignore" else tool
    return f"{tool} above the session's class" if above else tool


def observes(method: str) -> bool:
    """Say whether a method only answers, so that an approved call has to be made by its own session."""
    return TOOLS.get(method) in {*OBSERVING.split(), *FIGURES.split()}


def standing(session: Label, level: int) -> Standing:
    """Return how a session stands to what it acts on, of class `level`."""
    if session.level > level:
        return "above"
    return "untrusted" if session.untrusted else "trusted"


def verdict(act: str, who: Standing) -> Verdict:
    """Return what the table says; what is not in it is denied."""
    said = TABLE.get((act, who), "deny")
    return Verdict(said, f"{act}, {who} session: {said}")


def rows() -> list[tuple[str, ...]]:
    """Return the whole table as (act, trusted, above, untrusted), for people."""
    acts = dict.fromkeys(act for act, _ in TABLE)
    return [(act, *(TABLE.get((act, who), "deny") for who in STANDINGS)) for act in acts]
